//! Replaces the paths of a query by timeseries.

use super::by_time::TimeQuery;
use super::grouped::GroupedSeries;
use super::{column_page, expr_text, times_within, windows};
use crate::expand::{ExpandedColumn, SeriesByPath, bound_condition, each_path, expanded};
use crate::series::{FoundSeries, TreeSeries};
use crate::statement::{TreeRun, semantic};
use crate::time_bounds::split_times;
use marigram_iotdb::{PathPattern, SortKey, TreeExpr, TreeSelect, node_text};
use marigram_sql::SqlResult;
use std::collections::{BTreeMap, HashSet};

fn path_of(series: &TreeSeries) -> TreeExpr {
    let path = series.device.path.child(&series.measurement);
    TreeExpr::Path(PathPattern::for_path(&path))
}

impl<'a> TimeQuery<'a> {
    /// Replaces the paths of a query by timeseries.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(
        run: &'a TreeRun<'a>,
        query: &'a TreeSelect,
        found: &'a FoundSeries,
    ) -> SqlResult<TimeQuery<'a>> {
        let by_path = SeriesByPath::new(found, &query.from);
        let choose = |path: &PathPattern| -> SqlResult<Vec<TreeExpr>> {
            let matched = by_path.matched(path)?;
            Ok(matched.into_iter().map(path_of).collect())
        };
        let mut grouped = GroupedSeries::default();
        let levels = query.levels.as_slice();
        let mut choose_result = |path: &PathPattern| -> SqlResult<Vec<TreeExpr>> {
            if levels.is_empty() {
                return choose(path);
            }
            grouped.add(by_path.matched(path)?, levels)
        };
        let mut columns = Vec::new();
        for column in &query.columns {
            let all = expanded(run, &column.expr, &mut choose_result)?;
            if column.alias.is_some() && all.len() > 1 {
                let alias = column.alias.as_deref().unwrap_or_default();
                return Err(semantic(format!(
                    "alias '{alias}' can only be matched with one time series"
                )));
            }
            columns.extend(all.into_iter().map(|expr| ExpandedColumn {
                name: expr_text(&expr, column.alias.as_ref()),
                expr,
            }));
        }
        let columns = column_page(query, columns);
        let condition = query.condition.as_ref();
        let condition = condition.map(|expr| bound_condition(run, expr, &mut { choose }));
        let condition = condition.transpose()?;
        let (range, condition) = match &condition {
            Some(condition) => split_times(condition),
            None => ((i64::MIN, i64::MAX), None),
        };
        let mut bound = |expr: &TreeExpr| bound_condition(run, expr, &mut choose_result);
        let having = query.having.as_ref().map(&mut bound).transpose()?;
        let mut order = Vec::new();
        for (key, descends) in &query.order {
            match key {
                SortKey::Time => order.push((TreeExpr::Time, *descends)),
                SortKey::Value(expr) => order.push((bound(expr)?, *descends)),
                SortKey::Device | SortKey::Timeseries => {}
            }
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
            grouped,
        };
        new.use_series();
        Ok(new)
    }

    /// Notes which timeseries the expressions have.
    fn use_series(&mut self) {
        let mut names = HashSet::new();
        let columns = self.columns.iter().map(|column| &column.expr);
        let others = self.condition.iter().chain(&self.having);
        let orders = self.order.iter().map(|(expr, _)| expr);
        for expr in columns.chain(others).chain(orders) {
            each_path(expr, &mut |path| {
                names.insert(path.to_string());
            });
        }
        for series in &self.found.series {
            let path = series.path();
            let group = self.grouped.devices.get(&series.device.text);
            let is_grouped = group.is_some_and(|group| {
                names.contains(&format!("{group}.{}", node_text(&series.measurement)))
            });
            if is_grouped || names.contains(&path) {
                self.used.insert(path, series);
            }
        }
    }
}
