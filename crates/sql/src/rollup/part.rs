//! Parts: the stored components of aggregates, which can be combined again for wider buckets and
//! fewer tags.
//!
//! When a row is written again, fields without a value in the new row keep their old value, and a
//! null counts as no value. So a value that may be null has a guard: another part, never null, that
//! says whether the value exists.

use crate::error::{SqlError, SqlResult};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{AggregateUDF, Cast, Expr, ExprSchemable, cast, lit, when};
use marigram_functions::arithmetic::unchecked;
use marigram_functions::{
    RollupMethod, TimeEdge, aggregate_descriptor, first_udaf, last_udaf, max_udaf,
    mean_of_parts_udf, min_udaf, sum_high_udaf, sum_low_udaf, sum_udaf,
};
use marigram_model::{FieldType, Limits};
use std::sync::Arc;

/// A field of a rollup's table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RollupPart {
    /// Its name in that table.
    pub name: String,
    /// Its type in that table.
    pub kind: FieldType,
    /// How it is computed from the source.
    pub of: RollupPartSource,
    /// How to combine the parts of several buckets or series.
    pub merge: RollupPartMerge,
    /// The part that says whether this one exists: a count above 0, or true.
    pub guard: Option<usize>,
}

/// How a part is computed from the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RollupPartSource {
    /// An aggregate.
    Call(Expr),
    /// Whether another part exists.
    IsThere(usize),
}

/// How to combine parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RollupPartMerge {
    /// Add them.
    Sum,
    /// Take the minimum.
    Min,
    /// Take the maximum.
    Max,
    /// Take the one for which another part is smallest.
    First(usize),
    /// Take the one for which another part is greatest.
    Last(usize),
    /// They cannot be combined.
    Never,
}

/// How to compute an aggregate from parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RollupFinish {
    /// It is a part.
    Value(usize),
    /// It is a count.
    Count(usize),
    /// It is a sum of floats over a count.
    Mean { sum: usize, count: usize },
    /// It is an exact sum of whole numbers, in two parts, over a count.
    ExactMean {
        high: usize,
        low: usize,
        count: usize,
    },
    /// It is a rounded sum of whole numbers over a count.
    RoundedMean { sum: usize, count: usize },
    /// It is the maximum minus the minimum.
    Spread { max: usize, min: usize },
}

/// How a rollup stores means of whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoredMeans {
    /// As exact sums in two parts.
    #[default]
    Exact,
    /// As sums of doubles, as rollups did that were created before exact means.
    Rounded,
}

/// The parts of a rollup.
#[derive(Clone, Debug, Default)]
pub(crate) struct RollupParts {
    /// The parts in the order of their fields.
    pub list: Vec<RollupPart>,
    /// How it stores means of whole numbers.
    pub means: StoredMeans,
}

/// An aggregate's function, arguments and filter, if it has nothing else.
struct SimpleAggregateCall<'a> {
    name: &'a str,
    args: &'a [Expr],
    filter: Option<&'a Expr>,
}

impl RollupParts {
    /// Adds the parts of an aggregate over the source. `schema` is the source's schema, and the
    /// column `time` has its times.
    ///
    /// # Errors
    /// If no field can have the type of a part.
    pub(crate) fn add(
        &mut self,
        call: &Expr,
        schema: &DFSchema,
        time: &str,
    ) -> SqlResult<RollupFinish> {
        let Some(SimpleAggregateCall { name, args, filter }) = simple(call) else {
            return self.whole(call, schema);
        };
        let method = aggregate_descriptor(name).map_or(RollupMethod::Whole, |known| known.rollup);
        match (method, args) {
            (RollupMethod::Count, [x]) => Ok(RollupFinish::Count(self.count(x, filter, schema)?)),
            (RollupMethod::Sum, [x]) => self.guarded(call, x, filter, schema, RollupPartMerge::Sum),
            (RollupMethod::Min, [x]) => self.guarded(call, x, filter, schema, RollupPartMerge::Min),
            (RollupMethod::Max, [x]) => self.guarded(call, x, filter, schema, RollupPartMerge::Max),
            (RollupMethod::Mean, [x]) if call.get_type(schema)? == DataType::Float64 => {
                self.mean(x, filter, schema)
            }
            (RollupMethod::Spread, [x]) => self.spread(x, filter, schema),
            (RollupMethod::TimeEdge(side), [x, at]) if is_column(at, time) => {
                self.time_edge(call, side, (x, at), filter, schema)
            }
            _ => self.whole(call, schema),
        }
    }

