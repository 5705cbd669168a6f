//! SELECT with functions of many rows: plans the stage that computes them.

pub(crate) mod fast_groups;
pub(crate) mod window_clause;

use crate::aggregate::planned;
use crate::call_class::{class, selects_row};
use crate::expression::{ComputedExpr, Scope, Typed};
use crate::moments::Times;
use crate::planned_call::PlannedCall;
use crate::query::number_of;
use crate::query::select::Item;
use crate::query::select::grouping::fast_groups::{can_aggregate, fast_groups};
use crate::query::select::grouping::window_clause::{fill_with, mode};
use crate::relation::{Relation, RelationColumn, RelationColumnRole, builder, plan_column};
use crate::run::{TaosRun, fault, fault_about, unsupported};
use crate::stage::{StageMode, StageSpec, TaosFillSpec, TaosFillWith, filled, staged};
use crate::taos_value::Val;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosCall, TaosExpr, TaosSelect, TaosWindow};
use marigram_tdengine::{TaosCode, TaosType, TimeSetting};
use std::sync::Arc;

/// A SELECT with functions of many rows.
pub(crate) struct Grouped<'a> {
    pub(crate) select: &'a TaosSelect,
    pub(crate) items: &'a [Item],
    /// Everything that is computed from the rows of the stage.
    pub(crate) exprs: &'a [&'a TaosExpr],
    pub(crate) calls: &'a [&'a TaosCall],
    /// The times of WHERE.
    pub(crate) times: Times,
    pub(crate) setting: &'a TimeSetting,
}

/// The parts of the input of a stage.
pub(crate) struct StageInput {
    /// The keys of partitions, as they are written and computed.
    pub(crate) keys: Vec<(TaosExpr, Typed)>,
    /// The time.
    pub(crate) time: Option<Expr>,
    /// The calls.
    pub(crate) calls: Vec<PlannedCall>,
    /// Columns of the row that a call selects.
    pub(crate) carried: Vec<(TaosExpr, Typed)>,
    /// Columns that the window needs.
    extra: Vec<Expr>,
}

/// The rows of the stage, what is known of them, and the keys.
pub(crate) async fn grouped(
    run: &TaosRun<'_>,
    source: Relation,
    of: &Grouped<'_>,
) -> SqlResult<(Relation, Vec<ComputedExpr>, Vec<TaosExpr>)> {
    let select = of.select;
    if select.window.is_some() && !select.group_by.is_empty() {
        return Err(fault(TaosCode::GroupByWithWindow));
    }
    let (mode, input) = {
        let scope = Scope::for_relation(run, &source, of.setting);
        let mode = mode(&scope, of)?;
        let input = stage_input(&scope, &source, of, &mode)?;
        (mode, input)
    };
    let needs_time = !matches!(mode, StageMode::Whole);
    if needs_time && input.time.is_none() {
        return Err(fault_about(
            TaosCode::InvalidColumn,
            "a primary timestamp column",
        ));
    }
    let state = run.state(run.current_database())?;
    let answers_nothing = input.keys.is_empty()
        && matches!(mode, StageMode::Whole)
        && of
            .calls
            .iter()
            .any(|call| matches!(call.name.as_str(), "count" | "hyperloglog"));
    let kinds = kinds(&input);
    let mut plan = if can_aggregate(&input, &mode) {
        fast_groups(&state, &source, &input, &mode, answers_nothing)?
    } else {
        let spec = StageSpec {
            keys: input.keys.iter().map(|(_, key)| key.kind).collect(),
            calls: input.calls.clone(),
            carried: input.carried.iter().map(|(_, typed)| typed.kind).collect(),
            selector: selector(&input),
            mode: mode.clone(),
            answers_nothing,
            tick_ns: of.setting.precision.tick_ns(),
        };
        let plan = input_plan(source.plan.clone(), &input)?;
        staged(&state, plan, spec, &run.budget).await?
    };
    if let (Some(fill), StageMode::Interval(windows)) = (&select.fill, &mode) {
        let (with, is_forced) = fill_with(fill, of)?;
        if with != TaosFillWith::None {
            let spec = TaosFillSpec {
                windows: windows.clone(),
                times: of.times,
                with,
                is_forced,
                keys: input.keys.len(),
                kinds,
            };
            plan = filled(&state, plan, spec, &run.budget).await?;
        }
    } else if select.fill.is_some() && !matches!(mode, StageMode::Interpolation(_)) {
        return Err(fault(TaosCode::FillNotAllowed));
    }
    let known = known(&input, &mode, of);
    let keys = input.keys.iter().map(|(key, _)| key.clone()).collect();
    Ok((output(plan, &input, &mode, &source), known, keys))
}

