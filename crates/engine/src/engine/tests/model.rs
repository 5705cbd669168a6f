//! Compares random histories with a naive model: reads return what was written, whatever flushes,
//! compactions, restarts and power losses happened in between.

use super::support::{Contents, Row, World, options, read, store, try_read};
use crate::{Engine, EngineOptions, TagFilter};
use marigram_model::{BatchBuilder, FieldValue, FieldValueRef, TagValue, TagValueRef, TimeRange};
use std::collections::BTreeMap;

/// xorshift64*.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }
}

const DEVICES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const FIELDS: [&str; 3] = ["x", "y", "z"];
/// A third of the narrowest partition, so that histories cross partitions.
const STEP_NS: i64 = 20_000_000_000;

/// Device, time, fields with their values.
type WrittenRows = (usize, i64, Vec<(usize, f64)>);

struct ModelHistory {
    rng: Rng,
    model: Contents,
    clock: i64,
    /// How many of four rows are late, by up to `late_steps`.
    late_quarters: u64,
    late_steps: u64,
}

impl ModelHistory {
    fn write(&mut self, engine: &Engine) {
        let rows: Vec<WrittenRows> = (0..=self.rng.below(30))
            .map(|_| {
                self.clock += self.rng.below(3) as i64;
                let back = if self.rng.below(4) < self.late_quarters {
                    self.rng.below(self.late_steps) as i64
                } else {
                    0
                };
                let device = self.rng.below(DEVICES.len() as u64) as usize;
                let first = self.rng.below(FIELDS.len() as u64) as usize;
                let mut fields = vec![(first, self.rng.below(1000) as f64)];
                if self.rng.below(2) == 0 {
                    fields.push(((first + 1) % 3, self.rng.below(1000) as f64));
                }
                (device, (self.clock - back) * STEP_NS, fields)
            })
            .collect();
        let fields: Vec<Vec<(&str, FieldValueRef<'_>)>> = rows
            .iter()
            .map(|(_, _, f)| {
                f.iter()
                    .map(|(f, v)| (FIELDS[*f], FieldValueRef::F64(*v)))
                    .collect()
            })
            .collect();
        let batch: Vec<Row<'_>> = rows
            .iter()
            .zip(&fields)
            .map(|((device, time, _), fields)| (DEVICES[*device], *time, fields.as_slice()))
            .collect();
        store(engine, "t", &batch);
        for (device, time, fields) in rows {
            let row = self
                .model
                .entry((DEVICES[device].to_owned(), time))
                .or_default();
            for (field, value) in fields {
                row.insert(FIELDS[field].to_owned(), FieldValue::F64(value));
            }
        }
    }

    fn delete(&mut self, engine: &Engine) {
        let device = DEVICES[self.rng.below(DEVICES.len() as u64) as usize];
        let all = self.rng.below(4) == 0;
        let filter = if all {
            TagFilter::All
        } else {
            TagFilter::In(0, vec![TagValue::String(device.to_owned())])
        };
        let end = self.clock - self.rng.below(10) as i64;
        let start = end - self.rng.below(15) as i64;
        let range = TimeRange {
            min: start * STEP_NS,
            max: end * STEP_NS,
        };
        engine.delete("db", "t", &filter, range).unwrap();
        self.model
            .retain(|(of, time), _| !((all || of == device) && range.contains(*time)));
    }

    /// Deletes rows by their series and times: some of those that exist, and one that may not.
    fn delete_rows(&mut self, engine: &Engine) {
        let one_in = 1 + self.rng.below(8);
        let mut rows: Vec<(String, i64)> = self.model.keys().cloned().collect();
        rows.retain(|_| self.rng.below(one_in) == 0);
        rows.push((
            DEVICES[self.rng.below(DEVICES.len() as u64) as usize].to_owned(),
            self.clock * STEP_NS,
        ));
        let mut keys = BatchBuilder::new("t");
        for (device, time) in &rows {
            let slot = keys.slot([("dev", TagValueRef::String(device))]);
            keys.row(slot, *time);
        }
        engine.delete_rows("db", &keys.finish()).unwrap();
        for row in &rows {
            self.model.remove(row);
        }
    }

    fn check(&mut self, engine: &Engine, when: &str) {
        assert_eq!(read(engine, "t"), self.model, "{when}");
        let end = self.clock - self.rng.below(10) as i64;
        let range = TimeRange {
            min: (end - 9) * STEP_NS,
            max: end * STEP_NS,
        };
        let mut expected = self.model.clone();
        expected.retain(|(_, time), _| range.contains(*time));
        assert_eq!(
            try_read(engine, "t", range).unwrap(),
            expected,
            "{when}, {range:?}"
        );
        self.check_last(engine, when);
    }

    fn check_last(&self, engine: &Engine, when: &str) {
        let mut expected: BTreeMap<&str, i64> = BTreeMap::new();
        for (device, time) in self.model.keys() {
            expected.insert(device, *time);
        }
        let snapshot = engine.snapshot("db", "t").unwrap();
        let rows = snapshot
            .last_rows(&snapshot.select(&TagFilter::All), &[])
            .unwrap();
        let mut times: Vec<i64> = rows
            .iter()
            .flat_map(|(_, rows)| rows.times.iter().copied())
            .collect();
        let mut expected: Vec<i64> = expected.into_values().collect();
        times.sort_unstable();
        expected.sort_unstable();
        assert_eq!(times, expected, "last rows, {when}");
    }
}

fn run(seed: u64, options: &EngineOptions, steps: u64) {
    run_late(seed, options, steps, (1, 20));
}

fn run_late(seed: u64, options: &EngineOptions, steps: u64, late: (u64, u64)) {
    let world = World::new(seed);
    let mut engine = world.open_with(options.clone());
    engine.create_database("db", false).unwrap();
    let spec = crate::TableSpec {
        name: "t".to_owned(),
        tags: vec![("dev".to_owned(), marigram_model::TagType::String)],
        options: marigram_model::TableOptions {
            partition_ns: 3 * STEP_NS,
            ttl_ns: None,
            ..marigram_model::TableOptions::default()
        },
        ..crate::TableSpec::default()
    };
    engine.create_table("db", &spec, false).unwrap();
    let rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut history = ModelHistory {
        rng,
        model: Contents::new(),
        clock: 1000,
        late_quarters: late.0,
        late_steps: late.1,
    };
    for step in 0..steps {
        let when = format!("seed {seed}, step {step}");
        match history.rng.below(22) {
            21 => history.delete_rows(&engine),
            20 => drop(engine.compact_table("db", "t").unwrap()),
            0..10 => history.write(&engine),
            10..12 => history.delete(&engine),
            12..14 => engine.flush().unwrap(),
            14 => drop(engine.maintain().unwrap()),
            15 => engine.compact().unwrap(),
            16 => {
                engine.close().unwrap();
                engine = world.open_with(options.clone());
            }
            17 => {
                world.fs.crash();
                drop(engine);
                engine = world.open_with(options.clone());
            }
            _ => history.check(&engine, &when),
        }
    }
    history.check(&engine, &format!("seed {seed}, at the end"));
    engine.close().unwrap();
    assert_eq!(world.damage(), Vec::<String>::new());
}

#[test]
fn histories_agree_with_the_model() {
    for seed in 0..40 {
        run(seed, &options(), 60);
    }
}

#[test]
fn histories_agree_with_the_model_when_memtables_are_tiny() {
    let tiny = EngineOptions {
        flush_bytes_max: 2000,
        shards: 1,
        ..options()
    };
    for seed in 100..130 {
        run(seed, &tiny, 60);
    }
}

#[test]
fn late_and_overwriting_histories_agree_with_the_model_under_each_policy() {
    for (at, policy) in crate::CompactionPolicy::ALL.into_iter().enumerate() {
        for late_quarters in [2, 4] {
            let late = EngineOptions {
                compaction: policy,
                flush_bytes_max: 2000,
                shards: 1,
                segment: marigram_segment::SegmentOptions { row_group_rows: 6 },
                ..options()
            };
            for seed in 0..6 {
                // Few distinct times, so that most late rows overwrite others.
                let seed = 1000 + seed * 10 + at as u64;
                run_late(seed, &late, 80, (late_quarters, 60));
            }
        }
    }
}
