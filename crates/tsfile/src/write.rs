//! Writes the rows of one table, device by device, as aligned chunks.
//!
//! Memory holds one compressed chunk of the current device, and the tags and some fifty bytes of
//! every earlier device; the metadata of their series waits in a scratch file.

mod bloom;
mod chunk;
mod index;
mod out;

use crate::error::{Result, TsFileError};
use crate::kinds::DataType;
use crate::read::MAGIC;
use crate::values::{ColumnCategory, ColumnValues, DeviceColumn, DeviceId, TsFileTableSchema};
use chunk::ColumnWriter;
use index::SeriesMetadataList;
use out::PositionedWriter;
use std::collections::HashSet;
use std::io::{Read, Seek, Write};

const VERSION: u8 = 4;
const CHUNK_GROUP: u8 = 0;
/// Rows of a page.
const PAGE_ROWS: usize = 8192;
/// Rows to process before the size of the page is checked.
const STEP_ROWS: usize = 512;
/// Size of texts at which a page ends, in bytes.
const PAGE_BYTES: usize = 256 << 10;
/// Compressed size of all columns at which a chunk ends, in bytes.
const CHUNK_BYTES: usize = 16 << 20;
/// Longest name or tag value, in bytes.
const NAME_BYTES_MAX: usize = 64 << 10;
/// Longest text or bytes value, in bytes.
const VALUE_BYTES_MAX: usize = 16 << 20;

/// A file of version 4 that is being written.
pub struct TsFileWriter<W, S> {
    out: PositionedWriter<W>,
    table: TsFileTableSchema,
    series: SeriesMetadataList<S>,
    device: Option<DeviceWriter>,
}

/// The device whose rows are being written.
struct DeviceWriter {
    id: DeviceId,
    last_time: Option<i64>,
    time: ColumnWriter,
    fields: Vec<ColumnWriter>,
    page: PendingPageRows,
    /// Compressed bytes of the current chunk.
    chunk_bytes: usize,
}

/// Rows of the current page.
struct PendingPageRows {
    times: Vec<i64>,
    /// For each field, which rows have a value, and these values.
    fields: Vec<(Vec<bool>, ColumnValues)>,
}

impl<W: Write, S: Read + Write + Seek> TsFileWriter<W, S> {
    /// Starts a file with one table. Names are written in lower case, because the format's
    /// libraries expect it. `scratch` must be empty; it holds metadata until the end.
    ///
    /// # Errors
    /// If the table has no field, a tag that is not a string, or two names that differ only in
    /// case.
    pub fn new(out: W, scratch: S, mut table: TsFileTableSchema) -> Result<Self> {
        let invalid = |message| Err(TsFileError::Invalid(message));
        table.name = table.name.to_lowercase();
        let mut names = HashSet::new();
        for column in &mut table.columns {
            column.name = column.name.to_lowercase();
            if !names.insert(column.name.as_str()) {
                return invalid(format!(
                    "two columns would have the name '{}': TsFile does not tell upper from lower case",
                    column.name
                ));
            }
            if column.category == ColumnCategory::Tag && column.data_type != DataType::String {
                return invalid(format!("tag '{}' is not a string", column.name));
            }
            if column.name.is_empty() || column.name.len() > NAME_BYTES_MAX {
                return invalid("a column's name is empty or longer than 64 KiB".to_owned());
            }
        }
        if table.columns_of(ColumnCategory::Field).next().is_none() {
            return invalid(format!(
                "table '{}' has no fields to be written",
                table.name
            ));
        }
        let mut out = PositionedWriter::new(out);
        out.write(MAGIC)?;
        out.write(&[VERSION])?;
        Ok(Self {
            out,
            table,
            series: SeriesMetadataList::new(scratch),
            device: None,
        })
    }

    /// Appends rows of the device with these tags, in the order of the table's tags. Devices must
    /// come in the order of their tags (as bytes, missing ones first), and the times of each must
    /// ascend. Columns are found by name; a field without a column has no values. Rows without any
    /// value are also written.
    ///
    /// # Errors
    /// If rows are not in this order, or a column is not a field of the table or has another type.
    pub fn write(
        &mut self,
        tags: &[Option<&str>],
        times: &[i64],
        columns: &[DeviceColumn],
    ) -> Result<()> {
        self.check(tags, times, columns)?;
        if times.is_empty() {
            return Ok(());
        }
        let id = DeviceId::of_table(&self.table.name, tags.iter().copied());
        if self.device.as_ref().is_none_or(|device| device.id != id) {
            self.end_device()?;
            if self.series.last_device().is_some_and(|last| *last >= id) {
                let message = format!("device '{}' does not come in the order of tags", id.path());
                return Err(TsFileError::Invalid(message));
            }
        }
        let (table, out) = (&self.table, &mut self.out);
        let device = self
            .device
            .get_or_insert_with(|| DeviceWriter::new(id, table));
        device.write(times, columns, out)
    }

    /// Completes the file, and returns the writer.
    pub fn finish(mut self) -> Result<W> {
        self.end_device()?;
        self.series.finish(&self.table, &mut self.out)?;
        self.out.finish()
    }

