//! The first part of a line: `measurement,tag=value,…`.

use super::text::{find, shown, unescape};
use super::{LineFault, fault};
use marigram_model::Limits;
use std::borrow::Cow;

/// Name of the time column in tables that lines create.
pub(super) const TIME: &str = "time";

/// Measurement and tags of a line.
#[derive(Debug)]
pub(super) struct LineSeries<'a> {
    pub(super) table: Cow<'a, str>,
    pub(super) tags: Vec<LineTag<'a>>,
}

#[derive(Debug)]
pub(super) struct LineTag<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: Cow<'a, str>,
    /// Byte offset of its name in the text.
    pub(super) at: usize,
}

/// Parses the key of a series at byte `start` of the text.
pub(super) fn parse_series(key: &str, start: usize) -> Result<LineSeries<'_>, LineFault> {
    let bytes = key.as_bytes();
    let mut at = find(bytes, 0, b",").unwrap_or(key.len());
    let table = unescape(&key[..at], b", ");
    if let Err(error) = Limits::check_name("measurement", &table) {
        return fault(start, error.to_string());
    }
    let mut tags: Vec<LineTag<'_>> = Vec::new();
    while at < key.len() {
        let name_at = at + 1;
        let end = find(bytes, name_at, b",").unwrap_or(key.len());
        let tag = parse_tag(key, name_at, end, start)?;
        if tags.iter().any(|other| other.name == tag.name) {
            return fault(tag.at, format!("tag '{}' occurs twice", shown(&tag.name)));
        }
        tags.push(tag);
        if tags.len() > Limits::TAGS_MAX {
            return fault(start, format!("more than {} tags", Limits::TAGS_MAX));
        }
        at = end;
    }
    Ok(LineSeries { table, tags })
}

/// Parses the tag at bytes `at..end` of a key at byte `start` of the text.
fn parse_tag(key: &str, at: usize, end: usize, start: usize) -> Result<LineTag<'_>, LineFault> {
    let tag = &key[at..end];
    if tag.is_empty() {
        return fault(start + at, "no tag follows the comma");
    }
    let Some(equals) = find(tag.as_bytes(), 0, b"=") else {
        return fault(start + at, format!("tag '{}' has no value", shown(tag)));
    };
    let name = unescape(&tag[..equals], b", =");
    if let Err(error) = Limits::check_name("tag", &name) {
        return fault(start + at, error.to_string());
    }
    if name == TIME {
        return fault(
            start + at,
            "a tag cannot be named 'time': that is the time column",
        );
    }
    let raw = &tag[equals + 1..];
    let value_at = start + at + equals + 1;
    let name_shown = || shown(&name);
    if raw.is_empty() {
        let reason = format!(
            "tag '{}' has an empty value; leave the tag out",
            name_shown()
        );
        return fault(value_at, reason);
    }
    if let Some(equals) = find(raw.as_bytes(), 0, b"=") {
        let reason = format!(
            "the value of tag '{}' has an equals sign without \\",
            name_shown()
        );
        return fault(value_at + equals, reason);
    }
    let value = unescape(raw, b", =");
    if value.len() > Limits::TAG_BYTES_MAX {
        let (len, max) = (value.len(), Limits::TAG_BYTES_MAX);
        let reason = format!(
            "the value of tag '{}' has {len} bytes; at most {max}",
            name_shown()
        );
        return fault(value_at, reason);
    }
    Ok(LineTag {
        name,
        value,
        at: start + at,
    })
}
