//! Every kind of question, on a few rows by hand.

mod second;

use super::*;
use crate::data::{Column, Field, FieldKind, Rows, Stream, Table, Tag, TagKind, Values};
use crate::question::{Aggregate, Cell, Devices, Selection};
use std::sync::Arc;

/// Two clients' batches of one table: tags `name` (key) and `room` (a number, or missing); fields
/// of a number, a boolean and a text.
struct ByHand {
    tables: Vec<Table>,
    repeats: bool,
}

/// Series, time, number, boolean, text.
type Row = (u32, i64, Option<i32>, Option<bool>, Option<&'static str>);

const FIRST: [&[Row]; 2] = [
    &[
        (0, 10, Some(1), Some(true), Some("a")),
        (2, 11, Some(5), None, Some("b")),
        (0, 20, None, Some(false), None),
    ],
    &[
        (2, 25, Some(-7), None, None),
        (0, 10, Some(1), Some(true), Some("a")),
        (0, -5, Some(9), None, None),
    ],
];
const SECOND: [&[Row]; 1] = [&[(1, 12, Some(4), Some(true), None)]];

fn by_hand(repeats: bool) -> ByHand {
    let text = |text: &str| Some(text.to_owned());
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let tag = |name: &str, kind| Tag {
        name: name.to_owned(),
        kind,
    };
    let table = Table {
        name: "t".to_owned(),
        tags: vec![tag("room", TagKind::Integer), tag("name", TagKind::Text)],
        key: 1,
        fields: vec![
            field("number", FieldKind::I32),
            field("truth", FieldKind::Bool),
            field("text", FieldKind::Text),
        ],
        series: Arc::new(vec![
            vec![text("7"), text("x")],
            vec![None, text("y")],
            vec![text("7"), text("z")],
            vec![text("12"), text("never")],
        ]),
    };
    ByHand {
        tables: vec![table.clone(), table.suffixed("_other")],
        repeats,
    }
}

impl Source for ByHand {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn rows(&self) -> u64 {
        7
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn span_ns(&self) -> (i64, i64) {
        (-5, 26)
    }

    fn stream(&self, client: usize, _clients: usize, _batch_rows: usize) -> Stream<'_> {
        let batches: &[&[Row]] = if client == 0 { &FIRST } else { &SECOND };
        let batch = |rows: &&[Row]| {
            fn column<T: Default>(
                make: fn(Vec<T>) -> Values,
                values: impl Iterator<Item = Option<T>>,
            ) -> Column {
                let (present, values): (Vec<bool>, Vec<T>) = values
                    .map(|value| (value.is_some(), value.unwrap_or_default()))
                    .unzip();
                Column {
                    values: make(values),
                    present: Some(present),
                }
            }
            Rows {
                table: 0,
                series: rows.iter().map(|row| row.0).collect(),
                times: rows.iter().map(|row| row.1).collect(),
                columns: vec![
                    column(Values::I32, rows.iter().map(|row| row.2)),
                    column(Values::Bool, rows.iter().map(|row| row.3)),
                    column(
                        Values::Text,
                        rows.iter().map(|row| row.4.map(str::to_owned)),
                    ),
                ],
            }
        };
        Box::new(batches.iter().map(batch).collect::<Vec<_>>().into_iter())
    }
}

fn ask_after(batches: &[usize], select: &Select) -> Vec<String> {
    let written = WrittenRows {
        clients: 2,
        batch_rows: 3,
        batches: batches.to_vec(),
    };
    let answers = answers(&by_hand(true), &written, &[select]);
    assert_eq!(answers[0].clone().sorted(), answers[0]);
    let line = |row: &Vec<Cell>| {
        row.iter()
            .map(Cell::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    answers[0].rows.iter().map(line).collect()
}

fn ask(select: &Select) -> Vec<String> {
    ask_after(&[9, 9], select)
}

const ALL: [Aggregate; 6] = [
    Aggregate::Count,
    Aggregate::Sum,
    Aggregate::Avg,
    Aggregate::Min,
    Aggregate::Max,
    Aggregate::Spread,
];

fn aggregates(field: usize) -> Select {
    let all = ALL.map(|aggregate| (aggregate, field));
    Select::all(0, Selection::Aggregates(all.to_vec()))
}

#[test]
fn rows_have_key_time_and_fields() {
    let all = Select::all(0, Selection::Rows(vec![2, 0, 1]));
    assert_eq!(
        ask(&all),
        [
            "x @-5 null 9 null",
            "x @10 a 1 1",
            "x @20 null null 0",
            "y @12 null 4 1",
            "z @11 b 5 null",
            "z @25 null -7 null",
        ]
    );
    let some = Select {
        from_ns: Some(10),
        to_ns: Some(12),
        ..all
    };
    assert_eq!(ask(&some), ["x @10 a 1 1", "z @11 b 5 null"]);
}

#[test]
fn only_what_was_written_and_only_once() {
    let count = Select::all(0, Selection::Aggregates(vec![(Aggregate::Count, 0)]));
    assert_eq!(ask_after(&[1, 0], &count), ["2"]);
    assert_eq!(ask_after(&[1], &count), ["2"]);
    assert_eq!(ask_after(&[2, 1], &count), ["5"]);
    let written = WrittenRows {
        clients: 2,
        batch_rows: 3,
        batches: vec![2, 1],
    };
    let repeated = answers(&by_hand(false), &written, &[&count]);
    assert_eq!(repeated[0].rows, [[Cell::Number(6.0)]]);
}

#[test]
fn aggregates_pass_over_nulls() {
    assert_eq!(ask(&aggregates(0)), ["5 12 2.4 -7 9 16"]);
    assert_eq!(
        ask(&aggregates(1)),
        ["3 2 0.6666666666666666 0 1 1"],
        "true is 1"
    );
    assert_eq!(ask(&aggregates(2)), ["2 null null null null null"]);
}

#[test]
fn nothing_is_one_row_without_groups_and_none_with_them() {
    let nothing = Select {
        from_ns: Some(1_000),
        ..aggregates(0)
    };
    assert_eq!(ask(&nothing), ["0 null null null null null"]);
    let by = Select {
        by: vec![1],
        ..nothing.clone()
    };
    assert!(ask(&by).is_empty());
    let buckets = Select {
        bucket_ns: Some(10),
        ..nothing
    };
    assert!(ask(&buckets).is_empty());
    let other = Select {
        table: 1,
        ..aggregates(0)
    };
    assert_eq!(ask(&other), ["0 null null null null null"]);
}

#[test]
fn groups_are_tags_and_windows_with_rows() {
    let count = Select::all(0, Selection::Aggregates(vec![(Aggregate::Count, 0)]));
    let rooms = Select {
        by: vec![0],
        ..count.clone()
    };
    assert_eq!(ask(&rooms), ["null 1", "7 4"]);
    let windows = Select {
        bucket_ns: Some(10),
        ..count.clone()
    };
    assert_eq!(ask(&windows), ["@-10 1", "@10 3", "@20 1"]);
    let both = Select {
        by: vec![1, 0],
        bucket_ns: Some(20),
        descending: true,
        ..count
    };
    assert_eq!(
        ask(&both),
        [
            "x 7 @-20 1",
            "x 7 @0 1",
            "x 7 @20 0",
            "y null @0 1",
            "z 7 @0 1",
            "z 7 @20 1"
        ]
    );
}

#[test]
fn devices_are_chosen_by_value_and_by_number() {
    let count = Select::all(0, Selection::Aggregates(vec![(Aggregate::Count, 0)]));
    let of = |devices| {
        ask(&Select {
            devices,
            ..count.clone()
        })
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(of(Devices::In(1, names(&["x", "y", "absent"]))), ["3"]);
    assert_eq!(of(Devices::In(0, names(&["7"]))), ["4"]);
    assert_eq!(of(Devices::Below(0, 8)), ["4"]);
    assert_eq!(of(Devices::Below(0, 7)), ["0"]);
    assert_eq!(of(Devices::Below(1, 7)), ["0"], "a name is no number");
}

#[test]
fn the_newest_row_is_one_of_those_that_match() {
    let last = Select::all(0, Selection::Last(vec![0, 2]));
    assert_eq!(
        ask(&last),
        ["x @20 null null", "y @12 4 null", "z @25 -7 null"]
    );
    let above = Select {
        above: Some((0, 0.5)),
        ..last.clone()
    };
    assert_eq!(ask(&above), ["x @10 1 a", "y @12 4 null", "z @11 5 b"]);
    let before = Select {
        to_ns: Some(12),
        ..last
    };
    assert_eq!(ask(&before), ["x @10 1 a", "z @11 5 b"]);
}

#[test]
fn above_holds_for_numbers_only() {
    let rows = |above| {
        ask(&Select {
            above: Some(above),
            ..Select::all(0, Selection::Rows(vec![0]))
        })
    };
    assert_eq!(rows((0, 4.0)), ["x @-5 9", "z @11 5"]);
    assert_eq!(rows((1, 0.5)), ["x @10 1", "y @12 4"]);
    assert!(rows((2, -1e9)).is_empty());
}
