//! Values of rows and tags.

use super::cursor::{TaosCursor, integer};
use crate::ast::TaosInsertClause;
use crate::duration::{TaosDuration, TimeShift};
use crate::error::TaosResult;
use crate::lexer::SqlTokenKind;
use crate::value::{TaosMoment, TaosValue};
use std::borrow::Cow;

/// Reads a value: a literal, or a moment and what is added to it.
pub(super) fn value<'a>(cursor: &mut TaosCursor<'a>) -> TaosResult<TaosValue<'a>> {
    let base = plain_value(cursor)?;
    if !cursor.is_symbol("+") && !cursor.is_symbol("-") {
        return Ok(base);
    }
    let (moment, mut shift) = match base {
        TaosValue::Moment(moment, shift) => (moment, shift),
        TaosValue::Integer(ticks) => {
            let ticks = i64::try_from(ticks).map_err(|_| cursor.error())?;
            (TaosMoment::Ticks(ticks), TimeShift::default())
        }
        TaosValue::Text(text) => (TaosMoment::Text(text), TimeShift::default()),
        _ => return Err(cursor.error()),
    };
    while cursor.is_symbol("+") || cursor.is_symbol("-") {
        let is_negative = cursor.is_symbol("-");
        cursor.advance()?;
        if cursor.kind() != SqlTokenKind::Duration {
            return Err(cursor.error());
        }
        let added = TaosDuration::from_text(cursor.text()).ok_or_else(|| cursor.error())?;
        let added = added.shift()?;
        shift = shift.plus(if is_negative { added.negated() } else { added })?;
        cursor.advance()?;
    }
    Ok(TaosValue::Moment(moment, shift))
}

fn plain_value<'a>(cursor: &mut TaosCursor<'a>) -> TaosResult<TaosValue<'a>> {
    let is_negative = cursor.is_symbol("-");
    if is_negative || cursor.is_symbol("+") {
        cursor.advance()?;
        return signed(cursor, is_negative);
    }
    match cursor.kind() {
        SqlTokenKind::Integer | SqlTokenKind::Float => signed(cursor, false),
        SqlTokenKind::Text => Ok(TaosValue::Text(cursor.quoted()?)),
        SqlTokenKind::Word => {
            let word = cursor.text().to_ascii_lowercase();
            let value = match word.as_str() {
                "null" | "none" => TaosValue::Null,
                "true" => TaosValue::Bool(true),
                "false" => TaosValue::Bool(false),
                "nan" => TaosValue::Text(Cow::Borrowed("nan")),
                "now" => TaosValue::Moment(TaosMoment::Now, TimeShift::default()),
                "today" => TaosValue::Moment(TaosMoment::Today, TimeShift::default()),
                _ => return Err(cursor.error()),
            };
            cursor.advance()?;
            if matches!(value, TaosValue::Moment(..)) && cursor.eat_symbol("(")? {
                cursor.expect_symbol(")")?;
            }
            Ok(value)
        }
        _ => Err(cursor.error()),
    }
}

fn signed<'a>(cursor: &mut TaosCursor<'a>, is_negative: bool) -> TaosResult<TaosValue<'a>> {
    let text = cursor.text();
    let value = match cursor.kind() {
        SqlTokenKind::Integer => {
            let number = integer(text).ok_or_else(|| cursor.error())?;
            TaosValue::Integer(if is_negative { -number } else { number })
        }
        SqlTokenKind::Float => {
            let number: f64 = text.parse().map_err(|_| cursor.error())?;
            TaosValue::Float(if is_negative { -number } else { number })
        }
        _ => return Err(cursor.error()),
    };
    cursor.advance()?;
    Ok(value)
}

/// Reads values between parentheses into a row, which is emptied first.
pub(super) fn row<'a>(
    cursor: &mut TaosCursor<'a>,
    values: &mut Vec<TaosValue<'a>>,
) -> TaosResult<()> {
    values.clear();
    cursor.expect_symbol("(")?;
    loop {
        values.push(value(cursor)?);
        if !cursor.eat_symbol(",")? {
            break;
        }
    }
    cursor.expect_symbol(")")
}

/// Reads values of tags between parentheses.
pub(super) fn tags(cursor: &mut TaosCursor<'_>) -> TaosResult<Vec<TaosValue<'static>>> {
    let mut values = Vec::new();
    row(cursor, &mut values)?;
    Ok(values.into_iter().map(TaosValue::into_owned).collect())
}

/// The rows of a clause of INSERT, read again from the text of the statement.
pub struct InsertedRows<'a> {
    cursor: Option<TaosCursor<'a>>,
    end: usize,
}

impl<'a> InsertedRows<'a> {
    /// The rows of a clause of the statement with this text.
    ///
    /// # Errors
    /// If the clause is not of this text.
    pub fn new(sql: &'a str, clause: &TaosInsertClause) -> TaosResult<Self> {
        let cursor = TaosCursor::new(sql, clause.rows.start, |cursor| Err(cursor.error()))?;
        Ok(Self {
            cursor: Some(cursor),
            end: clause.rows.end,
        })
    }

    /// Reads the next row into `values`; returns whether there was one.
    ///
    /// # Errors
    /// If the text is no row.
    pub fn next_row(&mut self, values: &mut Vec<TaosValue<'a>>) -> TaosResult<bool> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(false);
        };
        cursor.eat_symbol(",")?;
        if cursor.start() >= self.end || !cursor.is_symbol("(") {
            self.cursor = None;
            return Ok(false);
        }
        row(cursor, values)?;
        Ok(true)
    }
}
