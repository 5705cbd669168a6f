//! Reads the tables of a bucket: a table for each series and field, by measurement, tags and field.

use crate::arrow_columns::{FieldReader, tag_texts, times};
use crate::evaluate::FluxEvaluator;
use crate::fault::fault;
use crate::predicate::{ScanCondition, ScannedField, column, judged};
use crate::statement::FluxRun;
use crate::value::{BucketRead, FluxColumn, FluxKind, FluxTable, FluxValue, HeldBudget};
use arrow::array::{Array, StringArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, cast};
use datafusion::physical_plan::execute_stream;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use marigram_flux::FluxPosition;
use marigram_influx::{StoredMeasurement, scan_of};
use marigram_model::FieldType;
use marigram_sql::SqlResult;
use std::collections::VecDeque;
use std::sync::Arc;

/// A field that is read.
#[derive(Clone, Debug)]
struct FluxFieldScan {
    name: Arc<str>,
    column: String,
    kind: FluxKind,
}

/// What is read of a measurement.
struct MeasurementScan {
    measurement: StoredMeasurement,
    fields: Vec<FluxFieldScan>,
    filter: Option<Expr>,
    range: (i64, i64),
    /// The names of the tags, by name.
    tags: Vec<Arc<str>>,
}

/// The type that a stored field has in Flux; `None` if Flux has none.
pub(crate) const fn flux_kind(kind: FieldType) -> Option<FluxKind> {
    Some(match kind {
        FieldType::Bool => FluxKind::Bool,
        FieldType::I32 | FieldType::I64 => FluxKind::Int,
        FieldType::U64 => FluxKind::UInt,
        FieldType::F32 | FieldType::F64 => FluxKind::Float,
        FieldType::String => FluxKind::Text,
        FieldType::Timestamp => FluxKind::Time,
        FieldType::Bytes => return None,
    })
}

impl MeasurementScan {
    /// What must be read of a measurement; `None` if nothing.
    fn new(
        measurement: StoredMeasurement,
        predicates: &[FluxValue],
        range: (i64, i64),
        evaluator: &mut FluxEvaluator,
    ) -> Option<Self> {
        let mut fields = Vec::new();
        let mut filters: Vec<Option<Expr>> = Vec::new();
        let names: Vec<String> = measurement
            .fields()
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in &names {
            let Some((column, kind)) = measurement.field_column(name) else {
                continue;
            };
            let Some(kind) = flux_kind(kind) else {
                continue;
            };
            let place = ScannedField {
                measurement: &measurement,
                field: name,
            };
            let mut filter: Option<Expr> = None;
            let mut is_needed = true;
            for predicate in predicates {
                let condition = judged(predicate, &place, evaluator);
                is_needed &= condition != ScanCondition::Never;
                filter = match (filter, condition.expression()) {
                    (Some(a), Some(b)) => Some(a.and(b)),
                    (a, b) => a.or(b),
                };
            }
            if is_needed {
                fields.push(FluxFieldScan {
                    name: name.as_str().into(),
                    column: column.to_owned(),
                    kind,
                });
                if !filters.contains(&filter) {
                    filters.push(filter);
                }
            }
        }
        if fields.is_empty() {
            return None;
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let filter: Option<Vec<Expr>> = filters.into_iter().collect();
        let filter = filter.and_then(|filters| filters.into_iter().reduce(Expr::or));
        let tags = measurement.table.tags.iter();
        let mut tags: Vec<Arc<str>> = tags.map(|tag| tag.name.as_str().into()).collect();
        tags.sort();
        Some(Self {
            measurement,
            fields,
            filter,
            range,
            tags,
        })
    }

    /// The plan that reads the rows by series and time.
    async fn plan(&self, run: &FluxRun, at: FluxPosition) -> SqlResult<LogicalPlan> {
        let table = &self.measurement.table;
        let scan = scan_of(&run.state, table).await;
        let gone = |_| fault(at, format!("from: measurement {:?} is gone", table.name));
        let mut plan = scan.map_err(gone)?;
        for filter in self.filters() {
            plan = plan.filter(filter)?;
        }
        let mut shown = vec![column(&table.time_name).alias("t")];
        let mut order = Vec::new();
        for (place, tag) in self.tags.iter().enumerate() {
            let sorted_by = format!("s{place}");
            shown.push(column(tag).alias(&sorted_by));
            shown.push(cast(column(tag), DataType::Utf8).alias(format!("k{place}")));
            // A series that lacks a tag comes behind those that have it.
            order.push(SortExpr::new(column(&sorted_by), true, false));
        }
        order.push(SortExpr::new(column("t"), true, true));
        for (place, field) in self.fields.iter().enumerate() {
            shown.push(column(&field.column).alias(format!("c{place}")));
        }
        Ok(plan.project(shown)?.sort(order)?.build()?)
    }

    fn filters(&self) -> Vec<Expr> {
        let table = &self.measurement.table;
        let time = column(&table.time_name);
        let at = |ns: i64| Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), None), None);
        let mut filters = vec![
            time.clone().gt_eq(at(self.range.0)),
            time.lt(at(self.range.1)),
        ];
        filters.extend(self.filter.clone());
        if self.fields.len() < table.fields.len() {
            let fields = self.fields.iter();
            let present = fields.map(|field| column(&field.column).is_not_null());
            filters.extend(present.reduce(Expr::or));
        }
        filters
    }
}

