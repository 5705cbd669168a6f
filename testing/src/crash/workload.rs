//! Random work, as devices, operators and the engine's own threads do it.

use crate::oracle::{
    Oracle, OracleChange, OracleFilter, OracleRow, OracleTable, OracleTags, WrittenRow,
};
use marigram_model::{
    BatchBuilder, ColdCodec, Compressor, Encoding, FieldType, FieldValue, FieldValueRef,
    TableOptions, TagValue, TimeRange, WriteBatch,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, RngExt as _};
use std::collections::BTreeMap;

/// Start of the simulated time, ns: a round hour in 2023.
pub(super) const START_NS: i64 = 1_699_999_200_000_000_000;

const SECOND_NS: i64 = 1_000_000_000;
const TABLES: [&str; 3] = ["pump", "valve", "weather station"];

/// An action.
#[derive(Clone, Debug)]
pub enum WorkloadAction {
    /// Changes the database.
    Change(OracleChange),
    /// Writes everything to segments.
    Flush,
    /// Compacts until nothing is left to compact.
    Compact,
    /// Rewrites each partition of a table as one sorted segment.
    CompactTable(String),
    /// A round of background work.
    Maintain,
    /// Drops rows past their ttl.
    Retain,
    /// Lets time pass, ns.
    Wait(u64),
    /// Reads something and compares it.
    Read,
    /// Takes a backup; the folder keeps this many (`None`: all).
    Backup(Option<usize>),
}

/// How the times of a write's rows relate to earlier ones.
#[derive(Clone, Copy, Debug)]
enum TimeOrder {
    /// Each after the last row of its device.
    InOrder,
    /// Mostly in order.
    FewLate,
    /// Mostly times with existing rows.
    Overwriting,
    /// Of any age.
    Late,
}

/// Draws actions.
#[derive(Debug)]
pub struct Workload {
    rng: Xoshiro256PlusPlus,
    /// Latest time written in order, by table and device.
    latest: BTreeMap<(usize, usize), i64>,
    /// Most rows of a write.
    rows_max: usize,
    /// Share of writes whose rows are all late or overwrite others.
    late_share: f64,
}

impl Workload {
    /// A workload that `rng` determines.
    #[must_use]
    pub fn new(mut rng: Xoshiro256PlusPlus) -> Self {
        let rows_max = [3, 20, 120][rng.random_range(0..3)];
        let late_share = [0.0, 0.3, 0.5, 0.9, 1.0][rng.random_range(0..5)];
        Self {
            rng,
            latest: BTreeMap::new(),
            rows_max,
            late_share,
        }
    }

    /// The next action, given the current state.
    pub fn draw(&mut self, oracle: &Oracle) -> WorkloadAction {
        match self.rng.random_range(0..100) {
            0..52 => WorkloadAction::Change(self.draw_write(oracle)),
            52..55 => WorkloadAction::Backup(
                self.rng
                    .random_bool(0.3)
                    .then(|| self.rng.random_range(1..4)),
            ),
            55..62 => WorkloadAction::Change(self.draw_delete(oracle)),
            62..70 => WorkloadAction::Flush,
            70..73 => WorkloadAction::Compact,
            73..75 => self.draw_compact(oracle),
            75..83 => WorkloadAction::Maintain,
            83..85 => WorkloadAction::Retain,
            85..88 => WorkloadAction::Wait(self.rng.random_range(0..600 * SECOND_NS as u64)),
            88..96 => WorkloadAction::Read,
            96..98 => WorkloadAction::Change(self.draw_create(oracle)),
            98 => WorkloadAction::Change(self.draw_field(oracle)),
            _ if self.rng.random_bool(0.2) => WorkloadAction::Change(OracleChange::DropDatabase),
            _ => {
                let table = TABLES[self.rng.random_range(0..TABLES.len())].to_owned();
                WorkloadAction::Change(OracleChange::DropTable { table })
            }
        }
    }

    /// Compacts an existing table, or all tables if there is none.
    fn draw_compact(&mut self, oracle: &Oracle) -> WorkloadAction {
        let table = self.draw_table(oracle);
        if oracle.tables.contains_key(&table) {
            WorkloadAction::CompactTable(table)
        } else {
            WorkloadAction::Compact
        }
    }

