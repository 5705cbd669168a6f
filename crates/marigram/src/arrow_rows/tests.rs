//! Conversion of Arrow rows: slots, types, and refusals.

use super::*;
use arrow::array::{
    DictionaryArray, Float64Array, Int32Array, StringArray, TimestampMillisecondArray,
    TimestampNanosecondArray,
};
use arrow::datatypes::{Field, Int32Type, Schema};
use marigram_model::{FieldColumn, FieldValue, TableId, TableOptions, TagColumn, TagValueRef};
use std::sync::Arc;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, values)| Field::new(*name, values.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, values)| values).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn text(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn pumps() -> TableSchema {
    TableSchema {
        id: TableId(1),
        database: "d".into(),
        name: "pump".into(),
        time_name: "time".into(),
        tags: vec![TagColumn {
            name: "site".into(),
            kind: TagType::String,
        }],
        fields: vec![FieldColumn {
            id: marigram_model::ColumnId(1),
            name: "rpm".into(),
            kind: FieldType::I64,
            codec: marigram_model::ColumnCodec::default(),
        }],
        options: TableOptions::default(),
        rollup: None,
        view: None,
        dropped_max: 0,
        declared: Vec::new(),
    }
}

#[test]
fn tag_sets_get_slots_and_dictionaries_agree_with_plain_text() {
    let sites = [Some("a"), Some("b"), None, Some("a"), Some("b"), Some("a")];
    let units: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 1, 1, 2, 1]));
    let time: ArrayRef = Arc::new(Int64Array::from_iter_values(0..6));
    let dictionary: DictionaryArray<Int32Type> = sites.iter().copied().collect();
    let roles = Roles::new("time", ["site", "unit"]);
    for site in [text(&sites), Arc::new(dictionary)] {
        let rows = batch(vec![
            ("time", time.clone()),
            ("site", site),
            ("unit", units.clone()),
        ]);
        let converted = convert("pump", &roles, None, &rows).unwrap();
        let written = converted.batch;
        assert_eq!(written.slots, [0, 1, 2, 0, 3, 0]);
        assert_eq!(written.slot_count, 4);
        assert_eq!(written.tags[0].value(1), Some(TagValueRef::String("b")));
        assert_eq!(written.tags[0].value(2), None);
        assert_eq!(written.tags[1].value(3), Some(TagValueRef::I64(2)));
    }
}

#[test]
fn two_dictionary_keys_of_one_value_are_one_slot() {
    let keys = Int32Array::from(vec![0, 1, 2]);
    let values = StringArray::from(vec!["a", "a", "b"]);
    let site: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let rows = batch(vec![("time", time), ("site", site)]);
    let written = convert("pump", &Roles::new("time", ["site"]), None, &rows)
        .unwrap()
        .batch;
    assert_eq!(written.slots, [0, 0, 1]);
}

#[test]
fn rows_of_which_none_has_the_tag_are_one_slot() {
    let site: ArrayRef = Arc::new(
        [None::<&str>, None]
            .into_iter()
            .collect::<DictionaryArray<Int32Type>>(),
    );
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let rows = batch(vec![("time", time), ("site", site)]);
    let written = convert("pump", &Roles::new("time", ["site"]), None, &rows)
        .unwrap()
        .batch;
    assert_eq!((written.slots, written.slot_count), (vec![0, 0], 1));
}

#[test]
fn without_tags_all_rows_share_one_slot() {
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1, 2]));
    let level: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 0.25]));
    let rows = batch(vec![("time", time), ("level", level)]);
    let written = convert(
        "tank",
        &Roles::new("time", Vec::<String>::new()),
        None,
        &rows,
    )
    .unwrap()
    .batch;
    assert_eq!((written.slots, written.slot_count), (vec![0, 0], 1));
    assert_eq!(written.times.to_vec(), [1_000_000, 2_000_000]);
}

