//! Many questions about IoT-Benchmark's rows, compared with a second evaluation that reads one row
//! at a time and takes no shortcut.

use super::super::{WrittenRows, answers};
use super::ALL;
use crate::data::{Column, FieldKind, Source, Table};
use crate::generate::{IotSpec, Late, SourceSpec};
use crate::question::{Aggregate, Answer, Cell, Devices, Select, Selection};
use std::collections::{BTreeMap, BTreeSet};

/// All rows: (series, time) → fields.
type AllRows = BTreeMap<(u32, i64), Vec<Cell>>;

/// The second evaluation of `select`.
fn evaluate(table: &Table, rows: &AllRows, select: &Select) -> Answer {
    let matching = rows
        .iter()
        .filter(|(id, cells)| matches(table, select, id, cells));
    let matching: Vec<_> = matching.collect();
    let line = |series: u32, time: i64, fields: &[usize]| {
        let key = table.series[series as usize][table.key].clone().unwrap();
        let cells = &rows[&(series, time)];
        let mut line = vec![Cell::Text(key), Cell::Time(time)];
        line.extend(fields.iter().map(|field| cells[*field].clone()));
        line
    };
    let rows: Vec<Vec<Cell>> = match &select.what {
        Selection::Rows(fields) => matching
            .iter()
            .map(|((series, time), _)| line(*series, *time, fields))
            .collect(),
        Selection::Last(fields) => {
            let series: BTreeSet<u32> = matching.iter().map(|row| row.0.0).collect();
            let newest = |series: &u32| {
                let times = matching.iter().filter(|row| row.0.0 == *series);
                times.map(|row| row.0.1).max().unwrap()
            };
            let lines = series.iter().map(|s| line(*s, newest(s), fields));
            lines.collect()
        }
        Selection::Aggregates(aggregates) => aggregated(table, &matching, select, aggregates),
    };
    Answer { rows }.sorted()
}

/// Whether a row meets the conditions.
fn matches(table: &Table, select: &Select, id: &(u32, i64), cells: &[Cell]) -> bool {
    let (series, time) = id;
    let tags = &table.series[*series as usize];
    let device = match &select.devices {
        Devices::All => true,
        Devices::In(tag, values) => values.iter().any(|v| Some(v) == tags[*tag].as_ref()),
        Devices::Below(tag, limit) => tags[*tag].as_ref().unwrap().parse::<i64>().unwrap() < *limit,
    };
    let above = select
        .above
        .is_none_or(|(field, limit)| match cells[field] {
            Cell::Number(number) => number > limit,
            _ => false,
        });
    let after = select.from_ns.is_none_or(|from| *time >= from);
    device && above && after && select.to_ns.is_none_or(|to| *time < to)
}

/// The group of a row: its tags and its bucket.
fn group(table: &Table, select: &Select, (series, time): &(u32, i64)) -> Vec<Cell> {
    let tags = &table.series[*series as usize];
    let tags = select.by.iter().map(|tag| tags[*tag].clone().unwrap());
    let mut cells: Vec<Cell> = tags.map(Cell::Text).collect();
    cells.extend(select.bucket_ns.map(|w| Cell::Time(time.div_euclid(w) * w)));
    cells
}

fn aggregated(
    table: &Table,
    matching: &[(&(u32, i64), &Vec<Cell>)],
    select: &Select,
    aggregates: &[(Aggregate, usize)],
) -> Vec<Vec<Cell>> {
    let group_of_row = |row: &(&(u32, i64), &Vec<Cell>)| group(table, select, row.0);
    let mut groups: Vec<Vec<Cell>> = matching.iter().map(group_of_row).collect();
    groups.sort_by_key(|cells| format!("{cells:?}"));
    groups.dedup();
    if groups.is_empty() && select.by.is_empty() && select.bucket_ns.is_none() {
        groups.push(Vec::new());
    }
    let numbers = |group: &Vec<Cell>, field: usize| {
        let own = matching.iter().filter(|row| group_of_row(row) == *group);
        let numbers = own.filter_map(|row| match row.1[field] {
            Cell::Number(number) => Some(number),
            _ => None,
        });
        numbers.collect::<Vec<f64>>()
    };
    let row = |group: &Vec<Cell>| {
        let cells = aggregates
            .iter()
            .map(|(kind, field)| aggregate(*kind, numbers(group, *field)));
        group.iter().cloned().chain(cells).collect()
    };
    groups.iter().map(row).collect()
}

