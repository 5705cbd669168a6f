//! Reads JSON lines, one object a line, as records: the same plan then serves them as CSV.
//!
//! The names of an object are columns; objects inside it have the names of both with a point between
//! them. Lists stay JSON in a text. A string is a quoted cell, so that blanks in it belong to the value.

use anyhow::{Context, Result, bail};
use marigram_tabular::record::TextRecord;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};

/// Bytes of the longest line.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Most columns.
const COLUMNS_MAX: usize = 10_000;

/// Reads the lines of a file.
pub(crate) struct JsonRecords<R> {
    lines: BufReader<R>,
    text: Vec<u8>,
    line: u64,
    places: HashMap<String, usize>,
}

/// The columns of a file.
#[derive(Debug, Default)]
pub(crate) struct JsonColumns {
    /// Their names, in the order in which they come.
    pub names: Vec<String>,
    /// Those that hold strings or lists.
    pub texts: HashSet<usize>,
}

/// A line of a file of objects.
enum JsonLine {
    Object(Map<String, Value>),
    /// No object, and why.
    Other(String),
}

const NO_OBJECT: &str = "it is no JSON object";

/// Why a line is no JSON; Python and others write NaN, which is none.
fn why_none(text: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(text);
    if ["NaN", "Infinity"].iter().any(|word| text.contains(word)) {
        return format!("{NO_OBJECT}: JSON has no NaN and no Infinity; write null instead");
    }
    // The position that the parser names is one in this line.
    let error = error.to_string();
    let reason = error.split(" at line ").next().unwrap_or_default();
    format!("{NO_OBJECT}: {reason}")
}

impl<R: Read> JsonRecords<R> {
    /// Reads objects whose names are `names`; others are left out.
    pub(crate) fn new(reader: R, names: &[String]) -> Self {
        let places = names.iter().cloned().zip(0..).collect();
        Self {
            lines: BufReader::new(reader),
            text: Vec::new(),
            line: 0,
            places,
        }
    }

    /// What the next line holds; `None` at the end.
    fn next(&mut self) -> Result<Option<JsonLine>> {
        loop {
            self.text.clear();
            let mut limited = self.lines.by_ref().take(LINE_BYTES_MAX);
            let read = limited.read_until(b'\n', &mut self.text);
            if read.context("cannot be read further")? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.text.len() as u64 == LINE_BYTES_MAX && !self.text.ends_with(b"\n") {
                bail!("line {} has over {LINE_BYTES_MAX} bytes", self.line);
            }
            if self.line == 1 && self.text.starts_with(b"\xef\xbb\xbf") {
                self.text.drain(..3);
            }
            let text = self.text.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if self.line == 1 && text.starts_with(b"[") {
                bail!(
                    "it is one JSON list, not a line for each object; convert it with: jq -c '.[]' FILE \
                     > FILE.jsonl"
                );
            }
            if self.line == 1 && text == b"{" {
                bail!(
                    "its objects are spread over several lines; each must be on a line of its own: \
                     jq -c . FILE > FILE.jsonl"
                );
            }
            return Ok(Some(match serde_json::from_slice(text) {
                Ok(Value::Object(object)) => JsonLine::Object(object),
                Ok(_) => JsonLine::Other(NO_OBJECT.to_owned()),
                Err(error) => JsonLine::Other(why_none(text, &error)),
            }));
        }
    }

    /// Reads the next record; a line that holds no object is a misfit, whose only cell says why. Returns
    /// whether there is one.
    pub(crate) fn read(&mut self, record: &mut TextRecord) -> Result<bool> {
        let Some(line) = self.next()? else {
            return Ok(false);
        };
        record.begin(self.line);
        let object = match line {
            JsonLine::Object(object) => object,
            JsonLine::Other(reason) => {
                record.misfit = Some((0, self.places.len()));
                record.push(&reason, true);
                return Ok(true);
            }
        };
        let mut cells: Vec<Option<(String, bool)>> = vec![None; self.places.len()];
        flatten(object, "", &mut |name, value| {
            if let Some(place) = self.places.get(name) {
                cells[*place] = match value {
                    Value::Null => None,
                    Value::String(text) => Some((text, true)),
                    Value::Array(_) => Some((value.to_string(), true)),
                    value => Some((value.to_string(), false)),
                };
            }
        });
        for cell in cells {
            let (text, quoted) = cell.unwrap_or_default();
            record.push(&text, quoted);
        }
        Ok(true)
    }
}

/// The columns of all objects of a file.
pub(crate) fn columns(reader: impl Read) -> Result<JsonColumns> {
    let mut records = JsonRecords::new(reader, &[]);
    let mut columns = JsonColumns::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    while let Some(line) = records.next()? {
        let JsonLine::Object(object) = line else {
            continue;
        };
        flatten(object, "", &mut |name, value| {
            let place = places.get(name).copied().unwrap_or_else(|| {
                columns.names.push(name.to_owned());
                places.insert(name.to_owned(), columns.names.len() - 1);
                columns.names.len() - 1
            });
            if matches!(value, Value::String(_) | Value::Array(_)) {
                columns.texts.insert(place);
            }
        });
        if columns.names.len() > COLUMNS_MAX {
            bail!("its objects have more than {COLUMNS_MAX} names");
        }
    }
    Ok(columns)
}

/// Passes each value with the names above it.
fn flatten(object: Map<String, Value>, above: &str, take: &mut dyn FnMut(&str, Value)) {
    for (name, value) in object {
        let name = if above.is_empty() {
            name
        } else {
            format!("{above}.{name}")
        };
        match value {
            Value::Object(inner) => flatten(inner, &name, take),
            value => take(&name, value),
        }
    }
}
