//! The source compared with the constants of TSBS's model and with the output of TSBS itself.

mod recorded;

use super::faults::{GROUP_MISSING, ROW_MISSING, ROW_NULL_FIELD, ROW_NULL_TAG};
use super::*;
use crate::data::{Rows, Values};
use std::collections::{BTreeMap, BTreeSet};

/// A row in the form that tests check.
#[derive(Clone, Debug, PartialEq)]
struct TruckRow {
    table: usize,
    truck: String,
    /// Seconds since the beginning.
    at_s: i64,
    /// Tags that it lacks.
    lost: Vec<usize>,
    values: Vec<Option<f64>>,
}

fn seen(source: &Trucks, batch: &Rows) -> Vec<TruckRow> {
    let table = &source.tables[batch.table];
    let row = |row: usize| {
        let tags = &table.series[batch.series[row] as usize];
        let value = |column: &crate::data::Column| {
            column
                .is_present(row)
                .then(|| column.values.number(row).expect("a number"))
        };
        TruckRow {
            table: batch.table,
            truck: tags[0].clone().expect("a truck has a name"),
            at_s: (batch.times[row] - START_NS) / SECOND_NS,
            lost: (0..tags.len()).filter(|tag| tags[*tag].is_none()).collect(),
            values: batch.columns.iter().map(value).collect(),
        }
    };
    (0..batch.len()).map(row).collect()
}

fn all(source: &Trucks) -> Vec<TruckRow> {
    let batches = source.stream(0, 1, 1000);
    batches.flat_map(|batch| seen(source, &batch)).collect()
}

#[track_caller]
fn near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    assert!(
        (measured - expected).abs() <= tolerance,
        "{what}: {measured} instead of {expected} ± {tolerance}"
    );
}

/// Differences of a field between neighbouring times of one truck, if both values are inside
/// `bounds` by more than `margin`.
fn differences(
    rows: &[TruckRow],
    table: usize,
    field: usize,
    step_s: i64,
    (low, high, margin): (f64, f64, f64),
) -> Vec<f64> {
    let mut values = BTreeMap::new();
    for row in rows.iter().filter(|row| row.table == table) {
        if let Some(value) = row.values[field] {
            values.insert((&row.truck, row.at_s), value);
        }
    }
    let inside = |value: &&f64| **value > low + margin && **value < high - margin;
    let pair = |((truck, at), value): (&(&String, i64), &f64)| {
        let before = values.get(&(*truck, at - step_s)).filter(inside)?;
        Some(value).filter(inside).map(|value| value - before)
    };
    values.iter().filter_map(pair).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}

/// Fraction of the rows that are older than a row before them in the same table.
fn late_share(rows: &[TruckRow]) -> f64 {
    let mut newest = [0; 2];
    let mut late = 0;
    for row in rows {
        late += usize::from(row.at_s < newest[row.table]);
        newest[row.table] = newest[row.table].max(row.at_s);
    }
    late as f64 / rows.len() as f64
}

/// Walks of the readings: field, bounds, half the width of a step, the unit that values are
/// truncated to.
const WALKS: [(usize, f64, f64, f64, f64); 7] = [
    (3, -90.0, 90.0, 0.005, 1e-5),
    (4, -180.0, 180.0, 0.005, 1e-5),
    (5, 0.0, 5000.0, 10.0, 1.0),
    (6, 0.0, 100.0, 10.0, 1.0),
    (7, 0.0, 360.0, 5.0, 1.0),
    (8, 0.0, 100.0, 5.0, 1.0),
    (9, 0.0, 50.0, 5.0, 0.1),
];

