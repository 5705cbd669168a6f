//! Queries whose rows belong to one device each: ALIGN BY DEVICE.

use super::{
    KnownNames, column_page, compiled_columns, form, is_aggregated, joined_column, patterns,
    refuse_unknown_clause, time_descends, times_within, windows,
};
use crate::aggregate::{
    AggregateGroups, PartialAggregates, aggregated, partial_column, result_of, result_type,
};
use crate::combine::{CombineKey, CombineRequest, NUMBER, combined};
use crate::compile::ExprScope;
use crate::device_rows::{DEVICE, DeviceRows, TIME, column, value_column};
use crate::expand::{
    ExpandedColumn, SeriesByPath, aggregates_of, bound_condition, each_path, expanded,
};
use crate::series::{FoundSeries, TreeSeries, device_patterns, find_series};
use crate::statement::{TreeRun, fault, semantic};
use crate::time_bounds::split_times;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, SortExpr};
use datafusion::physical_plan::execute_stream;
use marigram_iotdb::{
    IotDbType, PathNode, PathPattern, SortKey, TreeExpr, TreeSelect, WindowSequence, node_text,
};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A query in which paths are measurements.
struct DeviceQuery<'a> {
    run: &'a TreeRun<'a>,
    query: &'a TreeSelect,
    found: &'a FoundSeries,
    columns: Vec<ExpandedColumn>,
    condition: Option<TreeExpr>,
    range_ms: (i64, i64),
    having: Option<TreeExpr>,
    order: Vec<(SortKey, bool)>,
    windows: Option<WindowSequence>,
    /// The timeseries of each measurement that is read.
    used: BTreeMap<String, Vec<&'a TreeSeries>>,
}

/// Answers a query.
///
/// # Errors
/// What is wrong with it.
pub(super) async fn answer(run: &TreeRun<'_>, query: &TreeSelect) -> SqlResult<StatementRows> {
    refuse_unknown_clause(query)?;
    if !query.levels.is_empty() {
        return Err(semantic(
            "GROUP BY LEVEL does not support align by device now.",
        ));
    }
    let found = find_series(run, &patterns(query)?).await?;
    let bound = DeviceQuery::new(run, query, &found)?;
    let has_time = !is_aggregated(query) || query.windows.is_some();
    if bound.columns.is_empty() {
        return Ok(form(query, (has_time, true), Vec::new()).without_rows());
    }
    if is_aggregated(query) {
        return bound.aggregates().await;
    }
    bound.values().await
}

/// The path of a measurement alone.
fn measurement_path(name: &str) -> SqlResult<TreeExpr> {
    let node = PathNode::Name(name.to_owned());
    let path = PathPattern::from_nodes(vec![node]).map_err(fault)?;
    Ok(TreeExpr::Path(path))
}

