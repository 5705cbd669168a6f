//! Aggregate calls as folds. Calls over the same argument share one.

use super::{Answer, Arg, Asked, Computed, Expr, Make, NumberType, Reading, Side, Spec};
use crate::rows::Source;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

impl Reading<'_> {
    /// Adds a call; `false` where it cannot be done here.
    pub(super) fn call(
        &mut self,
        call: &Arc<AggregateFunctionExpr>,
        args: &[Expr],
        filter: Option<&Expr>,
    ) -> Result<bool> {
        if !call.order_bys().is_empty() {
            return Ok(false);
        }
        let plain = !call.is_distinct() && !call.ignore_nulls();
        let own = if plain {
            self.own(call, args, filter)?
        } else {
            None
        };
        let (fold, answer) = match own {
            Some(own) => own,
            None => (self.foreign(call, args, filter)?, Answer::Value),
        };
        self.answers.push((fold, answer));
        Ok(true)
    }

    /// A call of a function that is ours, and its fold.
    fn own(
        &mut self,
        call: &AggregateFunctionExpr,
        args: &[Expr],
        filter: Option<&Expr>,
    ) -> Result<Option<(usize, Answer)>> {
        let answer = match (call.fun().name(), args) {
            ("count", [arg]) => return self.count(arg, filter),
            ("sum", [_]) => Answer::Sum,
            ("avg", [_]) => Answer::Avg,
            ("min", [_]) => Answer::Min,
            ("max", [_]) => Answer::Max,
            ("first", [value, time]) => return self.edge(call, Side::First, value, time, filter),
            ("last", [value, time]) => return self.edge(call, Side::Last, value, time, filter),
            _ => return Ok(None),
        };
        let schema = self.scan.schema();
        let extreme = matches!(answer, Answer::Min | Answer::Max);
        // Sums and means are of wider types than their arguments, which are cast for them.
        let arg = if extreme {
            &args[0]
        } else {
            widened(&args[0], &schema)?
        };
        let kind = arg.data_type(&schema)?;
        let Some(number) = number_type(&kind) else {
            return Ok(None);
        };
        let expected = match (answer, number) {
            (Answer::Min | Answer::Max, _) => kind.clone(),
            (_, NumberType::Time) => return Ok(None),
            (Answer::Avg, _) | (_, NumberType::F32 | NumberType::F64) => DataType::Float64,
            (_, NumberType::U64) => DataType::UInt64,
            (_, NumberType::I32 | NumberType::I64) => DataType::Int64,
        };
        if *call.field().data_type() != expected {
            return Ok(None);
        }
        let arg = self.arg(arg, filter)?;
        let known = self.folds.iter().position(|spec| {
            spec.args == [arg] && matches!(&spec.make, Make::Numbers(known, ..) if *known == number)
        });
        let fold = known.unwrap_or_else(|| {
            self.folds.push(Spec {
                make: Make::Numbers(number, kind, Asked::default()),
                args: vec![arg],
            });
            self.folds.len() - 1
        });
        if let Make::Numbers(_, _, asked) = &mut self.folds[fold].make {
            asked.add(answer);
        }
        Ok(Some((fold, answer)))
    }

    fn count(&mut self, arg: &Expr, filter: Option<&Expr>) -> Result<Option<(usize, Answer)>> {
        let never_null = match (arg.downcast_ref::<Literal>(), arg.downcast_ref::<Column>()) {
            (Some(literal), _) if literal.value().is_null() => return Ok(None),
            (Some(_), _) => true,
            (_, Some(column)) => self.source(column) == Source::Time,
            _ => false,
        };
        let spec = match (never_null, filter) {
            (true, None) => Spec {
                make: Make::Rows,
                args: Vec::new(),
            },
            // The condition itself is null where it is not true.
            (true, Some(filter)) => Spec {
                make: Make::Values,
                args: vec![self.arg(filter, Some(filter))?],
            },
            (false, _) => Spec {
                make: Make::Values,
                args: vec![self.arg(arg, filter)?],
            },
        };
        // Numbers are counted anyway.
        let known = self.folds.iter().position(|known| {
            known.args == spec.args
                && match known.make {
                    Make::Rows => spec.args.is_empty(),
                    Make::Values | Make::Numbers(..) => !spec.args.is_empty(),
                    Make::Edges(..) | Make::Foreign(..) => false,
                }
        });
        let fold = known.unwrap_or_else(|| {
            self.folds.push(spec);
            self.folds.len() - 1
        });
        Ok(Some((fold, Answer::Count)))
    }

    fn edge(
        &mut self,
        call: &AggregateFunctionExpr,
        side: Side,
        value: &Expr,
        time: &Expr,
        filter: Option<&Expr>,
    ) -> Result<Option<(usize, Answer)>> {
        let by_time = time
            .downcast_ref::<Column>()
            .is_some_and(|column| self.source(column) == Source::Time);
        let kind = value.data_type(&self.scan.schema())?;
        if !by_time || *call.field().data_type() != kind {
            return Ok(None);
        }
        let arg = self.arg(value, filter)?;
        self.folds.push(Spec {
            make: Make::Edges(side, kind),
            args: vec![arg],
        });
        Ok(Some((self.folds.len() - 1, Answer::Value)))
    }

    fn foreign(
        &mut self,
        call: &Arc<AggregateFunctionExpr>,
        args: &[Expr],
        filter: Option<&Expr>,
    ) -> Result<usize> {
        let schema = self.scan.schema();
        let kinds = args.iter().map(|arg| arg.data_type(&schema));
        let kinds = kinds.collect::<Result<Vec<_>>>()?;
        let all = args.iter().chain(filter);
        let args = all
            .map(|arg| self.arg(arg, None))
            .collect::<Result<Vec<_>>>()?;
        self.folds.push(Spec {
            make: Make::Foreign(Arc::clone(call), kinds, filter.is_some()),
            args,
        });
        Ok(self.folds.len() - 1)
    }

    /// An argument, null where `filter` is not true.
    fn arg(&mut self, expr: &Expr, filter: Option<&Expr>) -> Result<Arg> {
        if let Some(column) = expr.downcast_ref::<Column>()
            && filter.is_none()
        {
            match self.source(column) {
                Source::Field(place) => return Ok(Arg::Field(place)),
                Source::Time => return Ok(Arg::Time),
                Source::Tag(..) => {}
            }
        }
        let expr = self.input(expr)?;
        let mask = filter.map(|filter| self.input(filter)).transpose()?;
        let known = self
            .computed
            .iter()
            .position(|known| &known.expr == &expr && known.mask == mask);
        let place = known.unwrap_or_else(|| {
            self.computed.push(Computed { expr, mask });
            self.computed.len() - 1
        });
        Ok(Arg::Computed(place))
    }
}

/// What is cast, where a cast only widens a number.
fn widened<'a>(expr: &'a Expr, schema: &arrow::datatypes::Schema) -> Result<&'a Expr> {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else {
        return Ok(expr);
    };
    let from = cast.expr().data_type(schema)?;
    let widens = matches!(
        (&from, cast.cast_type()),
        (DataType::Int32, DataType::Int64)
            | (
                DataType::Int32 | DataType::Int64 | DataType::UInt64 | DataType::Float32,
                DataType::Float64
            )
    );
    Ok(if widens { cast.expr() } else { expr })
}

fn number_type(kind: &DataType) -> Option<NumberType> {
    Some(match kind {
        DataType::Int32 => NumberType::I32,
        DataType::Int64 => NumberType::I64,
        DataType::UInt64 => NumberType::U64,
        DataType::Float32 => NumberType::F32,
        DataType::Float64 => NumberType::F64,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => NumberType::Time,
        _ => return None,
    })
}