    /// Adds the extremes of which a spread is the difference.
    fn spread(
        &mut self,
        x: &Expr,
        filter: Option<&Expr>,
        schema: &DFSchema,
    ) -> SqlResult<RollupFinish> {
        let count = self.count(x, filter, schema)?;
        let [max, min] = [
            (max_udaf(), RollupPartMerge::Max),
            (min_udaf(), RollupPartMerge::Min),
        ]
        .map(|(udaf, merge)| (aggregate(udaf, vec![x.clone()], filter.cloned()), merge));
        Ok(RollupFinish::Spread {
            max: self.part(max.0, schema, max.1, Some(count))?,
            min: self.part(min.0, schema, min.1, Some(count))?,
        })
    }

    /// Adds the value at one end of the times, and its time.
    fn time_edge(
        &mut self,
        call: &Expr,
        side: TimeEdge,
        (x, at): (&Expr, &Expr),
        filter: Option<&Expr>,
        schema: &DFSchema,
    ) -> SqlResult<RollupFinish> {
        let there = x.clone().is_not_null();
        let filter_there = match filter {
            Some(filter) => filter.clone().and(there),
            None => there,
        };
        let (udaf, extreme) = match side {
            TimeEdge::First => (min_udaf(), RollupPartMerge::Min),
            TimeEdge::Last => (max_udaf(), RollupPartMerge::Max),
        };
        let count = self.count(x, filter, schema)?;
        let at = aggregate(udaf, vec![at.clone()], Some(filter_there));
        let at = self.part(at, schema, extreme, Some(count))?;
        let merge = match side {
            TimeEdge::First => RollupPartMerge::First(at),
            TimeEdge::Last => RollupPartMerge::Last(at),
        };
        let value = self.part(call.clone(), schema, merge, Some(count))?;
        Ok(RollupFinish::Value(value))
    }

    /// A part in a query over the rollup's table: null if it does not exist.
    pub(crate) fn value(&self, part: usize) -> Result<Expr> {
        let column = |at: usize| Expr::Column(Column::new_unqualified(&self.list[at].name));
        let Some(guard) = self.list[part].guard else {
            return Ok(column(part));
        };
        let is_there = match self.list[guard].kind {
            FieldType::Bool => column(guard),
            _ => column(guard).gt(lit(0_i64)),
        };
        when(is_there, column(part)).end()
    }

    /// The aggregate that combines many parts; `None` if there is none.
    pub(crate) fn merged(&self, part: usize) -> Result<Option<Expr>> {
        let value = self.value(part)?;
        let (udaf, args) = match self.list[part].merge {
            RollupPartMerge::Sum => (sum_udaf(), vec![value]),
            RollupPartMerge::Min => (min_udaf(), vec![value]),
            RollupPartMerge::Max => (max_udaf(), vec![value]),
            RollupPartMerge::First(at) => (first_udaf(), vec![value, self.value(at)?]),
            RollupPartMerge::Last(at) => (last_udaf(), vec![value, self.value(at)?]),
            RollupPartMerge::Never => return Ok(None),
        };
        Ok(Some(aggregate(udaf, args, None)))
    }

    fn mean(
        &mut self,
        x: &Expr,
        filter: Option<&Expr>,
        schema: &DFSchema,
    ) -> SqlResult<RollupFinish> {
        let count = self.count(x, filter, schema)?;
        let kind = x.get_type(schema)?;
        let is_whole = matches!(kind, DataType::Int64 | DataType::UInt64);
        if is_whole && self.means == StoredMeans::Exact {
            let [high, low] = [sum_high_udaf(), sum_low_udaf()]
                .map(|udaf| aggregate(udaf, vec![x.clone()], filter.cloned()));
            return Ok(RollupFinish::ExactMean {
                high: self.part(high, schema, RollupPartMerge::Sum, Some(count))?,
                low: self.part(low, schema, RollupPartMerge::Sum, Some(count))?,
                count,
            });
        }
        let x = match kind {
            DataType::Float64 => x.clone(),
            _ => cast(x.clone(), DataType::Float64),
        };
        let sum = aggregate(sum_udaf(), vec![x], filter.cloned());
        let sum = self.part(sum, schema, RollupPartMerge::Sum, Some(count))?;
        Ok(if is_whole {
            RollupFinish::RoundedMean { sum, count }
        } else {
            RollupFinish::Mean { sum, count }
        })
    }

    fn guarded(
        &mut self,
        call: &Expr,
        x: &Expr,
        filter: Option<&Expr>,
        schema: &DFSchema,
        merge: RollupPartMerge,
    ) -> SqlResult<RollupFinish> {
        let count = self.count(x, filter, schema)?;
        let value = self.part(call.clone(), schema, merge, Some(count))?;
        Ok(RollupFinish::Value(value))
    }

    /// Adds the number of rows that have a value.
    fn count(&mut self, x: &Expr, filter: Option<&Expr>, schema: &DFSchema) -> SqlResult<usize> {
        let count = aggregate(count_udaf(), vec![uncast(x).clone()], filter.cloned());
        self.part(count, schema, RollupPartMerge::Sum, None)
    }

