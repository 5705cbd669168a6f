//! Replaces a marked GROUP BY with buckets and keys.

use super::{MARK, sample_by_error};
use crate::dialect::ast_walk::walk_mut;
use crate::dialect::rewriting::{FirstTable, TimeOf, call};
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, OrderBy,
    OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, Value,
    VisitorMut,
};
use marigram_functions::marker_functions::{BUCKET, INTERPOLATE, LOCF, VALUE};
use std::ops::ControlFlow;

/// Rewrites each marked GROUP BY of a statement.
pub(super) struct SampleByRewriter<'a> {
    /// The time columns of tables.
    pub time_of: TimeOf<'a>,
    /// Whether a function with this name is an aggregate.
    pub is_aggregate: &'a dyn Fn(&str) -> bool,
}

/// The contents of a marker.
struct SampleByClause {
    width: Expr,
    /// Zone and offset, if given.
    places: Vec<Expr>,
    fills: Vec<Expr>,
}

impl SampleByClause {
    /// Reads the marker of a GROUP BY.
    fn from_group_by(group_by: &GroupByExpr) -> Option<Self> {
        let GroupByExpr::Expressions(keys, _) = group_by else {
            return None;
        };
        let [Expr::Function(call)] = keys.as_slice() else {
            return None;
        };
        if call.name.to_string() != MARK {
            return None;
        }
        let FunctionArguments::List(list) = &call.args else {
            return None;
        };
        let mut arguments = list.args.iter().filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        });
        let width = arguments.next()?;
        let places = arguments.by_ref().take(2);
        let is_null = |expr: &Expr| matches!(expr, Expr::Value(v) if v.value == Value::Null);
        Some(Self {
            width,
            places: places.filter(|place| !is_null(place)).collect(),
            fills: arguments.collect(),
        })
    }

    /// Whether missing buckets are filled.
    fn fills_gaps(&self) -> Result<bool, SqlError> {
        let none = self
            .fills
            .iter()
            .filter(|fill| is_word(fill, "none"))
            .count();
        if none > 0 && self.fills.len() > 1 {
            return Err(sample_by_error(
                "42601",
                "FILL(NONE) cannot be combined with other fills",
            ));
        }
        Ok(none == 0 && !self.fills.is_empty())
    }
}

fn is_word(fill: &Expr, word: &str) -> bool {
    matches!(fill, Expr::Value(v) if v.value == Value::SingleQuotedString(word.to_owned()))
}

/// The bucket of a SELECT.
struct SampleBucket<'a> {
    /// The name of the time column.
    time: String,
    /// The name by which the SELECT refers to its table.
    table: Option<String>,
    /// The expression that computes the bucket.
    expr: Expr,
    is_aggregate: &'a dyn Fn(&str) -> bool,
    /// The number of enclosing aggregates.
    depth: usize,
    /// The number of enclosing subqueries, which have columns of their own.
    queries: usize,
    /// The number of aggregates seen.
    aggregates: usize,
    /// The number of columns seen outside aggregates.
    columns: usize,
    /// The number of buckets inserted.
    put: usize,
}

impl SampleBucket<'_> {
    fn is_call(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Function(call) if call.over.is_none()
            && (self.is_aggregate)(&call.name.to_string().to_lowercase()))
    }

    fn is_time(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Identifier(name) => fold_case(name) == self.time,
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] => {
                    fold_case(name) == self.time && self.table == Some(fold_case(table))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Replaces times outside aggregates with the bucket; returns whether there is an aggregate,
    /// and whether there are columns outside one.
    fn put(&mut self, expr: &mut Expr) -> (bool, bool) {
        (self.aggregates, self.columns, self.put) = (0, 0, 0);
        // The visitor never breaks.
        let _ = walk_mut(expr, self);
        (self.aggregates > 0, self.columns > 0)
    }
}

