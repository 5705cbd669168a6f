//! The questions, each with its answer, computed from the sample's formulas.

use super::sample::{
    DEVICES, MIXED_ROWS, PLAIN_ROWS, SITES, beats, celsius, humidity, load, mixed_time, name, note,
    number, plain_time, rain,
};
use crate::data::SECOND_NS;
use crate::question::{Aggregate, Answer, Cell, Devices, Select, Selection};
use std::collections::BTreeMap;

/// A question and its answer, sorted.
pub(super) struct ConformanceCase {
    /// Short name.
    pub name: &'static str,
    /// What is asked.
    pub select: Select,
    /// The right answer.
    pub answer: Answer,
}

const MINUTE_NS: i64 = 60 * SECOND_NS;

/// The index of the time in answers to `select`.
pub(super) fn time_column(select: &Select) -> Option<usize> {
    match select.what {
        Selection::Rows(_) | Selection::Last(_) => Some(1),
        Selection::Aggregates(_) => select.bucket_ns.map(|_| select.by.len()),
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn case(name: &'static str, select: Select, rows: Vec<Vec<Cell>>) -> ConformanceCase {
    ConformanceCase {
        name,
        select,
        answer: Answer { rows }.sorted(),
    }
}

/// All (device, row) of `lab_plain`.
fn plain() -> impl Iterator<Item = (usize, usize)> {
    (0..DEVICES).flat_map(|device| (0..PLAIN_ROWS).map(move |row| (device, row)))
}

/// All (device, row) of `lab_mixed`.
fn mixed() -> impl Iterator<Item = (usize, usize)> {
    (0..DEVICES).flat_map(|device| (0..MIXED_ROWS).map(move |row| (device, row)))
}

/// A row of `lab_plain` as an answer with both fields.
fn plain_row((device, row): (usize, usize)) -> Vec<Cell> {
    vec![
        text(&name(device)),
        Cell::Time(plain_time(row)),
        Cell::Number(f64::from(celsius(device, row))),
        Cell::Number(f64::from(humidity(device, row))),
    ]
}

/// A row of `lab_mixed` as an answer with all fields.
fn mixed_row((device, row): (usize, usize)) -> Vec<Cell> {
    vec![
        text(&name(device)),
        Cell::Time(mixed_time(row)),
        load(device, row).map_or(Cell::Null, Cell::Number),
        Cell::Number(f64::from(u8::from(rain(device, row)))),
        Cell::Number(beats(device, row) as f64),
        text(&note(device, row)),
    ]
}

/// Rows of `of`, grouped: (group, celsius) in, (group, mean, greatest) out.
fn mean_and_max<G: Ord>(of: impl Iterator<Item = (G, i32)>) -> BTreeMap<G, [Cell; 2]> {
    let mut groups: BTreeMap<G, Vec<f64>> = BTreeMap::new();
    for (group, value) in of {
        groups.entry(group).or_default().push(f64::from(value));
    }
    let fold = |values: Vec<f64>| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let greatest = values.iter().copied().fold(f64::MIN, f64::max);
        [Cell::Number(mean), Cell::Number(greatest)]
    };
    let groups = groups.into_iter();
    groups
        .map(|(group, values)| (group, fold(values)))
        .collect()
}

fn minute(row: usize) -> i64 {
    plain_time(row).div_euclid(MINUTE_NS) * MINUTE_NS
}

/// Every question.
pub(super) fn cases() -> Vec<ConformanceCase> {
    let mut all = row_cases();
    all.extend(filter_cases());
    all.extend(last_cases());
    all.extend(aggregate_cases());
    all.extend(group_cases());
    all
}

fn row_cases() -> Vec<ConformanceCase> {
    let (from, to) = (plain_time(20), plain_time(60));
    let rows = Select::all(0, Selection::Rows(vec![0, 1]));
    let one = Select {
        devices: Devices::In(1, vec![name(2)]),
        ..rows.clone()
    };
    let range = Select {
        devices: Devices::In(1, vec![name(0), name(3)]),
        from_ns: Some(from),
        to_ns: Some(to),
        ..rows.clone()
    };
    let ranged = |device: usize| (20..60).map(move |row| plain_row((device, row)));
    let second_field = |at| {
        let mut row = plain_row(at);
        row.remove(2);
        row
    };
    vec![
        case("all rows", rows, plain().map(plain_row).collect()),
        case(
            "rows of a device",
            one,
            (0..PLAIN_ROWS).map(|row| plain_row((2, row))).collect(),
        ),
        case(
            "newest rows first",
            Select {
                descending: true,
                ..range.clone()
            },
            ranged(0).chain(ranged(3)).collect(),
        ),
        case(
            "rows of a range",
            range,
            ranged(0).chain(ranged(3)).collect(),
        ),
        case(
            "one field",
            Select::all(0, Selection::Rows(vec![1])),
            plain().map(second_field).collect(),
        ),
        case(
            "no rows",
            Select {
                from_ns: Some(plain_time(10 * PLAIN_ROWS)),
                ..Select::all(0, Selection::Rows(vec![0]))
            },
            Vec::new(),
        ),
        case(
            "rows of every type",
            Select::all(1, Selection::Rows(vec![0, 1, 2, 3])),
            mixed().map(mixed_row).collect(),
        ),
    ]
}

fn filter_cases() -> Vec<ConformanceCase> {
    let rows = Select::all(0, Selection::Rows(vec![0, 1]));
    let of = |keep: &dyn Fn(usize, usize) -> bool| {
        let kept = plain().filter(|(device, row)| keep(*device, *row));
        kept.map(plain_row).collect()
    };
    vec![
        case(
            "rows above a value",
            Select {
                above: Some((0, 24.0)),
                ..rows.clone()
            },
            of(&|device, row| celsius(device, row) > 24),
        ),
        case(
            "rows of a device above a value in a range",
            Select {
                devices: Devices::In(1, vec![name(1)]),
                above: Some((1, 7.5)),
                from_ns: Some(plain_time(50)),
                to_ns: Some(plain_time(150)),
                ..rows.clone()
            },
            of(&|device, row| {
                device == 1 && humidity(device, row) > 7.5 && (50..150).contains(&row)
            }),
        ),
        case(
            "rows of an integer tag",
            Select {
                devices: Devices::In(0, vec![number(0).to_string(), number(3).to_string()]),
                ..rows.clone()
            },
            of(&|device, _| device == 0 || device == 3),
        ),
        case(
            "rows below an integer tag",
            Select {
                devices: Devices::Below(0, 10),
                ..rows
            },
            of(&|device, _| number(device) < 10),
        ),
    ]
}

fn last_cases() -> Vec<ConformanceCase> {
    let newest = |device| plain_row((device, PLAIN_ROWS - 1));
    vec![
        case(
            "last rows",
            Select::all(0, Selection::Last(vec![0, 1])),
            (0..DEVICES).map(newest).collect(),
        ),
        case(
            "last row of a device",
            Select {
                devices: Devices::In(1, vec![name(1)]),
                ..Select::all(0, Selection::Last(vec![0, 1]))
            },
            vec![newest(1)],
        ),
        case(
            "last rows before a time",
            Select {
                to_ns: Some(plain_time(100)),
                ..Select::all(0, Selection::Last(vec![0, 1]))
            },
            (0..DEVICES).map(|device| plain_row((device, 99))).collect(),
        ),
        case(
            "last rows with nulls",
            Select::all(1, Selection::Last(vec![0, 1, 2, 3])),
            (0..DEVICES)
                .map(|device| mixed_row((device, MIXED_ROWS - 1)))
                .collect(),
        ),
    ]
}

fn aggregate_cases() -> Vec<ConformanceCase> {
    let each = |field| {
        [
            Aggregate::Count,
            Aggregate::Sum,
            Aggregate::Avg,
            Aggregate::Min,
            Aggregate::Max,
            Aggregate::Spread,
        ]
        .map(|function| (function, field))
        .to_vec()
    };
    let fold = |values: Vec<f64>| {
        let sum: f64 = values.iter().sum();
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let greatest = values.iter().copied().fold(f64::MIN, f64::max);
        let count = values.len() as f64;
        let all = [count, sum, sum / count, least, greatest, greatest - least];
        vec![all.map(Cell::Number).to_vec()]
    };
    let integers = plain().map(|(device, row)| f64::from(celsius(device, row)));
    let singles = (0..PLAIN_ROWS).map(|row| f64::from(humidity(2, row)));
    let doubles = mixed().filter_map(|(device, row)| load(device, row));
    vec![
        case(
            "aggregates of integers",
            Select::all(0, Selection::Aggregates(each(0))),
            fold(integers.collect()),
        ),
        case(
            "aggregates of a device",
            Select {
                devices: Devices::In(1, vec![name(2)]),
                ..Select::all(0, Selection::Aggregates(each(1)))
            },
            fold(singles.collect()),
        ),
        case(
            "aggregates of doubles with nulls",
            Select::all(1, Selection::Aggregates(each(0))),
            fold(doubles.collect()),
        ),
        case(
            "count above a value",
            Select {
                above: Some((0, 24.0)),
                ..Select::all(0, Selection::Aggregates(vec![(Aggregate::Count, 0)]))
            },
            vec![vec![Cell::Number(
                plain().filter(|at| celsius(at.0, at.1) > 24).count() as f64,
            )]],
        ),
    ]
}

fn group_cases() -> Vec<ConformanceCase> {
    let what = || Selection::Aggregates(vec![(Aggregate::Avg, 0), (Aggregate::Max, 0)]);
    let by_tag = mean_and_max(plain().map(|at| (at.0, celsius(at.0, at.1))));
    let by_minute = mean_and_max(plain().map(|at| (minute(at.1), celsius(at.0, at.1))));
    let by_both = mean_and_max(plain().map(|at| ((at.0, minute(at.1)), celsius(at.0, at.1))));
    let by_both = by_both.into_iter().map(|((device, minute), values)| {
        [&[text(&name(device)), Cell::Time(minute)], &values[..]].concat()
    });
    let by_minute: Vec<Vec<Cell>> = by_minute
        .into_iter()
        .map(|(minute, values)| [&[Cell::Time(minute)], &values[..]].concat())
        .collect();
    let with = |by, bucket_ns| Select {
        by,
        bucket_ns,
        ..Select::all(0, what())
    };
    let two_tags = by_tag.iter().map(|(device, values)| {
        let tags = [text(&name(*device)), text(&number(*device).to_string())];
        [&tags[..], &values[..]].concat()
    });
    let one_tag = by_tag
        .iter()
        .map(|(device, values)| [&[text(&number(*device).to_string())], &values[..]].concat());
    let mut sites: BTreeMap<Option<&str>, f64> = BTreeMap::new();
    for (device, row) in mixed() {
        *sites.entry(SITES[device]).or_default() +=
            f64::from(u8::from(load(device, row).is_some()));
    }
    let by_site = sites
        .into_iter()
        .map(|(site, count)| vec![site.map_or(Cell::Null, text), Cell::Number(count)]);
    vec![
        case("by an integer tag", with(vec![0], None), one_tag.collect()),
        case("by two tags", with(vec![1, 0], None), two_tags.collect()),
        case(
            "newest window first",
            Select {
                descending: true,
                ..with(Vec::new(), Some(MINUTE_NS))
            },
            by_minute.clone(),
        ),
        case("by window", with(Vec::new(), Some(MINUTE_NS)), by_minute),
        case(
            "by tag and window",
            with(vec![1], Some(MINUTE_NS)),
            by_both.collect(),
        ),
        case(
            "by a tag that a device has not",
            Select {
                by: vec![0],
                ..Select::all(1, Selection::Aggregates(vec![(Aggregate::Count, 0)]))
            },
            by_site.collect(),
        ),
    ]
}
