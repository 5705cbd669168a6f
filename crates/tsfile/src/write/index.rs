//! Writes the index from devices to the metadata of their series, and the rest of the file's end.

use super::bloom::BloomFilter;
use super::out::PositionedWriter;
use crate::bytes::{put_i32, put_i64, put_uvar, put_var_bytes, put_var_text};
use crate::error::{Result, TsFileError};
use crate::read::MAGIC;
use crate::values::{ColumnCategory, DeviceId, TsFileTableSchema};
use std::io::{Read, Seek, SeekFrom, Write};

/// Children of a node, as in other libraries.
const DEGREE: usize = 256;
const SEPARATOR: u8 = 2;

const INTERNAL_DEVICE: u8 = 0;
const LEAF_DEVICE: u8 = 1;
const INTERNAL_MEASUREMENT: u8 = 2;
const LEAF_MEASUREMENT: u8 = 3;

/// The metadata of series in the order of their devices, stored outside of memory until the end.
pub(super) struct SeriesMetadataList<S> {
    scratch: S,
    /// The devices, ascending, with the number of series of each.
    devices: Vec<(DeviceId, u32)>,
    series: u64,
}

/// A node under construction: its children by their encoded keys.
struct IndexNodeWriter {
    kind: u8,
    children: Vec<(Vec<u8>, u64)>,
    end: u64,
}

impl IndexNodeWriter {
    fn put(&self, out: &mut Vec<u8>) {
        put_uvar(self.children.len() as u32, out);
        for (key, offset) in &self.children {
            out.extend_from_slice(key);
            put_i64(*offset as i64, out);
        }
        put_i64(self.end as i64, out);
        out.push(self.kind);
    }

    /// Nodes of at most [`DEGREE`] children, with the end position of each.
    fn split(kind: u8, children: Vec<(Vec<u8>, u64)>, end: u64) -> Vec<Self> {
        let mut nodes: Vec<Self> = Vec::new();
        for child in children {
            match nodes.last_mut() {
                Some(node) if node.children.len() < DEGREE => node.children.push(child),
                last => {
                    if let Some(node) = last {
                        node.end = child.1;
                    }
                    nodes.push(Self {
                        kind,
                        children: vec![child],
                        end,
                    });
                }
            }
        }
        nodes
    }

    /// The root above `nodes`: writes all nodes except the root itself, level by level.
    fn root<W: Write>(
        mut nodes: Vec<Self>,
        kind: u8,
        out: &mut PositionedWriter<W>,
    ) -> Result<Option<Self>> {
        while nodes.len() > 1 {
            let mut parents = Vec::with_capacity(nodes.len());
            for node in &mut nodes {
                let key = node
                    .children
                    .first_mut()
                    .map(|child| std::mem::take(&mut child.0));
                let key = key.unwrap_or_default();
                let place = out.position();
                if let Some(child) = node.children.first_mut() {
                    child.0.clone_from(&key);
                }
                let mut bytes = Vec::new();
                node.put(&mut bytes);
                out.write(&bytes)?;
                parents.push((key, place));
            }
            nodes = Self::split(kind, parents, out.position());
        }
        Ok(nodes.pop())
    }
}

impl<S: Read + Write + Seek> SeriesMetadataList<S> {
    pub(super) fn new(scratch: S) -> Self {
        Self {
            scratch,
            devices: Vec::new(),
            series: 0,
        }
    }

    /// The device whose series were added last.
    pub(super) fn last_device(&self) -> Option<&DeviceId> {
        self.devices.last().map(|(device, _)| device)
    }

    /// Adds a device with the names of its series and their metadata, in the order of the names.
    pub(super) fn add(&mut self, device: DeviceId, series: &[(&str, Vec<u8>)]) -> Result<()> {
        let mut record = Vec::new();
        for (name, metadata) in series {
            put_i32(name.len() as i32, &mut record);
            put_i32(metadata.len() as i32, &mut record);
            record.extend_from_slice(name.as_bytes());
            record.extend_from_slice(metadata);
        }
        self.scratch.write_all(&record)?;
        self.devices.push((device, series.len() as u32));
        self.series += series.len() as u64;
        Ok(())
    }

