//! Reads a file: walks the index from device to device, and returns the pages of each as rows.
//!
//! Memory holds a path through the index, the locations of one device's chunks, and one page of
//! each of its columns.

mod chunk;
mod input;
mod metadata;

pub use metadata::FileVersion;

use crate::bytes::Cursor;
use crate::error::{PartError, Result, TsFileError};
use crate::values::{DeviceBlock, DeviceColumn, DeviceId, TsFileTableSchema};
use chunk::ChunkRead;
use input::FileInput;
use metadata::{FileMetadata, IndexNode, NodeKind, SeriesChunks};
use std::collections::VecDeque;
use std::io::{Read, Seek};
use std::sync::Arc;

pub(crate) const MAGIC: &[u8; 6] = b"TsFile";

/// Most levels of an index; with 256 entries per node, more than four are impossible in practice.
const DEPTH_MAX: usize = 16;
/// Largest node of the index, and largest series metadata for one entry.
const NODE_BYTES_MAX: u64 = 64 << 20;
/// Unaligned series whose pages are read side by side.
const SIDE_BY_SIDE: usize = 64;

/// An open file.
pub struct TsFileReader<R> {
    input: FileInput<R>,
    version: FileVersion,
    tables: Vec<TsFileTableSchema>,
    roots: VecDeque<IndexNode<DeviceId>>,
    /// The nodes on the path to the current device, each with its next child.
    path: Vec<(IndexNode<DeviceId>, usize)>,
    device: Option<DeviceRead>,
}

/// The device whose rows are being read.
struct DeviceRead {
    id: Arc<DeviceId>,
    /// Chunks that are read side by side, in groups.
    groups: VecDeque<DeviceGroup>,
    open: Option<OpenChunk>,
    /// Decoded rows that have not been returned yet.
    ready: VecDeque<DeviceBlock>,
}

enum DeviceGroup {
    Aligned {
        time: u64,
        values: Vec<(Arc<str>, u64)>,
    },
    Single(Vec<(Arc<str>, u64)>),
}

enum OpenChunk {
    Aligned(ChunkRead, Vec<(Arc<str>, ChunkRead)>),
    Single(Vec<(Arc<str>, ChunkRead)>),
}

impl<R: Read + Seek> TsFileReader<R> {
    /// Opens a file by reading its end.
    ///
    /// # Errors
    /// If it is not a complete TsFile of version 3 or 4, is damaged, or is encrypted.
    pub fn open(input: R) -> Result<Self> {
        const NOT: TsFileError = TsFileError::NotTsFile("it does not begin as one");
        const CUT: TsFileError =
            TsFileError::NotTsFile("its end is missing; perhaps its writer did not close it");
        let mut input = FileInput::new(input)?;
        let len = input.len();
        let head_len = MAGIC.len() as u64 + 1;
        let tail_len = MAGIC.len() as u64 + 4;
        if len < head_len {
            return Err(NOT);
        }
        let head = input.read(0, head_len)?;
        let version = match head.strip_prefix(MAGIC) {
            Some([3]) => FileVersion::V3,
            Some([4]) => FileVersion::V4,
            Some(other) => {
                let version = String::from_utf8_lossy(other).into_owned();
                let what = format!("version {version:?} of TsFile (3 and 4 are supported)");
                return Err(TsFileError::Unsupported(what));
            }
            None => return Err(NOT),
        };
        if len < head_len + tail_len {
            return Err(CUT);
        }
        let tail = input.read(len - tail_len, tail_len)?;
        let Some((size, MAGIC)) = tail.split_first_chunk::<4>().and_then(|(size, magic)| {
            Some((u64::from(u32::from_be_bytes(*size)), magic.first_chunk()?))
        }) else {
            return Err(CUT);
        };
        let begin = (len - tail_len)
            .checked_sub(size)
            .filter(|begin| *begin >= head_len);
        let begin = begin.ok_or_else(|| {
            PartError::Wrong("the size of the metadata is impossible").with_offset(len - tail_len)
        })?;
        let bytes = input.read(begin, size)?;
        let metadata =
            FileMetadata::parse(&bytes, version).map_err(|part| part.with_offset(begin))?;
        Ok(Self {
            input,
            version,
            tables: metadata.tables,
            roots: metadata.roots.into(),
            path: Vec::new(),
            device: None,
        })
    }

    /// The file's version.
    pub fn version(&self) -> FileVersion {
        self.version
    }

