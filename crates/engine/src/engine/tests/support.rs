//! Utilities of the engine tests: an engine on a simulated disk, batches, and reading back.

use crate::{
    Durability, Engine, EngineOptions, ScanMetrics, ScanRequest, TableSnapshot, TableSpec,
    TagFilter, WriteOptions,
};
use marigram_env::{Env, SimClock, SimFs};
use marigram_model::{
    BatchBuilder, FieldValue, FieldValueRef, TableOptions, TagValueRef, TimeRange, WriteBatch,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The tests' data directory.
pub(super) const DIR: &str = "/data";

/// A disk and a clock that outlive engines.
#[derive(Clone)]
pub(super) struct World {
    pub fs: SimFs,
    pub clock: SimClock,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            fs: SimFs::new(seed),
            clock: SimClock::new(1_000_000),
        }
    }

    pub(super) fn env(&self) -> Env {
        Env::simulated(&self.fs, &self.clock)
    }

    pub(super) fn open(&self) -> Engine {
        self.open_with(options())
    }

    pub(super) fn open_with(&self, options: EngineOptions) -> Engine {
        Engine::open(self.env(), Path::new(DIR), options).unwrap()
    }

    /// An engine with the database `db`.
    pub(super) fn open_db(&self) -> Engine {
        let engine = self.open();
        engine.create_database("db", true).unwrap();
        engine
    }

    /// The damage that verification finds.
    pub(super) fn damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        Engine::verify(&self.env(), Path::new(DIR), &mut |place| damage.push(place)).unwrap();
        damage
    }
}

/// Width of the partitions of [`create_minutes`].
pub(super) const PARTITION_NS: i64 = 60_000_000_000;

/// Creates a table of `db` whose partitions are a minute wide.
pub(super) fn create_minutes(engine: &Engine, table: &str) {
    let spec = TableSpec {
        name: table.to_owned(),
        options: TableOptions {
            partition_ns: PARTITION_NS,
            ..TableOptions::default()
        },
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, true).unwrap();
}

/// Stores a row of device `a` in each of the first `partitions` minutes, `shift_ns` after its start.
pub(super) fn fill_minutes(engine: &Engine, table: &str, partitions: i64, shift_ns: i64) {
    let fields = [("x", FieldValueRef::F64(shift_ns as f64))];
    let rows: Vec<_> = (0..partitions)
        .map(|at| ("a", at * PARTITION_NS + shift_ns, &fields[..]))
        .collect();
    store(engine, table, &rows);
}

pub(super) fn options() -> EngineOptions {
    EngineOptions {
        shards: 2,
        durability: Durability::Fsync,
        memory_limit_bytes: 64 << 20,
        flush_bytes_max: 8 << 20,
        flush_age_max: Some(Duration::from_mins(1)),
        background_threads: 0,
        compaction: crate::CompactionPolicy::default(),
        compaction_bytes_per_second: None,
        trash_retention: Duration::from_hours(24),
        open_files_max: 3,
        segment: marigram_segment::SegmentOptions::default(),
    }
}

pub(super) const GROW: WriteOptions = WriteOptions { grow: true };

/// A row for [`batch`]: device, time, fields.
pub(super) type Row<'a> = (&'a str, i64, &'a [(&'a str, FieldValueRef<'a>)]);

/// A batch of rows with `dev` as the only tag.
pub(super) fn batch(table: &str, rows: &[Row<'_>]) -> WriteBatch {
    let mut builder = BatchBuilder::new(table);
    let mut slots = BTreeMap::new();
    for (device, time, fields) in rows {
        let slot = *slots
            .entry(*device)
            .or_insert_with(|| builder.slot([("dev", TagValueRef::String(device))]));
        builder.row(slot, *time);
        for (name, value) in *fields {
            builder.field(name, *value);
        }
    }
    builder.finish()
}

/// Writes rows, all of which must be stored.
pub(super) fn store(engine: &Engine, table: &str, rows: &[Row<'_>]) {
    let report = engine.write("db", &batch(table, rows), GROW).unwrap();
    assert_eq!((report.stored, report.rejected), (rows.len(), Vec::new()));
}

/// Rows as read: (device, time) → field values by name, without nulls.
pub(super) type Contents = BTreeMap<(String, i64), BTreeMap<String, FieldValue>>;

/// Everything in a table.
pub(super) fn read(engine: &Engine, table: &str) -> Contents {
    try_read(engine, table, TimeRange::ALL).unwrap()
}

pub(super) fn try_read(engine: &Engine, table: &str, range: TimeRange) -> crate::Result<Contents> {
    rows_within(&engine.snapshot("db", table)?, range)
}

/// Everything in a snapshot.
pub(super) fn rows_of(snapshot: &TableSnapshot) -> crate::Result<Contents> {
    rows_within(snapshot, TimeRange::ALL)
}

fn rows_within(snapshot: &TableSnapshot, range: TimeRange) -> crate::Result<Contents> {
    let schema = snapshot.schema().clone();
    let request = ScanRequest {
        selection: snapshot.select(&TagFilter::All),
        range,
        columns: schema.fields.iter().map(|field| field.id).collect(),
        bounds: Vec::new(),
        batch_rows: 1000,
        partitions: 2,
        limit: None,
    };
    let mut contents = Contents::new();
    for mut partition in snapshot.scan(&request, Arc::new(ScanMetrics::default()))? {
        while let Some(rows) = partition.next_rows()? {
            assert!(rows.is_sorted());
            let mut row = 0;
            for run in &rows.runs {
                let device = snapshot.tag_values(partition.shard(), &[run.series], 0);
                let device = text_of(&device);
                for at in row..row + run.rows as usize {
                    let fields = schema.fields.iter().zip(&rows.columns);
                    let values = fields.filter_map(|(field, column)| {
                        Some((field.name.clone(), FieldValue::from_array(column, at)?))
                    });
                    let known = contents.insert(
                        (device.clone(), rows.times[at]),
                        values.collect::<BTreeMap<_, _>>(),
                    );
                    assert!(known.is_none(), "a row is visible once");
                }
                row += run.rows as usize;
            }
        }
    }
    Ok(contents)
}

/// The first value of a tag column, which is plain text or a dictionary.
fn text_of(values: &arrow_array::ArrayRef) -> String {
    use arrow_array::cast::AsArray;
    if let Some(text) = values.as_string_opt::<i32>() {
        return text.value(0).to_owned();
    }
    let dictionary = values.as_any_dictionary();
    dictionary
        .values()
        .as_string::<i32>()
        .value(dictionary.normalized_keys()[0])
        .to_owned()
}
