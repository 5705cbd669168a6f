//! Checks beyond the rows: files, segments, and random reads against the model.

use super::workload::Workload;
use crate::oracle::{
    Oracle, OracleRow, OracleRows, OracleTable, ReadError, Tolerance, compare, last_rows, scan_rows,
};
use marigram_engine::{ColumnBounds, Engine, ScanRequest, TableSnapshot};
use marigram_env::SimFs;
use marigram_model::{ColumnId, FieldType, FieldValue, TimeRange};
use rand::RngExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks, right after opening, that the data directory contains exactly what the manifest lists,
/// and that no segment crosses the boundary of its partition.
///
/// # Errors
/// What is wrong.
pub fn check_files(engine: &Engine, fs: &SimFs, dir: &Path) -> Result<(), String> {
    let files = fs
        .snapshot(dir)
        .map_err(|error| format!("{}: {error}", dir.display()))?;
    let known: BTreeMap<_, _> = engine
        .segments()
        .into_iter()
        .map(|segment| (segment.path, segment.meta))
        .collect();
    for (path, bytes) in &files {
        let path = dir.join(path);
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.starts_with(dir.join("trash")) {
            continue;
        }
        let kind = path.extension().and_then(|kind| kind.to_str());
        if kind == Some("seg") {
            let Some(meta) = known.get(&path) else {
                return Err(format!("{} is not in the manifest", path.display()));
            };
            if meta.bytes != bytes.len() as u64 {
                return Err(format!(
                    "{} should have {} bytes",
                    path.display(),
                    meta.bytes
                ));
            }
        } else if !matches!(
            name,
            "LOCK"
                | "CATALOG"
                | "CATALOG.copy"
                | "MARIGRAM"
                | "MANIFEST"
                | "RESERVE"
                | "SERIES"
                | "WITNESS"
        ) && kind != Some("wal")
            && !name.starts_with("SERIES-")
        {
            return Err(format!("{} does not belong here", path.display()));
        }
    }
    for (path, meta) in known {
        let found = path
            .strip_prefix(dir)
            .ok()
            .is_some_and(|path| files.contains_key(path));
        if !found {
            return Err(format!(
                "{} is in the manifest but not there",
                path.display()
            ));
        }
        let (start, width) = (meta.partition.start_ns, meta.partition.width_ns);
        let covered = TimeRange {
            min: start,
            max: start.saturating_add(width - 1),
        };
        // The first partition begins before the first possible time.
        let covered = if start == i64::MIN {
            TimeRange {
                min: start,
                ..covered
            }
        } else {
            covered
        };
        if !covered.covers(meta.range) {
            return Err(format!(
                "{} has {:?}, outside {covered:?}",
                path.display(),
                meta.range
            ));
        }
    }
    Ok(())
}

/// Reads some series, times and columns of a table, or its last rows, and compares them.
///
/// # Errors
/// If the engine cannot read, or answers wrongly.
pub fn check_random_read(
    snapshot: &TableSnapshot,
    oracle: &Oracle,
    work: &mut Workload,
    now_ns: i64,
) -> Result<(), ReadError> {
    let name = snapshot.schema().name.clone();
    let Some(table) = oracle.tables.get(&name) else {
        return Err(ReadError::Wrong(format!(
            "the table {name} should not be there"
        )));
    };
    let tolerance = Tolerance::for_options(&table.options, now_ns);
    let checked = if work.rng().random_bool(0.3) {
        check_last_rows(snapshot, (oracle, table), work, tolerance)
    } else {
        check_scan(snapshot, (oracle, table), work, tolerance)
    };
    checked.map_err(|error| match error {
        ReadError::Wrong(reason) => ReadError::Wrong(format!("table {name}: {reason}")),
        error @ ReadError::Engine(_) => error,
    })
}

fn check_last_rows(
    snapshot: &TableSnapshot,
    (oracle, table): (&Oracle, &OracleTable),
    work: &mut Workload,
    tolerance: Tolerance,
) -> Result<(), ReadError> {
    let filter = work.draw_filter(oracle, &snapshot.schema().name);
    let mut expected = table.select(&filter, TimeRange::ALL);
    for rows in expected.values_mut() {
        let last = rows.pop_last();
        *rows = last.into_iter().collect();
    }
    let mut found = last_rows(snapshot, &filter)?;
    // If the last row itself is past its ttl, an earlier one may take its place.
    let expired =
        |rows: &BTreeMap<i64, OracleRow>| rows.keys().all(|time| tolerance.is_expired(*time));
    expected.retain(|_, rows| !expired(rows));
    found.retain(|_, rows| !expired(rows));
    compare(&expected, &found, Tolerance::NONE)
        .map_err(|reason| ReadError::Wrong(format!("last rows of {filter:?}: {reason}")))
}

