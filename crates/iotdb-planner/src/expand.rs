//! Replaces the paths of a query by the timeseries that they match.

use crate::series::{FoundSeries, TreeSeries};
use crate::statement::{TreeRun, fault, semantic};
use marigram_iotdb::{PathNode, PathPattern, TreeCall, TreeExpr, TreeLiteral, TreePath};
use marigram_sql::SqlResult;
use std::collections::HashMap;

/// The most expressions that one may become.
const EXPANDED_MAX: usize = 100_000;

/// Bytes that an expression holds, roughly, beside its text.
const EXPRESSION_BYTES: usize = 256;

/// Calls `visit` with every path of an expression.
pub(crate) fn each_path(expr: &TreeExpr, visit: &mut dyn FnMut(&PathPattern)) {
    each_part(expr, &mut |part| {
        if let TreeExpr::Path(path) = part {
            visit(path);
        }
    });
}

/// Calls `visit` with an expression and every part of it.
pub(crate) fn each_part(expr: &TreeExpr, visit: &mut dyn FnMut(&TreeExpr)) {
    visit(expr);
    match expr {
        TreeExpr::Time | TreeExpr::Path(_) | TreeExpr::Literal(_) => {}
        TreeExpr::Negate(one)
        | TreeExpr::Not(one)
        | TreeExpr::In(one, _)
        | TreeExpr::IsNull(one)
        | TreeExpr::Like(one, _)
        | TreeExpr::Regexp(one, _) => each_part(one, visit),
        TreeExpr::Arithmetic(a, _, b) | TreeExpr::Compare(a, _, b) => {
            each_part(a, visit);
            each_part(b, visit);
        }
        TreeExpr::Between(a, b, c) => {
            each_part(a, visit);
            each_part(b, visit);
            each_part(c, visit);
        }
        TreeExpr::And(all) | TreeExpr::Or(all) => {
            for one in all {
                each_part(one, visit);
            }
        }
        TreeExpr::Call(call) => {
            for one in &call.arguments {
                each_part(one, visit);
            }
        }
    }
}

/// Whether an expression has an aggregate function.
pub(crate) fn has_aggregate(expr: &TreeExpr) -> bool {
    let mut found = false;
    each_part(expr, &mut |part| {
        found |= matches!(part, TreeExpr::Call(call) if call.aggregate().is_some());
    });
    found
}

/// Every aggregate function in an expression.
pub(crate) fn aggregates_of(expr: &TreeExpr) -> Vec<TreeCall> {
    let mut found = Vec::new();
    each_part(expr, &mut |part| {
        if let TreeExpr::Call(call) = part
            && call.aggregate().is_some()
        {
            found.push(call.clone());
        }
    });
    found
}

/// Whether an expression has a timeseries outside of aggregate functions.
pub(crate) fn has_raw_path(expr: &TreeExpr) -> bool {
    match expr {
        TreeExpr::Path(_) => true,
        TreeExpr::Call(call) if call.aggregate().is_some() => false,
        TreeExpr::Time | TreeExpr::Literal(_) => false,
        TreeExpr::Negate(one)
        | TreeExpr::Not(one)
        | TreeExpr::In(one, _)
        | TreeExpr::IsNull(one)
        | TreeExpr::Like(one, _)
        | TreeExpr::Regexp(one, _) => has_raw_path(one),
        TreeExpr::Arithmetic(a, _, b) | TreeExpr::Compare(a, _, b) => {
            has_raw_path(a) || has_raw_path(b)
        }
        TreeExpr::Between(a, b, c) => has_raw_path(a) || has_raw_path(b) || has_raw_path(c),
        TreeExpr::And(all) | TreeExpr::Or(all) => all.iter().any(has_raw_path),
        TreeExpr::Call(call) => call.arguments.iter().any(has_raw_path),
    }
}

/// What each path becomes.
type PathChoice<'a> = dyn FnMut(&PathPattern) -> SqlResult<Vec<TreeExpr>> + 'a;

/// Every expression that one becomes if each of its paths becomes each of its choices: the choices of the
/// last path change first.
///
/// # Errors
/// If there are too many.
pub(crate) fn expanded(
    run: &TreeRun<'_>,
    expr: &TreeExpr,
    choose: &mut PathChoice<'_>,
) -> SqlResult<Vec<TreeExpr>> {
    let mut one =
        |inner: &TreeExpr, wrap: &dyn Fn(Box<TreeExpr>) -> TreeExpr| -> SqlResult<Vec<TreeExpr>> {
            let inner = expanded(run, inner, choose)?;
            Ok(inner.into_iter().map(|it| wrap(Box::new(it))).collect())
        };
    match expr {
        TreeExpr::Time | TreeExpr::Literal(_) => Ok(vec![expr.clone()]),
        TreeExpr::Path(path) => choose(path),
        TreeExpr::Negate(inner) => one(inner, &TreeExpr::Negate),
        TreeExpr::Not(inner) => one(inner, &TreeExpr::Not),
        TreeExpr::IsNull(inner) => one(inner, &TreeExpr::IsNull),
        TreeExpr::In(inner, values) => one(inner, &|it| TreeExpr::In(it, values.clone())),
        TreeExpr::Like(inner, pattern) => one(inner, &|it| TreeExpr::Like(it, pattern.clone())),
        TreeExpr::Regexp(inner, pattern) => one(inner, &|it| TreeExpr::Regexp(it, pattern.clone())),
        TreeExpr::Arithmetic(a, operator, b) => {
            let build = |mut parts: Vec<TreeExpr>| {
                let (b, a) = (parts.pop()?, parts.pop()?);
                Some(TreeExpr::Arithmetic(Box::new(a), *operator, Box::new(b)))
            };
            products(run, &[a, b], choose, &build)
        }
        TreeExpr::Compare(a, comparison, b) => {
            let build = |mut parts: Vec<TreeExpr>| {
                let (b, a) = (parts.pop()?, parts.pop()?);
                Some(TreeExpr::Compare(Box::new(a), *comparison, Box::new(b)))
            };
            products(run, &[a, b], choose, &build)
        }
        TreeExpr::Between(a, b, c) => {
            let build = |mut parts: Vec<TreeExpr>| {
                let (c, b, a) = (parts.pop()?, parts.pop()?, parts.pop()?);
                Some(TreeExpr::Between(Box::new(a), Box::new(b), Box::new(c)))
            };
            products(run, &[a, b, c], choose, &build)
        }
        TreeExpr::And(all) => {
            let all: Vec<&TreeExpr> = all.iter().collect();
            products(run, &all, choose, &|parts| Some(TreeExpr::And(parts)))
        }
        TreeExpr::Or(all) => {
            let all: Vec<&TreeExpr> = all.iter().collect();
            products(run, &all, choose, &|parts| Some(TreeExpr::Or(parts)))
        }
        TreeExpr::Call(call) => {
            let all: Vec<&TreeExpr> = call.arguments.iter().collect();
            products(run, &all, choose, &|arguments| {
                Some(TreeExpr::Call(TreeCall {
                    arguments,
                    ..call.clone()
                }))
            })
        }
    }
}

