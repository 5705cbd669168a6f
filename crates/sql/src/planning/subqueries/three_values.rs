//! `x IN (SELECT …)`, `x > ANY (SELECT …)`, `x > ALL (SELECT …)` and `(a, b) IN (SELECT …)` in terms of
//! EXISTS.
//!
//! Each compares values with the rows of a subquery. The answer of IN and ANY is true if a comparison
//! is true, otherwise NULL if one is NULL, otherwise false; that of ALL is false if a comparison is
//! false, and so on. A condition of WHERE only asks whether the answer is true, which one EXISTS says;
//! a semi or anti join computes it. Where the value is used, two of them say it.

use super::always_has_a_row;
use crate::dialect::rows::COMPARED_ROWS;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, TableReference};
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    Subquery, lit,
};
use datafusion::scalar::ScalarValue;
use marigram_functions::interval_order::comparison;
use marigram_operators::lateral::DecorrelatedSubquery;
use std::sync::Arc;

/// The names of the compared subqueries begin so; no user's table has such a name.
const COMPARED: &str = "\u{1f}compared";

/// Numbers the compared subqueries.
#[derive(Default)]
pub(super) struct ComparedNames {
    numbers: usize,
}

/// A comparison of each row of a subquery with values of the row outside.
struct ComparedSubquery {
    /// The rows, with names of their own for what is compared.
    rows: LogicalPlan,
    /// The comparison, whose columns are those of `rows` and outer references.
    compared: Expr,
    /// Whether the comparison may be NULL, if that is known: the condition for it.
    unknown: Option<Expr>,
    quantifier: Quantifier,
    negated: bool,
    subquery: Subquery,
}

#[derive(Clone, Copy, PartialEq)]
enum Quantifier {
    Any,
    All,
}

/// Replaces comparisons with subqueries in an expression whose value is used. Those that do not
/// depend on the row are left, unless they compare rows.
///
/// # Errors
/// DataFusion's errors.
pub(super) fn as_exists(
    expr: Expr,
    outer: &DFSchema,
    names: &mut ComparedNames,
) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| {
        let part = part_as_in(part);
        if let Some(compared) = compared_rows(&part) {
            return Ok(Transformed::yes(compared.value()?));
        }
        match part {
            Expr::InSubquery(asked) if is_dependent(&asked.subquery) => {
                if always_has_a_row(&asked.subquery.subquery) {
                    return Ok(Transformed::yes(equals_value(asked)));
                }
                let compared = names.compared_in(&asked, outer)?;
                compared.map_or(Ok(Transformed::no(Expr::InSubquery(asked))), |compared| {
                    Ok(Transformed::yes(compared.value()?))
                })
            }
            Expr::SetComparison(asked) if is_dependent(&asked.subquery) => {
                if always_has_a_row(&asked.subquery.subquery) {
                    let kind = value_type(&asked.subquery.subquery);
                    let value = Expr::ScalarSubquery(asked.subquery);
                    let compared = comparison(*asked.expr, asked.op, value, &kind);
                    return Ok(Transformed::yes(compared));
                }
                let compared = names.compared_set(&asked, outer)?;
                compared.map_or(
                    Ok(Transformed::no(Expr::SetComparison(asked))),
                    |compared| Ok(Transformed::yes(compared.value()?)),
                )
            }
            Expr::Exists(asked) => Ok(simplified(asked)),
            other => Ok(Transformed::no(other)),
        }
    })
}

