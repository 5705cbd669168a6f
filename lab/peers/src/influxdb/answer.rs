//! Decodes InfluxDB's answers to `InfluxQL`, and its counters.

use anyhow::{Context, Result, bail, ensure};
use marigram_lab::data::Table;
use marigram_lab::question::{Aggregate, Answer, Cell, Select, Selection};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    results: Vec<Statement>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Statement {
    #[serde(default)]
    series: Vec<Series>,
    error: Option<String>,
    #[serde(default)]
    partial: bool,
}

/// Rows of a chunk, `DefaultChunkSize` of the server.
const CHUNK_ROWS: usize = 10_000;

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    tags: HashMap<String, String>,
    values: Vec<Vec<Value>>,
    #[serde(default)]
    partial: bool,
}

/// The answer to `select` in a received document.
pub(super) fn decode(table: &Table, select: &Select, document: Value) -> Result<Answer> {
    let document: Document = serde_json::from_value(document).context("the answer's form")?;
    let mut rows = Vec::new();
    if let Some(error) = document.error {
        bail!("{error}");
    }
    for statement in document.results {
        if let Some(error) = statement.error {
            bail!("{error}");
        }
        // The server builds an answer from chunks of this many rows, over all series. It also calls
        // an answer partial if its last chunk is full.
        let count: usize = statement.series.iter().map(|s| s.values.len()).sum();
        let partial = statement.partial || statement.series.iter().any(|s| s.partial);
        ensure!(
            !partial || count.is_multiple_of(CHUNK_ROWS),
            "the answer is cut off"
        );
        for series in statement.series {
            for row in &series.values {
                rows.push(cells(table, select, &series.tags, row)?);
            }
        }
    }
    Ok(Answer { rows })
}

fn cells(
    table: &Table,
    select: &Select,
    tags: &HashMap<String, String>,
    row: &[Value],
) -> Result<Vec<Cell>> {
    let (time, values) = row.split_first().context("a row without a time")?;
    let time = Cell::Time(time.as_i64().context("a time that is no number")?);
    let group = |tag: usize| text(tags.get(&table.tags[tag].name).map(String::as_str));
    match &select.what {
        Selection::Rows(fields) | Selection::Last(fields) => {
            let ungrouped = matches!(select.what, Selection::Rows(_)) && select.descending;
            let (key, values) = if ungrouped {
                let (key, values) = values.split_first().context("a row without a device")?;
                (text(key.as_str()), values)
            } else {
                (group(table.key), values)
            };
            ensure!(values.len() >= fields.len(), "a row that is too short");
            let values = values[..fields.len()].iter().map(cell);
            [Ok(key), Ok(time)].into_iter().chain(values).collect()
        }
        Selection::Aggregates(aggregates) => {
            ensure!(values.len() == aggregates.len(), "a row of another length");
            let groups = select.by.iter().map(|tag| Ok(group(*tag)));
            let window = select.bucket_ns.map(|_| Ok(time));
            let values = aggregates.iter().zip(values).map(|((function, _), value)| {
                // If a field has no value at all, even its count is null.
                if *function == Aggregate::Count && value.is_null() {
                    return Ok(Cell::Number(0.0));
                }
                cell(value)
            });
            groups.chain(window).chain(values).collect()
        }
    }
}

/// A tag; empty text means that the device lacks it.
fn text(value: Option<&str>) -> Cell {
    match value {
        None | Some("") => Cell::Null,
        Some(value) => Cell::Text(value.to_owned()),
    }
}

fn cell(value: &Value) -> Result<Cell> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Number(f64::from(u8::from(*value))),
        Value::Number(value) => Cell::Number(value.as_f64().context("a number")?),
        Value::String(value) => Cell::Text(value.clone()),
        _ => bail!("{value} where a value should be"),
    })
}

/// The pending work of the storage engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Bytes that are not in a file yet.
    cached_bytes: u64,
    /// Running flushes and compactions. Waiting ones do not count, because the server may let one
    /// wait for ever.
    compactions: u64,
    /// Data files of the shard that has most of them.
    files: u64,
}

impl Work {
    /// Whether the engine is working.
    pub(super) fn is_busy(self) -> bool {
        self.cached_bytes > 0 || self.compactions > 0
    }

    /// Whether no work is left.
    pub(super) fn is_done(self) -> bool {
        !self.is_busy() && self.files <= 1
    }
}

