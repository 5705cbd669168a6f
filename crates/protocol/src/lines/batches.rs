//! The rows of one table under construction. Adding rows is fast because the columns of the
//! previous line are remembered by position.

use super::series::{LineSeries, LineTag, TIME};
use super::text::{find, shown, unescape, unescape_into};
use super::value::{KINDS, LineValue};
use super::{LineFault, TAGGED_FIELD_SUFFIX, fault};
use hashbrown::{HashMap, HashSet};
use marigram_model::{BatchBuilder, FieldValueRef, Limits, TagValueRef, WriteBatch};

/// A field of the current line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineField<'a> {
    /// The number of its name in the batch.
    pub(super) name: u32,
    pub(super) value: LineValue<'a>,
}

/// A table's batch under construction.
#[derive(Debug)]
pub(super) struct TableBatch<'a> {
    /// Whether further rows of the table go to another batch.
    pub(super) is_closed: bool,
    /// Whether a field may have the name of a tag.
    tagged_fields: bool,
    table: String,
    builder: BatchBuilder,
    lines: Vec<u32>,
    names: Vec<ColumnName<'a>>,
    by_name: HashMap<String, u32>,
    /// By the raw name in the lines, which may be escaped in several ways.
    by_raw: HashMap<&'a str, u32>,
    /// Names by their position on the previous line.
    hints: Vec<u32>,
    tag_names: HashSet<String>,
    slots: usize,
    columns: usize,
    tag_values: usize,
    field_values: usize,
}

/// Number of cells from which on a batch is closed if most of them are null.
const SPARSE_CELLS: usize = 1 << 13;
/// Cells per value in a batch that is not sparse.
const SPARSE_RATIO: usize = 16;

#[derive(Debug)]
struct ColumnName<'a> {
    /// The raw name, with the equals sign.
    raw: &'a [u8],
    text: String,
    /// Its columns in the builder, by kind of value; `None` for those that do not exist yet.
    places: [Option<u32>; KINDS],
    /// Whether a valid line has used it.
    is_used: bool,
    /// The serial number of the last line that has it.
    serial: u64,
}

