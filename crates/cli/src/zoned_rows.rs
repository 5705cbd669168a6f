//! Times with a zone as texts in the session's time zone, for people.

use crate::reply::{ReplyRows, StatementFailure};
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, TimestampNanosecondType};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use marigram_pgtext::{ZoneClock, zone_of};
use std::sync::Arc;

/// The rows with texts for times with a zone, unless the session's zone is UTC.
pub(crate) fn in_session_zone(rows: ReplyRows) -> ReplyRows {
    let has_zone = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
    let fields = rows.schema.fields();
    let zone = rows.zone.as_deref().filter(|zone| *zone != "UTC");
    let Some(Ok(zone)) = zone.map(zone_of) else {
        return rows;
    };
    if !fields.iter().any(|field| has_zone(field)) {
        return rows;
    }
    let shown = fields.iter().map(|field| {
        if has_zone(field) {
            Field::new(field.name(), DataType::Utf8, true)
        } else {
            field.as_ref().clone()
        }
    });
    let schema = Arc::new(Schema::new(shown.collect::<Vec<_>>()));
    let (of_batches, mut clock) = (Arc::clone(&schema), ZoneClock::new(zone));
    let batches = rows.batches.map(move |batch| {
        with_texts(&batch?, &of_batches, &mut clock)
            .map_err(|error| StatementFailure::new(error.to_string()))
    });
    ReplyRows {
        schema,
        batches: Box::new(batches),
        zone: rows.zone,
    }
}

fn with_texts(
    batch: &RecordBatch,
    schema: &SchemaRef,
    clock: &mut ZoneClock,
) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| {
        if !matches!(column.data_type(), DataType::Timestamp(_, Some(_))) {
            return Ok(Arc::clone(column));
        }
        let times = cast(column, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
        let times = times.as_primitive::<TimestampNanosecondType>().iter();
        let texts: StringArray = times
            .map(|time| clock.text(time?).map(with_minutes))
            .collect();
        Ok(Arc::new(texts) as ArrayRef)
    });
    let columns = columns.collect::<Result<_, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// A time whose offset has minutes, as times of other statements have in tables.
fn with_minutes(mut text: String) -> String {
    let offset = text.rfind(['+', '-']).map(|at| text.len() - at);
    if offset == Some(3) {
        text.push_str(":00");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::TimestampNanosecondArray;

    #[test]
    fn times_have_the_clocks_of_the_session() {
        let times = TimestampNanosecondArray::from(vec![Some(1_782_907_200_000_000_000), None]);
        let times = times.with_timezone("UTC");
        let batch = RecordBatch::try_from_iter([("t", Arc::new(times) as ArrayRef)]).unwrap();
        let rows = |zone: &str| ReplyRows {
            schema: batch.schema(),
            batches: Box::new(std::iter::once(Ok(batch.clone()))),
            zone: Some(zone.to_owned()),
        };
        let shown = |zone| in_session_zone(rows(zone)).batches.next().unwrap().unwrap();
        let texts = shown("Europe/Berlin");
        let texts = texts.column(0).as_string::<i32>();
        let texts: Vec<Option<&str>> = texts.iter().collect();
        assert_eq!(texts, [Some("2026-07-01 14:00:00+02:00"), None]);
        assert_eq!(shown("UTC"), batch);
    }
}
