//! Finds sets of series by their tags, and the tags of sets of series.

use super::SeriesIndex;
use crate::compact::find;
use crate::keys::ColdKeys;
use crate::tag_index::{KeyReader, TagIndex};
use crate::value_test::ValueTest;
use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use marigram_model::{SeriesId, TableId, TagType, TagValue, TagValueRef};
use roaring::RoaringBitmap;
use std::sync::Arc;

impl SeriesIndex {
    /// All series of a table.
    #[must_use]
    pub fn all(&self, table: TableId) -> RoaringBitmap {
        self.tables
            .get(&table)
            .map(|series| series.all.clone())
            .unwrap_or_default()
    }

    /// How many series a table has.
    pub fn count(&self, table: TableId) -> u64 {
        self.tables.get(&table).map_or(0, |series| series.all.len())
    }

    /// Tables that have series, ascending.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        let held = self
            .tables
            .iter()
            .filter(|(_, series)| !series.all.is_empty());
        held.map(|(table, _)| *table)
    }

    /// The series of a table with a tag value.
    #[must_use]
    pub fn with_value(&self, table: TableId, tag: u16, value: TagValueRef<'_>) -> RoaringBitmap {
        let index = self.tag_index(table, tag);
        index
            .map(|index| index.with_value(&KeyReader::new(&self.keys), value))
            .unwrap_or_default()
    }

    /// The series of a table whose value of the tag meets a test. The test runs once for each value
    /// that several series share; series without a value never meet it.
    #[must_use]
    pub fn matching(&self, table: TableId, tag: u16, test: &ValueTest) -> RoaringBitmap {
        let index = self.tag_index(table, tag);
        index
            .map(|index| index.matching(&KeyReader::new(&self.keys), |value| test.is_met_by(value)))
            .unwrap_or_default()
    }

    /// The series that have any value of the tag (in the rest of [`all`](Self::all), it is null).
    #[must_use]
    pub fn with_tag(&self, table: TableId, tag: u16) -> RoaringBitmap {
        self.tag_index(table, tag)
            .map(|index| index.any().clone())
            .unwrap_or_default()
    }

    fn tag_index(&self, table: TableId, tag: u16) -> Option<&TagIndex> {
        self.tables.get(&table)?.tags.get(&tag)
    }

    /// Distinct values of a tag in a table, ascending.
    #[must_use]
    pub fn distinct(&self, table: TableId, tag: u16) -> Vec<TagValue> {
        let mut values = Vec::new();
        if let Some(index) = self.tag_index(table, tag) {
            let keys = KeyReader::new(&self.keys);
            index.each_value(&keys, |value| values.push(value.to_value()));
        }
        values.sort_unstable();
        values
    }

    /// Values of one tag, one per entry of `series`, as `kind.data_type()`. A value is null if the
    /// tag is missing or has another type, or the series does not exist.
    #[must_use]
    pub fn tag_values(&self, series: &[SeriesId], tag: u16, kind: TagType) -> ArrayRef {
        match kind {
            TagType::String => {
                let mut builder = StringBuilder::with_capacity(series.len(), series.len() * 12);
                self.each_tag(series, tag, |value| match value {
                    Some(TagValueRef::String(text)) => builder.append_value(text),
                    _ => builder.append_null(),
                });
                Arc::new(builder.finish())
            }
            TagType::I64 => {
                let mut builder = Int64Builder::with_capacity(series.len());
                self.each_tag(series, tag, |value| match value {
                    Some(TagValueRef::I64(number)) => builder.append_value(number),
                    _ => builder.append_null(),
                });
                Arc::new(builder.finish())
            }
            TagType::Bool => {
                let mut builder = BooleanBuilder::with_capacity(series.len());
                self.each_tag(series, tag, |value| match value {
                    Some(TagValueRef::Bool(truth)) => builder.append_value(truth),
                    _ => builder.append_null(),
                });
                Arc::new(builder.finish())
            }
        }
    }

    /// Passes `with` the value of a tag of each series.
    fn each_tag(
        &self,
        series: &[SeriesId],
        tag: u16,
        mut with: impl FnMut(Option<TagValueRef<'_>>),
    ) {
        let mut cold = ColdKeys::default();
        for id in series {
            let known = self.keys.get(*id).and_then(|entry| {
                let table = self.tables.get(&entry.table)?;
                let tags = match entry.digest {
                    None => entry.tags,
                    Some(_) => self.keys.cold(id.0, &mut cold),
                };
                table.with(tag, find(tags, tag)?, |value| with(Some(value)))
            });
            if known.is_none() {
                with(None);
            }
        }
    }
}
