//! Memory that each thread keeps for the bytes of pages: pages are read one after the other and
//! decoded at once, so that none needs memory of its own, and several can be read with one call.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum memory of a thread, bytes.
pub(crate) const BYTES_MAX: u64 = 256 << 10;

struct PageBuffer {
    buffer: Vec<u8>,
    /// Number of the segment and bytes of it that were read before somebody asked for them.
    ahead: Option<(u64, Range<u64>)>,
}

thread_local! {
    static KEPT: RefCell<PageBuffer> = const {
        RefCell::new(PageBuffer { buffer: Vec::new(), ahead: None })
    };
}

/// A number that no other open segment of the process has.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl PageBuffer {
    /// A buffer of `len` bytes; discards what was read ahead.
    fn room(&mut self, len: usize) -> &mut [u8] {
        self.ahead = None;
        if self.buffer.len() < len {
            self.buffer.resize(len.next_power_of_two(), 0);
        }
        &mut self.buffer[..len]
    }

    /// Bytes `wanted` of segment `number`, if they were read ahead.
    fn find(&self, number: u64, wanted: &Range<u64>) -> Option<&[u8]> {
        let (of, ahead) = self.ahead.as_ref()?;
        if *of != number || wanted.start < ahead.start || ahead.end < wanted.end {
            return None;
        }
        let place = |at: u64| (at - ahead.start) as usize;
        Some(&self.buffer[place(wanted.start)..place(wanted.end)])
    }
}

fn len_of(extent: &Range<u64>) -> usize {
    (extent.end - extent.start) as usize
}

/// Shows `see` the bytes `extent` of segment `number`, which `fill` reads unless they were read ahead.
/// They must be at most [`BYTES_MAX`], and `see` must not read others.
pub(crate) fn with<T, E>(
    number: u64,
    extent: Range<u64>,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    see: impl FnOnce(&[u8]) -> T,
) -> Result<T, E> {
    KEPT.with_borrow_mut(|kept| {
        if let Some(bytes) = kept.find(number, &extent) {
            return Ok(see(bytes));
        }
        let bytes = kept.room(len_of(&extent));
        fill(bytes)?;
        Ok(see(bytes))
    })
}

/// Reads the bytes `extent` of segment `number` ahead, by `fill`. They must be at most [`BYTES_MAX`].
pub(crate) fn put<E>(
    number: u64,
    extent: Range<u64>,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    KEPT.with_borrow_mut(|kept| {
        fill(kept.room(len_of(&extent)))?;
        kept.ahead = Some((number, extent));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(number: u64, extent: Range<u64>) -> (Vec<u8>, bool) {
        let mut was_read = false;
        let fill = |bytes: &mut [u8]| {
            was_read = true;
            bytes.fill(99);
            Ok::<_, ()>(())
        };
        let bytes = with(number, extent, fill, <[u8]>::to_vec).unwrap();
        (bytes, was_read)
    }

    #[test]
    fn what_was_read_ahead_is_found_and_nothing_else_is() {
        let count = |bytes: &mut [u8]| {
            (0..).zip(bytes).for_each(|(at, byte)| *byte = at);
            Ok::<_, ()>(())
        };
        put(7, 100..110, count).unwrap();
        assert_eq!(get(7, 102..105), (vec![2, 3, 4], false));
        assert!(!get(7, 100..110).1);
        assert_eq!(get(7, 109..111), (vec![99, 99], true));
        assert!(get(7, 102..105).1, "other bytes stand there now");
        put(7, 100..110, count).unwrap();
        assert!(get(8, 102..105).1, "another segment");
        put(7, 100..110, count).unwrap();
        assert_eq!(put(7, 200..210, |_| Err(())), Err(()));
        assert!(get(7, 102..105).1, "a failure leaves nothing behind");
        assert!(get(7, 200..210).1);
    }
}
