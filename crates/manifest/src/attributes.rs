//! Attributes of tables and columns: keys with values, for what format version 1 has no field.
//!
//! A setting that has its default is not written. A reader refuses keys that it does not know,
//! since it would lose them on the next rewrite. The keys stand in `docs/formats/catalog.md`.

use crate::bytes::{MalformedRecord, RecordReader, malformed, put_count, put_text};
use marigram_codec::{Compressor, Encoding};
use marigram_model::{
    ColdCodec, ColumnCodec, ColumnId, Rollup, SeriesIdentity, TableColumn, TableId, TableOptions,
    TableSchema, View, ViewColumn,
};

/// Keys of a table.
const PAGE_BYTES: u16 = 1;
const TABLE_ENCODING: u16 = 2;
const TABLE_COMPRESSOR: u16 = 3;
const COLD_CODEC: u16 = 4;
const IDENTITY: u16 = 5;
const ROLLUP: u16 = 6;
const ZONED: u16 = 7;
const DROPPED_MAX: u16 = 8;
const VIEW: u16 = 9;
const DECLARED: u16 = 10;

/// Keys of a field.
const FIELD_ENCODING: u16 = 1;
const FIELD_COMPRESSOR: u16 = 2;

/// The value of [`COLD_CODEC`] for [`ColdCodec::Auto`].
const COLD_AUTO: u8 = 1;
/// Fewest bytes of a column of a view: two texts.
const VIEW_COLUMN_BYTES_MIN: usize = 8;
/// The roles of columns in the value of [`DECLARED`].
const TIME_COLUMN: u8 = 0;
const TAG_COLUMN: u8 = 1;
const FIELD_COLUMN: u8 = 2;
/// The value of [`IDENTITY`] for [`SeriesIdentity::Sha256`].
const IDENTITY_SHA256: u8 = 1;

/// The attributes of a table, decoded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TableAttributes {
    /// The settings that are attributes, the others with their defaults.
    pub(crate) options: TableOptions,
    /// How it is derived, if it is a rollup.
    pub(crate) rollup: Option<Rollup>,
    /// Its query, if it is a view.
    pub(crate) view: Option<View>,
    /// Highest id of a field that was dropped.
    pub(crate) dropped_max: u32,
    /// The order in which its columns were declared.
    pub(crate) declared: Vec<TableColumn>,
}

pub(crate) fn put_table_attributes(table: &TableSchema, out: &mut Vec<u8>) {
    let (options, rollup) = (&table.options, table.rollup.as_deref());
    let mut list = AttributeList::default();
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
    if table.dropped_max > 0 {
        list.put(DROPPED_MAX, &table.dropped_max.to_le_bytes());
    }
    if let Some(view) = table.view.as_deref() {
        list.put(VIEW, &view_bytes(view));
    }
    if !table.declared.is_empty() {
        list.put(DECLARED, &declared_bytes(&table.declared));
    }
    list.write(out);
}

fn declared_bytes(columns: &[TableColumn]) -> Vec<u8> {
    let mut value = Vec::new();
    for column in columns {
        let (role, number) = match column {
            TableColumn::Time => (TIME_COLUMN, 0),
            TableColumn::Tag(ordinal) => (TAG_COLUMN, u32::from(*ordinal)),
            TableColumn::Field(id) => (FIELD_COLUMN, id.0),
        };
        value.push(role);
        value.extend_from_slice(&number.to_le_bytes());
    }
    value
}

fn declared_column(value: &mut RecordReader<'_>) -> Result<TableColumn, MalformedRecord> {
    let (role, number) = (value.byte()?, value.u32()?);
    match (role, u16::try_from(number)) {
        (TIME_COLUMN, Ok(0)) => Ok(TableColumn::Time),
        (TAG_COLUMN, Ok(ordinal)) => Ok(TableColumn::Tag(ordinal)),
        (FIELD_COLUMN, _) => Ok(TableColumn::Field(ColumnId(number))),
        _ => malformed(format!(
            "no column has the role {role} and the number {number}"
        )),
    }
}

