//! The rule that applies the session's zone to a plan.
//!
//! In a session in UTC, the rule changes two things: the text of a `timestamptz` is in PostgreSQL's
//! form, and a column is compared with a `timestamptz` without a cast, so that scans see the
//! bounds.

use super::integers::time_of_integer;
use super::origin::{is_ours, is_stored};
use super::session::SessionZone;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::expr_fn::now;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, DmlStatement, Expr, ExprSchemable, LogicalPlan, Operator, TryCast,
    WriteOp,
};
use datafusion::optimizer::AnalyzerRule;
use marigram_functions::TIME;
use marigram_functions::interrupt;
use marigram_functions::zone_functions::{ClockQuestion, SessionZoneFunction, ask};
use marigram_functions::zoned::{UTC, zoned_type};
use std::sync::Arc;

/// See the module documentation. The rule runs after DataFusion's type coercion, whose casts it
/// reads.
#[derive(Debug)]
pub(crate) struct ZonedTimes;

impl AnalyzerRule for ZonedTimes {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let zone = SessionZone::name(config);
        if let LogicalPlan::Dml(dml) = &plan
            && matches!(dml.op, WriteOp::Insert(_))
        {
            let input = inserted(LogicalPlan::clone(&dml.input), zone)?;
            let dml = DmlStatement::new(
                dml.table_name.clone(),
                Arc::clone(&dml.target),
                dml.op.clone(),
                Arc::new(input),
            );
            return Ok(LogicalPlan::Dml(dml));
        }
        everywhere(plan, zone)
    }

    fn name(&self) -> &'static str {
        "zoned_times"
    }
}

/// Rewrites all nodes of a plan.
fn everywhere(plan: LogicalPlan, zone: &str) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|plan| one_node(plan, zone, false))?;
    Ok(done.data)
}

/// Rewrites inserted rows: a `timestamptz` is stored in a column of timestamps as the moment that
/// it denotes.
fn inserted(plan: LogicalPlan, zone: &str) -> Result<LogicalPlan> {
    let is_top = matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Values(_));
    if !is_top {
        return everywhere(plan, zone);
    }
    let inputs = plan.inputs();
    let below = match inputs.first() {
        Some(input @ LogicalPlan::Values(_)) => Some(inserted((*input).clone(), zone)?),
        Some(input) => Some(everywhere((*input).clone(), zone)?),
        None => None,
    };
    let plan = plan.with_new_exprs(plan.expressions(), below.into_iter().collect())?;
    Ok(one_node(plan, zone, true)?.data)
}

fn one_node(plan: LogicalPlan, zone: &str, is_inserted: bool) -> Result<Transformed<LogicalPlan>> {
    interrupt::check()?;
    let mut concerned = false;
    plan.apply_expressions(|expr| {
        concerned = expr.exists(|part| Ok(concerns(part, zone == UTC)))?;
        Ok(if concerned {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    if !concerned {
        return Ok(Transformed::no(plan));
    }
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        let (name, source) = (scan.table_name.clone(), scan.source.schema());
        schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
    }
    let whole = plan.clone();
    let place = ExpressionPlace {
        zone,
        schema: &schema,
        plan: &whole,
    };
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        if !expr.exists(|part| Ok(concerns(part, place.is_utc())))? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        if is_inserted && let Some(stored) = place.stored(&expr)? {
            return Ok(Transformed::yes(name.restore(stored)));
        }
        let done = expr.transform_up(|part| Ok(place.rewrite(part)))?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })
}

/// Whether the rule may affect an expression, without looking at types.
fn concerns(expr: &Expr, is_utc: bool) -> bool {
    match expr {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => {
            let kind = field.data_type();
            matches!(kind, DataType::Timestamp(..)) || kind.is_string() || !is_utc
        }
        Expr::ScalarFunction(call) => !is_utc || call.name() == "date_part",
        Expr::BinaryExpr(_) => !is_utc,
        _ => false,
    }
}

fn is_plain(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(_, None))
}

fn is_zoned(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(_, Some(_)))
}

/// The context of expressions.
struct ExpressionPlace<'a> {
    zone: &'a str,
    schema: &'a DFSchema,
    plan: &'a LogicalPlan,
}

