//! The index does what a list of tag maps does.

use super::key;
use crate::SeriesIndex;
use marigram_model::{SeriesId, TableId, TagValue};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Tags = BTreeMap<u16, TagValue>;

fn value() -> impl Strategy<Value = TagValue> {
    prop_oneof![
        3 => "[a-c]{0,2}".prop_map(TagValue::String),
        1 => (-2..3_i64).prop_map(TagValue::I64),
        1 => any::<bool>().prop_map(TagValue::Bool),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Insert(TableId, Tags),
    RemoveTable(TableId),
}

fn step() -> impl Strategy<Value = Step> {
    let table = (1..4_u32).prop_map(TableId);
    let tags = prop::collection::btree_map(0..5_u16, value(), 0..5);
    prop_oneof![
        60 => (table.clone(), tags).prop_map(|(table, tags)| Step::Insert(table, tags)),
        1 => table.prop_map(Step::RemoveTable),
    ]
}

fn key_of(tags: &Tags) -> Vec<u8> {
    let tags: Vec<_> = tags
        .iter()
        .map(|(ordinal, value)| (*ordinal, value.as_ref()))
        .collect();
    key(&tags)
}

fn check(index: &SeriesIndex, model: &[Option<(TableId, Tags)>]) {
    assert_eq!(index.len(), model.len());
    for table in (1..4).map(TableId) {
        let of_table = || {
            model.iter().zip(0_u32..).filter_map(|(series, id)| {
                series
                    .as_ref()
                    .filter(|(owner, _)| *owner == table)
                    .map(|(_, tags)| (id, tags))
            })
        };
        let all: Vec<_> = of_table().map(|(id, _)| id).collect();
        assert_eq!(index.all(table).iter().collect::<Vec<_>>(), all);
        for tag in 0..5 {
            let mut by_value: BTreeMap<&TagValue, Vec<u32>> = BTreeMap::new();
            for (id, tags) in of_table() {
                if let Some(value) = tags.get(&tag) {
                    by_value.entry(value).or_default().push(id);
                }
            }
            let distinct: Vec<_> = by_value.keys().map(|value| (*value).clone()).collect();
            assert_eq!(index.distinct(table, tag), distinct);
            let any: BTreeSet<_> = by_value.values().flatten().copied().collect();
            assert!(index.with_tag(table, tag).iter().eq(any));
            for (value, ids) in by_value {
                let found = index.with_value(table, tag, value.as_ref());
                assert_eq!(found.iter().collect::<Vec<_>>(), ids);
            }
        }
    }
    for (series, id) in model.iter().zip(0..) {
        let id = SeriesId(id);
        match series {
            Some((table, tags)) => {
                let key = key_of(tags);
                let hash = SeriesIndex::hash(*table, &key);
                assert_eq!(index.get(*table, &key, hash), Some(id));
                assert_eq!(
                    (index.table_of(id), index.key(id)),
                    (Some(*table), Some(&key[..]))
                );
            }
            None => assert_eq!((index.table_of(id), index.key(id)), (None, None)),
        }
    }
}

proptest! {
    #[test]
    fn the_index_does_what_a_list_does(steps in prop::collection::vec(step(), 0..300)) {
        let mut index = SeriesIndex::default();
        let mut model: Vec<Option<(TableId, Tags)>> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(table, tags) => {
                    let key = key_of(&tags);
                    let known = index.get(table, &key, SeriesIndex::hash(table, &key));
                    let series = Some((table, tags));
                    let expected = model.iter().position(|other| *other == series);
                    prop_assert_eq!(known.map(|id| id.0 as usize), expected);
                    if known.is_none() {
                        index.insert(index.next_id(), table, &key).unwrap();
                        model.push(series);
                    }
                }
                Step::RemoveTable(table) => {
                    index.remove_table(table);
                    for series in &mut model {
                        if series.as_ref().is_some_and(|(owner, _)| *owner == table) {
                            *series = None;
                        }
                    }
                }
            }
        }
        check(&index, &model);
    }
}