fn view_bytes(view: &View) -> Vec<u8> {
    let mut value = Vec::new();
    put_text(&view.query, &mut value);
    put_count(view.columns.len(), &mut value);
    for column in &view.columns {
        put_text(&column.of_query, &mut value);
        put_text(&column.name, &mut value);
    }
    put_count(view.reads.len(), &mut value);
    for id in &view.reads {
        value.extend_from_slice(&id.0.to_le_bytes());
    }
    value
}

fn view(value: &mut RecordReader<'_>) -> Result<View, MalformedRecord> {
    let query = value.text()?;
    let (mut columns, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..value.u32_count(VIEW_COLUMN_BYTES_MIN)? {
        columns.push(ViewColumn {
            of_query: value.text()?,
            name: value.text()?,
        });
    }
    for _ in 0..value.u32_count(size_of::<u32>())? {
        reads.push(TableId(value.u32()?));
    }
    if !reads.is_sorted_by(|a, b| a < b) {
        return malformed("what a view reads is out of order");
    }
    Ok(View {
        query,
        columns,
        reads,
    })
}

pub(crate) fn read_table_attributes(
    reader: &mut RecordReader<'_>,
) -> Result<TableAttributes, MalformedRecord> {
    let mut table = TableAttributes::default();
    let TableAttributes {
        options,
        rollup,
        view: query,
        dropped_max,
        declared,
    } = &mut table;
    read_list(reader, "table", |key, value| {
        match key {
            PAGE_BYTES => options.page_bytes = value.u32()?,
            TABLE_ENCODING => options.encoding = Some(encoding(value)?),
            TABLE_COMPRESSOR => options.compressor = Some(compressor(value)?),
            COLD_CODEC => match value.byte()? {
                COLD_AUTO => options.cold_codec = ColdCodec::Auto,
                other => return malformed(format!("no cold codec has the number {other}")),
            },
            IDENTITY => match value.byte()? {
                IDENTITY_SHA256 => options.identity = SeriesIdentity::Sha256,
                other => return malformed(format!("no series identity has the number {other}")),
            },
            ROLLUP => {
                *rollup = Some(Rollup {
                    source: TableId(value.u32()?),
                    query: value.text()?,
                    cell_ns: value.i64()?,
                    cell_origin_ns: value.i64()?,
                    refresh_ns: value.i64()?,
                    lag_ns: value.i64()?,
                });
            }
            ZONED => {
                while !value.is_empty() {
                    let id = ColumnId(value.u32()?);
                    if options.zoned.last().is_some_and(|last| *last >= id) {
                        return malformed("the columns with a zone are out of order".to_owned());
                    }
                    options.zoned.push(id);
                }
            }
            DROPPED_MAX => *dropped_max = value.u32()?,
            VIEW => *query = Some(view(value)?),
            DECLARED => {
                while !value.is_empty() {
                    declared.push(declared_column(value)?);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(table)
}

pub(crate) fn put_field_attributes(codec: ColumnCodec, out: &mut Vec<u8>) {
    let mut list = AttributeList::default();
    if let Some(encoding) = codec.encoding {
        list.put(FIELD_ENCODING, &[encoding as u8]);
    }
    if let Some(compressor) = codec.compressor {
        list.put(FIELD_COMPRESSOR, &[compressor as u8]);
    }
    list.write(out);
}

pub(crate) fn read_field_attributes(
    reader: &mut RecordReader<'_>,
) -> Result<ColumnCodec, MalformedRecord> {
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
    AttributeList::default().write(out);
}

/// Reads the attribute list of a tag, which must be empty.
pub(crate) fn no_attributes(reader: &mut RecordReader<'_>) -> Result<(), MalformedRecord> {
    read_list(reader, "tag", |_, _| Ok(false))
}

fn encoding(value: &mut RecordReader<'_>) -> Result<Encoding, MalformedRecord> {
    let number = value.byte()?;
    match Encoding::from_number(number) {
        Some(encoding) => Ok(encoding),
        None => malformed(format!("no encoding has the number {number}")),
    }
}

fn compressor(value: &mut RecordReader<'_>) -> Result<Compressor, MalformedRecord> {
    let number = value.byte()?;
    match Compressor::from_number(number) {
        Some(compressor) => Ok(compressor),
        None => malformed(format!("no compressor has the number {number}")),
    }
}

/// Attributes being written.
#[derive(Default)]
struct AttributeList {
    count: u16,
    bytes: Vec<u8>,
}

impl AttributeList {
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
    reader: &mut RecordReader<'_>,
    what: &str,
    mut take: impl FnMut(u16, &mut RecordReader<'_>) -> Result<bool, MalformedRecord>,
) -> Result<(), MalformedRecord> {
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
        value.end()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn schema(attributes: TableAttributes) -> TableSchema {
        TableSchema {
            id: TableId(1),
            database: "d".to_owned(),
            name: "t".to_owned(),
            time_name: "time".to_owned(),
            tags: Vec::new(),
            fields: Vec::new(),
            options: attributes.options,
            rollup: attributes.rollup.map(Arc::new),
            view: attributes.view.map(Arc::new),
            dropped_max: attributes.dropped_max,
            declared: attributes.declared,
        }
    }

    fn table(bytes: &[u8]) -> Result<TableAttributes, String> {
        let mut reader = RecordReader::new(bytes);
        let table = read_table_attributes(&mut reader).map_err(|error| error.to_string())?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(table)
    }

    #[test]
    fn settings_come_back_and_defaults_take_no_bytes() {
        let mut out = Vec::new();
        put_table_attributes(&schema(TableAttributes::default()), &mut out);
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
        let view = View {
            query: "SELECT x AS \"ü\" FROM t".to_owned(),
            columns: vec![ViewColumn {
                of_query: "ü".to_owned(),
                name: "y".to_owned(),
            }],
            reads: vec![TableId(3), TableId(9)],
        };
        let all = || TableAttributes {
            options: all.clone(),
            rollup: Some(rollup.clone()),
            view: Some(view.clone()),
            dropped_max: 12,
            declared: vec![
                TableColumn::Field(ColumnId(u32::MAX)),
                TableColumn::Tag(u16::MAX),
                TableColumn::Time,
            ],
        };
        let mut out = Vec::new();
        put_table_attributes(&schema(all()), &mut out);
        assert_eq!(table(&out), Ok(all()));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let one = |key: u8, value: &[u8]| {
            let mut bytes = vec![1, 0, key, 0, value.len() as u8, 0, 0, 0];
            bytes.extend_from_slice(value);
            table(&bytes).unwrap_err()
        };
        assert!(one(11, &[1]).contains("attribute (11) that this Marigram does not know"));
        assert!(one(2, &[200]).contains("no encoding has the number 200"));
        assert!(one(3, &[200]).contains("no compressor"));
        assert!(one(4, &[0]).contains("no cold codec"));
        assert!(one(5, &[7]).contains("no series identity"));
        assert!(one(7, &[0; 3]).contains("ends early"));
        assert!(one(7, &[1, 0, 0, 0, 1, 0, 0, 0]).contains("out of order"));
        assert!(one(10, &[1, 0, 0]).contains("ends early"));
        assert!(one(10, &[3, 0, 0, 0, 0]).contains("no column has the role 3"));
        assert!(one(10, &[0, 1, 0, 0, 0]).contains("no column has the role 0 and the number 1"));
        assert!(one(10, &[1, 0, 0, 1, 0]).contains("no column has the role 1"));
        assert!(one(1, &[0; 3]).contains("ends early"));
        assert!(one(1, &[0; 5]).contains("left over"));
        let twice = [2, 0, 2, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0];
        assert!(table(&twice).unwrap_err().contains("out of order"));
        let long = [1, 0, 2, 0, 255, 255, 255, 255];
        assert!(table(&long).is_err());
    }
}