/// The types of the columns of a stage.
fn kinds(input: &StageInput) -> Vec<TaosType> {
    let keys = input.keys.iter().map(|(_, key)| key.kind);
    let times = [TaosType::Timestamp, TaosType::Timestamp];
    let calls = input.calls.iter().map(|call| call.kind);
    let carried = input.carried.iter().map(|(_, typed)| typed.kind);
    keys.chain(times).chain(calls).chain(carried).collect()
}

/// The keys of PARTITION BY and GROUP BY.
fn keys(scope: &Scope<'_>, of: &Grouped<'_>) -> SqlResult<Vec<(TaosExpr, Typed)>> {
    let mut keys = Vec::new();
    for part in &of.select.partition_by {
        keys.push((part.expr.clone(), scope.typed(&part.expr)?));
    }
    for part in &of.select.group_by {
        let mut expr = match number_of(part, of.items.len())? {
            Some(place) => of.items[place].expr.clone(),
            None => part.clone(),
        };
        if let TaosExpr::Column { table: None, name } = &expr
            && scope.typed(&expr).is_err()
            && let Some(item) = of.items.iter().find(|item| item.name == *name)
        {
            expr = item.expr.clone();
        }
        let typed = scope.typed(&expr)?;
        if !keys.iter().any(|(key, _)| *key == expr) {
            keys.push((expr, typed));
        }
    }
    Ok(keys)
}

/// Names that a stage gives.
const STAGE_NAMES: [&str; 9] = [
    "_wstart",
    "_wend",
    "_wduration",
    "_qstart",
    "_qend",
    "_qduration",
    "_irowts",
    "_isfilled",
    "_irowts_origin",
];

fn stage_input(
    scope: &Scope<'_>,
    source: &Relation,
    of: &Grouped<'_>,
    mode: &StageMode,
) -> SqlResult<StageInput> {
    let keys = keys(scope, of)?;
    let mut calls = Vec::with_capacity(of.calls.len());
    for call in of.calls {
        calls.push(planned(scope, call)?);
    }
    let mut carried: Vec<(TaosExpr, Typed)> = Vec::new();
    for expr in of.exprs {
        carried_columns(scope, expr, &keys, &mut carried)?;
    }
    let mut extra = Vec::new();
    match &of.select.window {
        Some(TaosWindow::State(state)) => {
            let state = scope.typed(state)?;
            let fits =
                state.kind.is_integer() || state.kind.is_text() || state.kind == TaosType::Bool;
            if !fits {
                return Err(fault(TaosCode::InvalidState));
            }
            extra.push(state.expr);
        }
        Some(TaosWindow::Event { start, end }) => {
            extra.push(scope.condition(start)?);
            extra.push(scope.condition(end)?);
        }
        _ => {}
    }
    let input = StageInput {
        keys,
        time: source.time().map(|time| time.expr.clone()),
        calls,
        carried,
        extra,
    };
    let is_row_mode = matches!(mode, StageMode::Rows);
    if !input.carried.is_empty() && !is_row_mode && selector(&input).is_none() {
        let is_constant = |expr: &TaosExpr| match expr {
            TaosExpr::Column { table, name } => {
                source.column(table.as_deref(), name).is_ok_and(|column| {
                    matches!(
                        column.role,
                        RelationColumnRole::Tag | RelationColumnRole::Hidden
                    )
                })
            }
            _ => false,
        };
        let are_tags = input.carried.iter().all(|(expr, _)| is_constant(expr));
        let is_shared = source.is_one_table && are_tags;
        if !is_shared && !matches!(mode, StageMode::State) {
            return Err(fault(TaosCode::NotSingleGroup));
        }
    }
    if matches!(mode, StageMode::Interpolation(_)) && !input.carried.is_empty() {
        return Err(unsupported("columns beside INTERP"));
    }
    Ok(input)
}

/// The call whose row the carried columns are taken from.
fn selector(input: &StageInput) -> Option<usize> {
    let mut calls = input.calls.iter();
    calls.position(|call| selects_row(&call.name))
}

/// Collects the columns that stand outside of calls and keys.
fn carried_columns(
    scope: &Scope<'_>,
    expr: &TaosExpr,
    keys: &[(TaosExpr, Typed)],
    carried: &mut Vec<(TaosExpr, Typed)>,
) -> SqlResult<()> {
    if keys.iter().any(|(key, _)| key == expr) {
        return Ok(());
    }
    match expr {
        TaosExpr::Call(call) if class(&call.name).is_some() => {}
        TaosExpr::Column { table, name } => {
            let is_stage = table.is_none() && STAGE_NAMES.contains(&name.as_str());
            if !is_stage && !carried.iter().any(|(other, _)| other == expr) {
                let typed = scope.typed(expr)?;
                // The same column may be written with its table in one place.
                let is_key = keys.iter().any(|(_, key)| key.expr == typed.expr);
                if !is_key {
                    carried.push((expr.clone(), typed));
                }
            }
        }
        _ => {
            for child in expr.children() {
                carried_columns(scope, child, keys, carried)?;
            }
        }
    }
    Ok(())
}

