//! The memory that the text of a statement requires: its tokens, its trees, its values, and the
//! plan.
//!
//! None of the layers below reserves this memory in a pool, and it is a hundred times the size of
//! the text. So a walk over the bytes estimates it before anything parses the text.

use crate::error::{SqlError, SqlResult};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::sync::Arc;

/// Shorter texts are not worth accounting for: few of them are planned at once.
const FREE_BYTES: usize = 4 << 10;
/// The bytes per token after planning: measured with lists of a million values (350), with rows of
/// VALUES (450) and with computed columns (850).
const PLANNED_TOKEN_BYTES: usize = 512;

/// The memory reserved for the text of a statement.
#[derive(Debug, Default)]
pub(crate) struct TextMemory {
    _held: Option<MemoryReservation>,
}

impl TextMemory {
    /// Reserves the memory for parsing and planning a statement.
    ///
    /// # Errors
    /// `53200` if queries do not have that much at the moment, `54000` if they never have.
    pub(crate) fn for_statement(sql: &str, pool: &Arc<dyn MemoryPool>) -> SqlResult<Self> {
        if sql.len() <= FREE_BYTES {
            return Ok(Self::default());
        }
        let tokens = tokens_at_most(sql);
        let bytes = sql.len() + tokens.saturating_mul(PLANNED_TOKEN_BYTES);
        let held = MemoryConsumer::new("StatementText").register(pool);
        let failed = match held.try_grow(bytes) {
            Ok(()) => return Ok(Self { _held: Some(held) }),
            Err(failed) => failed,
        };
        match pool.memory_limit() {
            MemoryLimit::Finite(limit) if bytes > limit => {
                // Half of what queries may have: others use some of it.
                let most = sql.len() as u128 * limit as u128 / bytes as u128 / 2;
                let message = format!(
                    "the statement of {} KB has about {tokens} words and signs, for which about {} MB \
                     are needed; queries have at most {} MB (memory_limit). {}",
                    sql.len() / 1000,
                    bytes / 1_000_000,
                    limit / 1_000_000,
                    advice(sql, most),
                );
                Err(SqlError::invalid("54000", message))
            }
            _ => Err(failed.into()),
        }
    }
}

/// What to send in place of a statement that is too long, of which `most` bytes would fit.
fn advice(sql: &str, most: u128) -> String {
    let word = sql.trim_start().get(..6).unwrap_or_default();
    if word.eq_ignore_ascii_case("insert") {
        return format!(
            "Split it into INSERTs of at most {} KB, or send the rows by COPY … FROM STDIN or line \
             protocol, which have no such limit",
            most / 1000
        );
    }
    "Send rows by COPY or line protocol, and write long lists into a table".to_owned()
}

/// An upper bound of the number of a text's tokens except blanks: its words and signs. A quoted
/// text is one token, except in statements with comments, dollars or backslashes, in which only the
/// tokenizer knows what a quote is.
fn tokens_at_most(sql: &str) -> usize {
    let knows_quotes = !["--", "/*", "$", "\\"]
        .iter()
        .any(|mark| sql.contains(mark));
    let (mut tokens, mut before, mut quote) = (0, ByteClass::Sign, None);
    for byte in sql.bytes() {
        if let Some(mark) = quote {
            quote = (byte != mark).then_some(mark);
            continue;
        }
        let kind = ByteClass::from_byte(byte);
        let goes_on = kind == before || (before, kind) == (ByteClass::Letter, ByteClass::Digit);
        tokens += usize::from(kind == ByteClass::Sign || kind != ByteClass::Blank && !goes_on);
        before = kind;
        if knows_quotes && matches!(byte, b'\'' | b'"') {
            quote = Some(byte);
        }
    }
    tokens
}

/// The kind of token that may contain a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteClass {
    Blank,
    Letter,
    Digit,
    /// A token by itself, or a part of one.
    Sign,
}

impl ByteClass {
    fn from_byte(byte: u8) -> Self {
        match byte {
            _ if byte.is_ascii_whitespace() => Self::Blank,
            b'0'..=b'9' => Self::Digit,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => Self::Letter,
            _ => Self::Sign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::grammar::MarigramDialect;
    use crate::dialect::random_texts::random_texts;
    use crate::execution::memory::AccountedPool;
    use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
    use marigram_engine::{Holder, MemoryAccountant};

    #[test]
    fn tokens_are_not_fewer_than_those_of_the_tokenizer() {
        let mut read = 0;
        for text in random_texts(&["xe'", "$", "$1", ",", "_", "=", "0x1f", "`"]) {
            let Ok(tokens) = Tokenizer::new(&MarigramDialect, &text).tokenize() else {
                continue;
            };
            let solid = tokens
                .iter()
                .filter(|token| !matches!(token, Token::Whitespace(_)));
            let (solid, counted) = (solid.count(), tokens_at_most(&text));
            assert!(
                counted >= solid,
                "{text:?} has {solid}, not {counted}: {tokens:?}"
            );
            read += 1;
        }
        assert!(read > 40_000, "{read} texts could be read");
    }

    #[test]
    fn what_is_quoted_is_one_where_that_is_sure() {
        assert_eq!(tokens_at_most("SELECT 'a, b, c', \"a b\" AS x1, 12"), 8);
        assert_eq!(tokens_at_most("SELECT 'it''s'"), 3);
        assert_eq!(tokens_at_most("SELECT 'a, b' -- it's"), 11);
    }

    #[test]
    fn long_texts_are_held_on_the_pool_until_they_are_done() {
        let memory = Arc::new(MemoryAccountant::new(64 << 20));
        let pool: Arc<dyn MemoryPool> = Arc::new(AccountedPool::new(Arc::clone(&memory)));
        let list = |values: usize| format!("SELECT 1 IN ({})", "1,".repeat(values));
        let held = TextMemory::for_statement(&list(10_000), &pool).unwrap();
        let used = memory.used_by(Holder::Query);
        assert!(used > 20_000 * PLANNED_TOKEN_BYTES, "{used}");
        drop(held);
        assert_eq!(memory.used_by(Holder::Query), 0);
        let error = TextMemory::for_statement(&list(1_000_000), &pool).unwrap_err();
        assert!(format!("{error:?}").contains("54000"), "{error:?}");
        assert!(
            format!("{error:?}").contains("write long lists"),
            "{error:?}"
        );
        // What the advice allows is accepted.
        let insert = |rows: usize| format!("INSERT INTO t VALUES {}", "(1, 2),".repeat(rows));
        let error = TextMemory::for_statement(&insert(1_000_000), &pool).unwrap_err();
        let error = format!("{error:?}");
        assert!(error.contains("54000") && error.contains("COPY"), "{error}");
        let kilobytes = error
            .split("at most ")
            .nth(2)
            .and_then(|rest| rest.split(' ').next());
        let kilobytes: usize = kilobytes.and_then(|text| text.parse().ok()).unwrap();
        assert!(kilobytes > 20, "{error}");
        TextMemory::for_statement(&insert(kilobytes * 1000 / 7 - 4), &pool).unwrap();
        let most = TextMemory::for_statement(&list(30_000), &pool).unwrap();
        let error = TextMemory::for_statement(&list(30_000), &pool).unwrap_err();
        let error = format!("{error:?}");
        assert!(error.contains("StatementText has 0 bytes"), "{error}");
        drop(most);
        TextMemory::for_statement("SELECT 1", &pool).unwrap();
    }
}
