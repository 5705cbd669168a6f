//! What the cells of a column reveal about the format of its times.

use super::digits::{DigitPattern, FittingPatterns};
use super::parts::{OffsetUnit, TimePart, ends_with_half, is_half_of_day, is_zone};
use super::written::{clock_of, is_impossible_day, is_spreadsheet_clock};
use super::{DateOrder, FileZone, Precision, TimeFormat, TimeReader, WrittenTime, is_clock};
use crate::cell::{DecimalMark, read_f64};

/// Largest share of cells that may have another format and are refused, if the others are dates.
const STRAY_MAX: f64 = 0.05;

/// Observations of a column. Nothing is decided before the whole column was seen.
#[derive(Clone, Debug, Default)]
pub struct TimeEvidence {
    cells: u64,
    /// Cells that are valid dates in each order.
    by_order: [u64; 3],
    /// Cells that are valid dates only in this order.
    only: [u64; 3],
    /// The first of them.
    only_first: [Option<String>; 3],
    clocks: u64,
    with_clock: u64,
    with_offset: u64,
    with_name: u64,
    /// Dates with a time of day that is midnight.
    midnights: u64,
    /// Times of day with AM or PM.
    with_half: u64,
    hour_max: i8,
    numbers: u64,
    /// Numbers without a fraction, and those that are multiples of 15.
    whole: u64,
    fifteens: u64,
    compact: u64,
    /// Digits that are a time of day if the column is said to be one: 0930, 093000.
    digit_clocks: u64,
    halves: u64,
    zones: u64,
    /// The last cell that is a zone: most columns repeat one.
    last_zone: String,
    number_max: f64,
    number_min: f64,
    /// The smallest and the largest number, and the first one, as they are written.
    number_texts: [String; 2],
    number_first: Option<String>,
    /// The notations of dates in digits that fit all numbers.
    digits: FittingPatterns,
    /// A cell that is a day in April in one order and a day in May in the other.
    ambiguous: Option<String>,
    first: Option<String>,
    impossible: u64,
    stray: Vec<u64>,
    stray_count: u64,
}

/// Lines whose cell is no time that are remembered.
const STRAYS_MAX: usize = 100;

/// Why the format is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Several orders of day, month and year fit every cell.
    #[error(
        "column '{column}': '{cell}' is {days}, and no row says which; give --date-order {options}"
    )]
    Ambiguous {
        /// The column.
        column: Box<str>,
        /// A cell.
        cell: Box<str>,
        /// The readings.
        days: Box<str>,
        /// The values of the command-line option for them.
        options: Box<str>,
    },
    /// Some cells are day, month, year, others month, day, year.
    #[error(
        "column '{column}' mixes orders of dates: {one} are {one_words} only, {other} are \
         {other_words} only; give --date-order, and the others are refused"
    )]
    Mixed {
        /// The column.
        column: String,
        /// Cells that are valid only in one order.
        one: u64,
        /// The order.
        one_words: &'static str,
        /// Cells that are valid only in another order.
        other: u64,
        /// That order.
        other_words: &'static str,
    },
    /// No format fits.
    #[error(
        "the times in column '{column}' cannot be read ('{cell}'); give --time-format, such as \
         \"%d.%m.%Y %H:%M:%S\", or another --time-column"
    )]
    Unknown {
        /// The column.
        column: String,
        /// A cell.
        cell: String,
    },
    /// All days are ones that the calendar does not have.
    #[error("column '{column}': '{cell}' is not a time: the calendar has no such day")]
    NoSuchDay {
        /// The column.
        column: String,
        /// A cell.
        cell: String,
    },
}

