//! The rows of a table: a DataFusion plan over a series-aware scan.

pub(super) mod columns;
mod conditions;

pub(super) use conditions::{pushed_down, residual};

use super::{RowSource, SourceColumn};
use crate::evaluate::holds;
use crate::expression::Expression;
use crate::point::Row;
use crate::schema::StoredMeasurement;
use crate::series::SeriesKey;
use crate::value::{InfluxValueType, Value};
use arrow::record_batch::RecordBatch;
use columns::ColumnReader;
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, cast, lit};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use marigram_influxql::time_range::{TIME_MAX_NS, TIME_MIN_NS};
use marigram_model::TableSchema;
use marigram_sql::{SqlError, SqlResult};
use std::collections::HashSet;
use std::sync::Arc;

/// A request for rows of a table.
#[derive(Clone)]
pub(crate) struct MeasurementRequest {
    /// The table.
    pub measurement: StoredMeasurement,
    /// The columns.
    pub columns: Vec<SourceColumn>,
    /// WHERE without its conditions on time.
    pub condition: Option<Expression>,
    /// The first and last time, both included.
    pub range: (i64, i64),
    /// The tags by which rows are ordered, sorted by key.
    pub order: Arc<[Arc<str>]>,
    /// The tags that series have, sorted by key.
    pub keys: Arc<[Arc<str>]>,
    /// From old to new.
    pub ascending: bool,
    /// The series to return; `None` for all.
    pub series: Option<ShownSeries>,
    /// The largest number of rows that are needed.
    pub fetch: Option<usize>,
    /// Which rows to leave out for lack of values.
    pub needs: NeededFields,
    /// More conditions, which the scan evaluates.
    pub filters: Vec<Expr>,
}

/// The series that SLIMIT leaves.
#[derive(Clone, Debug)]
pub(crate) struct ShownSeries {
    /// Their keys, sorted.
    pub keys: Arc<[Arc<str>]>,
    /// The series.
    pub series: HashSet<SeriesKey>,
}

impl ShownSeries {
    /// Whether a series, which may have further keys, is one of them.
    pub(crate) fn contains(&self, series: &SeriesKey) -> bool {
        let is_same = series.tags.iter().map(|(key, _)| key).eq(self.keys.iter());
        if is_same {
            self.series.contains(series)
        } else {
            self.series.contains(&series.subset(&self.keys))
        }
    }
}

/// The rows that a request leaves out for lack of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeededFields {
    /// None: every row is returned.
    None,
    /// Those without a value in any of the requested fields.
    Any,
    /// Those without a value in the requested column at this place.
    One(usize),
}

/// The rows of a table.
pub(crate) struct MeasurementRows {
    state: Arc<SessionState>,
    request: MeasurementRequest,
    /// The part of the condition over the columns that the scan cannot evaluate.
    residual: Option<Expression>,
    /// The columns to read.
    read: Vec<ReadColumn>,
    /// The running plan. Its snapshot lives as long as it does.
    plan: Option<Arc<dyn ExecutionPlan>>,
    stream: Option<SendableRecordBatchStream>,
    ended: bool,
    last: Option<Arc<SeriesKey>>,
}

/// A column of the table, or the replacement of a column that it lacks.
#[derive(Clone, Debug)]
pub(super) enum ReadColumn {
    /// A tag, and its value where it is missing.
    Tag {
        /// The column's name.
        name: String,
        /// The replacement of a missing text.
        absent: Value,
    },
    /// A field in a type.
    Field {
        /// The column's name.
        name: String,
        /// The type to cast to.
        kind: Option<InfluxValueType>,
    },
    /// A value for every row.
    Absent(Value),
}

