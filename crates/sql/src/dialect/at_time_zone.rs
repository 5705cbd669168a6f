//! `t AT TIME ZONE 'Europe/Berlin'`, which becomes `timezone('Europe/Berlin', t)` as in PostgreSQL, and
//! `date_trunc('day', t, 'Europe/Berlin')`; and intervals that are written as a clock shows them.

use crate::dialect::rewriting::call;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, Ident, ObjectName, Value, VisitorMut,
};
use marigram_functions::zone_functions::{TIMEZONE, TRUNC_IN_ZONE};
use std::ops::ControlFlow;

/// See the head of this file.
pub struct AtTimeZone;

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
                    && let Some(seconds) = clock_seconds(text)
                {
                    let text = Value::SingleQuotedString(format!("{seconds} seconds"));
                    *interval.value = Expr::value(text);
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

/// Seconds of `-3:00` or `00:00:30`.
fn clock_seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    let parts: Option<Vec<i64>> = digits
        .split(':')
        .map(|part| {
            let is_number = part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| is_number)
        })
        .collect();
    match parts?[..] {
        [hours, minutes @ 0..60] => Some(sign * (hours * 3600 + minutes * 60)),
        [hours, minutes @ 0..60, seconds @ 0..60] => {
            Some(sign * (hours * 3600 + minutes * 60 + seconds))
        }
        _ => None,
    }
}

/// Whether a statement, in small letters, may have what is rewritten.
pub fn may_name_zone(folded: &str) -> bool {
    ["zone", "date_trunc", "interval"]
        .iter()
        .any(|word| folded.contains(word))
}
