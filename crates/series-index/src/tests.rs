//! Tests of the series index against a naive model, and of its log over the simulated disk.

mod log;
mod model;

use crate::{SeriesError, SeriesIndex};
use arrow_array::{Array, BooleanArray, Int64Array, StringArray};
use marigram_model::{SeriesId, TableId, TagKey, TagType, TagValue, TagValueRef};

pub(crate) fn key(tags: &[(u16, TagValueRef<'_>)]) -> Vec<u8> {
    let mut key = TagKey::default();
    for (ordinal, value) in tags {
        key.push(*ordinal, *value);
    }
    key.as_bytes().to_vec()
}

pub(crate) fn device(number: u32) -> Vec<u8> {
    let (site, name) = (format!("site-{}", number % 10), format!("device-{number}"));
    key(&[
        (0, TagValueRef::String(&site)),
        (1, TagValueRef::I64(i64::from(number / 100))),
        (3, TagValueRef::String(&name)),
    ])
}

const TABLE: TableId = TableId(7);

fn index(series: u32) -> SeriesIndex {
    let mut index = SeriesIndex::default();
    for id in 0..series {
        index.insert(SeriesId(id), TABLE, &device(id)).unwrap();
    }
    index
}

#[test]
fn the_hash_is_the_same_for_ever() {
    let hashes = [
        (0, vec![]),
        (1, vec![]),
        (7, device(42)),
        (u32::MAX - 1, vec![0; 300]),
    ]
    .map(|(table, key)| SeriesIndex::hash(TableId(table), &key));
    let expected = [
        0x2d06_8005_38d3_94c2,
        0x4dc5_b0cc_826f_6703,
        0x046e_e69d_69e8_2ed3,
        0x8424_c4ab_09f4_9b69,
    ];
    assert_eq!(hashes, expected, "{hashes:#x?}");
}

#[test]
fn series_are_found_by_key_and_by_id() {
    let index = index(3000);
    assert_eq!((index.len(), index.next_id()), (3000, SeriesId(3000)));
    for id in 0..3000 {
        let key = device(id);
        let hash = SeriesIndex::hash(TABLE, &key);
        assert_eq!(index.get(TABLE, &key, hash), Some(SeriesId(id)));
        assert_eq!(index.key(SeriesId(id)), Some(&key[..]));
        assert_eq!(index.table_of(SeriesId(id)), Some(TABLE));
        let other = TableId(8);
        assert_eq!(index.get(other, &key, SeriesIndex::hash(other, &key)), None);
    }
    assert_eq!(index.key(SeriesId(3000)), None);
    assert_eq!(index.table_of(SeriesId(3000)), None);
}

#[test]
fn tag_values_come_as_arrays_with_nulls_where_there_is_none() {
    let mut index = index(200);
    index
        .insert(SeriesId(200), TABLE, &key(&[(2, TagValueRef::Bool(true))]))
        .unwrap();
    let ids = [150, 200, 3, 999, 150].map(SeriesId);
    let names = index.tag_values(&ids, 3, TagType::String);
    let names: Vec<_> = names
        .as_any()
        .downcast_ref::<StringArray>()
        .unwrap()
        .iter()
        .collect();
    let expected = [
        Some("device-150"),
        None,
        Some("device-3"),
        None,
        Some("device-150"),
    ];
    assert_eq!(names, expected);
    let lines = index.tag_values(&ids, 1, TagType::I64);
    let lines: Vec<_> = lines
        .as_any()
        .downcast_ref::<Int64Array>()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(lines, [Some(1), None, Some(0), None, Some(1)]);
    let flags = index.tag_values(&ids, 2, TagType::Bool);
    let flags: Vec<_> = flags
        .as_any()
        .downcast_ref::<BooleanArray>()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(flags, [None, Some(true), None, None, None]);
    assert_eq!(index.tag_values(&ids, 3, TagType::I64).null_count(), 5);
    assert_eq!(index.tag_values(&[], 3, TagType::String).len(), 0);
}

#[test]
fn what_contradicts_the_index_is_refused() {
    let mut index = index(5);
    // Replay brings what is there already.
    index.insert(SeriesId(2), TABLE, &device(2)).unwrap();
    let conflicts = [
        index.insert(SeriesId(2), TABLE, &device(9)),
        index.insert(SeriesId(2), TableId(8), &device(2)),
        index.insert(SeriesId(6), TABLE, &device(6)),
        index.insert(SeriesId(5), TABLE, &device(2)),
        index.insert(SeriesId(5), TableId(u32::MAX), &device(5)),
    ];
    for result in conflicts {
        assert!(
            matches!(result, Err(SeriesError::Conflict { .. })),
            "{result:?}"
        );
    }
    let twice = [device(5), device(5)].concat();
    for bad in [&twice[..], &device(5)[..5]] {
        let result = index.insert(SeriesId(5), TABLE, bad);
        assert!(matches!(result, Err(SeriesError::Key(_))), "{result:?}");
    }
    assert_eq!(index.len(), 5);
    index.insert(SeriesId(5), TABLE, &device(5)).unwrap();
}

#[test]
fn a_removed_table_is_forgotten_and_its_memory_freed() {
    let other = TableId(8);
    let mut index = index(20_000);
    index.insert(SeriesId(20_000), other, &device(1)).unwrap();
    let before = index.memory_bytes();
    index.remove_table(TABLE);
    assert!(
        index.memory_bytes() < before / 4,
        "{} of {before}",
        index.memory_bytes()
    );
    let hash = SeriesIndex::hash(TABLE, &device(1));
    assert_eq!(index.get(TABLE, &device(1), hash), None);
    assert_eq!(
        (index.table_of(SeriesId(1)), index.key(SeriesId(1))),
        (None, None)
    );
    assert!(index.all(TABLE).is_empty() && index.distinct(TABLE, 0).is_empty());
    assert!(
        index
            .tag_values(&[SeriesId(1)], 3, TagType::String)
            .is_null(0)
    );
    assert_eq!(index.key(SeriesId(20_000)), Some(&device(1)[..]));
    // Replay may bring a series of the dropped table once more.
    index.insert(SeriesId(1), TABLE, &device(1)).unwrap();
    assert_eq!(index.next_id(), SeriesId(20_001));
    index.insert(SeriesId(20_001), TABLE, &device(1)).unwrap();
    assert_eq!(index.get(TABLE, &device(1), hash), Some(SeriesId(20_001)));
}

#[test]
fn an_idle_series_costs_tens_of_bytes_beyond_its_key() {
    let series = 100_000;
    let index = index(series);
    let keys: usize = (0..series).map(|id| device(id).len()).sum();
    let beyond = (index.memory_bytes() - keys) / series as usize;
    assert!((10..60).contains(&beyond), "{beyond} bytes a series");
}

#[test]
fn values_of_many_series_are_found_as_those_of_few() {
    let index = index(1000);
    for site in 0..10_u32 {
        let ids = index.with_value(TABLE, 0, TagValueRef::String(&format!("site-{site}")));
        assert_eq!(
            ids.iter().collect::<Vec<_>>(),
            (site..1000).step_by(10).collect::<Vec<_>>()
        );
    }
    let ids = index.with_value(TABLE, 1, TagValueRef::I64(3));
    assert_eq!(
        ids.iter().collect::<Vec<_>>(),
        (300..400).collect::<Vec<_>>()
    );
    let ids = index.with_value(TABLE, 3, TagValueRef::String("device-8"));
    assert_eq!(ids.iter().collect::<Vec<_>>(), [8]);
    assert!(index.with_value(TABLE, 3, TagValueRef::I64(8)).is_empty());
    assert_eq!(index.with_tag(TABLE, 3).len(), 1000);
    assert!(index.with_tag(TABLE, 2).is_empty());
    let lines: Vec<_> = (0..10).map(TagValue::I64).collect();
    assert_eq!(index.distinct(TABLE, 1), lines);
}
