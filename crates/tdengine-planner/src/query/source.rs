//! FROM: tables, sub-queries and joins as relations.

use crate::expression::Scope;
use crate::information;
use crate::query::plan_query;
use crate::relation::{Relation, RelationColumn, RelationColumnRole, builder, plan_column};
use crate::run::catalog::objects::{ChildRecord, StableRecord};
use crate::run::catalog::{KIND_CHILD, TBNAME, TaosTable, read};
use crate::run::{SYSTEM_DATABASES, TaosRun, fault, unsupported};
use crate::taos_value::arrow_type;
use arrow::datatypes::DataType;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast, lit, try_cast, when};
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_influx::scan_of;
use marigram_model::TagType;
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosExpr, TaosFrom, TaosJoin, TaosJoinKind, TaosName, TaosOperator};
use marigram_tdengine::{TaosCode, TaosType};
use std::collections::HashMap;

/// The rows of FROM.
pub(crate) fn relation_of<'r>(
    run: &'r TaosRun<'_>,
    from: &'r TaosFrom,
) -> BoxFuture<'r, SqlResult<Relation>> {
    async move {
        match from {
            TaosFrom::Table { name, alias } => {
                let mut relation = table_relation(run, name).await?;
                let shown = alias.as_ref().unwrap_or(&name.name);
                for column in &mut relation.columns {
                    column.table = Some(shown.clone());
                }
                Ok(relation)
            }
            TaosFrom::Query { query, alias } => {
                let mut relation = plan_query(run, query).await?;
                for column in &mut relation.columns {
                    column.table.clone_from(alias);
                }
                Ok(relation)
            }
            TaosFrom::Join(join) => joined(run, join).await,
        }
    }
    .boxed()
}

async fn table_relation(run: &TaosRun<'_>, name: &TaosName) -> SqlResult<Relation> {
    let database = run.database_of(name)?.to_owned();
    if SYSTEM_DATABASES.contains(&database.as_str()) {
        return information::relation(run, &name.name).await;
    }
    run.check_read(&database)?;
    let precision = run.catalog.precision(run, &database).await?;
    let table = run.catalog.table(run, &database, &name.name).await?;
    let stable = table.stable();
    let state = run.state(&database)?;
    let mut rows = scan_of(&state, &stable.table).await?;
    let is_child = matches!(table, TaosTable::Child(..));
    if is_child {
        rows = rows.filter(plan_column(TBNAME).eq(lit(name.name.as_str())))?;
    }
    let set = set_tags(run, &database, &table).await?;
    let mut columns = Vec::new();
    for (place, column) in stable.columns.iter().enumerate() {
        let stored = stable.table.field(&column.name);
        let is_same = stored.is_some_and(|field| field.kind.data_type() == arrow_type(column.kind));
        let value = plan_column(&column.name);
        let expr = if is_same || place == 0 {
            value
        } else {
            cast(value, arrow_type(column.kind))
        };
        let role = if place == 0 {
            RelationColumnRole::Time
        } else {
            RelationColumnRole::Field
        };
        columns.push((column.name.clone(), column.kind, expr, role));
    }
    for tag in &stable.tags {
        let role = if is_child {
            RelationColumnRole::Hidden
        } else {
            RelationColumnRole::Tag
        };
        let expr = tag_expr(stable, (&tag.name, tag.kind), &set)?;
        columns.push((tag.name.clone(), tag.kind, expr, role));
    }
    let own = tbname_expr(stable);
    let kind = TaosType::VarChar(192);
    columns.push((TBNAME.to_owned(), kind, own, RelationColumnRole::Hidden));
    Ok(Relation {
        plan: rows.build()?,
        columns: columns
            .into_iter()
            .map(|(name, kind, expr, role)| RelationColumn {
                table: None,
                name,
                kind,
                expr,
                role,
            })
            .collect(),
        precision,
        is_one_table: is_child || stable.is_normal,
    })
}

