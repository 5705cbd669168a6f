//! The clause in the tokens of a statement:
//! `SAMPLE BY width [FILL (how, …)] [ALIGN TO CALENDAR [TIME ZONE 'zone'] [WITH OFFSET '±hh:mm']]`.

use super::{MARK, sample_by_error};
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::identifiers::{accept_word, accept_words};
use crate::error::SqlResult;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use marigram_functions::duration::questdb_unit;

/// Whether a statement, in lower case, may contain the clause.
pub(crate) fn may_sample(folded: &str) -> bool {
    folded.contains("sample")
}

/// The tokens with a GROUP BY instead of each clause; `None` if there is no clause.
///
/// # Errors
/// If a clause is wrong.
pub(crate) fn marked(tokens: &[TokenWithSpan]) -> SqlResult<Option<Vec<TokenWithSpan>>> {
    let is = |token: &Token, expected: &str| {
        matches!(token, Token::Word(word) if word.quote_style.is_none()
            && word.value.eq_ignore_ascii_case(expected))
    };
    let (mut out, mut at, mut found) = (Vec::with_capacity(tokens.len()), 0, false);
    while let Some(token) = tokens.get(at) {
        let mut after = tokens[at + 1..].iter().map(|token| &token.token);
        let next = after.find(|token| !matches!(token, Token::Whitespace(_)));
        if !is(&token.token, "sample") || !next.is_some_and(|next| is(next, "by")) {
            out.push(token.clone());
            at += 1;
            continue;
        }
        let dialect = MarigramDialect;
        let rest = tokens[at..].to_vec();
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(rest);
        let clause = clause(&mut parser)?;
        let word = |text: &str| Token::make_word(text, None);
        let mut put = vec![word("GROUP"), word("BY"), word(MARK), Token::LParen];
        put.extend(clause);
        put.push(Token::RParen);
        out.extend(
            put.into_iter()
                .map(|put| TokenWithSpan::new(put, token.span)),
        );
        at += parser.index();
        found = true;
    }
    Ok(found.then_some(out))
}

/// The clause as arguments: width, zone or NULL, offset or NULL, and how to fill each aggregate: a
/// word as a text, or a constant in parentheses.
fn clause(parser: &mut Parser<'_>) -> SqlResult<Vec<Token>> {
    accept_words(parser, &["SAMPLE", "BY"]);
    let text = Token::SingleQuotedString;
    let mut arguments = vec![text(width(parser)?)];
    let fills = if accept_word(parser, "FILL") {
        fills(parser)?
    } else {
        Vec::new()
    };
    let (mut zone, mut offset) = (Token::make_keyword("NULL"), Token::make_keyword("NULL"));
    if accept_words(parser, &["ALIGN", "TO"]) {
        if accept_words(parser, &["FIRST", "OBSERVATION"]) {
            let message =
                "SAMPLE BY is aligned to the calendar; ALIGN TO FIRST OBSERVATION is not supported";
            return Err(sample_by_error("0A000", message));
        }
        if !accept_word(parser, "CALENDAR") {
            let found = parser.peek_token();
            return Ok(parser.expected("CALENDAR", found)?);
        }
        if accept_words(parser, &["TIME", "ZONE"]) {
            zone = text(parser.parse_literal_string()?);
        }
        if accept_words(parser, &["WITH", "OFFSET"]) {
            let written = parser.parse_literal_string()?;
            match minutes(&written) {
                Some(0) => {}
                Some(minutes) => offset = text(format!("{minutes} minutes")),
                None => {
                    let message =
                        format!("'{written}' is not an offset; write '00:30' or '-02:00'");
                    return Err(sample_by_error("22023", message));
                }
            }
        }
    }
    arguments.extend([Token::Comma, zone, Token::Comma, offset]);
    for fill in fills {
        arguments.push(Token::Comma);
        arguments.extend(fill);
    }
    Ok(arguments)
}

/// A number and a unit, in the form that `time_bucket` takes.
fn width(parser: &mut Parser<'_>) -> SqlResult<String> {
    let number = parser.parse_literal_uint()?;
    let found = parser.next_token();
    let unit = match &found.token {
        Token::Word(word) if word.quote_style.is_none() => questdb_unit(&word.value),
        _ => None,
    };
    let Some(unit) = unit else {
        return Ok(parser.expected(UNITS, found)?);
    };
    Ok(format!("{number}{unit}"))
}

const UNITS: &str = "a unit: n, U (microseconds), T (milliseconds), s, m, h, d, w, M (months) or y";

fn fills(parser: &mut Parser<'_>) -> SqlResult<Vec<Vec<Token>>> {
    parser.expect_token(&Token::LParen)?;
    let mut fills = Vec::new();
    loop {
        let found = parser.next_token();
        fills.push(match found.token {
            Token::Word(ref word) if word.quote_style.is_none() => {
                let how = word.value.to_lowercase();
                if !["none", "null", "prev", "linear"].contains(&how.as_str()) {
                    return Ok(parser.expected("NONE, NULL, PREV, LINEAR or a constant", found)?);
                }
                vec![Token::SingleQuotedString(how)]
            }
            Token::Minus => {
                let number = parser.next_token();
                if !matches!(number.token, Token::Number(..)) {
                    return Ok(parser.expected("a number", number)?);
                }
                vec![Token::LParen, Token::Minus, number.token, Token::RParen]
            }
            constant @ (Token::Number(..) | Token::SingleQuotedString(_)) => {
                vec![Token::LParen, constant, Token::RParen]
            }
            _ => return Ok(parser.expected("NONE, NULL, PREV, LINEAR or a constant", found)?),
        });
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            return Ok(fills);
        }
    }
}

/// `±hh:mm` in minutes.
fn minutes(text: &str) -> Option<i32> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| -> Option<i32> {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60).then_some(sign * (hours * 60 + minutes))
}
