//! Pages of the program's own code that are mapped: tens of megabytes, most of them touched once.
//!
//! The system maps code in stretches of 16 pages and leaves them mapped until the whole machine runs
//! short, so that they count as resident though nobody uses them. Where the limit is near, they are
//! unmapped: what is still used comes back from the page cache without a read from the disk.
//!
//! Invariant: only mappings of the executable that cannot be written and of which no page was ever
//! written are let go of, so that nothing is lost.

use std::ops::Range;

/// Smaller mappings are not worth a call.
const BYTES_MIN: usize = 1 << 20;

/// Mappings of the executable's code and constants.
#[derive(Debug, Default)]
pub(crate) struct CodePages {
    ranges: Vec<Range<usize>>,
}

impl CodePages {
    /// Those of this process; none where the system does not say.
    pub(crate) fn of_this_process() -> Self {
        // These files describe the process and are no part of a database.
        let executable = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        Self {
            ranges: untouched(&mappings, &executable.to_string_lossy()),
        }
    }

    /// Unmaps them.
    pub(crate) fn unmap(&self) {
        #[cfg(target_os = "linux")]
        for range in &self.ranges {
            forget(range);
        }
    }
}

/// The mappings of `executable` in the text of `/proc/self/smaps` that are read alone and have no
/// page of their own.
fn untouched(smaps: &str, executable: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut candidate) = (Vec::new(), None);
    for line in smaps.lines() {
        if let Some(bytes) = line.strip_prefix("Anonymous:") {
            let is_own = bytes.split_whitespace().next() != Some("0");
            ranges.extend(candidate.take().filter(|_| !is_own));
        } else if let Some(range) = header(line) {
            let mut columns = line.split_whitespace().skip(1);
            let is_read_alone = columns.next().is_some_and(|mode| !mode.contains('w'));
            let is_executable = line.ends_with(executable) && !executable.is_empty();
            let wanted = is_read_alone && is_executable && range.len() >= BYTES_MIN;
            candidate = wanted.then_some(range);
        }
    }
    ranges
}

/// The addresses at the start of a mapping's first line; `None` for its other lines.
fn header(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no other way to ask for it")]
fn forget(range: &Range<usize>) {
    use std::ffi::{c_int, c_void};

    /// `MADV_DONTNEED` of Linux.
    const DO_NOT_NEED: c_int = 4;
    unsafe extern "C" {
        /// POSIX systems: `man 2 madvise`.
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    let address = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range is a mapping of the executable, which stays for the life of the process. It
    // cannot be written and none of its pages differs from the file, so that each comes back as it
    // was when it is next used. An error leaves it as it is.
    unsafe {
        madvise(address, range.len(), DO_NOT_NEED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_never_written_is_let_go_of() {
        let smaps = "\
10000000-10200000 r-xp 00001000 fe:00 7 /bin/marigram
Rss: 2048 kB
Anonymous:             0 kB
20000000-20200000 r--p 00201000 fe:00 7 /bin/marigram
Anonymous:             4 kB
30000000-30200000 rw-p 00401000 fe:00 7 /bin/marigram
Anonymous:             0 kB
40000000-40001000 r--p 00601000 fe:00 7 /bin/marigram
Anonymous:             0 kB
50000000-50200000 r-xp 00000000 fe:00 8 /lib/libc.so
Anonymous:             0 kB
60000000-60200000 r--p 00000000 00:00 0
Anonymous:             0 kB
";
        assert_eq!(
            untouched(smaps, "/bin/marigram"),
            [0x1000_0000..0x1020_0000]
        );
        assert_eq!(untouched(smaps, ""), []);
    }

    #[test]
    fn the_program_runs_on_when_its_code_was_unmapped() {
        let pages = CodePages::of_this_process();
        let numbers: Vec<u64> = (0..1000).collect();
        for _ in 0..3 {
            pages.unmap();
            assert_eq!(numbers.iter().sum::<u64>(), 499_500);
        }
    }
}