#[test]
fn rows_values_and_tags_go_missing_at_the_rates_of_the_model() {
    let (trucks, steps) = (60, 1000);
    let source = Trucks::new(trucks, steps, 10, 7);
    let rows = all(&source);
    assert_eq!(source.rows(), rows.len() as u64);
    let possible = (trucks * steps * 2) as f64;
    let arriving = (1.0 - GROUP_MISSING) * (1.0 - ROW_MISSING);
    near("rows", rows.len() as f64 / possible, arriving, 0.004);
    // TDengine's report gives the rows of its scenarios: 12 chunks of 2,009,550 of each table of
    // 100 trucks and 267,840 steps.
    near(
        "as published",
        arriving,
        2_009_550.0 * 12.0 / 26_784_000.0,
        0.001,
    );

    let part = |count: usize, of: usize| count as f64 / of as f64;
    let mut groups = BTreeMap::new();
    for row in &rows {
        let number: usize = row.truck["truck_".len()..].parse().expect("a number");
        *groups
            .entry((row.table, row.at_s, number / 10))
            .or_insert(0) += 1;
    }
    let lost = 1.0 - part(groups.len(), steps * 2 * trucks / 10);
    near("batches of ten lost", lost, GROUP_MISSING, 0.003);

    for (tag, name) in TAGS.iter().enumerate() {
        let without = rows.iter().filter(|row| row.lost.contains(&tag)).count();
        let expected = if tag == 0 { 0.0 } else { ROW_NULL_TAG / 8.0 };
        near(name, part(without, rows.len()), expected, 0.0004);
    }
    for (table, weights) in [(READINGS, vec![1; 7]), (DIAGNOSTICS, vec![3, 2, 2])] {
        let rows: Vec<_> = rows.iter().filter(|row| row.table == table).collect();
        for field in 0..source.tables[table].fields.len() {
            let null = rows
                .iter()
                .filter(|row| row.values[field].is_none())
                .count();
            let expected = match field.checked_sub(FIXED_FIELDS.len()) {
                None => ROW_NULL_TAG / 8.0,
                Some(field) => ROW_NULL_FIELD * f64::from(weights[field]) / 7.0,
            };
            let name = &source.tables[table].fields[field].name;
            near(name, part(null, rows.len()), expected, 0.0025);
        }
    }
}

#[test]
fn walks_step_evenly_within_their_bounds() {
    let source = Trucks::new(20, 2000, 10, 3);
    let rows = all(&source);
    for (field, low, high, step, cut) in WALKS {
        let values = rows.iter().filter(|row| row.table == READINGS);
        let values: Vec<f64> = values.filter_map(|row| row.values[field]).collect();
        assert!(values.iter().all(|value| (low..=high).contains(value)));
        let name = &source.tables[READINGS].fields[field].name;
        let steps = differences(&rows, READINGS, field, 10, (low, high, step));
        near(name, mean(&steps) / step, 0.0, 0.03);
        // A uniform step between two truncated values.
        let expected = (step * step / 3.0 + cut * cut / 6.0).sqrt();
        near(name, deviation(&steps) / expected, 1.0, 0.02);
        let largest = steps.iter().map(|step| step.abs()).fold(0.0, f64::max);
        near(name, largest / step, 1.0, 0.11);
    }

    let diagnostics = rows.iter().filter(|row| row.table == DIAGNOSTICS);
    let mut loads: BTreeMap<i64, BTreeSet<u64>> = BTreeMap::new();
    let mut fuel = Vec::new();
    for row in diagnostics {
        if let Some(load) = row.values[4] {
            assert!((0.0..5000.0).contains(&load));
            loads.entry(row.at_s).or_default().insert(load as u64);
        }
        assert!(row.values[5].is_none_or(|status| (0.0..=5.0).contains(&status)));
        fuel.extend(row.values[3].filter(|_| row.at_s < 15_000));
    }
    assert!(
        loads.values().all(|loads| loads.len() == 1),
        "all trucks share a load"
    );
    let changes = loads
        .values()
        .zip(loads.values().skip(1))
        .filter(|(a, b)| a != b);
    let expected = 1.0 - 0.95_f64.powi(20);
    near(
        "load changes",
        changes.count() as f64 / 2000.0,
        expected,
        0.04,
    );
    // Full at first, half a thousandth less at each step, truncated to tenths: 1 only at the
    // beginning.
    near("fuel", mean(&fuel), 1.0 - 0.375 - 0.05, 0.01);
}