impl MeasurementRows {
    /// The rows of a request. Reading begins when the first rows are requested.
    pub(crate) fn new(state: Arc<SessionState>, request: MeasurementRequest) -> Self {
        let table = &request.measurement;
        let mut read: Vec<ReadColumn> = request
            .columns
            .iter()
            .map(|column| requested_column(table, column))
            .collect();
        let residual = request.condition.as_ref().and_then(|condition| {
            let rest = residual(condition, table)?;
            Some(rest.replaced(&mut |part| match part {
                Expression::Name(var) => {
                    let kind = var.cast.and_then(InfluxValueType::of_cast);
                    let empty = Value::String("".into());
                    let mut column = read_column(table, &var.name, kind, empty.clone());
                    // A name that is neither a field nor a tag is a tag that no series has.
                    if matches!(column, ReadColumn::Absent(_)) && table.type_of(&var.name).is_none()
                    {
                        column = ReadColumn::Absent(empty);
                    }
                    read.push(column);
                    Some(Expression::Column(read.len() - 1, kind))
                }
                _ => None,
            }))
        });
        Self {
            state,
            request,
            residual,
            read,
            plan: None,
            stream: None,
            ended: false,
            last: None,
        }
    }

    /// The columns to read.
    pub(super) fn read_columns(&self) -> &[ReadColumn] {
        &self.read
    }

    /// The plan that reads the rows.
    async fn plan(&mut self) -> SqlResult<LogicalPlan> {
        let request = &self.request;
        let table = &request.measurement.table;
        let mut plan = scan_of(&self.state, table).await?;
        for filter in self.filters() {
            plan = plan.filter(filter)?;
        }
        let (ascending, time) = (request.ascending, column(&table.time_name));
        let by = |name: &str| SortExpr::new(column(name), ascending, ascending);
        let mut shown = vec![time.alias("t")];
        let mut order = Vec::new();
        let mut rest: Vec<&str> = table.tags.iter().map(|tag| &*tag.name).collect();
        rest.retain(|name| !request.order.iter().any(|key| **key == **name));
        rest.sort_unstable();
        let tags = request.order.iter().filter_map(|key| table.tag(key));
        let tags: Vec<&str> = tags.map(|(_, tag)| &*tag.name).collect();
        for (place, name) in tags.iter().chain(&rest).enumerate() {
            let sorted_by = format!("s{place}");
            if place == tags.len() {
                order.push(by("t"));
            }
            order.push(by(&sorted_by));
            shown.push(column(name).alias(sorted_by));
        }
        if rest.is_empty() {
            order.push(by("t"));
        }
        for (place, key) in request.keys.iter().enumerate() {
            if let Some((_, tag)) = table.tag(key) {
                let text = cast(column(&tag.name), arrow::datatypes::DataType::Utf8);
                shown.push(text.alias(format!("k{place}")));
            }
        }
        for (place, read) in self.read.iter().enumerate() {
            let shown_as = format!("c{place}");
            match read {
                ReadColumn::Tag { name, .. } => {
                    let text = cast(column(name), arrow::datatypes::DataType::Utf8);
                    shown.push(text.alias(shown_as));
                }
                ReadColumn::Field { name, .. } => shown.push(column(name).alias(shown_as)),
                ReadColumn::Absent(_) => {}
            }
        }
        // The order comes last: DataFusion keeps none that a projection stands above, which it may
        // compute on several threads.
        let fetch = request.fetch.filter(|_| self.residual.is_none());
        let plan = plan.project(shown)?.sort_with_limit(order, fetch)?;
        Ok(plan.build()?)
    }

    fn filters(&self) -> Vec<Expr> {
        let request = &self.request;
        let table = &request.measurement.table;
        let mut filters = time_filters(table, request.range);
        if let Some(condition) = &request.condition {
            filters.extend(pushed_down(condition, &request.measurement));
        }
        filters.extend(request.filters.iter().cloned());
        if request.needs != NeededFields::None {
            let mut fields: Vec<&str> = Vec::new();
            for place in self.needed_fields() {
                if let ReadColumn::Field { name, .. } = &self.read[place]
                    && !fields.contains(&name.as_str())
                {
                    fields.push(name);
                }
            }
            let present = fields.iter().map(|name| column(name).is_not_null());
            if fields.len() < table.fields.len() {
                filters.extend(present.reduce(Expr::or));
            }
        }
        filters
    }

