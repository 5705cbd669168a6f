//! PostgreSQL's dialect without the feature that makes the parser read an argument twice, and with
//! DuckDB's `FROM t` and `SELECT * EXCLUDE (a) REPLACE (b AS c)`.
//!
//! If the name of an argument may be any expression (`json_object(a || b : 1)`), the parser first
//! reads each argument as a name, and reads it again if no `:` follows. Each level of nested calls
//! then doubles the time: a statement of 200 bytes takes hours. So here the name of an argument is
//! an identifier.
//!
//! The right side of `IS [NOT] DISTINCT FROM` and the bounds of `BETWEEN SYMMETRIC` are read here, too:
//! the parser takes everything up to the next comma for the former, and does not know the latter.
//!
//! A sign binds more tightly than `^`; `@`, `|/`, `||/` and `~` bind like all other operators of
//! PostgreSQL, less tightly than `+`; and in `NOT EXISTS (…) IS NULL`, `IS` comes first.

use crate::dialect::rows::{is_distinct_chain, symmetric_bounds};
use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::any::TypeId;

/// The dialect in which statements are parsed.
#[derive(Debug)]
pub(crate) struct MarigramDialect;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

impl Dialect for MarigramDialect {
    fn dialect(&self) -> TypeId {
        POSTGRES.dialect()
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRES.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRES.is_identifier_part(ch)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        POSTGRES.supports_unicode_string_literal()
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        POSTGRES.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        POSTGRES.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => {
                Some(Ok(self.prec_value(Precedence::PgOther)))
            }
            _ => POSTGRES.get_next_precedence(parser),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let (op, binds) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, Precedence::Caret),
            Token::Plus => (UnaryOperator::Plus, Precedence::Caret),
            Token::AtSign => (UnaryOperator::PGAbs, Precedence::PgOther),
            Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, Precedence::PgOther),
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, Precedence::PgOther),
            Token::Tilde => (UnaryOperator::BitwiseNot, Precedence::PgOther),
            Token::Word(word) if word.keyword == Keyword::NOT => {
                (UnaryOperator::Not, Precedence::UnaryNot)
            }
            _ => return None,
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(self.prec_value(binds));
        Some(operand.map(|operand| match (op, operand) {
            (
                UnaryOperator::Not,
                Expr::Exists {
                    subquery,
                    negated: false,
                },
            ) => Expr::Exists {
                subquery,
                negated: true,
            },
            (op, operand) => Expr::UnaryOp {
                op,
                expr: Box::new(operand),
            },
        }))
    }

    /// As in PostgreSQL, `ON` is no alias: in `INSERT … SELECT 1 ON CONFLICT …`, it begins a clause.
    fn is_column_alias(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        *kw != Keyword::ON && POSTGRES.is_column_alias(kw, parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        use Keyword::{ASYMMETRIC, BETWEEN, DISTINCT, FROM, IS, NOT, SYMMETRIC};
        if parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            return Some(distinct_from(
                parser,
                expr,
                precedence,
                Expr::IsDistinctFrom,
            ));
        }
        if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) {
            let made = distinct_from(parser, expr, precedence, Expr::IsNotDistinctFrom);
            return Some(made);
        }
        for (order, is_symmetric) in [(SYMMETRIC, true), (ASYMMETRIC, false)] {
            for (words, is_negated) in [
                (&[BETWEEN, order][..], false),
                (&[NOT, BETWEEN, order], true),
            ] {
                if parser.parse_keywords(words) {
                    let between = parser.parse_between(expr.clone(), is_negated);
                    return Some(if is_symmetric {
                        between.map(symmetric_bounds)
                    } else {
                        between
                    });
                }
            }
        }
        None
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        POSTGRES.supports_filter_during_aggregation()
    }

    fn supports_group_by_expr(&self) -> bool {
        POSTGRES.supports_group_by_expr()
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        POSTGRES.prec_value(prec)
    }

    fn allow_extract_custom(&self) -> bool {
        POSTGRES.allow_extract_custom()
    }

    fn allow_extract_single_quotes(&self) -> bool {
        POSTGRES.allow_extract_single_quotes()
    }

    fn supports_create_index_with_clause(&self) -> bool {
        POSTGRES.supports_create_index_with_clause()
    }

    fn supports_explain_with_utility_options(&self) -> bool {
        POSTGRES.supports_explain_with_utility_options()
    }

    fn supports_listen_notify(&self) -> bool {
        POSTGRES.supports_listen_notify()
    }

    fn supports_factorial_operator(&self) -> bool {
        POSTGRES.supports_factorial_operator()
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        POSTGRES.supports_bitwise_shift_operators()
    }

    fn supports_comment_on(&self) -> bool {
        POSTGRES.supports_comment_on()
    }

    fn supports_load_extension(&self) -> bool {
        POSTGRES.supports_load_extension()
    }

    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        POSTGRES.supports_named_fn_args_with_colon_operator()
    }

    fn supports_empty_projections(&self) -> bool {
        POSTGRES.supports_empty_projections()
    }

    fn supports_nested_comments(&self) -> bool {
        POSTGRES.supports_nested_comments()
    }

    fn supports_string_escape_constant(&self) -> bool {
        POSTGRES.supports_string_escape_constant()
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        POSTGRES.supports_numeric_literal_underscores()
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        POSTGRES.supports_array_typedef_with_brackets()
    }

    fn supports_geometric_types(&self) -> bool {
        POSTGRES.supports_geometric_types()
    }

    fn supports_set_names(&self) -> bool {
        POSTGRES.supports_set_names()
    }

    fn supports_alter_column_type_using(&self) -> bool {
        POSTGRES.supports_alter_column_type_using()
    }

    fn supports_notnull_operator(&self) -> bool {
        POSTGRES.supports_notnull_operator()
    }

    fn supports_interval_options(&self) -> bool {
        POSTGRES.supports_interval_options()
    }

    fn supports_insert_table_alias(&self) -> bool {
        POSTGRES.supports_insert_table_alias()
    }

    fn supports_create_table_like_parenthesized(&self) -> bool {
        POSTGRES.supports_create_table_like_parenthesized()
    }

    fn supports_select_wildcard_with_alias(&self) -> bool {
        POSTGRES.supports_select_wildcard_with_alias()
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_from_first_select(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        POSTGRES.supports_comma_separated_trim()
    }

    fn supports_xml_expressions(&self) -> bool {
        POSTGRES.supports_xml_expressions()
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        POSTGRES.supports_comment_optimizer_hint()
    }
}

