//! Lists buckets, tags and fields, from the catalog and the index of series.

use crate::predicate::{ScanCondition, ScannedField, judged};
use crate::statement::FluxRun;
use crate::value::{
    FluxBucket, FluxCaller, FluxColumn, FluxKind, FluxListing, FluxTable, FluxValue,
};
use marigram_flux::FluxPosition;
use marigram_influx::{StoredMeasurement, each_series};
use marigram_sql::SqlResult;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The memory that a listed text takes beside its bytes.
const LISTED_BYTES: usize = 128;

/// The organisation of every bucket.
const ORGANIZATION: &str = "0000000000000001";

/// The tables of a listing.
///
/// # Errors
/// What is wrong with its predicate, or that memory was not available.
pub(crate) fn listed_tables(run: &FluxRun, listing: &FluxListing) -> SqlResult<Vec<FluxTable>> {
    let names = match listing {
        FluxListing::Buckets => return Ok(vec![buckets(run)]),
        FluxListing::TagValues {
            bucket,
            tag,
            predicate,
        } => tag_values(run, bucket, tag, predicate.as_ref())?,
        FluxListing::TagKeys { bucket, predicate } => tag_keys(run, bucket, predicate.as_ref())?,
    };
    let values: Vec<FluxValue> = names.into_iter().map(FluxValue::Text).collect();
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let rows = values.len();
    let column = FluxColumn::each("_value", FluxKind::Text, values);
    Ok(vec![FluxTable::new(vec![column], Vec::new(), rows)])
}

/// The identifier that the HTTP API gives a bucket: FNV-1a of its name.
fn id_of(name: &str) -> String {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn buckets(run: &FluxRun) -> FluxTable {
    let engine = &run.buckets.engine;
    let mut found: Vec<(String, String, i64)> = Vec::new();
    for database in engine.databases() {
        if !run.buckets.rights.see(&database) {
            continue;
        }
        let Ok(policies) = engine.retention_policies(&database) else {
            continue;
        };
        for policy in &policies.policies {
            let name = if policy.name == policies.default {
                database.clone()
            } else {
                format!("{database}/{}", policy.name)
            };
            let period_ns = policy.duration_ns.unwrap_or(0);
            found.push((name, policy.name.clone(), period_ns));
        }
    }
    found.sort();
    let texts = |name: &str, text: &dyn Fn(&(String, String, i64)) -> String| {
        let values = found.iter().map(|bucket| FluxValue::text(&text(bucket)));
        FluxColumn::each(name, FluxKind::Text, values.collect())
    };
    let periods = found.iter().map(|bucket| FluxValue::Int(bucket.2));
    let columns = vec![
        texts("name", &|bucket| bucket.0.clone()),
        texts("id", &|bucket| id_of(&bucket.0)),
        texts("organizationID", &|_| ORGANIZATION.to_owned()),
        texts("retentionPolicy", &|bucket| bucket.1.clone()),
        FluxColumn::each("retentionPeriod", FluxKind::Int, periods.collect()),
    ];
    FluxTable::new(columns, Vec::new(), found.len())
}

/// The fields of a measurement for which a predicate may hold, and the predicate, if it depends on
/// more.
struct ListedMeasurement<'a> {
    measurement: StoredMeasurement,
    fields: Vec<(Arc<str>, Option<&'a FluxValue>)>,
}

fn measurements<'a>(
    run: &FluxRun,
    bucket: &FluxBucket,
    predicate: Option<&'a FluxValue>,
) -> Vec<ListedMeasurement<'a>> {
    let mut evaluator = run.row_evaluator();
    let listed = run.measurements(bucket).into_iter().map(|measurement| {
        let mut fields = Vec::new();
        for (name, _) in measurement.fields() {
            let place = ScannedField {
                measurement: &measurement,
                field: name,
            };
            let condition = match predicate {
                Some(predicate) => judged(predicate, &place, &mut evaluator),
                None => ScanCondition::Always,
            };
            match condition {
                ScanCondition::Never => {}
                ScanCondition::Always => fields.push((name.into(), None)),
                _ => fields.push((name.into(), predicate)),
            }
        }
        fields.sort_by(|a: &(Arc<str>, _), b| a.0.cmp(&b.0));
        ListedMeasurement {
            measurement,
            fields,
        }
    });
    listed.filter(|listed| !listed.fields.is_empty()).collect()
}

