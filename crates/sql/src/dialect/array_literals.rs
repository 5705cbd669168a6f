//! Arrays in PostgreSQL's forms. Texts that are cast to arrays, such as `'{1,2}'::int[]`, become
//! `ARRAY['1', '2']::int[]`, whose elements are cast one by one. Comparisons with the elements of an
//! array, such as `x > ANY (array)`, become calls.

use crate::dialect::rewriting::call;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{Array, DataType, Expr, Value, VisitorMut};
use marigram_functions::ARRAY_COMPARISONS;
use std::ops::ControlFlow;

/// Whether a statement, in lower case, may contain such texts or comparisons.
pub(crate) fn may_have_some(folded: &str) -> bool {
    folded.contains('{')
        || ["any", "all", "some"]
            .iter()
            .any(|word| folded.contains(word))
}

/// See the module documentation.
pub(crate) struct ArrayLiterals;

impl VisitorMut for ArrayLiterals {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let text = match expr {
            Expr::Cast {
                expr: cast,
                data_type: DataType::Array(_),
                ..
            } => cast.as_mut(),
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => right.as_mut(),
            _ => return ControlFlow::Continue(()),
        };
        match elements_of(text) {
            Ok(Some(array)) => *text = array,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        if let Some(call) = compared(expr) {
            *expr = call;
        }
        ControlFlow::Continue(())
    }
}

/// The array that a literal text denotes; `None` for other expressions.
pub(super) fn elements_of(text: &Expr) -> Result<Option<Expr>, SqlError> {
    let Expr::Value(value) = text else {
        return Ok(None);
    };
    let Value::SingleQuotedString(text) = &value.value else {
        return Ok(None);
    };
    let Some(elements) = elements(text) else {
        return Err(SqlError::named(
            "22P02",
            text,
            "malformed array literal; write an array of one dimension in braces, with commas \
             between its elements",
        ));
    };
    let element = |element: Option<String>| {
        Expr::value(element.map_or(Value::Null, Value::SingleQuotedString))
    };
    Ok(Some(Expr::Array(Array {
        elem: elements.into_iter().map(element).collect(),
        named: true,
    })))
}

/// The call for a comparison with the elements of an array; `None` for other expressions.
fn compared(expr: &Expr) -> Option<Expr> {
    let (left, op, right, is_any) = match expr {
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => (left, compare_op, right, true),
        Expr::AllOp {
            left,
            compare_op,
            right,
        } => (left, compare_op, right, false),
        _ => return None,
    };
    if matches!(right.as_ref(), Expr::Subquery(_)) {
        return None;
    }
    let op = op.to_string();
    let (_, any, all) = ARRAY_COMPARISONS.iter().find(|(known, ..)| *known == op)?;
    let name = if is_any { any } else { all };
    Some(call(
        name,
        vec![left.as_ref().clone(), right.as_ref().clone()],
    ))
}

/// The elements of a one-dimensional array, as PostgreSQL's `array_in` reads them; `None` if the
/// text is not such an array.
fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    if inside.trim().is_empty() {
        return Some(elements);
    }
    let mut rest = inside.chars().peekable();
    loop {
        while rest.next_if(|next| next.is_whitespace()).is_some() {}
        let is_quoted = rest.next_if_eq(&'"').is_some();
        let mut element = String::new();
        // Blanks after an element do not belong to it, unless a backslash precedes them.
        let mut length = 0;
        let is_last = loop {
            match rest.next() {
                None if is_quoted => return None,
                None => break true,
                Some('\\') => {
                    element.push(rest.next()?);
                    length = element.len();
                }
                Some('"') if is_quoted => {
                    while rest.next_if(|next| next.is_whitespace()).is_some() {}
                    match rest.next() {
                        None => break true,
                        Some(',') => break false,
                        Some(_) => return None,
                    }
                }
                Some('"' | '{' | '}') if !is_quoted => return None,
                Some(',') if !is_quoted => break false,
                Some(character) => {
                    element.push(character);
                    if !character.is_whitespace() {
                        length = element.len();
                    }
                }
            }
        };
        if !is_quoted {
            element.truncate(length);
            if element.is_empty() {
                return None;
            }
        }
        let is_null = !is_quoted && element.eq_ignore_ascii_case("null");
        elements.push((!is_null).then_some(element));
        if is_last {
            return Some(elements);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_postgresql_reads_them() {
        let read = |text: &str| {
            let elements = elements(text)?;
            let shown = elements.into_iter().map(|e| e.unwrap_or("<null>".into()));
            Some(shown.collect::<Vec<_>>().join("|"))
        };
        for (text, expected) in [
            ("{1,2}", Some("1|2")),
            (" { 1 , NULL , x y } ", Some("1|<null>|x y")),
            ("{}", Some("")),
            ("{ }", Some("")),
            (r#"{"a,b","NULL","","q\"\\"}"#, Some(r#"a,b|NULL||q"\"#)),
            ("{a\\ ,b}", Some("a |b")),
            ("{1,}", None),
            ("{,}", None),
            ("{1", None),
            ("1,2", None),
            ("{{1},{2}}", None),
            ("{a\"b}", None),
            ("{\"a\" b}", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}