/// The sub-tables whose tags were set after their rows were written.
async fn set_tags(
    run: &TaosRun<'_>,
    database: &str,
    table: &TaosTable,
) -> SqlResult<HashMap<String, ChildRecord>> {
    let stable = table.stable();
    let mut set = HashMap::new();
    if stable.retagged.is_empty() {
        return Ok(set);
    }
    let names = stable.retagged.iter().map(|name| lit(name.as_str()));
    let some = plan_column("name").in_list(names.collect(), false);
    read(run, database, (KIND_CHILD, Some(some)), |name, text| {
        if let Some(record) = ChildRecord::read(text)
            && record.table_id == stable.table.id.0
            && record.tags.is_some()
        {
            run.budget.keep(text.len())?;
            set.insert(name.to_owned(), record);
        }
        Ok(())
    })
    .await?;
    Ok(set)
}

/// A tag: what the rows carry, or what was set for their sub-table.
fn tag_expr(
    stable: &StableRecord,
    (name, kind): (&str, TaosType),
    set: &HashMap<String, ChildRecord>,
) -> SqlResult<Expr> {
    let stored = stable.table.tag(name).map(|(_, tag)| tag.kind);
    let column = plan_column(name);
    let value = match (stored, arrow_type(kind)) {
        (Some(TagType::String), DataType::Utf8)
        | (Some(TagType::I64), DataType::Int64)
        | (Some(TagType::Bool), DataType::Boolean) => column,
        (Some(TagType::String), wanted) => try_cast(column, wanted),
        (_, wanted) => cast(column, wanted),
    };
    let Some(ordinal) = stable.ordinal(name) else {
        return Ok(value);
    };
    let mut branches = set
        .iter()
        .filter(|(_, child)| child.tag(ordinal, kind) != stored_tag(child, ordinal, kind))
        .map(|(own, child)| {
            let constant = Expr::Literal(child.tag(ordinal, kind).scalar(kind), None);
            (plan_column(TBNAME).eq(lit(own.as_str())), constant)
        });
    let Some((condition, constant)) = branches.next() else {
        return Ok(value);
    };
    let value = cast(value, arrow_type(kind));
    let mut case = when(condition, constant);
    for (condition, constant) in branches {
        case = case.when(condition, constant);
    }
    Ok(case.otherwise(value)?)
}

fn stored_tag(child: &ChildRecord, ordinal: usize, kind: TaosType) -> crate::taos_value::Val {
    match child.series.get(ordinal) {
        Some(Some(value)) => crate::run::catalog::objects::declared_value(value, kind),
        _ => crate::taos_value::Val::Null,
    }
}

/// The name of the sub-table of a row. Tables of other languages have none: their tags stand for it.
fn tbname_expr(stable: &StableRecord) -> Expr {
    if stable.has_tbname() {
        return plan_column(TBNAME);
    }
    let mut tags = stable.table.tags.iter();
    let Some(first) = tags.next() else {
        return lit(stable.table.name.as_str());
    };
    let text = |name: &str| {
        let text = cast(plan_column(name), DataType::Utf8);
        when(text.clone().is_null(), lit("")).otherwise(text)
    };
    let mut all = text(&first.name).unwrap_or_else(|_| lit(""));
    for tag in tags {
        let next = text(&tag.name).unwrap_or_else(|_| lit(""));
        let joined = Expr::BinaryExpr(datafusion::logical_expr::BinaryExpr::new(
            Box::new(all),
            datafusion::logical_expr::Operator::StringConcat,
            Box::new(lit(",")),
        ));
        all = Expr::BinaryExpr(datafusion::logical_expr::BinaryExpr::new(
            Box::new(joined),
            datafusion::logical_expr::Operator::StringConcat,
            Box::new(next),
        ));
    }
    all
}

