//! What the cells of a column reveal about the format of its times.

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
    clocks: u64,
    with_clock: u64,
    with_offset: u64,
    with_name: u64,
    numbers: u64,
    compact: u64,
    number_max: f64,
    number_min: f64,
    /// A cell that is a day in April in one order and a day in May in the other.
    ambiguous: Option<String>,
    first: Option<String>,
    stray: Vec<(u64, String)>,
}

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
        if let Some(number) = number.filter(|number| number.is_finite()) {
            if self.numbers == 0 {
                (self.number_min, self.number_max) = (number, number);
            }
            self.number_min = self.number_min.min(number);
            self.number_max = self.number_max.max(number);
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
            } else {
                self.stray(cell, line);
            }
            return;
        }
        for (at, reading) in readings.iter().enumerate() {
            let Some(reading) = reading else { continue };
            self.by_order[at] += 1;
            if fitting == 1 {
                self.only[at] += 1;
            }
            let first = readings.iter().flatten().next();
            if self.ambiguous.is_none() && first.is_some_and(|first| first.at != reading.at) {
                self.ambiguous = Some(cell.to_owned());
            }
        }
        let Some(one) = readings.iter().flatten().next() else {
            return;
        };
        self.with_clock += u64::from(cell.contains(':') || cell.len() > 10);
        self.with_offset += u64::from(one.offset_s.is_some());
        self.with_name += u64::from(one.name.is_some());
    }

    fn stray(&mut self, cell: &str, line: u64) {
        if self.stray.len() < 5 {
            self.stray.push((line, cell.to_owned()));
        }
    }

    /// Whether nearly all cells are written dates.
    pub fn is_date(&self) -> bool {
        let dates = self.by_order.iter().max().copied().unwrap_or(0);
        self.mostly(dates.max(self.compact))
    }

    /// Whether nearly all cells are dates without a time of day.
    pub fn is_date_only(&self) -> bool {
        self.is_date() && self.with_clock == 0
    }

    /// Whether nearly all cells are times of day without a date.
    pub fn is_clock(&self) -> bool {
        self.mostly(self.clocks)
    }

    /// Whether all cells are numbers that are times between 1990 and 2100 in one unit.
    pub fn is_epoch(&self) -> bool {
        let (from, to) = (631_152_000.0, 4_102_444_800.0);
        self.numbers > 0
            && self.numbers == self.cells
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

/// Whether digits without separators are a date of recent centuries: 20260405, 20260405120000.
fn compact(cell: &str) -> bool {
    if !matches!(cell.len(), 8 | 14) || !cell.bytes().all(|byte| byte.is_ascii_digit()) {
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
