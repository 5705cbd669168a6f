//! Aggregate calls as folds. Calls over the same argument share one.

use super::{
    Answer, Arg, Asked, Call, Computed, Expr, From, Make, NumberType, Reading, Side, Spec,
};
use crate::rows::Source;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

impl Reading<'_> {
    /// Adds a call; `false` where it cannot be done here.
    pub(super) fn call(&mut self, call: &Call<'_>) -> Result<bool> {
        let own = if call.function.is_distinct() {
            None
        } else if call.orders.is_empty() && !call.function.ignore_nulls() {
            self.own(call)?
        } else {
            self.ordered(call)?
        };
        let own = match own {
            Some(own) => own,
            None if call.orders.is_empty() => From::Fold(self.foreign(call)?, Answer::Value),
            None => return Ok(false),
        };
        self.answers.push(own);
        Ok(true)
    }

    /// `first_value` and `last_value` in the order of time, as DISTINCT ON becomes. What rows are
    /// grouped by orders nothing.
    fn ordered(&mut self, call: &Call<'_>) -> Result<Option<From>> {
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
            Side::Last
        } else {
            Side::First
        };
        let nulls = !call.function.ignore_nulls();
        if nulls && call.filter.is_some() {
            return Ok(None);
        }
        self.edge(call, side, nulls, value)
    }

    fn is_time(&self, expr: &Expr) -> bool {
        let column = expr.downcast_ref::<Column>();
        column.is_some_and(|column| self.source(column) == Source::Time)
    }

    /// A call of a function that is ours, and its fold.
    fn own(&mut self, call: &Call<'_>) -> Result<Option<From>> {
        let (args, filter) = (call.args, call.filter);
        let answer = match (call.function.fun().name(), args) {
            ("count", [arg]) => return self.count(arg, filter),
            ("sum", [_]) => Answer::Sum,
            ("avg", [_]) => Answer::Avg,
            ("min", [_]) => Answer::Min,
            ("max", [_]) => Answer::Max,
            ("var", [_]) => Answer::Spread {
                sample: true,
                root: false,
            },
            ("var_pop", [_]) => Answer::Spread {
                sample: false,
                root: false,
            },
            ("stddev", [_]) => Answer::Spread {
                sample: true,
                root: true,
            },
            ("stddev_pop", [_]) => Answer::Spread {
                sample: false,
                root: true,
            },
            ("first", [value, time]) if self.is_time(time) => {
                return self.edge(call, Side::First, false, value);
            }
            ("last", [value, time]) if self.is_time(time) => {
                return self.edge(call, Side::Last, false, value);
            }
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
            (Answer::Avg | Answer::Spread { .. }, _) | (_, NumberType::F32 | NumberType::F64) => {
                DataType::Float64
            }
            (_, NumberType::U64) => DataType::UInt64,
            (_, NumberType::I32 | NumberType::I64) => DataType::Int64,
        };
        if *call.function.field().data_type() != expected {
            return Ok(None);
        }
        let arg = self.arg(arg, filter)?;
        let moments = matches!(answer, Answer::Spread { .. });
        let known = self.folds.iter().position(|spec| {
            let same = match spec.make {
                Make::Numbers(known, ..) => known == number && !moments,
                Make::Moments(known) => known == number && moments,
                _ => false,
            };
            same && spec.args == [arg]
        });
        let fold = match known {
            Some(fold) => fold,
            None if moments => self.push(Make::Moments(number), arg),
            None => {
                let numbers = Make::Numbers(number, kind, Asked::default());
                let counts = |spec: &Spec| matches!(spec.make, Make::Values) && spec.args == [arg];
                match self.folds.iter().position(counts) {
                    // Numbers are counted anyway.
                    Some(fold) => {
                        self.folds[fold].make = numbers;
                        fold
                    }
                    None => self.push(numbers, arg),
                }
            }
        };
        if let Make::Numbers(_, _, asked) = &mut self.folds[fold].make {
            asked.add(answer);
        }
        Ok(Some(From::Fold(fold, answer)))
    }

    /// Adds a fold of one argument.
    fn push(&mut self, make: Make, arg: Arg) -> usize {
        let args = vec![arg];
        self.folds.push(Spec { make, args });
        self.folds.len() - 1
    }

    fn count(&mut self, arg: &Expr, filter: Option<&Expr>) -> Result<Option<From>> {
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
                    Make::Moments(_) | Make::Edges(..) | Make::Foreign(..) => false,
                }
        });
        let fold = known.unwrap_or_else(|| {
            self.folds.push(spec);
            self.folds.len() - 1
        });
        Ok(Some(From::Fold(fold, Answer::Count)))
    }

    /// The value at the first or last time.
    fn edge(
        &mut self,
        call: &Call<'_>,
        side: Side,
        nulls: bool,
        value: &Expr,
    ) -> Result<Option<From>> {
        if let Some(key) = call.keys.iter().position(|key| key == value)
            && nulls
        {
            return Ok(Some(From::Key(key)));
        }
        let kind = value.data_type(&self.scan.schema())?;
        if *call.function.field().data_type() != kind {
            return Ok(None);
        }
        let arg = self.arg(value, call.filter)?;
        let fold = self.push(Make::Edges(side, nulls, kind), arg);
        Ok(Some(From::Fold(fold, Answer::Value)))
    }

    fn foreign(&mut self, call: &Call<'_>) -> Result<usize> {
        let schema = self.scan.schema();
        let kinds = call.args.iter().map(|arg| arg.data_type(&schema));
        let kinds = kinds.collect::<Result<Vec<_>>>()?;
        let all = call.args.iter().chain(call.filter);
        let args = all
            .map(|arg| self.arg(arg, None))
            .collect::<Result<Vec<_>>>()?;
        self.folds.push(Spec {
            make: Make::Foreign(Arc::clone(call.function), kinds, call.filter.is_some()),
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
            .position(|known| known.expr.eq(&expr) && known.mask == mask);
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
