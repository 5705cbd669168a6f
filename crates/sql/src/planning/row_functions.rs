//! UNNEST in FROM: alone, or joined with the tables to whose columns it refers.
//!
//! DataFusion knows neither such references nor `WITH ORDINALITY`. Here the arrays are columns beside those
//! of the tables on the left, and all of them are unnested at once: the rows of the tables stream through.

use crate::dialect::set_returning::is_correlated_function;
use arrow::datatypes::DataType;
use datafusion::common::{Column, NullHandling, Result, TableReference, UnnestOptions, plan_err};
use datafusion::functions::expr_fn::greatest;
use datafusion::functions_nested::expr_fn::{array_length, flatten};
use datafusion::functions_nested::range::range_udf;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Join, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableWithJoins,
    Value,
};
use marigram_functions::{REGEXP_MATCH_LIST, refused};

/// The names of the columns of arrays begin so; no user's column has such a name.
const ROWS: &str = "\u{1f}rows ";

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct RowFunctionPlanner;

/// The function of a relation.
struct RowFunction {
    arrays: Vec<SqlExpr>,
    alias: TableAlias,
    has_numbers: bool,
}

impl RowFunction {
    fn from_factor(factor: TableFactor) -> Result<Self> {
        match factor {
            TableFactor::UNNEST {
                alias: Some(alias),
                array_exprs,
                with_ordinality,
                ..
            } => Ok(Self {
                arrays: array_exprs,
                alias,
                has_numbers: with_ordinality,
            }),
            _ => plan_err!("the relation is no function"),
        }
    }
}

impl RelationPlanner for RowFunctionPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let planned = |plan| {
            let planned = PlannedRelation::new(plan, None);
            Ok(RelationPlanning::Planned(Box::new(planned)))
        };
        match relation {
            TableFactor::UNNEST {
                alias: Some(_),
                with_offset: false,
                ..
            } => {
                let one = LogicalPlanBuilder::empty(true).build()?;
                let function = RowFunction::from_factor(relation)?;
                planned(with_rows(one, function, NullHandling::Drop, context)?)
            }
            TableFactor::NestedJoin {
                table_with_joins: mut tables,
                alias: None,
            } if has_function(&tables) => {
                let Some(join) = tables.joins.pop() else {
                    return plan_err!("a join has a right side");
                };
                let nulls = null_handling(&join)?;
                let left = context.plan(tables.relation)?;
                let function = RowFunction::from_factor(join.relation)?;
                planned(with_rows(left, function, nulls, context)?)
            }
            other => Ok(RelationPlanning::Original(Box::new(other))),
        }
    }
}

/// Whether a join is one with a function of its left side.
fn has_function(tables: &TableWithJoins) -> bool {
    matches!(tables.joins.as_slice(), [join] if is_correlated_function(&join.relation))
}

/// What becomes of rows for which the function returns no row.
fn null_handling(join: &Join) -> Result<NullHandling> {
    let is_true = |constraint: &JoinConstraint| match constraint {
        JoinConstraint::None => true,
        JoinConstraint::On(SqlExpr::Value(value)) => value.value == Value::Boolean(true),
        _ => false,
    };
    match &join.join_operator {
        JoinOperator::CrossJoin(_) => Ok(NullHandling::Drop),
        JoinOperator::Join(on) | JoinOperator::Inner(on) if is_true(on) => Ok(NullHandling::Drop),
        JoinOperator::Left(on) | JoinOperator::LeftOuter(on) if is_true(on) => {
            Ok(NullHandling::PreserveAndExpandEmpty)
        }
        _ => Err(refused(
            "0A000",
            "a function of the columns of other tables is joined with CROSS JOIN, with JOIN … ON true, \
             or with LEFT JOIN … ON true",
        )),
    }
}

/// The rows of a plan, each with the rows that a function returns for it.
fn with_rows(
    left: LogicalPlan,
    function: RowFunction,
    nulls: NullHandling,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let table = TableReference::bare(context.normalize_ident(function.alias.name));
    let names = function.alias.columns.into_iter();
    let names = names.map(|column| context.normalize_ident(column.name));
    let names: Vec<String> = names.collect();
    let count = function.arrays.len() + usize::from(function.has_numbers);
    if names.len() != count {
        let message = format!(
            "table \"{}\" has {count} columns available but {} columns specified",
            table.table(),
            names.len()
        );
        return Err(refused("42P10", message));
    }
    let mut arrays = Vec::with_capacity(count);
    for array in function.arrays {
        let array = context.sql_to_expr(array, left.schema())?;
        arrays.push(elements(array, &left)?);
    }
    if function.has_numbers {
        arrays.push(numbers(&arrays));
    }
    let mut columns: Vec<Expr> = left
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    // Rows of an array lose the name of their table, so they get it afterwards.
    let mut unnested = Vec::with_capacity(count);
    let mut shown = columns.clone();
    for (at, (array, name)) in arrays.into_iter().zip(names).enumerate() {
        let own = format!("{ROWS}{at} {}", table.table());
        columns.push(array.alias(own.clone()));
        let own = Column::new_unqualified(own);
        unnested.push(own.clone());
        shown.push(Expr::Column(own).alias_qualified(Some(table.clone()), name));
    }
    let options = UnnestOptions::new().with_null_handling(nulls);
    LogicalPlanBuilder::from(left)
        .project(columns)?
        .unnest_columns_with_options(unnested, options)?
        .project(shown)?
        .build()
}

/// The array of a function; `unnest` also takes arrays of arrays apart.
fn elements(array: Expr, left: &LogicalPlan) -> Result<Expr> {
    let is_list = |kind: &DataType| {
        matches!(
            kind,
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
        )
    };
    let is_match_list = matches!(&array, Expr::ScalarFunction(call)
        if call.func.name() == REGEXP_MATCH_LIST);
    let mut array = array;
    let mut kind = array.get_type(left.schema())?;
    if !is_list(&kind) {
        return Err(refused(
            "42883",
            format!("unnest takes an array, not {kind}"),
        ));
    }
    while !is_match_list
        && let DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) =
            &kind
        && is_list(item.data_type())
    {
        array = flatten(array);
        kind = array.get_type(left.schema())?;
    }
    Ok(array)
}

/// The numbers of the rows that arrays become: as many as the longest has.
fn numbers(arrays: &[Expr]) -> Expr {
    let lengths = arrays
        .iter()
        .map(|array| cast(array_length(array.clone()), DataType::Int64));
    let mut lengths: Vec<Expr> = lengths.collect();
    let longest = match lengths.pop() {
        Some(only) if lengths.is_empty() => only,
        last => {
            lengths.extend(last);
            greatest(lengths)
        }
    };
    let one = || lit(1_i64);
    range_udf().call(vec![one(), longest + one(), one()])
}
