//! Tests of CSV rows: which rows are stored, which are refused, and what is reported.

use super::super::csv_plan::{CsvPlan, TextKind, plan};
use super::super::{ReadOptions, ReadPlanOptions};
use super::*;
use marigram_model::TagValueRef;
use std::cell::RefCell;

/// A reading into a new table.
pub(crate) fn reading(options: ReadOptions) -> ReadPlanOptions {
    ReadPlanOptions {
        table: "pump".into(),
        schema: None,
        known: None,
        layout: None,
        options,
        constant_tags: Vec::new(),
        types: Vec::new(),
        now_ns: 0,
    }
}

fn planned(text: &'static str, options: ReadOptions) -> Result<CsvPlan> {
    let open = || -> Result<Box<dyn Read>> { Ok(Box::new(text.as_bytes())) };
    plan(&open, &reading(options), TextKind::Csv)
}

fn import(text: &'static str, mut reading: ReadPlanOptions) -> Result<Vec<ParsedBatch>> {
    reading.constant_tags = vec![("plant".into(), "west".into())];
    let parsed = RefCell::new(Vec::new());
    super::super::read_csv(text.as_bytes(), &reading, &|item| {
        parsed.borrow_mut().push(item);
        true
    })?;
    parsed.into_inner().into_iter().collect()
}

#[test]
fn good_rows_are_kept_and_bad_ones_named_by_line() {
    let text = "time,site,rpm\n2026-01-01 00:00:00,a,900\n2026-01-01 00:01:00,b\n\
                ,a,901\nlater,a,902\n2026-01-01 00:02:00,\"a\nb\",\n2026-01-01 00:03:00,a,903\n";
    let options = ReadOptions {
        tags: vec!["site".into()],
        time_column: Some("time".into()),
        ..ReadOptions::default()
    };
    let parsed = import(text, reading(options)).unwrap();
    let parsed = &parsed[0];
    let batch = &parsed.batches[0];
    assert_eq!(batch.len(), 2);
    assert_eq!(parsed.lines, [[2, 8]]);
    // A row without any value is not a row of a table.
    assert_eq!(parsed.empty, 1);
    let bad: Vec<u64> = parsed.bad.iter().map(|(line, _)| *line).collect();
    assert_eq!(bad, [3, 4, 5]);
    assert_eq!(batch.fields[0].kind(), FieldType::F64);
    let plant = batch.tags.iter().find(|tag| tag.name == "plant").unwrap();
    assert_eq!(plant.value(0), Some(TagValueRef::String("west")));
}

#[test]
fn a_file_without_a_time_says_so() {
    let error = import("a,b\n1,2\n", reading(ReadOptions::default())).map(|_| ());
    let error = error.unwrap_err();
    assert!(error.to_string().contains("--time-column"), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let options = ReadOptions {
        tags: vec!["c".into()],
        ..ReadOptions::default()
    };
    let error = planned("time,b\n2026-01-01,2\n", options).unwrap_err();
    assert!(error.to_string().contains("'c'"), "{error}");
}

#[test]
fn tags_are_found_where_rows_share_times() {
    let text = "ts,where,v\n2026-01-01,a,1\n2026-01-01,b,2\n2026-01-02,a,3\n2026-01-02,b,4\n";
    let plan = planned(text, ReadOptions::default()).unwrap();
    assert_eq!(plan.tags().collect::<Vec<_>>(), ["where"]);
    assert_eq!(plan.time_name, "ts");
    let no_tags = ReadOptions {
        no_tags: true,
        ..ReadOptions::default()
    };
    assert_eq!(planned(text, no_tags).unwrap().tags().count(), 0);
}

#[test]
fn a_column_that_is_text_because_of_a_cell_is_named() {
    let text = "time,v\n2026-01-01,1\n2026-01-02,2\n2026-01-03,oops\n2026-01-04,4\n";
    let plan = planned(text, ReadOptions::default()).unwrap();
    let note = plan.notes.join("\n");
    for word in ["'v'", "line 4 'oops'", "--null 'oops'", "--types v=double"] {
        assert!(note.contains(word), "{note}");
    }
}

#[test]
fn columns_match_those_of_the_table_without_case() {
    let known = marigram_tabular::layout::ColumnLayout::new(
        "pump",
        "ts",
        [("dev".to_owned(), TagType::String)],
        [("v".to_owned(), FieldType::I64)],
    );
    let text = "TS,DEV,V,new\n2026-01-01,a,1,2\n";
    let open = || -> Result<Box<dyn Read>> { Ok(Box::new(text.as_bytes())) };
    let mut reading = ReadPlanOptions {
        known: Some(known),
        ..reading(ReadOptions::default())
    };
    let found = plan(&open, &reading, TextKind::Csv).unwrap();
    let names: Vec<_> = found
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.role))
        .collect();
    let expected = [
        ("ts", ImportRole::Time),
        ("dev", ImportRole::Tag),
        ("v", ImportRole::Field(FieldType::I64)),
        ("new", ImportRole::Field(FieldType::F64)),
    ];
    assert_eq!(names, expected);
    assert!(found.notes[0].contains("'new' is new"), "{:?}", found.notes);
    reading.options.strict = true;
    let error = plan(&open, &reading, TextKind::Csv)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'new'") && error.contains("--strict"),
        "{error}"
    );
}

#[test]
fn bytes_are_hexadecimal() {
    assert_eq!(bytes("\\x00ff"), Some(vec![0, 255]));
    assert_eq!(bytes("\\x"), Some(vec![]));
    assert_eq!(bytes("\\x0"), None);
    assert_eq!(bytes("00ff"), None);
}
