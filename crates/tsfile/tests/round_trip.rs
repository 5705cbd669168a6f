//! Written files are read again, by this crate and by the format's own library.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "another program reads the written file"
)]

mod common;

use common::{dump, text};
use marigram_tsfile::{
    ColumnCategory, ColumnSchema, ColumnValues, DataType, DeviceColumn, Result, TsFileTableSchema,
    TsFileWriter,
};
use proptest::prelude::*;
use std::io::Cursor;

const KINDS: [DataType; 10] = [
    DataType::Boolean,
    DataType::Int32,
    DataType::Int64,
    DataType::Float,
    DataType::Double,
    DataType::Text,
    DataType::Timestamp,
    DataType::Date,
    DataType::Blob,
    DataType::String,
];

fn schema() -> TsFileTableSchema {
    let tag = |name: &str| (name.to_owned(), DataType::String, ColumnCategory::Tag);
    let fields = KINDS.iter().map(|kind| {
        (
            format!("f_{kind:?}").to_lowercase(),
            *kind,
            ColumnCategory::Field,
        )
    });
    let columns = [tag("site"), tag("unit")].into_iter().chain(fields);
    TsFileTableSchema {
        name: "all_types".to_owned(),
        columns: columns
            .map(|(name, data_type, category)| ColumnSchema {
                name,
                data_type,
                category,
            })
            .collect(),
    }
}

/// Pseudo-random numbers.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 17) ^ (state << 23)
    }
}

/// A column of `rows` values, about one in `gap` of which is missing (none for 0, all for 1).
fn column(data_type: DataType, rows: usize, gap: u64, smooth: bool, seed: u64) -> DeviceColumn {
    let mut next = noise(seed);
    let mut slow = 0;
    let mut value = move || {
        slow += 1;
        if smooth { slow * 3 % 1000 } else { next() }
    };
    let rows_of = 0..rows;
    let values = match data_type {
        DataType::Boolean => ColumnValues::Bool(rows_of.map(|_| value() % 3 == 0).collect()),
        DataType::Int32 => ColumnValues::I32(rows_of.map(|_| value() as i32).collect()),
        DataType::Date => ColumnValues::I32(
            rows_of
                .map(|_| 20_240_101 + (value() % 28) as i32)
                .collect(),
        ),
        DataType::Int64 | DataType::Timestamp => {
            ColumnValues::I64(rows_of.map(|_| value() as i64).collect())
        }
        DataType::Float if smooth => {
            ColumnValues::F32(rows_of.map(|_| value() as f32 / 10.0).collect())
        }
        DataType::Float => {
            ColumnValues::F32(rows_of.map(|_| f32::from_bits(value() as u32)).collect())
        }
        DataType::Double if smooth => {
            ColumnValues::F64(rows_of.map(|_| value() as f64 / 10.0).collect())
        }
        DataType::Double => ColumnValues::F64(rows_of.map(|_| f64::from_bits(value())).collect()),
        DataType::Text | DataType::String => {
            let texts = rows_of.map(|_| format!("t\u{fc} {}", value() % 50));
            ColumnValues::Bytes(texts.collect())
        }
        DataType::Blob => {
            let all = rows_of.map(|_| value().to_be_bytes()[..(value() % 8) as usize].to_vec());
            ColumnValues::Bytes(all.collect())
        }
    };
    let mut next = noise(seed + 1);
    DeviceColumn {
        name: format!("f_{data_type:?}").to_lowercase().into(),
        data_type,
        values,
        valid: (gap > 0).then(|| (0..rows).map(|_| !next().is_multiple_of(gap)).collect()),
    }
}

type Device = (
    Option<&'static str>,
    Option<&'static str>,
    Vec<i64>,
    Vec<DeviceColumn>,
);

fn write(devices: &[Device], step: usize) -> Result<(Vec<u8>, Vec<String>)> {
    let mut writer = TsFileWriter::new(Vec::new(), Cursor::new(Vec::new()), schema())?;
    let mut lines = Vec::new();
    for (site, unit, times, columns) in devices {
        for begin in (0..times.len()).step_by(step) {
            let rows = begin..times.len().min(begin + step);
            let part = |column: &DeviceColumn| DeviceColumn {
                values: cut(&column.values, rows.clone()),
                valid: column
                    .valid
                    .as_ref()
                    .map(|valid| valid[rows.clone()].to_vec()),
                ..column.clone()
            };
            let parts: Vec<DeviceColumn> = columns.iter().map(part).collect();
            writer.write(&[*site, *unit], &times[rows.clone()], &parts)?;
        }
        let mut device = vec!["all_types", site.unwrap_or("null"), unit.unwrap_or("null")];
        while device.last() == Some(&"null") {
            device.pop();
        }
        for (row, time) in times.iter().enumerate() {
            let mut values: Vec<String> = columns
                .iter()
                .filter(|column| column.is_valid(row))
                .map(|column| format!(" {}={}", column.name, text(column, row)))
                .collect();
            values.sort();
            lines.push(format!("{} {time}{}", device.join(","), values.concat()));
        }
    }
    lines.sort();
    Ok((writer.finish()?, lines))
}

