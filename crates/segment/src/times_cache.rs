//! A cache of decoded times: devices that report together have the same times, page by page, so that a
//! thread that reads one device after another decodes them once.

use crate::error::BlockDamage;
use crate::page::{PageTimes, decode_times};
use marigram_codec::{Progression, RegularIntegers};
use std::cell::RefCell;

/// Pages that a thread caches: the first and the last page of a device have other times than those
/// between them.
const PAGES_MAX: usize = 4;
/// Larger pages are not cached.
const PAGE_BYTES_MAX: usize = 256;
/// Pages with more progressions are not cached either.
const PROGRESSIONS_MAX: usize = 32;

/// A checked page and its times.
struct CachedTimes {
    bytes: Vec<u8>,
    rows: usize,
    times: Vec<Progression>,
}

thread_local! {
    /// In the order of insertion.
    static KNOWN: RefCell<Vec<CachedTimes>> = const { RefCell::new(Vec::new()) };
}

/// Decodes a page of `rows` times, unless it is cached.
pub(crate) fn decode(bytes: &[u8], rows: usize) -> Result<PageTimes, BlockDamage> {
    if bytes.len() > PAGE_BYTES_MAX {
        return decode_times(bytes, rows);
    }
    KNOWN.with_borrow_mut(|known| {
        let found = known
            .iter()
            .rposition(|page| page.rows == rows && page.bytes == bytes);
        if let Some(found) = found {
            let times = known[found].times.clone();
            return Ok(PageTimes::Regular(RegularIntegers::Progressions(times)));
        }
        let times = decode_times(bytes, rows)?;
        if let PageTimes::Regular(RegularIntegers::Progressions(times)) = &times
            && times.len() <= PROGRESSIONS_MAX
        {
            if known.len() == PAGES_MAX {
                known.remove(0);
            }
            known.push(CachedTimes {
                bytes: bytes.to_vec(),
                rows,
                times: times.clone(),
            });
        }
        Ok(times)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::encode_page;
    use arrow_array::{ArrayRef, Int64Array};
    use marigram_codec::{EncodingChoice, EncodingGoal};
    use std::sync::Arc;

    fn page(times: impl Iterator<Item = i64>) -> Vec<u8> {
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
        let choice = EncodingChoice {
            encoding: None,
            compressor: None,
            goal: EncodingGoal::Fast,
        };
        let mut out = Vec::new();
        encode_page(&times, choice, &mut out).unwrap();
        out
    }

    fn first_of(times: PageTimes) -> i64 {
        match times {
            PageTimes::Regular(RegularIntegers::Progressions(times)) => times[0].first,
            PageTimes::Regular(RegularIntegers::Grids(times)) => {
                times.parts(0, 1).next().unwrap().get(0)
            }
            PageTimes::Each(times) => times[0],
        }
    }

    #[test]
    fn a_page_has_its_own_times_however_many_came_before() {
        let pages: Vec<Vec<u8>> = (0..10)
            .map(|page| self::page((0..500).map(|row| page * 7 + row * 1000)))
            .collect();
        for round in 0..3 {
            for (at, page) in pages.iter().enumerate() {
                let times = decode(page, 500).unwrap();
                assert_eq!(first_of(times), at as i64 * 7, "round {round}");
                assert_eq!(first_of(decode(page, 500).unwrap()), at as i64 * 7);
            }
        }
        let known = KNOWN.with_borrow(Vec::len);
        assert_eq!(known, PAGES_MAX);
    }

    #[test]
    fn a_page_that_is_damaged_or_of_other_rows_is_not_a_known_one() {
        let mut page = page((0..500).map(|row| row * 1000));
        decode(&page, 500).unwrap();
        assert!(decode(&page, 499).is_err());
        for byte in 0..page.len() {
            page[byte] ^= 0x10;
            assert!(decode(&page, 500).is_err(), "byte {byte}");
            page[byte] ^= 0x10;
        }
        assert!(decode(&page, 500).is_ok());
    }

    #[test]
    fn long_and_irregular_pages_are_not_remembered() {
        let irregular = page((0..5000).map(|row| row * 1000 + row * row % 13));
        let stepped = page((0..8000).map(|row| row % 200 * 1000));
        for page in [(irregular, 5000), (stepped, 8000)] {
            decode(&page.0, page.1).unwrap();
        }
        assert_eq!(KNOWN.with_borrow(Vec::len), 0);
    }
}
