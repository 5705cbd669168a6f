//! The data after the rows of a file: schemas, and the index from devices to their chunks.

use crate::bytes::{Cursor, TsFileBytes as _};
use crate::error::{PartError, PartResult};
use crate::kinds::{DataType, VECTOR};
use crate::statistics;
use crate::values::{ColumnCategory, ColumnSchema, DeviceId, TsFileTableSchema};
use std::sync::Arc;

/// The versions that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileVersion {
    /// Devices are paths.
    V3,
    /// Devices are segments; tables have schemas.
    V4,
}

/// The kind of an index node's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Nodes of devices.
    InternalDevice,
    /// A device's node of measurements.
    LeafDevice,
    /// Nodes of measurements.
    InternalMeasurement,
    /// The metadata of series.
    LeafMeasurement,
}

/// A node of the index: the start of each child, and the end of the last one.
#[derive(Debug)]
pub(super) struct IndexNode<K> {
    pub(super) children: Vec<(K, u64)>,
    pub(super) end: u64,
    pub(super) kind: NodeKind,
}

impl<K> IndexNode<K> {
    fn parse(
        cursor: &mut Cursor<'_>,
        key: impl Fn(&mut Cursor<'_>) -> PartResult<K>,
    ) -> PartResult<Self> {
        let count = cursor.list_count()?;
        let mut children = Vec::new();
        for _ in 0..count {
            children.push((key(cursor)?, offset(cursor)?));
        }
        let end = offset(cursor)?;
        let kind = match cursor.byte()? {
            0 => NodeKind::InternalDevice,
            1 => NodeKind::LeafDevice,
            2 => NodeKind::InternalMeasurement,
            3 => NodeKind::LeafMeasurement,
            _ => return Err(PartError::Wrong("a node of the index is of no known kind")),
        };
        Ok(Self {
            children,
            end,
            kind,
        })
    }

    /// The bytes of child `at`: offset and length.
    pub(super) fn child(&self, at: usize) -> PartResult<(u64, u64)> {
        const ORDER: PartError =
            PartError::Wrong("the children of a node of the index are in no order");
        let begin = self.children.get(at).ok_or(ORDER)?.1;
        let end = self.children.get(at + 1).map_or(self.end, |next| next.1);
        match end.checked_sub(begin) {
            Some(len) if len > 0 => Ok((begin, len)),
            _ => Err(ORDER),
        }
    }
}

pub(super) fn device_node(
    cursor: &mut Cursor<'_>,
    version: FileVersion,
) -> PartResult<IndexNode<DeviceId>> {
    IndexNode::parse(cursor, |cursor| device(cursor, version))
}

/// Parses a node of measurements; their names are repeated in their metadata.
pub(super) fn measurement_node(cursor: &mut Cursor<'_>) -> PartResult<IndexNode<()>> {
    IndexNode::parse(cursor, |cursor| cursor.var_bytes().map(drop))
}

fn offset(cursor: &mut Cursor<'_>) -> PartResult<u64> {
    u64::try_from(cursor.i64_be()?).map_err(|_| PartError::Wrong("an offset is negative"))
}

fn device(cursor: &mut Cursor<'_>, version: FileVersion) -> PartResult<DeviceId> {
    let segments = match version {
        FileVersion::V3 => vec![Some(cursor.var_name()?)],
        FileVersion::V4 => {
            let count = cursor.list_count()?;
            (0..count)
                .map(|_| cursor.var_text())
                .collect::<PartResult<_>>()?
        }
    };
    Ok(DeviceId::from_segments(segments))
}

/// The metadata at the end of a file.
pub(super) struct FileMetadata {
    /// The roots of the index.
    pub(super) roots: Vec<IndexNode<DeviceId>>,
    /// The tables that have a schema.
    pub(super) tables: Vec<TsFileTableSchema>,
}

impl FileMetadata {
    pub(super) fn parse(bytes: &[u8], version: FileVersion) -> PartResult<Self> {
        let mut cursor = Cursor::new(bytes);
        let (mut roots, mut tables) = (Vec::new(), Vec::new());
        match version {
            FileVersion::V3 => roots.push(device_node(&mut cursor, version)?),
            FileVersion::V4 => {
                for _ in 0..cursor.list_count()? {
                    cursor.var_bytes()?;
                    roots.push(device_node(&mut cursor, version)?);
                }
                for _ in 0..cursor.list_count()? {
                    tables.push(table(&mut cursor)?);
                }
            }
        }
        offset(&mut cursor)?;
        if version == FileVersion::V4 {
            refuse_encrypted(&mut cursor)?;
        }
        Ok(Self { roots, tables })
    }
}

/// Skips the filter of series, and checks the one relevant property.
fn refuse_encrypted(cursor: &mut Cursor<'_>) -> PartResult<()> {
    if cursor.is_empty() {
        return Ok(());
    }
    let filter = cursor.varint32()? as usize;
    if filter > 0 {
        cursor.take(filter)?;
        cursor.varint32()?;
        cursor.varint32()?;
    }
    if cursor.is_empty() {
        return Ok(());
    }
    // Libraries disagree about the form of the count, so the end of the bytes ends the properties.
    cursor.varint32()?;
    while !cursor.is_empty() {
        let (key, value) = (cursor.var_bytes()?, cursor.var_bytes()?);
        if key == Some(b"encryptLevel") && value.is_some_and(|level| level != b"0") {
            return Err(PartError::Unsupported("an encrypted file".to_owned()));
        }
    }
    Ok(())
}

fn table(cursor: &mut Cursor<'_>) -> PartResult<TsFileTableSchema> {
    let name = cursor.var_name()?;
    let mut columns = Vec::new();
    for _ in 0..cursor.list_count()? {
        let name = cursor.long_text()?;
        let data_type = DataType::from_number(cursor.byte()?)?;
        // Encoding and compressor: each chunk has its own.
        cursor.take(2)?;
        for _ in 0..cursor.i32_be()?.max(0) {
            cursor.long_bytes()?;
            cursor.long_bytes()?;
        }
        let category = match cursor.i32_be()? {
            0 => ColumnCategory::Tag,
            1 => ColumnCategory::Field,
            2 => ColumnCategory::Attribute,
            3 => ColumnCategory::Time,
            _ => return Err(PartError::Wrong("a column is of no known category")),
        };
        columns.push(ColumnSchema {
            name,
            data_type,
            category,
        });
    }
    Ok(TsFileTableSchema { name, columns })
}

/// A series of a device, with the start of its chunks.
#[derive(Debug)]
pub(super) struct SeriesChunks {
    pub(super) name: Arc<str>,
    pub(super) is_time: bool,
    pub(super) chunks: Vec<u64>,
}

impl SeriesChunks {
    /// The bit that marks the time column of an aligned device.
    const TIME: u8 = 0x80;

    pub(super) fn parse(cursor: &mut Cursor<'_>) -> PartResult<Self> {
        let mask = cursor.byte()?;
        let name = cursor.var_text()?.unwrap_or_default();
        let number = cursor.byte()?;
        let len = cursor.varint32()? as usize;
        statistics::skip(cursor, number)?;
        let mut list = Cursor::new(cursor.take(len)?);
        let has_statistics = mask & 0x3f != 0;
        let mut chunks = Vec::new();
        while !list.is_empty() {
            chunks.push(offset(&mut list)?);
            if has_statistics {
                statistics::skip(&mut list, number)?;
            }
        }
        chunks.sort_unstable();
        Ok(Self {
            name: name.into(),
            // One library marks times with the bit, another with their type.
            is_time: mask & Self::TIME != 0 || number == VECTOR,
            chunks,
        })
    }
}
