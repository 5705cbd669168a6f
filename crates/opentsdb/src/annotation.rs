//! Annotations: notes about a time, of one series or of all (`/api/annotation`).
//!
//! An [`AnnotationChange`] is what a client sends, an [`Annotation`] is what is stored and answered. An
//! [`AnnotationRange`] is what is deleted or listed at once. Times are seconds or milliseconds and stay as they
//! came; those of one instant are the same annotation.

mod change;
mod range;

use crate::error::QueryFault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use change::AnnotationChange;
pub use range::{AnnotationDeletion, AnnotationRange};

/// The table of annotations.
pub const ANNOTATION_TABLE: &str = "opentsdb_annotations";
/// Its tag with the number of the series.
pub const ANNOTATION_TAG: &str = "tsuid";
/// The tag of an annotation of all series: no number of a series.
const TAG_OF_ALL: &str = "global";
/// Its fields: the times as they came, the texts, and the client's own fields as JSON.
pub const ANNOTATION_FIELDS: [&str; 5] =
    ["start_time", "end_time", "description", "notes", "custom"];

/// Numbers up to this one are seconds.
const SECONDS_MAX: i64 = 0xFFFF_FFFF;
/// Hexadecimal digits of a series' number: a series has as many tags as a table may have columns.
const TSUID_DIGITS_MAX: usize = 1 << 16;

/// An annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Annotation {
    /// The number of its series; empty if it is of all.
    pub tsuid: String,
    /// A short text.
    pub description: String,
    /// A long text.
    pub notes: String,
    /// The client's own fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<BTreeMap<String, String>>,
    /// When it begins, in seconds or milliseconds.
    pub start_time: i64,
    /// When it ends, or 0.
    pub end_time: i64,
}

impl Annotation {
    /// When it begins, ms.
    pub fn start_ms(&self) -> i64 {
        milliseconds(self.start_time)
    }

    /// The annotation as JSON.
    pub fn to_json(&self) -> String {
        // Keys are texts: it has a form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Bytes that it holds, nearly.
    pub fn held_bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 128;
        let custom = self.custom.iter().flatten();
        let custom: usize = custom
            .map(|(key, value)| ENTRY_BYTES + key.len() + value.len())
            .sum();
        size_of::<Self>() + self.tsuid.len() + self.description.len() + self.notes.len() + custom
    }

    /// The client's own fields as the table has them; empty if there are none.
    pub fn custom_text(&self) -> String {
        let text = self.custom.as_ref().map(serde_json::to_string);
        text.and_then(Result::ok).unwrap_or_default()
    }

    /// Reads [`Annotation::custom_text`].
    pub fn custom_of_text(text: &str) -> Option<BTreeMap<String, String>> {
        serde_json::from_str(text).ok()
    }
}

/// The annotations that are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationQuery {
    /// Those of these series, `""` for all series, at these times, ms.
    Places(Vec<(String, i64)>),
    /// Those that begin in a range of times.
    Range(AnnotationRange),
}

/// The tag of a series' annotations in the table; that of all series for an empty number.
pub fn annotation_tag(tsuid: &str) -> &str {
    if tsuid.is_empty() { TAG_OF_ALL } else { tsuid }
}

/// The number of a series of which [`annotation_tag`] is the tag.
pub fn annotation_tsuid(tag: &str) -> &str {
    if tag == TAG_OF_ALL { "" } else { tag }
}

fn milliseconds(time: i64) -> i64 {
    if time > SECONDS_MAX {
        time
    } else {
        time.saturating_mul(1000)
    }
}

/// The number of a series in upper case; empty for all series.
fn checked_tsuid(tsuid: &str) -> Result<String, QueryFault> {
    let is_number = tsuid.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_number || tsuid.len() > TSUID_DIGITS_MAX {
        return Err(QueryFault::new(format!(
            "contains illegal character for hexBinary: {tsuid:.50}"
        )));
    }
    Ok(tsuid.to_ascii_uppercase())
}

#[cfg(test)]
mod tests;
