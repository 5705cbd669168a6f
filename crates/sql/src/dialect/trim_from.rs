//! `trim(FROM x)` and `trim(LEADING FROM x)`: the parser requires the characters to trim before
//! FROM. So a FROM without them is removed.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Whether a statement, in lower case, may contain such calls.
pub(crate) fn may_trim(folded: &str) -> bool {
    folded.contains("trim")
}

fn is_word(token: Option<&&TokenWithSpan>, wanted: &[&str]) -> bool {
    token.is_some_and(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => wanted
            .iter()
            .any(|wanted| word.value.eq_ignore_ascii_case(wanted)),
        _ => false,
    })
}

/// The tokens without such FROMs; `None` if there are none.
pub(crate) fn without_from(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !is_blank(token)).collect();
    let before = |at: usize, back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let is_bare = |at: usize| {
        if !is_word(tokens.get(at), &["from"]) {
            return false;
        }
        let sides = usize::from(is_word(before(at, 1), &["leading", "trailing", "both"]));
        let opens = before(at, sides + 1).is_some_and(|token| token.token == Token::LParen);
        opens && is_word(before(at, sides + 2), &["trim"])
    };
    // Without a word, both sides are meant as well.
    let is_both = |at: usize| is_word(tokens.get(at), &["both"]) && is_bare(at + 1);
    let kept: Vec<TokenWithSpan> = (0..tokens.len())
        .filter(|at| !is_bare(*at) && !is_both(*at))
        .map(|at| tokens[at].clone())
        .collect();
    (kept.len() < tokens.len()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::grammar::MarigramDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    #[test]
    fn a_from_without_characters_is_left_out() {
        for (sql, expected) in [
            ("SELECT trim(FROM x)", Some("SELECT trim ( x )")),
            (
                "SELECT TRIM(both from x) FROM t",
                Some("SELECT TRIM ( x ) FROM t"),
            ),
            ("SELECT trim('x' FROM y) FROM t", None),
            ("SELECT trim(x) FROM t", None),
            ("SELECT 1 FROM trim", None),
        ] {
            let tokens = Tokenizer::new(&MarigramDialect, sql).tokenize_with_location();
            let kept = without_from(&tokens.expect("it is tokens"));
            let texts = kept.map(|kept| {
                let texts: Vec<String> = kept.iter().map(ToString::to_string).collect();
                texts.join(" ")
            });
            assert_eq!(texts.as_deref(), expected, "{sql}");
        }
    }
}