/// A condition of WHERE that consists of a subquery, in a form that becomes a semi or an anti join;
/// `None` if it has none.
///
/// # Errors
/// DataFusion's errors.
pub(super) fn whole_condition(
    condition: &Expr,
    outer: &DFSchema,
    names: &mut ComparedNames,
) -> Result<Option<Expr>> {
    let (asked, is_not) = match condition {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    let asked = part_as_in(asked.clone());
    if let Some(mut compared) = compared_rows(&asked) {
        // DataFusion's joins do not find the row's columns below the names of the compared values.
        // Values with subqueries are computed beside the row first.
        if !compared.rows.all_out_ref_exprs().is_empty() || has_subquery(&compared.compared) {
            return Ok(None);
        }
        compared.negated ^= is_not;
        return compared.condition().map(Some);
    }
    Ok(match asked {
        Expr::InSubquery(mut asked) => {
            asked.negated ^= is_not;
            if has_subquery(&asked.expr) {
                return Ok(None);
            }
            if !asked.negated {
                return Ok(Some(Expr::InSubquery(asked)));
            }
            if !is_dependent(&asked.subquery) {
                // DataFusion's anti join ignores NULLs unless it compares columns, and any other value
                // may become a constant.
                let is_whole = is_column(&asked.expr);
                return Ok(is_whole.then_some(Expr::InSubquery(asked)));
            }
            if has_limit(&asked.subquery.subquery) || always_has_a_row(&asked.subquery.subquery) {
                return Ok(None);
            }
            match names.compared_in(&asked, outer)? {
                Some(compared) => Some(compared.condition()?),
                None => None,
            }
        }
        Expr::SetComparison(asked) if is_dependent(&asked.subquery) => {
            if has_limit(&asked.subquery.subquery) || always_has_a_row(&asked.subquery.subquery) {
                return Ok(None);
            }
            match names.compared_set(&asked, outer)? {
                Some(mut compared) => {
                    compared.negated ^= is_not;
                    Some(compared.condition()?)
                }
                None => None,
            }
        }
        Expr::Exists(asked) => {
            let is_dependent = is_dependent(&asked.subquery);
            let is_limited = is_dependent && has_limit(&asked.subquery.subquery);
            let is_simple = !is_dependent || !simplified(asked).transformed;
            (is_simple && !is_limited).then(|| condition.clone())
        }
        _ => None,
    })
}

/// The type of the values with which a subquery's rows are compared.
pub(crate) fn value_type(rows: &LogicalPlan) -> DataType {
    rows.schema().field(0).data_type().clone()
}

/// Whether an expression is a column, perhaps of another type.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => is_column(&cast.expr),
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// Whether the answer of a subquery depends on the row.
pub(super) fn is_dependent(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// `= ANY` and `<> ALL` as IN and NOT IN.
fn part_as_in(expr: Expr) -> Expr {
    let Expr::SetComparison(asked) = expr else {
        return expr;
    };
    let negated = match (asked.op, &asked.quantifier) {
        (Operator::Eq, SetQuantifier::Any) => false,
        (Operator::NotEq, SetQuantifier::All) => true,
        _ => return Expr::SetComparison(asked),
    };
    Expr::InSubquery(InSubquery {
        expr: asked.expr,
        subquery: asked.subquery,
        negated,
    })
}

/// `x IN (SELECT max(y) …)`: the subquery has one row.
fn equals_value(asked: InSubquery) -> Expr {
    let op = if asked.negated {
        Operator::NotEq
    } else {
        Operator::Eq
    };
    let kind = value_type(&asked.subquery.subquery);
    let value = Expr::ScalarSubquery(asked.subquery);
    comparison(*asked.expr, op, value, &kind)
}

/// An EXISTS without what does not change whether there are rows. A subquery that aggregates without
/// groups has a row; only HAVING may remove it.
fn simplified(asked: Exists) -> Transformed<Expr> {
    if !is_dependent(&asked.subquery) {
        return Transformed::no(Expr::Exists(asked));
    }
    let mut rows = asked.subquery.subquery.as_ref();
    loop {
        match rows {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::Distinct(Distinct::All(input)) => rows = input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => rows = &sort.input,
            LogicalPlan::SubqueryAlias(alias) => rows = &alias.input,
            _ => break,
        }
    }
    if always_has_a_row(rows) {
        return Transformed::yes(lit(!asked.negated));
    }
    match rows {
        LogicalPlan::Filter(Filter {
            predicate, input, ..
        }) if always_has_a_row(input) => {
            let value = LogicalPlanBuilder::new_from_arc(Arc::clone(input))
                .project([predicate.clone().alias("there")])
                .and_then(LogicalPlanBuilder::build);
            let Ok(value) = value else {
                return Transformed::no(Expr::Exists(asked));
            };
            let value = Box::new(Expr::ScalarSubquery(subquery_of(value, &asked.subquery)));
            Transformed::yes(if asked.negated {
                Expr::IsNotTrue(value)
            } else {
                Expr::IsTrue(value)
            })
        }
        _ => Transformed::no(Expr::Exists(asked)),
    }
}

pub(crate) fn subquery_of(plan: LogicalPlan, like: &Subquery) -> Subquery {
    Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: Arc::new(plan),
        spans: like.spans.clone(),
    }
}

/// Whether a subquery takes some of its rows only.
pub(super) fn has_limit(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        Ok(match node {
            LogicalPlan::Limit(_) => true,
            LogicalPlan::Sort(sort) => sort.fetch.is_some(),
            _ => false,
        })
    })
    .unwrap_or(true)
}

