//! The columns that make up the time of each row, and how the time is read from them.

use super::ReadOptions;
use marigram_tabular::dialect::TextDialect;
use marigram_tabular::layout::ColumnLayout;
use marigram_tabular::profile::ColumnProfile;
use marigram_tabular::record::TextRecord;
use marigram_tabular::time::{OffsetUnit, TimeFault, TimePart, TimeReader, spreadsheet_clock};
use std::fmt::Write;

/// The columns that make up the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeColumns {
    /// What each is, and its index, in the order in which they are read.
    pub parts: Vec<(TimePart, usize)>,
    /// The unit of a zone that is a number.
    pub offset_unit: Option<OffsetUnit>,
    /// Whether the parts are joined as they are, for a format that the user gave.
    pub joined: bool,
}

impl TimeColumns {
    /// A single column.
    pub(super) fn single(at: usize) -> Self {
        Self {
            parts: vec![(TimePart::Date, at)],
            ..Self::default()
        }
    }

    /// Whether a column is one of them.
    pub(super) fn contains(&self, at: usize) -> bool {
        self.parts.iter().any(|(_, column)| *column == at)
    }

    /// The column of this part.
    pub(super) fn place(&self, part: TimePart) -> Option<usize> {
        let mut parts = self.parts.iter();
        parts.find(|(found, _)| *found == part).map(|(_, at)| *at)
    }

    /// Reads the time of a record; `names` are the file's, and `name` is the table's of the time.
    pub(super) fn time_of(
        &self,
        record: &TextRecord,
        reader: &TimeReader,
        names: &dyn Fn(usize) -> String,
        name: &str,
    ) -> Result<i64, String> {
        let fault = |text: &str, fault: &TimeFault| format!("column '{name}': '{text}' {fault}");
        if let [(_, at)] = self.parts.as_slice() {
            let text = record.cell(*at).text.trim();
            if text.is_empty() {
                return Err(format!("it has no time (column '{name}' is empty)"));
            }
            return reader.read(text).map_err(|error| fault(text, &error));
        }
        let mut text = String::new();
        let mut zone = "";
        for (part, at) in &self.parts {
            let cell = record.cell(*at).text.trim();
            if cell.is_empty() {
                if *part == TimePart::Zone && reader.zone.name().is_some() {
                    continue;
                }
                let what = match part {
                    TimePart::Date => "time".to_owned(),
                    part => part.to_string(),
                };
                let column = names(*at);
                return Err(format!("it has no {what} (column '{column}' is empty)"));
            }
            if *part == TimePart::Zone && !self.joined {
                zone = cell;
            } else {
                self.put(&mut text, *part, cell);
            }
        }
        if zone.is_empty() {
            return reader.read(&text).map_err(|error| fault(&text, &error));
        }
        let time = reader.read_beside_zone(&text, zone, self.offset_unit);
        time.map_err(|error| fault(&format!("{text} {zone}"), &error))
    }

    /// Appends a cell to the text of a time.
    fn put(&self, text: &mut String, part: TimePart, cell: &str) {
        let space = if text.is_empty() { "" } else { " " };
        if self.joined {
            text.push_str(space);
            text.push_str(cell);
            return;
        }
        // Writing to a String cannot fail.
        let _ = match part {
            TimePart::Date => {
                let parts = [TimePart::Clock, TimePart::Hour];
                let has_clock = parts.iter().any(|part| self.place(*part).is_some());
                let date = if has_clock { without_clock(cell) } else { cell };
                write!(text, "{space}{date}")
            }
            TimePart::Year => write!(text, "{cell:0>4}"),
            TimePart::Month | TimePart::Day => write!(text, "-{cell:0>2}"),
            TimePart::Clock => {
                let clock = spreadsheet_clock(cell).unwrap_or(cell);
                write!(text, "{space}{clock}")
            }
            TimePart::Hour => {
                let minutes = match self.place(TimePart::Minute) {
                    Some(_) => "",
                    None => ":00",
                };
                write!(text, "{space}{cell}{minutes}")
            }
            TimePart::Minute | TimePart::Second => write!(text, ":{cell:0>2}"),
            TimePart::Millisecond => {
                let has_seconds = text.matches(':').count() >= 2;
                write!(text, "{}.{cell:0>3}", if has_seconds { "" } else { ":00" })
            }
            TimePart::Half | TimePart::Zone => write!(text, "{space}{cell}"),
        };
    }
}

/// A date without the midnight that a spreadsheet writes behind it.
fn without_clock(cell: &str) -> &str {
    let Some(colon) = cell.find(':') else {
        return cell;
    };
    cell[..colon]
        .rfind([' ', 'T'])
        .map_or(cell, |end| &cell[..end])
}

/// The profile of a file, from which its time is found.
pub(super) struct TimeSearch<'a> {
    /// The options.
    pub options: &'a ReadOptions,
    /// The table, if it exists.
    pub known: Option<&'a ColumnLayout>,
    /// The names of the columns in the table.
    pub table_names: &'a [String],
    /// How the file is written.
    pub dialect: &'a TextDialect,
    /// The cells of its first row.
    pub sample: &'a [String],
    /// The columns.
    pub profiles: &'a [ColumnProfile],
}
