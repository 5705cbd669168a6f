//! Hours that clocks show twice, told apart by the order of the rows: the first pass lasts until the time
//! of a series goes back, and then the second one begins. A time that stands still is that of a second row
//! in the same pass, unless the rows of the series are an hour apart.

use super::ReadOptions;
use super::options;
use marigram_tabular::time::{RepeatedHour, TimeReader};
use std::collections::HashMap;

/// A day in ns: rows further apart than this say nothing about each other's pass.
const DAY_NS: i64 = 86_400_000_000_000;

/// Rows this far apart show a repeated time once in each pass.
const HOUR_NS: u64 = 3_600_000_000_000;

/// Which pass of the repeated hour a series is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockPass {
    /// None: its last time is certain.
    Outside,
    First,
    Second,
}

/// The last row of a series.
#[derive(Clone, Copy, Debug)]
struct LastRow {
    /// Its time; within a repeated hour, that of the first pass.
    time: i64,
    pass: ClockPass,
    /// How far it is from the last row with another time.
    distance: Option<u64>,
}

impl LastRow {
    /// Whether rows are so far apart that a repeated time is that of the second pass.
    fn is_hourly(&self) -> bool {
        self.distance.is_none_or(|distance| distance >= HOUR_NS)
    }
}

/// Follows the rows of a file in their order, each series by itself.
pub(crate) struct RepeatedHours {
    /// Reads a time of a repeated hour as one of the second pass.
    pub second: TimeReader,
    last: HashMap<u64, LastRow>,
}

impl RepeatedHours {
    /// For the times that `reader` reads, if the order of the rows is to decide.
    pub(crate) fn if_ordered(options: &ReadOptions, reader: &TimeReader) -> Option<Self> {
        (options.repeated_hour == Some(options::RepeatedHour::Order)).then(|| Self::new(reader))
    }

    fn new(reader: &TimeReader) -> Self {
        let second = TimeReader {
            form: reader.form.clone(),
            zone: reader.zone.repeating(RepeatedHour::Second),
        };
        Self {
            second,
            last: HashMap::new(),
        }
    }

    /// The time of the next row of a series, from its times in the two passes.
    pub(crate) fn place(&mut self, series: u64, first: i64, second: i64) -> Result<i64, String> {
        let last = self.last.get(&series).copied();
        if first == second {
            self.follow(series, first, ClockPass::Outside);
            return Ok(first);
        }
        let pass = match last {
            // Times far away belong to another hour, or to another part of the file.
            None => ClockPass::First,
            Some(last) if last.time.abs_diff(first) > DAY_NS as u64 => ClockPass::First,
            Some(last) if last.pass == ClockPass::Outside && last.time >= second => {
                return Err(
                    "was shown twice, and the row before it is later, so the order of the rows does not say \
                     which is meant; sort the file by time, or give --repeated-hour first or second"
                        .to_owned(),
                );
            }
            Some(last) if last.pass == ClockPass::Outside => ClockPass::First,
            Some(last) if first > last.time => last.pass,
            Some(last) if first == last.time && !last.is_hourly() => last.pass,
            Some(last) if last.pass == ClockPass::First => ClockPass::Second,
            Some(_) => {
                return Err(
                    "was shown twice, but is the third one in the order of the rows; a tag may be missing that \
                     tells the devices apart (--tags)"
                        .to_owned(),
                );
            }
        };
        self.follow(series, first, pass);
        Ok(match pass {
            ClockPass::Second => second,
            _ => first,
        })
    }

    fn follow(&mut self, series: u64, time: i64, pass: ClockPass) {
        let distance = self.last.get(&series).and_then(|last| {
            if last.time == time {
                last.distance
            } else {
                Some(time.abs_diff(last.time))
            }
        });
        let row = LastRow {
            time,
            pass,
            distance,
        };
        self.last.insert(series, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    /// Places rows of clock times in half hours; 4 and 5 are shown twice.
    fn placed(clocks: &[i64]) -> Vec<Option<i64>> {
        let mut hours = RepeatedHours::new(&TimeReader::default());
        let place = |clock: &i64| {
            let first = if *clock > 5 { clock + 2 } else { *clock } * HOUR / 2;
            let second = if (4..6).contains(clock) {
                first + HOUR
            } else {
                first
            };
            hours
                .place(7, first, second)
                .ok()
                .map(|time| time * 2 / HOUR)
        };
        clocks.iter().map(place).collect()
    }

    #[test]
    fn the_order_of_the_rows_decides() {
        let all = |times: &[i64]| times.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(placed(&[3, 4, 5, 4, 5, 6]), all(&[3, 4, 5, 6, 7, 8]));
        // A logger of one row an hour.
        assert_eq!(placed(&[2, 4, 4, 6]), all(&[2, 4, 6, 8]));
        // Two rows of one time, in either pass; a file that begins and ends within the hour.
        assert_eq!(placed(&[4, 5, 5, 6]), all(&[4, 5, 5, 8]));
        assert_eq!(
            placed(&[3, 4, 4, 5, 4, 5, 5, 6]),
            all(&[3, 4, 4, 5, 6, 7, 7, 8])
        );
        assert_eq!(placed(&[5, 4]), all(&[5, 6]));
        // The rows of another device without a tag, one below the other.
        assert_eq!(
            placed(&[3, 4, 5, 4, 5, 6, 3, 4, 5, 4, 6]),
            all(&[3, 4, 5, 6, 7, 8, 3, 4, 5, 6, 8])
        );
    }

    #[test]
    fn an_order_that_says_nothing_is_refused() {
        assert_eq!(placed(&[6, 5, 4]), [Some(8), None, None]);
        assert_eq!(placed(&[2, 4, 4, 4]), [Some(2), Some(4), Some(6), None]);
    }
}
