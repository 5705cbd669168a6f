//! Tag values of many series as one Arrow array.

use crate::keys::{GONE, Keys};
use crate::tag_index::value_in;
use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use marigram_model::{SeriesId, TagType, TagValueRef};
use std::sync::Arc;

/// One value per entry of `series`; null where the tag is missing, of another type, or the series
/// is not there.
pub(crate) fn tag_values(
    keys: &Keys,
    series: &[SeriesId],
    ordinal: u16,
    kind: TagType,
) -> ArrayRef {
    let value = |id: SeriesId| {
        let (table, key) = keys.get(id)?;
        if table == GONE {
            None
        } else {
            value_in(key, ordinal)
        }
    };
    match kind {
        TagType::String => {
            let mut builder = StringBuilder::with_capacity(series.len(), series.len() * 12);
            for id in series {
                match value(*id) {
                    Some(TagValueRef::String(text)) => builder.append_value(text),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        TagType::I64 => {
            let mut builder = Int64Builder::with_capacity(series.len());
            for id in series {
                match value(*id) {
                    Some(TagValueRef::I64(number)) => builder.append_value(number),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        TagType::Bool => {
            let mut builder = BooleanBuilder::with_capacity(series.len());
            for id in series {
                match value(*id) {
                    Some(TagValueRef::Bool(truth)) => builder.append_value(truth),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
    }
}
