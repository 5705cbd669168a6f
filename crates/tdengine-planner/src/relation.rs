//! Rows of a source with the columns that TDengine shows, as a DataFusion plan.

use crate::run::{fault, fault_about};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use marigram_sql::SqlResult;
use marigram_tdengine::{TaosCode, TaosPrecision, TaosType};

/// A column of a relation.
#[derive(Clone, Debug)]
pub(crate) struct RelationColumn {
    /// The table or its alias.
    pub(crate) table: Option<String>,
    /// The name.
    pub(crate) name: String,
    /// The type.
    pub(crate) kind: TaosType,
    /// The value, over the columns of the plan, in the Arrow type that belongs to the type.
    pub(crate) expr: Expr,
    /// What it is.
    pub(crate) role: RelationColumnRole,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelationColumnRole {
    /// The time by which rows are ordered.
    Time,
    /// A column that `*` shows.
    Field,
    /// A tag that `*` shows.
    Tag,
    /// A tag or `tbname` that `*` does not show.
    Hidden,
}

/// Rows.
#[derive(Clone)]
pub(crate) struct Relation {
    /// The plan.
    pub(crate) plan: LogicalPlan,
    /// The columns.
    pub(crate) columns: Vec<RelationColumn>,
    /// The precision of times.
    pub(crate) precision: TaosPrecision,
    /// Whether all rows are of one table, so that they have an order of their own.
    pub(crate) is_one_table: bool,
}

/// A column of a plan by its exact name.
pub(crate) fn plan_column(name: &str) -> Expr {
    Expr::Column(Column::new(None::<TableReference>, name))
}

/// A plan to build on.
pub(crate) fn builder(plan: LogicalPlan) -> LogicalPlanBuilder {
    LogicalPlanBuilder::from(plan)
}

impl Relation {
    /// The column of a name.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub(crate) fn column(&self, table: Option<&str>, name: &str) -> SqlResult<&RelationColumn> {
        find_column(&self.columns, table, name)
    }

    /// The time by which rows are ordered.
    pub(crate) fn time(&self) -> Option<&RelationColumn> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.role == RelationColumnRole::Time)
    }

    /// The columns that `*` shows.
    pub(crate) fn shown(&self, table: Option<&str>) -> impl Iterator<Item = &RelationColumn> {
        self.columns.iter().filter(move |column| {
            column.role != RelationColumnRole::Hidden
                && table.is_none_or(|table| column.table.as_deref() == Some(table))
        })
    }

    /// The same rows with columns of other names in the plan, so that two relations can be joined.
    pub(crate) fn renamed(mut self, prefix: &str) -> SqlResult<Self> {
        let mut shown = Vec::with_capacity(self.columns.len());
        for (place, column) in self.columns.iter_mut().enumerate() {
            let name = format!("{prefix}{place}");
            let expr = std::mem::replace(&mut column.expr, plan_column(&name));
            shown.push(expr.alias(name));
        }
        self.plan = builder(self.plan).project(shown)?.build()?;
        Ok(self)
    }
}

/// The column of a name.
///
/// # Errors
/// If there is none, or more than one.
pub(crate) fn find_column<'c>(
    columns: &'c [RelationColumn],
    table: Option<&str>,
    name: &str,
) -> SqlResult<&'c RelationColumn> {
    let is_time = matches!(name, "_c0" | "_rowts");
    let mut found = columns.iter().filter(|column| {
        let is_named = if is_time {
            column.role == RelationColumnRole::Time
        } else {
            column.name == name
        };
        is_named && table.is_none_or(|table| column.table.as_deref() == Some(table))
    });
    let Some(first) = found.next() else {
        return Err(match name {
            "tbname" => fault(TaosCode::InvalidTbname),
            _ => fault_about(TaosCode::InvalidColumn, name),
        });
    };
    if !is_time && found.next().is_some() {
        return Err(fault_about(TaosCode::AmbiguousColumn, name));
    }
    Ok(first)
}