/// The input of a stage: keys, time, arguments, carried and extra columns, called `i0`….
fn input_plan(plan: LogicalPlan, input: &StageInput) -> SqlResult<LogicalPlan> {
    let nothing = Expr::Literal(ScalarValue::TimestampNanosecond(Some(0), None), None);
    let keys = input.keys.iter().map(|(_, key)| key.expr.clone());
    let time = input.time.clone().unwrap_or(nothing);
    let arguments = input.calls.iter().flat_map(|call| &call.arguments);
    let arguments = arguments.map(|typed| typed.expr.clone());
    let carried = input.carried.iter().map(|(_, typed)| typed.expr.clone());
    let all = keys.chain([time]).chain(arguments).chain(carried);
    let all = all.chain(input.extra.iter().cloned()).enumerate();
    let shown = all.map(|(place, expr)| expr.alias(format!("i{place}")));
    Ok(builder(plan).project(shown.collect::<Vec<_>>())?.build()?)
}

/// What the columns of the stage are in the statement.
fn known(input: &StageInput, mode: &StageMode, of: &Grouped<'_>) -> Vec<ComputedExpr> {
    let at = |name: String, kind: TaosType| Typed {
        expr: plan_column(&name),
        kind,
    };
    let mut known = Vec::new();
    let mut add = |taos: TaosExpr, typed: Typed| known.push(ComputedExpr { taos, typed });
    for (place, (key, typed)) in input.keys.iter().enumerate() {
        let column = at(format!("k{place}"), typed.kind);
        if let Some(alias) = of
            .select
            .partition_by
            .get(place)
            .and_then(|part| part.alias.as_ref())
        {
            add(TaosExpr::column(alias), column.clone());
        }
        // The same column under its other names.
        for expr in of.exprs {
            same_columns(expr, key, &mut |other| add(other.clone(), column.clone()));
        }
        add(key.clone(), column);
    }
    for (place, call) in of.calls.iter().enumerate() {
        let column = at(format!("a{place}"), input.calls[place].kind);
        add(TaosExpr::Call((*call).clone()), column);
    }
    for (place, (expr, typed)) in input.carried.iter().enumerate() {
        add(expr.clone(), at(format!("c{place}"), typed.kind));
    }
    let time = |name: &str| at(name.to_owned(), TaosType::Timestamp);
    let is_window = !matches!(mode, StageMode::Whole | StageMode::Rows);
    if is_window {
        add(TaosExpr::column("_wstart"), time("ws"));
        add(TaosExpr::column("_wend"), time("we"));
        let tick = of.setting.precision.tick_ns();
        let length = crate::expression::scalar_function::row_function(
            "taos_duration",
            vec![time("we"), time("ws")],
            TaosType::BigInt,
            tick.to_string(),
            Arc::new(move |values: &[Val]| {
                let ends = values[0].integer().zip(values[1].integer());
                ends.map_or(Val::Null, |(end, start)| Val::Int((end - start) / tick))
            }),
        );
        add(TaosExpr::column("_wduration"), length);
    }
    if matches!(mode, StageMode::Interpolation(_)) {
        add(TaosExpr::column("_irowts"), time("ws"));
    }
    let constant = |at: i64| {
        let value = Val::Time(at);
        crate::expression::constant(&value, TaosType::Timestamp)
    };
    add(TaosExpr::column("_qstart"), constant(of.times.min));
    add(TaosExpr::column("_qend"), constant(of.times.max));
    known
}

/// Finds the columns of an expression that are a key with or without the name of its table.
fn same_columns(expr: &TaosExpr, key: &TaosExpr, found: &mut impl FnMut(&TaosExpr)) {
    match (expr, key) {
        (
            TaosExpr::Column { table, name },
            TaosExpr::Column {
                table: key_table,
                name: key_name,
            },
        ) => {
            let is_same = name == key_name && table != key_table;
            if is_same && (table.is_none() || key_table.is_none()) {
                found(expr);
            }
        }
        (TaosExpr::Call(call), _) if class(&call.name).is_some() => {}
        _ => {
            for child in expr.children() {
                same_columns(child, key, found);
            }
        }
    }
}

/// The rows of the stage as a relation. Its columns only order the rows: names that nobody can write.
fn output(plan: LogicalPlan, input: &StageInput, mode: &StageMode, source: &Relation) -> Relation {
    let column = |name: String| RelationColumn {
        table: None,
        name: format!("\u{1}{name}"),
        kind: TaosType::Null,
        expr: plan_column(&name),
        role: RelationColumnRole::Hidden,
    };
    let keys = (0..input.keys.len()).map(|place| column(format!("k{place}")));
    let time = (!matches!(mode, StageMode::Whole)).then(|| column("ws".to_owned()));
    Relation {
        plan,
        columns: keys.chain(time).collect(),
        precision: source.precision,
        is_one_table: source.is_one_table,
    }
}