/// Reads the pending work from `/debug/vars`.
pub(super) fn work(body: &[u8]) -> Result<Work> {
    let vars: HashMap<String, Value> = serde_json::from_slice(body)?;
    let mut work = Work::default();
    for module in vars.values() {
        let number = |name: &str| module["values"][name].as_u64().unwrap_or(0);
        match module["name"].as_str() {
            Some("tsm1_cache") => work.cached_bytes += number("memBytes"),
            Some("tsm1_filestore") => work.files = work.files.max(number("numFiles")),
            Some("tsm1_engine") => {
                let values = module["values"].as_object().into_iter().flatten();
                let active = values.filter(|(name, _)| name.ends_with("Active"));
                work.compactions += active.filter_map(|(_, value)| value.as_u64()).sum::<u64>();
            }
            _ => {}
        }
    }
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn table() -> Table {
        sample::table(3)
    }

    fn rows(select: &Select, body: &str) -> Vec<Vec<Cell>> {
        let document = serde_json::from_str(body).expect("JSON");
        let answer = decode(&table(), select, document).expect("an answer");
        answer.rows
    }

    fn word(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn rows_take_their_device_from_the_group_or_the_row() {
        let mut select = Select::all(0, Selection::Rows(vec![0, 1]));
        let grouped = r#"{"results":[{"statement_id":0,"series":[{"name":"t","tags":{"dev":"a"},"columns":["time","celsius","ok","note"],"values":[[1609459200000000001,1.5,true,"x"],[1609459201000000000,null,false,null]]}]}]}"#;
        let expected = vec![
            vec![
                word("a"),
                Cell::Time(1_609_459_200_000_000_001),
                Cell::Number(1.5),
                Cell::Number(1.0),
            ],
            vec![
                word("a"),
                Cell::Time(1_609_459_201_000_000_000),
                Cell::Null,
                Cell::Number(0.0),
            ],
        ];
        assert_eq!(rows(&select, grouped), expected);
        select.descending = true;
        let newest_first = r#"{"results":[{"statement_id":0,"series":[{"name":"t","columns":["time","dev","celsius","ok"],"values":[[1609459200000000001,"a",1.5,true]]}]}]}"#;
        assert_eq!(rows(&select, newest_first), expected[..1]);
    }

    #[test]
    fn aggregates_take_their_groups_from_tags_and_time() {
        let select = Select {
            by: vec![1],
            bucket_ns: Some(60),
            ..Select::all(
                0,
                Selection::Aggregates(vec![(Aggregate::Sum, 0), (Aggregate::Count, 1)]),
            )
        };
        let body = r#"{"results":[{"statement_id":0,"series":[{"name":"t","tags":{"site":""},"columns":["time","sum","count"],"values":[[60,7,null]]},{"name":"t","tags":{"site":"1"},"columns":["time","sum","count"],"values":[[120,null,2]]}]}]}"#;
        assert_eq!(
            rows(&select, body),
            [
                [
                    Cell::Null,
                    Cell::Time(60),
                    Cell::Number(7.0),
                    Cell::Number(0.0)
                ],
                [word("1"), Cell::Time(120), Cell::Null, Cell::Number(2.0)],
            ]
        );
    }

    #[test]
    fn nothing_is_an_empty_answer_and_errors_are_errors() {
        let select = Select::all(0, Selection::Last(vec![0]));
        assert!(rows(&select, r#"{"results":[{"statement_id":0}]}"#).is_empty());
        for body in [
            r#"{"results":[{"statement_id":0,"error":"database not found: lab"}]}"#,
            r#"{"error":"error parsing query"}"#,
            r#"{"results":[{"statement_id":0,"series":[{"name":"t","columns":["time"],"values":[[0]],"partial":true}]}]}"#,
            r#"{"results":[{"statement_id":0,"series":[{"name":"t","columns":["time"],"values":[[0]]}]}]}"#,
            r#""not found""#,
        ] {
            let document = serde_json::from_str(body).expect("JSON");
            decode(&table(), &select, document).expect_err(body);
        }
    }

    #[test]
    fn an_answer_that_ends_with_a_full_chunk_is_whole_though_it_is_called_partial() {
        let select = Select::all(0, Selection::Rows(vec![0]));
        let row = r#"[1609459200000000001,"a",1.5,true]"#;
        let values = vec![row; CHUNK_ROWS / 2].join(",");
        let series = |partial: &str| {
            format!(
                r#"{{"name":"t","tags":{{"dev":"a"}},"columns":["time","dev","celsius","ok"],"values":[{values}]{partial}}}"#
            )
        };
        let all = [series(""), series(r#","partial":true"#)].join(",");
        let body =
            format!(r#"{{"results":[{{"statement_id":0,"series":[{all}],"partial":true}}]}}"#);
        assert_eq!(rows(&select, &body).len(), CHUNK_ROWS);
    }

    #[test]
    fn counters_say_what_is_left_to_do() {
        let vars = |bytes: u64, active: u64, files: u64| {
            format!(
                r#"{{"cmdline":["influxd"],"system":{{"uptime":39}},
                "tsm1_cache:/d/1:1":{{"name":"tsm1_cache","tags":{{}},"values":{{"memBytes":{bytes},"diskBytes":0}}}},
                "tsm1_filestore:/d/1:1":{{"name":"tsm1_filestore","tags":{{}},"values":{{"numFiles":{files}}}}},
                "tsm1_engine:/d/1:1":{{"name":"tsm1_engine","tags":{{}},"values":{{"cacheCompactionsActive":0,"tsmOptimizeCompactionQueue":1,"tsmFullCompactionsActive":{active},"tsmFullCompactions":9}}}}}}"#
            )
        };
        let work =
            |bytes, active, files| work(vars(bytes, active, files).as_bytes()).expect("JSON");
        assert!(work(1, 0, 1).is_busy());
        assert!(work(0, 1, 2).is_busy());
        assert!(!work(0, 0, 2).is_busy() && !work(0, 0, 2).is_done());
        assert!(work(0, 0, 1).is_done());
    }
}