impl TimeEvidence {
    /// Adds a cell that has a value, with its line.
    pub fn add(&mut self, cell: &str, line: u64) {
        self.cells += 1;
        if self.first.is_none() {
            self.first = Some(cell.to_owned());
        }
        let number =
            read_f64(cell, DecimalMark::Point).or_else(|| read_f64(cell, DecimalMark::Comma));
        let number = number.or_else(|| cell.parse::<i64>().ok().map(|whole| whole as f64));
        self.add_part(cell);
        if let Some(number) = number.filter(|number| number.is_finite()) {
            self.whole += u64::from(number.fract() == 0.0);
            self.fifteens += u64::from(number % 15.0 == 0.0);
            let is_first = self.numbers == 0;
            if is_first {
                self.number_first = Some(cell.to_owned());
            }
            if is_first || number < self.number_min {
                self.number_min = number;
                cell.clone_into(&mut self.number_texts[0]);
            }
            if is_first || number > self.number_max {
                self.number_max = number;
                cell.clone_into(&mut self.number_texts[1]);
            }
            self.digits.add(cell);
            self.numbers += 1;
            if compact(cell) {
                self.compact += 1;
            }
            return;
        }
        if !cell.as_bytes().iter().any(u8::is_ascii_digit) {
            return self.stray(cell, line);
        }
        let readings = DateOrder::ALL.map(|order| WrittenTime::read(cell, order));
        let fitting = readings.iter().flatten().count();
        if fitting == 0 {
            if is_clock(cell) {
                self.clocks += 1;
                self.add_clock(cell);
            } else {
                // A day that does not exist is a time that is wrong, not another kind of value.
                self.impossible += u64::from(is_impossible_day(cell));
                self.stray(cell, line);
            }
            return;
        }
        if is_spreadsheet_clock(cell) {
            self.clocks += 1;
            return;
        }
        for (at, reading) in readings.iter().enumerate() {
            let Some(reading) = reading else { continue };
            self.by_order[at] += 1;
            if fitting == 1 {
                self.only[at] += 1;
                self.only_first[at].get_or_insert_with(|| cell.to_owned());
            }
            let first = readings.iter().flatten().next();
            if self.ambiguous.is_none() && first.is_some_and(|first| first.at != reading.at) {
                self.ambiguous = Some(cell.to_owned());
            }
        }
        let Some(one) = readings.iter().flatten().next() else {
            return;
        };
        let has_clock = cell.contains(':') || cell.len() > 10 || one.at.hour() > 0;
        self.with_clock += u64::from(has_clock);
        self.midnights += u64::from(has_clock && one.at.time() == jiff::civil::Time::midnight());
        if has_clock {
            self.with_half += u64::from(ends_with_half(cell));
            self.hour_max = self.hour_max.max(one.at.hour());
        }
        self.with_offset += u64::from(one.offset_s.is_some());
        self.with_name += u64::from(one.name.is_some());
    }

    /// Notes what a cell could be as a part of a time beside others.
    fn add_part(&mut self, cell: &str) {
        if is_half_of_day(cell) {
            self.halves += 1;
        }
        let is_digits = |len: usize| cell.len() == len && cell.bytes().all(|b| b.is_ascii_digit());
        if (is_digits(4) || is_digits(6)) && clock_of(cell).is_some() {
            self.digit_clocks += 1;
        }
        // Looking up a name costs time, so stop once the column clearly holds something else.
        if self.cells - self.zones > STRAYS_MAX as u64 {
            return;
        }
        if cell == self.last_zone {
            self.zones += 1;
        } else if is_zone(cell) {
            self.zones += 1;
            cell.clone_into(&mut self.last_zone);
        }
    }

    fn add_clock(&mut self, cell: &str) {
        self.with_half += u64::from(ends_with_half(cell));
        if let Some((clock, _)) = clock_of(cell.trim()) {
            self.hour_max = self.hour_max.max(clock.time.hour());
        }
    }

    fn stray(&mut self, _cell: &str, line: u64) {
        self.stray_count += 1;
        if self.stray.len() < STRAYS_MAX {
            self.stray.push(line);
        }
    }

    /// Two cells that are dates, but in no common order: the first is day, month and year, the second
    /// month, day and year.
    pub fn contradiction(&self) -> Option<(&str, &str)> {
        let [_, dmy, mdy] = &self.only_first;
        dmy.as_deref().zip(mdy.as_deref())
    }

    /// Lines whose cells are no time, if they are few.
    pub fn stray_lines(&self) -> &[u64] {
        if self.stray_count as usize > STRAYS_MAX {
            return &[];
        }
        &self.stray
    }

    /// Whether nearly all cells are written dates.
    pub fn is_date(&self) -> bool {
        let dates = self.by_order.iter().max().copied().unwrap_or(0);
        self.mostly((dates + self.impossible).max(self.compact))
    }

