//! Converts the rows of a scan to Arrow batches: tags are looked up once per series and become
//! dictionaries.

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Int32Array, StringArray, TimestampNanosecondArray,
    UInt32Array,
};
use arrow::compute::take;
use arrow::datatypes::{Int32Type, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use marigram_engine::TableSnapshot;
use marigram_functions::zoned;
use marigram_model::{SeriesId, SeriesRun, SortedRows, TagType};
use std::sync::Arc;

/// The source of an output column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputColumnSource {
    /// Times.
    Time,
    /// A tag, by its ordinal.
    Tag(u16, TagType),
    /// A field, by its index among the scan's columns.
    Field(usize),
}

/// Makes a batch of `schema` from rows of a shard.
///
/// # Errors
/// If the rows do not match the schema.
pub fn to_batch(
    rows: SortedRows,
    schema: &SchemaRef,
    sources: &[OutputColumnSource],
    snapshot: &TableSnapshot,
    shard: usize,
) -> Result<RecordBatch, ArrowError> {
    let len = rows.len();
    let series: Vec<SeriesId> = rows.runs.iter().map(|run| run.series).collect();
    let mut columns = Vec::with_capacity(sources.len());
    for source in sources {
        columns.push(match source {
            OutputColumnSource::Time => {
                Arc::new(TimestampNanosecondArray::new(rows.times.clone(), None)) as ArrayRef
            }
            OutputColumnSource::Field(place) => {
                rows.columns.get(*place).cloned().ok_or_else(|| {
                    ArrowError::SchemaError(format!("the scan has no column {place}"))
                })?
            }
            OutputColumnSource::Tag(ordinal, kind) => {
                let values = snapshot.tag_values(shard, &series, *ordinal);
                tag_column(&values, *kind, &rows.runs, len)?
            }
        });
    }
    zoned::label(&mut columns, schema)?;
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// A tag's value for each row, from its value for each run.
///
/// # Errors
/// If the values do not have the tag's type.
pub fn tag_column(
    values: &ArrayRef,
    kind: TagType,
    runs: &[SeriesRun],
    len: usize,
) -> Result<ArrayRef, ArrowError> {
    if kind != TagType::String {
        let mut places = Vec::with_capacity(len);
        for (place, run) in runs.iter().enumerate() {
            places.resize(places.len() + run.rows as usize, place as u32);
        }
        return take(values, &UInt32Array::from(places), None);
    }
    let (keys, values) = dictionary_keys(values)?;
    let mut row_keys = Vec::with_capacity(len);
    for (key, run) in keys.iter().zip(runs) {
        row_keys.resize(row_keys.len() + run.rows as usize, *key);
    }
    let keys: Int32Array = if row_keys.contains(&None) {
        row_keys.into_iter().collect()
    } else {
        row_keys.into_iter().flatten().collect()
    };
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        keys, values,
    )?))
}

/// Text as dictionary keys and values; adjacent equal texts share a value.
fn dictionary_keys(values: &ArrayRef) -> Result<(Vec<Option<i32>>, ArrayRef), ArrowError> {
    let texts = values
        .as_any()
        .downcast_ref::<StringArray>()
        .ok_or_else(|| ArrowError::SchemaError("a text tag is not Utf8".into()))?;
    let mut keys = Vec::with_capacity(texts.len());
    let mut kept: Vec<u32> = Vec::new();
    for place in 0..texts.len() {
        if texts.is_null(place) {
            keys.push(None);
            continue;
        }
        let same = kept
            .last()
            .is_some_and(|last| texts.value(*last as usize) == texts.value(place));
        if !same {
            kept.push(place as u32);
        }
        keys.push(Some(kept.len() as i32 - 1));
    }
    if kept.len() == texts.len() {
        return Ok((keys, Arc::clone(values)));
    }
    Ok((keys, take(values, &UInt32Array::from(kept), None)?))
}

/// A tag's values, one per series, in the form of the table's schema.
///
/// # Errors
/// If they do not have the tag's type.
pub fn tag_array(values: &ArrayRef, kind: TagType) -> Result<ArrayRef, ArrowError> {
    if kind != TagType::String {
        return Ok(Arc::clone(values));
    }
    let (keys, values) = dictionary_keys(values)?;
    let keys: Int32Array = keys.into_iter().collect();
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        keys, values,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::compute::cast;
    use arrow::datatypes::DataType;

    #[test]
    fn a_tag_stands_once_for_a_run_and_neighbours_share_it() {
        let values: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a"),
            Some("a"),
            None,
            Some("b"),
        ]));
        let runs = [2, 1, 1, 3].into_iter().enumerate();
        let runs: Vec<_> = runs
            .map(|(at, rows)| SeriesRun {
                series: SeriesId(at as u32),
                rows,
            })
            .collect();
        let column = tag_column(&values, TagType::String, &runs, 7).unwrap();
        let dictionary = column
            .as_any()
            .downcast_ref::<DictionaryArray<Int32Type>>()
            .unwrap();
        assert_eq!(dictionary.values().len(), 2);
        let plain = cast(&column, &DataType::Utf8).unwrap();
        let expected = StringArray::from(vec![
            Some("a"),
            Some("a"),
            Some("a"),
            None,
            Some("b"),
            Some("b"),
            Some("b"),
        ]);
        assert_eq!(
            plain.as_any().downcast_ref::<StringArray>(),
            Some(&expected)
        );
    }
}
