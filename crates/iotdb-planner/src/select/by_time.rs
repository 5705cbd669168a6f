//! Queries whose rows have the values of all timeseries at a time.

use super::grouped::GroupedSeries;
use super::{
    KnownNames, compiled_columns, form, is_aggregated, joined_column, level_with_condition,
    patterns, refuse_unknown_clause, time_descends,
};
use crate::aggregate::{
    AggregateGroups, PartialAggregates, aggregated, partial_column, result_of, result_type,
};
use crate::combine::{CombineKey, CombineRequest, CombinedColumn, KEY, NUMBER, combined};
use crate::compile::ExprScope;
use crate::device_rows::{DEVICE, DeviceRows, TIME, column, value_column};
use crate::expand::{ExpandedColumn, aggregates_of, each_path};
use crate::series::{FoundSeries, TreeSeries, device_patterns, find_series};
use crate::statement::{TreeRun, internal, semantic};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, SortExpr, lit};
use datafusion::physical_plan::execute_stream;
use marigram_iotdb::{IotDbType, TreeCall, TreeExpr, TreeSelect, WindowSequence};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A query in which paths are timeseries.
pub(super) struct TimeQuery<'a> {
    pub(super) run: &'a TreeRun<'a>,
    pub(super) query: &'a TreeSelect,
    pub(super) found: &'a FoundSeries,
    pub(super) columns: Vec<ExpandedColumn>,
    /// WHERE without times.
    pub(super) condition: Option<TreeExpr>,
    pub(super) range_ms: (i64, i64),
    pub(super) having: Option<TreeExpr>,
    pub(super) order: Vec<(TreeExpr, bool)>,
    pub(super) windows: Option<WindowSequence>,
    /// The timeseries that are read, by the texts of their paths.
    pub(super) used: BTreeMap<String, &'a TreeSeries>,
    /// The timeseries of GROUP BY LEVEL, by the texts of their paths.
    pub(super) grouped: GroupedSeries<'a>,
}

/// Answers a query.
///
/// # Errors
/// What is wrong with it.
pub(super) async fn answer(run: &TreeRun<'_>, query: &TreeSelect) -> SqlResult<StatementRows> {
    refuse_unknown_clause(query)?;
    let found = find_series(run, &patterns(query)?).await?;
    let bound = TimeQuery::new(run, query, &found)?;
    if bound.columns.is_empty() {
        let has_time = !is_aggregated(query) || query.windows.is_some();
        return Ok(form(query, (has_time, false), Vec::new()).without_rows());
    }
    if is_aggregated(query) {
        return bound.aggregates().await;
    }
    bound.values().await
}