    fn draw_create(&mut self, oracle: &Oracle) -> OracleChange {
        let rng = &mut self.rng;
        let free: Vec<_> = TABLES
            .iter()
            .filter(|t| !oracle.tables.contains_key(**t))
            .collect();
        let table = free
            .choose(rng)
            .map_or(TABLES[0], |table| **table)
            .to_owned();
        let partition_ns = [60, 600, 3600, 86_400][rng.random_range(0..4)] * SECOND_NS;
        let ttl_ns = rng
            .random_bool(0.5)
            .then(|| rng.random_range(60..3600) * SECOND_NS);
        OracleChange::CreateTable {
            table,
            options: TableOptions {
                partition_ns,
                ttl_ns,
                page_bytes: [1 << 10, 64 << 10, 256 << 10][rng.random_range(0..3)],
                encoding: (rng.random_bool(0.3))
                    .then(|| Encoding::ALL[rng.random_range(0..Encoding::ALL.len())]),
                compressor: (rng.random_bool(0.3))
                    .then(|| Compressor::ALL[rng.random_range(0..Compressor::ALL.len())]),
                cold_codec: ColdCodec::ALL[rng.random_range(0..2)],
                ..TableOptions::default()
            },
        }
    }

    fn draw_field(&mut self, oracle: &Oracle) -> OracleChange {
        let table = self.draw_table(oracle);
        let kind = FieldType::ALL[self.rng.random_range(0..FieldType::ALL.len())];
        let field = format!("added {}", self.rng.random_range(0..1000));
        OracleChange::AddField { table, field, kind }
    }

    /// An existing table, if there is one.
    fn draw_table(&mut self, oracle: &Oracle) -> String {
        let names: Vec<_> = oracle.tables.keys().collect();
        names
            .choose(&mut self.rng)
            .map_or(TABLES[0].to_owned(), |name| (*name).clone())
    }

    fn draw_delete(&mut self, oracle: &Oracle) -> OracleChange {
        let table = self.draw_table(oracle);
        if self.rng.random_bool(0.4)
            && let Some(known) = oracle.tables.get(&table)
        {
            let rows = self.draw_rows(known);
            return OracleChange::DeleteRows { table, rows };
        }
        let filter = self.draw_filter(oracle, &table);
        let range = self.draw_range(oracle, &table);
        OracleChange::Delete {
            table,
            filter,
            range,
        }
    }

    /// Rows of a table: some that exist, alone and next to each other, and some that do not.
    fn draw_rows(&mut self, table: &OracleTable) -> Vec<(OracleTags, i64)> {
        let rng = &mut self.rng;
        let share = [0.02, 0.2, 0.9][rng.random_range(0..3)];
        let mut rows = Vec::new();
        for (tags, series) in &table.rows {
            for time in series.keys() {
                if rng.random_bool(share) {
                    rows.push((tags.clone(), *time));
                }
                if rng.random_bool(0.02) {
                    rows.push((tags.clone(), time.saturating_add(1)));
                }
            }
        }
        if rng.random_bool(0.1) {
            let unknown = TagValue::String("unknown".to_owned());
            let tags = table.tags.iter().map(|(name, _)| name);
            let tags = tags.filter(|name| *name == "device");
            let tags: OracleTags = tags.map(|name| (name.clone(), unknown.clone())).collect();
            rows.push((tags, START_NS));
        }
        rows.shuffle(rng);
        rows
    }

    /// A filter on the tags of a table.
    pub fn draw_filter(&mut self, oracle: &Oracle, table: &str) -> OracleFilter {
        let Some(table) = oracle.tables.get(table) else {
            return OracleFilter::All;
        };
        let Some((tag, _)) = table.tags.choose(&mut self.rng).cloned() else {
            return OracleFilter::All;
        };
        let known: Vec<_> = table
            .rows
            .keys()
            .filter_map(|tags| tags.get(&tag))
            .cloned()
            .collect();
        let mut some = |count| -> Vec<_> {
            (0..count)
                .filter_map(|_| known.choose(&mut self.rng).cloned())
                .collect()
        };
        let (one, two, other) = (some(1), some(2), some(1));
        match self.rng.random_range(0..8) {
            0..2 => OracleFilter::All,
            2..4 => OracleFilter::In(tag, one),
            4 => OracleFilter::IsNull(tag),
            5 => OracleFilter::IsNotNull(tag),
            6 => OracleFilter::Or(vec![
                OracleFilter::In(tag.clone(), other),
                OracleFilter::In(tag, two),
            ]),
            _ => OracleFilter::And(vec![
                OracleFilter::IsNotNull(tag.clone()),
                OracleFilter::In(tag, two),
            ]),
        }
    }