/// Two relations side by side.
async fn joined(run: &TaosRun<'_>, join: &TaosJoin) -> SqlResult<Relation> {
    let left = relation_of(run, &join.left).await?;
    let right = relation_of(run, &join.right).await?;
    for column in &left.columns {
        let is_same = right
            .columns
            .iter()
            .any(|other| other.table == column.table);
        if column.table.is_some() && is_same {
            return Err(fault(TaosCode::NotUniqueAlias));
        }
    }
    let (left, right) = (left.renamed("l")?, right.renamed("r")?);
    let mut columns = left.columns.clone();
    columns.extend(right.columns.clone());
    let mut relation = Relation {
        plan: left.plan.clone(),
        columns,
        precision: left.precision,
        is_one_table: false,
    };
    let setting = run.setting(relation.precision);
    let scope = Scope::for_relation(run, &relation, &setting);
    let mut parts: Vec<&TaosExpr> = Vec::new();
    let mut open: Vec<&TaosExpr> = join.condition.iter().collect();
    while let Some(part) = open.pop() {
        match part {
            TaosExpr::All(all) => open.extend(all),
            part => parts.push(part),
        }
    }
    let (mut on, mut filter) = ((Vec::new(), Vec::new()), Vec::new());
    for part in parts {
        match equal_columns(&scope, &left, part)? {
            Some((a, b)) => {
                on.0.push(a);
                on.1.push(b);
            }
            None => filter.push(scope.condition(part)?),
        }
    }
    let kind = match join.kind {
        TaosJoinKind::Inner => JoinType::Inner,
        TaosJoinKind::Left => JoinType::Left,
        TaosJoinKind::Right => JoinType::Right,
        TaosJoinKind::Full => JoinType::Full,
    };
    let filter = filter.into_iter().reduce(Expr::and);
    let rows = builder(left.plan.clone());
    let plan = match (join.condition.is_some(), on.0.is_empty()) {
        // The conditions of WHERE make an inner join of it.
        (false, _) if kind == JoinType::Inner => rows.cross_join(right.plan)?,
        (_, true) => return Err(unsupported("a JOIN without equal columns")),
        _ => rows.join_with_expr_keys(right.plan, kind, on, filter)?,
    };
    relation.plan = renumbered(plan, &mut relation.columns)?;
    // The first time orders the rows; the second one is a column.
    let times = relation.columns.iter_mut();
    let times = times.filter(|column| column.role == RelationColumnRole::Time);
    for time in times.skip(1) {
        time.role = RelationColumnRole::Field;
    }
    Ok(relation)
}

/// Gives the columns of a join new names, so that joins of joins have no name twice.
fn renumbered(
    plan: LogicalPlanBuilder,
    columns: &mut [RelationColumn],
) -> SqlResult<datafusion::logical_expr::LogicalPlan> {
    let mut shown = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter_mut().enumerate() {
        let name = format!("j{place}");
        let expr = std::mem::replace(&mut column.expr, plan_column(&name));
        shown.push(expr.alias(name));
    }
    Ok(plan.project(shown)?.build()?)
}

/// The columns of both sides that a condition makes equal.
fn equal_columns(
    scope: &Scope<'_>,
    left: &Relation,
    part: &TaosExpr,
) -> SqlResult<Option<(Expr, Expr)>> {
    let TaosExpr::Binary {
        operator: TaosOperator::Equal,
        left: a,
        right: b,
    } = part
    else {
        return Ok(None);
    };
    if !is_column(a) || !is_column(b) {
        return Ok(None);
    }
    let (a, b) = (scope.typed(a)?, scope.typed(b)?);
    let is_left = |expr: &Expr| left.columns.iter().any(|column| column.expr == *expr);
    Ok(match (is_left(&a.expr), is_left(&b.expr)) {
        (true, false) => Some((a.expr, b.expr)),
        (false, true) => Some((b.expr, a.expr)),
        _ => None,
    })
}

fn is_column(expr: &TaosExpr) -> bool {
    matches!(expr, TaosExpr::Column { .. })
}

/// A relation with one row and no columns.
pub(crate) fn one_row(run: &TaosRun<'_>) -> SqlResult<Relation> {
    let _ = run;
    let nothing = Expr::Literal(ScalarValue::Boolean(Some(true)), None).alias("one");
    Ok(Relation {
        plan: LogicalPlanBuilder::empty(true)
            .project(vec![nothing])?
            .build()?,
        columns: Vec::new(),
        precision: marigram_tdengine::TaosPrecision::default(),
        is_one_table: true,
    })
}
