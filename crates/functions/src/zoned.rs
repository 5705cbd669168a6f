//! The type of times with a zone, and columns of that type.
//!
//! The engine stores times without a zone, in UTC. If a column is a `timestamptz`, its numbers are
//! the same and only its type differs.

use arrow::array::{ArrayRef, make_array};
use arrow::datatypes::{DataType, Schema, TimeUnit};
use arrow::error::ArrowError;

/// The zone of all zoned times in a plan.
pub const UTC: &str = "UTC";

/// `timestamptz`.
pub fn zoned_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()))
}

/// The same numbers, as another type of times in the same unit.
///
/// # Errors
/// If the type has other values.
pub fn relabelled(times: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let data = times.to_data().into_builder().data_type(kind.clone());
    Ok(make_array(data.build()?))
}

/// Gives columns of times, which the engine returns without a zone, the zones of a schema.
///
/// # Errors
/// None that can occur.
pub fn label(columns: &mut [ArrayRef], schema: &Schema) -> Result<(), ArrowError> {
    for (column, field) in columns.iter_mut().zip(schema.fields()) {
        let kinds = (column.data_type(), field.data_type());
        if let (DataType::Timestamp(from, of), DataType::Timestamp(to, zone)) = kinds
            && from == to
            && of != zone
        {
            *column = relabelled(column, field.data_type())?;
        }
    }
    Ok(())
}