/// Whether a field of a series fulfils a predicate.
fn fulfils(
    run: &FluxRun,
    measurement: &StoredMeasurement,
    (field, predicate): (&Arc<str>, Option<&FluxValue>),
    tags: &[Arc<str>],
) -> SqlResult<bool> {
    let Some(predicate) = predicate else {
        return Ok(true);
    };
    let text = |name: &str, text: &Arc<str>| {
        FluxColumn::same(name, FluxKind::Text, FluxValue::Text(Arc::clone(text)))
    };
    let mut columns = vec![
        text("_field", field),
        text("_measurement", &measurement.name),
    ];
    for (tag, value) in measurement.table.tags.iter().zip(tags) {
        if !value.is_empty() {
            columns.push(text(&tag.name, value));
        }
    }
    let row = FluxTable::new(columns, Vec::new(), 1);
    let given = vec![("r".to_owned(), FluxValue::Row(Arc::new(row), 0))];
    let mut evaluator = run.row_evaluator();
    let answer = evaluator.call(FluxPosition::default(), predicate, given, None)?;
    Ok(matches!(answer, FluxValue::Bool(true)))
}

/// Calls `visit` with the tags of each series for which one of the fields fulfils the predicate,
/// until it breaks.
fn each_fitting(
    run: &FluxRun,
    listed: &ListedMeasurement<'_>,
    fields: &[(Arc<str>, Option<&FluxValue>)],
    mut visit: impl FnMut(&[Arc<str>]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<()> {
    let (engine, budget) = (&run.buckets.engine, &run.budget);
    each_series((engine, budget), &listed.measurement, |tags| {
        for (field, predicate) in fields {
            if fulfils(run, &listed.measurement, (field, *predicate), tags)? {
                return visit(tags);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn put(run: &FluxRun, found: &mut BTreeSet<Arc<str>>, text: &Arc<str>) -> SqlResult<()> {
    if !found.contains(text) {
        run.budget.keep(text.len() + LISTED_BYTES)?;
        found.insert(Arc::clone(text));
    }
    Ok(())
}

fn tag_values(
    run: &FluxRun,
    bucket: &FluxBucket,
    tag: &str,
    predicate: Option<&FluxValue>,
) -> SqlResult<Vec<Arc<str>>> {
    let mut found = BTreeSet::new();
    for listed in measurements(run, bucket, predicate) {
        let name = &listed.measurement.name;
        if tag == "_field" {
            for field in &listed.fields {
                let fields = std::slice::from_ref(field);
                each_fitting(run, &listed, fields, |_| {
                    put(run, &mut found, &field.0)?;
                    Ok(ControlFlow::Break(()))
                })?;
            }
            continue;
        }
        let ordinal = listed
            .measurement
            .table
            .tag(tag)
            .map(|(ordinal, _)| usize::from(ordinal));
        each_fitting(run, &listed, &listed.fields, |tags| {
            if tag == "_measurement" {
                put(run, &mut found, name)?;
                return Ok(ControlFlow::Break(()));
            }
            let value = ordinal.and_then(|ordinal| tags.get(ordinal));
            let Some(value) = value else {
                return Ok(ControlFlow::Break(()));
            };
            if !value.is_empty() {
                put(run, &mut found, value)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(found.into_iter().collect())
}

/// As InfluxDB lists them: with the columns that every table has, of which two come first.
fn tag_keys(
    run: &FluxRun,
    bucket: &FluxBucket,
    predicate: Option<&FluxValue>,
) -> SqlResult<Vec<Arc<str>>> {
    let mut found = BTreeSet::new();
    for listed in measurements(run, bucket, predicate) {
        let tags_of_table = &listed.measurement.table.tags;
        let mut missing = tags_of_table.len();
        let mut has_series = false;
        each_fitting(run, &listed, &listed.fields, |tags| {
            has_series = true;
            for (tag, value) in tags_of_table.iter().zip(tags) {
                let name: Arc<str> = tag.name.as_str().into();
                if !value.is_empty() && !found.contains(&name) {
                    put(run, &mut found, &name)?;
                    missing = missing.saturating_sub(1);
                }
            }
            Ok(match missing {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
        if has_series {
            found.extend(["_field".into(), "_measurement".into()]);
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let bounds: [Arc<str>; 2] = ["_start".into(), "_stop".into()];
    Ok(bounds.into_iter().chain(found).collect())
}