    /// The tables that have a schema; none in files that use paths.
    pub fn tables(&self) -> &[TsFileTableSchema] {
        &self.tables
    }

    /// The next rows; `None` after the last. The rows of a device are consecutive. In an unaligned
    /// device, a series whose times differ from those of the others comes separately.
    ///
    /// # Errors
    /// If the file is damaged or uses an unsupported feature. Rows returned before are correct;
    /// after an error, no more rows are returned.
    pub fn next_block(&mut self) -> Result<Option<DeviceBlock>> {
        let block = self.try_next_block();
        if block.is_err() {
            self.device = None;
            self.path.clear();
            self.roots.clear();
        }
        block
    }

    fn try_next_block(&mut self) -> Result<Option<DeviceBlock>> {
        loop {
            if let Some(device) = &mut self.device {
                if let Some(block) = device.next_block(&mut self.input)? {
                    return Ok(Some(block));
                }
                self.device = None;
            }
            let Some(device) = self.next_device()? else {
                return Ok(None);
            };
            self.device = Some(device);
        }
    }

    fn next_device(&mut self) -> Result<Option<DeviceRead>> {
        loop {
            let Some((node, next)) = self.path.last_mut() else {
                let Some(root) = self.roots.pop_front() else {
                    return Ok(None);
                };
                self.path.push((root, 0));
                continue;
            };
            if *next == node.children.len() {
                self.path.pop();
                continue;
            }
            let at = *next;
            *next += 1;
            let (offset, len) = node.child(at).map_err(|part| part.with_offset(node.end))?;
            match node.kind {
                NodeKind::InternalDevice => {
                    let bytes = read_node(&mut self.input, offset, len)?;
                    let child = metadata::device_node(&mut Cursor::new(&bytes), self.version);
                    let child = child.map_err(|part| part.with_offset(offset))?;
                    if self.path.len() >= DEPTH_MAX {
                        return Err(
                            PartError::Wrong("the index has too many levels").with_offset(offset)
                        );
                    }
                    self.path.push((child, 0));
                }
                NodeKind::LeafDevice => {
                    let id = Arc::new(std::mem::replace(
                        &mut node.children[at].0,
                        DeviceId {
                            segments: Vec::new(),
                        },
                    ));
                    let mut series = Vec::new();
                    collect_series(&mut self.input, offset, len, 0, &mut series)?;
                    return Ok(Some(DeviceRead::new(id, series)));
                }
                _ => {
                    return Err(
                        PartError::Wrong("the index leads to no device").with_offset(offset)
                    );
                }
            }
        }
    }
}

fn read_node<R: Read + Seek>(input: &mut FileInput<R>, offset: u64, len: u64) -> Result<Vec<u8>> {
    if len > NODE_BYTES_MAX {
        return Err(
            PartError::Wrong("a part of the index is larger than 64 MiB").with_offset(offset),
        );
    }
    input.read(offset, len)
}

/// Collects the series under the node of measurements at `offset`.
fn collect_series<R: Read + Seek>(
    input: &mut FileInput<R>,
    offset: u64,
    len: u64,
    depth: usize,
    series: &mut Vec<SeriesChunks>,
) -> Result<()> {
    let bytes = read_node(input, offset, len)?;
    let node = metadata::measurement_node(&mut Cursor::new(&bytes));
    let node = node.map_err(|part| part.with_offset(offset))?;
    for at in 0..node.children.len() {
        let (begin, len) = node.child(at).map_err(|part| part.with_offset(offset))?;
        match node.kind {
            NodeKind::InternalMeasurement if depth < DEPTH_MAX => {
                collect_series(input, begin, len, depth + 1, series)?;
            }
            NodeKind::LeafMeasurement => {
                let bytes = read_node(input, begin, len)?;
                let mut cursor = Cursor::new(&bytes);
                while !cursor.is_empty() {
                    let at = begin + (bytes.len() - cursor.remaining()) as u64;
                    series.push(
                        SeriesChunks::parse(&mut cursor).map_err(|part| part.with_offset(at))?,
                    );
                }
            }
            _ => return Err(PartError::Wrong("the index leads to no series").with_offset(offset)),
        }
    }
    Ok(())
}

impl DeviceRead {
    fn new(id: Arc<DeviceId>, mut series: Vec<SeriesChunks>) -> Self {
        let time = series.iter().position(|series| series.is_time);
        let groups = match time {
            Some(time) => {
                let times = series.swap_remove(time).chunks;
                aligned_groups(&times, &series)
            }
            None => single_groups(&series),
        };
        Self {
            id,
            groups,
            open: None,
            ready: VecDeque::new(),
        }
    }

