//! Tests of the series index against a naive model, and of its log over the simulated disk.

mod log;
mod model;

use crate::{SeriesError, SeriesIndex, ValueTest};
use arrow_array::{Array, BooleanArray, Int64Array, StringArray};
use marigram_model::{SeriesId, SeriesIdentity, TableId, TagKey, TagType, TagValue, TagValueRef};

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

pub(crate) fn tag_key(bytes: &[u8]) -> Option<TagKey> {
    TagKey::from_bytes(bytes).ok()
}

const TABLE: TableId = TableId(7);

fn index(series: u32) -> SeriesIndex {
    index_by(SeriesIdentity::Plain, series)
}

fn index_by(identity: SeriesIdentity, series: u32) -> SeriesIndex {
    let mut index = SeriesIndex::default();
    index.set_identity(TABLE, identity);
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
        assert_eq!(index.key(SeriesId(id)), tag_key(&key));
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
    // Replay may repeat an existing series.
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
    assert_eq!(index.key(SeriesId(20_000)), tag_key(&device(1)));
    // Replay may repeat a series of the dropped table.
    index.insert(SeriesId(1), TABLE, &device(1)).unwrap();
    assert_eq!(index.next_id(), SeriesId(20_001));
    index.insert(SeriesId(20_001), TABLE, &device(1)).unwrap();
    assert_eq!(index.get(TABLE, &device(1), hash), Some(SeriesId(20_001)));
}

#[test]
fn an_idle_series_costs_tens_of_bytes() {
    let series = 100_000;
    let index = index(series);
    let each = index.memory_bytes() / series as usize;
    assert!((10..70).contains(&each), "{each} bytes a series");
    let table = index.table_memory(TABLE).unwrap();
    assert_eq!((table.series, table.tag_bytes), (series.into(), 0));
    let (whole, parts) = (index.memory_bytes(), table.total_bytes());
    assert!(
        parts < whole + whole / 10 && parts > whole / 10 * 8,
        "{parts} of {whole}"
    );
    assert_eq!(index.table_memory(TableId(9)), None);
}

#[test]
fn digests_find_series_and_long_tags_take_little_room() {
    let path = |id: u32| {
        let text = format!(
            "root.{}.site_{}.device_{id:07}",
            "level".repeat(50),
            id % 100
        );
        key(&[
            (0, TagValueRef::String(&text)),
            (4, TagValueRef::I64((id % 7).into())),
        ])
    };
    let series = 20_000;
    let mut indexes = [SeriesIdentity::Plain, SeriesIdentity::Sha256].map(|identity| {
        let mut index = SeriesIndex::default();
        assert_eq!(index.set_identity(TABLE, identity), identity);
        for id in 0..series {
            index.insert(SeriesId(id), TABLE, &path(id)).unwrap();
        }
        assert_eq!(
            index.set_identity(TABLE, SeriesIdentity::Plain),
            identity,
            "it is kept"
        );
        index
    });
    let each = indexes
        .each_ref()
        .map(|index| index.memory_bytes() / series as usize);
    assert!(each[0] > 300 && each[1] < 120, "{each:?} bytes a series");
    let table = indexes[1].table_memory(TABLE).unwrap();
    assert!(
        table.identity_bytes >= 32 * series as usize && table.tag_bytes > 0,
        "{table:?}"
    );
    for index in &mut indexes {
        for id in (0..series).step_by(37) {
            let hash = SeriesIndex::hash(TABLE, &path(id));
            assert_eq!(index.get(TABLE, &path(id), hash), Some(SeriesId(id)));
            assert_eq!(index.key(SeriesId(id)), tag_key(&path(id)));
        }
        let unknown = path(series);
        assert_eq!(
            index.get(TABLE, &unknown, SeriesIndex::hash(TABLE, &unknown)),
            None
        );
        let seventh = index.with_value(TABLE, 4, TagValueRef::I64(6));
        assert!(seventh.iter().eq((6..series).step_by(7)));
        let test = ValueTest::like("%site_7.%", false).unwrap();
        assert!(
            index
                .matching(TABLE, 0, &test)
                .iter()
                .eq((7..series).step_by(100))
        );
        index.retire(TABLE, (0..series).filter(|id| id % 3 == 0).map(SeriesId));
        assert!(index.sweep());
        assert_eq!(index.key(SeriesId(3)), None);
        assert_eq!(index.key(SeriesId(4)), tag_key(&path(4)));
    }
}

#[test]
fn retired_series_are_not_found_and_readable_while_they_are_pinned() {
    let mut index = index(1000);
    let pin = index.pin();
    let second = pin.clone();
    let site = index.with_value(TABLE, 0, TagValueRef::String("site-3"));
    let gone = index.retire(TABLE, site.iter().map(SeriesId));
    assert_eq!((gone, index.retired()), (site.clone(), &site));
    assert!(
        index
            .retire(TABLE, [SeriesId(3), SeriesId(99_999)])
            .is_empty()
    );
    let hash = SeriesIndex::hash(TABLE, &device(3));
    assert_eq!(index.get(TABLE, &device(3), hash), None);
    index.insert(SeriesId(1000), TABLE, &device(3)).unwrap();
    assert_eq!(index.get(TABLE, &device(3), hash), Some(SeriesId(1000)));
    drop(pin);
    assert!(!index.sweep(), "a pin is held");
    assert_eq!(index.key(SeriesId(3)), tag_key(&device(3)));
    let later = index.pin();
    drop(second);
    assert!(index.sweep() && index.retired().is_empty());
    drop(later);
    assert_eq!(
        (index.key(SeriesId(3)), index.table_of(SeriesId(3))),
        (None, None)
    );
    assert!(
        index
            .with_value(TABLE, 0, TagValueRef::String("site-3"))
            .iter()
            .eq([1000])
    );
    assert_eq!(index.all(TABLE).len(), 901);
    // Replay may repeat a removed series.
    index.insert(SeriesId(3), TABLE, &device(3)).unwrap();
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
