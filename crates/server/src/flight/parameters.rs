//! The values of a prepared statement's parameters, as Arrow rows.

use super::fault::FlightFault;
use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use marigram_protocol::flight::{ArrowLimits, ArrowMessage, ArrowMessages, BoundMessage};
use prost::bytes::Bytes;
use tonic::Code;

/// Bytes of parameters that a handle may hold.
pub(super) const BOUND_BYTES_MAX: usize = 1 << 20;

/// Rows of parameters that a handle may hold: the statement runs once for each.
const BOUND_ROWS_MAX: usize = 10_000;

/// The rows of bound messages, each as a batch of one row.
///
/// # Errors
/// If a message is damaged, or there are too many rows.
pub(super) fn bound_rows(
    messages: &[BoundMessage],
    dictionary_bytes: usize,
) -> Result<Vec<RecordBatch>, FlightFault> {
    let mut reader = ArrowMessages::new(ArrowLimits { dictionary_bytes });
    let mut rows = Vec::new();
    for BoundMessage { header, body } in messages {
        if let ArrowMessage::Rows(batch) = reader.read(header, Bytes::clone(body))? {
            if rows.len() + batch.num_rows() > BOUND_ROWS_MAX {
                let message = format!(
                    "there are more than {BOUND_ROWS_MAX} rows of parameters; send them in parts, \
                     or ingest them"
                );
                return Err(FlightFault::new(Code::ResourceExhausted, "54000", message));
            }
            rows.extend((0..batch.num_rows()).map(|row| batch.slice(row, 1)));
        }
    }
    Ok(rows)
}

/// The values of one row, with the types of a statement's parameters.
///
/// # Errors
/// If their number is not that of the parameters, or one does not fit its type.
pub(super) fn to_parameters(
    row: &RecordBatch,
    types: &[DataType],
) -> Result<Vec<ArrayRef>, FlightFault> {
    if row.num_columns() != types.len() {
        let message = format!(
            "the statement has {} parameters, and {} values are bound",
            types.len(),
            row.num_columns()
        );
        return Err(FlightFault::new(Code::InvalidArgument, "08P01", message));
    }
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let values = row.columns().iter().zip(types).enumerate();
    values
        .map(|(at, (value, kind))| {
            if value.is_null(0) || *kind == DataType::Null {
                return Ok(new_null_array(kind, 1));
            }
            cast_with_options(value, kind, &strict).map_err(|error| {
                let message = format!("the value of ${} does not fit: {error}", at + 1);
                FlightFault::new(Code::InvalidArgument, "22018", message)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, Int32Array, Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn values_get_the_types_of_the_parameters() {
        let columns: [(&str, ArrayRef); 3] = [
            ("a", Arc::new(Int64Array::from(vec![7]))),
            ("b", Arc::new(StringArray::from(vec!["1.5"]))),
            ("c", Arc::new(Int32Array::from(vec![None]))),
        ];
        let row = RecordBatch::try_from_iter_with_nullable(
            columns
                .into_iter()
                .map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let types = [DataType::Int32, DataType::Float64, DataType::Utf8];
        let values = to_parameters(&row, &types).unwrap();
        let kinds: Vec<_> = values
            .iter()
            .map(|value| value.data_type().clone())
            .collect();
        assert_eq!(kinds, types);
        assert!(values[2].is_null(0));
        let error = to_parameters(&row, &types[..2]).unwrap_err();
        assert!(
            error.message.contains("has 2 parameters, and 3 values"),
            "{error:?}"
        );
        let wrong = [DataType::Int32, DataType::Int64, DataType::Utf8];
        let error = to_parameters(&row, &wrong).unwrap_err();
        assert!(
            error.message.starts_with("the value of $2 does not fit"),
            "{error:?}"
        );
    }
}
