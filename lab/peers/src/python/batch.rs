//! A batch as Arrow buffers, ready to be sent to the child.

use super::link;
use anyhow::{Context, Result};
use marigram_lab::data::{Column, FieldKind, Rows, Table, Values};
use marigram_lab_drivers::cells;
use serde_json::json;

/// Buffers begin at multiples of this, as Arrow recommends.
const ALIGNMENT: usize = 64;

/// The columns of a table's batches: the tags, the time, the fields, each with the child's name for
/// its type.
pub(super) struct BatchShape {
    columns: Vec<(String, &'static str)>,
}

impl BatchShape {
    /// The shape of `table`.
    pub(super) fn new(table: &Table) -> Self {
        let child_type = |kind| match kind {
            FieldKind::Bool => "bool",
            FieldKind::I32 => "i32",
            FieldKind::I64 => "i64",
            FieldKind::F32 => "f32",
            FieldKind::F64 => "f64",
            FieldKind::Text => "text",
        };
        let tags = table.tags.iter().enumerate();
        let tags = tags.map(|(index, each)| {
            let kind = cells::tag_type(table, index);
            (each.name.clone(), child_type(kind))
        });
        let fields = table.fields.iter();
        let fields = fields.map(|each| (each.name.clone(), child_type(each.kind)));
        Self {
            columns: tags
                .chain([("ts".to_owned(), "time")])
                .chain(fields)
                .collect(),
        }
    }
}

#[derive(Default)]
struct Buffers {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl Buffers {
    fn push(&mut self, buffer: impl IntoIterator<Item = u8>) {
        let start = self.bytes.len();
        self.bytes.extend(buffer);
        self.lengths.push(self.bytes.len() - start);
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn push_bits(&mut self, bits: &[bool]) {
        let byte = |bits: &[bool]| {
            let bits = bits.iter().enumerate();
            bits.fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at)
        };
        self.push(bits.chunks(8).map(byte));
    }

    fn push_texts<'a>(&mut self, texts: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        let mut offsets = vec![0_i32];
        let mut end = 0;
        for text in texts.clone() {
            end += text.len();
            offsets.push(i32::try_from(end).context("more than 2 GiB of text in a batch")?);
        }
        self.push(offsets.into_iter().flat_map(i32::to_le_bytes));
        self.push(texts.flat_map(str::bytes));
        Ok(())
    }

    fn push_column(&mut self, column: &Column) -> Result<()> {
        match &column.present {
            Some(present) => self.push_bits(present),
            None => self.push([]),
        }
        match &column.values {
            Values::Bool(values) => self.push_bits(values),
            Values::I32(values) => self.push(values.iter().flat_map(|value| value.to_le_bytes())),
            Values::I64(values) => self.push(values.iter().flat_map(|value| value.to_le_bytes())),
            Values::F32(values) => self.push(values.iter().flat_map(|value| value.to_le_bytes())),
            Values::F64(values) => self.push(values.iter().flat_map(|value| value.to_le_bytes())),
            Values::Text(values) => self.push_texts(values.iter().map(String::as_str))?,
        }
        Ok(())
    }

    fn push_tag(&mut self, table: &Table, tag: usize, kind: &str, rows: &Rows) -> Result<()> {
        let series = rows
            .series
            .iter()
            .map(|series| &table.series[*series as usize]);
        let texts = series.map(|values| values[tag].as_deref());
        if texts.clone().all(|text| text.is_some()) {
            self.push([]);
        } else {
            self.push_bits(&texts.clone().map(|text| text.is_some()).collect::<Vec<_>>());
        }
        if kind == "text" {
            return self.push_texts(texts.map(|text| text.unwrap_or("")));
        }
        let number = |text| cells::tag_number(&table.tags[tag], text);
        let numbers = texts.map(|text| text.map_or(Ok(0), number));
        let numbers = numbers.collect::<Result<Vec<i64>>>()?;
        // The first bytes of a little-endian number are the same number in fewer bytes.
        let width = if kind == "i32" { 4 } else { 8 };
        self.push(
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes().into_iter().take(width)),
        );
        Ok(())
    }
}

/// The frame that writes `rows`.
pub(super) fn encode(table: &Table, shape: &BatchShape, rows: &Rows) -> Result<Vec<u8>> {
    let mut buffers = Buffers::default();
    for (tag, (_, kind)) in shape.columns.iter().take(table.tags.len()).enumerate() {
        buffers.push_tag(table, tag, kind, rows)?;
    }
    buffers.push([]);
    buffers.push(rows.times.iter().flat_map(|time| time.to_le_bytes()));
    for column in &rows.columns {
        buffers.push_column(column)?;
    }
    let header = json!({
        "op": "write",
        "table": table.name,
        "rows": rows.len(),
        "columns": shape.columns,
        "buffers": buffers.lengths,
    });
    Ok(link::frame(&header, &buffers.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_bits_packed() {
        let mut buffers = Buffers::default();
        let mut bits = vec![true; 9];
        bits[1] = false;
        buffers.push_bits(&bits);
        buffers
            .push_texts(["ab", "", "c"].into_iter())
            .expect("little text");
        assert_eq!(buffers.lengths, [2, 16, 3]);
        assert_eq!(buffers.bytes[..2], [0b1111_1101, 1]);
        assert_eq!(
            buffers.bytes[64..80],
            [0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]
        );
        assert_eq!(&buffers.bytes[128..131], b"abc");
        assert_eq!(buffers.bytes.len(), 192);
    }
}
