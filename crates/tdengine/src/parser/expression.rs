//! Expressions, by precedence: OR, AND, NOT, comparisons, `|`, `&`, sums, products, signs, JSON keys.

use super::cursor::{TaosCursor, integer};
use super::definition::column_type;
use crate::ast::{TaosCall, TaosExpr, TaosLiteral, TaosOperator};
use crate::duration::TaosDuration;
use crate::error::{TaosError, TaosResult};
use crate::lexer::SqlTokenKind;

/// Reads an expression.
pub(super) fn expression(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    let operators = cursor.begin_expression();
    let read = alternatives(cursor);
    cursor.end_expression(operators);
    read
}

/// Reads expressions, separated by commas.
pub(super) fn expressions(cursor: &mut TaosCursor<'_>) -> TaosResult<Vec<TaosExpr>> {
    let mut list = vec![expression(cursor)?];
    while cursor.eat_symbol(",")? {
        list.push(expression(cursor)?);
    }
    Ok(list)
}

fn alternatives(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    let first = conditions(cursor)?;
    if !cursor.is_word("or") {
        return Ok(first);
    }
    let mut all = vec![first];
    while cursor.eat_word("or")? {
        all.push(conditions(cursor)?);
    }
    Ok(TaosExpr::Any(all))
}

fn conditions(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    let first = negation(cursor)?;
    if !cursor.is_word("and") {
        return Ok(first);
    }
    let mut all = vec![first];
    while cursor.eat_word("and")? {
        all.push(negation(cursor)?);
    }
    Ok(TaosExpr::All(all))
}

fn negation(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    if cursor.eat_word("not")? {
        let inner = cursor.nested(negation)?;
        return Ok(TaosExpr::Not(Box::new(inner)));
    }
    comparison(cursor)
}

fn comparison(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    let left = operation(cursor, 0)?;
    if cursor.eat_word("is")? {
        let negated = cursor.eat_word("not")?;
        cursor.expect_word("null")?;
        let value = Box::new(left);
        return Ok(TaosExpr::IsNull { value, negated });
    }
    let negated = cursor.eat_word("not")?;
    if cursor.eat_word("between")? {
        let low = operation(cursor, 0)?;
        cursor.expect_word("and")?;
        let high = operation(cursor, 0)?;
        return Ok(TaosExpr::Between {
            value: Box::new(left),
            bounds: Box::new((low, high)),
            negated,
        });
    }
    if cursor.eat_word("in")? {
        cursor.expect_symbol("(")?;
        if cursor.is_word("select") {
            return Err(TaosError::unsupported("a query in IN"));
        }
        let list = cursor.nested(expressions)?;
        cursor.expect_symbol(")")?;
        return Ok(TaosExpr::In {
            value: Box::new(left),
            list,
            negated,
        });
    }
    let operator = match cursor.text().to_ascii_lowercase().as_str() {
        "like" if negated => TaosOperator::NotLike,
        "like" => TaosOperator::Like,
        _ if negated => return Err(cursor.error()),
        "=" => TaosOperator::Equal,
        "<>" | "!=" => TaosOperator::NotEqual,
        "<" => TaosOperator::Less,
        "<=" => TaosOperator::LessEqual,
        ">" => TaosOperator::Greater,
        ">=" => TaosOperator::GreaterEqual,
        "match" => TaosOperator::Match,
        "nmatch" => TaosOperator::NotMatch,
        "contains" => TaosOperator::JsonContains,
        _ => return Ok(left),
    };
    if !matches!(cursor.kind(), SqlTokenKind::Word | SqlTokenKind::Symbol) {
        return Ok(left);
    }
    cursor.advance()?;
    let right = operation(cursor, 0)?;
    Ok(binary(operator, left, right))
}