    fn check(&self, tags: &[Option<&str>], times: &[i64], columns: &[DeviceColumn]) -> Result<()> {
        let invalid = |message| Err(TsFileError::Invalid(message));
        if tags.len() != self.table.columns_of(ColumnCategory::Tag).count() {
            return invalid(format!(
                "{} tags were given, which are not those of the table",
                tags.len()
            ));
        }
        if tags.iter().flatten().any(|tag| tag.len() > NAME_BYTES_MAX) {
            return invalid("a tag is longer than 64 KiB".to_owned());
        }
        for column in columns {
            let name = column.name.to_lowercase();
            let known = self
                .table
                .columns_of(ColumnCategory::Field)
                .find(|field| field.name == name);
            if known.is_none_or(|field| field.data_type != column.data_type) {
                return invalid(format!("there is no field '{name}' with this type"));
            }
            let rows = times.len();
            let fits = column.values.shape() == column.data_type.shape()
                && column.values.len() == rows
                && column
                    .valid
                    .as_ref()
                    .is_none_or(|valid| valid.len() == rows);
            if !fits {
                return invalid(format!("column '{name}' does not have one value per row"));
            }
            if let ColumnValues::Bytes(values) = &column.values
                && values.iter().any(|value| value.len() > VALUE_BYTES_MAX)
            {
                return invalid(format!("a value of '{name}' is longer than 16 MiB"));
            }
        }
        Ok(())
    }

    fn end_device(&mut self) -> Result<()> {
        let Some(mut device) = self.device.take() else {
            return Ok(());
        };
        device.end_page(&mut self.out)?;
        device.end_chunk(&mut self.out)?;
        device.fields.sort_by(|a, b| a.name().cmp(b.name()));
        let columns = std::iter::once(&device.time).chain(&device.fields);
        let series: Vec<(&str, Vec<u8>)> = columns
            .filter_map(|column| Some((column.name(), column.metadata()?)))
            .collect();
        self.series.add(device.id, &series)
    }
}

impl PendingPageRows {
    fn new(table: &TsFileTableSchema) -> Self {
        let fields = table.columns_of(ColumnCategory::Field);
        let empty = |data_type: DataType| (Vec::new(), ColumnValues::empty(data_type.shape()));
        Self {
            times: Vec::new(),
            fields: fields.map(|field| empty(field.data_type)).collect(),
        }
    }

    fn is_full(&self) -> bool {
        let long = |values: &ColumnValues| match values {
            ColumnValues::Bytes(values) => values.bytes_total() >= PAGE_BYTES,
            _ => false,
        };
        self.times.len() >= PAGE_ROWS || self.fields.iter().any(|(_, values)| long(values))
    }
}

impl DeviceWriter {
    fn new(id: DeviceId, table: &TsFileTableSchema) -> Self {
        let fields = table.columns_of(ColumnCategory::Field);
        Self {
            id,
            last_time: None,
            time: ColumnWriter::for_times(),
            fields: fields
                .map(|field| ColumnWriter::for_field(&field.name, field.data_type))
                .collect(),
            page: PendingPageRows::new(table),
            chunk_bytes: 0,
        }
    }

    fn write<W: Write>(
        &mut self,
        times: &[i64],
        columns: &[DeviceColumn],
        out: &mut PositionedWriter<W>,
    ) -> Result<()> {
        for time in times {
            if self.last_time.is_some_and(|last| last >= *time) {
                return Err(TsFileError::Invalid(format!(
                    "time {time} of device '{}' does not follow the one before",
                    self.id.path()
                )));
            }
            self.last_time = Some(*time);
        }
        let column_of = |field: &ColumnWriter| {
            columns
                .iter()
                .find(|column| column.name.to_lowercase() == field.name())
        };
        let columns: Vec<Option<&DeviceColumn>> = self.fields.iter().map(column_of).collect();
        let mut begin = 0;
        while begin < times.len() {
            let room = PAGE_ROWS - self.page.times.len().min(PAGE_ROWS - 1);
            let end = times.len().min(begin + room.min(STEP_ROWS));
            self.page.times.extend_from_slice(&times[begin..end]);
            for ((valid, values), column) in self.page.fields.iter_mut().zip(&columns) {
                match column {
                    Some(column) => {
                        valid.extend((begin..end).map(|row| column.is_valid(row)));
                        values.extend(column.values.dense(begin..end, column.valid.as_deref()));
                    }
                    None => valid.resize(valid.len() + end - begin, false),
                }
            }
            begin = end;
            if self.page.is_full() {
                self.end_page(out)?;
            }
        }
        Ok(())
    }

    fn end_page<W: Write>(&mut self, out: &mut PositionedWriter<W>) -> Result<()> {
        if self.page.times.is_empty() {
            return Ok(());
        }
        let times = std::mem::take(&mut self.page.times);
        self.chunk_bytes += self.time.push_times(&times);
        for (field, (valid, values)) in self.fields.iter_mut().zip(&mut self.page.fields) {
            self.chunk_bytes += field.push_values(&times, values, valid);
            valid.clear();
            *values = ColumnValues::empty(values.shape());
        }
        if self.chunk_bytes >= CHUNK_BYTES {
            self.end_chunk(out)?;
        }
        Ok(())
    }

    fn end_chunk<W: Write>(&mut self, out: &mut PositionedWriter<W>) -> Result<()> {
        if self.chunk_bytes == 0 {
            return Ok(());
        }
        self.chunk_bytes = 0;
        let mut head = vec![CHUNK_GROUP];
        index::put_device(&self.id, &mut head);
        out.write(&head)?;
        for column in std::iter::once(&mut self.time).chain(&mut self.fields) {
            let mut bytes = Vec::new();
            column.put_chunk(out.position(), &mut bytes);
            out.write(&bytes)?;
        }
        Ok(())
    }
}
