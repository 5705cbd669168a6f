//! Late marks: for each series the largest time that is frozen or flushed.
//!
//! A row with a time after its series' mark is in order and goes to the sequence space; any other
//! is late and goes to the unsequence space. So in the sequence space a series' rows never overlap
//! between segments. A mark may be too high, never too low: a row called late without need only
//! takes the longer way.

/// Marks by series id, ns.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    times: Vec<i64>,
    /// Whether a series may have a mark at all.
    any: bool,
}

impl Marks {
    /// Raises a series' mark to `time`.
    pub fn raise_one(&mut self, series: u32, time: i64) {
        self.reach(series as usize + 1);
        let mark = &mut self.times[series as usize];
        *mark = (*mark).max(time);
        self.any = true;
    }

    /// Raises marks to the times of rows.
    pub fn raise(&mut self, series: &[u32], times: &[i64]) {
        let Some(max) = series.iter().max() else {
            return;
        };
        self.reach(*max as usize + 1);
        self.any = true;
        for (series, time) in series.iter().zip(times) {
            let mark = &mut self.times[*series as usize];
            *mark = (*mark).max(*time);
        }
    }

    /// Which rows are late; `None` where none is.
    pub fn late(&self, series: &[u32], times: &[i64]) -> Option<Vec<bool>> {
        if !self.any {
            return None;
        }
        // A series without a mark has the lowest one: only the lowest time of all is late for it.
        let is_late = |(series, time): (&u32, &i64)| {
            *time
                <= self
                    .times
                    .get(*series as usize)
                    .copied()
                    .unwrap_or(i64::MIN)
        };
        let first = series.iter().zip(times).position(is_late)?;
        let mut late = vec![false; first];
        late.extend(series[first..].iter().zip(&times[first..]).map(is_late));
        Some(late)
    }

    /// Memory held, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.times.capacity() * size_of::<i64>()
    }

    fn reach(&mut self, len: usize) {
        if self.times.len() < len {
            self.times.resize(len, i64::MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_not_after_the_mark_are_late_and_unknown_series_never_are() {
        let mut marks = Marks::default();
        assert_eq!(marks.late(&[0, 1], &[i64::MIN, 5]), None);
        marks.raise(&[1, 1, 0], &[10, 8, 3]);
        assert_eq!(marks.late(&[1, 0, 7], &[11, 4, -5]), None);
        let late = marks.late(&[0, 1, 1, 0], &[4, 10, 11, 3]);
        assert_eq!(late, Some(vec![false, true, false, true]));
        marks.raise_one(4, 100);
        assert_eq!(marks.late(&[3, 4], &[-100, 100]), Some(vec![false, true]));
    }
}