fn binary(operator: TaosOperator, left: TaosExpr, right: TaosExpr) -> TaosExpr {
    TaosExpr::Binary {
        operator,
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// The operators of arithmetic, from the loosest to the tightest.
const LEVELS: [&[(&str, TaosOperator)]; 4] = [
    &[("|", TaosOperator::BitOr)],
    &[("&", TaosOperator::BitAnd)],
    &[("+", TaosOperator::Add), ("-", TaosOperator::Subtract)],
    &[
        ("*", TaosOperator::Multiply),
        ("/", TaosOperator::Divide),
        ("%", TaosOperator::Remainder),
    ],
];

fn operation(cursor: &mut TaosCursor<'_>, level: usize) -> TaosResult<TaosExpr> {
    let Some(operators) = LEVELS.get(level) else {
        return sign(cursor);
    };
    let mut left = operation(cursor, level + 1)?;
    loop {
        let found = operators
            .iter()
            .find(|(symbol, _)| cursor.is_symbol(symbol));
        let Some((_, operator)) = found else {
            return Ok(left);
        };
        cursor.count_operator()?;
        cursor.advance()?;
        let right = operation(cursor, level + 1)?;
        left = binary(*operator, left, right);
    }
}

fn sign(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    if cursor.eat_symbol("+")? {
        return cursor.nested(sign);
    }
    if cursor.eat_symbol("-")? {
        return Ok(match cursor.nested(sign)? {
            TaosExpr::Literal(TaosLiteral::Integer(number)) => {
                TaosExpr::Literal(TaosLiteral::Integer(-number))
            }
            TaosExpr::Literal(TaosLiteral::Float(number)) => {
                TaosExpr::Literal(TaosLiteral::Float(-number))
            }
            inner => TaosExpr::Negative(Box::new(inner)),
        });
    }
    let value = primary(cursor)?;
    if cursor.eat_symbol("->")? {
        let key = TaosExpr::Literal(TaosLiteral::Text(cursor.quoted()?.into_owned()));
        return Ok(binary(TaosOperator::JsonValue, value, key));
    }
    Ok(value)
}

fn primary(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    let text = cursor.text();
    let literal = match cursor.kind() {
        SqlTokenKind::Integer => TaosLiteral::Integer(integer(text).ok_or_else(|| cursor.error())?),
        SqlTokenKind::Float => TaosLiteral::Float(text.parse().map_err(|_| cursor.error())?),
        SqlTokenKind::Duration => {
            TaosLiteral::Duration(TaosDuration::from_text(text).ok_or_else(|| cursor.error())?)
        }
        SqlTokenKind::Text => {
            let text = cursor.quoted()?.into_owned();
            return Ok(TaosExpr::Literal(TaosLiteral::Text(text)));
        }
        SqlTokenKind::Symbol if text == "(" => {
            cursor.advance()?;
            if cursor.is_word("select") {
                return Err(TaosError::unsupported("a query within an expression"));
            }
            let inner = cursor.nested(alternatives)?;
            cursor.expect_symbol(")")?;
            return Ok(inner);
        }
        SqlTokenKind::Symbol if text == "*" => {
            cursor.advance()?;
            return Ok(TaosExpr::Star(None));
        }
        SqlTokenKind::Word | SqlTokenKind::QuotedName => return named(cursor),
        SqlTokenKind::Symbol | SqlTokenKind::End => return Err(cursor.error()),
    };
    cursor.advance()?;
    Ok(TaosExpr::Literal(literal))
}

/// What begins with a word: a literal, a function or a column.
fn named(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    let is_call = cursor.text_after() == "(";
    if cursor.kind() == SqlTokenKind::Word {
        let word = cursor.text().to_ascii_lowercase();
        let literal = match word.as_str() {
            "null" => Some(TaosLiteral::Null),
            "true" => Some(TaosLiteral::Bool(true)),
            "false" => Some(TaosLiteral::Bool(false)),
            "now" => Some(TaosLiteral::Now),
            "today" if is_call => Some(TaosLiteral::Today),
            _ => None,
        };
        if let Some(literal) = literal {
            cursor.advance()?;
            if matches!(literal, TaosLiteral::Now | TaosLiteral::Today) && cursor.eat_symbol("(")? {
                cursor.expect_symbol(")")?;
            }
            return Ok(TaosExpr::Literal(literal));
        }
        let before_text = cursor.text_after().starts_with(['\'', '"']);
        if word == "timestamp" && before_text {
            cursor.advance()?;
            let text = cursor.quoted()?.into_owned();
            return Ok(TaosExpr::Literal(TaosLiteral::Time(text)));
        }
        if word == "interval" && before_text {
            return Err(TaosError::unsupported("an INTERVAL of SQL; write 10s"));
        }
        if word == "case" {
            return cursor.nested(case);
        }
        if word == "cast" && is_call {
            return cursor.nested(cast);
        }
        if is_call {
            cursor.advance()?;
            return cursor.nested(|cursor| call(cursor, word));
        }
    }
    let name = cursor.name()?;
    if !cursor.eat_symbol(".")? {
        return Ok(TaosExpr::Column { table: None, name });
    }
    if cursor.eat_symbol("*")? {
        return Ok(TaosExpr::Star(Some(name)));
    }
    let second = cursor.name()?;
    if cursor.eat_symbol(".")? {
        // The database of a table tells nothing more here.
        if cursor.eat_symbol("*")? {
            return Ok(TaosExpr::Star(Some(second)));
        }
        let name = cursor.name()?;
        let table = Some(second);
        return Ok(TaosExpr::Column { table, name });
    }
    Ok(TaosExpr::Column {
        table: Some(name),
        name: second,
    })
}

fn call(cursor: &mut TaosCursor<'_>, name: String) -> TaosResult<TaosExpr> {
    cursor.expect_symbol("(")?;
    let mut arguments = Vec::new();
    if !cursor.is_symbol(")") {
        if cursor.is_word("distinct") {
            return Err(TaosError::unsupported("DISTINCT within a function"));
        }
        arguments.push(alternatives(cursor)?);
        loop {
            // TRIM(BOTH ' ' FROM x), SUBSTRING(x FROM 1 FOR 2) and POSITION(x IN y) are not read.
            if !cursor.eat_symbol(",")? {
                break;
            }
            arguments.push(alternatives(cursor)?);
        }
    }
    cursor.expect_symbol(")")?;
    Ok(TaosExpr::Call(TaosCall { name, arguments }))
}

fn cast(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    cursor.expect_word("cast")?;
    cursor.expect_symbol("(")?;
    let value = Box::new(alternatives(cursor)?);
    cursor.expect_word("as")?;
    let kind = column_type(cursor)?;
    cursor.expect_symbol(")")?;
    Ok(TaosExpr::Cast { value, kind })
}

fn case(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosExpr> {
    cursor.expect_word("case")?;
    let mut operand = None;
    if !cursor.is_word("when") {
        operand = Some(Box::new(alternatives(cursor)?));
    }
    let mut branches = Vec::new();
    while cursor.eat_word("when")? {
        let when = alternatives(cursor)?;
        cursor.expect_word("then")?;
        branches.push((when, alternatives(cursor)?));
    }
    let mut otherwise = None;
    if cursor.eat_word("else")? {
        otherwise = Some(Box::new(alternatives(cursor)?));
    }
    if branches.is_empty() {
        return Err(cursor.error());
    }
    cursor.expect_word("end")?;
    Ok(TaosExpr::Case {
        operand,
        branches,
        otherwise,
    })
}
