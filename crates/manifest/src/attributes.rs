//! Attributes of tables and columns: what format version 1 had no place for, as keys with values.
//!
//! A setting that has its default is not written. A reader refuses keys that it does not know,
//! since it would lose them on the next rewrite. The keys stand in `docs/formats/catalog.md`.

use crate::bytes::{Malformed, Reader, malformed, put_count, put_text};
use marigram_codec::{Compressor, Encoding};
use marigram_model::{
    ColdCodec, ColumnCodec, ColumnId, Rollup, SeriesIdentity, TableId, TableOptions,
};

/// Keys of a table.
const PAGE_BYTES: u16 = 1;
const TABLE_ENCODING: u16 = 2;
const TABLE_COMPRESSOR: u16 = 3;
const COLD_CODEC: u16 = 4;
const IDENTITY: u16 = 5;
const ROLLUP: u16 = 6;
const ZONED: u16 = 7;

/// Keys of a field.
const FIELD_ENCODING: u16 = 1;
const FIELD_COMPRESSOR: u16 = 2;

/// The value of [`COLD_CODEC`] for [`ColdCodec::Auto`].
const COLD_AUTO: u8 = 1;
/// The value of [`IDENTITY`] for [`SeriesIdentity::Sha256`].
const IDENTITY_SHA256: u8 = 1;

pub(crate) fn put_table_attributes(
    options: &TableOptions,
    rollup: Option<&Rollup>,
    out: &mut Vec<u8>,
) {
    let mut list = List::default();
    if options.page_bytes != TableOptions::PAGE_BYTES {
        list.put(PAGE_BYTES, &options.page_bytes.to_le_bytes());
    }
    if let Some(encoding) = options.encoding {
        list.put(TABLE_ENCODING, &[encoding as u8]);
    }
    if let Some(compressor) = options.compressor {
        list.put(TABLE_COMPRESSOR, &[compressor as u8]);
    }
    match options.cold_codec {
        ColdCodec::Same => {}
        ColdCodec::Auto => list.put(COLD_CODEC, &[COLD_AUTO]),
    }
    match options.identity {
        SeriesIdentity::Plain => {}
        SeriesIdentity::Sha256 => list.put(IDENTITY, &[IDENTITY_SHA256]),
    }
    if let Some(rollup) = rollup {
        let mut value = rollup.source.0.to_le_bytes().to_vec();
        put_text(&rollup.query, &mut value);
        for number in [
            rollup.cell_ns,
            rollup.cell_origin_ns,
            rollup.refresh_ns,
            rollup.lag_ns,
        ] {
            value.extend_from_slice(&number.to_le_bytes());
        }
        list.put(ROLLUP, &value);
    }
    if !options.zoned.is_empty() {
        let ids = options.zoned.iter().flat_map(|id| id.0.to_le_bytes());
        list.put(ZONED, &ids.collect::<Vec<u8>>());
    }
    list.write(out);
}