#[test]
fn bad_rows_are_named_and_the_others_kept() {
    let schema = pumps();
    let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![
        Some(1),
        None,
        Some(3),
        Some(4),
        Some(5),
    ]));
    let rpm: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(900.0),
        Some(901.0),
        Some(0.5),
        None,
        Some(903.0),
    ]));
    let rows = batch(vec![
        ("time", time),
        ("site", text(&[Some("n"); 5])),
        ("rpm", rpm),
    ]);
    let converted = convert("pump", &Roles::of(&schema), Some(&schema), &rows).unwrap();
    let refused: Vec<u32> = converted.rejected.iter().map(|row| row.row).collect();
    assert_eq!(refused, [1, 2]);
    assert!(converted.rejected[0].reason.contains("no time"));
    assert!(
        converted.rejected[1].reason.contains("fraction"),
        "{:?}",
        converted.rejected[1]
    );
    assert_eq!(converted.batch.times.to_vec(), [1, 4, 5]);
    assert_eq!(converted.source_row(1), 3);
    let rpm = &converted.batch.fields[0].values;
    assert_eq!(FieldValue::from_array(rpm, 0), Some(FieldValue::I64(900)));
    assert_eq!(FieldValue::from_array(rpm, 1), None);
}

#[test]
fn a_type_that_cannot_become_the_tables_is_refused_by_row() {
    let schema = pumps();
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let rows = batch(vec![
        ("time", time),
        ("rpm", text(&[Some("12"), Some("fast"), None])),
    ]);
    let converted = convert("pump", &Roles::of(&schema), Some(&schema), &rows).unwrap();
    assert_eq!(converted.rejected.len(), 1);
    assert!(
        converted.rejected[0].reason.contains("'fast'"),
        "{:?}",
        converted.rejected[0]
    );
    assert_eq!(converted.batch.len(), 2);
}

#[test]
fn times_out_of_range_are_refused() {
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1, i64::MAX]));
    let rows = batch(vec![("time", time)]);
    let roles = Roles::new("time", Vec::<String>::new());
    let converted = convert("t", &roles, None, &rows).unwrap();
    assert_eq!(converted.rejected.len(), 1);
    assert!(
        converted.rejected[0].reason.contains("2262"),
        "{:?}",
        converted.rejected[0]
    );
}

#[test]
fn a_missing_time_column_is_an_error_that_lists_the_columns() {
    let rows = batch(vec![("ts", Arc::new(Int64Array::from(vec![1])))]);
    let error = convert("t", &Roles::new("time", Vec::<String>::new()), None, &rows).unwrap_err();
    assert!(error.to_string().contains("ts"), "{error}");
}

#[test]
fn whole_numbers_that_a_double_rounds_are_refused() {
    let mut schema = pumps();
    schema.fields[0].kind = FieldType::F64;
    let rows = batch(vec![
        ("time", Arc::new(Int64Array::from_iter_values(0..4))),
        (
            "rpm",
            Arc::new(Int64Array::from(vec![
                Some(1),
                Some(9_007_199_254_740_993),
                None,
                Some(i64::MAX),
            ])),
        ),
    ]);
    let converted = convert("pump", &Roles::of(&schema), Some(&schema), &rows).unwrap();
    let refused: Vec<&str> = converted
        .rejected
        .iter()
        .map(|row| row.reason.as_str())
        .collect();
    assert_eq!(
        refused,
        [
            "column 'rpm': no DOUBLE holds 9007199254740993 exactly",
            "column 'rpm': no DOUBLE holds 9223372036854775807 exactly"
        ]
    );
    assert_eq!(converted.batch.times.len(), 2);
}

#[test]
fn whole_floats_are_tags_of_whole_numbers() {
    let mut schema = pumps();
    schema.tags[0].kind = TagType::I64;
    let site = Float64Array::from(vec![Some(5.0), Some(5.5), None, Some(f64::NAN), Some(-0.0)]);
    let time: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
    let rows = batch(vec![("time", time), ("site", Arc::new(site))]);
    let converted = convert("pump", &Roles::of(&schema), Some(&schema), &rows).unwrap();
    assert_eq!(converted.batch.tags[0].value(0), Some(TagValueRef::I64(5)));
    assert_eq!(converted.batch.tags[0].value(1), None);
    assert_eq!(converted.batch.tags[0].value(2), Some(TagValueRef::I64(0)));
    let refused: Vec<u32> = converted.rejected.iter().map(|row| row.row).collect();
    assert_eq!(refused, [1, 3]);
    // A new table has no tags with fractions.
    assert!(convert("pump", &Roles::of(&schema), None, &rows).is_err());
}