/// The expressions of all combinations of what the parts become.
fn products(
    run: &TreeRun<'_>,
    parts: &[&TreeExpr],
    choose: &mut PathChoice<'_>,
    build: &dyn Fn(Vec<TreeExpr>) -> Option<TreeExpr>,
) -> SqlResult<Vec<TreeExpr>> {
    let mut rows: Vec<Vec<TreeExpr>> = vec![Vec::new()];
    for part in parts {
        let choices = expanded(run, part, choose)?;
        if rows.len().saturating_mul(choices.len()) > EXPANDED_MAX {
            return Err(semantic(format!(
                "the wildcards of an expression make more than {EXPANDED_MAX} columns"
            )));
        }
        let mut longer = Vec::with_capacity(rows.len() * choices.len());
        for row in &rows {
            for choice in &choices {
                run.budget.keep(EXPRESSION_BYTES)?;
                let mut row = row.clone();
                row.push(choice.clone());
                longer.push(row);
            }
        }
        rows = longer;
    }
    Ok(rows.into_iter().filter_map(build).collect())
}

/// A column of an answer.
#[derive(Clone, Debug)]
pub(crate) struct ExpandedColumn {
    pub(crate) name: String,
    pub(crate) expr: TreeExpr,
}

/// Timeseries by the texts of their paths.
pub(crate) struct SeriesByPath<'a> {
    all: &'a [TreeSeries],
    places: HashMap<String, usize>,
    from: &'a [PathPattern],
}

impl<'a> SeriesByPath<'a> {
    pub(crate) fn new(found: &'a FoundSeries, from: &'a [PathPattern]) -> Self {
        let places = found.series.iter().enumerate();
        Self {
            all: &found.series,
            places: places
                .map(|(place, series)| (series.path(), place))
                .collect(),
            from,
        }
    }

    /// The timeseries that a path of the query matches, in the order of its prefixes.
    pub(crate) fn matched(&self, path: &PathPattern) -> SqlResult<Vec<&'a TreeSeries>> {
        let mut matched = Vec::new();
        for pattern in full_patterns(path, self.from)? {
            if let Some(exact) = pattern.as_path() {
                let known = self.places.get(&exact.to_string());
                if let Some(series) = known.and_then(|place| self.all.get(*place)) {
                    matched.push(series);
                    continue;
                }
            }
            matched.extend(self.all.iter().filter(|series| series.is_matched(&pattern)));
        }
        Ok(matched)
    }
}

/// A path of a query with each of its prefixes.
///
/// # Errors
/// If a path has too many nodes.
pub(crate) fn full_patterns(
    path: &PathPattern,
    from: &[PathPattern],
) -> SqlResult<Vec<PathPattern>> {
    if path.is_absolute() {
        return Ok(vec![path.clone()]);
    }
    let joined = from.iter().map(|prefix| prefix.join(path));
    joined.collect::<Result<_, _>>().map_err(fault)
}

/// A condition in which each path is a timeseries: it must hold for all of them together. A path that
/// matches none is null.
///
/// # Errors
/// If it becomes too large.
pub(crate) fn bound_condition(
    run: &TreeRun<'_>,
    condition: &TreeExpr,
    choose: &mut PathChoice<'_>,
) -> SqlResult<TreeExpr> {
    let mut or_null = |path: &PathPattern| {
        let mut chosen = choose(path)?;
        if chosen.is_empty() {
            chosen.push(TreeExpr::Literal(TreeLiteral::Null));
        }
        Ok(chosen)
    };
    let mut all = expanded(run, condition, &mut or_null)?;
    Ok(match (all.pop(), all.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            all.extend(last);
            TreeExpr::And(all)
        }
    })
}

/// The path of a device's timeseries, where only some levels are kept: the others are `*`.
pub(crate) fn grouped_path(device: &TreePath, levels: &[u32]) -> PathPattern {
    let nodes = device.nodes().iter().enumerate();
    let kept = |place: usize| levels.iter().any(|level| *level as usize == place);
    let nodes = nodes.map(|(place, node)| {
        if place == 0 || kept(place) {
            PathNode::Name(node.clone())
        } else {
            PathNode::Glob("*".to_owned())
        }
    });
    // It has as many nodes as the device.
    PathPattern::from_nodes(nodes.collect()).unwrap_or_else(|_| PathPattern::for_path(device))
}
