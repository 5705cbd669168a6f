//! The JSON of `/api/put`: a point, or an array of points.
//!
//! A point that is wrong is told apart from the others; only a body that is no JSON of this shape
//! fails as a whole.

use crate::error::{PutFault, QueryFault};
use crate::point::{DataPoint, check_names, parse_long, parse_value, time_ms};
use crate::scalar::Scalar;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A point as it comes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct IncomingPoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<BTreeMap<String, Option<Scalar>>>,
}

/// A point that was not stored, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedPoint {
    /// The point; none if it was `null`.
    datapoint: Option<IncomingPoint>,
    /// What is wrong with it.
    pub error: String,
}

impl RefusedPoint {
    /// A point that was read and could not be stored.
    pub fn new(point: &DataPoint, error: String) -> Self {
        let tags = point.tags.iter();
        let tags = tags.map(|(key, value)| (key.clone(), Some(Scalar::Text(value.clone()))));
        let datapoint = IncomingPoint {
            metric: Some(Scalar::Text(point.metric.clone())),
            timestamp: Some(Scalar::Integer(point.time_ms)),
            value: Some(Scalar::Text(Scalar::Float(point.value).to_string())),
            tags: Some(tags.collect()),
        };
        Self {
            datapoint: Some(datapoint),
            error,
        }
    }
}

/// The points of a body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedPut {
    /// Those that may be stored.
    pub points: Vec<DataPoint>,
    /// The first of those that may not.
    pub refused: Vec<RefusedPoint>,
    /// How many may not.
    pub refused_count: usize,
}

impl ParsedPut {
    /// Whether there was no point, good or wrong.
    const fn is_empty(&self) -> bool {
        self.points.is_empty() && self.refused_count == 0
    }
}

/// Why the points of a body are not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutBodyFault {
    /// The body is no JSON, or no point or array of points.
    #[error(transparent)]
    Malformed(#[from] QueryFault),
    /// There is no memory for the points.
    #[error("there is no memory for the points")]
    NoRoom,
}

/// Reads a body point by point. Keeps at most `refused_max` of the points that are refused. `grant` is
/// asked for the bytes of each point that is kept.
///
/// # Errors
/// If the body is no JSON, no point or array of points, or a point is not granted its memory.
pub fn parse_put(
    body: &[u8],
    refused_max: usize,
    grant: &mut dyn FnMut(usize) -> bool,
) -> Result<ParsedPut, PutBodyFault> {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let mut reader = PointReader {
        parsed: ParsedPut::default(),
        refused_max,
        grant,
        has_room: true,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = match first {
        Some(b'[') => json.deserialize_seq(&mut reader),
        Some(b'{') => IncomingPoint::deserialize(&mut json).map(|point| {
            reader.add(Some(point));
        }),
        None => return Err(QueryFault::new("Missing request content").into()),
        Some(_) => {
            let message = "The JSON must start as an object or an array";
            return Err(QueryFault::new(message).into());
        }
    };
    if !reader.has_room {
        return Err(PutBodyFault::NoRoom);
    }
    match read.and_then(|()| json.end()) {
        Ok(()) if reader.parsed.is_empty() => {
            Err(QueryFault::new("No datapoints found in content").into())
        }
        Ok(()) => Ok(reader.parsed),
        Err(error) => Err(QueryFault::new("Unable to parse the given JSON")
            .with_details(error.to_string())
            .into()),
    }
}

/// Takes the points of an array one by one: as they come, they hold more memory than their text.
struct PointReader<'a> {
    parsed: ParsedPut,
    refused_max: usize,
    grant: &'a mut dyn FnMut(usize) -> bool,
    has_room: bool,
}

impl PointReader<'_> {
    fn add(&mut self, point: Option<IncomingPoint>) {
        let null = || "Unexpected null datapoint encountered in set.".to_owned();
        match point.as_ref().ok_or_else(null).and_then(read) {
            Ok(point) => {
                self.has_room &= (self.grant)(point.memory_bytes());
                self.parsed.points.push(point);
            }
            Err(error) => {
                self.parsed.refused_count += 1;
                if self.parsed.refused.len() < self.refused_max {
                    let datapoint = point.map(|point| IncomingPoint {
                        timestamp: Some(point.timestamp.unwrap_or(Scalar::Integer(0))),
                        value: point.value.map(|value| Scalar::Text(value.to_string())),
                        ..point
                    });
                    self.parsed.refused.push(RefusedPoint { datapoint, error });
                }
            }
        }
    }
}

impl<'de> Visitor<'de> for &mut PointReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of points")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut points: A) -> Result<(), A::Error> {
        while let Some(point) = points.next_element()? {
            self.add(point);
            if !self.has_room {
                return Err(A::Error::custom("there is no memory for the points"));
            }
        }
        Ok(())
    }
}

