//! Reads the engine's content into the model's types, and checks every promise of a scan on the
//! way.

use super::{OracleFilter, OracleRow, OracleRows, OracleTags};
use marigram_engine::{
    Engine, EngineError, ScanMetrics, ScanRequest, SeriesSelection, TableSnapshot,
};
use marigram_model::{
    ColumnId, FieldValue, SeriesId, SortedRows, TableSchema, TagValue, TimeRange,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Why a read failed.
#[derive(Debug)]
pub enum ReadError {
    /// The engine returned an error.
    Engine(EngineError),
    /// The engine returned what a scan must not return.
    Wrong(String),
}

impl From<EngineError> for ReadError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "{error}"),
            Self::Wrong(reason) => f.write_str(reason),
        }
    }
}

/// A table as read.
#[derive(Debug)]
pub struct ObservedTable {
    /// Schema.
    pub schema: Arc<TableSchema>,
    /// Rows.
    pub rows: OracleRows,
    /// Shard of each series that the table knows, including those without rows.
    pub shards: BTreeMap<OracleTags, usize>,
}

/// A database as read.
#[derive(Debug, Default)]
pub struct ObservedDatabase {
    /// Tables by name.
    pub tables: BTreeMap<String, ObservedTable>,
}

/// Reads everything in a database; a missing one has no tables.
///
/// # Errors
/// If the engine cannot read, or returns an invalid answer.
pub fn observe(engine: &Engine, database: &str) -> Result<ObservedDatabase, ReadError> {
    let mut observed = ObservedDatabase::default();
    let tables = match engine.tables(database) {
        Err(EngineError::NotFound { .. }) => Vec::new(),
        tables => tables?,
    };
    for schema in tables {
        let snapshot = engine.snapshot(database, &schema.name)?;
        let selection = snapshot.select(&OracleFilter::All.to_engine(snapshot.schema()));
        let mut shards = BTreeMap::new();
        for (shard, series) in selection.shards.iter().enumerate() {
            let ids: Vec<_> = series.iter().map(SeriesId).collect();
            for tags in tags_of(&snapshot, shard, &ids) {
                if shards.insert(tags.clone(), shard).is_some() {
                    return Err(ReadError::Wrong(format!(
                        "the series {tags:?} is there twice"
                    )));
                }
            }
        }
        let rows = scan_rows(&snapshot, &everything(&snapshot, selection))?;
        let schema = Arc::clone(snapshot.schema());
        observed.tables.insert(
            schema.name.clone(),
            ObservedTable {
                schema,
                rows,
                shards,
            },
        );
    }
    Ok(observed)
}

fn everything(snapshot: &TableSnapshot, selection: SeriesSelection) -> ScanRequest {
    ScanRequest {
        selection,
        range: TimeRange::ALL,
        columns: snapshot
            .schema()
            .fields
            .iter()
            .map(|field| field.id)
            .collect(),
        bounds: Vec::new(),
        batch_rows: 100,
        partitions: 1,
        limit: None,
    }
}

/// Runs a scan to its end.
///
/// # Errors
/// If the engine cannot read, or returns rows that were not requested, are out of order or occur
/// twice.
pub fn scan_rows(snapshot: &TableSnapshot, request: &ScanRequest) -> Result<OracleRows, ReadError> {
    let mut found = ById::new();
    for mut partition in snapshot.scan(request, Arc::new(ScanMetrics::default()))? {
        let shard = partition.shard();
        let mut last: Option<(SeriesId, i64)> = None;
        while let Some(batch) = partition.next_rows()? {
            for (series, time, row) in unpack(snapshot, &request.columns, &batch)? {
                let asked = partition.series().contains(series.0)
                    && request
                        .selection
                        .shards
                        .get(shard)
                        .is_some_and(|s| s.contains(series.0))
                    && request.range.contains(time);
                let place = (series, time);
                if !asked || last.is_some_and(|last| last >= place) {
                    let reason = format!("shard {shard}: {place:?} after {last:?}, asked: {asked}");
                    return Err(ReadError::Wrong(reason));
                }
                last = Some(place);
                if found
                    .entry((shard, series))
                    .or_default()
                    .insert(time, row)
                    .is_some()
                {
                    return Err(ReadError::Wrong(format!(
                        "shard {shard}: {place:?} comes twice"
                    )));
                }
            }
        }
    }
    by_tags(snapshot, found)
}

