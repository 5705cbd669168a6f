//! The rows of a plan as an answer of IoTDB: names, types, filled values, and a page of rows.

use crate::fill::Filler;
use crate::listing::{answer_schema, answer_type, typed_field};
use crate::statement::{TreeRun, internal};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::physical_plan::execute_stream;
use futures::{StreamExt, stream};
use marigram_influx::Budget;
use marigram_iotdb::{IotDbType, TIME_ANSWER};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// The column of devices in an answer.
pub(crate) const DEVICE_ANSWER: &str = "Device";

/// A column of an answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerField {
    pub(crate) name: String,
    pub(crate) kind: IotDbType,
}

/// How an answer looks.
pub(crate) struct TreeAnswerShape {
    /// Whether the first column has times.
    pub(crate) has_time: bool,
    /// Whether the next one has devices.
    pub(crate) has_device: bool,
    pub(crate) fields: Vec<AnswerField>,
    pub(crate) filler: Option<Filler>,
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
}

impl TreeAnswerShape {
    fn schema(&self) -> SchemaRef {
        let mut fields: Vec<Field> = Vec::new();
        if self.has_time {
            fields.push(typed_field(TIME_ANSWER, IotDbType::Timestamp).with_nullable(false));
        }
        if self.has_device {
            fields.push(typed_field(DEVICE_ANSWER, IotDbType::Text));
        }
        let own = self.fields.iter();
        fields.extend(own.map(|field| typed_field(&field.name, field.kind)));
        answer_schema(fields, !self.has_time)
    }

    /// An answer without rows.
    pub(crate) fn without_rows(&self) -> StatementRows {
        StatementRows::Rows {
            schema: self.schema(),
            batches: stream::empty().boxed(),
        }
    }

    /// The rows of a plan as the answer.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(crate) async fn answer(
        self,
        run: &TreeRun<'_>,
        state: &SessionState,
        plan: LogicalPlanBuilder,
    ) -> SqlResult<StatementRows> {
        let plan = state.create_physical_plan(&plan.build()?).await?;
        let rows = execute_stream(plan, state.task_ctx())?;
        let schema = self.schema();
        let reader = AnswerReader {
            schema: Arc::clone(&schema),
            rows: Some(rows),
            kinds: self.fields.iter().map(|field| field.kind).collect(),
            leading: usize::from(self.has_time) + usize::from(self.has_device),
            has_time: self.has_time,
            filler: self.filler,
            offset: self.offset,
            limit: self.limit,
            budget: run.budget.clone(),
        };
        let batches = stream::try_unfold(reader, |mut reader| async move {
            let batch = reader.next().await?;
            Ok::<_, SqlError>(batch.map(|batch| (batch, reader)))
        });
        Ok(StatementRows::Rows {
            schema,
            batches: batches.boxed(),
        })
    }
}

struct AnswerReader {
    schema: SchemaRef,
    rows: Option<SendableRecordBatchStream>,
    kinds: Vec<IotDbType>,
    /// The columns before those of values.
    leading: usize,
    has_time: bool,
    filler: Option<Filler>,
    offset: u64,
    limit: Option<u64>,
    budget: Budget,
}

impl AnswerReader {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        while self.limit != Some(0) {
            let Some(batch) = self.read().await? else {
                return Ok(None);
            };
            self.budget.check_interrupt()?;
            let batch = match &mut self.filler {
                Some(filler) => filler.filled(&batch, self.leading)?,
                None => batch,
            };
            let batch = self.page(batch);
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        // Nobody reads the rest.
        self.rows = None;
        Ok(None)
    }

    /// The next rows in the answer's types.
    async fn read(&mut self) -> SqlResult<Option<RecordBatch>> {
        if !self.filler.as_ref().is_some_and(Filler::needs_all) {
            return self.read_batch().await;
        }
        let mut batches = Vec::new();
        while let Some(batch) = self.read_batch().await? {
            // They are joined, too.
            self.budget.keep(3 * batch.get_array_memory_size())?;
            batches.push(batch);
        }
        if batches.is_empty() {
            return Ok(None);
        }
        let all = concat_batches(&self.schema, &batches).map_err(DataFusionError::from)?;
        Ok(Some(all))
    }

    async fn read_batch(&mut self) -> SqlResult<Option<RecordBatch>> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        match rows.next().await {
            Some(batch) => self.converted(&batch?).map(Some),
            None => {
                self.rows = None;
                Ok(None)
            }
        }
    }

    /// A batch of the plan in the answer's types.
    fn converted(&self, batch: &RecordBatch) -> SqlResult<RecordBatch> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (place, column) in batch.columns().iter().enumerate() {
            let kind = if place == 0 && self.has_time {
                IotDbType::Timestamp
            } else if place < self.leading {
                IotDbType::Text
            } else {
                let own = self.kinds.get(place - self.leading).copied();
                own.ok_or_else(|| internal("a plan has too many columns"))?
            };
            columns.push(answer_values(column, kind)?);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        Ok(batch.map_err(DataFusionError::from)?)
    }

    /// The rows of a batch that are on the page.
    fn page(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows() as u64;
        let skipped = self.offset.min(rows);
        self.offset -= skipped;
        let rest = rows - skipped;
        let shown = self.limit.map_or(rest, |limit| limit.min(rest));
        if let Some(limit) = &mut self.limit {
            *limit -= shown;
        }
        // Both are at most the number of rows.
        batch.slice(skipped as usize, shown as usize)
    }
}

/// Values in the form in which answers have them.
///
/// # Errors
/// Arrow's errors.
pub(crate) fn answer_values(values: &ArrayRef, kind: IotDbType) -> SqlResult<ArrayRef> {
    let is_time = matches!(values.data_type(), DataType::Timestamp(..));
    if kind == IotDbType::Timestamp && is_time {
        let plain = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let times = cast(values, &plain).map_err(DataFusionError::from)?;
        let times = times.as_primitive::<TimestampNanosecondType>();
        let ms: Int64Array = times.unary(|ns| ns.div_euclid(1_000_000));
        return Ok(Arc::new(ms));
    }
    let wanted = answer_type(kind);
    if *values.data_type() == wanted {
        return Ok(Arc::clone(values));
    }
    Ok(cast(values, &wanted).map_err(DataFusionError::from)?)
}