impl ComparedNames {
    /// The rows of a subquery, whose column gets a name of its own, and that column: an outer value
    /// may have the same name. An alias of the whole subquery would hide the columns that are added
    /// below it for conditions on the row. A value of the row within the subquery becomes a part of the
    /// comparison.
    fn renamed(&mut self, subquery: &Subquery) -> Result<(LogicalPlan, Expr)> {
        // Neither order nor duplicates matter.
        let mut rows = &subquery.subquery;
        loop {
            match rows.as_ref() {
                LogicalPlan::Distinct(Distinct::All(input)) => rows = input,
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => rows = &sort.input,
                _ => break,
            }
        }
        if let LogicalPlan::Projection(Projection { expr, input, .. }) = rows.as_ref()
            && let Some(value) = expr.first().filter(|value| value.contains_outer())
        {
            return Ok((input.as_ref().clone(), value.clone().unalias()));
        }
        let (qualifier, field) = rows.schema().qualified_field(0);
        let column = Expr::Column(Column::from((qualifier, field)));
        let table = TableReference::bare(format!("{COMPARED}{}", self.numbers));
        self.numbers += 1;
        let rows = LogicalPlanBuilder::new_from_arc(Arc::clone(rows))
            .project([column.alias_qualified(Some(table), field.name())])?
            .build()?;
        let column = Expr::Column(Column::from(rows.schema().qualified_field(0)));
        Ok((rows, column))
    }

    fn compared_in(
        &mut self,
        asked: &InSubquery,
        outer: &DFSchema,
    ) -> Result<Option<ComparedSubquery>> {
        let found = self.compared(&asked.expr, Operator::Eq, &asked.subquery, outer)?;
        Ok(found.map(|found| ComparedSubquery {
            negated: asked.negated,
            ..found
        }))
    }

    fn compared_set(
        &mut self,
        asked: &SetComparison,
        outer: &DFSchema,
    ) -> Result<Option<ComparedSubquery>> {
        let found = self.compared(&asked.expr, asked.op, &asked.subquery, outer)?;
        Ok(found.map(|found| ComparedSubquery {
            quantifier: match asked.quantifier {
                SetQuantifier::Any => Quantifier::Any,
                SetQuantifier::All => Quantifier::All,
            },
            ..found
        }))
    }

    /// `None` if the value contains a subquery, or the subquery limits its rows in a way that does not
    /// allow conditions around it.
    fn compared(
        &mut self,
        value: &Expr,
        op: Operator,
        subquery: &Subquery,
        outer: &DFSchema,
    ) -> Result<Option<ComparedSubquery>> {
        let is_refused = has_limit(&subquery.subquery)
            && !DecorrelatedSubquery::new(&subquery.subquery).is_ok_and(|rows| rows.rows.is_none());
        if is_refused || has_subquery(value) {
            return Ok(None);
        }
        let (rows, column) = self.renamed(subquery)?;
        let mut nulls = Vec::new();
        if value.nullable(outer).unwrap_or(true) {
            nulls.push(outer_value(value.clone(), outer)?.is_null());
        }
        if column.nullable(rows.schema()).unwrap_or(true) {
            nulls.push(column.clone().is_null());
        }
        let value = outer_value(value.clone(), outer)?;
        let kind = column.get_type(rows.schema())?;
        let compared = comparison(value, op, column, &kind);
        Ok(Some(ComparedSubquery {
            rows,
            compared,
            unknown: nulls.into_iter().reduce(Expr::or),
            quantifier: Quantifier::Any,
            negated: false,
            subquery: subquery.clone(),
        }))
    }
}