impl TimeQuery<'_> {
    fn rows(&self) -> SqlResult<DeviceRows> {
        let patterns = device_patterns(&patterns(self.query)?);
        let used = self.used.values().copied();
        Ok(DeviceRows::new(used, self.range_ms, patterns))
    }

    /// Where the values of timeseries are in the rows of their devices.
    fn known_values(&self, rows: &DeviceRows) -> KnownNames {
        let mut known = HashMap::new();
        for (path, series) in &self.used {
            if let Some(place) = rows.place(series) {
                known.insert(path.clone(), (column(&value_column(place)), series.kind));
            }
        }
        for (path, (_, series)) in &self.grouped.by_path {
            if let Some(place) = rows.place(series) {
                known.insert(path.clone(), (column(&value_column(place)), series.kind));
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

    /// Rows with the values of all timeseries, and where each value is.
    async fn joined(
        &self,
        state: &SessionState,
        rows: &DeviceRows,
        descends: bool,
    ) -> SqlResult<(LogicalPlanBuilder, KnownNames)> {
        let input = rows.plan_of_all(state, self.found).await?;
        let mut shown = vec![column(TIME).alias(KEY), column(DEVICE)];
        let mut inputs = Vec::new();
        let mut places = HashMap::new();
        let (mut columns, mut known) = (Vec::new(), HashMap::new());
        for (path, series) in &self.used {
            let place = rows
                .place(series)
                .ok_or_else(|| internal("a column is missing"))?;
            let name = value_column(place);
            let place = *places.entry(name.clone()).or_insert_with(|| {
                shown.push(column(&name));
                inputs.push(name.clone());
                inputs.len() - 1
            });
            known.insert(path.clone(), (joined_column(columns.len()), series.kind));
            columns.push(CombinedColumn {
                device: Arc::clone(&series.device.text),
                place,
            });
        }
        let order = vec![
            SortExpr::new(column(KEY), !descends, true),
            SortExpr::new(column(DEVICE), true, true),
        ];
        let plan = input.project(shown)?.sort(order)?.build()?;
        let plan = state.create_physical_plan(&plan).await?;
        let request = CombineRequest {
            key: CombineKey::Time,
            columns,
            inputs,
            by_device: None,
            ascends: !descends,
        };
        let stream = execute_stream(plan, state.task_ctx())?;
        Ok((combined(self.run, request, stream)?, known))
    }

    /// Raw values.
    async fn values(&self) -> SqlResult<StatementRows> {
        let rows = self.rows()?;
        let state = rows.state(self.run, self.found)?;
        let descends = time_descends(self.query);
        let is_single = rows.devices().len() <= 1;
        let (mut plan, known) = if is_single {
            let plan = rows.plan_of_all(&state, self.found).await?;
            (plan, self.known_values(&rows))
        } else {
            self.joined(&state, &rows, descends).await?
        };
        let scope = self.scope(&known);
        if let Some(condition) = &self.condition {
            plan = plan.filter(scope.condition(condition)?)?;
        }
        let (mut shown, fields) = compiled_columns(&scope, &self.columns)?;
        shown.insert(0, column(TIME));
        let plan = self.sorted(plan, shown, &scope)?;
        let form = form(self.query, (true, false), fields);
        form.answer(self.run, &state, plan).await
    }

    /// A plan with these columns in the order of the query.
    fn sorted(
        &self,
        plan: LogicalPlanBuilder,
        shown: Vec<Expr>,
        scope: &ExprScope<'_>,
    ) -> SqlResult<LogicalPlanBuilder> {
        let mut keys = Vec::new();
        let mut has_time = false;
        let (mut shown, mut added) = (shown, 0_usize);
        let count = shown.len();
        for (expr, descends) in &self.order {
            if *expr == TreeExpr::Time {
                has_time = true;
                keys.push(SortExpr::new(column(TIME), !descends, true));
                continue;
            }
            let name = format!("s{added}");
            shown.push(scope.compile(expr)?.expr.alias(&name));
            keys.push(SortExpr::new(column(&name), !descends, false));
            added += 1;
        }
        if !has_time {
            keys.push(SortExpr::new(column(TIME), true, true));
        }
        if self.windows.is_some() {
            // Windows that are cut at their end may show the same time.
            shown.push(column(NUMBER));
            keys.push(SortExpr::new(
                column(NUMBER),
                !time_descends(self.query),
                true,
            ));
        }
        // Rows that follow are not needed, unless something is filled.
        let fetch = self.query.limit.filter(|_| self.query.fill.is_none());
        let fetch = fetch.map(|limit| limit.saturating_add(self.query.offset));
        let fetch = fetch.and_then(|fetch| usize::try_from(fetch).ok());
        let names: Vec<Expr> = shown[..count]
            .iter()
            .map(|expr| column(&expr.schema_name().to_string()))
            .collect();
        let is_wider = shown.len() > count;
        let plan = plan.project(shown)?.sort_with_limit(keys, fetch)?;
        if !is_wider {
            return Ok(plan);
        }
        Ok(plan.project(names)?)
    }

    /// Every aggregate of the query, once.
    fn calls(&self) -> Vec<TreeCall> {
        let columns = self.columns.iter().map(|column| &column.expr);
        let orders = self.order.iter().map(|(expr, _)| expr);
        let mut calls: Vec<TreeCall> = Vec::new();
        for expr in columns.chain(&self.having).chain(orders) {
            for call in aggregates_of(expr) {
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        calls
    }

    /// Aggregates.
    async fn aggregates(&self) -> SqlResult<StatementRows> {
        let rows = self.rows()?;
        let state = rows.state(self.run, self.found)?;
        let calls = self.calls();
        let is_plain = calls
            .iter()
            .all(|call| matches!(call.arguments.as_slice(), [TreeExpr::Path(_)]));
        let is_single = rows.devices().len() <= 1;
        let plans = rows.plans(&state, self.found).await?;
        let is_joined = !is_single && (self.condition.is_some() || !is_plain);
        let is_grouped = !self.query.levels.is_empty();
        if is_joined && is_grouped {
            return Err(level_with_condition());
        }
        let (plans, known) = if is_joined {
            let (plan, known) = self.joined(&state, &rows, false).await?;
            (vec![plan], known)
        } else {
            (plans, self.known_values(&rows))
        };
        let scope = self.scope(&known);
        let mut partials = PartialAggregates::default();
        let mut inputs: Vec<(String, Expr)> = Vec::new();
        let mut results = Vec::new();
        for call in &calls {
            let (function, argument) = function_of(call)?;
            let compiled = scope.compile(argument)?;
            let kind = compiled.kind.unwrap_or(IotDbType::Double);
            let known = inputs.iter().position(|(_, expr)| *expr == compiled.expr);
            let input = known.unwrap_or_else(|| {
                inputs.push((format!("v{}", inputs.len()), compiled.expr.clone()));
                inputs.len() - 1
            });
            let kind = result_type(function, kind)?;
            let places = partials.add(function, &inputs[input].0);
            results.push((call, self.device_of(argument, is_joined), kind, places));
        }
        let mut joined = Vec::new();
        let mut answers: KnownNames = HashMap::new();
        for (call, device, kind, places) in results {
            let (function, _) = function_of(call)?;
            let parts: Vec<Expr> = places
                .into_iter()
                .map(|place| {
                    joined.push(CombinedColumn {
                        device: Arc::clone(&device),
                        place,
                    });
                    joined_column(joined.len() - 1)
                })
                .collect();
            answers.insert(call.to_string(), (result_of(function, &parts)?, kind));
        }
        let descends = time_descends(self.query);
        let mut filtered = Vec::with_capacity(plans.len());
        for mut plan in plans {
            if let Some(condition) = &self.condition {
                plan = plan.filter(scope.condition(condition)?)?;
            }
            if is_joined {
                let mut shown = vec![column(TIME), lit("").alias(DEVICE)];
                let names: HashSet<String> = known.values().map(|it| it.0.to_string()).collect();
                shown.extend(names.iter().map(|name| column(name)));
                plan = plan.project(shown)?;
            }
            filtered.push(plan);
        }
        let groups = AggregateGroups {
            windows: self.windows.as_ref(),
            descends,
            device_first: false,
            device_groups: is_grouped.then_some(&self.grouped.devices),
        };
        let plan = aggregated(&state, filtered, &inputs, &partials, &groups)?;
        let plan = state.create_physical_plan(&plan.build()?).await?;
        let request = CombineRequest {
            key: match &self.windows {
                Some(windows) => CombineKey::Windows {
                    windows: windows.clone(),
                    descends,
                },
                None => CombineKey::Whole,
            },
            columns: joined,
            inputs: (0..partials.len()).map(partial_column).collect(),
            by_device: None,
            ascends: !descends,
        };
        let stream = execute_stream(plan, state.task_ctx())?;
        let plan = combined(self.run, request, stream)?;
        self.results(&state, plan, &answers).await
    }

    /// The device whose rows have the values of an argument.
    fn device_of(&self, argument: &TreeExpr, is_joined: bool) -> Arc<str> {
        let mut device: Arc<str> = "".into();
        if is_joined {
            return device;
        }
        each_path(argument, &mut |path| {
            if let Some((group, _)) = self.grouped.by_path.get(&path.to_string()) {
                device = Arc::clone(group);
            } else if let Some(series) = self.used.get(&path.to_string()) {
                device = Arc::clone(&series.device.text);
            }
        });
        device
    }

    /// The columns of the answer over rows of results.
    async fn results(
        &self,
        state: &SessionState,
        plan: LogicalPlanBuilder,
        answers: &KnownNames,
    ) -> SqlResult<StatementRows> {
        let scope = self.scope(answers);
        let mut plan = plan;
        if let Some(having) = &self.having {
            plan = plan.filter(scope.condition(having)?)?;
        }
        let (mut shown, fields) = compiled_columns(&scope, &self.columns)?;
        let has_time = self.windows.is_some();
        if has_time {
            shown.insert(0, column(TIME));
            plan = self.sorted(plan, shown, &scope)?;
        } else {
            plan = plan.project(shown)?;
        }
        let form = form(self.query, (has_time, false), fields);
        form.answer(self.run, state, plan).await
    }
}

/// The function of a call, and its argument.
fn function_of(call: &TreeCall) -> SqlResult<(marigram_iotdb::TreeAggregate, &TreeExpr)> {
    match (call.aggregate(), call.arguments.as_slice()) {
        (Some(function), [argument]) => Ok((function, argument)),
        _ => Err(semantic(format!(
            "Error size of input expressions. expression: {call}, actual size: {}, expected size: [1].",
            call.arguments.len()
        ))),
    }
}