/// The rows of the series that is being read.
struct SeriesInWork {
    tags: Vec<Option<Arc<str>>>,
    /// Times and values by field.
    values: Vec<(Vec<FluxValue>, Vec<FluxValue>)>,
    held: HeldBudget,
}

/// A measurement that is being read.
struct OpenMeasurement {
    scan: MeasurementScan,
    batches: SendableRecordBatchStream,
    series: Option<SeriesInWork>,
}

/// A bucket that is being read.
struct OpenBucket {
    run: Arc<FluxRun>,
    at: FluxPosition,
    scans: VecDeque<MeasurementScan>,
    open: Option<OpenMeasurement>,
    ready: VecDeque<FluxTable>,
}

/// The tables of a bucket.
pub(crate) fn bucket_tables(
    run: Arc<FluxRun>,
    at: FluxPosition,
    read: BucketRead,
) -> BoxStream<'static, SqlResult<FluxTable>> {
    let open = async move {
        let bucket = &read.bucket;
        let Some(range) = read.range else {
            let message = format!(
                "cannot submit unbounded read to {:?}; try bounding 'from' with a call to 'range'",
                bucket.name
            );
            return Err(fault(at, message));
        };
        let mut evaluator = run.row_evaluator();
        let measurements = run.measurements(bucket).into_iter();
        let scans = measurements.filter_map(|measurement| {
            MeasurementScan::new(measurement, &read.predicates, range, &mut evaluator)
        });
        let scans = scans.collect();
        Ok(OpenBucket {
            run,
            at,
            scans,
            open: None,
            ready: VecDeque::new(),
        })
    };
    let tables = |bucket: OpenBucket| stream::try_unfold(bucket, OpenBucket::step);
    stream::once(open).map_ok(tables).try_flatten().boxed()
}

impl OpenBucket {
    async fn step(mut self) -> SqlResult<Option<(FluxTable, Self)>> {
        loop {
            if let Some(table) = self.ready.pop_front() {
                return Ok(Some((table, self)));
            }
            let Some(open) = &mut self.open else {
                let Some(scan) = self.scans.pop_front() else {
                    return Ok(None);
                };
                let plan = scan.plan(&self.run, self.at).await?;
                let plan = self.run.state.create_physical_plan(&plan).await?;
                self.open = Some(OpenMeasurement {
                    scan,
                    batches: execute_stream(plan, self.run.state.task_ctx())?,
                    series: None,
                });
                continue;
            };
            if let Some(batch) = open.batches.next().await {
                open.add(&self.run, &batch?, &mut self.ready)?;
            } else {
                open.end_series(&self.run, &mut self.ready)?;
                self.open = None;
            }
        }
    }
}

