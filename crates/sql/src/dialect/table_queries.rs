//! `TABLE t`, which is `SELECT * FROM t`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words after which a query begins.
const QUERY_FOLLOWS: [&str; 9] = [
    "as",
    "all",
    "distinct",
    "union",
    "except",
    "intersect",
    "explain",
    "analyze",
    "verbose",
];

/// Words that follow a column whose name is `table`, as in `SELECT n AS table FROM t`.
const ITEM_ENDS: [&str; 13] = [
    "from",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "fetch",
    "union",
    "except",
    "intersect",
    "window",
    "into",
];

fn ends_item(token: &TokenWithSpan) -> bool {
    ITEM_ENDS.contains(&word(token).as_str())
}

/// Whether a statement, in lower case, may contain such a query.
pub(crate) fn may_have_some(folded: &str) -> bool {
    let comment = folded.find("--");
    folded.match_indices("table").any(|(at, _)| {
        let before = folded[..at].trim_end();
        // A comment may hide the text before it.
        before.is_empty()
            || before.ends_with(['(', '/'])
            || comment.is_some_and(|comment| comment < at)
            || QUERY_FOLLOWS.iter().any(|word| before.ends_with(word))
    })
}

/// The word of a token, in lower case; empty if it is not a word.
fn word(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// The tokens with `SELECT * FROM` instead of `TABLE`; `None` if there is no such query.
pub(crate) fn expanded(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !is_blank(token)).collect();
    let is_query = |at: usize| {
        let begins = match at.checked_sub(1).map(|before| tokens[before]) {
            None => true,
            Some(before) => {
                before.token == Token::LParen || QUERY_FOLLOWS.contains(&word(before).as_str())
            }
        };
        let names_table = tokens
            .get(at + 1)
            .is_some_and(|next| matches!(next.token, Token::Word(_)) && !ends_item(next));
        begins && names_table && word(tokens[at]) == "table"
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|at| is_query(*at)).collect();
    if places.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * places.len());
    let mut places = places.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        if places.next_if_eq(&at).is_none() {
            out.push(token.clone());
            continue;
        }
        for new in [
            Token::make_word("SELECT", None),
            Token::Mul,
            Token::make_word("FROM", None),
        ] {
            out.push(TokenWithSpan::new(new, token.span));
        }
    }
    Some(out)
}
