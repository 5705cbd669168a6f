//! The log of a server: lines for people, or JSON for programs.
//!
//! Invariant: with `json` each line is one JSON object, whatever was logged.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Format of the log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Starts the log of this process on stderr.
///
/// # Errors
/// If `level` is neither a level nor a filter.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<()> {
    // A bare level applies to Marigram's crates, whose names all start so; libraries only warn.
    let is_level = level.chars().all(|c| c.is_ascii_alphabetic());
    let directives = if is_level {
        format!("warn,marigram={level}")
    } else {
        level.to_owned()
    };
    let filter = EnvFilter::try_new(&directives)
        .with_context(|| format!("log = '{level}' is neither a level nor a filter"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(crate::terminal::colours_errors()).init(),
        LogFormat::Json => log.event_format(JsonLines).init(),
    }
    Ok(())
}

/// Events as JSON: `time` (RFC 3339, UTC), `level`, `target`, `message`, and the event's own fields.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = EventFields(Map::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        writeln!(
            writer,
            "{}",
            line(
                now_ns,
                metadata.level().as_str(),
                metadata.target(),
                fields.0
            )
        )
    }
}

/// Formats a line, which starts with the fields that every line has. An event's field of the same
/// name is kept as well.
fn line(now_ns: i64, level: &str, target: &str, fields: Map<String, Value>) -> String {
    let time = chrono::DateTime::from_timestamp_nanos(now_ns);
    let head = [
        ("time", time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        ("level", level.to_ascii_lowercase()),
        ("target", target.to_owned()),
    ];
    let mut line = String::from("{");
    for (name, value) in head {
        let _ = write!(line, "\"{name}\":{},", Value::from(value));
    }
    for (name, value) in fields {
        let taken = matches!(name.as_str(), "time" | "level" | "target");
        let name = if taken { format!("{name}_") } else { name };
        let _ = write!(line, "{}:{value},", Value::from(name));
    }
    line.pop();
    line.push('}');
    line
}

/// The fields of an event, including the message.
struct EventFields(Map<String, Value>);

impl EventFields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // A number that JSON cannot hold becomes text.
        let number = serde_json::Number::from_f64(value);
        self.put(
            field,
            number.map_or_else(|| Value::from(value.to_string()), Value::Number),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_whatever_is_in_it() {
        let fields = Map::from_iter([
            (
                "message".to_owned(),
                Value::from("it's \"so\"\nand so\u{1b}"),
            ),
            ("rows".to_owned(), Value::from(3)),
            ("level".to_owned(), Value::from("high")),
        ]);
        let line = line(1_500_000_000, "INFO", "marigram::x", fields);
        assert!(!line.contains('\n'), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["time"], "1970-01-01T00:00:01.500000Z");
        assert_eq!(value["level"], "info");
        assert_eq!(value["level_"], "high");
        assert_eq!(value["message"], "it's \"so\"\nand so\u{1b}");
        assert_eq!(value["rows"], 3);
        assert!(line.starts_with("{\"time\":"), "{line}");
    }
}