/// The comparison in an EXISTS that the dialect wrote for a comparison of rows.
pub(crate) fn row_comparison(asked: &Exists) -> Option<&Filter> {
    let LogicalPlan::Projection(Projection { input, .. }) = asked.subquery.subquery.as_ref() else {
        return None;
    };
    match input.as_ref() {
        LogicalPlan::Filter(filter) => is_row_comparison(filter).then_some(filter),
        _ => None,
    }
}

/// Whether a filter is the comparison in such an EXISTS.
pub(crate) fn is_row_comparison(filter: &Filter) -> bool {
    match filter.input.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.alias.table() == COMPARED_ROWS,
        _ => false,
    }
}

/// Whether an EXISTS was written as a comparison of rows, `(a, b) IN (SELECT …)`.
pub(crate) fn compares_rows(asked: &Exists) -> bool {
    row_comparison(asked).is_some()
}

fn compared_rows(asked: &Expr) -> Option<ComparedSubquery> {
    let Expr::Exists(asked) = asked else {
        return None;
    };
    let filter = row_comparison(asked)?;
    let compared = filter.predicate.clone();
    Some(ComparedSubquery {
        rows: filter.input.as_ref().clone(),
        unknown: Some(compared.clone().is_null()),
        compared,
        quantifier: Quantifier::Any,
        negated: asked.negated,
        subquery: asked.subquery.clone(),
    })
}

impl ComparedSubquery {
    fn exists(&self, condition: Expr, negated: bool) -> Result<Expr> {
        let rows = LogicalPlanBuilder::from(self.rows.clone());
        let rows = rows.filter(condition)?.build()?;
        Ok(Expr::Exists(Exists {
            subquery: subquery_of(rows, &self.subquery),
            negated,
        }))
    }

    /// Whether the answer is true, as an EXISTS.
    fn condition(self) -> Result<Expr> {
        let compared = self.compared.clone();
        match (self.quantifier, self.negated) {
            (Quantifier::Any, false) => self.exists(compared, false),
            (Quantifier::Any, true) => {
                let may_be = match self.unknown.clone() {
                    Some(_) => compared.is_not_false(),
                    None => compared,
                };
                self.exists(may_be, true)
            }
            (Quantifier::All, false) => self.exists(compared.is_not_true(), true),
            (Quantifier::All, true) => self.exists(compared.is_false(), false),
        }
    }

    /// The answer.
    fn value(self) -> Result<Expr> {
        let (decides, answer) = match self.quantifier {
            Quantifier::Any => (self.compared.clone(), true),
            Quantifier::All => (Expr::Not(Box::new(self.compared.clone())), false),
        };
        let known = |value: bool| Box::new(lit(value != self.negated));
        let mut branches = vec![(Box::new(self.exists(decides, false)?), known(answer))];
        if let Some(unknown) = self.unknown.clone() {
            let unknown = self.exists(unknown, false)?;
            let null = lit(ScalarValue::Boolean(None));
            branches.push((Box::new(unknown), Box::new(null)));
        }
        Ok(Expr::Case(Case::new(None, branches, Some(known(!answer)))))
    }
}

/// A value of the row, as its subquery names it.
pub(crate) fn outer_value(value: Expr, outer: &DFSchema) -> Result<Expr> {
    let value = value.transform_up(|part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(outer.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(value.data)
}

/// Whether an expression contains a subquery.
pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    // It never fails.
    let _ = expr.apply(|part| {
        found |= matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    found
}