fn cut(values: &ColumnValues, rows: std::ops::Range<usize>) -> ColumnValues {
    match values {
        ColumnValues::Bool(values) => ColumnValues::Bool(values[rows].to_vec()),
        ColumnValues::I32(values) => ColumnValues::I32(values[rows].to_vec()),
        ColumnValues::I64(values) => ColumnValues::I64(values[rows].to_vec()),
        ColumnValues::F32(values) => ColumnValues::F32(values[rows].to_vec()),
        ColumnValues::F64(values) => ColumnValues::F64(values[rows].to_vec()),
        ColumnValues::Bytes(values) => {
            ColumnValues::Bytes(rows.map(|row| values.get(row).unwrap().to_vec()).collect())
        }
    }
}

/// Devices with and without tags, columns with and without gaps and values, one page and many.
fn devices() -> Vec<Device> {
    let all = |rows: usize, gap: u64, smooth: bool| -> (Vec<i64>, Vec<DeviceColumn>) {
        let times = (0..rows as i64).map(|row| 1_700_000_000_000 + row * 1000 + row % 7);
        let column = |kind: &DataType| column(*kind, rows, gap, smooth, 7 + gap);
        (times.collect(), KINDS.iter().map(column).collect())
    };
    let (few, few_columns) = all(30, 0, true);
    let (gaps, gap_columns) = all(500, 3, false);
    let (nulls, mut null_columns) = all(20, 1, true);
    null_columns.truncate(3);
    let (many, mut many_columns) = all(20_000, 5, true);
    // No value in the first page, then some; a NaN in the last.
    let late = many_columns[3].valid.as_mut().unwrap();
    late[..9000].fill(false);
    late[19_999] = true;
    if let ColumnValues::F32(values) = &mut many_columns[3].values {
        values[19_999] = f32::NAN;
    }
    vec![
        (None, Some("u"), few, few_columns),
        (Some("north"), None, gaps, gap_columns),
        (Some("north"), Some(""), nulls, null_columns),
        (Some("south"), Some("a.b"), many, many_columns),
    ]
}

#[test]
fn rows_come_back() {
    for step in [7, 1000, 100_000] {
        let (bytes, lines) = write(&devices(), step).unwrap();
        assert_eq!(dump(Cursor::new(bytes)).unwrap(), lines, "step {step}");
    }
}

#[test]
fn a_file_without_rows_is_one() {
    let (bytes, _) = write(&[], 1).unwrap();
    assert_eq!(dump(Cursor::new(bytes)).unwrap(), Vec::<String>::new());
}

#[test]
fn many_devices_make_an_index_of_several_levels() {
    let names: Vec<String> = (0..70_000).map(|i| format!("d{i:06}")).collect();
    let mut writer = TsFileWriter::new(Vec::new(), Cursor::new(Vec::new()), schema()).unwrap();
    let column = column(DataType::Int32, 1, 0, true, 1);
    for name in &names {
        writer
            .write(&[Some(name), None], &[5], std::slice::from_ref(&column))
            .unwrap();
    }
    let bytes = writer.finish().unwrap();
    let expected = names
        .iter()
        .map(|name| format!("all_types,{name} 5 f_int32=3"));
    assert_eq!(
        dump(Cursor::new(bytes)).unwrap(),
        expected.collect::<Vec<_>>()
    );
}

#[test]
fn rows_out_of_order_are_refused() {
    let column = column(DataType::Int32, 1, 0, true, 1);
    let one = std::slice::from_ref(&column);
    let mut writer = TsFileWriter::new(Vec::new(), Cursor::new(Vec::new()), schema()).unwrap();
    writer.write(&[Some("b"), None], &[5], one).unwrap();
    assert!(writer.write(&[Some("b"), None], &[5], one).is_err());
    assert!(writer.write(&[Some("a"), None], &[6], one).is_err());
    assert!(writer.write(&[Some("c")], &[6], one).is_err());
    assert!(writer.write(&[Some("c"), None], &[6, 7], one).is_err());
    let mut twice = schema();
    twice.columns[3].name = "SITE".to_owned();
    assert!(TsFileWriter::new(Vec::new(), Cursor::new(Vec::new()), twice).is_err());
}

/// `MARIGRAM_TSFILE_PYTHON` is the path of a Python with the package `tsfile`.
#[test]
fn the_formats_own_library_reads_the_same_rows() {
    let Some(python) = std::env::var_os("MARIGRAM_TSFILE_PYTHON") else {
        eprintln!("skipped: MARIGRAM_TSFILE_PYTHON names no Python that has the package tsfile");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tsfile");
    let (bytes, lines) = write(&devices(), 1000).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let script = marigram_fixtures::root().join("testing/tsfile/oracle.py");
    let output = std::process::Command::new(python)
        .args([script.as_os_str(), "dump".as_ref(), path.as_os_str()])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = String::from_utf8(output.stdout).unwrap();
    let found: Vec<&str> = found.lines().collect();
    let pairs = lines.iter().zip(&found);
    if let Some((line, found)) = pairs.clone().find(|(a, b)| a.as_str() != **b) {
        panic!("written {line}\nread    {found}");
    }
    assert_eq!(found.len(), lines.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_rows_come_back(rows in 1usize..300, gap in 0u64..5, smooth: bool, seed: u32, step in 1usize..400) {
        let times: Vec<i64> = (0..rows as i64).map(|row| row * 10).collect();
        let columns = KINDS.iter().map(|kind| column(*kind, rows, gap, smooth, u64::from(seed)));
        let device = (Some("x"), None, times, columns.collect());
        let (bytes, lines) = write(&[device], step).unwrap();
        prop_assert_eq!(dump(Cursor::new(bytes)).unwrap(), lines);
    }
}