    fn next_block<R: Read + Seek>(
        &mut self,
        input: &mut FileInput<R>,
    ) -> Result<Option<DeviceBlock>> {
        loop {
            if let Some(block) = self.ready.pop_front() {
                return Ok(Some(block));
            }
            if let Some(open) = &mut self.open {
                let blocks = match open {
                    OpenChunk::Aligned(time, values) => aligned_rows(input, time, values)?,
                    OpenChunk::Single(series) => single_rows(input, series)?,
                };
                match blocks {
                    Some(blocks) => {
                        let blocks = blocks.into_iter().filter(|(times, _)| !times.is_empty());
                        self.ready
                            .extend(blocks.map(|(times, columns)| DeviceBlock {
                                device: self.id.clone(),
                                times,
                                columns,
                            }));
                    }
                    None => self.open = None,
                }
                continue;
            }
            let Some(group) = self.groups.pop_front() else {
                return Ok(None);
            };
            let mut open = |chunks: Vec<(Arc<str>, u64)>| {
                let chunks = chunks.into_iter();
                let chunks = chunks.map(|(name, at)| Ok((name, ChunkRead::open(input, at)?)));
                chunks.collect::<Result<Vec<_>>>()
            };
            self.open = Some(match group {
                DeviceGroup::Aligned { time, values } => {
                    let values = open(values)?;
                    OpenChunk::Aligned(ChunkRead::open(input, time)?, values)
                }
                DeviceGroup::Single(series) => OpenChunk::Single(open(series)?),
            });
        }
    }
}

/// Groups each chunk of times with the chunks of values between it and the next one.
fn aligned_groups(times: &[u64], series: &[SeriesChunks]) -> VecDeque<DeviceGroup> {
    let mut groups = VecDeque::new();
    for (at, time) in times.iter().enumerate() {
        let end = times.get(at + 1).copied().unwrap_or(u64::MAX);
        let within = |series: &SeriesChunks| {
            let first = series.chunks.partition_point(|chunk| chunk < time);
            let chunk = series.chunks.get(first).filter(|chunk| **chunk < end)?;
            Some((series.name.clone(), *chunk))
        };
        groups.push_back(DeviceGroup::Aligned {
            time: *time,
            values: series.iter().filter_map(within).collect(),
        });
    }
    groups
}

/// Groups the first chunks of all series, then the second chunks, and so on.
fn single_groups(series: &[SeriesChunks]) -> VecDeque<DeviceGroup> {
    let mut groups = VecDeque::new();
    for some in series.chunks(SIDE_BY_SIDE) {
        let most = some
            .iter()
            .map(|series| series.chunks.len())
            .max()
            .unwrap_or(0);
        for at in 0..most {
            let chunk =
                |series: &SeriesChunks| Some((series.name.clone(), *series.chunks.get(at)?));
            groups.push_back(DeviceGroup::Single(some.iter().filter_map(chunk).collect()));
        }
    }
    groups
}

type DecodedRows = (Vec<i64>, Vec<DeviceColumn>);

fn aligned_rows<R: Read + Seek>(
    input: &mut FileInput<R>,
    time: &mut ChunkRead,
    values: &mut [(Arc<str>, ChunkRead)],
) -> Result<Option<Vec<DecodedRows>>> {
    let Some(page) = time.page(input)? else {
        return Ok(None);
    };
    let times = time.times(&page)?;
    let mut columns = Vec::new();
    for (name, chunk) in values {
        if let Some(page) = chunk.page(input)? {
            columns.extend(chunk.column(&page, name, times.len())?);
        }
    }
    Ok(Some(vec![(times, columns)]))
}

/// The next page of each series; pages with the same times are joined.
fn single_rows<R: Read + Seek>(
    input: &mut FileInput<R>,
    series: &mut [(Arc<str>, ChunkRead)],
) -> Result<Option<Vec<DecodedRows>>> {
    let mut rows: Vec<DecodedRows> = Vec::new();
    let mut any = false;
    for (name, chunk) in series {
        let Some(page) = chunk.page(input)? else {
            continue;
        };
        any = true;
        let (times, column) = chunk.series(&page, name)?;
        match rows.iter_mut().find(|(others, _)| *others == times) {
            Some((_, columns)) => columns.push(column),
            None => rows.push((times, vec![column])),
        }
    }
    Ok(any.then_some(rows))
}
