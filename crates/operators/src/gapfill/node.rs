//! The logical node: adds the rows of missing buckets to an aggregate's rows.

use super::BUCKETS_MAX;
use super::gap_fill_error;
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Extension, LogicalPlan, UserDefinedLogicalNodeCore,
};
use marigram_functions::marker_functions::BUCKET;
use marigram_functions::{TimeBuckets, time_buckets};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The buckets to fill.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BucketGrid {
    /// The width, in the form that `time_bucket` takes.
    pub width: ScalarValue,
    /// Origin, offset and zone.
    pub places: Vec<ScalarValue>,
    /// First time of the range, ns.
    pub first_ns: i64,
    /// The last time of the range, ns; before the first if the range is empty.
    pub last_ns: i64,
}

impl BucketGrid {
    /// The buckets, and the starts of the first and the last bucket to fill.
    ///
    /// # Errors
    /// If the buckets are invalid, or there are too many.
    pub fn buckets(&self) -> Result<(TimeBuckets, Option<(i64, i64)>)> {
        let mut buckets = time_buckets(&self.width, &self.places).map_err(|error| {
            let text = error
                .message()
                .replace("time_bucket:", "time_bucket_gapfill:");
            let hint = if text.contains("two origins") {
                "; name the ends of the range: start => …, finish => …"
            } else {
                ""
            };
            gap_fill_error("22023", BUCKET, format!("{text}{hint}"))
        })?;
        if self.first_ns > self.last_ns {
            return Ok((buckets, None));
        }
        let bad =
            |reason| gap_fill_error("22008", BUCKET, format!("time_bucket_gapfill: {reason}"));
        let first = buckets.floor(self.first_ns).map_err(bad)?;
        let last = buckets.floor(self.last_ns).map_err(bad)?;
        let count = buckets.count(first, last);
        if count > BUCKETS_MAX {
            let message = format!(
                "time_bucket_gapfill would make {count} rows for each group, but the limit is \
                 {BUCKETS_MAX}; ask for a shorter range of times or wider buckets"
            );
            return Err(gap_fill_error("54000", BUCKET, message));
        }
        Ok((buckets, Some((first, last))))
    }
}

/// How to compute a missing value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FillMethod {
    /// Carries the last value forward; the flag says whether a null counts as missing.
    Locf(bool),
    /// Interpolates between the neighbouring values; the flag says whether a null counts as
    /// missing.
    Interpolate(bool),
    /// Fills in a constant.
    Value(ScalarValue),
}

/// A column whose missing values are filled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FillColumn {
    /// Its name.
    pub name: String,
    /// The value of existing rows, over the columns of the input.
    pub value: Expr,
    /// How to fill missing rows.
    pub how: FillMethod,
}

/// See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GapFill {
    input: LogicalPlan,
    /// The other group keys: columns of the input.
    pub keys: Vec<Expr>,
    /// The bucket: a column of the input.
    pub bucket: Expr,
    /// The buckets to fill.
    pub grid: BucketGrid,
    /// The columns that follow those of the input.
    pub fills: Vec<FillColumn>,
    schema: DFSchemaRef,
}

impl GapFill {
    /// Creates the node over `input`.
    ///
    /// # Errors
    /// If an expression does not match the input.
    pub fn new(
        input: LogicalPlan,
        keys: Vec<Expr>,
        bucket: Expr,
        grid: BucketGrid,
        fills: Vec<FillColumn>,
    ) -> Result<Self> {
        let known = input.schema();
        let is_key = |field: &str| keys.iter().any(|key| is_column(key, field));
        let mut fields: Vec<_> = known
            .iter()
            .map(|(relation, field)| {
                // A row that does not exist has no value.
                let nullable = field.is_nullable() || !is_key(field.name());
                let field = field.as_ref().clone().with_nullable(nullable);
                (relation.cloned(), Arc::new(field))
            })
            .collect();
        for fill in &fills {
            let (_, field) = fill.value.to_field(known)?;
            let field = field.as_ref().clone().with_name(&fill.name);
            fields.push((None, Arc::new(field.with_nullable(true))));
        }
        let schema = DFSchema::new_with_metadata(fields, known.metadata().clone())?;
        Ok(Self {
            schema: Arc::new(schema),
            input,
            keys,
            bucket,
            grid,
            fills,
        })
    }

    /// The node of a plan, if it is one.
    pub fn from_plan(plan: &LogicalPlan) -> Option<&Self> {
        match plan {
            LogicalPlan::Extension(Extension { node }) => node.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Wraps the node in a plan.
    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension {
            node: Arc::new(self),
        })
    }

    /// The plan whose gaps are filled.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// The same node over another input.
    ///
    /// # Errors
    /// If an expression does not match it.
    pub fn over(&self, input: LogicalPlan) -> Result<Self> {
        let Self {
            keys,
            bucket,
            grid,
            fills,
            ..
        } = self.clone();
        Self::new(input, keys, bucket, grid, fills)
    }
}

fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name == name)
}

/// Nodes have no order; they can only be equal.
impl PartialOrd for GapFill {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &'static str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let keys = self.keys.iter().chain([&self.bucket]);
        let values = self.fills.iter().map(|fill| &fill.value);
        keys.chain(values).cloned().collect()
    }

    /// A condition on keys alone selects whole groups; any other condition would create gaps from
    /// the rows that it rejects.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let fields = self.schema.fields();
        let count = |name: &str| fields.iter().filter(|field| field.name() == name).count();
        let free =
            |name: &str| count(name) == 1 && self.keys.iter().any(|key| is_column(key, name));
        let names = fields.iter().map(|field| field.name());
        names.filter(|name| !free(name)).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: Vec<String>| names.join(", ");
        let keys = self.keys.iter().map(ToString::to_string).collect();
        let fills = self.fills.iter().map(|fill| fill.name.clone()).collect();
        write!(
            f,
            "GapFill: keys=[{}], bucket={}, fill=[{}]",
            list(keys),
            self.bucket,
            list(fills)
        )
    }

    /// The columns after those of the input come from expressions, which report the columns that
    /// they need themselves.
    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let own = self.input.schema().fields().len();
        Some(vec![
            output.iter().copied().filter(|at| *at < own).collect(),
        ])
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs.into_iter();
        let (Some(input), None) = (inputs.next(), inputs.next()) else {
            return internal_err!("gaps are filled in one input");
        };
        let mut exprs = exprs.into_iter();
        let keys = exprs.by_ref().take(self.keys.len()).collect();
        let Some(bucket) = exprs.next() else {
            return internal_err!("gaps are filled by a bucket");
        };
        let mut fills = self.fills.clone();
        for (fill, value) in fills.iter_mut().zip(exprs) {
            fill.value = value;
        }
        Self::new(input, keys, bucket, self.grid.clone(), fills)
    }
}