    async fn open(&mut self) -> SqlResult<()> {
        let plan = self.plan().await?;
        let plan = self.state.create_physical_plan(&plan).await?;
        self.plan = Some(Arc::clone(&plan));
        self.stream = Some(execute_stream(plan, self.state.task_ctx())?);
        Ok(())
    }

    /// The rows of a batch that satisfy the condition.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> SqlResult<Vec<Row>> {
        let times = columns::times(batch, "t")?;
        let table = &self.request.measurement.table;
        let mut keys = Vec::with_capacity(self.request.keys.len());
        for (place, key) in self.request.keys.iter().enumerate() {
            keys.push(match table.tag(key) {
                Some(_) => Some(columns::texts(batch, &format!("k{place}"))?),
                None => None,
            });
        }
        let mut readers = Vec::with_capacity(self.read.len());
        for (place, read) in self.read.iter().enumerate() {
            readers.push(match read {
                ReadColumn::Tag { absent, .. } => {
                    ColumnReader::new(batch, &format!("c{place}"), None, absent.clone())?
                }
                ReadColumn::Field { kind, .. } => {
                    ColumnReader::new(batch, &format!("c{place}"), *kind, Value::Null)?
                }
                ReadColumn::Absent(value) => ColumnReader::Same(value.clone()),
            });
        }
        let (asked, needed) = (self.request.columns.len(), self.needed_fields());
        let needs_field = self.request.needs != NeededFields::None;
        let mut rows = Vec::with_capacity(batch.num_rows());
        let mut values: Vec<Value> = Vec::with_capacity(self.read.len());
        for row in 0..batch.num_rows() {
            values.clear();
            values.extend(readers.iter_mut().map(|reader| reader.value(row)));
            if let Some(residual) = &self.residual
                && !holds(residual, &values)
            {
                continue;
            }
            if needs_field && needed.iter().all(|place| values[*place].is_null()) {
                continue;
            }
            let text = |place: usize| keys[place].as_ref().map_or("", |keys| keys.text(row));
            let stays = self.last.as_ref().is_some_and(|last| {
                let mut tags = last.tags.iter().enumerate();
                tags.all(|(place, (_, value))| &**value == text(place))
            });
            let series = match (&self.last, stays) {
                (Some(last), true) => Arc::clone(last),
                _ => {
                    let of =
                        |(place, key): (usize, &Arc<str>)| (Arc::clone(key), text(place).into());
                    let series = Arc::new(SeriesKey {
                        name: Arc::clone(&self.request.measurement.name),
                        tags: self.request.keys.iter().enumerate().map(of).collect(),
                    });
                    self.last = Some(Arc::clone(&series));
                    series
                }
            };
            if let Some(shown) = &self.request.series
                && !shown.contains(&series)
            {
                continue;
            }
            rows.push(Row {
                series,
                time: times.value(row),
                values: values[..asked].into(),
            });
        }
        Ok(rows)
    }

    /// The indexes of fields among the requested columns of which one needs a value.
    pub(super) fn needed_fields(&self) -> Vec<usize> {
        let asked = self
            .read
            .iter()
            .take(self.request.columns.len())
            .enumerate();
        let needs = self.request.needs;
        let fields = asked.filter(|(place, read)| {
            let is_needed = match needs {
                NeededFields::None => false,
                NeededFields::Any => true,
                NeededFields::One(needed) => *place == needed,
            };
            is_needed && matches!(read, ReadColumn::Field { .. })
        });
        fields.map(|(place, _)| place).collect()
    }
}

impl RowSource for MeasurementRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            let (min, max) = self.request.range;
            if self.ended || min > max {
                return Ok(None);
            }
            if self.stream.is_none() {
                self.open().await?;
            }
            while let Some(stream) = &mut self.stream {
                let Some(batch) = stream.next().await else {
                    break;
                };
                let rows = self.rows(&batch.map_err(SqlError::from)?)?;
                if !rows.is_empty() {
                    return Ok(Some(rows));
                }
            }
            self.ended = true;
            self.stream = None;
            Ok(None)
        }
        .boxed()
    }
}

