//! Rows of the database as rows of IoTDB's answers.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int32Type, Int64Type, Schema, TimeUnit,
};
use marigram_iotdb::{AnswerRows, IGNORES_TIME_KEY, IotDbType, IotDbValue, TYPE_KEY};
use marigram_service::ServiceError;

/// The columns of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerHeading {
    /// Their names and types, without the time.
    pub(super) columns: Vec<(String, IotDbType)>,
    /// For each of them, its place among the columns that are sent: those of the same name are sent once,
    /// because old clients find columns by their names.
    pub(super) places: Vec<usize>,
    /// Whether there is no time.
    pub(super) ignores_time: bool,
    /// The place of each column that is sent in the batches.
    sent: Vec<usize>,
}

impl AnswerHeading {
    /// The heading of rows with this schema.
    ///
    /// # Errors
    /// If a column has a type that IoTDB does not have.
    pub(super) fn from_schema(schema: &Schema) -> Result<Self, ServiceError> {
        let ignores_time = schema.metadata().get(IGNORES_TIME_KEY);
        let ignores_time = ignores_time.is_some_and(|value| value == "true");
        let first = usize::from(!ignores_time);
        if schema.fields().len() < first {
            return Err(ServiceError::Internal("an answer has no times".to_owned()));
        }
        let mut heading = Self {
            columns: Vec::new(),
            places: Vec::new(),
            ignores_time,
            sent: Vec::new(),
        };
        for (place, field) in schema.fields().iter().enumerate().skip(first) {
            let named = field.metadata().get(TYPE_KEY);
            let named = named.and_then(|name| IotDbType::from_name(name));
            let kind = named.or_else(|| kind_of(field.data_type()));
            let kind = kind.ok_or_else(|| {
                let (name, kind) = (field.name(), field.data_type());
                ServiceError::Internal(format!("the column {name} has the type {kind}"))
            })?;
            let mut known = heading.columns.iter();
            let known = known.position(|(name, other)| name == field.name() && *other == kind);
            let sent = match known {
                Some(known) => heading.places[known],
                None => {
                    heading.sent.push(place);
                    heading.sent.len() - 1
                }
            };
            heading.columns.push((field.name().clone(), kind));
            heading.places.push(sent);
        }
        Ok(heading)
    }

    /// Rows without any row yet.
    pub(super) fn no_rows(&self) -> AnswerRows {
        let kinds: Vec<IotDbType> = self.sent_kinds().collect();
        AnswerRows::new(&kinds)
    }