    /// A range of times, which often begins or ends at a row.
    pub fn draw_range(&mut self, oracle: &Oracle, table: &str) -> TimeRange {
        let rows = oracle.tables.get(table).map(|table| &table.rows);
        let times: Vec<_> = rows
            .into_iter()
            .flat_map(|rows| rows.values().flat_map(BTreeMap::keys))
            .collect();
        let rng = &mut self.rng;
        let mut end = || match times.choose(rng) {
            Some(time) if rng.random_bool(0.5) => **time,
            _ => START_NS + rng.random_range(-100..4000) * SECOND_NS,
        };
        let (a, b) = (end(), end());
        match rng.random_range(0..10) {
            0 => TimeRange::ALL,
            1 => TimeRange {
                min: i64::MIN,
                max: a,
            },
            2 => TimeRange {
                min: a,
                max: i64::MAX,
            },
            3 => TimeRange { min: a, max: a },
            _ => TimeRange {
                min: a.min(b),
                max: a.max(b),
            },
        }
    }

    fn draw_write(&mut self, oracle: &Oracle) -> OracleChange {
        let table = self.rng.random_range(0..TABLES.len());
        let count = self.rng.random_range(1..=self.rows_max);
        let late = self.rng.random_bool(self.late_share);
        let manners = if late {
            [TimeOrder::Overwriting, TimeOrder::Late]
        } else {
            [TimeOrder::InOrder, TimeOrder::FewLate]
        };
        let manner = manners[self.rng.random_range(0..2)];
        let devices = self.rng.random_range(1..=4);
        let first = self.rng.random_range(0..4);
        let known = oracle.tables.get(TABLES[table]);
        let rows = (0..count).map(|_| {
            let device = first + self.rng.random_range(0..devices);
            let tags = device_tags(table, device);
            let time = self.draw_time(manner, table, device, known.and_then(|t| t.rows.get(&tags)));
            let fields = self.draw_fields(known.map(|table| &table.fields));
            WrittenRow { tags, time, fields }
        });
        let rows = rows.collect();
        OracleChange::Write {
            table: TABLES[table].to_owned(),
            rows,
        }
    }

    fn draw_time(
        &mut self,
        manner: TimeOrder,
        table: usize,
        device: usize,
        rows: Option<&BTreeMap<i64, OracleRow>>,
    ) -> i64 {
        let rng = &mut self.rng;
        if rng.random_bool(0.002) {
            return [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX][rng.random_range(0..5)];
        }
        let latest = self.latest.entry((table, device)).or_insert(START_NS);
        let late = |rng: &mut Xoshiro256PlusPlus, latest: i64| {
            let span = (latest - START_NS) / SECOND_NS + 100;
            START_NS + rng.random_range(-100..span.max(1)) * SECOND_NS
        };
        match manner {
            // Another time with an existing row.
            TimeOrder::Overwriting if rng.random_bool(0.7) => {
                let times: Vec<_> = rows.into_iter().flat_map(BTreeMap::keys).collect();
                match times.choose(rng) {
                    Some(time) => **time,
                    None => late(rng, *latest),
                }
            }
            TimeOrder::Late => late(rng, *latest),
            TimeOrder::FewLate if rng.random_bool(0.1) => late(rng, *latest),
            _ => {
                *latest += rng.random_range(1..20) * SECOND_NS;
                *latest
            }
        }
    }

    fn draw_fields(&mut self, known: Option<&BTreeMap<String, FieldType>>) -> OracleRow {
        let rng = &mut self.rng;
        let mut fields = OracleRow::new();
        // The first fields are common, the last ones are rare: they appear late.
        for (at, kind) in FieldType::ALL.into_iter().enumerate() {
            let share = [0.8, 0.5, 0.5, 0.1, 0.3, 0.3, 0.3, 0.02, 0.02][at];
            if rng.random_bool(share) {
                fields.insert(format!("f{at}"), draw_value(kind, rng));
            }
        }
        let added = known
            .into_iter()
            .flatten()
            .filter(|(name, _)| name.starts_with("added"));
        for (name, kind) in added {
            if rng.random_bool(0.3) {
                fields.insert(name.clone(), draw_value(*kind, rng));
            }
        }
        if fields.is_empty() {
            fields.insert("f0".to_owned(), FieldValue::Bool(true));
        }
        // A value with a type that the table refuses.
        if rng.random_bool(0.01) && known.is_some_and(|known| known.contains_key("f2")) {
            fields.insert(
                "f2".to_owned(),
                FieldValue::String("not a number".to_owned()),
            );
        }
        fields
    }

