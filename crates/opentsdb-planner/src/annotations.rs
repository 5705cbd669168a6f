//! Annotations: reads those that are stored.

use crate::json_rows::json_rows;
use crate::metric::{column, filtered};
use crate::statement::OpenTsdbRun;
use arrow::array::{Array, AsArray, Int64Array, StringArray};
use arrow::compute::cast as cast_array;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::{Expr, in_list, lit};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_influx::{readable_table, scan_of};
use marigram_model::{FieldType, TableSchema};
use marigram_opentsdb::{
    ANNOTATION_FIELDS, ANNOTATION_TABLE, ANNOTATION_TAG, Annotation, AnnotationQuery,
    AnnotationRange, CheckedQuery, annotation_tag, annotation_tsuid, uid,
};
use marigram_service::ServiceError;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;

/// The annotations that the answer to a query shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownAnnotations {
    /// Those of series, by the number of the series.
    pub(crate) of_series: Arc<HashMap<String, Vec<Annotation>>>,
    /// Those of all series.
    pub(crate) of_all: Arc<Vec<Annotation>>,
}

/// Answers a request for annotations: a JSON text for each, in the order of their times.
///
/// # Errors
/// If there is no memory for the answer.
pub(crate) async fn annotations(
    run: &OpenTsdbRun<'_>,
    query: &AnnotationQuery,
) -> SqlResult<StatementRows> {
    let found = match query {
        AnnotationQuery::Range(range) => of_range(run, range).await?,
        AnnotationQuery::Places(places) => of_places(run, places).await?,
    };
    json_rows(found.iter().map(Annotation::to_json).collect())
}

/// The annotations that the answer to a query shows.
///
/// # Errors
/// If there is no memory for them.
pub(crate) async fn shown_annotations(
    run: &OpenTsdbRun<'_>,
    query: &CheckedQuery,
    (shows_own, shows_global): (bool, bool),
) -> SqlResult<ShownAnnotations> {
    let mut shown = ShownAnnotations::default();
    let Some(table) = annotation_table(run).filter(|_| shows_own) else {
        return Ok(shown);
    };
    let times = (query.start_ms, query.end_ms);
    // Numbers of series begin with that of their metric, and have hexadecimal digits.
    let metric = uid("metric", &query.metric);
    let beyond = format!("{metric}G");
    let tag = || column(ANNOTATION_TAG);
    let mut of_metric = tag().gt_eq(lit(metric)).and(tag().lt(lit(beyond)));
    if shows_global {
        of_metric = of_metric.or(tag().eq(lit(annotation_tag(""))));
    }
    let (mut of_series, mut of_all) = (HashMap::<String, Vec<Annotation>>::new(), Vec::new());
    for annotation in read(run, &table, times, of_metric).await? {
        if annotation.tsuid.is_empty() {
            of_all.push(annotation);
        } else {
            let tsuid = annotation.tsuid.clone();
            of_series.entry(tsuid).or_default().push(annotation);
        }
    }
    shown.of_series = Arc::new(of_series);
    shown.of_all = Arc::new(of_all);
    Ok(shown)
}

async fn of_range(run: &OpenTsdbRun<'_>, range: &AnnotationRange) -> SqlResult<Vec<Annotation>> {
    let Some(table) = annotation_table(run) else {
        return Ok(Vec::new());
    };
    let global = range.global.then_some("");
    let tsuids = range.tsuids.iter().map(String::as_str).chain(global);
    let condition = one_of(tsuids);
    read(run, &table, (range.start_ms, range.end_ms), condition).await
}

async fn of_places(run: &OpenTsdbRun<'_>, places: &[(String, i64)]) -> SqlResult<Vec<Annotation>> {
    let times = places.iter().map(|(_, time_ms)| *time_ms);
    let (Some(table), Some(first), Some(last)) =
        (annotation_table(run), times.clone().min(), times.max())
    else {
        return Ok(Vec::new());
    };
    let wanted: BTreeSet<(&str, i64)> = places
        .iter()
        .map(|(tsuid, time_ms)| (tsuid.as_str(), *time_ms))
        .collect();
    let tsuids: BTreeSet<&str> = wanted.iter().map(|(tsuid, _)| *tsuid).collect();
    let mut found = read(run, &table, (first, last), one_of(tsuids.into_iter())).await?;
    found.retain(|annotation| wanted.contains(&(annotation.tsuid.as_str(), annotation.start_ms())));
    Ok(found)
}

fn one_of<'a>(tsuids: impl Iterator<Item = &'a str>) -> Expr {
    let tags = tsuids.map(|tsuid| lit(annotation_tag(tsuid))).collect();
    in_list(column(ANNOTATION_TAG), tags, false)
}

