//! The rows of a table: a DataFusion plan over a series-aware scan.

mod columns;
mod conditions;

pub use conditions::pushed_down;

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
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, cast};
use datafusion::physical_plan::execute_stream;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use marigram_influxql::time_range::{TIME_MAX_NS, TIME_MIN_NS};
use marigram_sql::{SqlError, SqlResult};
use std::collections::HashSet;
use std::sync::Arc;

/// A request for rows of a table.
#[derive(Clone)]
pub struct MeasurementRequest {
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
    pub series: Option<HashSet<SeriesKey>>,
    /// The largest number of rows that are needed.
    pub fetch: Option<usize>,
    /// Whether to leave out rows without a value in any of the requested fields.
    pub needs_field: bool,
}

/// The rows of a table.
pub struct MeasurementRows {
    state: Arc<SessionState>,
    request: MeasurementRequest,
    /// The part of the condition over the columns that the scan cannot evaluate.
    residual: Option<Expression>,
    /// The columns to read.
    read: Vec<ReadColumn>,
    stream: Option<SendableRecordBatchStream>,
    ended: bool,
    last: Option<Arc<SeriesKey>>,
}

/// A column of the table, or the replacement of a column that it lacks.
#[derive(Clone, Debug)]
enum ReadColumn {
    Tag {
        name: String,
        absent: Value,
    },
    Field {
        name: String,
        kind: Option<InfluxValueType>,
    },
    Absent(Value),
}

impl MeasurementRows {
    /// The rows of a request. Reading begins when the first rows are requested.
    pub fn new(state: Arc<SessionState>, request: MeasurementRequest) -> Self {
        let table = &request.measurement;
        let mut read: Vec<ReadColumn> = request
            .columns
            .iter()
            .map(|column| match table.type_of(&column.name) {
                Some(InfluxValueType::Tag) if column.is_driver => ReadColumn::Absent(Value::Null),
                _ => read_column(table, &column.name, column.kind, Value::Null),
            })
            .collect();
        let residual = request.condition.as_ref().and_then(|condition| {
            let rest = conditions::residual(condition, table)?;
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
            stream: None,
            ended: false,
            last: None,
        }
    }

    /// The plan that reads the rows.
    async fn plan(&mut self) -> SqlResult<LogicalPlan> {
        let request = &self.request;
        let table = &request.measurement.table;
        let catalog = self.state.catalog_list().catalog(&table.database);
        let schema = catalog.and_then(|catalog| catalog.schema("public"));
        let provider = match schema {
            Some(schema) => schema.table(&table.name).await?,
            None => None,
        };
        let provider = provider.ok_or_else(|| {
            crate::schema::refused(format!("measurement not found: {}", table.name))
        })?;
        let mut plan = LogicalPlanBuilder::scan("m", provider_as_source(provider), None)?;
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
        let time = column(&table.time_name);
        let at = |ns: i64| Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), None), None);
        let mut filters = Vec::new();
        let (min, max) = request.range;
        if min > TIME_MIN_NS {
            filters.push(time.clone().gt_eq(at(min)));
        }
        if max < TIME_MAX_NS {
            filters.push(time.lt_eq(at(max)));
        }
        if let Some(condition) = &request.condition {
            filters.extend(pushed_down(condition, &request.measurement));
        }
        if request.needs_field {
            let mut fields: Vec<&str> = Vec::new();
            for read in self.read.iter().take(request.columns.len()) {
                if let ReadColumn::Field { name, .. } = read
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
        self.stream = Some(execute_stream(plan, self.state.task_ctx())?);
        Ok(())
    }

    /// The rows of a batch that satisfy the condition.
    fn rows(&mut self, batch: &RecordBatch) -> SqlResult<Vec<Row>> {
        let times = columns::times(batch)?;
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
        let (asked, fields) = (self.request.columns.len(), self.asked_fields());
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
            if self.request.needs_field && fields.iter().all(|place| values[*place].is_null()) {
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
                && !shown.contains(&*series)
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

    /// The indexes of fields among the requested columns.
    fn asked_fields(&self) -> Vec<usize> {
        let asked = self.read.iter().take(self.request.columns.len());
        let fields = asked
            .enumerate()
            .filter(|(_, read)| matches!(read, ReadColumn::Field { .. }));
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

/// A column by its exact name.
fn column(name: &str) -> Expr {
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