    /// The random number generator, for readers.
    pub fn rng(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.rng
    }
}

fn device_tags(table: usize, device: usize) -> OracleTags {
    let text = |text: String| TagValue::String(text);
    let mut tags = OracleTags::new();
    // One series of the last table has no tags at all.
    if table < 2 || device > 0 {
        tags.insert("device".to_owned(), text(format!("{table}-{device}")));
    }
    if device % 3 == 1 {
        tags.insert(
            "site".to_owned(),
            text(["north", "south"][device / 3 % 2].to_owned()),
        );
    }
    if table == 1 && device.is_multiple_of(2) {
        tags.insert("unit".to_owned(), TagValue::I64(device as i64 - 2));
    }
    if table == 1 && device > 4 {
        tags.insert("spare".to_owned(), TagValue::Bool(device == 5));
    }
    tags
}

fn draw_value(kind: FieldType, rng: &mut Xoshiro256PlusPlus) -> FieldValue {
    let small = rng.random_bool(0.8);
    match kind {
        FieldType::Bool => FieldValue::Bool(rng.random()),
        FieldType::I32 if small => FieldValue::I32(rng.random_range(0..100)),
        FieldType::I32 => FieldValue::I32(rng.random()),
        FieldType::I64 if small => FieldValue::I64(rng.random_range(-5..1000)),
        FieldType::I64 => FieldValue::I64(rng.random()),
        FieldType::U64 if small => FieldValue::U64(rng.random_range(0..9)),
        FieldType::U64 => FieldValue::U64(rng.random()),
        FieldType::F32 => FieldValue::F32(rng.random_range(-1000_i16..1000) as f32 / 10.0),
        FieldType::F64 if small => {
            FieldValue::F64(f64::from(rng.random_range(-100_000..100_000)) / 100.0)
        }
        FieldType::F64 => {
            let odd = [
                0.0,
                -0.0,
                f64::INFINITY,
                f64::MIN_POSITIVE,
                f64::MAX,
                1e-300,
                0.1 + 0.2,
            ];
            FieldValue::F64(odd[rng.random_range(0..odd.len())])
        }
        FieldType::String if small => {
            FieldValue::String(["on", "off", ""][rng.random_range(0..3)].to_owned())
        }
        FieldType::String => FieldValue::String("ü".repeat(rng.random_range(1..200))),
        FieldType::Bytes => {
            let mut bytes = vec![0; rng.random_range(0..40)];
            rng.fill_bytes(&mut bytes);
            FieldValue::Bytes(bytes)
        }
        FieldType::Timestamp => FieldValue::Timestamp(START_NS + rng.random_range(0..SECOND_NS)),
    }
}

/// Converts rows for the engine.
#[must_use]
pub fn to_batch(table: &str, rows: &[WrittenRow]) -> WriteBatch {
    let mut builder = BatchBuilder::new(table);
    let mut slots: BTreeMap<&OracleTags, u32> = BTreeMap::new();
    for row in rows {
        let slot = *slots.entry(&row.tags).or_insert_with(|| {
            builder.slot(
                row.tags
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_ref())),
            )
        });
        builder.row(slot, row.time);
        for (name, value) in &row.fields {
            builder.field(name, value_ref(value));
        }
    }
    builder.finish()
}

/// Converts the series and times of rows for the engine.
#[must_use]
pub(super) fn keys_batch(table: &str, rows: &[(OracleTags, i64)]) -> WriteBatch {
    let without_fields = |(tags, time): &(OracleTags, i64)| WrittenRow {
        tags: tags.clone(),
        time: *time,
        fields: OracleRow::new(),
    };
    to_batch(table, &rows.iter().map(without_fields).collect::<Vec<_>>())
}

fn value_ref(value: &FieldValue) -> FieldValueRef<'_> {
    match value {
        FieldValue::Bool(v) => FieldValueRef::Bool(*v),
        FieldValue::I32(v) => FieldValueRef::I32(*v),
        FieldValue::I64(v) => FieldValueRef::I64(*v),
        FieldValue::U64(v) => FieldValueRef::U64(*v),
        FieldValue::F32(v) => FieldValueRef::F32(*v),
        FieldValue::F64(v) => FieldValueRef::F64(*v),
        FieldValue::String(v) => FieldValueRef::String(v),
        FieldValue::Bytes(v) => FieldValueRef::Bytes(v),
        FieldValue::Timestamp(v) => FieldValueRef::Timestamp(*v),
    }
}