impl VisitorMut for SampleBucket<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0 && self.is_call(expr) {
            self.depth += 1;
            self.aggregates += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        if self.is_call(expr) {
            self.depth -= 1;
        } else if self.depth == 0 {
            let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            self.columns += usize::from(is_column);
            if self.is_time(expr) {
                *expr = self.expr.clone();
                self.put += 1;
            }
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for SampleByRewriter<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let sampled = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select),
            other => self.branches(other).map(|()| None),
        };
        match sampled {
            Ok(Some((bucket, name))) => order(query, bucket, name),
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl<'a> SampleByRewriter<'a> {
    /// The branches of a UNION.
    fn branches(&self, body: &mut SetExpr) -> Result<(), SqlError> {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.branches(left)?;
                self.branches(right)
            }
            SetExpr::Select(select) => self.select(select).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Rewrites a SELECT; returns its bucket and the bucket's name in the result.
    fn select(
        &self,
        select: &mut Select,
    ) -> Result<Option<(SampleBucket<'a>, Option<Ident>)>, SqlError> {
        let Some(clause) = SampleByClause::from_group_by(&select.group_by) else {
            return Ok(None);
        };
        let fills_gaps = clause.fills_gaps()?;
        let mut bucket = self.bucket(select, &clause, fills_gaps)?;
        let (mut keys, mut aggregates, mut name) = (Vec::new(), Vec::new(), None);
        for item in &mut select.projection {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.clone())),
                _ => {
                    let message = "SAMPLE BY requires named columns and aggregates, not *";
                    return Err(sample_by_error("42803", message));
                }
            };
            let (is_time, text) = (bucket.is_time(expr), expr.to_string());
            let (has_aggregate, has_column) = bucket.put(expr);
            let alias = alias.or_else(|| {
                // The column keeps the name of the original expression.
                let name = if is_time { bucket.time.clone() } else { text };
                let changed = bucket.put > 0 || (has_aggregate && fills_gaps);
                changed.then(|| Ident::with_quote('"', name))
            });
            if is_time && name.is_none() {
                name.clone_from(&alias);
            }
            if has_aggregate {
                aggregates.push(expr.clone());
            } else if has_column && !is_time && !keys.contains(expr) {
                keys.push(expr.clone());
            }
            let mut expr = expr.clone();
            if has_aggregate && fills_gaps {
                expr = clause.filled(expr, aggregates.len() - 1);
            }
            *item = match alias {
                Some(alias) => SelectItem::ExprWithAlias { expr, alias },
                None => SelectItem::UnnamedExpr(expr),
            };
        }
        let fills = clause.fills.len();
        if aggregates.is_empty() {
            return Err(sample_by_error(
                "42803",
                "SAMPLE BY needs an aggregate: SELECT time, avg(x) FROM t SAMPLE BY 1h",
            ));
        }
        if fills > 1 && fills != aggregates.len() {
            let message = format!(
                "FILL has {fills} values for {} aggregates; write one for all, or one for each",
                aggregates.len()
            );
            return Err(sample_by_error("42601", message));
        }
        keys.push(bucket.expr.clone());
        select.group_by = GroupByExpr::Expressions(keys, Vec::new());
        Ok(Some((bucket, name)))
    }

    /// The bucket of the times of the first table.
    fn bucket(
        &self,
        select: &Select,
        clause: &SampleByClause,
        fills_gaps: bool,
    ) -> Result<SampleBucket<'a>, SqlError> {
        let Some(table) = FirstTable::from_select(select, self.time_of) else {
            return Err(sample_by_error("42601", "SAMPLE BY needs a table"));
        };
        let time = table.time.clone().unwrap_or_else(|| "time".to_owned());
        let mut arguments = vec![clause.width.clone(), table.column(&time)];
        arguments.extend(clause.places.iter().cloned());
        let name = if fills_gaps { BUCKET } else { "time_bucket" };
        Ok(SampleBucket {
            time,
            table: table.name,
            expr: call(name, arguments),
            is_aggregate: self.is_aggregate,
            depth: 0,
            queries: 0,
            aggregates: 0,
            columns: 0,
            put: 0,
        })
    }
}

impl SampleByClause {
    /// An aggregate with the fill of its gaps.
    fn filled(&self, expr: Expr, at: usize) -> Expr {
        let fill = match self.fills.as_slice() {
            [one] => one,
            many => match many.get(at) {
                Some(fill) => fill,
                None => return expr,
            },
        };
        if is_word(fill, "prev") {
            call(LOCF, vec![expr])
        } else if is_word(fill, "linear") {
            call(INTERPOLATE, vec![expr])
        } else if is_word(fill, "null") {
            expr
        } else {
            call(VALUE, vec![expr, fill.clone()])
        }
    }
}

/// Sorts rows by their buckets if no other order is requested; an order by a time that is not
/// selected becomes an order by the bucket.
fn order(query: &mut Query, mut bucket: SampleBucket<'_>, name: Option<Ident>) {
    let answered = name.as_ref().map(fold_case) == Some(bucket.time.clone());
    match (&mut query.order_by, name) {
        (None, Some(name)) => {
            query.order_by = Some(OrderBy {
                kind: OrderByKind::Expressions(vec![OrderByExpr {
                    expr: Expr::Identifier(name),
                    options: OrderByOptions::default(),
                    with_fill: None,
                }]),
                interpolate: None,
            });
        }
        (
            Some(OrderBy {
                kind: OrderByKind::Expressions(orders),
                ..
            }),
            _,
        ) if !answered => {
            for order in orders {
                bucket.put(&mut order.expr);
            }
        }
        _ => {}
    }
}
