//! Windows and joins of random points, compared with a naive computation.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use support::Harness;

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// The points of a device by time.
type Points = BTreeMap<i64, f64>;

const DEVICES: [&str; 4] = ["a", "b", "c.x", "c.y"];

async fn filled(seed: u64) -> (Harness, Vec<Points>) {
    let (harness, mut numbers) = (Harness::new(), Numbers(seed));
    let mut all = Vec::new();
    for device in DEVICES {
        let mut points = Points::new();
        for _ in 0..60 {
            let time = numbers.next(200) as i64 - 50;
            points.insert(time, numbers.next(100) as f64 / 4.0 - 10.0);
        }
        let mut rows: Vec<_> = points.iter().collect();
        // In no order.
        rows.sort_by_key(|(time, _)| **time % 7);
        let values: Vec<String> = rows
            .iter()
            .map(|(time, value)| format!("({time}, {value:?})"))
            .collect();
        let values = values.join(", ");
        harness
            .done(&format!(
                "INSERT INTO root.sg.{device}(time, s) VALUES {values}"
            ))
            .await;
        if seed.is_multiple_of(2) {
            harness.engine.flush().unwrap();
        }
        all.push(points);
    }
    (harness, all)
}

fn text(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:?}"))
}

#[tokio::test]
async fn joins_have_the_rows_of_all_devices() {
    for seed in [1, 2, 3] {
        let (harness, all) = filled(seed).await;
        let times: BTreeSet<i64> = all
            .iter()
            .flat_map(|points| points.keys().copied())
            .collect();
        let mut expected = String::new();
        for time in times.iter().rev() {
            let values: Vec<Option<f64>> = all.iter().map(|it| it.get(time).copied()).collect();
            if values[0].is_some_and(|value| value > 0.0) {
                let texts: Vec<String> = values.into_iter().map(text).collect();
                writeln!(expected, "{time},{}", texts.join(",")).unwrap();
            }
        }
        let found = harness
            .rows("SELECT s FROM root.sg.** WHERE root.sg.a.s > 0 ORDER BY TIME DESC")
            .await;
        let (header, rows) = found.split_once('\n').unwrap();
        assert_eq!(header.matches(',').count(), 4, "{header}");
        assert_eq!(rows, expected, "seed {seed}");
    }
}

#[tokio::test]
async fn windows_have_the_points_between_their_bounds() {
    let cases = [
        (-40_i64, 120_i64, 20_i64, 20_i64, false),
        (-40, 115, 30, 10, false),
        (-13, 120, 7, 25, false),
        (-40, 120, 20, 20, true),
        (-37, 118, 30, 11, true),
        (-13, 120, 7, 25, true),
    ];
    for (seed, (start, end, length, step, has_ends)) in cases.into_iter().enumerate() {
        let (harness, all) = filled(seed as u64).await;
        let mut expected = String::new();
        let mut begin = start;
        while begin < end {
            let last = (begin + length).min(end);
            let mut cells = vec![if has_ends { last } else { begin }.to_string()];
            let within = |time: i64| {
                if has_ends {
                    begin < time && time <= last
                } else {
                    begin <= time && time < last
                }
            };
            let groups: Vec<Vec<(i64, f64)>> = all
                .iter()
                .map(|points| {
                    let points = points.iter().map(|(time, value)| (*time, *value));
                    points.filter(|(time, _)| within(*time)).collect()
                })
                .collect();
            cells.extend(groups.iter().map(|group| group.len().to_string()));
            cells.extend(
                groups.iter().map(|group| {
                    text((!group.is_empty()).then(|| group.iter().map(|it| it.1).sum()))
                }),
            );
            cells.extend(groups.iter().map(|group| text(group.last().map(|it| it.1))));
            writeln!(expected, "{}", cells.join(",")).unwrap();
            begin += step;
        }
        let bounds = if has_ends {
            format!("({start}, {end}]")
        } else {
            format!("[{start}, {end})")
        };
        let found = harness
            .rows(&format!(
                "SELECT count(s), sum(s), last_value(s) FROM root.sg.** \
                 GROUP BY ({bounds}, {length}ms, {step}ms)"
            ))
            .await;
        let rows = found.split_once('\n').unwrap().1;
        assert_eq!(rows, expected, "{bounds} {length} {step}");
    }
}

#[tokio::test]
async fn a_million_rows_are_counted() {
    use arrow::array::{ArrayRef, Float64Array, StringArray};
    use marigram_engine::WriteOptions;
    use marigram_model::{BatchField, BatchTag, WriteBatch};
    use std::sync::Arc;
    let harness = Harness::new();
    harness.done("CREATE DATABASE root.sg").await;
    for part in 0..10_i64 {
        let times: Vec<i64> = (0..100_000)
            .map(|row| (part * 100_000 + row) * 1_000_000)
            .collect();
        let values: ArrayRef = Arc::new(Float64Array::from_iter_values(times.iter().map(|_| 1.0)));
        let batch = WriteBatch {
            table: "devices".to_owned(),
            tags: vec![BatchTag {
                name: "device".to_owned(),
                values: Arc::new(StringArray::from(vec!["root.sg.d"])),
            }],
            slot_count: 1,
            slots: vec![0; times.len()],
            times: times.into(),
            fields: vec![BatchField {
                name: "s".to_owned(),
                values,
            }],
        };
        let report = harness
            .engine
            .write("root.sg", &batch, WriteOptions { grow: true })
            .unwrap();
        assert_eq!(report.stored, 100_000);
    }
    let found = harness
        .rows("SELECT count(s), max_time(s) FROM root.sg.d")
        .await;
    assert!(found.ends_with("\n1000000,999999\n"), "{found}");
    let found = harness
        .rows(
            "SELECT sum(s) FROM root.sg.d GROUP BY ([0, 1000000), 100s) HAVING sum(s) > 0 LIMIT 3",
        )
        .await;
    assert!(
        found.ends_with("\n0,100000.0\n100000,100000.0\n200000,100000.0\n"),
        "{found}"
    );
    let last = harness
        .rows("SELECT s FROM root.sg.d ORDER BY TIME DESC LIMIT 1")
        .await;
    assert!(last.ends_with("\n999999,1.0\n"), "{last}");
}
