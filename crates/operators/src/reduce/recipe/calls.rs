//! Translates aggregate calls to folds. Calls with the same argument share a fold.

use super::{
    CallSource, FoldArgument, FoldKind, FoldOutput, FoldSpec, NumberType, NumericOutputs,
    NumericResult, PhysicalExprRef, RecipeBuilder, RowExpression, ScanAggregateCall, TimeEdge,
};
use crate::rows::OutputColumnSource;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use marigram_functions::{FoldMethod, aggregate_descriptor};
use std::sync::Arc;

impl RecipeBuilder<'_> {
    /// Adds a call; returns `false` if it is not supported.
    pub(super) fn call(&mut self, call: &ScanAggregateCall<'_>) -> Result<bool> {
        let own = if call.function.is_distinct() {
            None
        } else if call.orders.is_empty() && !call.function.ignore_nulls() {
            self.own(call)?
        } else {
            self.ordered(call)?
        };
        let own = match own {
            Some(own) => own,
            None if call.orders.is_empty() => {
                CallSource::Fold(self.foreign(call)?, FoldOutput::Value)
            }
            None => return Ok(false),
        };
        self.answers.push(own);
        Ok(true)
    }

    /// `first_value` and `last_value` in the order of time, which is how DISTINCT ON is planned.
    /// Group keys have no effect on the order.
    fn ordered(&mut self, call: &ScanAggregateCall<'_>) -> Result<Option<CallSource>> {
        let first = match call.function.fun().name() {
            "first_value" => true,
            "last_value" => false,
            _ => return Ok(None),
        };
        let mut orders = call
            .orders
            .iter()
            .filter(|order| !call.keys.contains(&order.expr));
        let ([value], Some(order), None) = (call.args, orders.next(), orders.next()) else {
            return Ok(None);
        };
        if !self.is_time(&order.expr) {
            return Ok(None);
        }
        let side = if first == order.options.descending {
            TimeEdge::Last
        } else {
            TimeEdge::First
        };
        let nulls = !call.function.ignore_nulls();
        if nulls && call.filter.is_some() {
            return Ok(None);
        }
        self.edge(call, side, nulls, value)
    }

    fn is_time(&self, expr: &PhysicalExprRef) -> bool {
        let column = expr.downcast_ref::<Column>();
        column.is_some_and(|column| self.source(column) == OutputColumnSource::Time)
    }

    /// A call that has a fold of its own; `None` if its accumulator must compute it.
    fn own(&mut self, call: &ScanAggregateCall<'_>) -> Result<Option<CallSource>> {
        let Some(descriptor) = aggregate_descriptor(call.function.fun().name()) else {
            return Ok(None);
        };
        match (descriptor.fold, call.args) {
            (FoldMethod::Count, [arg]) => self.count(arg, call.filter),
            (FoldMethod::Numbers(result), [arg]) => {
                self.numbers(call, arg, FoldOutput::Number(result))
            }
            (FoldMethod::Variance { sample, root }, [arg]) => {
                self.numbers(call, arg, FoldOutput::Variance { sample, root })
            }
            (FoldMethod::TimeEdge(side), [value, time]) if self.is_time(time) => {
                self.edge(call, side, false, value)
            }
            _ => Ok(None),
        }
    }

    /// A call that the fold of numbers, or that of moments, computes.
    fn numbers(
        &mut self,
        call: &ScanAggregateCall<'_>,
        arg: &PhysicalExprRef,
        answer: FoldOutput,
    ) -> Result<Option<CallSource>> {
        let schema = self.scan.schema();
        // Sums and means have wider types than their arguments, so the arguments are cast.
        let arg = match answer {
            FoldOutput::Number(NumericResult::Min | NumericResult::Max) => arg,
            _ => widened(arg, &schema)?,
        };
        let kind = arg.data_type(&schema)?;
        let Some(number) = number_type(&kind) else {
            return Ok(None);
        };
        let Some(expected) = result_type(answer, number, &kind) else {
            return Ok(None);
        };
        if *call.function.field().data_type() != expected {
            return Ok(None);
        }
        let arg = self.arg(arg, call.filter)?;
        let moments = matches!(answer, FoldOutput::Variance { .. });
        let known = self.folds.iter().position(|spec| {
            let same = match spec.make {
                FoldKind::Numbers(known, ..) => known == number && !moments,
                FoldKind::Moments(known) => known == number && moments,
                _ => false,
            };
            same && spec.args == [arg]
        });
        let fold = match known {
            Some(fold) => fold,
            None if moments => self.push(FoldKind::Moments(number), arg),
            None => {
                let numbers = FoldKind::Numbers(number, kind, NumericOutputs::default());
                let counts =
                    |spec: &FoldSpec| matches!(spec.make, FoldKind::Values) && spec.args == [arg];
                match self.folds.iter().position(counts) {
                    // A fold of numbers also counts them.
                    Some(fold) => {
                        self.folds[fold].make = numbers;
                        fold
                    }
                    None => self.push(numbers, arg),
                }
            }
        };
        if let (FoldKind::Numbers(_, _, asked), FoldOutput::Number(result)) =
            (&mut self.folds[fold].make, answer)
        {
            asked.add(result);
        }
        Ok(Some(CallSource::Fold(fold, answer)))
    }

    /// Adds a fold of one argument.
    fn push(&mut self, make: FoldKind, arg: FoldArgument) -> usize {
        let args = vec![arg];
        self.folds.push(FoldSpec { make, args });
        self.folds.len() - 1
    }

    fn count(
        &mut self,
        arg: &PhysicalExprRef,
        filter: Option<&PhysicalExprRef>,
    ) -> Result<Option<CallSource>> {
        let never_null = match (arg.downcast_ref::<Literal>(), arg.downcast_ref::<Column>()) {
            (Some(literal), _) if literal.value().is_null() => return Ok(None),
            (Some(_), _) => true,
            (_, Some(column)) => self.source(column) == OutputColumnSource::Time,
            _ => false,
        };
        let spec = match (never_null, filter) {
            (true, None) => FoldSpec {
                make: FoldKind::Rows,
                args: Vec::new(),
            },
            // The condition itself becomes null when it is not true.
            (true, Some(filter)) => FoldSpec {
                make: FoldKind::Values,
                args: vec![self.arg(filter, Some(filter))?],
            },
            (false, _) => FoldSpec {
                make: FoldKind::Values,
                args: vec![self.arg(arg, filter)?],
            },
        };
        // A fold of numbers also counts them.
        let known = self.folds.iter().position(|known| {
            known.args == spec.args
                && match known.make {
                    FoldKind::Rows => spec.args.is_empty(),
                    FoldKind::Values | FoldKind::Numbers(..) => !spec.args.is_empty(),
                    FoldKind::Moments(_) | FoldKind::Edges(..) | FoldKind::Foreign(..) => false,
                }
        });
        let fold = known.unwrap_or_else(|| {
            self.folds.push(spec);
            self.folds.len() - 1
        });
        Ok(Some(CallSource::Fold(fold, FoldOutput::Count)))
    }

    /// The value at the first or last time.
    fn edge(
        &mut self,
        call: &ScanAggregateCall<'_>,
        side: TimeEdge,
        nulls: bool,
        value: &PhysicalExprRef,
    ) -> Result<Option<CallSource>> {
        if let Some(key) = call.keys.iter().position(|key| key == value)
            && nulls
        {
            return Ok(Some(CallSource::Key(key)));
        }
        let kind = value.data_type(&self.scan.schema())?;
        if *call.function.field().data_type() != kind {
            return Ok(None);
        }
        let arg = self.arg(value, call.filter)?;
        let fold = self.push(FoldKind::Edges(side, nulls, kind), arg);
        Ok(Some(CallSource::Fold(fold, FoldOutput::Value)))
    }

    fn foreign(&mut self, call: &ScanAggregateCall<'_>) -> Result<usize> {
        let schema = self.scan.schema();
        let kinds = call.args.iter().map(|arg| arg.data_type(&schema));
        let kinds = kinds.collect::<Result<Vec<_>>>()?;
        let all = call.args.iter().chain(call.filter);
        let args = all
            .map(|arg| self.arg(arg, None))
            .collect::<Result<Vec<_>>>()?;
        self.folds.push(FoldSpec {
            make: FoldKind::Foreign(Arc::clone(call.function), kinds, call.filter.is_some()),
            args,
        });
        Ok(self.folds.len() - 1)
    }

    /// An argument, null where `filter` is not true.
    fn arg(
        &mut self,
        expr: &PhysicalExprRef,
        filter: Option<&PhysicalExprRef>,
    ) -> Result<FoldArgument> {
        if let Some(column) = expr.downcast_ref::<Column>()
            && filter.is_none()
        {
            match self.source(column) {
                OutputColumnSource::Field(place) => return Ok(FoldArgument::Field(place)),
                OutputColumnSource::Time => return Ok(FoldArgument::Time),
                OutputColumnSource::Tag(..) => {}
            }
        }
        let expr = self.input(expr)?;
        let mask = filter.map(|filter| self.input(filter)).transpose()?;
        let known = self
            .computed
            .iter()
            .position(|known| known.expr.eq(&expr) && known.mask == mask);
        let place = known.unwrap_or_else(|| {
            self.computed.push(RowExpression { expr, mask });
            self.computed.len() - 1
        });
        Ok(FoldArgument::Computed(place))
    }
}

/// The inner expression, if a cast only widens a number.
fn widened<'a>(
    expr: &'a PhysicalExprRef,
    schema: &arrow::datatypes::Schema,
) -> Result<&'a PhysicalExprRef> {
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

/// The type that a result has if the fold computes it; `None` if it does not.
fn result_type(answer: FoldOutput, number: NumberType, kind: &DataType) -> Option<DataType> {
    use NumericResult as R;
    let float = matches!(number, NumberType::F32 | NumberType::F64);
    match answer {
        FoldOutput::Number(R::Min | R::Max) => Some(kind.clone()),
        _ if number == NumberType::Time => None,
        FoldOutput::Number(R::SumHigh | R::SumLow) => (!float).then_some(DataType::Int64),
        FoldOutput::Number(R::Sum) if number == NumberType::U64 => Some(DataType::UInt64),
        FoldOutput::Number(R::Sum) if !float => Some(DataType::Int64),
        FoldOutput::Number(R::Sum | R::Mean) | FoldOutput::Variance { .. } => {
            Some(DataType::Float64)
        }
        FoldOutput::Count | FoldOutput::Value => None,
    }
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
