//! The windows of aggregates, and FILL.

use super::cursor::TaosCursor;
use super::expression::{expression, expressions};
use crate::ast::{TaosFill, TaosWindow};
use crate::duration::TaosDuration;
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::lexer::SqlTokenKind;

/// Reads a window, if one is next.
pub(super) fn window(cursor: &mut TaosCursor<'_>) -> TaosResult<Option<TaosWindow>> {
    if cursor.is_word("anomaly_window") {
        return Err(TaosError::unsupported("ANOMALY_WINDOW"));
    }
    if cursor.eat_word("interval")? {
        return interval(cursor).map(Some);
    }
    if cursor.eat_word("session")? {
        cursor.expect_symbol("(")?;
        let time = expression(cursor)?;
        cursor.expect_symbol(",")?;
        let gap = duration(cursor)?;
        cursor.expect_symbol(")")?;
        return Ok(Some(TaosWindow::Session { time, gap }));
    }
    if cursor.eat_word("state_window")? {
        cursor.expect_symbol("(")?;
        let state = expression(cursor)?;
        cursor.expect_symbol(")")?;
        true_for(cursor)?;
        return Ok(Some(TaosWindow::State(state)));
    }
    if cursor.eat_word("event_window")? {
        cursor.expect_word("start")?;
        cursor.expect_word("with")?;
        let start = expression(cursor)?;
        cursor.expect_word("end")?;
        cursor.expect_word("with")?;
        let end = expression(cursor)?;
        true_for(cursor)?;
        return Ok(Some(TaosWindow::Event { start, end }));
    }
    if cursor.eat_word("count_window")? {
        cursor.expect_symbol("(")?;
        let count = cursor.count()?;
        let mut sliding = None;
        if cursor.eat_symbol(",")? {
            sliding = Some(cursor.count()?);
        }
        cursor.expect_symbol(")")?;
        let is_wrong = sliding.is_some_and(|sliding| sliding == 0 || sliding > count);
        if count < 2 || is_wrong {
            return Err(TaosError::about(TaosCode::ParameterValue, "COUNT_WINDOW"));
        }
        return Ok(Some(TaosWindow::Count { count, sliding }));
    }
    Ok(None)
}

fn true_for(cursor: &TaosCursor<'_>) -> TaosResult<()> {
    if cursor.is_word("true_for") {
        return Err(TaosError::unsupported("TRUE_FOR"));
    }
    Ok(())
}

fn interval(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosWindow> {
    cursor.expect_symbol("(")?;
    let width = duration(cursor)?;
    let mut offset = None;
    if cursor.eat_symbol(",")? && !cursor.eat_word("auto")? {
        offset = Some(duration(cursor)?);
    }
    cursor.expect_symbol(")")?;
    let mut sliding = None;
    if cursor.eat_word("sliding")? {
        cursor.expect_symbol("(")?;
        sliding = Some(duration(cursor)?);
        cursor.expect_symbol(")")?;
    }
    if width.count == 0 || sliding.is_some_and(|sliding| sliding.count == 0) {
        return Err(TaosError::new(TaosCode::IntervalTooSmall));
    }
    Ok(TaosWindow::Interval {
        width,
        offset,
        sliding,
    })
}

/// Reads a duration; some clients quote it.
pub(super) fn duration(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosDuration> {
    let text = match cursor.kind() {
        SqlTokenKind::Duration => cursor.text(),
        SqlTokenKind::Text => cursor.text().trim_matches(['\'', '"']),
        _ => return Err(cursor.error()),
    };
    let duration = TaosDuration::from_text(text).ok_or_else(|| cursor.error())?;
    cursor.advance()?;
    Ok(duration)
}

/// Reads what follows FILL.
pub(super) fn fill(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosFill> {
    cursor.expect_symbol("(")?;
    let mode = cursor.text().to_ascii_lowercase();
    let unknown = cursor.error();
    cursor.advance()?;
    let fill = match mode.as_str() {
        "none" => TaosFill::None,
        "null" => TaosFill::Null { forced: false },
        "null_f" => TaosFill::Null { forced: true },
        "prev" => TaosFill::Previous,
        "next" => TaosFill::Next,
        "linear" => TaosFill::Linear,
        "near" => TaosFill::Near,
        "value" | "value_f" => {
            cursor.expect_symbol(",")?;
            TaosFill::Values {
                values: expressions(cursor)?,
                forced: mode == "value_f",
            }
        }
        _ => return Err(unknown),
    };
    cursor.expect_symbol(")")?;
    Ok(fill)
}