fn aggregate(kind: Aggregate, mut numbers: Vec<f64>) -> Cell {
    let (count, sum) = (numbers.len() as f64, numbers.iter().sum::<f64>());
    numbers.sort_by(f64::total_cmp);
    match (kind, numbers.as_slice()) {
        (Aggregate::Count, _) => Cell::Number(count),
        (_, []) => Cell::Null,
        (Aggregate::Sum, _) => Cell::Number(sum),
        (Aggregate::Avg, _) => Cell::Number(sum / count),
        (Aggregate::Min, sorted) => Cell::Number(sorted[0]),
        (Aggregate::Max, sorted) => Cell::Number(sorted[sorted.len() - 1]),
        (Aggregate::Spread, sorted) => Cell::Number(sorted[sorted.len() - 1] - sorted[0]),
    }
}

/// Every combination of a few settings of each part of a question.
fn many_selects(source: &dyn Source) -> Vec<Select> {
    let (from, to) = source.span_ns();
    let middle = i64::midpoint(from, to);
    let some = vec!["d_1".to_owned(), "d_4".to_owned()];
    let all = ALL.iter().enumerate();
    let whats = [
        Selection::Rows(vec![0, 3]),
        Selection::Last(vec![2]),
        Selection::Aggregates(all.map(|(field, kind)| (*kind, field % 4)).collect()),
    ];
    let mut selects = Vec::new();
    for what in whats {
        for devices in [Devices::All, Devices::In(0, some.clone())] {
            for (from_ns, to_ns) in [
                (None, None),
                (Some(middle), None),
                (Some(from), Some(middle)),
            ] {
                for above in [None, Some((1, 20.0)), Some((0, 1e12))] {
                    for (by, bucket_ns) in [
                        (vec![], None),
                        (vec![0], None),
                        (vec![], Some(7_000_000_000)),
                        (vec![1], Some(7_000_000_000)),
                    ] {
                        selects.push(Select {
                            devices: devices.clone(),
                            from_ns,
                            to_ns,
                            above,
                            by,
                            bucket_ns,
                            ..Select::all(0, what.clone())
                        });
                    }
                }
            }
        }
    }
    selects
}

#[test]
fn a_second_evaluation_agrees() {
    let late = [
        Late::Never,
        Late::Poisson {
            ratio: 0.4,
            lambda: 3.0,
        },
        Late::Batch { ratio: 0.5 },
    ];
    for late in late {
        let spec = IotSpec {
            devices: 6,
            sensors: 4,
            rows: 30,
            step_ms: 1_000,
            kind: FieldKind::F64,
            late,
            fresh_values: true,
        };
        let source = SourceSpec::Iot(spec).build(4);
        let written = WrittenRows {
            clients: 2,
            batch_rows: 8,
            batches: vec![5, 100],
        };
        let mut rows = BTreeMap::new();
        for (client, batches) in written.batches.iter().enumerate() {
            for batch in source.stream(client, 2, 8).take(*batches) {
                for row in 0..batch.len() {
                    let number = |column: &Column| column.values.number(row).unwrap();
                    let cells = batch.columns.iter().map(|c| Cell::Number(number(c)));
                    let key = (batch.series[row], batch.times[row]);
                    rows.insert(key, cells.collect::<Vec<_>>());
                }
            }
        }
        let selects = many_selects(&*source);
        let asked: Vec<&Select> = selects.iter().collect();
        let answers = answers(&*source, &written, &asked);
        let mut found = 0;
        for (select, answer) in selects.iter().zip(&answers) {
            let expected = evaluate(&source.tables()[0], &rows, select);
            found += expected.rows.len();
            assert_eq!(answer.compare(&expected), Ok(()), "{select:?}");
            assert_eq!(answer.rows.len(), expected.rows.len());
        }
        assert!(found > 1_000);
    }
}
