//! Passes over values: the functions that fold them, and their expressions.

use super::{Request, Windows, quoted, selector};
use marigram_lab::data::Table;
use marigram_lab::question::{Aggregate, Select};
use std::collections::BTreeSet;

/// The newest value.
pub(in super::super) const LAST: &str = "last_over_time";
/// Its time, seconds.
pub(in super::super) const LAST_TIME: &str = "tlast_over_time";

/// One pass over values.
pub(super) struct Pass {
    /// The function that folds the devices of a group; `None` if every device is a group.
    outer: Option<&'static str>,
    /// The function that folds the values of a device and window.
    rollups: BTreeSet<&'static str>,
    fields: BTreeSet<usize>,
}

/// The functions that fold the values of a device and window, and the devices of a group.
pub(in super::super) fn rollups(
    function: Aggregate,
    one_device: bool,
) -> &'static [(Option<&'static str>, &'static str)] {
    match (function, one_device) {
        (Aggregate::Count, true) => &[(None, "count_over_time")],
        (Aggregate::Count, false) => &[(Some("sum"), "count_over_time")],
        (Aggregate::Sum, true) => &[(None, "sum_over_time")],
        (Aggregate::Sum, false) => &[(Some("sum"), "sum_over_time")],
        (Aggregate::Avg, true) => &[(None, "avg_over_time")],
        (Aggregate::Avg, false) => &[
            (Some("sum"), "sum_over_time"),
            (Some("sum"), "count_over_time"),
        ],
        (Aggregate::Min, true) => &[(None, "min_over_time")],
        (Aggregate::Min, false) => &[(Some("min"), "min_over_time")],
        (Aggregate::Max, true) => &[(None, "max_over_time")],
        (Aggregate::Max, false) => &[(Some("max"), "max_over_time")],
        (Aggregate::Spread, true) => &[(None, "range_over_time")],
        (Aggregate::Spread, false) => &[
            (Some("max"), "max_over_time"),
            (Some("min"), "min_over_time"),
        ],
    }
}

/// The passes for all `aggregates`: one for each way to fold devices.
pub(super) fn passes(
    table: &Table,
    select: &Select,
    aggregates: &[(Aggregate, usize)],
) -> Vec<Pass> {
    let one_device = select.by.contains(&table.key);
    let mut passes: Vec<Pass> = Vec::new();
    for (function, field) in aggregates {
        for (outer, rollup) in rollups(*function, one_device) {
            // Above a limit, each function has its own form.
            let same = |pass: &&mut Pass| {
                pass.outer == *outer && (select.above.is_none() || pass.rollups.contains(rollup))
            };
            match passes.iter_mut().find(same) {
                Some(pass) => {
                    pass.rollups.insert(rollup);
                    pass.fields.insert(*field);
                }
                None => passes.push(Pass {
                    outer: *outer,
                    rollups: BTreeSet::from([*rollup]),
                    fields: BTreeSet::from([*field]),
                }),
            }
        }
    }
    passes
}

impl Pass {
    /// The newest values of `fields` and their times, device by device.
    pub(super) fn last(fields: BTreeSet<usize>) -> Self {
        Self {
            outer: None,
            rollups: BTreeSet::from([LAST, LAST_TIME]),
            fields,
        }
    }

    /// Numbers in an answer for each group and window, if no field is without values.
    pub(super) fn numbers(&self) -> usize {
        self.fields.len() * self.rollups.len()
    }

    /// The request for it over `windows`.
    pub(super) fn query(&self, table: &Table, select: &Select, windows: &Windows) -> Request {
        let only_field = self.fields.first().filter(|_| self.fields.len() == 1);
        let only_rollup = self.rollups.first().filter(|_| self.rollups.len() == 1);
        Request::Query {
            expression: self.expression(table, select, windows.length_ms),
            windows: *windows,
            field: only_field.copied(),
            rollup: only_rollup.copied(),
        }
    }

    /// Its expression, over windows of `length_ms`.
    fn expression(&self, table: &Table, select: &Select, length_ms: i64) -> String {
        let values = format!("{}[{length_ms}ms]", selector(table, select, &self.fields));
        let rollups: Vec<&str> = self.rollups.iter().copied().collect();
        let mut text = match (rollups.as_slice(), select.above) {
            (["count_over_time"], Some((_, limit))) => {
                format!("count_gt_over_time({values},{limit})")
            }
            ([one], _) => format!("{one}({values})"),
            (several, _) => {
                let names: Vec<String> = several.iter().map(|name| quoted(name)).collect();
                format!("aggr_over_time(({}),{values})", names.join(","))
            }
        };
        let several_fields = self.fields.len() > 1;
        if several_fields {
            text += " keep_metric_names";
        }
        if let Some(outer) = self.outer {
            text = format!("{outer}({text})");
            let mut labels: Vec<&str> = select
                .by
                .iter()
                .map(|tag| table.tags[*tag].name.as_str())
                .collect();
            labels.extend(several_fields.then_some("__name__"));
            labels.extend((rollups.len() > 1).then_some("rollup"));
            if !labels.is_empty() {
                text = format!("{text} by ({})", labels.join(","));
            }
        }
        match (rollups.as_slice(), select.above) {
            (["count_over_time"], Some(_)) => text += " > 0",
            (_, Some((_, limit))) => text = format!("{text} > {limit}"),
            (_, None) => {}
        }
        text
    }
}