    /// The types of the columns that are sent.
    fn sent_kinds(&self) -> impl Iterator<Item = IotDbType> {
        (0..self.sent.len()).map(|sent| {
            let column = self.places.iter().position(|place| *place == sent);
            column.map_or(IotDbType::Text, |column| self.columns[column].1)
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// If the batch does not have the columns.
    pub(super) fn append(
        &self,
        batch: &RecordBatch,
        rows: &mut AnswerRows,
    ) -> Result<(), ServiceError> {
        if self.ignores_time {
            (0..batch.num_rows()).for_each(|_| rows.push_time(0));
        } else {
            let times = column(batch, 0, &DataType::Int64)?;
            for time in times.as_primitive::<Int64Type>().values() {
                rows.push_time(*time);
            }
        }
        let kinds: Vec<IotDbType> = self.sent_kinds().collect();
        let columns = rows.columns_mut().iter_mut();
        for ((place, kind), out) in self.sent.iter().zip(kinds).zip(columns) {
            let values = column(batch, *place, &arrow_type(kind))?;
            for row in 0..values.len() {
                out.push(value_at(&values, kind, row));
            }
        }
        Ok(())
    }
}

/// The type of a column that does not say it.
fn kind_of(kind: &DataType) -> Option<IotDbType> {
    Some(match kind {
        DataType::Boolean => IotDbType::Boolean,
        DataType::Int32 => IotDbType::Int32,
        DataType::Int64 => IotDbType::Int64,
        DataType::Float32 => IotDbType::Float,
        DataType::Float64 => IotDbType::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => IotDbType::Text,
        DataType::Dictionary(_, values) => return kind_of(values),
        DataType::Binary => IotDbType::Blob,
        DataType::Timestamp(..) => IotDbType::Timestamp,
        _ => return None,
    })
}

/// The type in which a column is read.
fn arrow_type(kind: IotDbType) -> DataType {
    match kind {
        IotDbType::Boolean => DataType::Boolean,
        IotDbType::Int32 | IotDbType::Date => DataType::Int32,
        IotDbType::Int64 | IotDbType::Timestamp => DataType::Int64,
        IotDbType::Float => DataType::Float32,
        IotDbType::Double => DataType::Float64,
        IotDbType::Text | IotDbType::String => DataType::Utf8,
        IotDbType::Blob => DataType::Binary,
    }
}

/// A column in a type.
fn column(batch: &RecordBatch, place: usize, kind: &DataType) -> Result<ArrayRef, ServiceError> {
    let wrong = |what: String| ServiceError::Internal(format!("a column of an answer {what}"));
    let array = batch.columns().get(place);
    let array = array.ok_or_else(|| wrong("is missing".to_owned()))?;
    if array.data_type() == kind {
        return Ok(array.clone());
    }
    let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
    let steps = match array.data_type() {
        DataType::Timestamp(..) => vec![&millis, kind],
        _ => vec![kind],
    };
    let mut array = array.clone();
    for step in steps {
        array = cast(&array, step).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(array)
}

/// A value of a column that has the type of [`arrow_type`]; `None` for null.
fn value_at(values: &ArrayRef, kind: IotDbType, row: usize) -> Option<IotDbValue<'_>> {
    if values.is_null(row) {
        return None;
    }
    Some(match kind {
        IotDbType::Boolean => IotDbValue::Boolean(values.as_boolean().value(row)),
        IotDbType::Int32 => IotDbValue::Int32(values.as_primitive::<Int32Type>().value(row)),
        IotDbType::Date => IotDbValue::Date(values.as_primitive::<Int32Type>().value(row)),
        IotDbType::Int64 => IotDbValue::Int64(values.as_primitive::<Int64Type>().value(row)),
        IotDbType::Timestamp => {
            IotDbValue::Timestamp(values.as_primitive::<Int64Type>().value(row))
        }
        IotDbType::Float => IotDbValue::Float(values.as_primitive::<Float32Type>().value(row)),
        IotDbType::Double => IotDbValue::Double(values.as_primitive::<Float64Type>().value(row)),
        IotDbType::Text | IotDbType::String => {
            IotDbValue::Text(values.as_string::<i32>().value(row))
        }
        IotDbType::Blob => IotDbValue::Blob(values.as_binary::<i32>().value(row)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray, TimestampNanosecondArray};
    use arrow::datatypes::Field;
    use std::collections::HashMap;
    use std::sync::Arc;

    fn field(name: &str, kind: DataType, shown: Option<IotDbType>) -> Field {
        let metadata = shown.map(|kind| (TYPE_KEY.to_owned(), kind.name().to_owned()));
        Field::new(name, kind, true).with_metadata(metadata.into_iter().collect())
    }

    #[test]
    fn columns_of_a_name_are_sent_once() {
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let schema = Schema::new(vec![
            field("Time", nanos, None),
            field("a", DataType::Int64, Some(IotDbType::Timestamp)),
            field("b", DataType::Utf8, None),
            field("a", DataType::Int64, Some(IotDbType::Timestamp)),
        ]);
        let heading = AnswerHeading::from_schema(&schema).expect("a heading");
        assert!(!heading.ignores_time);
        assert_eq!(heading.places, [0, 1, 0]);
        let batch = RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(TimestampNanosecondArray::from(vec![5_000_000, -1])),
                Arc::new(Int64Array::from(vec![Some(7), None])),
                Arc::new(StringArray::from(vec!["x", "y"])),
                Arc::new(Int64Array::from(vec![Some(7), None])),
            ],
        )
        .expect("a batch");
        let mut rows = heading.no_rows();
        heading.append(&batch, &mut rows).expect("rows");
        let set = rows.into_data_set();
        assert_eq!(set.times[..8], 5_i64.to_be_bytes());
        assert_eq!(set.values.len(), 2);
        assert_eq!(set.values[0], 7_i64.to_be_bytes());
        assert_eq!(set.values[1], [0, 0, 0, 1, b'x', 0, 0, 0, 1, b'y']);
    }

    #[test]
    fn an_answer_without_time_says_so() {
        let metadata = HashMap::from([(IGNORES_TIME_KEY.to_owned(), "true".to_owned())]);
        let columns = vec![field("Database", DataType::Utf8, Some(IotDbType::Text))];
        let schema = Schema::new(columns).with_metadata(metadata);
        let heading = AnswerHeading::from_schema(&schema).expect("a heading");
        assert!(heading.ignores_time);
        let expected = [("Database".to_owned(), IotDbType::Text)];
        assert_eq!(heading.columns, expected);
        let strange = Schema::new(vec![
            field("Time", DataType::Int64, None),
            field("x", DataType::Date64, None),
        ]);
        assert!(AnswerHeading::from_schema(&strange).is_err());
        assert!(AnswerHeading::from_schema(&Schema::empty()).is_err());
    }
}
