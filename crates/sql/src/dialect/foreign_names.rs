//! Functions that other databases call by other names, or without the time: their calls become
//! calls of Marigram's functions if both have the same meaning.
//!
//! The table in `docs/guides/functions.md` lists the databases.

use crate::dialect::rewriting::{FirstTable, TimeOf};
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, ObjectName, OrderByExpr, OrderByOptions,
    Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};
use marigram_functions::duration::{parse_interval, questdb_unit};
use marigram_functions::marker_functions::BUCKET;
use std::ops::ControlFlow;

/// The origin of buckets for databases that count from the epoch.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// Rewrites a statement.
pub(crate) struct ForeignNames<'a> {
    time_of: TimeOf<'a>,
    /// The tables of the enclosing SELECTs.
    tables: Vec<Option<FirstTable>>,
}

impl<'a> ForeignNames<'a> {
    /// Creates the rewriter with the time columns of tables.
    pub(crate) fn new(time_of: TimeOf<'a>) -> Self {
        Self {
            time_of,
            tables: Vec::new(),
        }
    }

    /// The time column of the current SELECT.
    fn time(&self) -> Option<Expr> {
        let table = self.tables.last()?.as_ref()?;
        table.time.as_ref().map(|time| table.column(time))
    }
}

impl VisitorMut for ForeignNames<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        // ORDER BY is outside its SELECT.
        let table = match query.body.as_ref() {
            SetExpr::Select(select) => FirstTable::from_select(select, self.time_of),
            _ => None,
        };
        self.tables.push(table);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.tables.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        self.tables
            .push(FirstTable::from_select(select, self.time_of));
        for item in &mut select.projection {
            // The column keeps the name of the original call.
            if let SelectItem::UnnamedExpr(Expr::Function(call)) = item
                && ForeignFunction::from_call(call).is_some()
            {
                let alias = Ident::with_quote('"', call.to_string());
                let expr = Expr::Function(call.clone());
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<SqlError> {
        self.tables.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Function(call) = expr
            && let Some(foreign) = ForeignFunction::from_call(call)
        {
            match foreign.ours(call.clone(), self.time()) {
                Ok(Some(ours)) => *expr = Expr::Function(ours),
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The equivalent of another database's function.
enum ForeignFunction {
    /// The function with this name.
    Renamed(&'static str),
    /// `count(DISTINCT x)`
    CountDistinct,
    /// `count(*) FILTER (WHERE x)`
    CountIf,
    /// The function with this name, of a value and its time.
    Timed(&'static str),
    /// The value in the last row, even if it is null.
    LastRow,
    /// The function with this name, of the times of values.
    TimeOf(&'static str),
    /// Buckets with gap filling, from 1970 on.
    BucketGapfill,
    /// A bucket of a unit, from 1970 on.
    Floor,
    /// An approximate percentile, given in percent.
    Percentile,
}

impl ForeignFunction {
    fn from_call(call: &Function) -> Option<Self> {
        let [name] = call.name.0.as_slice() else {
            return None;
        };
        let name = name.as_ident()?.value.to_lowercase();
        let FunctionArguments::List(list) = &call.args else {
            return None;
        };
        let plain = list.clauses.is_empty() && list.duplicate_treatment.is_none();
        let plain = plain && call.over.is_none() && call.within_group.is_empty();
        if !plain || call.null_treatment.is_some() {
            return None;
        }
        Some(match (name.as_str(), list.args.len()) {
            ("variance", 1) => Self::Renamed("var_samp"),
            ("hyperloglog" | "approx_count_distinct", 1) => Self::Renamed("approx_distinct"),
            ("approx_percentile", 2) => Self::Renamed("approx_percentile_cont"),
            ("count_distinct", 1) => Self::CountDistinct,
            ("count_if", 1) => Self::CountIf,
            ("first" | "first_value" | "first_not_null", 1) => Self::Timed("first"),
            ("last" | "last_value" | "last_not_null", 1) => Self::Timed("last"),
            ("last_row", 1) => Self::LastRow,
            ("min_time", 1) => Self::TimeOf("min"),
            ("max_time", 1) => Self::TimeOf("max"),
            ("date_bin_gapfill", 2 | 3) => Self::BucketGapfill,
            ("timestamp_floor", 2) => Self::Floor,
            ("apercentile", 2 | 3) => Self::Percentile,
            _ => return None,
        })
    }

    /// The equivalent call; `None` if it needs the time and the time is not known.
    fn ours(self, mut call: Function, time: Option<Expr>) -> Result<Option<Function>, SqlError> {
        let FunctionArguments::List(list) = &mut call.args else {
            return Ok(None);
        };
        let name = match self {
            Self::Renamed(name) => name,
            Self::CountDistinct => {
                list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
                "count"
            }
            Self::CountIf => {
                let all = FunctionArg::Unnamed(FunctionArgExpr::Wildcard);
                let Some(condition) = argument(std::mem::replace(&mut list.args, vec![all])) else {
                    return Ok(None);
                };
                filter(&mut call, condition);
                "count"
            }
            Self::Timed(name) => {
                let Some(time) = time else { return Ok(None) };
                list.args.push(unnamed(time));
                name
            }
            Self::LastRow => {
                let Some(expr) = time else { return Ok(None) };
                list.clauses = vec![FunctionArgumentClause::OrderBy(vec![OrderByExpr {
                    expr,
                    options: OrderByOptions::default(),
                    with_fill: None,
                }])];
                "last_value"
            }
            Self::TimeOf(name) => {
                let Some(time) = time else { return Ok(None) };
                let args = std::mem::replace(&mut list.args, vec![unnamed(time)]);
                let Some(value) = argument(args) else {
                    return Ok(None);
                };
                filter(&mut call, Expr::IsNotNull(Box::new(value)));
                name
            }
            Self::BucketGapfill => {
                if list.args.len() == 2 {
                    list.args.push(unnamed(text(EPOCH)));
                }
                BUCKET
            }
            Self::Floor => {
                if let Some(width) = list.args.first_mut() {
                    let unit = unit(width)?;
                    // Weeks begin on Monday, but 1970 did not.
                    let weeks = unit.ends_with('w');
                    *width = unnamed(text(&unit));
                    if !weeks {
                        list.args.push(unnamed(text(EPOCH)));
                    }
                }
                "time_bucket"
            }
            Self::Percentile => {
                percentile(&mut list.args)?;
                "approx_percentile_cont"
            }
        };
        call.name = ObjectName::from(vec![Ident::new(name)]);
        Ok(Some(call))
    }
}

fn unnamed(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).into())
}

/// The expression that is the only argument.
fn argument(args: Vec<FunctionArg>) -> Option<Expr> {
    match args.into_iter().next() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => Some(expr),
        _ => None,
    }
}

/// Adds a condition to the one that a call may have.
fn filter(call: &mut Function, condition: Expr) {
    let condition = Expr::Nested(Box::new(condition));
    call.filter = Some(Box::new(match call.filter.take() {
        Some(other) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(other)),
            op: BinaryOperator::And,
            right: Box::new(condition),
        },
        None => condition,
    }));
}

fn literal(arg: &FunctionArg) -> Option<&Value> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => Some(&value.value),
        _ => None,
    }
}

/// The unit of `timestamp_floor` in the form that `time_bucket` takes: an optional number, and a
/// letter.
fn unit(width: &FunctionArg) -> Result<String, SqlError> {
    let wrong = || {
        let message = "timestamp_floor takes a literal unit, such as '15m': a number and n, U \
                       (microseconds), T (milliseconds), s, m, h, d, M (months) or y; or 'w' for one week";
        SqlError::named("22023", "timestamp_floor", message)
    };
    let Some(Value::SingleQuotedString(written)) = literal(width) else {
        return Err(wrong());
    };
    let digits = written.bytes().take_while(u8::is_ascii_digit).count();
    let (number, letter) = written.split_at(digits);
    let number = if number.is_empty() { "1" } else { number };
    let letter = questdb_unit(letter).ok_or_else(wrong)?;
    let unit = format!("{number}{letter}");
    // That database counts groups of several weeks differently.
    if letter == "w" && number != "1" || parse_interval(&unit).is_err() {
        return Err(wrong());
    }
    Ok(unit)
}

/// Converts a percentile from percent to a fraction; a method in the third argument must be ours.
fn percentile(args: &mut Vec<FunctionArg>) -> Result<(), SqlError> {
    let wrong = |message: &str| SqlError::named("22023", "apercentile", message);
    let known = match args.get(2).map(literal) {
        None => true,
        Some(Some(Value::SingleQuotedString(method))) => method.eq_ignore_ascii_case("t-digest"),
        Some(_) => false,
    };
    if !known {
        return Err(wrong("apercentile supports only the method 't-digest'"));
    }
    args.truncate(2);
    let part: Option<f64> = match args.get(1).and_then(literal) {
        Some(Value::Number(number, _)) => number.parse().ok(),
        _ => None,
    };
    let Some(part) = part.filter(|part| (0.0..=100.0).contains(part)) else {
        return Err(wrong("apercentile takes a literal number from 0 to 100"));
    };
    let part = Value::Number((part / 100.0).to_string(), false);
    args[1] = unnamed(Expr::Value(part.into()));
    Ok(())
}
