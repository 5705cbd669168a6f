//! What `/write` answers of lines that were not stored, in InfluxDB's words.

use marigram_protocol::lines::{LineError, influx_fault};
use std::fmt::Write as _;

/// Bytes of a line that an answer repeats.
const LINE_BYTES_MAX: usize = 1 << 10;

/// Lines that were not stored.
#[derive(Debug, Default)]
pub(crate) struct LinesRefused {
    /// Those that could not be read, each with its reason.
    pub unread: Vec<String>,
    /// How many more of these there are.
    pub unread_omitted: u64,
    /// Whether the database was given rows.
    pub had_rows: bool,
    /// Measurement of the last row that the database refused, and why it did.
    pub last_reason: Option<(String, String)>,
    /// How many rows it refused.
    pub dropped: usize,
}

/// The error that says why lines were not stored.
pub(crate) fn refusal(refused: &LinesRefused) -> String {
    if let Some((measurement, reason)) = &refused.last_reason {
        let (reason, dropped) = (influx_reason(measurement, reason), refused.dropped);
        return format!("partial write: {reason} dropped={dropped}");
    }
    let mut unread = refused.unread.join("\n");
    if refused.unread_omitted > 0 {
        let _ = write!(unread, "\nand {} lines more", refused.unread_omitted);
    }
    if refused.had_rows {
        format!("partial write: {unread} dropped=0")
    } else {
        unread
    }
}

/// `unable to parse '…': …`, of the first `count` lines that could not be read.
pub(crate) fn unread_lines(
    body: &[u8],
    errors: &[LineError],
    count: usize,
    unit_ns: i64,
) -> Vec<String> {
    let mut lines = body.split(|byte| *byte == b'\n').zip(1_u32..);
    let mut unread = Vec::new();
    for error in errors.iter().take(count) {
        let line = lines.find(|(_, number)| *number == error.line);
        let line = String::from_utf8_lossy(line.map_or(b"", |(line, _)| line));
        let line = line.trim_start_matches([' ', '\t', '\0']);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let why = influx_fault(line, unit_ns);
        let why = why.unwrap_or_else(|| format!("column {}: {}", error.column, error.reason));
        let end = line.floor_char_boundary(LINE_BYTES_MAX);
        let more = if end < line.len() { "…" } else { "" };
        unread.push(format!("unable to parse '{}{more}': {why}", &line[..end]));
    }
    unread
}

/// A reason of the database, as InfluxDB says it where it has the same one.
fn influx_reason(measurement: &str, reason: &str) -> String {
    if reason.contains("(its ttl)") {
        return "points beyond retention policy".to_owned();
    }
    if let Some((field, found, wanted)) = field_conflict(reason) {
        return format!(
            "field type conflict: input field \"{field}\" on measurement \"{measurement}\" is type \
             {found}, already exists as type {wanted}"
        );
    }
    reason.to_owned()
}

/// Field, type of the value and type of the field, where a reason is a conflict of the two.
fn field_conflict(reason: &str) -> Option<(&str, &'static str, &'static str)> {
    let rest = reason.strip_prefix("field '")?;
    let (rest, wanted) = rest.rsplit_once(" here, and the field in the table is ")?;
    let (field, found) = rest.rsplit_once("' is ")?;
    Some((field, influx_type(found)?, influx_type(wanted)?))
}

fn influx_type(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "BOOLEAN" => "boolean",
        "INT" | "BIGINT" => "integer",
        "BIGINT UNSIGNED" => "unsigned",
        "REAL" | "DOUBLE" => "float",
        "STRING" => "string",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_protocol::lines::{LineLimits, Precision, parse};

    fn unread(body: &str) -> Vec<String> {
        let limits = LineLimits::default();
        let parsed = parse(body.as_bytes(), Precision::Nanoseconds, 0, limits);
        unread_lines(body.as_bytes(), &parsed.errors, 100, 1)
    }

    /// Bodies of answers as InfluxDB 1.6.7 gave them.
    #[test]
    fn lines_that_cannot_be_read_are_repeated_with_their_fault() {
        let lines = unread("good v=1 1\nbad\nworse v=\ngood v=2 2");
        let mut refused = LinesRefused {
            unread: lines,
            had_rows: true,
            ..LinesRefused::default()
        };
        assert_eq!(
            refusal(&refused),
            "partial write: unable to parse 'bad': missing fields\nunable to parse 'worse v=': \
             missing field value dropped=0"
        );
        refused.unread.pop();
        refused.had_rows = false;
        assert_eq!(refusal(&refused), "unable to parse 'bad': missing fields");
        let long = unread(&format!("m {}", "é".repeat(2000)));
        assert!(long[0].len() < 1200 && long[0].contains("…': "));
        assert_eq!(
            unread("a v=1 1\n\n\n \tm\r\n")[0],
            "unable to parse 'm': missing fields"
        );
    }

    #[test]
    fn rows_that_are_refused_are_counted_with_the_last_reason() {
        let reason = |reason: &str| {
            refusal(&LinesRefused {
                last_reason: Some(("cpu".to_owned(), reason.to_owned())),
                dropped: 2,
                ..LinesRefused::default()
            })
        };
        assert_eq!(
            reason("field 'it's v' is STRING here, and the field in the table is DOUBLE"),
            "partial write: field type conflict: input field \"it's v\" on measurement \"cpu\" is \
             type string, already exists as type float dropped=2"
        );
        assert_eq!(
            reason("time 1 is older than table 'cpu' keeps rows (its ttl)"),
            "partial write: points beyond retention policy dropped=2"
        );
        assert_eq!(
            reason("tag 'a' is STRING here, and the tag in the table is BIGINT"),
            "partial write: tag 'a' is STRING here, and the tag in the table is BIGINT dropped=2"
        );
    }
}
