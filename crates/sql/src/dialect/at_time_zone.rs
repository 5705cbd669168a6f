//! `t AT TIME ZONE 'Europe/Berlin'` becomes `timezone('Europe/Berlin', t)`, as in PostgreSQL; also
//! rewrites `date_trunc('day', t, 'Europe/Berlin')`, and intervals in forms that only PostgreSQL
//! reads.

use crate::dialect::rewriting::call;
use crate::error::SqlError;
use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, Ident, ObjectName, Value, VisitorMut,
};
use marigram_functions::parse_postgres_interval;
use marigram_functions::zone_functions::{TIMEZONE, TRUNC_IN_ZONE};
use std::ops::ControlFlow;

/// See the module documentation.
pub(crate) struct AtTimeZone;

impl VisitorMut for AtTimeZone {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let nothing = || Expr::value(Value::Null);
                let time = std::mem::replace(timestamp.as_mut(), nothing());
                let zone = std::mem::replace(time_zone.as_mut(), nothing());
                *expr = call(TIMEZONE, vec![zone, time]);
            }
            Expr::Interval(interval)
                if interval.leading_field.is_none() && interval.last_field.is_none() =>
            {
                if let Expr::Value(written) = interval.value.as_ref()
                    && let Value::SingleQuotedString(text) = &written.value
                    && let Some(text) = planned_interval(text)
                {
                    *interval.value = Expr::value(Value::SingleQuotedString(text));
                }
            }
            Expr::Function(function)
                if function.name.to_string().eq_ignore_ascii_case("date_trunc") =>
            {
                if let FunctionArguments::List(list) = &function.args
                    && list.args.len() == 3
                {
                    function.name = ObjectName::from(vec![Ident::new(TRUNC_IN_ZONE)]);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// An interval that PostgreSQL can read but the planner cannot, in a form that the planner reads.
fn planned_interval(text: &str) -> Option<String> {
    if parse_interval_month_day_nano(text).is_ok() {
        return None;
    }
    let interval = parse_postgres_interval(text)?;
    Some(format!(
        "{} months {} days {} nanoseconds",
        interval.months, interval.days, interval.nanoseconds
    ))
}

/// Whether a statement, in lower case, may contain something to rewrite.
pub(crate) fn may_name_zone(folded: &str) -> bool {
    ["zone", "date_trunc", "interval"]
        .iter()
        .any(|word| folded.contains(word))
}
