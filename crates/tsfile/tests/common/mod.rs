//! Prints rows as lines of text, in the format of `testing/tsfile/oracle.py`.

use marigram_tsfile::{ColumnValues, DeviceBlock, DeviceColumn, Result, TsFileReader};
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::path::PathBuf;

/// A file of `testing/golden/tsfile/`.
#[allow(dead_code, reason = "not every test reads golden files")]
pub(crate) fn golden(name: &str) -> PathBuf {
    marigram_fixtures::golden_path(&format!("tsfile/{name}"))
}

/// All rows of a file, sorted; those of the same device and time are joined.
pub(crate) fn dump(input: impl Read + Seek) -> Result<Vec<String>> {
    let mut rows: BTreeMap<(String, i64), BTreeMap<String, String>> = BTreeMap::new();
    let mut reader = TsFileReader::open(input)?;
    while let Some(block) = reader.next_block()? {
        let device = device(&block);
        for (row, time) in block.times.iter().enumerate() {
            let values = rows.entry((device.clone(), *time)).or_default();
            for column in block.columns.iter().filter(|column| column.is_valid(row)) {
                values.insert(column.name.to_string(), text(column, row));
            }
        }
    }
    let mut lines: Vec<String> = rows
        .into_iter()
        .map(|((device, time), values)| {
            let values = values
                .into_iter()
                .map(|(name, value)| format!(" {name}={value}"));
            format!("{device} {time}{}", values.collect::<String>())
        })
        .collect();
    lines.sort();
    Ok(lines)
}

fn device(block: &DeviceBlock) -> String {
    let segments = &block.device.segments;
    let texts: Vec<&str> = segments
        .iter()
        .map(|s| s.as_deref().unwrap_or("null"))
        .collect();
    // A path is one word here, because versions divide it into segments differently.
    texts.join(if texts[0].starts_with("root") {
        "."
    } else {
        ","
    })
}

/// The value of a column in a row.
pub(crate) fn text(column: &DeviceColumn, row: usize) -> String {
    match &column.values {
        ColumnValues::Bool(values) => values[row].to_string(),
        ColumnValues::I32(values) => values[row].to_string(),
        ColumnValues::I64(values) => values[row].to_string(),
        ColumnValues::F32(values) if values[row].is_nan() => "nan".to_owned(),
        ColumnValues::F32(values) => format!("{:08x}", values[row].to_bits()),
        ColumnValues::F64(values) if values[row].is_nan() => "nan".to_owned(),
        ColumnValues::F64(values) => format!("{:016x}", values[row].to_bits()),
        ColumnValues::Bytes(values) => {
            let bytes = values.get(row).unwrap_or_default().iter();
            bytes.fold("x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        }
    }
}
