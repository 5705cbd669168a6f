//! The time of each record, also in an hour that clocks show twice.

use super::{CsvPlan, OpenFile};
use crate::import::ReadOptions;
use crate::import::column_roles::ImportRole;
use crate::import::repeated_hours::RepeatedHours;
use crate::import::series_steps::SeriesSteps;
use anyhow::Result;
use marigram_tabular::record::TextRecord;
use marigram_tabular::time::TimeReader;
use xxhash_rust::xxh3::Xxh3;

impl CsvPlan {
    /// The time of a record.
    pub(crate) fn time_of(&self, record: &TextRecord) -> Result<i64, String> {
        self.time_by(record, &self.time)
    }

    /// The time of a record, as `reader` reads it.
    fn time_by(&self, record: &TextRecord, reader: &TimeReader) -> Result<i64, String> {
        let names = |at: usize| self.columns[at].file_name.clone();
        self.time_columns
            .time_of(record, reader, &names, &self.time_name)
    }

    /// The time of a record in the first and in the second pass of a repeated hour, with a hash of its tags;
    /// other times are the same in both.
    fn passes_of(
        &self,
        record: &TextRecord,
        second: &TimeReader,
    ) -> Result<(u64, i64, i64), String> {
        let first = self.time_of(record)?;
        let second = self.time_by(record, second)?;
        let mut series = Xxh3::new();
        for (at, column) in self.columns.iter().enumerate() {
            if column.role == ImportRole::Tag {
                series.update(record.cell(at).text.trim().as_bytes());
                series.update(&[0xff]);
            }
        }
        Ok((series.digest(), first, second))
    }

    /// The time of a record, where the order of the records decides which hour is meant.
    pub(crate) fn ordered_time_of(
        &self,
        record: &TextRecord,
        hours: &mut RepeatedHours,
    ) -> Result<i64, String> {
        let (series, first, second) = self.passes_of(record, &hours.second)?;
        hours.place(series, first, second).map_err(|reason| {
            let cells = self.time_columns.parts.iter();
            let cells: Vec<&str> = cells.map(|(_, at)| record.cell(*at).text.trim()).collect();
            format!(
                "column '{}': '{}' {reason}",
                self.time_name,
                cells.join(" ")
            )
        })
    }

    /// The distances between the rows of the file, if the order of the rows decides which hour is meant.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn series_steps(
        &self,
        open: OpenFile<'_>,
        options: &ReadOptions,
    ) -> Result<SeriesSteps> {
        let mut steps = SeriesSteps::default();
        let Some(hours) = RepeatedHours::if_ordered(options, &self.time) else {
            return Ok(steps);
        };
        let mut records = self.records(open()?)?;
        let mut record = TextRecord::default();
        while records.read(&mut record)? {
            if !self.fits(&record) || record.is_open {
                continue;
            }
            if let Ok((series, first, second)) = self.passes_of(&record, &hours.second) {
                steps.add(series, first, second);
            }
        }
        Ok(steps)
    }

    /// Whether clocks showed the time of a record twice.
    pub(super) fn is_repeated(&self, record: &TextRecord, hours: &RepeatedHours) -> bool {
        self.time_of(record).ok() != self.time_by(record, &hours.second).ok()
    }
}