fn read(point: &IncomingPoint) -> Result<DataPoint, String> {
    let metric = point.metric.as_ref().map(ToString::to_string);
    let metric = metric.filter(|metric| !metric.is_empty());
    let metric = metric.ok_or("Metric name was empty")?;
    let time = match &point.timestamp {
        Some(Scalar::Integer(number)) => Some(*number),
        Some(Scalar::Text(text)) => parse_long(text).ok(),
        Some(Scalar::Float(number)) => Some(*number as i64),
        None => None,
    };
    let time_ms = time.and_then(time_ms).ok_or("Invalid timestamp")?;
    let unparsed = || "Unable to parse value to a number".to_owned();
    let value = match &point.value {
        None => return Err("Empty value".to_owned()),
        Some(Scalar::Text(text)) if text.is_empty() => return Err("Empty value".to_owned()),
        Some(Scalar::Text(text)) => parse_value(text).map_err(|_| unparsed())?,
        Some(Scalar::Integer(number)) => *number as f64,
        Some(Scalar::Float(number)) if number.is_finite() => *number,
        Some(Scalar::Float(_)) => return Err(unparsed()),
    };
    let tags = point.tags.as_ref().filter(|tags| !tags.is_empty());
    let tags = tags.ok_or("Missing tags")?.iter();
    let tags: Result<Vec<(String, String)>, String> = tags
        .map(|(key, value)| match value {
            Some(value) => Ok((key.clone(), value.to_string())),
            None => Err(format!("Invalid tag value with key [{key:.100}]: null")),
        })
        .collect();
    let tags = tags?;
    check_names(&metric, &tags).map_err(|fault: PutFault| fault.to_string())?;
    Ok(DataPoint {
        metric,
        time_ms,
        value,
        tags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(body: &str) -> ParsedPut {
        parse_put(body.as_bytes(), 10, &mut |_| true).expect("the body can be read")
    }

    #[test]
    fn a_point_or_many() {
        let one = r#"{"metric":"m","timestamp":1356998400,"value":6,"tags":{"host":"a","n":7}}"#;
        let point = &put(one).points[0];
        assert_eq!((point.time_ms, point.value), (1_356_998_400_000, 6.0));
        assert_eq!(point.tags[1], ("n".to_owned(), "7".to_owned()));
        let text =
            r#" [{"metric":"m","timestamp":"1356998400123","value":"1.5e3","tags":{"h":"a"}}]"#;
        let point = &put(text).points[0];
        assert_eq!((point.time_ms, point.value), (1_356_998_400_123, 1500.0));
    }

    #[test]
    fn a_wrong_point_leaves_the_others() {
        let body = r#"[
            {"timestamp":123456,"value":6.7,"tags":{"test":"test"}},
            {"metric":"good","timestamp":1,"value":6.7,"tags":{"test":"test"}},
            {"metric":"m","timestamp":-1,"value":6.7,"tags":{"test":"test"}},
            {"metric":"m","timestamp":1,"value":"","tags":{"test":"test"}},
            {"metric":"m","timestamp":1,"value":"x","tags":{"test":"test"}},
            {"metric":"m","timestamp":1,"value":1,"tags":{}},
            {"metric":"Abin76+-","timestamp":1,"value":1,"tags":{"a":"b"}},
            {"metric":"m","timestamp":1,"value":1,"tags":{"a":null}},
            null]"#;
        let parsed = put(body);
        assert_eq!(parsed.points.len(), 1);
        let errors: Vec<&str> = parsed
            .refused
            .iter()
            .map(|bad| bad.error.as_str())
            .collect();
        let expected = [
            "Metric name was empty",
            "Invalid timestamp",
            "Empty value",
            "Unable to parse value to a number",
            "Missing tags",
            "Invalid metric name (\"Abin76+-\"): illegal character: +",
            "Invalid tag value with key [a]: null",
            "Unexpected null datapoint encountered in set.",
        ];
        assert_eq!(errors, expected);
        let first = serde_json::to_string(&parsed.refused[0]).unwrap();
        let expected = r#"{"datapoint":{"timestamp":123456,"value":"6.7","tags":{"test":"test"}},"error":"Metric name was empty"}"#;
        assert_eq!(first, expected);
        let last = serde_json::to_string(&parsed.refused[7]).unwrap();
        let expected =
            r#"{"datapoint":null,"error":"Unexpected null datapoint encountered in set."}"#;
        assert_eq!(last, expected);
        let empty = serde_json::to_string(&put("{}").refused[0]).unwrap();
        assert_eq!(
            empty,
            r#"{"datapoint":{"timestamp":0},"error":"Metric name was empty"}"#
        );
    }

    #[test]
    fn what_is_no_json_is_refused_as_a_whole() {
        let message = |body: &str| {
            let fault = parse_put(body.as_bytes(), 10, &mut |_| true).unwrap_err();
            fault.to_string()
        };
        assert_eq!(
            message("blah"),
            "The JSON must start as an object or an array"
        );
        assert_eq!(message(" "), "Missing request content");
        assert_eq!(message("[]"), "No datapoints found in content");
        for body in [
            "{",
            "[{]",
            r#"{"metric":{"a":1}}"#,
            "[1]",
            r#"{"value":1e999}"#,
        ] {
            assert_eq!(message(body), "Unable to parse the given JSON", "{body}");
        }
    }

    #[test]
    fn points_that_get_no_memory_are_not_read() {
        let point = r#"{"metric":"m","timestamp":1,"value":6,"tags":{"host":"a"}}"#;
        let body = format!("[{}]", [point; 100].join(","));
        let mut left = 1000_usize;
        let parsed = parse_put(body.as_bytes(), 10, &mut |bytes| {
            left = left.saturating_sub(bytes);
            left > 0
        });
        assert_eq!(parsed, Err(PutBodyFault::NoRoom));
        // Points that are refused hold nothing but the first ones.
        let empty = format!("[{}]", ["{}"; 1000].join(","));
        let parsed = parse_put(empty.as_bytes(), 10, &mut |_| false).unwrap();
        assert_eq!((parsed.refused.len(), parsed.refused_count), (10, 1000));
    }
}