impl ExpressionPlace<'_> {
    fn is_zoned(&self, expr: &Expr) -> bool {
        expr.get_type(self.schema).is_ok_and(|kind| is_zoned(&kind))
    }

    fn is_utc(&self) -> bool {
        self.zone == UTC
    }

    /// Whether a time without a zone is a moment in UTC.
    fn is_moment(&self, expr: &Expr) -> bool {
        if self.is_utc() {
            return true;
        }
        match self.plan {
            LogicalPlan::TableScan(scan) => {
                is_ours(scan)
                    && expr
                        .exists(|part| Ok(matches!(part, Expr::Column(_))))
                        .unwrap_or(false)
            }
            plan => is_stored(expr, &plan.inputs()),
        }
    }

    /// The value to store in a column of times; `None` if it needs no special conversion.
    fn stored(&self, expr: &Expr) -> Result<Option<Expr>> {
        if let Expr::Alias(alias) = expr {
            let stored = self.stored(&alias.expr)?;
            return Ok(stored.map(|stored| stored.alias(alias.name.clone())));
        }
        let Expr::Cast(Cast { expr: value, field }) = expr else {
            return Ok(None);
        };
        let (to, from) = (field.data_type(), value.get_type(self.schema)?);
        let is_time = matches!(to, DataType::Timestamp(..)) && from.is_integer();
        let loses_zone = is_plain(to) && is_zoned(&from);
        if !is_time && !loses_zone {
            return Ok(None);
        }
        let value = value.as_ref().clone();
        let value = value.transform_up(|part| Ok(self.rewrite(part)))?.data;
        Ok(Some(if is_time {
            time_of_integer(value, to)
        } else {
            Expr::Cast(Cast::new(Box::new(value), to.clone()))
        }))
    }

    fn rewrite(&self, expr: Expr) -> Transformed<Expr> {
        match expr {
            Expr::Cast(Cast { expr, field }) => {
                let kind = field.data_type().clone();
                match self.cast(&expr, &kind) {
                    Some(made) => Transformed::yes(made),
                    None => Transformed::no(Expr::Cast(Cast { expr, field })),
                }
            }
            Expr::TryCast(TryCast { expr, field }) => {
                let kind = field.data_type().clone();
                match self.cast(&expr, &kind) {
                    Some(made) => Transformed::yes(made),
                    None => Transformed::no(Expr::TryCast(TryCast { expr, field })),
                }
            }
            Expr::ScalarFunction(call) => self.call(call),
            Expr::BinaryExpr(binary) => self.binary(binary),
            Expr::Between(between) => self.between(between),
            Expr::AggregateFunction(mut call) => {
                let AggregateFunction { func, params } = &mut call;
                let changed = exact_times(func.name(), &mut params.args);
                let expr = Expr::AggregateFunction(call);
                Transformed::new_transformed(expr, changed)
            }
            Expr::WindowFunction(mut call) => {
                let WindowFunction { fun, params } = call.as_mut();
                let changed = exact_times(fun.name(), &mut params.args);
                let expr = Expr::WindowFunction(call);
                Transformed::new_transformed(expr, changed)
            }
            other => Transformed::no(other),
        }
    }

    /// The replacement of a cast; `None` if it stays.
    fn cast(&self, expr: &Expr, to: &DataType) -> Option<Expr> {
        let from = expr.get_type(self.schema).ok()?;
        let value = || vec![expr.clone()];
        match (&from, to) {
            (DataType::Timestamp(_, Some(_)), text) if text.is_string() => Some(as_kind(
                ask(ClockQuestion::Text, self.zone, value()),
                &DataType::Utf8,
                text,
            )),
            _ if self.is_utc() => None,
            (
                DataType::Timestamp(_, Some(_)),
                DataType::Timestamp(_, None)
                | DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_),
            ) => Some(as_kind(
                ask(ClockQuestion::Shown, self.zone, value()),
                &TIME,
                to,
            )),
            (
                DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64,
                DataType::Timestamp(_, Some(_)),
            ) if !self.is_moment(expr) => Some(as_kind(
                ask(ClockQuestion::Meant, self.zone, value()),
                &zoned_type(),
                to,
            )),
            _ => None,
        }
    }

    fn call(&self, call: ScalarFunction) -> Transformed<Expr> {
        let stays = |call| Transformed::no(Expr::ScalarFunction(call));
        let zone = self.zone;
        match (call.name(), &call.args[..]) {
            ("date_part", [Expr::Literal(unit, _), time]) if self.is_zoned(time) => {
                let unit = unit.try_as_str().flatten().unwrap_or("").to_lowercase();
                let asked = match unit.as_str() {
                    "timezone" => ClockQuestion::Seconds,
                    "timezone_hour" => ClockQuestion::Hours,
                    "timezone_minute" => ClockQuestion::Minutes,
                    _ if self.is_utc() => return stays(call),
                    // Counted from a moment, independent of wall times.
                    "epoch" => return stays(call),
                    _ => {
                        let shown = ask(ClockQuestion::Shown, zone, vec![time.clone()]);
                        let args = vec![call.args[0].clone(), shown];
                        return Transformed::yes(call.func.call(args));
                    }
                };
                Transformed::yes(ask(asked, zone, vec![time.clone()]))
            }
            _ if self.is_utc() => stays(call),
            ("date_trunc", [_, time]) if self.is_zoned(time) => {
                Transformed::yes(ask(ClockQuestion::Truncated, zone, call.args))
            }
            ("to_char", [time, _]) if self.is_zoned(time) => {
                let mut args = call.args;
                args[0] = ask(ClockQuestion::Labelled, zone, vec![args[0].clone()]);
                Transformed::yes(call.func.call(args))
            }
            // Days and months are steps of the clocks in the zone that the times name.
            ("generate_series", [start, stop, _]) if self.is_zoned(start) => {
                let label = |time: &Expr| ask(ClockQuestion::Labelled, zone, vec![time.clone()]);
                let args = vec![label(start), label(stop), call.args[2].clone()];
                let times = DataType::new_list(zoned_type(), true);
                let labelled = Box::new(call.func.call(args));
                Transformed::yes(Expr::Cast(Cast::new(labelled, times)))
            }
            ("age", args) if args.iter().any(|time| self.is_zoned(time)) => {
                let args = call.args.into_iter().map(|time| {
                    if self.is_zoned(&time) {
                        ask(ClockQuestion::Shown, zone, vec![time])
                    } else {
                        time
                    }
                });
                Transformed::yes(call.func.call(args.collect()))
            }
            ("current_date", []) => {
                let shown = ask(ClockQuestion::Shown, zone, vec![now()]);
                Transformed::yes(as_kind(shown, &TIME, &DataType::Date32))
            }
            ("current_time", []) => {
                let shown = ask(ClockQuestion::Shown, zone, vec![now()]);
                let kind = DataType::Time64(TimeUnit::Nanosecond);
                Transformed::yes(as_kind(shown, &TIME, &kind))
            }
            _ => stays(call),
        }
    }

    fn binary(&self, binary: BinaryExpr) -> Transformed<Expr> {
        let BinaryExpr { left, op, right } = binary;
        if compares(op) {
            return match (self.uncast(&left), self.uncast(&right)) {
                (Some(plain), None) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(plain),
                    op,
                    Box::new(as_moment(*right)),
                ))),
                (None, Some(plain)) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(as_moment(*left)),
                    op,
                    Box::new(plain),
                ))),
                _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            };
        }
        let same = |left, right| Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }));
        if self.is_utc() {
            return same(left, right);
        }
        let asked = match op {
            Operator::Plus => ClockQuestion::Plus,
            Operator::Minus => ClockQuestion::Minus,
            _ => return same(left, right),
        };
        if self.is_zoned(&left) && self.is_long(&right) {
            return Transformed::yes(ask(asked, self.zone, vec![*left, *right]));
        }
        if op == Operator::Plus && self.is_zoned(&right) && self.is_long(&left) {
            return Transformed::yes(ask(asked, self.zone, vec![*right, *left]));
        }
        same(left, right)
    }

    fn between(&self, between: Between) -> Transformed<Expr> {
        let plain = self.uncast(&between.expr);
        let ends = [&between.low, &between.high];
        match plain {
            Some(plain) if ends.iter().all(|end| self.uncast(end).is_none()) => {
                Transformed::yes(Expr::Between(Between::new(
                    Box::new(plain),
                    between.negated,
                    Box::new(as_moment(*between.low)),
                    Box::new(as_moment(*between.high)),
                )))
            }
            _ => Transformed::no(Expr::Between(between)),
        }
    }

    /// The operand of a cast from a time in UTC to a `timestamptz`, without the cast.
    fn uncast(&self, expr: &Expr) -> Option<Expr> {
        let Expr::Cast(Cast { expr, field }) = expr else {
            return None;
        };
        let is_same = *field.data_type() == zoned_type()
            && expr.get_type(self.schema).is_ok_and(|kind| kind == TIME);
        (is_same && self.is_moment(expr)).then(|| expr.as_ref().clone())
    }

    /// Whether an expression is an interval that may have days or months.
    fn is_long(&self, expr: &Expr) -> bool {
        if let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) = expr {
            return value.months != 0 || value.days != 0;
        }
        let kind = expr.get_type(self.schema);
        kind.is_ok_and(|kind| matches!(kind, DataType::Interval(_)))
    }
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// A `timestamptz` as a time in UTC.
fn as_moment(expr: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), TIME))
}

fn as_kind(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to {
        return expr;
    }
    Expr::Cast(Cast::new(Box::new(expr), to.clone()))
}

/// The times by which an aggregate orders or measures are moments. Its type coercion casts them to
/// timestamps, but this does not mean wall times.
fn exact_times(name: &str, args: &mut [Expr]) -> bool {
    let from = usize::from(!["elapsed", "spread"].contains(&name));
    let mut changed = false;
    for arg in args.iter_mut().skip(from) {
        let Expr::ScalarFunction(call) = arg else {
            continue;
        };
        let is_shown = call
            .func
            .inner()
            .downcast_ref::<SessionZoneFunction>()
            .is_some_and(|function| function.asked == ClockQuestion::Shown);
        if is_shown && let Some(time) = call.args.pop() {
            *arg = as_moment(time);
            changed = true;
        }
    }
    changed
}
