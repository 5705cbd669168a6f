//! Converts the laboratory's rows to a batch of the library.

use anyhow::{Context, Result};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray,
};
use marigram::WriteBatch;
use marigram_lab::data::{Column, Rows, Table, TagKind, Values};
use marigram_model::{BatchField, BatchTag};
use std::collections::HashMap;
use std::sync::Arc;

/// `rows` as a batch with a slot for each series in it. Fails if an integer tag is not an integer.
pub(super) fn encode(table: &Table, rows: &Rows) -> Result<WriteBatch> {
    let mut slot_of = HashMap::new();
    let mut series = Vec::new();
    let mut slots = Vec::with_capacity(rows.len());
    for of in &rows.series {
        slots.push(*slot_of.entry(*of).or_insert_with(|| {
            series.push(*of as usize);
            (series.len() - 1) as u32
        }));
    }
    let tags = table.tags.iter().enumerate().map(|(at, tag)| {
        let texts = series.iter().map(|of| table.series[*of][at].as_deref());
        let values: ArrayRef = match tag.kind {
            TagKind::Text => Arc::new(texts.collect::<StringArray>()),
            TagKind::Integer => {
                let number = |text: &str| {
                    let number = text.parse::<i64>();
                    number.with_context(|| format!("{} is {text:?}, not an integer", tag.name))
                };
                let numbers = texts.map(|text| text.map(number).transpose());
                Arc::new(numbers.collect::<Result<Int64Array>>()?)
            }
        };
        Ok(BatchTag {
            name: tag.name.clone(),
            values,
        })
    });
    let fields = table.fields.iter().zip(&rows.columns);
    Ok(WriteBatch {
        table: table.name.clone(),
        tags: tags.collect::<Result<_>>()?,
        slot_count: series.len(),
        slots,
        times: rows.times.clone().into(),
        fields: fields
            .map(|(field, column)| BatchField {
                name: field.name.clone(),
                values: array(column),
            })
            .collect(),
    })
}

fn array(column: &Column) -> ArrayRef {
    match &column.values {
        Values::Bool(values) => Arc::new(each(column, values).collect::<BooleanArray>()),
        Values::I32(values) => Arc::new(each(column, values).collect::<Int32Array>()),
        Values::I64(values) => Arc::new(each(column, values).collect::<Int64Array>()),
        Values::F32(values) => Arc::new(each(column, values).collect::<Float32Array>()),
        Values::F64(values) => Arc::new(each(column, values).collect::<Float64Array>()),
        Values::Text(values) => Arc::new(each(column, values).collect::<StringArray>()),
    }
}

/// The values of a column, `None` for a row without one.
fn each<T: Clone>(column: &Column, values: &[T]) -> impl Iterator<Item = Option<T>> {
    let rows = values.iter().enumerate();
    rows.map(|(row, value)| column.is_present(row).then(|| value.clone()))
}
