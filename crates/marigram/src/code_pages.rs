//! Mapped pages of the program's own code: tens of megabytes, most of them used once.
//!
//! With each page that is used, the system maps the 15 pages around it and leaves them mapped until
//! the whole machine runs short of memory. They count as resident although nothing uses them: by
//! measurement, four fifths of the resident code. Two things help. The system never maps beyond the
//! end of a mapping, so the code is split into short mappings. And near the limit, the code is
//! unmapped: pages still in use come back from the page cache without a disk read.
//!
//! Invariant: only mappings of the executable that are not writable and of which no page was ever
//! written are released, so nothing is lost.

use std::ops::Range;

/// Smaller mappings are not worth a call.
const BYTES_MIN: usize = 1 << 20;
/// The code is split into mappings of this size, or of twice, four times, … the size if there would
/// be too many of them.
const SPLIT_BYTES: usize = 16 << 10;
/// Splitting may take one of this many parts of the mappings that the system allows a process.
const MAPPINGS_SHARE: usize = 4;
/// The number of mappings that it allows by default.
const MAPPINGS_MAX: usize = 65_530;

/// Mappings of the executable's code and constants.
#[derive(Debug, Default)]
pub(crate) struct CodePages {
    ranges: Vec<Range<usize>>,
}

impl CodePages {
    /// Those of this process; none if the system does not report them.
    pub(crate) fn of_this_process() -> Self {
        // These files describe the process and do not belong to a database.
        let executable = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        Self {
            ranges: untouched(&mappings, &executable.to_string_lossy()),
        }
    }

    /// Splits the mappings, so that the system maps little more than what is used.
    pub(crate) fn split(&self) {
        let most = std::fs::read_to_string("/proc/sys/vm/max_map_count");
        let most = most.ok().and_then(|text| text.trim().parse().ok());
        let part = part_bytes(&self.ranges, most.unwrap_or(MAPPINGS_MAX) / MAPPINGS_SHARE);
        #[cfg(target_os = "linux")]
        for range in &self.ranges {
            for start in range.clone().step_by(2 * part) {
                let end = range.end.min(start + part);
                // The kernel would merge adjacent mappings with equal flags. This flag differs and
                // has no other effect: code is not part of a core dump anyway.
                advise(&(start..end), DO_NOT_DUMP);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = part;
    }

    /// Unmaps the pages.
    pub(crate) fn unmap(&self) {
        #[cfg(target_os = "linux")]
        for range in &self.ranges {
            advise(range, DO_NOT_NEED);
        }
    }
}

/// The mappings of `executable` in the text of `/proc/self/smaps` that are read-only and have no
/// private pages; adjacent ones are joined.
fn untouched(smaps: &str, executable: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut candidate: Option<Range<usize>> = None;
    for line in smaps.lines() {
        if let Some(bytes) = line.strip_prefix("Anonymous:") {
            let is_own = bytes.split_whitespace().next() != Some("0");
            let Some(range) = candidate.take().filter(|_| !is_own) else {
                continue;
            };
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        } else if let Some(range) = header(line) {
            let mut columns = line.split_whitespace().skip(1);
            let is_read_alone = columns.next().is_some_and(|mode| !mode.contains('w'));
            let is_executable = line.ends_with(executable) && !executable.is_empty();
            candidate = (is_read_alone && is_executable).then_some(range);
        }
    }
    ranges.retain(|range| range.len() >= BYTES_MIN);
    ranges
}

/// The size of each part if `ranges` are split into at most `parts_max` parts.
fn part_bytes(ranges: &[Range<usize>], parts_max: usize) -> usize {
    let all: usize = ranges.iter().map(Range::len).sum();
    let mut part = SPLIT_BYTES;
    while all / part > parts_max && part < all {
        part *= 2;
    }
    part
}

/// The addresses at the start of a mapping's first line; `None` for its other lines.
fn header(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// `MADV_DONTNEED` of Linux.
#[cfg(target_os = "linux")]
const DO_NOT_NEED: std::ffi::c_int = 4;
/// `MADV_DONTDUMP` of Linux.
#[cfg(target_os = "linux")]
const DO_NOT_DUMP: std::ffi::c_int = 16;

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the system has no safe interface for it")]
fn advise(range: &Range<usize>, advice: std::ffi::c_int) {
    use std::ffi::{c_int, c_void};

    unsafe extern "C" {
        /// POSIX systems: `man 2 madvise`.
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    let address = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range is part of a mapping of the executable, which exists for the life of the
    // process. It is not writable and none of its pages differs from the file, so each page comes
    // back unchanged when it is next used. An error changes nothing.
    unsafe {
        madvise(address, range.len(), advice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds of the mappings to release.
    fn bounds(smaps: &str) -> Vec<(usize, usize)> {
        let ranges = untouched(smaps, "/bin/marigram").into_iter();
        ranges.map(|range| (range.start, range.end)).collect()
    }

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
        assert_eq!(bounds(smaps), [(0x1000_0000, 0x1020_0000)]);
        assert!(untouched(smaps, "").is_empty());
    }

    #[test]
    fn neighbours_count_as_one() {
        let smaps = "\
10000000-10080000 r-xp 00000000 fe:00 7 /bin/marigram
Anonymous:             0 kB
10080000-10100000 r-xp 00080000 fe:00 7 /bin/marigram
Anonymous:             0 kB
20000000-20080000 r-xp 00100000 fe:00 7 /bin/marigram
Anonymous:             0 kB
";
        assert_eq!(bounds(smaps), [(0x1000_0000, 0x1010_0000)]);
    }

    #[test]
    fn there_are_never_too_many_parts() {
        let ranges = [0..100 << 20, 200 << 20..240 << 20];
        assert_eq!(part_bytes(&ranges, 16_000), SPLIT_BYTES);
        assert_eq!(part_bytes(&ranges, 5_000), 2 * SPLIT_BYTES);
        assert_eq!(part_bytes(&ranges, 1_000), 16 * SPLIT_BYTES);
        assert_eq!(part_bytes(&[], 0), SPLIT_BYTES);
    }

    /// The system maps nothing beyond the mapping that contains the used page.
    #[test]
    #[cfg(target_os = "linux")]
    fn little_more_is_mapped_than_what_is_used() {
        let pages = CodePages::of_this_process();
        let Some(range) = pages.ranges.iter().max_by_key(|range| range.len()) else {
            return;
        };
        pages.split();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let within = maps
            .lines()
            .filter_map(header)
            .filter(|mapping| range.start <= mapping.start && mapping.end <= range.end);
        let longest = within.map(|mapping| mapping.len()).max().unwrap();
        let part = part_bytes(&pages.ranges, MAPPINGS_MAX / MAPPINGS_SHARE);
        assert!(longest <= part, "{longest} bytes");
    }

    #[test]
    fn the_program_runs_on_when_its_code_was_unmapped() {
        let pages = CodePages::of_this_process();
        let numbers: Vec<u64> = (0..1000).collect();
        for _ in 0..3 {
            pages.split();
            pages.unmap();
            assert_eq!(numbers.iter().sum::<u64>(), 499_500);
        }
    }
}
