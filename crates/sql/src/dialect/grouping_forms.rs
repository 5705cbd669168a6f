//! `GROUP BY ()`, and sets of groups that the planner does not know: with a key twice (`ROLLUP (a, a)`),
//! with rows of keys (`ROLLUP ((a, b), c)`), with sets in sets, and with keys by number.
//!
//! Such a GROUP BY becomes one list of sets, as the standard defines it: each set has a key once, and the
//! sets of several parts are combined. One set is a plain GROUP BY. Two selected columns with the same
//! expression are two keys if their numbers are given (`SELECT n, n … ROLLUP (1, 2)`).

use crate::dialect::rewriting::{CopiedText, binary, call, nested};
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select,
    SelectItem, Value, VisitorMut,
};
use marigram_functions::REPEATED_KEY;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

/// The most sets of one GROUP BY, as in PostgreSQL.
const SETS_MAX: usize = 4096;
/// The most keys of a CUBE, as in PostgreSQL.
const CUBE_KEYS_MAX: usize = 12;

/// Whether a statement, in lower case, may contain such a GROUP BY.
pub(crate) fn may_have_some(folded: &str) -> bool {
    folded.contains("group")
        && ["()", "( )", "rollup", "cube", "grouping"]
            .iter()
            .any(|word| folded.contains(word))
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct GroupingForms {
    copied: CopiedText,
}

/// The keys of a group.
type KeySet = Vec<Expr>;

impl VisitorMut for GroupingForms {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        match self.rewrite(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl GroupingForms {
    fn rewrite(&mut self, select: &mut Select) -> Result<(), SqlError> {
        let GroupByExpr::Expressions(parts, modifiers) = &select.group_by else {
            return Ok(());
        };
        if !modifiers.is_empty() || !parts.iter().any(is_set) || !needs_rewriting(parts) {
            return Ok(());
        }
        let mut sets: Vec<KeySet> = vec![Vec::new()];
        for part in parts {
            let more = sets_of(part, &mut self.copied)?;
            check_count(sets.len().saturating_mul(more.len()))?;
            for set in &more {
                for key in set {
                    self.copied.add(key, sets.len().saturating_sub(1))?;
                }
            }
            let combined = sets.iter().flat_map(|set| {
                more.iter().map(move |other| {
                    let keys = set.iter().chain(other).cloned();
                    keys.collect::<KeySet>()
                })
            });
            sets = combined.collect();
        }
        let is_single = select.from.len() == 1 && select.from[0].joins.is_empty();
        tell_numbered_apart(&sets, &mut select.projection, is_single);
        for set in &mut sets {
            for key in set.iter_mut() {
                if let Some(selected) = selected_by_number(key, &select.projection) {
                    *key = selected;
                }
            }
            once_each(set, is_single);
        }
        if let [set] = sets.as_slice()
            && set.is_empty()
        {
            one_group(select);
            return Ok(());
        }
        let keys = match sets.pop() {
            Some(set) if sets.is_empty() => set,
            last => {
                sets.extend(last);
                vec![Expr::GroupingSets(sets)]
            }
        };
        select.group_by = GroupByExpr::Expressions(keys, Vec::new());
        Ok(())
    }
}

fn check_count(sets: usize) -> Result<(), SqlError> {
    if sets <= SETS_MAX {
        return Ok(());
    }
    let message = format!("GROUP BY has {sets} grouping sets; at most {SETS_MAX} are accepted");
    Err(SqlError::invalid("54001", message))
}

/// Groups all rows, even if no aggregate is selected.
fn one_group(select: &mut Select) {
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    let number = |text: &str| Expr::value(Value::Number(text.to_owned(), false));
    let all = binary(
        call("count", vec![number("1")]),
        BinaryOperator::GtEq,
        number("0"),
    );
    select.having = Some(match select.having.take() {
        Some(having) => binary(nested(all), BinaryOperator::And, nested(having)),
        None => all,
    });
}

/// The rows of keys of a ROLLUP or CUBE that is written like a call, as sets in sets are.
fn rows_of_call(expr: &Expr, wanted: &str) -> Option<Vec<KeySet>> {
    let Expr::Function(function) = expr else {
        return None;
    };
    if !function.name.to_string().eq_ignore_ascii_case(wanted) {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let rows = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(row))) => Some(row.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(key)) => Some(vec![key.clone()]),
        _ => None,
    });
    rows.collect()
}

/// Whether a part of GROUP BY is more than one key.
fn is_set(part: &Expr) -> bool {
    matches!(
        part,
        Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_)
    )
}