    /// Whether the values could be this part of a time.
    pub fn is_part(&self, part: TimePart) -> bool {
        let cells = self.cells;
        match part {
            TimePart::Date => self.is_date(),
            TimePart::Clock => self.is_clock(),
            TimePart::Half => self.mostly(self.halves),
            TimePart::Zone => self.mostly(self.zones),
            _ => part.range().is_some_and(|(least, most)| {
                cells > 0
                    && self.whole == cells
                    && self.number_min >= least
                    && self.number_max <= most
            }),
        }
    }

    /// Whether all cells are a time of day without marks: 0930, 093000.
    pub fn is_digit_clock(&self) -> bool {
        self.cells > 0 && self.digit_clocks == self.cells
    }

    /// Whether a column with AM or PM beside these times says something that they do not say.
    pub fn needs_half(&self) -> bool {
        self.with_half == 0 && self.hour_max <= 12
    }

    /// Whether all cells are numbers up to `most`.
    pub fn numbers_at_most(&self, most: f64) -> bool {
        self.numbers == self.cells && self.number_max <= most
    }

    /// The unit in which all cells are offsets from UTC, if they are numbers.
    pub fn offset_unit(&self) -> Option<OffsetUnit> {
        if self.cells == 0 || self.numbers != self.cells {
            return None;
        }
        let most = self.number_max.abs().max(self.number_min.abs());
        if most <= 14.0 {
            Some(OffsetUnit::Hours)
        } else if self.fifteens != self.cells {
            None
        } else if most <= 14.0 * 60.0 {
            Some(OffsetUnit::Minutes)
        } else {
            (most <= 14.0 * 3600.0).then_some(OffsetUnit::Seconds)
        }
    }

    /// The largest number.
    pub fn number_max(&self) -> f64 {
        self.number_max
    }

    /// The first number, as it is written.
    pub fn first_number(&self) -> &str {
        self.number_first.as_deref().unwrap_or_default()
    }

    /// The smallest number, as it is written.
    pub fn number_min_text(&self) -> &str {
        &self.number_texts[0]
    }

    /// The largest number, as it is written.
    pub fn number_max_text(&self) -> &str {
        &self.number_texts[1]
    }

    /// The notations of dates in digits that fit all numbers.
    pub fn digit_patterns(&self) -> impl Iterator<Item = DigitPattern> {
        self.digits.all()
    }

    /// Whether all numbers could be days since 1899-12-30 between 1970 and 2100.
    pub fn is_spreadsheet_days(&self) -> bool {
        self.numbers > 0
            && self.numbers == self.cells
            && self.number_min >= 25_569.0
            && self.number_max < 73_051.0
    }

    /// The first cell.
    pub fn first(&self) -> &str {
        self.first.as_deref().unwrap_or_default()
    }

    /// Whether nearly all cells are dates without a time of day.
    pub fn is_date_only(&self) -> bool {
        self.is_date() && self.with_clock == 0
    }

    /// Whether nearly all cells are dates with midnight as their time of day, as spreadsheets write a
    /// date that has its time of day in another column.
    pub fn is_midnight_only(&self) -> bool {
        self.is_date() && self.with_clock == self.midnights
    }

    /// Whether nearly all cells are times of day without a date.
    pub fn is_clock(&self) -> bool {
        self.mostly(self.clocks)
    }

    /// Whether nearly all cells are numbers that are times between 1990 and 2100 in one unit.
    pub fn is_epoch(&self) -> bool {
        let (from, to) = (631_152_000.0, 4_102_444_800.0);
        self.mostly(self.numbers)
            && [1.0, 1e3, 1e6, 1e9]
                .iter()
                .any(|unit| self.number_min >= from * unit && self.number_max < to * unit)
    }

    fn mostly(&self, count: u64) -> bool {
        count > 0 && count as f64 >= self.cells as f64 * 0.9
    }

    /// Cells with a zone: as an offset, and as a name.
    pub fn zones(&self) -> (u64, u64) {
        (self.with_offset, self.with_name)
    }

