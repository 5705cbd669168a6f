//! Reads lines into batches, one for each measurement or metric.

use super::SchemalessProtocol;
use crate::http::tdengine::error::TaosFailure;
use axum::http::StatusCode;
use marigram_model::WriteBatch;
use marigram_opentsdb::{DataPoint, PutBodyFault, TelnetCommand, parse_put};
use marigram_protocol::lines::{LineLimits, Precision, parse};
use marigram_protocol::opentsdb::metric_batches;
use marigram_tdengine::plain_lines;
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of a line that is wrong.
const WRONG_LINE: u16 = 0x3002;

/// Reads lines.
///
/// # Errors
/// What is wrong with the first line that is.
pub(super) fn read_batches(
    protocol: SchemalessProtocol,
    precision: &str,
    data: &[u8],
) -> Result<Vec<WriteBatch>, TaosFailure> {
    match protocol {
        SchemalessProtocol::Lines => read_lines(precision, data),
        SchemalessProtocol::Telnet => {
            let lines = data.split(|byte| *byte == b'\n').zip(1_usize..);
            let mut points = Vec::new();
            for (line, number) in lines {
                let line = line.trim_ascii();
                if line.is_empty() {
                    continue;
                }
                points.push(read_point(line).map_err(|reason| wrong_line(number, &reason))?);
            }
            Ok(batches_of(&points))
        }
        SchemalessProtocol::Json => {
            // The caller reserved memory for the rows.
            let parsed = parse_put(data, 1, &mut |_| true).map_err(|fault| match fault {
                PutBodyFault::Malformed(fault) => wrong(fault.message),
                PutBodyFault::NoRoom => TaosFailure::no_memory(),
            })?;
            if let Some(refused) = parsed.refused.into_iter().next() {
                return Err(wrong(refused.error));
            }
            Ok(batches_of(&parsed.points))
        }
    }
}

/// Reads a line of telnet: with or without `put` before the metric.
fn read_point(line: &[u8]) -> Result<DataPoint, String> {
    let command = if line.starts_with(b"put ") {
        TelnetCommand::parse(line)
    } else {
        TelnetCommand::parse(&[b"put ", line].concat())
    };
    match command {
        TelnetCommand::Put(point) => point.map_err(|fault| fault.to_string()),
        _ => Err("it is no point".to_owned()),
    }
}

fn batches_of(points: &[DataPoint]) -> Vec<WriteBatch> {
    let mut batches: Vec<_> = metric_batches(points)
        .into_iter()
        .map(|metric| metric.batch)
        .collect();
    for field in batches.iter_mut().flat_map(|batch| &mut batch.fields) {
        "_value".clone_into(&mut field.name);
    }
    batches
}

fn read_lines(precision: &str, data: &[u8]) -> Result<Vec<WriteBatch>, TaosFailure> {
    let unit = match precision {
        "" => Some(Precision::Nanoseconds),
        name => Precision::from_name(name),
    };
    let unit = unit.ok_or_else(|| wrong(format!("precision '{precision}' is not known")))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let now_ns = i64::try_from(now).unwrap_or(i64::MAX);
    let limits = LineLimits {
        errors_max: 1,
        ..LineLimits::default()
    };
    let parsed = parse(&plain_lines(data), unit, now_ns, limits);
    match parsed.errors.into_iter().next() {
        Some(error) => {
            let reason = format!("column {}: {}", error.column, error.reason);
            let line = usize::try_from(error.line).unwrap_or(0);
            Err(wrong_line(line, &reason))
        }
        None => Ok(parsed.batches),
    }
}

fn wrong_line(line: usize, reason: &str) -> TaosFailure {
    wrong(format!("line {line}: {reason}"))
}

fn wrong(reason: String) -> TaosFailure {
    let message = format!("Invalid data format, {reason}");
    TaosFailure::new(StatusCode::BAD_REQUEST, WRONG_LINE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_protocols_become_batches() {
        let lines = b"st,t1=3 c1=3i64,c2=f,c3=L\"x\" 1626006833639000000\nother v=1f32";
        let batches = read_batches(SchemalessProtocol::Lines, "", lines).expect("lines");
        assert_eq!((batches.len(), batches[0].table.as_str()), (2, "st"));
        let telnet = b"put sys.cpu 1479496100 42.5 host=web01\nsys.cpu 1479496101 1 host=web02\n\n";
        let batches = read_batches(SchemalessProtocol::Telnet, "", telnet).expect("telnet");
        assert_eq!((batches.len(), batches[0].len()), (1, 2));
        assert_eq!(batches[0].fields[0].name, "_value");
        let json = br#"[{"metric":"a","timestamp":1346846400,"value":18,"tags":{"h":"x"}}]"#;
        let batches = read_batches(SchemalessProtocol::Json, "", json).expect("JSON");
        assert_eq!(batches[0].times[0], 1_346_846_400_000_000_000);
        for (protocol, precision, wrong) in [
            (SchemalessProtocol::Lines, "", &b"st"[..]),
            (SchemalessProtocol::Lines, "x", b"st v=1"),
            (SchemalessProtocol::Telnet, "", b"put a"),
            (SchemalessProtocol::Telnet, "", b"put a 1 nan h=x"),
            (SchemalessProtocol::Json, "", b"{"),
            (SchemalessProtocol::Json, "", br#"{"metric":"a"}"#),
        ] {
            let failure = read_batches(protocol, precision, wrong).expect_err("it is wrong");
            assert_eq!(failure.code, WRONG_LINE, "{failure:?}");
        }
    }
}
