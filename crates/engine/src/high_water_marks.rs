//! High-water marks: for each series, the largest time that has been frozen or flushed.
//!
//! A row with a time after its series' mark is in order and goes to the sequence space; any other
//! row is late and goes to the unsequence space. So a series' rows in different segments of the
//! sequence space never overlap. A mark may be too high, but never too low: a row that is
//! needlessly treated as late only takes the longer path.

/// Series in a chunk of marks.
const CHUNK: usize = 4096;

/// Marks by series id, ns. They are stored in chunks, each of which is allocated with its first
/// mark, so that growth copies nothing and takes no more memory than needed.
#[derive(Debug, Default)]
pub(crate) struct HighWaterMarks {
    chunks: Vec<Option<Box<[i64]>>>,
}

impl HighWaterMarks {
    /// Raises a series' mark to `time`.
    pub(crate) fn raise_one(&mut self, series: u32, time: i64) {
        let (chunk, at) = place(series);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let marks = self.chunks[chunk].get_or_insert_with(|| vec![i64::MIN; CHUNK].into());
        marks[at] = marks[at].max(time);
        debug_assert!(
            self.mark(series) >= time,
            "a mark too low lets rows overlap"
        );
    }

    /// Raises marks to the times of rows.
    pub(crate) fn raise(&mut self, series: &[u32], times: &[i64]) {
        // A row left out here would count as in order when it comes again.
        debug_assert_eq!(series.len(), times.len(), "series of rows");
        for (series, time) in series.iter().zip(times) {
            self.raise_one(*series, *time);
        }
    }

    /// Which rows are late; `None` if none is.
    pub(crate) fn late(&self, series: &[u32], times: &[i64]) -> Option<Vec<bool>> {
        if self.chunks.is_empty() {
            return None;
        }
        // A series without a mark has the lowest possible mark, so only the lowest possible time is
        // late for it.
        let is_late = |(series, time): (&u32, &i64)| *time <= self.mark(*series);
        let first = series.iter().zip(times).position(is_late)?;
        let mut late = Vec::with_capacity(series.len());
        late.resize(first, false);
        late.extend(series[first..].iter().zip(&times[first..]).map(is_late));
        Some(late)
    }

    /// Memory that the marks hold, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let held = self.chunks.iter().flatten().count();
        held * size_of::<[i64; CHUNK]>() + self.chunks.capacity() * size_of::<usize>()
    }

    fn mark(&self, series: u32) -> i64 {
        let (chunk, at) = place(series);
        match self.chunks.get(chunk) {
            Some(Some(marks)) => marks[at],
            _ => i64::MIN,
        }
    }
}

fn place(series: u32) -> (usize, usize) {
    (series as usize / CHUNK, series as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_not_after_the_mark_are_late_and_unknown_series_never_are() {
        let mut marks = HighWaterMarks::default();
        assert_eq!(marks.late(&[0, 1], &[i64::MIN, 5]), None);
        marks.raise(&[1, 1, 0], &[10, 8, 3]);
        assert_eq!(marks.late(&[1, 0, 7], &[11, 4, -5]), None);
        let late = marks.late(&[0, 1, 1, 0], &[4, 10, 11, 3]);
        assert_eq!(late, Some(vec![false, true, false, true]));
        marks.raise_one(4, 100);
        assert_eq!(marks.late(&[3, 4], &[-100, 100]), Some(vec![false, true]));
    }
}