    /// Number of cells.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// The format of the times of `column`, whose cells these are; `order` comes from the user.
    ///
    /// # Errors
    /// If no format fits, or two do.
    pub fn form(&self, column: &str, order: Option<DateOrder>) -> Result<TimeFormat, FormError> {
        if self.cells == 0 {
            return Ok(TimeFormat::Written(order.unwrap_or(DateOrder::Ymd)));
        }
        if self.numbers > 0 && self.compact == self.numbers {
            return Ok(TimeFormat::Written(DateOrder::Ymd));
        }
        if self.numbers * 2 > self.cells {
            let largest = self.number_max.abs().max(self.number_min.abs());
            return Ok(TimeFormat::Number(Precision::guess(largest)));
        }
        if let Some(order) = order {
            return Ok(TimeFormat::Written(order));
        }
        let most = self.by_order.iter().max().copied().unwrap_or(0);
        if most == 0 {
            let (column, cell) = (column.to_owned(), self.first.clone().unwrap_or_default());
            if self.impossible > 0 {
                return Err(FormError::NoSuchDay { column, cell });
            }
            return Err(FormError::Unknown { column, cell });
        }
        let [ymd, dmy, mdy] = self.by_order;
        if ymd == most && ymd > dmy.max(mdy) {
            return Ok(TimeFormat::Written(DateOrder::Ymd));
        }
        let contradict = self.only[1] > 0 && self.only[2] > 0;
        // Month names and equal parts have the same meaning in any order.
        if self.ambiguous.is_none() && !contradict {
            let order = DateOrder::ALL
                .into_iter()
                .zip(self.by_order)
                .find(|(_, count)| *count == most);
            return Ok(TimeFormat::Written(
                order.map_or(DateOrder::Ymd, |(order, _)| order),
            ));
        }
        let tied = DateOrder::ALL.into_iter().zip(self.by_order);
        let tied: Vec<DateOrder> = tied
            .filter(|(_, count)| *count == most)
            .map(|(order, _)| order)
            .collect();
        if tied.len() > 1 {
            let Some(cell) = self.ambiguous.as_ref().filter(|_| !contradict) else {
                return Err(self.mixed(column));
            };
            return ambiguous(column, cell, &tied);
        }
        let (order, contrary) = if dmy > mdy {
            (DateOrder::Dmy, self.only[2])
        } else {
            (DateOrder::Mdy, self.only[1])
        };
        if contrary as f64 > most as f64 * STRAY_MAX {
            return Err(self.mixed(column));
        }
        Ok(TimeFormat::Written(order))
    }

    fn mixed(&self, column: &str) -> FormError {
        FormError::Mixed {
            column: column.to_owned(),
            one: self.only[1],
            one_words: DateOrder::Dmy.words(),
            other: self.only[2],
            other_words: DateOrder::Mdy.words(),
        }
    }
}

/// The order of dates that several orders fit equally; an error if they are different days.
fn ambiguous(column: &str, cell: &str, tied: &[DateOrder]) -> Result<TimeFormat, FormError> {
    let mut readings: Vec<(String, &str)> = Vec::new();
    for order in tied {
        let Some(reading) = WrittenTime::read(cell, *order) else {
            continue;
        };
        let day = reading.at.strftime("%-d %B %Y").to_string();
        if readings.iter().all(|(known, _)| *known != day) {
            readings.push((day, order.option()));
        }
    }
    if readings.len() > 1 {
        let (days, options): (Vec<String>, Vec<&str>) = readings.into_iter().unzip();
        return Err(FormError::Ambiguous {
            column: column.into(),
            cell: cell.into(),
            days: days.join(" or ").into(),
            options: options.join(" or ").into(),
        });
    }
    Ok(TimeFormat::Written(
        tied.first().copied().unwrap_or(DateOrder::Ymd),
    ))
}

/// Whether digits without separators are a date of recent centuries: 20260405, also to the hour,
/// minute or second. Seconds since 1970 that look like this lie beyond 2032, so those of today do not.
fn compact(cell: &str) -> bool {
    if !matches!(cell.len(), 8 | 10 | 12 | 14) || !cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let year = cell[..4].parse::<u32>().unwrap_or(0);
    (1970..2100).contains(&year) && WrittenTime::read(cell, DateOrder::Ymd).is_some()
}

/// The zone of a TIMESTAMP field is in the text, or is UTC.
impl Default for TimeReader {
    fn default() -> Self {
        Self {
            form: TimeFormat::Written(DateOrder::Ymd),
            zone: FileZone::utc(),
        }
    }
}
