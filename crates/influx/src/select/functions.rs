//! Turns a function of InfluxQL into stages.

use super::Grouping;
use crate::expression::Expression;
use crate::prepare::extra_columns;
use crate::reducer::Aggregate;
use crate::schema::refused;
use crate::series::sorted_keys;
use crate::source::SourceColumn;
use crate::stage::{
    Chain, FillStage, FillWith, GroupTimes, OutsideRows, Reduce, Stage, Transform, TransformStage,
};
use crate::typing::type_of;
use crate::value::{InfluxValueType, Value};
use crate::window::Windows;
use marigram_influxql::ast::{Fill, Literal, VarRef};
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// The context in which a function's stages are created.
pub(super) struct FunctionContext<'a> {
    pub(super) grouping: &'a Grouping,
    /// Whether the SELECT consists of one selector, which shows the time of its row.
    pub(super) is_selector: bool,
    /// Whether other columns of a selector's row are shown.
    pub(super) keeps_rows: bool,
    /// Whether the function's input column exists.
    pub(super) has_driver: bool,
}

/// Whether a function selects rows.
pub(super) fn is_selector(call: &Expression) -> bool {
    matches!(call, Expression::Call(name, _) if matches!(
        name.as_str(),
        "first" | "last" | "min" | "max" | "percentile" | "sample" | "top" | "bottom"
    ))
}

/// The name of a function's input column.
pub(super) fn driver(call: &Expression) -> Option<&VarRef> {
    let Expression::Call(_, args) = call else {
        return None;
    };
    match args.first()? {
        Expression::Name(var) => Some(var),
        inner => driver(inner),
    }
}

/// The stages of a function.
///
/// # Errors
/// If it does not accept the type, or is not supported.
pub(super) fn chain(
    call: &Expression,
    context: &FunctionContext<'_>,
    place: &mut impl FnMut(SourceColumn) -> usize,
) -> SqlResult<Chain> {
    let Some(var) = driver(call) else {
        return Err(refused(format!("expected field argument in {call}")));
    };
    let mut builder = Builder {
        context,
        stages: Vec::new(),
        range: (0, 0),
        is_one_group: false,
        reduces: None,
    };
    builder.call(call, &context.grouping.windows)?;
    Ok(Chain {
        driver: place(SourceColumn {
            name: var.name.clone(),
            kind: var.cast.and_then(InfluxValueType::of_cast),
            is_driver: true,
        }),
        start_ns: builder.range.0,
        end_ns: builder.range.1,
        is_one_group: builder.is_one_group,
        outside: OutsideRows::Skip,
        keeps_rows: context.keeps_rows,
        reduces: builder.reduces,
        stages: builder.stages,
    })
}

struct Builder<'a> {
    context: &'a FunctionContext<'a>,
    stages: Vec<Box<dyn Stage>>,
    /// The times to read from the source.
    range: (i64, i64),
    /// Whether the first stage makes one group of all times of the statement.
    is_one_group: bool,
    /// The aggregate, if the first stage is one.
    reduces: Option<Aggregate>,
}

fn integer(arg: Option<&Expression>) -> Option<i64> {
    match arg {
        Some(Expression::Value(Value::Integer(value))) => Some(*value),
        _ => None,
    }
}

fn duration(arg: Option<&Expression>) -> Option<i64> {
    match arg {
        Some(Expression::Literal(Literal::Duration(ns))) => Some(*ns),
        _ => None,
    }
}

fn count_of(args: &[Expression]) -> usize {
    let count = integer(args.last()).and_then(|count| usize::try_from(count).ok());
    count.unwrap_or(1)
}

fn unsupported(function: &str, kind: InfluxValueType) -> SqlError {
    let kind = match kind {
        InfluxValueType::Tag => "string",
        kind => kind.name(),
    };
    // InfluxDB writes the names of these two as words.
    let function = match function {
        "cumulative_sum" => "cumulative sum",
        "moving_average" => "moving average",
        other => other,
    };
    refused(format!(
        "unsupported {function} iterator type: *query.{kind}InterruptIterator"
    ))
}