/// Whether the planner does not know a GROUP BY.
fn needs_rewriting(parts: &[Expr]) -> bool {
    let mut keys: Vec<&Expr> = Vec::new();
    for part in parts {
        let rows = match part {
            Expr::Rollup(rows) | Expr::Cube(rows) => rows,
            Expr::GroupingSets(sets) => {
                let is_plain = |key: &Expr| {
                    !is_number(key)
                        && rows_of_call(key, "rollup").is_none()
                        && rows_of_call(key, "cube").is_none()
                };
                if parts.len() > 1
                    || !sets.iter().flatten().all(is_plain)
                    || sets.iter().all(Vec::is_empty)
                    || sets.iter().any(|set| has_twice(set))
                {
                    return true;
                }
                continue;
            }
            Expr::Tuple(_) => return true,
            key => {
                keys.push(key);
                continue;
            }
        };
        if rows.iter().any(|row| row.len() != 1) {
            return true;
        }
        keys.extend(rows.iter().flatten());
        if rows.iter().flatten().any(is_number) {
            return true;
        }
    }
    let mut names: Vec<String> = keys.into_iter().map(|key| name_of(key, true)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < count
}

fn has_twice(keys: &[Expr]) -> bool {
    let mut once = keys.to_vec();
    once_each(&mut once, true);
    once.len() < keys.len()
}

fn is_number(key: &Expr) -> bool {
    matches!(key, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// The sets for which a part of GROUP BY stands.
fn sets_of(part: &Expr, copied: &mut CopiedText) -> Result<Vec<KeySet>, SqlError> {
    Ok(match part {
        Expr::Rollup(rows) => rollup(rows, copied)?,
        Expr::Cube(rows) => cube(rows, copied)?,
        Expr::GroupingSets(sets) => {
            let mut all = Vec::new();
            for set in sets {
                match set.as_slice() {
                    [single] => {
                        match (rows_of_call(single, "rollup"), rows_of_call(single, "cube")) {
                            (Some(rows), _) => all.extend(rollup(&rows, copied)?),
                            (_, Some(rows)) => all.extend(cube(&rows, copied)?),
                            _ => all.push(set.clone()),
                        }
                    }
                    _ => all.push(set.clone()),
                }
                check_count(all.len())?;
            }
            all
        }
        Expr::Tuple(keys) => vec![keys.clone()],
        key => vec![vec![key.clone()]],
    })
}

/// All rows of keys, all but the last one, and so on.
fn rollup(rows: &[KeySet], copied: &mut CopiedText) -> Result<Vec<KeySet>, SqlError> {
    check_count(rows.len() + 1)?;
    for (at, row) in rows.iter().enumerate() {
        for key in row {
            copied.add(key, rows.len() - at)?;
        }
    }
    let lengths = (0..=rows.len()).rev();
    Ok(lengths.map(|length| rows[..length].concat()).collect())
}

/// All selections of rows of keys.
fn cube(rows: &[KeySet], copied: &mut CopiedText) -> Result<Vec<KeySet>, SqlError> {
    if rows.len() > CUBE_KEYS_MAX {
        let message = format!("CUBE is limited to {CUBE_KEYS_MAX} elements");
        return Err(SqlError::invalid("54011", message));
    }
    for key in rows.iter().flatten() {
        copied.add(key, 1 << (rows.len() - 1))?;
    }
    let selections = (0..1_usize << rows.len()).rev();
    let set = |selection: usize| -> KeySet {
        let chosen = rows.iter().enumerate();
        let chosen = chosen.filter(|(at, _)| selection >> (rows.len() - 1 - at) & 1 == 1);
        chosen.flat_map(|(_, row)| row.iter().cloned()).collect()
    };
    Ok(selections.map(set).collect())
}

/// The place of the column for which `GROUP BY 2` stands.
fn place_of_number(key: &Expr) -> Option<usize> {
    let Expr::Value(value) = key else { return None };
    let Value::Number(number, _) = &value.value else {
        return None;
    };
    number.parse::<usize>().ok()?.checked_sub(1)
}

/// Gives the columns whose numbers are keys different expressions, where they have the same.
fn tell_numbered_apart(sets: &[KeySet], projection: &mut [SelectItem], is_single: bool) {
    let places = sets.iter().flatten().filter_map(place_of_number);
    let places: BTreeSet<usize> = places.collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for place in places {
        let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
            projection.get_mut(place)
        else {
            continue;
        };
        let count = seen.entry(name_of(expr, is_single)).or_default();
        *count += 1;
        if *count > 1 {
            let number = Expr::value(Value::Number(count.to_string(), false));
            *expr = call(REPEATED_KEY, vec![expr.clone(), number]);
        }
    }
}

/// What `GROUP BY 2` stands for.
fn selected_by_number(key: &Expr, projection: &[SelectItem]) -> Option<Expr> {
    match projection.get(place_of_number(key)?)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr.clone())
        }
        _ => None,
    }
}

/// A text that is the same for the same key. With a single table, its name does not matter.
fn name_of(key: &Expr, is_single: bool) -> String {
    match key {
        Expr::Nested(key) => name_of(key, is_single),
        Expr::Identifier(name) => fold_case(name),
        Expr::CompoundIdentifier(parts) if is_single => {
            parts.last().map(fold_case).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Removes keys that occur again.
fn once_each(set: &mut KeySet, is_single: bool) {
    let mut seen = HashSet::new();
    set.retain(|key| seen.insert(name_of(key, is_single)));
}
