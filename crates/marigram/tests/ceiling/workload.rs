//! Writes standard set S while aggregates over it run in a loop, and watches memory.
//!
//! Used by the test at small scale and by the example at full scale.

use marigram::arrow::array::{
    ArrayRef, AsArray, Float32Array, Int32Array, Int64Array, StringArray,
};
use marigram::arrow::datatypes::Int64Type;
use marigram::{
    BatchField, BatchTag, EngineError, Error, Marigram, OpenOptions, WriteBatch, resident_bytes,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// 2024-01-01T00:00:00Z.
const START_NS: i64 = 1_704_067_200_000_000_000;

/// Four aggregates, and a sort that must spill if there is little memory.
pub(crate) const QUESTIONS: [(&str, &str); 5] = [
    (
        "all",
        "SELECT count(*), sum(temperature), avg(humidity), max(humidity) FROM s",
    ),
    (
        "by group",
        "SELECT devgroup, count(temperature), sum(temperature), avg(temperature) FROM s \
         GROUP BY devgroup",
    ),
    (
        "by group and minute",
        "SELECT devgroup, time_bucket('1m', time) AS minute, avg(temperature), count(*) \
         FROM s GROUP BY devgroup, minute",
    ),
    (
        "by device",
        "SELECT devname, avg(temperature), max(humidity) FROM s GROUP BY devname",
    ),
    (
        "sorted",
        "SELECT count(*) FROM (SELECT devname, humidity FROM s ORDER BY humidity, time OFFSET 1)",
    ),
];

/// What to run.
pub(crate) struct Plan {
    pub devices: usize,
    /// Rows of each device.
    pub rows: usize,
    pub batch_rows: usize,
    pub writers: usize,
    /// How many of [`QUESTIONS`] to run, from the first on.
    pub questions: usize,
    pub options: OpenOptions,
}

/// Results of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub rows: usize,
    pub seconds: f64,
    /// Resident bytes before the first row was written, and the most afterwards.
    pub resident_before: usize,
    pub resident_max: usize,
    /// The most bytes that the accountant counted.
    pub accounted_max: usize,
    /// Writes that had to be retried.
    pub refused: u64,
    /// Answers to each question while rows were written.
    pub answers: [u64; QUESTIONS.len()],
    /// Questions that failed, and why.
    pub failures: Vec<String>,
    /// Number of rows and sum of temperatures as sent, and as found at the end.
    pub sent: (i64, i64),
    pub found: (i64, i64),
    /// The engine's figures at the end.
    pub memory: Vec<(&'static str, usize, u64)>,
}

/// The devices of a batch, as tags.
struct Fleet {
    tags: Vec<BatchTag>,
}

impl Fleet {
    fn new(devices: usize) -> Self {
        let numbers = || 0..devices as i64;
        let ids: Int64Array = numbers().map(Some).collect();
        let names: StringArray = numbers()
            .map(|id| Some(format!("device_{id:06}")))
            .collect();
        let groups: Int64Array = numbers().map(|id| Some(id % 100)).collect();
        let tag = |name: &str, values: ArrayRef| BatchTag {
            name: name.to_owned(),
            values,
        };
        Self {
            tags: vec![
                tag("devid", Arc::new(ids)),
                tag("devname", Arc::new(names)),
                tag("devgroup", Arc::new(groups)),
            ],
        }
    }

    /// Rows `first..first + len` of all rows in time order, and the sum of temperatures.
    fn batch(&self, devices: usize, first: usize, len: usize) -> (WriteBatch, i64) {
        let places = || first..first + len;
        let temperature: Vec<i32> = places()
            .map(|at| 15 + (0..4).map(|part| (mix(at, part) % 6) as i32).sum::<i32>())
            .collect();
        let humidity: Vec<f32> = places()
            .map(|at| (200_000 + mix(at, 9) % 600_000) as f32 / 1e4)
            .collect();
        let sum = temperature.iter().map(|value| i64::from(*value)).sum();
        let batch = WriteBatch {
            table: "s".to_owned(),
            tags: self.tags.clone(),
            slot_count: devices,
            slots: places().map(|at| (at % devices) as u32).collect(),
            times: places()
                .map(|at| START_NS + (at / devices) as i64 * 1_000_000_000)
                .collect(),
            fields: vec![
                BatchField {
                    name: "temperature".to_owned(),
                    values: Arc::new(Int32Array::from(temperature)),
                },
                BatchField {
                    name: "humidity".to_owned(),
                    values: Arc::new(Float32Array::from(humidity)),
                },
            ],
        };
        (batch, sum)
    }
}

fn mix(at: usize, part: u64) -> u64 {
    let mut hash = (at as u64 ^ part << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^= hash >> 29;
    hash.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

/// State that the threads share.
#[derive(Default)]
struct CeilingShared {
    next_row: AtomicUsize,
    writing: AtomicUsize,
    sum: AtomicI64,
    refused: AtomicU64,
    resident_max: AtomicUsize,
    done: AtomicBool,
}

/// Runs the plan in a new directory.
pub(crate) fn run(dir: &Path, plan: &Plan) -> Result<Outcome, Error> {
    let db = plan.options.open(dir)?;
    db.sql(
        "CREATE TABLE s (time TIMESTAMP, devid BIGINT TAG, devname STRING TAG, \
         devgroup BIGINT TAG, temperature INT FIELD, humidity REAL FIELD)",
    )?;
    // Run each question once first, so that one-time setup is done.
    for (_, question) in &QUESTIONS {
        db.sql(question)?;
    }
    let shared = CeilingShared::default();
    shared.writing.store(plan.writers, Ordering::Release);
    let mut outcome = Outcome {
        rows: plan.devices * plan.rows,
        resident_before: resident_bytes().unwrap_or(0),
        ..Outcome::default()
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..plan.writers)
            .map(|_| scope.spawn(|| write(&db, plan, &shared)))
            .collect();
        scope.spawn(|| watch(&shared));
        while shared.writing.load(Ordering::Acquire) > 0 {
            for (at, (name, question)) in QUESTIONS[..plan.questions].iter().enumerate() {
                match db.sql(question) {
                    Ok(_) => outcome.answers[at] += 1,
                    Err(error) => outcome.failures.push(format!("{name}: {error}")),
                }
            }
        }
        for writer in writers {
            if let Err(error) = writer.join().expect("a writer does not panic") {
                outcome.failures.push(format!("a write: {error}"));
            }
        }
        outcome.seconds = begun.elapsed().as_secs_f64();
        let found = db.sql("SELECT count(*), sum(temperature) FROM s");
        shared.done.store(true, Ordering::Release);
        match found {
            Ok(rows) => {
                let value = |column| rows[0].column(column).as_primitive::<Int64Type>().value(0);
                outcome.found = (value(0), value(1));
            }
            Err(error) => outcome.failures.push(format!("at the end: {error}")),
        }
    });
    outcome.sent = (outcome.rows as i64, shared.sum.into_inner());
    outcome.refused = shared.refused.into_inner();
    outcome.resident_max = shared.resident_max.into_inner();
    let status = db.engine().status();
    outcome.accounted_max = db.engine().memory().peak();
    let holders = status.memory.iter();
    let holders = holders.map(|(name, usage)| (*name, usage.peak_bytes, usage.refusals));
    outcome.memory = holders.collect();
    db.close()?;
    Ok(outcome)
}

/// Writes batches until all are written; then marks the writing as done.
fn write(db: &Marigram, plan: &Plan, shared: &CeilingShared) -> Result<(), Error> {
    let fleet = Fleet::new(plan.devices);
    let all = plan.devices * plan.rows;
    let mut outcome = Ok(());
    loop {
        let first = shared.next_row.fetch_add(plan.batch_rows, Ordering::AcqRel);
        if first >= all || outcome.is_err() {
            break;
        }
        let (batch, sum) = fleet.batch(plan.devices, first, plan.batch_rows.min(all - first));
        shared.sum.fetch_add(sum, Ordering::AcqRel);
        outcome = loop {
            match db.write("main", &batch) {
                Ok(_) => break Ok(()),
                Err(Error::Engine(EngineError::Busy { retry_after, .. })) => {
                    shared.refused.fetch_add(1, Ordering::AcqRel);
                    std::thread::sleep(retry_after);
                }
                Err(error) => break Err(error),
            }
        };
    }
    shared.writing.fetch_sub(1, Ordering::AcqRel);
    outcome
}

/// Measures resident memory until everything is done.
fn watch(shared: &CeilingShared) {
    while !shared.done.load(Ordering::Acquire) {
        if let Some(bytes) = resident_bytes() {
            shared.resident_max.fetch_max(bytes, Ordering::AcqRel);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