impl OpenMeasurement {
    /// Adds rows; what they complete is ready.
    fn add(
        &mut self,
        run: &FluxRun,
        batch: &RecordBatch,
        ready: &mut VecDeque<FluxTable>,
    ) -> SqlResult<()> {
        let times = times(batch)?;
        let tags: Vec<StringArray> = (0..self.scan.tags.len())
            .map(|place| tag_texts(batch, place))
            .collect::<SqlResult<_>>()?;
        let fields = self.scan.fields.iter().enumerate();
        let mut readers: Vec<FieldReader> = fields
            .map(|(place, field)| FieldReader::new(batch, place, field.kind))
            .collect::<SqlResult<_>>()?;
        for row in 0..batch.num_rows() {
            let text = |place: usize| {
                let tags: &StringArray = &tags[place];
                (!tags.is_null(row)).then(|| tags.value(row))
            };
            let stays = self.series.as_ref().is_some_and(|series| {
                let mut tags = series.tags.iter().enumerate();
                tags.all(|(place, tag)| tag.as_deref() == text(place))
            });
            if !stays {
                self.end_series(run, ready)?;
            }
            let series = match &mut self.series {
                Some(series) => series,
                empty => empty.insert(SeriesInWork {
                    tags: (0..tags.len())
                        .map(|place| text(place).map(Arc::from))
                        .collect(),
                    values: vec![(Vec::new(), Vec::new()); readers.len()],
                    held: HeldBudget::new(&run.budget, 256)?,
                }),
            };
            for (reader, (of_times, values)) in readers.iter_mut().zip(&mut series.values) {
                let value = reader.value(row);
                if !value.is_null() {
                    series
                        .held
                        .grow(2 * size_of::<FluxValue>() + value.bytes())?;
                    of_times.push(FluxValue::Time(times.value(row)));
                    values.push(value);
                }
            }
        }
        Ok(())
    }

    /// Makes tables of the series that was read.
    fn end_series(&mut self, run: &FluxRun, ready: &mut VecDeque<FluxTable>) -> SqlResult<()> {
        let Some(series) = self.series.take() else {
            return Ok(());
        };
        drop(series.held);
        let scan = &self.scan;
        for (field, (times, values)) in scan.fields.iter().zip(series.values) {
            if times.is_empty() {
                continue;
            }
            let text = |name: &str, text: &Arc<str>| {
                FluxColumn::same(name, FluxKind::Text, FluxValue::Text(Arc::clone(text)))
            };
            let mut named = vec![
                text("_field", &field.name),
                text("_measurement", &scan.measurement.name),
            ];
            for (name, value) in scan.tags.iter().zip(&series.tags) {
                named.extend(value.as_ref().map(|value| text(name, value)));
            }
            named.sort_by(|a, b| a.name.cmp(&b.name));
            let time =
                |name: &str, ns: i64| FluxColumn::same(name, FluxKind::Time, FluxValue::Time(ns));
            let bounds = [time("_start", scan.range.0), time("_stop", scan.range.1)];
            let key = bounds.iter().chain(&named);
            let key = key.map(|column| Arc::clone(&column.name)).collect();
            let rows = times.len();
            let mut columns = Vec::from(bounds);
            columns.push(FluxColumn::each("_time", FluxKind::Time, times));
            columns.push(FluxColumn::each("_value", field.kind, values));
            columns.extend(named);
            let table = FluxTable {
                range: scan.range,
                ..FluxTable::new(columns, key, rows)
            };
            ready.push_back(table.accounted(&run.budget)?);
        }
        Ok(())
    }
}
