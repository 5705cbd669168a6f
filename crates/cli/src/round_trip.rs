//! Exports random tables in every format and imports them again unchanged: with every type, odd
//! names, odd texts, and special floats.
//!
//! Each table is made from a seed. The failure message names the seed, so that the failure can be
//! repeated.

use crate::client::DataClient;
use crate::export::Export;
use crate::import::{ReadOptions, import_for_test};
use crate::table_columns::known_table;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::array_value_to_string;
use clap::Parser;
use marigram::{Durability, OpenOptions};
use marigram_model::always_quoted as quoted;
use marigram_model::{BatchBuilder, FieldType, FieldValueRef, TagType, TagValueRef};
use std::path::Path;

/// Number of tables.
const TABLES: u64 = 2_000;

/// A small random number generator (xorshift), so that a seed determines a table.
struct XorShift(u64);

impl XorShift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const TEXTS: [&str; 24] = [
    "",
    " sp ",
    "NA",
    "null",
    "NULL",
    "\\N",
    "-",
    "n/a",
    "a,b",
    "say \"x\"",
    "two\nlines",
    "cr\r\nlf",
    "007",
    "1.5",
    "1,5",
    "true",
    "2026-04-05",
    "#marigram {}",
    "back\\slash",
    "end\\",
    "ümläut °C",
    "tab\there",
    "a=b c",
    "\u{feff}bom",
];

const NAMES: [&str; 12] = [
    "a", "Value", "sp ace", "com,ma", "quo\"te", "eq=ual", "ü", "x y=z", "time_of", "ts2", "#h",
    "A",
];

const TIMES: [i64; 6] = [
    i64::MIN + 1,
    -1,
    0,
    1_767_225_600_000_000_000,
    1_767_225_600_123_456_789,
    i64::MAX - 1,
];

const FLOATS: [f64; 12] = [
    0.0,
    -0.0,
    1.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN_POSITIVE,
    f64::MAX,
    1e300,
    0.1,
    9_007_199_254_740_993.0,
    -1e-310,
];

/// The format that a table goes through. TsFile supports lower-case names, small unsigned numbers,
/// and no odd texts in tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundTripForm {
    Csv,
    Lines,
    Parquet,
    TsFile,
}