impl Builder<'_> {
    /// Adds the stages of a call, whose groups are `windows`.
    fn call(&mut self, call: &Expression, windows: &Windows) -> SqlResult<()> {
        let Expression::Call(name, args) = call else {
            self.range = (windows.start_ns, windows.end_ns);
            self.is_one_group = false;
            return Ok(());
        };
        let grouping = self.context.grouping;
        let unit = |otherwise: i64| duration(args.get(1)).unwrap_or(otherwise);
        let transform = match name.as_str() {
            "derivative" | "non_negative_derivative" => {
                let otherwise = if windows.is_grouped() {
                    windows.every_ns
                } else {
                    1_000_000_000
                };
                Transform::Derivative {
                    unit_ns: unit(otherwise),
                    non_negative: name == "non_negative_derivative",
                    ascending: grouping.ascending,
                }
            }
            "difference" | "non_negative_difference" => Transform::Difference {
                non_negative: name == "non_negative_difference",
            },
            "elapsed" => Transform::Elapsed { unit_ns: unit(1) },
            "moving_average" => Transform::MovingAverage(count_of(args)),
            "cumulative_sum" => Transform::CumulativeSum,
            "integral" => Transform::Integral {
                unit_ns: unit(1_000_000_000),
                windows: windows.clone(),
                ascending: grouping.ascending,
            },
            _ => return self.aggregate(name, args, windows),
        };
        let mut inner = windows.clone();
        let looks_back = !matches!(name.as_str(), "cumulative_sum" | "integral");
        if looks_back && inner.is_grouped() {
            // InfluxDB does the same; if WHERE has no first time, this wraps, and nothing is found.
            if grouping.ascending {
                inner.start_ns = inner.start_ns.wrapping_sub(inner.every_ns);
            } else {
                inner.end_ns = inner.end_ns.wrapping_add(inner.every_ns);
            }
        }
        let argument = args.first().unwrap_or(call);
        self.call(argument, &inner)?;
        if let Some(kind) = type_of(argument)?
            && !kind.is_number()
            && kind != InfluxValueType::Tag
            && name != "elapsed"
            && self.context.has_driver
        {
            return Err(unsupported(name, kind));
        }
        self.stages.push(Box::new(TransformStage::new(
            transform,
            Arc::clone(&grouping.keys),
            grouping.budget.clone(),
        )));
        Ok(())
    }

    fn aggregate(&mut self, name: &str, args: &[Expression], windows: &Windows) -> SqlResult<()> {
        let grouping = self.context.grouping;
        let argument = args.first();
        let aggregate = match name {
            "distinct" => Aggregate::Distinct,
            "sample" => Aggregate::Sample(count_of(args)),
            "top" => Aggregate::Top(count_of(args)),
            "bottom" => Aggregate::Bottom(count_of(args)),
            "percentile" => Aggregate::Percentile(match args.get(1) {
                Some(Expression::Value(value)) => value.as_f64().unwrap_or(f64::NAN),
                _ => f64::NAN,
            }),
            _ => Aggregate::simple(name)
                .ok_or_else(|| refused(format!("{name}() is not supported")))?,
        };
        self.range = (windows.start_ns, windows.end_ns);
        self.is_one_group = !windows.is_grouped();
        if let Some(inner @ Expression::Call(..)) = argument {
            self.call(inner, windows)?;
        } else if let Some(kind) = argument.map_or(Ok(None), type_of)?
            && !aggregate.takes(kind)
            && kind != InfluxValueType::Tag
            && self.context.has_driver
        {
            return Err(unsupported(name, kind));
        }
        if let Aggregate::Top(_) | Aggregate::Bottom(_) = aggregate {
            self.top_bottom(aggregate, name, args, windows);
            return Ok(());
        }
        let is_distinct = aggregate == Aggregate::Distinct;
        let is_sample = matches!(aggregate, Aggregate::Sample(_));
        if self.stages.is_empty() {
            self.reduces = Some(aggregate.clone());
        }
        self.reduce(aggregate, windows, Arc::clone(&grouping.keys));
        if is_sample {
            return Ok(());
        }
        if is_distinct {
            self.stages.push(Box::new(GroupTimes(windows.clone())));
            return Ok(());
        }
        if self.context.is_selector && !windows.is_grouped() {
            return Ok(());
        }
        self.stages.push(Box::new(GroupTimes(windows.clone())));
        if windows.is_grouped() {
            self.fill(windows, name, argument);
        }
        Ok(())
    }

    fn top_bottom(
        &mut self,
        aggregate: Aggregate,
        name: &str,
        args: &[Expression],
        windows: &Windows,
    ) {
        let grouping = self.context.grouping;
        let call = Expression::Call(name.to_owned(), args.to_vec());
        let tags = extra_columns(&call);
        if !tags.is_empty() {
            let all = grouping.keys.iter().map(ToString::to_string);
            let all = sorted_keys(all.chain(tags.iter().map(|var| var.name.clone())));
            let inner = match aggregate {
                Aggregate::Top(_) => Aggregate::Max,
                _ => Aggregate::Min,
            };
            self.reduce(inner, windows, all);
        }
        self.reduce(aggregate, windows, Arc::clone(&grouping.keys));
    }

    fn reduce(&mut self, aggregate: Aggregate, windows: &Windows, keys: Arc<[Arc<str>]>) {
        let grouping = self.context.grouping;
        self.stages.push(Box::new(Reduce::new(
            aggregate,
            windows.clone(),
            Arc::clone(&grouping.order),
            keys,
            grouping.budget.clone(),
        )));
    }

    fn fill(&mut self, windows: &Windows, name: &str, argument: Option<&Expression>) {
        let grouping = self.context.grouping;
        let is_count = name == "count";
        let kind = match name {
            "count" => Some(InfluxValueType::Integer),
            "mean" | "median" | "stddev" => Some(InfluxValueType::Float),
            _ => argument.and_then(|argument| type_of(argument).ok().flatten()),
        };
        let is_number = kind.is_none_or(InfluxValueType::is_number);
        let with = match grouping.fill {
            Fill::None => return,
            Fill::Null if is_count => FillWith::Value(Value::Integer(0)),
            Fill::Previous => FillWith::Previous,
            Fill::Linear if is_number => FillWith::Linear,
            Fill::Null | Fill::Linear => FillWith::Value(Value::Null),
            Fill::Integer(_) | Fill::Float(_) => FillWith::Value(match kind {
                Some(InfluxValueType::Boolean) => Value::Boolean(false),
                Some(InfluxValueType::String | InfluxValueType::Tag) => Value::String("".into()),
                kind => grouping.fill_value.cast_or_keep(kind),
            }),
        };
        self.stages.push(Box::new(FillStage::new(
            windows.clone(),
            grouping.ascending,
            with,
            grouping.budget.clone(),
        )));
    }
}