/// The scan of a table.
///
/// # Errors
/// If the table does not exist any more.
pub async fn scan_of(state: &SessionState, table: &TableSchema) -> SqlResult<LogicalPlanBuilder> {
    let catalog = state.catalog_list().catalog(&table.database);
    let schema = catalog.and_then(|catalog| catalog.schema("public"));
    let provider = match schema {
        Some(schema) => schema.table(&table.name).await?,
        None => None,
    };
    let provider = provider
        .ok_or_else(|| crate::schema::refused(format!("measurement not found: {}", table.name)))?;
    let source = provider_as_source(provider);
    let scan = LogicalPlanBuilder::scan("m", source, None)?;
    if table.rollup.is_none() {
        return Ok(scan);
    }
    // A view's aggregates may have types that no table has.
    let mut shown = vec![column(&table.time_name)];
    shown.extend(table.tags.iter().map(|tag| column(&tag.name)));
    for field in &table.fields {
        let value = cast(column(&field.name), field.kind.data_type());
        shown.push(value.alias(&field.name));
    }
    Ok(scan.project(shown)?)
}

/// The condition that selects some series, which have the keys of a request.
pub(super) fn series_filter<'a>(
    request: &MeasurementRequest,
    series: impl IntoIterator<Item = &'a SeriesKey>,
) -> Option<Expr> {
    let table = &request.measurement.table;
    let of_series = series.into_iter().map(|series| {
        let tags = series.tags.iter().filter_map(|(key, value)| {
            let (_, tag) = table.tag(key)?;
            Some(conditions::tag_is(tag, value))
        });
        tags.reduce(Expr::and).unwrap_or_else(|| lit(true))
    });
    of_series.reduce(Expr::or)
}

/// The conditions that select the times of a range, both included.
pub(super) fn time_filters(table: &TableSchema, (min, max): (i64, i64)) -> Vec<Expr> {
    let time = column(&table.time_name);
    let at = |ns: i64| Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), None), None);
    let mut filters = Vec::new();
    if min > TIME_MIN_NS {
        filters.push(time.clone().gt_eq(at(min)));
    }
    if max < TIME_MAX_NS {
        filters.push(time.lt_eq(at(max)));
    }
    filters
}

/// What to read for a requested column.
pub(super) fn requested_column(table: &StoredMeasurement, column: &SourceColumn) -> ReadColumn {
    match table.type_of(&column.name) {
        Some(InfluxValueType::Tag) if column.is_driver => ReadColumn::Absent(Value::Null),
        _ => read_column(table, &column.name, column.kind, Value::Null),
    }
}

/// A column by its exact name.
pub(super) fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// What to read for a name with a type.
fn read_column(
    table: &StoredMeasurement,
    name: &str,
    kind: Option<InfluxValueType>,
    absent: Value,
) -> ReadColumn {
    let is_tag = kind == Some(InfluxValueType::Tag) && table.table.tag(name).is_some();
    let known = if is_tag {
        Some(InfluxValueType::Tag)
    } else {
        table.type_of(name)
    };
    match (known, kind) {
        (Some(InfluxValueType::Tag), None | Some(InfluxValueType::Tag)) => ReadColumn::Tag {
            name: name.to_owned(),
            absent,
        },
        (Some(InfluxValueType::Tag) | None, _) => ReadColumn::Absent(Value::Null),
        (Some(_), Some(InfluxValueType::Tag)) => ReadColumn::Absent(absent),
        (Some(stored), asked) => {
            let asked = asked.unwrap_or(stored);
            if asked == stored || (asked.is_number() && stored.is_number()) {
                let column = table.field_column(name).map_or(name, |(column, _)| column);
                ReadColumn::Field {
                    name: column.to_owned(),
                    kind: Some(asked),
                }
            } else {
                ReadColumn::Absent(Value::Null)
            }
        }
    }
}