/// The last row of each matching series, according to the engine.
///
/// # Errors
/// If the engine cannot read, or returns two rows for a series.
pub fn last_rows(snapshot: &TableSnapshot, filter: &OracleFilter) -> Result<OracleRows, ReadError> {
    let selection = snapshot.select(&filter.to_engine(snapshot.schema()));
    let columns: Vec<_> = snapshot
        .schema()
        .fields
        .iter()
        .map(|field| field.id)
        .collect();
    let mut found = ById::new();
    for (shard, batch) in snapshot.last_rows(&selection, &columns)? {
        for (series, time, row) in unpack(snapshot, &columns, &batch)? {
            let rows = found.entry((shard, series)).or_default();
            rows.insert(time, row);
            if rows.len() > 1 {
                let reason = format!("shard {shard}: series {series} has two last rows");
                return Err(ReadError::Wrong(reason));
            }
        }
    }
    by_tags(snapshot, found)
}

/// Rows by shard and series.
type ById = BTreeMap<(usize, SeriesId), BTreeMap<i64, OracleRow>>;

fn unpack(
    snapshot: &TableSnapshot,
    columns: &[ColumnId],
    batch: &SortedRows,
) -> Result<Vec<(SeriesId, i64, OracleRow)>, ReadError> {
    if !batch.is_sorted() || batch.columns.len() != columns.len() {
        return Err(ReadError::Wrong(format!(
            "rows that are not as promised: {batch:?}"
        )));
    }
    let names = columns.iter().map(|id| snapshot.schema().field_by_id(*id));
    let names: Vec<_> = names
        .map(|field| field.map_or("?", |field| &field.name))
        .collect();
    let mut rows = Vec::with_capacity(batch.len());
    for run in &batch.runs {
        for _ in 0..run.rows {
            let at = rows.len();
            let values = names
                .iter()
                .zip(&batch.columns)
                .filter_map(|(name, values)| {
                    Some(((*name).to_owned(), FieldValue::from_array(values, at)?))
                });
            rows.push((run.series, batch.times[at], values.collect()));
        }
    }
    Ok(rows)
}

fn by_tags(snapshot: &TableSnapshot, found: ById) -> Result<OracleRows, ReadError> {
    let mut ids: BTreeMap<usize, Vec<SeriesId>> = BTreeMap::new();
    for (shard, series) in found.keys() {
        ids.entry(*shard).or_default().push(*series);
    }
    let tags: HashMap<_, _> = ids
        .iter()
        .flat_map(|(shard, ids)| {
            let places = ids.iter().map(|id| (*shard, *id));
            places
                .zip(tags_of(snapshot, *shard, ids))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut rows = OracleRows::new();
    for (place, series) in found {
        let tags = tags[&place].clone();
        if rows.insert(tags.clone(), series).is_some() {
            return Err(ReadError::Wrong(format!(
                "the series {tags:?} is there twice"
            )));
        }
    }
    Ok(rows)
}

/// The tags of each series of a shard.
fn tags_of(snapshot: &TableSnapshot, shard: usize, ids: &[SeriesId]) -> Vec<OracleTags> {
    let mut tags = vec![OracleTags::new(); ids.len()];
    for (ordinal, column) in snapshot.schema().tags.iter().enumerate() {
        let values = snapshot.tag_values(shard, ids, ordinal as u16);
        for (row, tags) in tags.iter_mut().enumerate() {
            let value = match FieldValue::from_array(&values, row) {
                Some(FieldValue::String(text)) => TagValue::String(text),
                Some(FieldValue::I64(number)) => TagValue::I64(number),
                Some(FieldValue::Bool(truth)) => TagValue::Bool(truth),
                _ => continue,
            };
            tags.insert(column.name.clone(), value);
        }
    }
    tags
}