/// The table of annotations; `None` where nothing was annotated yet.
fn annotation_table(run: &OpenTsdbRun<'_>) -> Option<Arc<TableSchema>> {
    let engine = run.context.engine();
    let table = readable_table(engine, &run.views, run.database(), ANNOTATION_TABLE)?;
    let kinds = ANNOTATION_FIELDS.iter().zip(FIELD_TYPES);
    let mut fields =
        kinds.map(|(name, kind)| table.field(name).is_some_and(|field| field.kind == kind));
    let is_annotated = table.tag(ANNOTATION_TAG).is_some() && fields.all(|is_there| is_there);
    is_annotated.then_some(table)
}

/// The types of [`ANNOTATION_FIELDS`].
const FIELD_TYPES: [FieldType; 5] = [
    FieldType::I64,
    FieldType::I64,
    FieldType::String,
    FieldType::String,
    FieldType::String,
];

/// The annotations of a range of times, ms, that meet a condition on their tag, in the order of their
/// times.
async fn read(
    run: &OpenTsdbRun<'_>,
    table: &TableSchema,
    (first, last): (i64, i64),
    condition: Expr,
) -> SqlResult<Vec<Annotation>> {
    let state = run.context.state(run.database())?;
    let at = |ms: i64| {
        let ns = Some(ms.saturating_mul(MS));
        Expr::Literal(ScalarValue::TimestampNanosecond(ns, None), None)
    };
    let time = || column(&table.time_name);
    let [start_time, ..] = ANNOTATION_FIELDS;
    let conditions = vec![
        time().gt_eq(at(first)),
        time().lt_eq(at(last)),
        condition,
        column(start_time).is_not_null(),
    ];
    let rows = filtered(scan_of(&state, table).await?, conditions)?;
    let names = [ANNOTATION_TAG].into_iter().chain(ANNOTATION_FIELDS);
    let plan = rows
        .project(names.map(column).collect::<Vec<Expr>>())?
        .build()?;
    let plan = state.create_physical_plan(&plan).await?;
    let mut batches = execute_stream(plan, state.task_ctx())?;
    let mut found = Vec::new();
    while let Some(batch) = batches.next().await {
        let columns = AnnotationColumns::new(&batch?)?;
        for row in 0..columns.tags.len() {
            let annotation = columns.annotation(row);
            run.budget.keep(2 * annotation.held_bytes())?;
            found.push(annotation);
        }
        run.budget.check_interrupt()?;
    }
    found.sort_by(|a: &Annotation, b| (a.start_ms(), &a.tsuid).cmp(&(b.start_ms(), &b.tsuid)));
    Ok(found)
}

/// The columns of a batch of annotations.
struct AnnotationColumns {
    tags: StringArray,
    times: [Int64Array; 2],
    texts: [StringArray; 3],
}

impl AnnotationColumns {
    fn new(batch: &RecordBatch) -> SqlResult<Self> {
        let converted = |name: &str, kind: &DataType| {
            let column = batch
                .column_by_name(name)
                .ok_or_else(|| ServiceError::Internal(format!("a scan gave no column {name}")))?;
            SqlResult::Ok(cast_array(column, kind).map_err(DataFusionError::from)?)
        };
        let text = |name: &str| {
            let column = converted(name, &DataType::Utf8)?;
            SqlResult::Ok(column.as_string::<i32>().clone())
        };
        let number = |name: &str| {
            let column = converted(name, &DataType::Int64)?;
            SqlResult::Ok(column.as_primitive::<Int64Type>().clone())
        };
        let [start, end, description, notes, custom] = ANNOTATION_FIELDS;
        Ok(Self {
            tags: text(ANNOTATION_TAG)?,
            times: [number(start)?, number(end)?],
            texts: [text(description)?, text(notes)?, text(custom)?],
        })
    }

    fn annotation(&self, row: usize) -> Annotation {
        let text = |column: &StringArray| {
            if column.is_null(row) {
                String::new()
            } else {
                column.value(row).to_owned()
            }
        };
        let number = |column: &Int64Array| {
            if column.is_null(row) {
                0
            } else {
                column.value(row)
            }
        };
        let ([start, end], [description, notes, custom]) = (&self.times, &self.texts);
        Annotation {
            tsuid: annotation_tsuid(&text(&self.tags)).to_owned(),
            description: text(description),
            notes: text(notes),
            custom: Annotation::custom_of_text(&text(custom)),
            start_time: number(start),
            end_time: number(end),
        }
    }
}
