//! Reads: pages, filters, rows by their ids.

use crate::support::{
    batch, column, insert_ints, insert_simple, int_column, ints, primary, simple, store, table,
    texts, write,
};
use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array, IntervalMonthDayNanoArray};
use arrow::datatypes::{Int64Type, IntervalMonthDayNano};
use marigram_reference::{
    ColumnFilter, FilterOp, OnConflict, ReferenceScanRequest, ReferenceTable, ReferenceTransaction,
    ReferenceType,
};
use proptest::prelude::*;
use std::sync::Arc;

fn request(filters: Vec<ColumnFilter>) -> ReferenceScanRequest {
    ReferenceScanRequest {
        columns: vec![0],
        with_row_id: true,
        filters,
        after: 0,
        rows_max: 1 << 20,
    }
}

fn filter(column: usize, op: FilterOp, values: ArrayRef) -> ColumnFilter {
    ColumnFilter { column, op, values }
}

/// The ids of the rows that filters find.
fn found(
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    filters: Vec<ColumnFilter>,
) -> Vec<i64> {
    let page = transaction.scan(table, &request(filters)).unwrap();
    page.rows
        .column(1)
        .as_primitive::<Int64Type>()
        .values()
        .to_vec()
}

#[test]
fn pages_follow_each_other() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let rows: Vec<_> = (0..10).map(|id| (id, "x")).collect();
    insert_simple(&transaction, &table, &rows).unwrap();
    transaction.delete(&table, &[4]).unwrap();
    let mut request = ReferenceScanRequest {
        rows_max: 4,
        ..request(Vec::new())
    };
    let mut pages = Vec::new();
    loop {
        let page = transaction.scan(&table, &request).unwrap();
        pages.push(
            page.rows
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec(),
        );
        let Some(last) = page.last else { break };
        request.after = last;
    }
    assert_eq!(pages, [vec![0, 1, 2, 4], vec![5, 6, 7, 8], vec![9]]);
    let none = ReferenceScanRequest {
        columns: Vec::new(),
        with_row_id: false,
        ..request
    };
    let page = transaction
        .scan(&table, &ReferenceScanRequest { after: 0, ..none })
        .unwrap();
    assert_eq!((page.rows.num_rows(), page.rows.num_columns()), (4, 0));
}

#[test]
fn large_values_make_short_pages() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let large = "x".repeat(20 << 20);
    insert_simple(
        &transaction,
        &table,
        &[(1, &large), (2, &large), (3, &large)],
    )
    .unwrap();
    let request = ReferenceScanRequest {
        columns: vec![1],
        ..request(Vec::new())
    };
    let page = transaction.scan(&table, &request).unwrap();
    assert_eq!((page.rows.num_rows(), page.last), (2, Some(2)));
}

#[test]
fn rows_come_in_the_order_of_their_ids() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    insert_simple(&transaction, &table, &[(5, "a"), (6, "b"), (7, "c")]).unwrap();
    let rows = transaction.fetch(&table, &[3, 1, 3]).unwrap();
    assert_eq!(
        rows.column(0).as_primitive::<Int64Type>().values(),
        &[7, 5, 7]
    );
    assert_eq!(rows.num_columns(), 2);
    assert!(transaction.fetch(&table, &[4]).is_err());
}

#[test]
fn conditions_hold_exactly() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let rows = batch(vec![
        ints(&[Some(1), Some(2), Some(3), Some(4)]),
        texts(&[Some("b"), None, Some("a"), Some("ä")]),
    ]);
    transaction
        .insert(&table, &rows, &OnConflict::Refuse)
        .unwrap();
    let by = |column, op, values: ArrayRef| {
        found(&transaction, &table, vec![filter(column, op, values)])
    };
    assert_eq!(by(0, FilterOp::Eq, ints(&[Some(3)])), [3]);
    assert_eq!(by(0, FilterOp::Lt, ints(&[Some(3)])), [1, 2]);
    assert_eq!(by(0, FilterOp::LtEq, ints(&[Some(3)])), [1, 2, 3]);
    assert_eq!(by(0, FilterOp::Gt, ints(&[Some(3)])), [4]);
    assert_eq!(by(0, FilterOp::GtEq, ints(&[Some(3)])), [3, 4]);
    assert_eq!(
        by(0, FilterOp::In, ints(&[Some(9), None, Some(4), Some(1)])),
        [1, 4]
    );
    assert_eq!(by(0, FilterOp::In, ints(&[None])), [0_i64; 0]);
    assert_eq!(by(0, FilterOp::Eq, ints(&[None])), [0_i64; 0]);
    assert_eq!(by(1, FilterOp::IsNull, ints(&[])), [2]);
    assert_eq!(by(1, FilterOp::IsNotNull, ints(&[])), [1, 3, 4]);
    assert_eq!(by(1, FilterOp::Gt, texts(&[Some("a")])), [1, 4]);
    let both = vec![
        filter(1, FilterOp::IsNotNull, ints(&[])),
        filter(0, FilterOp::Gt, ints(&[Some(1)])),
        filter(0, FilterOp::In, ints(&[Some(1), Some(3)])),
    ];
    assert_eq!(found(&transaction, &table, both), [3]);
}