    /// Writes everything after the rows.
    pub(super) fn finish<W: Write>(
        mut self,
        table: &TsFileTableSchema,
        out: &mut PositionedWriter<W>,
    ) -> Result<()> {
        self.scratch.flush()?;
        self.scratch.seek(SeekFrom::Start(0))?;
        let separator = out.position();
        out.write(&[SEPARATOR])?;
        let mut bloom = BloomFilter::new(self.series + self.devices.len() as u64);
        // The nodes of measurements come after the metadata of all series.
        let (mut nodes, mut ends) = (Vec::new(), Vec::with_capacity(self.devices.len()));
        for (device, series) in &self.devices {
            let path = device.path();
            let mut children = Vec::new();
            for at in 0..*series as usize {
                let (name, metadata) = next_series(&mut self.scratch)?;
                bloom.add(&[&path, ".", &name].concat());
                if name.is_empty() {
                    bloom.add(&path);
                }
                if at % DEGREE == 0 {
                    let mut key = Vec::new();
                    put_var_text(&name, &mut key);
                    children.push((key, out.position()));
                }
                out.write(&metadata)?;
            }
            let leaves = IndexNodeWriter::split(LEAF_MEASUREMENT, children, out.position());
            if let Some(root) = IndexNodeWriter::root(leaves, INTERNAL_MEASUREMENT, out)? {
                root.put(&mut nodes);
            }
            ends.push(nodes.len());
        }
        let base = out.position();
        out.write(&nodes)?;
        let mut begin = 0;
        let mut children = Vec::with_capacity(self.devices.len());
        for ((device, _), end) in self.devices.iter().zip(ends) {
            let mut key = Vec::new();
            put_device(device, &mut key);
            children.push((key, base + begin as u64));
            begin = end;
        }
        let leaves = IndexNodeWriter::split(LEAF_DEVICE, children, out.position());
        let root = IndexNodeWriter::root(leaves, INTERNAL_DEVICE, out)?;

        let mut end = Vec::new();
        put_uvar(u32::from(root.is_some()), &mut end);
        if let Some(root) = root {
            put_var_text(&table.name, &mut end);
            root.put(&mut end);
        }
        put_uvar(1, &mut end);
        put_table(table, &mut end);
        put_i64(separator as i64, &mut end);
        bloom.put(&mut end);
        // No properties.
        put_uvar(0, &mut end);
        let size = i32::try_from(end.len()).map_err(|_| {
            TsFileError::Invalid("the end of the file would take more than 2 GiB".to_owned())
        })?;
        put_i32(size, &mut end);
        end.extend_from_slice(MAGIC);
        out.write(&end)
    }
}

fn next_series(scratch: &mut impl Read) -> Result<(String, Vec<u8>)> {
    let mut len = || -> Result<usize> {
        let mut bytes = [0; 4];
        scratch.read_exact(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes) as usize)
    };
    let (name_len, metadata_len) = (len()?, len()?);
    let mut name = vec![0; name_len];
    let mut metadata = vec![0; metadata_len];
    scratch.read_exact(&mut name)?;
    scratch.read_exact(&mut metadata)?;
    Ok((String::from_utf8_lossy(&name).into_owned(), metadata))
}

/// Appends the segments of a device.
pub(super) fn put_device(device: &DeviceId, out: &mut Vec<u8>) {
    put_uvar(device.segments.len() as u32, out);
    for segment in &device.segments {
        put_var_bytes(segment.as_ref().map(String::as_bytes), out);
    }
}

fn put_table(table: &TsFileTableSchema, out: &mut Vec<u8>) {
    put_var_text(&table.name, out);
    put_uvar(table.columns.len() as u32, out);
    for column in &table.columns {
        put_i32(column.name.len() as i32, out);
        out.extend_from_slice(column.name.as_bytes());
        // PLAIN and UNCOMPRESSED mean here that each chunk has its own, and no properties follow.
        out.extend([column.data_type.number(), 0, 0]);
        put_i32(0, out);
        let category = match column.category {
            ColumnCategory::Tag => 0,
            ColumnCategory::Field => 1,
            ColumnCategory::Attribute => 2,
            ColumnCategory::Time => 3,
        };
        put_i32(category, out);
    }
}
