//! Filters over tags that select series, evaluated as sets on the series index.

use marigram_model::{TableId, TagValue};
use marigram_series_index::{SeriesIndex, ValueTest};
use roaring::RoaringBitmap;

/// Selects series by their tags. Ordinals are those of the schema.
#[derive(Clone, Debug)]
pub enum TagFilter {
    /// Every series.
    All,
    /// No series.
    None,
    /// Tag equals one of the values.
    In(u16, Vec<TagValue>),
    /// The tag has a value that meets the test. The test runs once per value rather than once per
    /// series.
    Matches(u16, ValueTest),
    /// The series has no value of the tag.
    IsNull(u16),
    /// The series has a value of the tag.
    IsNotNull(u16),
    /// Series that meet all of the filters; all series if there are no filters.
    And(Vec<TagFilter>),
    /// Series that meet at least one of the filters; no series if there are no filters.
    Or(Vec<TagFilter>),
    /// The other series, including those without a value of the tag.
    Not(Box<TagFilter>),
}

/// The series of a table, by shard.
#[derive(Clone, Debug, Default)]
pub struct SeriesSelection {
    /// One set per shard.
    pub shards: Vec<RoaringBitmap>,
}

impl SeriesSelection {
    /// Number of series.
    pub fn len(&self) -> u64 {
        self.shards.iter().map(RoaringBitmap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(RoaringBitmap::is_empty)
    }
}

/// Most values that a filter may look up.
const VALUES_MAX: usize = 64;

impl TagFilter {
    /// Whether looking up a few values finds the series, however many series there are.
    #[must_use]
    pub fn is_looked_up(&self) -> bool {
        self.lookups().is_some_and(|values| values <= VALUES_MAX)
    }

    /// Number of values to look up; `None` if values are tested one by one.
    fn lookups(&self) -> Option<usize> {
        match self {
            Self::All | Self::None | Self::IsNull(_) | Self::IsNotNull(_) => Some(0),
            Self::In(_, values) => Some(values.len()),
            Self::Matches(..) => None,
            Self::And(filters) | Self::Or(filters) => filters.iter().map(Self::lookups).sum(),
            Self::Not(filter) => filter.lookups(),
        }
    }

    /// The series of `table` that meet the filter, in one shard.
    pub fn evaluate(&self, table: TableId, index: &SeriesIndex) -> RoaringBitmap {
        match self {
            Self::All => index.all(table),
            Self::None => RoaringBitmap::new(),
            Self::In(tag, values) => values
                .iter()
                .map(|value| index.with_value(table, *tag, value.as_ref()))
                .fold(RoaringBitmap::new(), |all, series| all | series),
            Self::Matches(tag, test) => index.matching(table, *tag, test),
            Self::IsNull(tag) => index.all(table) - index.with_tag(table, *tag),
            Self::IsNotNull(tag) => index.with_tag(table, *tag),
            Self::And(filters) => {
                let mut sets = filters.iter().map(|filter| filter.evaluate(table, index));
                let Some(mut left) = sets.next() else {
                    return index.all(table);
                };
                while !left.is_empty() {
                    let Some(set) = sets.next() else { break };
                    left &= set;
                }
                left
            }
            Self::Or(filters) => filters
                .iter()
                .map(|filter| filter.evaluate(table, index))
                .fold(RoaringBitmap::new(), |all, series| all | series),
            Self::Not(filter) => index.all(table) - filter.evaluate(table, index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_model::{SeriesId, TagKey, TagValueRef};

    const TABLE: TableId = TableId(1);

    /// Series 0 to 3: site a/a/b/none, unit 0 to 3; series 4 is another table's.
    fn index() -> SeriesIndex {
        let mut index = SeriesIndex::default();
        for (id, site) in [Some("a"), Some("a"), Some("b"), None]
            .into_iter()
            .enumerate()
        {
            let mut key = TagKey::default();
            if let Some(site) = site {
                key.push(0, TagValueRef::String(site));
            }
            key.push(1, TagValueRef::I64(id as i64));
            index
                .insert(SeriesId(id as u32), TABLE, key.as_bytes())
                .unwrap();
        }
        let mut key = TagKey::default();
        key.push(0, TagValueRef::String("a"));
        index
            .insert(SeriesId(4), TableId(2), key.as_bytes())
            .unwrap();
        index
    }

    fn series(filter: &TagFilter) -> Vec<u32> {
        filter.evaluate(TABLE, &index()).into_iter().collect()
    }

    #[test]
    fn filters_select_the_series_that_meet_them() {
        let site = |names: &[&str]| {
            TagFilter::In(
                0,
                names
                    .iter()
                    .map(|n| TagValue::String((*n).into()))
                    .collect(),
            )
        };
        let unit = |number| TagFilter::In(1, vec![TagValue::I64(number)]);
        assert_eq!(series(&TagFilter::All), [0, 1, 2, 3]);
        assert!(series(&TagFilter::None).is_empty());
        assert_eq!(series(&site(&["a"])), [0, 1]);
        assert_eq!(series(&site(&["a", "b", "c"])), [0, 1, 2]);
        let like = |pattern| TagFilter::Matches(0, ValueTest::like(pattern, true).unwrap());
        assert_eq!(series(&like("A%")), [0, 1]);
        assert_eq!(
            series(&TagFilter::Not(Box::new(like("A%")))),
            [2, 3],
            "not three-valued"
        );
        assert_eq!(series(&TagFilter::IsNull(0)), [3]);
        assert_eq!(series(&TagFilter::IsNotNull(0)), [0, 1, 2]);
        assert_eq!(
            series(&TagFilter::IsNull(7)),
            [0, 1, 2, 3],
            "a tag that no series has"
        );
        assert_eq!(series(&TagFilter::And(vec![site(&["a"]), unit(1)])), [1]);
        assert_eq!(series(&TagFilter::And(vec![])), [0, 1, 2, 3]);
        assert_eq!(series(&TagFilter::Or(vec![unit(3), unit(0)])), [0, 3]);
        assert_eq!(series(&TagFilter::Not(Box::new(site(&["a"])))), [2, 3]);
    }

    #[test]
    fn a_few_values_are_looked_up() {
        let units = |count| TagFilter::In(1, (0..count).map(TagValue::I64).collect());
        let like = TagFilter::Matches(0, ValueTest::like("a%", true).unwrap());
        assert!(TagFilter::All.is_looked_up());
        assert!(TagFilter::Not(Box::new(TagFilter::IsNull(0))).is_looked_up());
        assert!(TagFilter::And(vec![units(32), units(32)]).is_looked_up());
        assert!(!TagFilter::Or(vec![units(32), units(33)]).is_looked_up());
        assert!(!TagFilter::And(vec![units(1), like]).is_looked_up());
    }
}
