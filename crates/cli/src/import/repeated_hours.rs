//! Hours that clocks show twice, told apart by the order of the rows: the first pass lasts until the time
//! of a series goes back, and then the second one begins. A time that stands still, or hardly goes on, is that of
//! a second row in the same pass, unless the rows of the series are about an hour apart in the whole file.

use super::ReadOptions;
use super::options;
use super::series_steps::{HOURLY_NS, SeriesSteps};
use marigram_tabular::time::{RepeatedHour, TimeReader};
use std::collections::HashMap;
use std::sync::Arc;

/// A day in ns: rows further apart than this say nothing about each other's pass.
const DAY_NS: i64 = 86_400_000_000_000;

/// Which pass of the repeated hour a series is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockPass {
    /// None: its last time is certain.
    Outside,
    First,
    Second,
}

impl ClockPass {
    /// The pass that follows this one.
    fn next(self) -> Result<Self, String> {
        match self {
            Self::Outside => Ok(Self::First),
            Self::First => Ok(Self::Second),
            Self::Second => Err(THIRD_ROW.to_owned()),
        }
    }
}

/// The last row of a series.
#[derive(Clone, Copy, Debug)]
struct LastRow {
    /// Its time; within a repeated hour, that of the first pass.
    time: i64,
    pass: ClockPass,
}

/// Why a row is refused that has the time of the one before it.
const STANDS_STILL: &str = "was shown twice and stands in two rows, and the file does not say whether they are \
                            of one hour or of one each, because its rows are neither all an hour apart nor \
                            mostly closer; give --repeated-hour first or second";

/// Why a row is refused that would be of a third hour.
const THIRD_ROW: &str = "was shown twice, but is the third one in the order of the rows; a tag may be missing \
                         that tells the devices apart (--tags)";

/// Follows the rows of a file in their order, each series by itself.
pub(crate) struct RepeatedHours {
    /// Reads a time of a repeated hour as one of the second pass.
    pub second: TimeReader,
    last: HashMap<u64, LastRow>,
    steps: Arc<SeriesSteps>,
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
            steps: Arc::default(),
        }
    }

    /// The same with the distances between the rows of the file.
    #[must_use]
    pub(crate) fn with_steps(mut self, steps: Arc<SeriesSteps>) -> Self {
        self.steps = steps;
        self
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
            Some(last) if first < last.time => last.pass.next()?,
            Some(last) if first.abs_diff(last.time) >= HOURLY_NS => last.pass,
            Some(last) => match self.steps.is_hourly(series) {
                None if first > last.time => last.pass,
                Some(false) => last.pass,
                Some(true) => last.pass.next()?,
                None => return Err(STANDS_STILL.to_owned()),
            },
        };
        self.follow(series, first, pass);
        Ok(match pass {
            ClockPass::Second => second,
            _ => first,
        })
    }

    fn follow(&mut self, series: u64, time: i64, pass: ClockPass) {
        self.last.insert(series, LastRow { time, pass });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    /// Places rows that have these times in either pass.
    fn placed_passes(rows: &[(i64, i64)]) -> Vec<Option<i64>> {
        let mut steps = SeriesSteps::default();
        for (first, second) in rows {
            steps.add(7, *first, *second);
        }
        let hours = RepeatedHours::new(&TimeReader::default());
        let mut hours = hours.with_steps(Arc::new(steps));
        let place = |(first, second): &(i64, i64)| hours.place(7, *first, *second).ok();
        rows.iter().map(place).collect()
    }

    /// Places rows of clock times in half hours; 4 and 5 are shown twice.
    fn placed(clocks: &[i64]) -> Vec<Option<i64>> {
        let passes = clocks.iter().map(|clock| {
            let first = if *clock > 5 { clock + 2 } else { *clock } * HOUR / 2;
            let is_twice = (4..6).contains(clock);
            (first, if is_twice { first + HOUR } else { first })
        });
        let placed = placed_passes(&passes.collect::<Vec<_>>());
        let halves = placed.into_iter().map(|time| time.map(|t| t * 2 / HOUR));
        halves.collect()
    }

    #[test]
    fn an_hourly_logger_whose_clock_goes_on_by_a_second_is_in_the_next_pass() {
        let second = HOUR / 3600;
        // From two to three o'clock the hour comes twice.
        let passes = [3, 3601, 7201, 7202, 10_800, 14_402].map(|clock: i64| {
            let first = if clock < 10_800 { clock } else { clock + 3600 } * second;
            let is_twice = (7200..10_800).contains(&clock);
            (first, if is_twice { first + HOUR } else { first })
        });
        let expected = [3, 3601, 7201, 10_802, 14_400, 18_002];
        assert_eq!(
            placed_passes(&passes),
            expected.map(|time| Some(time * second))
        );
        // The same seconds in a file of seconds are of one pass.
        let passes =
            [7201, 7202, 7202, 7203].map(|clock: i64| (clock * second, clock * second + HOUR));
        let expected = [7201, 7202, 7202, 7203].map(|clock| Some(clock * second));
        assert_eq!(placed_passes(&passes), expected);
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
        // Two rows of one time at the beginning of a file, and behind a pause.
        assert_eq!(
            placed(&[4, 4, 5, 5, 4, 4, 5, 5, 6]),
            all(&[4, 4, 5, 5, 6, 6, 7, 7, 8])
        );
        assert_eq!(placed(&[1, 4, 4, 5, 5, 6, 7]), all(&[1, 4, 4, 5, 5, 8, 9]));
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
        // One time alone says nothing of the rows' distance; a logger with a row between the hours says both.
        assert_eq!(placed(&[4, 4]), [Some(4), None]);
        assert_eq!(
            placed(&[-6, -4, -2, -1, 2, 4, 4, 6]),
            [-6, -4, -2, -1, 2, 4]
                .map(Some)
                .into_iter()
                .chain([None, Some(8)])
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_series_with_one_time_takes_the_distances_of_the_file() {
        let mut steps = SeriesSteps::default();
        for minute in 0..3 {
            steps.add(1, minute * HOUR / 60, minute * HOUR / 60);
        }
        steps.add(2, 4 * HOUR, 5 * HOUR);
        steps.add(2, 4 * HOUR, 5 * HOUR);
        assert_eq!(steps.is_hourly(2), Some(false));
        assert_eq!(steps.is_hourly(3), Some(false));
        assert_eq!(SeriesSteps::default().is_hourly(2), None);
    }
}
