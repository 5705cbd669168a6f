//! The session's zone in the protocol: `timestamptz` is printed as text in it, and text without a
//! zone is read in it.

use arrow::array::{ArrayRef, make_array};
use arrow::datatypes::DataType;
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use marigram_pgtext::{ReferenceClock, TimeText, ZoneClock, session_zone, zone_of};
use std::sync::Arc;

/// The zone of most sessions, and of all zoned times as they arrive.
const UTC: &str = "UTC";

/// The offsets of a zone, by its name in an Arrow type.
///
/// # Errors
/// If the zone is unknown.
pub(super) fn clock(label: &str) -> Result<ZoneClock, ArrowError> {
    let zone = zone_of(label).or_else(|_| session_zone(label).map(|(_, zone)| zone));
    let zone = zone.map_err(|error| ArrowError::ParseError(error.to_string()))?;
    Ok(ZoneClock::new(zone))
}

/// The name of a session's zone in types. POSIX's `+02`, which is west of UTC, would be read as an
/// offset to the east.
pub(super) fn label(zone: &str) -> String {
    if !zone.starts_with(['+', '-']) {
        return zone.to_owned();
    }
    format!("<X>{zone}")
}

/// A batch whose zoned times are shown in another zone.
///
/// # Errors
/// None that can occur.
pub(super) fn shown_in(batch: RecordBatch, label: &str) -> Result<RecordBatch, ArrowError> {
    if label == UTC {
        return Ok(batch);
    }
    let is_zoned =
        |field: &Arc<Field>| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
    if !batch.schema().fields().iter().any(is_zoned) {
        return Ok(batch);
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let DataType::Timestamp(unit, Some(_)) = field.data_type() else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
            continue;
        };
        let kind = DataType::Timestamp(*unit, Some(label.into()));
        let data = column.to_data().into_builder().data_type(kind.clone());
        let column: ArrayRef = make_array(data.build()?);
        fields.push(Arc::new(field.as_ref().clone().with_data_type(kind)));
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

/// Parses a time in any of PostgreSQL's formats, in the session's zone if it names none; returns ns
/// since 1970.
///
/// # Errors
/// Why it is not a time.
pub(super) fn read(text: &str, zone: &str) -> Result<i64, String> {
    let (_, zone) = session_zone(zone).map_err(|error| error.to_string())?;
    let clock = ReferenceClock { now: None, zone };
    let time = TimeText::parse(text, &clock).and_then(|time| time.utc_ns(&clock));
    time.map_err(|error| error.to_string())
}