#[test]
fn tags_are_chosen_evenly() {
    let source = Trucks::new(3000, 1, 10, 11);
    for (tag, choices) in [(1, 4), (2, 6), (3, 3), (4, 4)] {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for tags in &source.tables[0].series[..3000] {
            *counts
                .entry(tags[tag].as_deref().expect("has all tags"))
                .or_default() += 1;
        }
        assert_eq!(counts.len(), choices);
        for (choice, count) in counts {
            near(choice, count as f64 / 3000.0, 1.0 / choices as f64, 0.03);
        }
    }
    // The model determines the load capacity.
    for row in all(&source) {
        let number: usize = row.truck["truck_".len()..].parse().expect("a number");
        let model = source.tables[0].series[number][3].as_deref();
        let expected = match model {
            Some("F-150") => 2000.0,
            Some("G-2000") => 5000.0,
            _ => 1500.0,
        };
        assert!(row.values[0].is_none_or(|capacity| capacity == expected));
    }
}

#[test]
fn clients_share_the_rows_and_no_row_comes_twice() {
    let source = Trucks::new(23, 80, 10, 5);
    let sorted = |clients: usize, batch_rows: usize| {
        let mut rows = Vec::new();
        for client in 0..clients {
            for batch in source.stream(client, clients, batch_rows) {
                assert!(batch.len() <= batch_rows);
                let batch = seen(&source, &batch);
                for row in &batch {
                    let number: usize = row.truck["truck_".len()..].parse().expect("a number");
                    assert_eq!(number % clients, client);
                }
                rows.extend(batch);
            }
        }
        rows.sort_by(|a, b| (a.table, &a.truck, a.at_s).cmp(&(b.table, &b.truck, b.at_s)));
        rows
    };
    let rows = sorted(1, 1000);
    assert_eq!(rows.len() as u64, source.rows());
    assert_eq!(rows, sorted(3, 7));
    let keys: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.table, &row.truck, row.at_s))
        .collect();
    assert_eq!(keys.len(), rows.len());
    let (from, to) = source.span_ns();
    assert_eq!((from, to), (START_NS, START_NS + 800 * SECOND_NS));
    assert!(rows.iter().all(|row| (0..800).contains(&row.at_s)));
}

#[test]
fn batches_are_full_and_of_alternating_tables() {
    let source = Trucks::new(500, 40, 10, 5);
    let batches: Vec<Rows> = source.stream(0, 2, 50).collect();
    let full = batches.iter().filter(|batch| batch.len() == 50).count();
    assert!(full + 2 >= batches.len());
    let turns = batches
        .windows(2)
        .filter(|pair| pair[0].table != pair[1].table);
    assert!(turns.count() * 10 > batches.len() * 8);
    let late = late_share(&all(&Trucks::new(20, 500, 10, 5)));
    near("late rows", late, 0.023, 0.006);
    assert!(
        Trucks::new(2, 5, 10, 1).stream(2, 3, 10).next().is_none(),
        "no truck is left"
    );
}

#[test]
fn the_same_seed_makes_the_same_rows_everywhere() {
    let checksum = |seed| {
        let source = Trucks::new(12, 100, 10, seed);
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bits: u64| {
            for byte in bits.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for batch in source.stream(0, 1, 64) {
            for row in 0..batch.len() {
                add(u64::from(batch.series[row]));
                add(batch.times[row] as u64);
                for column in &batch.columns {
                    add(match &column.values {
                        Values::F64(values) if column.is_present(row) => values[row].to_bits(),
                        Values::I64(values) if column.is_present(row) => values[row] as u64,
                        _ => u64::MAX,
                    });
                }
            }
        }
        hash
    };
    assert_eq!(checksum(1), 10_392_263_993_386_368_576);
    assert_ne!(checksum(2), checksum(1));
}