    /// Adds an aggregate that is stored unchanged, and only serves its own buckets and tags.
    fn whole(&mut self, call: &Expr, schema: &DFSchema) -> SqlResult<RollupFinish> {
        let known = |part: &RollupPart| {
            part.of == RollupPartSource::Call(call.clone()) && part.merge == RollupPartMerge::Never
        };
        if let Some(known) = self.list.iter().position(known) {
            return Ok(RollupFinish::Value(known));
        }
        let value = self.part(call.clone(), schema, RollupPartMerge::Never, None)?;
        let name = self.free(format!("{} is there", self.list[value].name));
        self.list[value].guard = Some(self.list.len());
        self.list.push(RollupPart {
            name,
            kind: FieldType::Bool,
            of: RollupPartSource::IsThere(value),
            merge: RollupPartMerge::Never,
            guard: None,
        });
        Ok(RollupFinish::Value(value))
    }

    fn part(
        &mut self,
        call: Expr,
        schema: &DFSchema,
        merge: RollupPartMerge,
        guard: Option<usize>,
    ) -> SqlResult<usize> {
        let of = RollupPartSource::Call(call.clone());
        let known = |part: &RollupPart| part.of == of && part.merge == merge;
        if let Some(known) = self.list.iter().position(known) {
            return Ok(known);
        }
        let name = self.free(written(&unchecked(call.clone())?));
        let data_type = call.get_type(schema)?;
        let Some(kind) = field_type(&data_type) else {
            return Err(SqlError::unsupported(format!(
                "a materialized view cannot store {name}: no column has the type {}",
                crate::error::in_sql(&data_type.to_string())
            )));
        };
        self.list.push(RollupPart {
            name,
            kind,
            of,
            merge,
            guard,
        });
        Ok(self.list.len() - 1)
    }

    /// A name that no part has yet.
    fn free(&self, mut name: String) -> String {
        let room = Limits::NAME_BYTES_MAX - 8;
        if name.len() > room {
            let end = (0..=room).rev().find(|at| name.is_char_boundary(*at));
            name.truncate(end.unwrap_or(0));
        }
        name.retain(|c| !c.is_control());
        let taken = |name: &str| self.list.iter().any(|part| part.name == name);
        if !taken(&name) {
            return name;
        }
        let numbered = (2..).map(|number| format!("{name} {number}"));
        numbered
            .into_iter()
            .find(|name| !taken(name))
            .unwrap_or(name)
    }
}

impl RollupFinish {
    /// The parts from which it is computed.
    pub(crate) fn parts(&self) -> Vec<usize> {
        match self {
            Self::Value(part) | Self::Count(part) => vec![*part],
            Self::Mean { sum, count } | Self::RoundedMean { sum, count } => vec![*sum, *count],
            Self::ExactMean { high, low, count } => vec![*high, *low, *count],
            Self::Spread { max, min } => vec![*max, *min],
        }
    }

    /// The aggregate, computed from its parts, which are null if they do not exist.
    pub(crate) fn to_expr(
        &self,
        part: impl Fn(usize) -> Result<Expr>,
        to: &DataType,
    ) -> Result<Expr> {
        let made = match self {
            Self::Value(at) => part(*at)?,
            Self::Count(at) => {
                datafusion::functions::core::expr_fn::coalesce(vec![part(*at)?, lit(0_i64)])
            }
            Self::Mean { sum, count } | Self::RoundedMean { sum, count } => {
                part(*sum)? / cast(part(*count)?, DataType::Float64)
            }
            Self::ExactMean { high, low, count } => {
                mean_of_parts_udf().call(vec![part(*high)?, part(*low)?, part(*count)?])
            }
            Self::Spread { max, min } => {
                let (max, min) = (part(*max)?, part(*min)?);
                cast(max, to.clone()) - cast(min, to.clone())
            }
        };
        Ok(cast(made, to.clone()))
    }
}

fn simple(call: &Expr) -> Option<SimpleAggregateCall<'_>> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = call else {
        return None;
    };
    let AggregateFunctionParams {
        args,
        distinct: false,
        filter,
        order_by,
        null_treatment: None,
    } = params
    else {
        return None;
    };
    order_by.is_empty().then_some(SimpleAggregateCall {
        name: func.name(),
        args,
        filter: filter.as_deref(),
    })
}

fn aggregate(func: Arc<AggregateUDF>, args: Vec<Expr>, filter: Option<Expr>) -> Expr {
    let filter = filter.map(Box::new);
    let call = AggregateFunction::new_udf(func, args, false, filter, Vec::new(), None);
    Expr::AggregateFunction(call)
}

fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(uncast(expr), Expr::Column(column) if column.name == name)
}

