//! The settings of TimescaleDB in `WITH (tsdb.hypertable, …)` and `SET (timescaledb.compress, …)`.

use crate::error::{SqlError, SqlResult};
use marigram_functions::duration::{CalendarInterval, parse_interval};
use marigram_model::DAY_NS;

/// Days of a month in the width of a partition, which divides tables and loses nothing.
const PARTITION_MONTH_DAYS: i64 = 30;

/// What TimescaleDB's settings say about a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HypertableSettings {
    /// The column by whose time the table is divided.
    pub time: Option<String>,
    /// Columns that identify devices.
    pub tags: Vec<String>,
    /// The width of a partition.
    pub partition_ns: Option<i64>,
    /// What the client is told.
    pub notices: Vec<String>,
}

/// What settings mean that need no statement here.
const STORAGE: &str = "rows are always stored in columns and compressed, sorted by series and time";

impl HypertableSettings {
    /// Applies one setting; `value` is `None` for NULL, and 'true' for a setting without a value.
    ///
    /// # Errors
    /// If there is no such setting, or the value does not suit it.
    pub(crate) fn set(&mut self, key: &str, value: Option<String>) -> SqlResult<()> {
        let text = value.unwrap_or_default();
        match key {
            "partition_column" | "partitioning_column" | "primary_dimension" => {
                self.time = names(&text).into_iter().next();
            }
            "segmentby" | "compress_segmentby" => self.tags = names(&text),
            "chunk_interval" | "chunk_time_interval" => {
                let wrong = |reason| SqlError::named("22023", key, format!("{key}: {reason}"));
                let interval = parse_interval(&text).map_err(wrong)?;
                self.partition_ns = Some(partition_ns(key, interval)?);
            }
            "compress" | "columnstore" | "enable_columnstore" | "orderby" | "compress_orderby" => {
                let notice = format!("timescaledb.{key}: {STORAGE}");
                if !self.notices.iter().any(|notice| notice.ends_with(STORAGE)) {
                    self.notices.push(notice);
                }
            }
            "hypertable"
            | "create_default_indexes"
            | "associated_schema"
            | "associated_table_prefix"
            | "compress_chunk_time_interval"
            | "compress_chunk_interval"
            | "compress_orderby_nullsfirst"
            | "sparse_index"
            | "index" => {}
            other => {
                const KNOWN: [&str; 8] = [
                    "hypertable",
                    "partition_column",
                    "chunk_interval",
                    "segmentby",
                    "orderby",
                    "compress",
                    "compress_segmentby",
                    "enable_columnstore",
                ];
                return Err(SqlError::unknown("22023", "table setting", other, KNOWN));
            }
        }
        Ok(())
    }
}

/// The width of a partition that an interval says.
///
/// # Errors
/// If it is not positive, or too long.
pub(crate) fn partition_ns(what: &str, interval: CalendarInterval) -> SqlResult<i64> {
    approximate_ns(interval, PARTITION_MONTH_DAYS)
        .filter(|ns| *ns > 0)
        .ok_or_else(|| {
            let message = format!("{what}: the interval is not a positive length of time");
            SqlError::named("22023", what, message)
        })
}

/// An interval in nanoseconds, with months of so many days; `None` if it does not fit.
pub(crate) fn approximate_ns(interval: CalendarInterval, month_days: i64) -> Option<i64> {
    let days = i64::from(interval.months)
        .checked_mul(month_days)?
        .checked_add(i64::from(interval.days))?;
    days.checked_mul(DAY_NS)?.checked_add(interval.nanos)
}

/// The names in a list, without quotes and without the order of each; names without quotes are folded.
fn names(list: &str) -> Vec<String> {
    let names = list.split(',').filter_map(|item| {
        let item = item.trim();
        match item.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((quoted, _)) => Some(quoted.to_owned()),
            None => item.split_whitespace().next().map(str::to_lowercase),
        }
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_quotes() {
        assert_eq!(names("a, \"B\" , time DESC"), ["a", "B", "time"]);
        assert_eq!(names(" Device_ID "), ["device_id"]);
        assert!(names("").is_empty());
    }

    #[test]
    fn months_of_partitions_have_thirty_days() {
        let month = parse_interval("1 month").unwrap();
        assert_eq!(partition_ns("x", month).unwrap(), 30 * DAY_NS);
        let none = parse_interval("0 days").unwrap();
        assert!(partition_ns("x", none).is_err());
    }
}