fn write_table(client: &DataClient, table: &str, random: &mut XorShift, form: RoundTripForm) {
    let mut names: Vec<String> = Vec::new();
    let wanted = 2 + random.below(6);
    while names.len() < wanted {
        let mut name = (*random.pick(&NAMES)).to_owned();
        if form == RoundTripForm::TsFile {
            name = format!("c{}", names.len());
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let tag_count = random.below(3).min(names.len() - 1);
    let tag_types = [TagType::String, TagType::I64, TagType::Bool];
    let tags: Vec<(String, TagType)> = names[..tag_count]
        .iter()
        .map(|name| (name.clone(), *random.pick(&tag_types)))
        .collect();
    let fields: Vec<(String, FieldType)> = names[tag_count..]
        .iter()
        .map(|name| (name.clone(), *random.pick(&FieldType::ALL)))
        .collect();
    let mut batch = BatchBuilder::new(table);
    for (name, kind) in &tags {
        batch.declare_tag(name, *kind);
    }
    for (name, kind) in &fields {
        batch.field_place(name, *kind);
    }
    for _ in 0..=random.below(12) {
        let mut values = Vec::new();
        for (name, kind) in &tags {
            let text = random.pick(&TEXTS);
            let value = match kind {
                TagType::String if text.is_empty() || random.below(4) == 0 => continue,
                TagType::String => TagValueRef::String(text),
                TagType::I64 => TagValueRef::I64(random.next() as i64 >> random.below(60)),
                TagType::Bool => TagValueRef::Bool(random.below(2) == 0),
            };
            values.push((name.as_str(), value));
        }
        let slot = batch.slot(values);
        let time = match random.below(3) {
            0 => *random.pick(&TIMES),
            _ => (random.next() >> 4) as i64,
        };
        batch.row(slot, time);
        let mut any = false;
        for (at, (name, kind)) in fields.iter().enumerate() {
            let last = at + 1 == fields.len();
            if random.below(4) == 0 && (any || !last) {
                continue;
            }
            any = true;
            let bits = random.next();
            let text = random.pick(&TEXTS);
            let float = if random.below(2) == 0 {
                *random.pick(&FLOATS)
            } else {
                bits as f64 / 1e5
            };
            let value = match kind {
                FieldType::Bool => FieldValueRef::Bool(bits.is_multiple_of(2)),
                FieldType::I32 => FieldValueRef::I32(bits as i32),
                FieldType::I64 => FieldValueRef::I64(bits as i64),
                FieldType::U64 if form == RoundTripForm::TsFile => FieldValueRef::U64(bits >> 1),
                FieldType::U64 => FieldValueRef::U64(bits),
                FieldType::F32 => FieldValueRef::F32(float as f32),
                FieldType::F64 => FieldValueRef::F64(float),
                FieldType::String => FieldValueRef::String(text),
                FieldType::Bytes => FieldValueRef::Bytes(text.as_bytes()),
                FieldType::Timestamp => FieldValueRef::Timestamp(*random.pick(&TIMES)),
            };
            batch.field(name, value);
        }
    }
    for report in client.write(vec![batch.finish()]).unwrap() {
        assert!(report.rejected.is_empty(), "{:?}", report.rejected);
    }
}

/// Gives some time columns of a table a zone.
fn zone_times(client: &mut DataClient, table: &str, random: &mut XorShift) {
    let known = known_table(client, table).unwrap().unwrap();
    let fields = known.field_types().unwrap();
    let times = fields
        .iter()
        .filter(|(_, kind)| *kind == FieldType::Timestamp);
    for name in times.map(|(name, _)| name).chain([&known.time]) {
        if random.below(3) == 0 {
            let name = quoted(name);
            let alter = format!("ALTER TABLE {table} ALTER COLUMN {name} TYPE TIMESTAMPTZ");
            client.query(&alter).unwrap();
        }
    }
}

/// Makes the table again with its columns in another order.
fn mix_columns(client: &mut DataClient, table: &str, random: &mut XorShift) {
    let known = known_table(client, table).unwrap().unwrap();
    let kind = if known.is_time_zoned {
        "TIMESTAMPTZ"
    } else {
        "TIMESTAMP"
    };
    let mut columns = vec![format!("{} {kind} TIME", quoted(&known.time))];
    let typed = |role: &'static str| {
        move |(name, kind): &(String, String)| format!("{} {kind} {role}", quoted(name))
    };
    columns.extend(known.tags.iter().map(typed("TAG")));
    columns.extend(known.fields.iter().map(typed("FIELD")));
    for at in (1..columns.len()).rev() {
        columns.swap(at, random.below(at + 1));
    }
    let names = std::iter::once(&known.time)
        .chain(known.tags.iter().map(|(name, _)| name))
        .chain(known.fields.iter().map(|(name, _)| name));
    let names: Vec<String> = names.map(|name| quoted(name)).collect();
    let names = names.join(", ");
    for statement in [
        format!("ALTER TABLE {table} RENAME TO mixed"),
        format!("CREATE TABLE {table} ({})", columns.join(", ")),
        format!("INSERT INTO {table} ({names}) SELECT {names} FROM mixed"),
        "DROP TABLE mixed".to_owned(),
    ] {
        client.query(&statement).unwrap();
    }
}

/// All rows of a table as texts, sorted; floats as their bits.
fn rows(client: &mut DataClient, table: &str) -> Vec<String> {
    let batches = client
        .query(&format!("SELECT * FROM {}", quoted(table)))
        .unwrap();
    let mut rows: Vec<String> = batches.iter().flat_map(texts).collect();
    rows.sort();
    rows
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let columns: Vec<ArrayRef> = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Dictionary(_, kind) => cast(column, kind).unwrap(),
            _ => column.clone(),
        })
        .collect();
    let text = |column: &ArrayRef, row: usize| {
        if column.is_null(row) {
            return "NULL".to_owned();
        }
        match column.data_type() {
            DataType::Float32 => bits(f64::from(column.as_primitive::<Float32Type>().value(row))),
            DataType::Float64 => bits(column.as_primitive::<Float64Type>().value(row)),
            _ => format!("{:?}", array_value_to_string(column, row).unwrap()),
        }
    };
    (0..batch.num_rows())
        .map(|row| {
            columns
                .iter()
                .map(|column| text(column, row))
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect()
}

/// Every NaN counts as equal to every other.
fn bits(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else {
        format!("{:x}", number.to_bits())
    }
}

#[derive(Parser)]
struct RoundTripLine {
    #[command(flatten)]
    export: Export,
}

fn there_and_back(client: &mut DataClient, dir: &Path, seed: u64, form: RoundTripForm) {
    let mut random = XorShift(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    write_table(client, "there", &mut random, form);
    zone_times(client, "there", &mut random);
    if random.below(2) == 0 {
        mix_columns(client, "there", &mut random);
    }
    let ending = match form {
        RoundTripForm::Csv => "csv",
        RoundTripForm::Lines => "lp",
        RoundTripForm::Parquet => "parquet",
        RoundTripForm::TsFile => "tsfile",
    };
    let file = dir.join(format!("x.{ending}"));
    let path = file.to_str().unwrap();
    let line = [
        "x",
        "--data",
        "unused",
        "--table",
        "there",
        "--precision",
        "ns",
        "--force",
        path,
    ];
    let export = RoundTripLine::try_parse_from(line).unwrap().export;
    let told = format!("seed {seed}, {form:?}");
    export
        .export(client)
        .unwrap_or_else(|error| panic!("{told}: {error:#}"));
    let options = ReadOptions {
        table: Some("back".to_owned()),
        ..ReadOptions::default()
    };
    let refused = import_for_test(client, &file, &options)
        .unwrap_or_else(|error| panic!("{told}: {error:#}"));
    assert_eq!(refused, Vec::<String>::new(), "{told}");
    let layout = |client: &mut DataClient, table: &str| {
        let known = known_table(client, table).unwrap().unwrap();
        let mut fields = known.fields;
        fields.sort();
        let order = known.order;
        (known.time, known.is_time_zoned, known.tags, fields, order)
    };
    assert_eq!(layout(client, "back"), layout(client, "there"), "{told}");
    assert_eq!(rows(client, "back"), rows(client, "there"), "{told}");
    for table in ["there", "back"] {
        client.query(&format!("DROP TABLE {table}")).unwrap();
    }
}

#[test]
fn random_tables_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let db = OpenOptions::default()
        .durability(Durability::Os)
        .open(dir.path().join("data"))
        .unwrap();
    let mut client = DataClient::over(db, marigram::DEFAULT_DATABASE).unwrap();
    let forms = [
        RoundTripForm::Csv,
        RoundTripForm::Lines,
        RoundTripForm::Parquet,
        RoundTripForm::TsFile,
    ];
    for seed in 0..TABLES {
        there_and_back(
            &mut client,
            dir.path(),
            seed,
            forms[seed as usize % forms.len()],
        );
    }
    client.close().unwrap();
}
