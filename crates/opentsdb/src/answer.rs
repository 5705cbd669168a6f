//! The JSON of an answer, written series by series and point by point.

use crate::annotation::Annotation;
use crate::java_number::{push_double, push_stored};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Key of a schema's metadata with the [`SeriesHead`] of its rows, as JSON.
pub const SERIES_KEY: &str = "marigram.opentsdb.series";

/// What an answer says of a group of series before its points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct SeriesHead {
    /// The number of the group in its query, from 0: the rows of a group may come in several batches.
    pub number: u64,
    /// The metric.
    pub metric: String,
    /// The tags that the series share.
    pub tags: BTreeMap<String, String>,
    /// The names of the other tags.
    pub aggregate_tags: Vec<String>,
    /// The numbers of the series, if they were asked for.
    pub tsuids: Option<Vec<String>>,
    /// The part of the query, if it was asked for.
    pub query: Option<serde_json::Value>,
    /// The annotations of the series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
    /// The annotations of all series, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub global_annotations: Vec<Annotation>,
    /// Whether its values are shown as floats.
    pub has_floats: bool,
    /// Whether missing values are shown as `null`.
    pub shows_null: bool,
}

/// Writes an answer.
#[derive(Debug)]
pub struct SeriesWriter {
    has_arrays: bool,
    has_milliseconds: bool,
    /// The series that is open, and whether it has points.
    open: Option<(bool, bool, bool)>,
    has_series: bool,
    points: u64,
}

impl SeriesWriter {
    /// Begins an answer, with points as arrays or as an object.
    pub fn begin(has_arrays: bool, has_milliseconds: bool, text: &mut String) -> Self {
        text.push('[');
        Self {
            has_arrays,
            has_milliseconds,
            open: None,
            has_series: false,
            points: 0,
        }
    }

    /// Begins a series.
    pub fn series(&mut self, head: &SeriesHead, text: &mut String) {
        self.end_series(text);
        if std::mem::replace(&mut self.has_series, true) {
            text.push(',');
        }
        let _ = write!(
            text,
            "{{\"metric\":{},\"tags\":{},\"aggregateTags\":{}",
            json(&head.metric),
            json(&head.tags),
            json(&head.aggregate_tags)
        );
        if let Some(query) = &head.query {
            let _ = write!(text, ",\"query\":{query}");
        }
        if let Some(tsuids) = &head.tsuids {
            let _ = write!(text, ",\"tsuids\":{}", json(tsuids));
        }
        for (name, annotations) in [
            ("annotations", &head.annotations),
            ("globalAnnotations", &head.global_annotations),
        ] {
            if !annotations.is_empty() {
                let _ = write!(text, ",\"{name}\":{}", json(annotations));
            }
        }
        text.push_str(if self.has_arrays {
            ",\"dps\":["
        } else {
            ",\"dps\":{"
        });
        self.open = Some((false, head.has_floats, head.shows_null));
    }

    /// Adds a point to the series.
    pub fn point(&mut self, time_ms: i64, value: f64, text: &mut String) {
        let Some((has_points, has_floats, shows_null)) = &mut self.open else {
            return;
        };
        if std::mem::replace(has_points, true) {
            text.push(',');
        }
        self.points += 1;
        let time = if self.has_milliseconds {
            time_ms
        } else {
            time_ms.div_euclid(1000)
        };
        let _ = if self.has_arrays {
            write!(text, "[{time},")
        } else {
            write!(text, "\"{time}\":")
        };
        if value.is_nan() && *shows_null {
            text.push_str("null");
        } else if !value.is_finite() {
            // As Jackson writes them: JSON has no such numbers.
            text.push('"');
            push_double(value, text);
            text.push('"');
        } else if *has_floats {
            push_double(value, text);
        } else {
            push_stored(value, text);
        }
        if self.has_arrays {
            text.push(']');
        }
    }

    fn end_series(&mut self, text: &mut String) {
        if self.open.take().is_some() {
            text.push_str(if self.has_arrays { "]}" } else { "}}" });
        }
    }

    /// Ends the answer, perhaps with a summary.
    pub fn end(&mut self, has_summary: bool, text: &mut String) {
        self.end_series(text);
        if has_summary {
            if std::mem::replace(&mut self.has_series, true) {
                text.push(',');
            }
            let points = self.points;
            let _ = write!(
                text,
                "{{\"statsSummary\":{{\"emittedDPs\":{points},\"successful\":true}}}}"
            );
        }
        text.push(']');
    }
}

/// A value as JSON: names and texts always have a form in it.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(has_floats: bool, shows_null: bool) -> SeriesHead {
        SeriesHead {
            metric: "m".into(),
            tags: BTreeMap::from([("host".into(), "a".into())]),
            aggregate_tags: vec!["cpu".into()],
            has_floats,
            shows_null,
            ..SeriesHead::default()
        }
    }

    #[test]
    fn points_are_an_object_or_arrays() {
        let answer = |has_arrays: bool, has_milliseconds: bool| {
            let mut text = String::new();
            let mut writer = SeriesWriter::begin(has_arrays, has_milliseconds, &mut text);
            writer.series(&head(false, false), &mut text);
            writer.point(1_356_998_400_000, 6.0, &mut text);
            writer.point(1_356_998_401_500, 6.5, &mut text);
            let tsuids = Some(vec!["0A".into()]);
            writer.series(
                &SeriesHead {
                    tsuids,
                    ..head(true, true)
                },
                &mut text,
            );
            writer.point(1_356_998_400_000, 6.0, &mut text);
            writer.point(1_356_998_401_000, f64::NAN, &mut text);
            writer.end(false, &mut text);
            text
        };
        assert_eq!(
            answer(false, false),
            r#"[{"metric":"m","tags":{"host":"a"},"aggregateTags":["cpu"],"dps":{"1356998400":6,"1356998401":6.5}},"#.to_owned()
                + r#"{"metric":"m","tags":{"host":"a"},"aggregateTags":["cpu"],"tsuids":["0A"],"dps":{"1356998400":6.0,"1356998401":null}}]"#
        );
        let arrays = answer(true, true);
        assert!(
            arrays.contains(r#""dps":[[1356998400000,6],[1356998401500,6.5]]"#),
            "{arrays}"
        );
        serde_json::from_str::<serde_json::Value>(&arrays).unwrap();
    }

    #[test]
    fn an_answer_may_be_empty_or_only_a_summary() {
        let answer = |has_summary: bool| {
            let mut text = String::new();
            SeriesWriter::begin(false, false, &mut text).end(has_summary, &mut text);
            text
        };
        assert_eq!(answer(false), "[]");
        assert_eq!(
            answer(true),
            r#"[{"statsSummary":{"emittedDPs":0,"successful":true}}]"#
        );
        let mut text = String::new();
        let mut writer = SeriesWriter::begin(false, false, &mut text);
        writer.series(&head(true, false), &mut text);
        writer.point(0, f64::NAN, &mut text);
        writer.end(true, &mut text);
        assert!(text.contains(r#"{"0":"NaN"}"#), "{text}");
    }
}