impl<'a> TableBatch<'a> {
    pub(super) fn new(table: &str, tagged_fields: bool) -> Self {
        Self {
            is_closed: false,
            tagged_fields,
            table: table.to_owned(),
            builder: BatchBuilder::new(table),
            lines: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::new(),
            by_raw: HashMap::new(),
            hints: Vec::new(),
            tag_names: HashSet::new(),
            slots: 0,
            columns: 0,
            tag_values: 0,
            field_values: 0,
        }
    }

    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// Refuses a series with a tag that has the name of a field.
    pub(super) fn check_tags(&self, series: &LineSeries<'_>) -> Result<(), LineFault> {
        let is_field = |tag: &&LineTag<'_>| {
            let name = self.by_name.get(&*tag.name);
            name.is_some_and(|name| self.names[*name as usize].is_used)
        };
        match series.tags.iter().find(is_field) {
            None => Ok(()),
            Some(tag) => fault(
                tag.at,
                format!("'{}' is a field, and now a tag", shown(&tag.name)),
            ),
        }
    }

    /// Reads the name and equals sign of the line's `nth` field at byte `at`. Returns the name's
    /// number and the start of the value.
    #[inline]
    pub(super) fn name(
        &mut self,
        text: &'a str,
        at: usize,
        nth: usize,
        serial: u64,
        new: Option<&LineSeries<'_>>,
    ) -> Result<(u32, usize), LineFault> {
        let hint = self.hints.get(nth).copied();
        let hit =
            hint.filter(|hint| text.as_bytes()[at..].starts_with(self.names[*hint as usize].raw));
        let mut number = match hit {
            Some(number) => number,
            None => self.other_name(text, at, nth)?,
        };
        if self.tagged_fields && !self.names[number as usize].is_used {
            number = self.beside_tag(number, at, nth, new)?;
        }
        let name = &mut self.names[number as usize];
        if name.serial == serial {
            return fault(at, format!("field '{}' occurs twice", shown(&name.text)));
        }
        name.serial = serial;
        if !name.is_used {
            let known = self.tag_names.contains(&name.text);
            if known || new.is_some_and(|new| new.tags.iter().any(|tag| tag.name == name.text)) {
                return fault(
                    at,
                    format!("'{}' is a tag, and now a field", shown(&name.text)),
                );
            }
        }
        let end = match hit {
            Some(_) => at + self.names[number as usize].raw.len(),
            None => find(text.as_bytes(), at, b"=").map_or(text.len(), |equals| equals + 1),
        };
        Ok((number, end))
    }

    /// The number of the name under which a field is stored: another one if it is that of a tag.
    fn beside_tag(
        &mut self,
        number: u32,
        at: usize,
        nth: usize,
        new: Option<&LineSeries<'_>>,
    ) -> Result<u32, LineFault> {
        let text = &self.names[number as usize].text;
        let is_new = |new: &LineSeries<'_>| new.tags.iter().any(|tag| tag.name == *text);
        if !self.tag_names.contains(text) && !new.is_some_and(is_new) {
            return Ok(number);
        }
        let stored = format!("{text}{TAGGED_FIELD_SUFFIX}");
        if let Err(error) = Limits::check_name("field", &stored) {
            return fault(at, error.to_string());
        }
        self.by_name.remove(text);
        if let Some(known) = self.by_name.get(&stored) {
            if let Some(hint) = self.hints.get_mut(nth) {
                *hint = *known;
            }
            return Ok(*known);
        }
        self.by_name.insert(stored.clone(), number);
        self.names[number as usize].text = stored;
        Ok(number)
    }

    /// Reads a name that differs from the one at this position of the previous line.
    fn other_name(&mut self, text: &'a str, at: usize, nth: usize) -> Result<u32, LineFault> {
        let end = find(text.as_bytes(), at, b"=, \n").unwrap_or(text.len());
        let raw = &text[at..end];
        if text.as_bytes().get(end) != Some(&b'=') {
            return fault(
                at,
                format!("field '{}' has no value", shown(raw.trim_end())),
            );
        }
        let number = match self.by_raw.get(raw) {
            Some(number) => *number,
            None => self.new_name(text, at, end)?,
        };
        if nth < self.hints.len() {
            self.hints[nth] = number;
        } else {
            self.hints.push(number);
        }
        Ok(number)
    }

    fn new_name(&mut self, text: &'a str, at: usize, end: usize) -> Result<u32, LineFault> {
        let raw = &text[at..end];
        let name = unescape(raw, b", =");
        if let Err(error) = Limits::check_name("field", &name) {
            return fault(at, error.to_string());
        }
        if name == TIME {
            return fault(
                at,
                "a field cannot be named 'time': that is the time column",
            );
        }
        if let Some(number) = self.by_name.get(&*name) {
            self.by_raw.insert(raw, *number);
            return Ok(*number);
        }
        let number = self.names.len() as u32;
        let name = name.into_owned();
        self.by_name.insert(name.clone(), number);
        self.by_raw.insert(raw, number);
        let raw = &text.as_bytes()[at..=end];
        self.names.push(ColumnName {
            raw,
            text: name,
            places: [None; KINDS],
            is_used: false,
            serial: 0,
        });
        Ok(number)
    }

    /// Adds a series.
    pub(super) fn slot(&mut self, series: &LineSeries<'_>) -> u32 {
        for tag in &series.tags {
            if !self.tag_names.contains(&*tag.name) {
                self.tag_names.insert(tag.name.clone().into_owned());
            }
        }
        self.slots += 1;
        self.tag_values += series.tags.len();
        let tags = series.tags.iter();
        self.builder
            .slot(tags.map(|tag| (&*tag.name, TagValueRef::String(&tag.value))))
    }

    /// Adds the row of a valid line. `scratch` temporarily holds unescaped text.
    #[inline]
    pub(super) fn row(
        &mut self,
        slot: u32,
        time: i64,
        line: u32,
        fields: &[LineField<'_>],
        scratch: &mut String,
    ) {
        self.builder.row(slot, time);
        self.lines.push(line);
        self.field_values += fields.len();
        for field in fields {
            let name = &mut self.names[field.name as usize];
            let place = &mut name.places[field.value.kind()];
            let builder = &mut self.builder;
            let place = *place.get_or_insert_with(|| {
                self.columns += 1;
                name.is_used = true;
                builder.field_place(&name.text, field.value.field_type()) as u32
            });
            let value = match field.value {
                LineValue::F64(value) => FieldValueRef::F64(value),
                LineValue::I64(value) => FieldValueRef::I64(value),
                LineValue::U64(value) => FieldValueRef::U64(value),
                LineValue::Bool(value) => FieldValueRef::Bool(value),
                LineValue::Text(text) => FieldValueRef::String(text),
                LineValue::Escaped(raw) => {
                    scratch.clear();
                    unescape_into(raw, b"\"\\", scratch);
                    FieldValueRef::String(scratch)
                }
            };
            self.builder.field_at(place as usize, value);
        }
    }

    /// Whether nearly all cells of the batch are null. Otherwise, lines with distinct names would
    /// make a batch as large as the square of their number.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        let fields = self.columns * self.lines.len();
        let tags = self.tag_names.len() * self.slots;
        fields > SPARSE_CELLS + SPARSE_RATIO * self.field_values
            || tags > SPARSE_CELLS + SPARSE_RATIO * self.tag_values
    }

    /// The batch and the line of each row; `None` if there are no rows.
    pub(super) fn finish(self) -> Option<(WriteBatch, Vec<u32>)> {
        (!self.lines.is_empty()).then(|| (self.builder.finish(), self.lines))
    }
}
