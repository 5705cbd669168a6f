//! SELECT: its clauses in the order in which TDengine has them.

use super::cursor::TaosCursor;
use super::expression::{expression, expressions};
use super::windows::{duration, fill, window};
use crate::ast::{
    TaosExpr, TaosFrom, TaosJoin, TaosJoinKind, TaosLimit, TaosOrder, TaosPartition, TaosQuery,
    TaosQueryBody, TaosSelect, TaosSelectItem,
};
use crate::error::{TaosError, TaosResult};
use crate::lexer::SqlTokenKind;

/// Queries of one UNION.
const UNION_MAX: usize = 256;

/// Tables of one join.
const JOIN_MAX: usize = 16;

/// Reads a query, with its unions, order and limits.
pub(super) fn query(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosQuery> {
    let first = term(cursor)?;
    let mut rest = Vec::new();
    while cursor.eat_word("union")? {
        let is_all = cursor.eat_word("all")?;
        rest.push((is_all, term(cursor)?));
        if rest.len() >= UNION_MAX {
            return Err(TaosError::unsupported("a UNION of so many queries"));
        }
    }
    let mut order_by = Vec::new();
    if cursor.eat_words(&["order", "by"])? {
        order_by.push(order(cursor)?);
        while cursor.eat_symbol(",")? {
            order_by.push(order(cursor)?);
        }
    }
    let partition_limit = limit(cursor, "slimit", "soffset")?;
    let limit = limit(cursor, "limit", "offset")?;
    let is_plain = order_by.is_empty() && partition_limit.is_none() && limit.is_none();
    if rest.is_empty() && is_plain {
        return Ok(first);
    }
    let is_select = first.order_by.is_empty() && first.limit.is_none();
    let body = match first.body {
        TaosQueryBody::Select(select) if rest.is_empty() && is_select => {
            TaosQueryBody::Select(select)
        }
        _ => TaosQueryBody::Union {
            first: Box::new(first),
            rest,
        },
    };
    Ok(TaosQuery {
        body,
        order_by,
        partition_limit,
        limit,
    })
}

/// Reads a SELECT, or a query in parentheses.
fn term(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosQuery> {
    if cursor.eat_symbol("(")? {
        let inner = cursor.query()?;
        cursor.expect_symbol(")")?;
        return Ok(inner);
    }
    Ok(TaosQuery {
        body: TaosQueryBody::Select(Box::new(select(cursor)?)),
        order_by: Vec::new(),
        partition_limit: None,
        limit: None,
    })
}

fn select(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosSelect> {
    cursor.expect_word("select")?;
    let tags_only = cursor.is_word("tags") && cursor.text_after() != ",";
    if tags_only {
        cursor.advance()?;
    }
    let distinct = cursor.eat_word("distinct")?;
    if !distinct {
        cursor.eat_word("all")?;
    }
    let mut items = vec![item(cursor)?];
    while cursor.eat_symbol(",")? {
        items.push(item(cursor)?);
    }
    let mut select = TaosSelect {
        distinct,
        tags_only,
        items,
        from: None,
        condition: None,
        partition_by: Vec::new(),
        range: None,
        every: None,
        window: None,
        fill: None,
        group_by: Vec::new(),
        having: None,
    };
    if cursor.eat_word("from")? {
        select.from = Some(from(cursor)?);
        clauses(cursor, &mut select)?;
    }
    Ok(select)
}

/// Reads what follows FROM.
fn clauses(cursor: &mut TaosCursor<'_>, select: &mut TaosSelect) -> TaosResult<()> {
    if cursor.eat_word("where")? {
        select.condition = Some(expression(cursor)?);
    }
    if cursor.eat_words(&["partition", "by"])? {
        loop {
            let expr = expression(cursor)?;
            let alias = alias(cursor)?;
            select.partition_by.push(TaosPartition { expr, alias });
            if !cursor.eat_symbol(",")? {
                break;
            }
        }
    }
    if cursor.eat_word("range")? {
        cursor.expect_symbol("(")?;
        let first = expression(cursor)?;
        let mut last = None;
        if cursor.eat_symbol(",")? {
            last = Some(expression(cursor)?);
        }
        if cursor.eat_symbol(",")? {
            return Err(TaosError::unsupported("the third argument of RANGE"));
        }
        cursor.expect_symbol(")")?;
        select.range = Some((first, last));
    }
    if cursor.eat_word("every")? {
        cursor.expect_symbol("(")?;
        select.every = Some(duration(cursor)?);
        cursor.expect_symbol(")")?;
    }
    select.window = window(cursor)?;
    if cursor.eat_word("fill")? {
        select.fill = Some(fill(cursor)?);
    }
    if cursor.eat_words(&["group", "by"])? {
        select.group_by = expressions(cursor)?;
    }
    if cursor.eat_word("having")? {
        select.having = Some(expression(cursor)?);
    }
    Ok(())
}

fn item(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosSelectItem> {
    let start = cursor.start();
    let expr = expression(cursor)?;
    let text = match &expr {
        TaosExpr::Column { name, .. } => name.clone(),
        _ => cursor.text_since(start).to_owned(),
    };
    let alias = alias(cursor)?;
    Ok(TaosSelectItem { expr, text, alias })
}

/// Words that follow an expression or a table, and are no alias of it.
const AFTER_ALIAS: [&str; 22] = [
    "partition",
    "range",
    "every",
    "interval",
    "session",
    "state_window",
    "event_window",
    "count_window",
    "anomaly_window",
    "sliding",
    "fill",
    "offset",
    "soffset",
    "inner",
    "left",
    "right",
    "full",
    "outer",
    "semi",
    "anti",
    "asof",
    "window",
];

fn alias(cursor: &mut TaosCursor<'_>) -> TaosResult<Option<String>> {
    if cursor.eat_word("as")? {
        if cursor.kind() == SqlTokenKind::Text {
            return Ok(Some(cursor.quoted()?.into_owned()));
        }
        return Ok(Some(cursor.name()?));
    }
    if cursor.is_name() && !cursor.is_any_word(&AFTER_ALIAS) {
        return Ok(Some(cursor.name()?));
    }
    Ok(None)
}

fn from(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosFrom> {
    let mut left = source(cursor)?;
    for _ in 0..JOIN_MAX {
        if cursor.eat_symbol(",")? {
            let right = source(cursor)?;
            left = joined(left, right, TaosJoinKind::Inner, None);
            continue;
        }
        if cursor.is_any_word(&["semi", "anti", "asof", "window"]) {
            return Err(other_join(cursor));
        }
        let kind = match cursor.text().to_ascii_lowercase().as_str() {
            "join" | "inner" => TaosJoinKind::Inner,
            "left" => TaosJoinKind::Left,
            "right" => TaosJoinKind::Right,
            "full" => TaosJoinKind::Full,
            _ => return Ok(left),
        };
        if !cursor.is_word("join") {
            cursor.advance()?;
            cursor.eat_word("outer")?;
        }
        if cursor.is_any_word(&["semi", "anti", "asof", "window"]) {
            return Err(other_join(cursor));
        }
        cursor.expect_word("join")?;
        let right = source(cursor)?;
        let mut condition = None;
        if cursor.eat_word("on")? {
            condition = Some(expression(cursor)?);
        }
        left = joined(left, right, kind, condition);
    }
    Err(TaosError::unsupported("a join of so many tables"))
}

fn other_join(cursor: &TaosCursor<'_>) -> TaosError {
    TaosError::unsupported(&format!("{} JOIN", cursor.text().to_ascii_uppercase()))
}

fn joined(
    left: TaosFrom,
    right: TaosFrom,
    kind: TaosJoinKind,
    condition: Option<TaosExpr>,
) -> TaosFrom {
    TaosFrom::Join(Box::new(TaosJoin {
        left,
        right,
        kind,
        condition,
    }))
}

fn source(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosFrom> {
    if cursor.eat_symbol("(")? {
        if cursor.is_word("select") || cursor.is_symbol("(") {
            let query = Box::new(cursor.query()?);
            cursor.expect_symbol(")")?;
            let alias = alias(cursor)?;
            return Ok(TaosFrom::Query { query, alias });
        }
        let inner = cursor.nested(from)?;
        cursor.expect_symbol(")")?;
        return Ok(inner);
    }
    let name = cursor.full_name()?;
    let alias = alias(cursor)?;
    Ok(TaosFrom::Table { name, alias })
}

fn order(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosOrder> {
    let start = cursor.start();
    let expr = expression(cursor)?;
    let text = cursor.text_since(start).to_owned();
    let descending = cursor.eat_word("desc")?;
    if !descending {
        cursor.eat_word("asc")?;
    }
    let mut nulls_first = None;
    if cursor.eat_word("nulls")? {
        let first = cursor.eat_word("first")?;
        if !first {
            cursor.expect_word("last")?;
        }
        nulls_first = Some(first);
    }
    Ok(TaosOrder {
        expr,
        text,
        descending,
        nulls_first,
    })
}

/// Reads `LIMIT n`, `LIMIT n OFFSET m` or `LIMIT m, n`.
fn limit(
    cursor: &mut TaosCursor<'_>,
    word: &str,
    offset_word: &str,
) -> TaosResult<Option<TaosLimit>> {
    if !cursor.eat_word(word)? {
        return Ok(None);
    }
    let first = cursor.count()?;
    if cursor.eat_symbol(",")? {
        let count = cursor.count()?;
        return Ok(Some(TaosLimit {
            count,
            offset: first,
        }));
    }
    let mut offset = 0;
    if cursor.eat_word(offset_word)? {
        offset = cursor.count()?;
    }
    Ok(Some(TaosLimit {
        count: first,
        offset,
    }))
}
