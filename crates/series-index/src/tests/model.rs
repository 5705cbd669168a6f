//! Compares the index with a list of tag maps.

use super::{key, tag_key};
use crate::{LogPosition, RetiredSeriesPin, SeriesIndex, SeriesLog, ValueTest};
use marigram_env::{LogStore, SimFs};
use marigram_model::{SeriesId, SeriesIdentity, TableId, TagValue};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

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
    /// Retires the series with this tag value, with or without holding a pin.
    Retire(TableId, u16, TagValue, bool),
    Sweep,
    /// Writes the log and loads it; whether with identity SHA256.
    Reload(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let table = (1..4_u32).prop_map(TableId);
    let tags = prop::collection::btree_map(0..5_u16, value(), 0..5);
    prop_oneof![
        60 => (table.clone(), tags).prop_map(|(table, tags)| Step::Insert(table, tags)),
        1 => table.clone().prop_map(Step::RemoveTable),
        2 => (table, 0..5_u16, value(), any::<bool>())
            .prop_map(|(table, tag, value, pin)| Step::Retire(table, tag, value, pin)),
        1 => Just(Step::Sweep),
        1 => any::<bool>().prop_map(Step::Reload),
    ]
}

fn key_of(tags: &Tags) -> Vec<u8> {
    let tags: Vec<_> = tags
        .iter()
        .map(|(ordinal, value)| (*ordinal, value.as_ref()))
        .collect();
    key(&tags)
}

fn tests() -> [ValueTest; 4] {
    let number = TagValue::I64;
    [
        ValueTest::like("a%", false).unwrap(),
        ValueTest::like("_B", true).unwrap(),
        ValueTest::regex("b|cc", false).unwrap(),
        ValueTest::Range(Bound::Excluded(number(-1)), Bound::Unbounded),
    ]
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
            for test in tests() {
                let meets = |value: &TagValue| test.is_met_by(value.as_ref());
                let expected: BTreeSet<u32> = by_value
                    .iter()
                    .filter(|(value, _)| meets(value))
                    .flat_map(|(_, ids)| ids.iter().copied())
                    .collect();
                assert!(index.matching(table, tag, &test).iter().eq(expected));
            }
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
                    (Some(*table), tag_key(&key))
                );
            }
            None => assert_eq!((index.table_of(id), index.key(id)), (None, None)),
        }
    }
}

type Series = (TableId, Tags);

/// An index with its log, and a list of its expected content.
struct IndexAndModel {
    index: SeriesIndex,
    log: SeriesLog,
    fs: Arc<dyn LogStore>,
    committed: LogPosition,
    pins: Vec<RetiredSeriesPin>,
    model: Vec<Option<Series>>,
    /// Retired series that may still be readable.
    waiting: BTreeSet<usize>,
}

impl IndexAndModel {
    fn new() -> Self {
        let fs: Arc<dyn LogStore> = Arc::new(SimFs::new(1));
        let start = LogPosition(0);
        let opened = SeriesLog::open(fs.clone(), Path::new("/"), start, &|_| None);
        let (log, index) = opened.unwrap();
        Self {
            index,
            log,
            fs,
            committed: start,
            pins: Vec::new(),
            model: Vec::new(),
            waiting: BTreeSet::new(),
        }
    }

    fn insert(&mut self, table: TableId, tags: Tags) {
        let key = key_of(&tags);
        let known = self.index.get(table, &key, SeriesIndex::hash(table, &key));
        let series = Some((table, tags));
        let is_live = |id: &usize| !self.waiting.contains(id);
        let place = (0..self.model.len())
            .filter(is_live)
            .find(|id| self.model[*id] == series);
        assert_eq!(known.map(|id| id.0 as usize), place);
        if known.is_none() {
            self.index
                .insert(self.index.next_id(), table, &key)
                .unwrap();
            self.model.push(series);
        }
    }

    fn retire(&mut self, table: TableId, tag: u16, value: &TagValue, pin: bool) {
        if pin {
            self.pins.push(self.index.pin());
        }
        let ids = self.index.with_value(table, tag, value.as_ref());
        let retired = self.index.retire(table, ids.iter().map(SeriesId));
        self.waiting.extend(retired.iter().map(|id| id as usize));
    }

    fn sweep(&mut self) {
        self.pins.clear();
        self.index.sweep();
        assert!(self.index.retired().is_empty());
        for id in std::mem::take(&mut self.waiting) {
            self.model[id] = None;
        }
    }

    fn reload(&mut self, sha256: bool) {
        self.sweep();
        let end = self.index.next_id();
        self.committed = self.log.append(&self.index, end, self.committed).unwrap();
        let identity = if sha256 {
            SeriesIdentity::Sha256
        } else {
            SeriesIdentity::Plain
        };
        let dir = Path::new("/");
        let opened = SeriesLog::open(self.fs.clone(), dir, self.committed, &|_| Some(identity));
        (self.log, self.index) = opened.unwrap();
        // The log does not know dropped tables: the catalog does.
        for table in (1..4).map(TableId) {
            if !self
                .model
                .iter()
                .flatten()
                .any(|(owner, _)| *owner == table)
            {
                self.index.remove_table(table);
            }
        }
    }
}

proptest! {
    #[test]
    fn the_index_does_what_a_list_does(steps in prop::collection::vec(step(), 0..300)) {
        let mut pair = IndexAndModel::new();
        let mut dropped = BTreeSet::new();
        for step in steps {
            match step {
                // A table's number is not reused.
                Step::Insert(table, _) if dropped.contains(&table) => {}
                Step::Insert(table, tags) => pair.insert(table, tags),
                Step::RemoveTable(table) => {
                    dropped.insert(table);
                    pair.index.remove_table(table);
                    for (id, series) in pair.model.iter_mut().enumerate() {
                        if series.as_ref().is_some_and(|(owner, _)| *owner == table) {
                            *series = None;
                            pair.waiting.remove(&id);
                        }
                    }
                }
                Step::Retire(table, tag, value, pin) => pair.retire(table, tag, &value, pin),
                Step::Sweep => pair.sweep(),
                Step::Reload(sha256) => pair.reload(sha256),
            }
        }
        pair.sweep();
        check(&pair.index, &pair.model);
    }
}