fn check_scan(
    snapshot: &TableSnapshot,
    (oracle, table): (&Oracle, &OracleTable),
    work: &mut Workload,
    tolerance: Tolerance,
) -> Result<(), ReadError> {
    let schema = snapshot.schema();
    let filter = work.draw_filter(oracle, &schema.name);
    let range = work.draw_range(oracle, &schema.name);
    let rng = work.rng();
    let share = [0.0, 0.3, 1.0][rng.random_range(0..3)];
    let fields = schema.fields.iter().filter(|_| rng.random_bool(share));
    let columns: Vec<_> = fields.map(|field| (field.id, field.name.clone())).collect();
    let bounds = draw_bounds(snapshot, work);
    let rng = work.rng();
    let request = ScanRequest {
        selection: snapshot.select(&filter.to_engine(schema)),
        range,
        columns: columns.iter().map(|(id, _)| *id).collect(),
        bounds: bounds.iter().cloned().collect(),
        batch_rows: [1, 7, 1000][rng.random_range(0..3)],
        partitions: rng.random_range(1..5),
        limit: rng.random_bool(0.2).then(|| rng.random_range(1..20)),
    };
    let found = scan_rows(snapshot, &request)?;

    let names: BTreeSet<_> = columns.iter().map(|(_, name)| name.as_str()).collect();
    let all = table.select(&filter, range);
    let bounded = bounds
        .as_ref()
        .and_then(|bound| Some((bound, field_name(snapshot, bound.column)?)));
    let needed =
        |row: &OracleRow| bounded.is_none_or(|(bound, name)| is_within(row.get(name), bound));
    let mut expected = OracleRows::new();
    let mut due = 0;
    for (tags, rows) in &all {
        for (time, row) in rows {
            let is_found = found.get(tags).is_some_and(|rows| rows.contains_key(time));
            let is_due = needed(row) && !tolerance.is_expired(*time);
            due += usize::from(is_due);
            // Rows beyond the limit or outside the bounds may be missing. If they are present, they
            // must be right.
            if is_found || (is_due && request.limit.is_none()) {
                let mut row = row.clone();
                row.retain(|name, _| names.contains(name.as_str()));
                expected.entry(tags.clone()).or_default().insert(*time, row);
            }
        }
    }
    let wrong = |reason: String| {
        let (range, limit) = (request.range, request.limit);
        ReadError::Wrong(format!(
            "scan of {filter:?} in {range:?}, columns {names:?}, bounds {bounds:?}, limit {limit:?}: {reason}"
        ))
    };
    compare(&expected, &found, tolerance).map_err(wrong)?;
    let count: usize = found.values().map(BTreeMap::len).sum();
    match request.limit {
        Some(limit) if count < due.min(limit) => {
            Err(wrong(format!("{count} rows where {due} match")))
        }
        _ => Ok(()),
    }
}

/// Sometimes returns bounds on a column, around likely values.
fn draw_bounds(snapshot: &TableSnapshot, work: &mut Workload) -> Option<ColumnBounds> {
    let rng = work.rng();
    let fields = &snapshot.schema().fields;
    if fields.is_empty() || rng.random_bool(0.6) {
        return None;
    }
    let field = &fields[rng.random_range(0..fields.len())];
    let mut value = || match field.kind {
        FieldType::I32 => Some(FieldValue::I32(rng.random_range(0..100))),
        FieldType::I64 => Some(FieldValue::I64(rng.random_range(-5..1000))),
        FieldType::U64 => Some(FieldValue::U64(rng.random_range(0..9))),
        FieldType::F32 => Some(FieldValue::F32(rng.random_range(-100_i16..100).into())),
        FieldType::F64 => Some(FieldValue::F64(rng.random_range(-1000_i16..1000).into())),
        FieldType::String => Some(FieldValue::String("on".to_owned())),
        FieldType::Bool | FieldType::Bytes | FieldType::Timestamp => None,
    };
    let (min, max) = (value()?, value()?);
    let (min, max) = match rng.random_range(0..3) {
        0 => (Some(min), None),
        1 => (None, Some(max)),
        _ => (Some(min), Some(max)),
    };
    Some(ColumnBounds {
        column: field.id,
        min,
        max,
    })
}

fn field_name(snapshot: &TableSnapshot, id: ColumnId) -> Option<&str> {
    Some(snapshot.schema().field_by_id(id)?.name.as_str())
}

fn is_within(value: Option<&FieldValue>, bounds: &ColumnBounds) -> bool {
    use std::cmp::Ordering::{Greater, Less};
    let Some(value) = value else { return false };
    let compared = |bound: &FieldValue| match (value, bound) {
        (FieldValue::I32(a), FieldValue::I32(b)) => a.cmp(b),
        (FieldValue::I64(a), FieldValue::I64(b)) => a.cmp(b),
        (FieldValue::U64(a), FieldValue::U64(b)) => a.cmp(b),
        (FieldValue::F32(a), FieldValue::F32(b)) => a.total_cmp(b),
        (FieldValue::F64(a), FieldValue::F64(b)) => a.total_cmp(b),
        (FieldValue::String(a), FieldValue::String(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    };
    bounds.min.as_ref().is_none_or(|min| compared(min) != Less)
        && bounds
            .max
            .as_ref()
            .is_none_or(|max| compared(max) != Greater)
}