/// The expression inside casts, which do not change whether a value is null.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr, .. }) => uncast(expr),
        other => other,
    }
}

/// An aggregate as a user would write it.
fn written(call: &Expr) -> String {
    let Some(SimpleAggregateCall { name, args, filter }) = simple(call) else {
        return call.human_display().to_string();
    };
    let arg = |arg: &Expr| match uncast(arg) {
        Expr::Literal(..) if name == "count" => "*".to_owned(),
        arg => arg.human_display().to_string(),
    };
    let args: Vec<String> = args.iter().map(arg).collect();
    let filter = filter.map(|filter| format!(" filter ({})", filter.human_display()));
    format!("{name}({}){}", args.join(", "), filter.unwrap_or_default())
}

fn field_type(data_type: &DataType) -> Option<FieldType> {
    let all = FieldType::ALL.into_iter();
    all.into_iter().find(|kind| kind.data_type() == *data_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, Schema, TimeUnit};
    use datafusion::logical_expr::col;

    fn schema() -> DFSchema {
        let field = |name: &str, kind| Field::new(name, kind, true);
        let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let schema = Schema::new(vec![
            field("time", time),
            field("x", DataType::Float64),
            field("n", DataType::UInt64),
        ]);
        DFSchema::try_from(schema).unwrap()
    }

    #[test]
    fn parts_are_shared_and_their_names_differ() {
        let (schema, mut parts) = (schema(), RollupParts::default());
        let mut add = |call: Expr| parts.add(&call, &schema, "time").unwrap();
        let of = |udaf: Arc<AggregateUDF>, args: Vec<Expr>| aggregate(udaf, args, None);
        let mean = add(of(
            marigram_functions::avg_udaf(),
            vec![cast(col("n"), DataType::Float64)],
        ));
        assert_eq!(mean, RollupFinish::Mean { sum: 1, count: 0 });
        assert_eq!(
            add(of(count_udaf(), vec![col("n")])),
            RollupFinish::Count(0)
        );
        assert_eq!(add(of(sum_udaf(), vec![col("n")])), RollupFinish::Value(2));
        assert_eq!(add(of(max_udaf(), vec![col("x")])), RollupFinish::Value(4));
        let last = of(last_udaf(), vec![col("x"), col("time")]);
        assert_eq!(add(last.clone()), RollupFinish::Value(6));
        assert_eq!(add(last), RollupFinish::Value(6));
        let deviation = of(
            datafusion::functions_aggregate::stddev::stddev_udaf(),
            vec![col("x")],
        );
        assert_eq!(add(deviation.clone()), RollupFinish::Value(7));
        assert_eq!(add(deviation), RollupFinish::Value(7));
        let names: Vec<&str> = parts.list.iter().map(|part| part.name.as_str()).collect();
        let expected = [
            "count(n)",
            "sum(n)",
            "sum(n) 2",
            "count(x)",
            "max(x)",
            "max(time) filter (x IS NOT NULL)",
            "last(x, time)",
            "stddev(x)",
            "stddev(x) is there",
        ];
        assert_eq!(names, expected);
        assert_eq!(parts.list[7].guard, Some(8));
        assert!(parts.merged(7).unwrap().is_none());
    }

    #[test]
    fn means_of_whole_numbers_have_exact_parts_except_in_old_rollups() {
        let call = aggregate(marigram_functions::avg_udaf(), vec![col("n")], None);
        let parts_of = |means| {
            let mut parts = RollupParts {
                means,
                ..RollupParts::default()
            };
            let finish = parts.add(&call, &schema(), "time").unwrap();
            let stored = parts.list.iter().map(|part| (part.name.clone(), part.kind));
            (finish, stored.collect::<Vec<_>>())
        };
        let stored = |name: &str, kind| (name.to_owned(), kind);
        let (finish, fields) = parts_of(StoredMeans::Exact);
        assert_eq!(
            finish,
            RollupFinish::ExactMean {
                high: 1,
                low: 2,
                count: 0
            }
        );
        let expected = [
            stored("count(n)", FieldType::I64),
            stored("sum_high(n)", FieldType::I64),
            stored("sum_low(n)", FieldType::I64),
        ];
        assert_eq!(fields, expected);
        let (finish, fields) = parts_of(StoredMeans::Rounded);
        assert_eq!(finish, RollupFinish::RoundedMean { sum: 1, count: 0 });
        let expected = [
            stored("count(n)", FieldType::I64),
            stored("sum(n)", FieldType::F64),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn what_no_column_holds_is_refused() {
        let udaf = datafusion::functions_aggregate::array_agg::array_agg_udaf();
        let call = aggregate(udaf, vec![col("x")], None);
        let refused = RollupParts::default().add(&call, &schema(), "time");
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("cannot store array_agg(x)"), "{text}");
    }
}