impl<'a> DeviceQuery<'a> {
    fn new(
        run: &'a TreeRun<'a>,
        query: &'a TreeSelect,
        found: &'a FoundSeries,
    ) -> SqlResult<DeviceQuery<'a>> {
        let by_path = SeriesByPath::new(found, &query.from);
        let mut choose = |path: &PathPattern| -> SqlResult<Vec<TreeExpr>> {
            if path.nodes().len() > 1 && !path.is_absolute() {
                return Err(semantic(
                    "ALIGN BY DEVICE: the suffix paths can only be measurement or one-level wildcard",
                ));
            }
            let mut names: Vec<&str> = Vec::new();
            let mut seen = HashSet::new();
            for series in by_path.matched(path)? {
                if seen.insert(&*series.measurement) {
                    names.push(&series.measurement);
                }
            }
            names.sort_unstable();
            names.into_iter().map(measurement_path).collect()
        };
        let mut columns: Vec<ExpandedColumn> = Vec::new();
        for column in &query.columns {
            for expr in expanded(run, &column.expr, &mut choose)? {
                let name = column.alias.clone().unwrap_or_else(|| expr.to_string());
                columns.push(ExpandedColumn { name, expr });
            }
        }
        let columns = column_page(query, columns);
        let mut bound = |expr: &TreeExpr| bound_condition(run, expr, &mut choose);
        let condition = query.condition.as_ref().map(&mut bound).transpose()?;
        let (range, condition) = match &condition {
            Some(condition) => split_times(condition),
            None => ((i64::MIN, i64::MAX), None),
        };
        let having = query.having.as_ref().map(&mut bound).transpose()?;
        let mut order = Vec::new();
        for (key, descends) in &query.order {
            let key = match key {
                SortKey::Value(expr) => SortKey::Value(bound(expr)?),
                key => key.clone(),
            };
            order.push((key, *descends));
        }
        let windows = windows(run, query);
        let mut new = Self {
            run,
            query,
            found,
            columns,
            condition,
            range_ms: times_within(windows.as_ref(), range),
            having,
            order,
            windows,
            used: BTreeMap::new(),
        };
        new.use_series();
        new.check_types()?;
        Ok(new)
    }

    fn use_series(&mut self) {
        let mut names = HashSet::new();
        let columns = self.columns.iter().map(|column| &column.expr);
        let others = self.condition.iter().chain(&self.having);
        let orders = self.order.iter().filter_map(|(key, _)| match key {
            SortKey::Value(expr) => Some(expr),
            _ => None,
        });
        for expr in columns.chain(others).chain(orders) {
            each_path(expr, &mut |path| {
                names.insert(path.to_string());
            });
        }
        for series in &self.found.series {
            let name = node_text(&series.measurement);
            if names.contains(&name) {
                self.used.entry(name).or_default().push(series);
            }
        }
    }

    /// A column has one type, whatever the device.
    fn check_types(&self) -> SqlResult<()> {
        for (name, series) in &self.used {
            let mut kinds = series.iter().map(|series| series.kind.stored());
            let first = kinds.next();
            if kinds.any(|kind| Some(kind) != first) {
                return Err(semantic(format!(
                    "ALIGN BY DEVICE: the data types of the same measurement column should be the same \
                     across devices: {name}."
                )));
            }
        }
        Ok(())
    }

    fn rows(&self) -> SqlResult<DeviceRows> {
        let patterns = device_patterns(&patterns(self.query)?);
        let used = self.used.values().flatten().copied();
        Ok(DeviceRows::new(used, self.range_ms, patterns))
    }

    fn known_values(&self, rows: &DeviceRows) -> KnownNames {
        let mut known = HashMap::new();
        for (name, series) in &self.used {
            if let Some(first) = series.first()
                && let Some(place) = rows.place(first)
            {
                known.insert(name.clone(), (column(&value_column(place)), first.kind));
            }
        }
        known
    }

    fn scope<'s>(&'s self, known: &'s KnownNames) -> ExprScope<'s> {
        ExprScope {
            time: Some(column(TIME)),
            known,
            times: &self.run.times,
        }
    }

    async fn values(&self) -> SqlResult<StatementRows> {
        let rows = self.rows()?;
        let state = rows.state(self.run, self.found)?;
        let known = self.known_values(&rows);
        let scope = self.scope(&known);
        let (mut shown, fields) = compiled_columns(&scope, &self.columns)?;
        let form = form(self.query, (true, true), fields);
        let mut plan = rows.plan_of_all(&state, self.found).await?;
        if let Some(condition) = &self.condition {
            plan = plan.filter(scope.condition(condition)?)?;
        }
        shown.insert(0, column(DEVICE));
        shown.insert(0, column(TIME));
        let plan = self.sorted(plan, shown, &scope, true)?;
        form.answer(self.run, &state, plan).await
    }

    /// A plan with these columns in the order of the query: by device and time unless it says otherwise.
    fn sorted(
        &self,
        plan: LogicalPlanBuilder,
        shown: Vec<Expr>,
        scope: &ExprScope<'_>,
        has_time: bool,
    ) -> SqlResult<LogicalPlanBuilder> {
        let mut shown = shown;
        let count = shown.len();
        let mut keys = Vec::new();
        let (mut by_time, mut by_device, mut added) = (false, false, 0_usize);
        for (key, descends) in &self.order {
            match key {
                SortKey::Time if has_time => {
                    by_time = true;
                    keys.push(SortExpr::new(column(TIME), !descends, true));
                }
                SortKey::Device => {
                    by_device = true;
                    keys.push(SortExpr::new(column(DEVICE), !descends, true));
                }
                SortKey::Value(expr) => {
                    let name = format!("s{added}");
                    shown.push(scope.compile(expr)?.expr.alias(&name));
                    keys.push(SortExpr::new(column(&name), !descends, false));
                    added += 1;
                }
                SortKey::Time | SortKey::Timeseries => {}
            }
        }
        if !by_device {
            let device = SortExpr::new(column(DEVICE), true, true);
            keys.push(device);
        }
        if has_time && !by_time {
            keys.push(SortExpr::new(column(TIME), true, true));
        }
        if self.windows.is_some() {
            shown.push(column(NUMBER));
            keys.push(SortExpr::new(
                column(NUMBER),
                !time_descends(self.query),
                true,
            ));
        }
        let names: Vec<Expr> = shown[..count]
            .iter()
            .map(|expr| column(&expr.schema_name().to_string()))
            .collect();
        let fetch = self.query.limit.filter(|_| self.query.fill.is_none());
        let fetch = fetch.map(|limit| limit.saturating_add(self.query.offset));
        let fetch = fetch.and_then(|fetch| usize::try_from(fetch).ok());
        let is_wider = shown.len() > count;
        let plan = plan.project(shown)?.sort_with_limit(keys, fetch)?;
        if !is_wider {
            return Ok(plan);
        }
        Ok(plan.project(names)?)
    }

    async fn aggregates(&self) -> SqlResult<StatementRows> {
        let rows = self.rows()?;
        let state = rows.state(self.run, self.found)?;
        let known = self.known_values(&rows);
        let scope = self.scope(&known);
        let mut calls = Vec::new();
        let columns = self.columns.iter().map(|column| &column.expr);
        let orders = self.order.iter().filter_map(|(key, _)| match key {
            SortKey::Value(expr) => Some(expr),
            _ => None,
        });
        for expr in columns.chain(&self.having).chain(orders) {
            for call in aggregates_of(expr) {
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        let mut partials = PartialAggregates::default();
        let mut inputs: Vec<(String, Expr)> = Vec::new();
        let mut answers: KnownNames = HashMap::new();
        for call in &calls {
            let (Some(function), [argument]) = (call.aggregate(), call.arguments.as_slice()) else {
                return Err(semantic(format!(
                    "Error size of input expressions. expression: {call}, expected size: [1]."
                )));
            };
            let compiled = scope.compile(argument)?;
            let kind = result_type(function, compiled.kind.unwrap_or(IotDbType::Double))?;
            let known = inputs.iter().position(|(_, expr)| *expr == compiled.expr);
            let input = known.unwrap_or_else(|| {
                inputs.push((format!("v{}", inputs.len()), compiled.expr.clone()));
                inputs.len() - 1
            });
            let places = partials.add(function, &inputs[input].0);
            let parts: Vec<Expr> = places.into_iter().map(joined_column).collect();
            answers.insert(call.to_string(), (result_of(function, &parts)?, kind));
        }
        let plans = rows.plans(&state, self.found).await?;
        let scope_of_answers = self.scope(&answers);
        let (mut shown, fields) = compiled_columns(&scope_of_answers, &self.columns)?;
        let has_time = self.windows.is_some();
        let form = form(self.query, (has_time, true), fields);
        let mut filtered = Vec::with_capacity(plans.len());
        for mut plan in plans {
            if let Some(condition) = &self.condition {
                plan = plan.filter(scope.condition(condition)?)?;
            }
            filtered.push(plan);
        }
        let descends = time_descends(self.query);
        let groups = AggregateGroups {
            windows: self.windows.as_ref(),
            descends,
            device_first: true,
            device_groups: None,
        };
        let plan = aggregated(&state, filtered, &inputs, &partials, &groups)?;
        let plan = state.create_physical_plan(&plan.build()?).await?;
        let key = match &self.windows {
            Some(windows) => CombineKey::Windows {
                windows: windows.clone(),
                descends,
            },
            None => CombineKey::Whole,
        };
        let request = CombineRequest {
            key,
            columns: Vec::new(),
            inputs: (0..partials.len()).map(partial_column).collect(),
            by_device: Some(rows.devices()),
            ascends: !descends,
        };
        let stream = execute_stream(plan, state.task_ctx())?;
        let mut plan = combined(self.run, request, stream)?;
        if let Some(having) = &self.having {
            plan = plan.filter(scope_of_answers.condition(having)?)?;
        }
        shown.insert(0, column(DEVICE));
        if has_time {
            shown.insert(0, column(TIME));
        }
        let plan = self.sorted(plan, shown, &scope_of_answers, has_time)?;
        form.answer(self.run, &state, plan).await
    }
}