#[test]
fn long_lists_find_what_short_ones_find() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let rows: Vec<_> = (0..20).map(|id| (id * 7, "x")).collect();
    insert_simple(&transaction, &table, &rows).unwrap();
    let list: Vec<_> = (0..50_000).map(|number| Some(number * 2)).collect();
    let request = ReferenceScanRequest {
        rows_max: 3,
        ..request(vec![filter(0, FilterOp::In, ints(&list))])
    };
    let page = transaction.scan(&table, &request).unwrap();
    assert_eq!(
        page.rows.column(0).as_primitive::<Int64Type>().values(),
        &[0, 14, 28]
    );
    assert_eq!(page.last, Some(5));
}

#[test]
fn numbers_are_compared_as_numbers() {
    let store = store();
    let transaction = write(&store);
    let kind = ReferenceType::Numeric {
        precision: 38,
        scale: 2,
    };
    let columns = vec![
        column("n", kind),
        column("f", ReferenceType::Float8),
        column("i", ReferenceType::Interval),
    ];
    let table = transaction
        .create_table(&table("t", columns, Vec::new()))
        .unwrap();
    let numbers = |values: Vec<i128>| -> ArrayRef {
        Arc::new(
            Decimal128Array::from(values)
                .with_precision_and_scale(38, 2)
                .unwrap(),
        )
    };
    let floats = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
    let intervals = |values: Vec<(i32, i32)>| -> ArrayRef {
        let values = values
            .iter()
            .map(|(months, days)| IntervalMonthDayNano::new(*months, *days, 0));
        Arc::new(IntervalMonthDayNanoArray::from_iter_values(values))
    };
    let large = 10_i128.pow(37);
    let rows = batch(vec![
        numbers(vec![-large, -1, 9, large]),
        floats(vec![f64::NAN, -0.0, 1.5, f64::INFINITY]),
        intervals(vec![(1, 0), (0, 30), (0, 31), (0, -1)]),
    ]);
    transaction
        .insert(&table, &rows, &OnConflict::Refuse)
        .unwrap();
    let by = |column, op, values: ArrayRef| {
        found(&transaction, &table, vec![filter(column, op, values)])
    };
    assert_eq!(by(0, FilterOp::Lt, numbers(vec![9])), [1, 2]);
    assert_eq!(by(0, FilterOp::GtEq, numbers(vec![9])), [3, 4]);
    assert_eq!(by(1, FilterOp::Gt, floats(vec![1.5])), [1, 4]);
    assert_eq!(by(1, FilterOp::Eq, floats(vec![f64::NAN])), [1]);
    assert_eq!(by(1, FilterOp::Eq, floats(vec![0.0])), [2]);
    assert_eq!(by(1, FilterOp::In, floats(vec![0.0, f64::NAN])), [1, 2]);
    assert_eq!(by(2, FilterOp::Eq, intervals(vec![(1, 0)])), [1, 2]);
    assert_eq!(by(2, FilterOp::Gt, intervals(vec![(0, -1)])), [1, 2, 3]);
}

#[test]
fn unique_intervals_are_compared_by_their_length() {
    let store = store();
    let transaction = write(&store);
    let new = table(
        "t",
        vec![column("i", ReferenceType::Interval)],
        vec![primary(&["i"])],
    );
    let table = transaction.create_table(&new).unwrap();
    let insert = |months, days| {
        let value = IntervalMonthDayNano::new(months, days, 0);
        let rows = batch(vec![Arc::new(IntervalMonthDayNanoArray::from(vec![value]))]);
        transaction.insert(&table, &rows, &OnConflict::Refuse)
    };
    insert(1, 0).unwrap();
    let error = insert(0, 30).unwrap_err();
    assert_eq!(
        error.detail.as_deref(),
        Some("Key (i)=(30 days) already exists.")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn filters_find_what_a_loop_finds(
        values in prop::collection::vec(prop::option::of(-5_i64..5), 0..30),
        bound in -6_i64..6,
        list in prop::collection::vec(prop::option::of(-6_i64..6), 0..5),
        is_indexed: bool,
    ) {
        let store = store();
        let transaction = write(&store);
        let table = transaction.create_table(&table("t", vec![column("a", ReferenceType::Int8)], Vec::new())).unwrap();
        insert_ints(&transaction, &table, &[&values]).unwrap();
        if is_indexed {
            transaction.create_index("d", "t", None, &["a".to_owned()], false, false).unwrap();
        }
        let table = transaction.table("d", "t").unwrap();
        prop_assert_eq!(int_column(&transaction, &table, 0), values.clone());
        let matching = |holds: &dyn Fn(i64) -> bool| -> Vec<i64> {
            let rows = values.iter().enumerate();
            rows.filter(|(_, value)| value.is_some_and(holds)).map(|(row, _)| row as i64 + 1).collect()
        };
        let by = |op, values: ArrayRef| found(&transaction, &table, vec![filter(0, op, values)]);
        let one = || ints(&[Some(bound)]);
        prop_assert_eq!(by(FilterOp::Eq, one()), matching(&|value| value == bound));
        prop_assert_eq!(by(FilterOp::Lt, one()), matching(&|value| value < bound));
        prop_assert_eq!(by(FilterOp::GtEq, one()), matching(&|value| value >= bound));
        prop_assert_eq!(by(FilterOp::In, ints(&list)), matching(&|value| list.contains(&Some(value))));
    }
}