/// The rest of `left IS [NOT] DISTINCT FROM …`: operators that bind less tightly end it.
fn distinct_from(
    parser: &mut Parser,
    left: &Expr,
    precedence: u8,
    made: fn(Box<Expr>, Box<Expr>) -> Expr,
) -> Result<Expr, ParserError> {
    // As in PostgreSQL, it has no associativity. A long chain would be copied again and again.
    if is_distinct_chain(left) {
        let found = parser.peek_token();
        return parser.expected("parentheses around the first IS DISTINCT FROM", found);
    }
    let right = parser.parse_subexpr(precedence)?;
    Ok(made(Box::new(left.clone()), Box::new(right)))
}

#[cfg(test)]
mod tests {
    use super::MarigramDialect;
    use crate::dialect::parse::parse;
    use crate::dialect::random_texts::random_texts;
    use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
    use marigram_pgtext::StatementLexer;

    #[test]
    fn calls_in_one_another_are_read_once() {
        for call in ["abs(", "greatest(1, ", "f(x => "] {
            let closed = ")".repeat(100 * call.matches('(').count());
            let sql = format!("select {}1{closed}", call.repeat(100));
            assert!(parse(&sql).is_ok(), "{call}");
        }
    }

    /// The lexer splits scripts, and the tokenizer parses their statements.
    #[test]
    fn the_lexer_sees_the_semicolons_of_the_tokenizer() {
        let mut read = 0;
        for text in random_texts(&[";", ";", "$1 "]) {
            // The tokenizer treats backslashes there as escapes, PostgreSQL does not.
            let has_prefix = ["N'", "X'", "b'", "&'"]
                .iter()
                .any(|mark| text.contains(mark));
            // The tokenizer takes a third dollar for the start of a parameter, PostgreSQL does not.
            if has_prefix && text.contains('\\') || text.contains("$$$") {
                continue;
            }
            let Ok(tokens) = Tokenizer::new(&MarigramDialect, &text).tokenize() else {
                continue;
            };
            // The tokenizer makes an operator of these, but PostgreSQL sees a comment.
            let has_comment = |token: &Token| {
                matches!(token, Token::CustomBinaryOperator(name)
                if name.contains("--") || name.contains("/*"))
            };
            if tokens.iter().any(has_comment) {
                continue;
            }
            let is_semicolon = |token: &&Token| matches!(token, Token::SemiColon);
            let theirs = tokens.iter().filter(is_semicolon).count();
            let mut lexer = StatementLexer::new(&text);
            let mut ours = 0;
            while let Some(token) = lexer.next_token_range() {
                ours += usize::from(&text[token] == ";");
            }
            assert_eq!(ours, theirs, "{text:?}: {tokens:?}");
            assert!(!lexer.is_open(), "{text:?}: {tokens:?}");
            read += 1;
        }
        assert!(read > 40_000, "{read} texts could be read");
    }
}