/// The settings of a table that are attributes, the others with their defaults; and what it is
/// kept from.
pub(crate) fn read_table_attributes(
    reader: &mut Reader<'_>,
) -> Result<(TableOptions, Option<Rollup>), Malformed> {
    let mut options = TableOptions::default();
    let mut rollup = None;
    read_list(reader, "table", |key, value| {
        match key {
            PAGE_BYTES => options.page_bytes = value.u32()?,
            TABLE_ENCODING => options.encoding = Some(encoding(value)?),
            TABLE_COMPRESSOR => options.compressor = Some(compressor(value)?),
            COLD_CODEC => match value.u8()? {
                COLD_AUTO => options.cold_codec = ColdCodec::Auto,
                other => return malformed(format!("no cold codec has the number {other}")),
            },
            IDENTITY => match value.u8()? {
                IDENTITY_SHA256 => options.identity = SeriesIdentity::Sha256,
                other => return malformed(format!("no series identity has the number {other}")),
            },
            ROLLUP => {
                rollup = Some(Rollup {
                    source: TableId(value.u32()?),
                    query: value.text()?,
                    cell_ns: value.i64()?,
                    cell_origin_ns: value.i64()?,
                    refresh_ns: value.i64()?,
                    lag_ns: value.i64()?,
                });
            }
            ZONED => {
                while !value.is_at_end() {
                    let id = ColumnId(value.u32()?);
                    if options.zoned.last().is_some_and(|last| *last >= id) {
                        return malformed("the columns with a zone are out of order".to_owned());
                    }
                    options.zoned.push(id);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((options, rollup))
}

pub(crate) fn put_field_attributes(codec: ColumnCodec, out: &mut Vec<u8>) {
    let mut list = List::default();
    if let Some(encoding) = codec.encoding {
        list.put(FIELD_ENCODING, &[encoding as u8]);
    }
    if let Some(compressor) = codec.compressor {
        list.put(FIELD_COMPRESSOR, &[compressor as u8]);
    }
    list.write(out);
}

pub(crate) fn read_field_attributes(reader: &mut Reader<'_>) -> Result<ColumnCodec, Malformed> {
    let mut codec = ColumnCodec::default();
    read_list(reader, "field", |key, value| {
        match key {
            FIELD_ENCODING => codec.encoding = Some(encoding(value)?),
            FIELD_COMPRESSOR => codec.compressor = Some(compressor(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(codec)
}

pub(crate) fn put_no_attributes(out: &mut Vec<u8>) {
    List::default().write(out);
}

/// Reads the attributes of what has none, a tag.
pub(crate) fn no_attributes(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    read_list(reader, "tag", |_, _| Ok(false))
}

fn encoding(value: &mut Reader<'_>) -> Result<Encoding, Malformed> {
    let number = value.u8()?;
    match Encoding::from_number(number) {
        Some(encoding) => Ok(encoding),
        None => malformed(format!("no encoding has the number {number}")),
    }
}

fn compressor(value: &mut Reader<'_>) -> Result<Compressor, Malformed> {
    let number = value.u8()?;
    match Compressor::from_number(number) {
        Some(compressor) => Ok(compressor),
        None => malformed(format!("no compressor has the number {number}")),
    }
}

/// Attributes on their way out.
#[derive(Default)]
struct List {
    count: u16,
    bytes: Vec<u8>,
}

impl List {
    /// Appends an attribute; keys ascending.
    fn put(&mut self, key: u16, value: &[u8]) {
        self.count += 1;
        self.bytes.extend_from_slice(&key.to_le_bytes());
        put_count(value.len(), &mut self.bytes);
        self.bytes.extend_from_slice(value);
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.bytes);
    }
}

/// Reads attributes of a `what`; `take` reads a value whole and says whether it knows the key.
fn read_list(
    reader: &mut Reader<'_>,
    what: &str,
    mut take: impl FnMut(u16, &mut Reader<'_>) -> Result<bool, Malformed>,
) -> Result<(), Malformed> {
    let mut last = None;
    for _ in 0..reader.u16()? {
        let key = reader.u16()?;
        if last.is_some_and(|last| last >= key) {
            return malformed(format!("attribute {key} of a {what} is out of order"));
        }
        last = Some(key);
        let mut value = reader.part()?;
        if !take(key, &mut value)? {
            return malformed(format!(
                "a {what} has an attribute ({key}) that this Marigram does not know"
            ));
        }
        value.finish()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(bytes: &[u8]) -> Result<(TableOptions, Option<Rollup>), String> {
        let mut reader = Reader::new(bytes);
        let table = read_table_attributes(&mut reader).map_err(|error| error.to_string())?;
        reader.finish().map_err(|error| error.to_string())?;
        Ok(table)
    }

    #[test]
    fn settings_come_back_and_defaults_take_no_bytes() {
        let mut out = Vec::new();
        put_table_attributes(&TableOptions::default(), None, &mut out);
        assert_eq!(out, [0, 0]);
        let all = TableOptions {
            page_bytes: 1024,
            encoding: Some(Encoding::Plain),
            compressor: Some(Compressor::Zstd),
            cold_codec: ColdCodec::Auto,
            identity: SeriesIdentity::Sha256,
            zoned: vec![ColumnId::TIME, ColumnId(3)],
            ..TableOptions::default()
        };
        let rollup = Rollup {
            source: TableId(7),
            query: "SELECT 1".to_owned(),
            cell_ns: 60,
            cell_origin_ns: -3,
            refresh_ns: 10,
            lag_ns: 0,
        };
        let mut out = Vec::new();
        put_table_attributes(&all, Some(&rollup), &mut out);
        assert_eq!(table(&out), Ok((all, Some(rollup))));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let one = |key: u8, value: &[u8]| {
            let mut bytes = vec![1, 0, key, 0, value.len() as u8, 0, 0, 0];
            bytes.extend_from_slice(value);
            table(&bytes).unwrap_err()
        };
        assert!(one(9, &[1]).contains("attribute (9) that this Marigram does not know"));
        assert!(one(2, &[200]).contains("no encoding has the number 200"));
        assert!(one(3, &[200]).contains("no compressor"));
        assert!(one(4, &[0]).contains("no cold codec"));
        assert!(one(5, &[7]).contains("no series identity"));
        assert!(one(7, &[0; 3]).contains("ends early"));
        assert!(one(7, &[1, 0, 0, 0, 1, 0, 0, 0]).contains("out of order"));
        assert!(one(1, &[0; 3]).contains("ends early"));
        assert!(one(1, &[0; 5]).contains("left over"));
        let twice = [2, 0, 2, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0];
        assert!(table(&twice).unwrap_err().contains("out of order"));
        let long = [1, 0, 2, 0, 255, 255, 255, 255];
        assert!(table(&long).is_err());
    }
}
