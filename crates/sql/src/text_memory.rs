//! The memory that the text of a statement takes: its tokens, its trees, the values in it, the plan.
//!
//! Nobody below draws these on a memory pool, and they take a hundred times the space of the text. So
//! they are estimated before anything reads it, by a walk over the bytes.

use crate::error::{SqlError, SqlResult};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::sync::Arc;

/// Texts up to this are not worth it: few of them are planned at once.
const FREE_BYTES: usize = 4 << 10;
/// What a token comes to once it is planned, bytes: measured with lists of a million values (350),
/// with rows of VALUES (450) and with computed columns (850).
const PLANNED_TOKEN_BYTES: usize = 512;
/// What a token takes where a script is cut into statements, bytes.
const TOKEN_BYTES: usize = 128;

/// Memory that is held for the text of a statement.
#[derive(Debug, Default)]
pub struct TextMemory {
    _held: Option<MemoryReservation>,
}

impl TextMemory {
    /// For a statement that is parsed and planned.
    ///
    /// # Errors
    /// `53200` where queries do not have so much at the moment, `54000` where they never have.
    pub fn of_statement(sql: &str, pool: &Arc<dyn MemoryPool>) -> SqlResult<Self> {
        Self::hold(sql, PLANNED_TOKEN_BYTES, pool)
    }

    /// For a script that is cut into statements.
    ///
    /// # Errors
    /// As [`of_statement`](Self::of_statement).
    pub fn of_script(script: &str, pool: &Arc<dyn MemoryPool>) -> SqlResult<Self> {
        Self::hold(script, TOKEN_BYTES, pool)
    }

    fn hold(sql: &str, token_bytes: usize, pool: &Arc<dyn MemoryPool>) -> SqlResult<Self> {
        if sql.len() <= FREE_BYTES {
            return Ok(Self::default());
        }
        let tokens = tokens_at_most(sql);
        let bytes = sql.len() + tokens.saturating_mul(token_bytes);
        let held = MemoryConsumer::new("StatementText").register(pool);
        let failed = match held.try_grow(bytes) {
            Ok(()) => return Ok(Self { _held: Some(held) }),
            Err(failed) => failed,
        };
        match pool.memory_limit() {
            MemoryLimit::Finite(limit) if bytes > limit => {
                let message = format!(
                    "the statement has some {tokens} words and signs, for which about {} MB are \
                     needed; queries have at most {} MB (memory_limit): send rows by COPY or line \
                     protocol, and write long lists into a table",
                    bytes / 1_000_000,
                    limit / 1_000_000,
                );
                Err(SqlError::invalid("54000", message))
            }
            _ => Err(failed.into()),
        }
    }
}

/// No fewer tokens than a text has, blanks aside. What stands between quotes is one token, and a
/// comment is none.
fn tokens_at_most(sql: &str) -> usize {
    let text = sql.as_bytes();
    let (mut tokens, mut at) = (0, 0);
    while let Some(&first) = text.get(at) {
        let rest = &text[at..];
        let is_blank = first.is_ascii_whitespace();
        let is_comment = rest.starts_with(b"--") || rest.starts_with(b"/*");
        tokens += usize::from(!is_blank && !is_comment);
        at += match first {
            _ if is_blank => 1,
            b'-' if is_comment => through(rest, b"\n"),
            b'/' if is_comment => comment(rest),
            b'\'' | b'"' => 1 + through(&rest[1..], &[first]),
            b'E' | b'e' if rest.get(1) == Some(&b'\'') => 2 + escaped(&rest[2..]),
            b'$' => dollars(rest),
            // A name may have a dollar within.
            _ if is_word(first) => {
                let is_within = |byte: &&u8| is_word(**byte) || **byte == b'$';
                rest.iter().take_while(is_within).count()
            }
            _ => 1,
        };
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Bytes until a mark, with it; all where there is none.
fn through(text: &[u8], mark: &[u8]) -> usize {
    let found = text.windows(mark.len()).position(|part| part == mark);
    found.map_or(text.len(), |found| found + mark.len())
}

/// Bytes of a comment, with those in it.
fn comment(text: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Bytes until the quote that ends a text with escapes, with it.
fn escaped(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'\'' {
            break;
        }
    }
    at.min(text.len())
}

/// Bytes of a parameter, or of a text between `$mark$`.
fn dollars(text: &[u8]) -> usize {
    let name = 1 + text[1..].iter().take_while(|byte| is_word(**byte)).count();
    if text.get(name) != Some(&b'$') {
        return name;
    }
    let mark = &text[..=name];
    mark.len() + through(&text[mark.len()..], mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::MarigramDialect;
    use crate::memory::AccountedPool;
    use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
    use marigram_engine::{Holder, MemoryAccountant};
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn tokens_are_not_fewer_than_those_of_the_tokenizer() {
        let pieces = [
            "'",
            "''",
            "\"",
            "E'",
            "e'",
            "xe'",
            "\\",
            "\\'",
            "$",
            "$$",
            "$a$",
            "$1",
            "--",
            "\n",
            "/*",
            "*/",
            "-",
            "/",
            "*",
            "1",
            "1.5e3",
            ".",
            ",",
            "(",
            ")",
            "a",
            "é",
            "_",
            " ",
            "::",
            ";",
            "N'",
            "X'",
            "U&'",
            "b'",
            "\t",
            "<>",
            "||",
            "=",
            "'it''s'",
            "E'it\\'s'",
            "$$it's$$",
            "0x1f",
            "`",
        ];
        let mut rng = StdRng::seed_from_u64(1);
        let mut read = 0;
        for _ in 0..200_000 {
            let length = rng.random_range(1..14);
            let text: String = (0..length)
                .filter_map(|_| pieces.choose(&mut rng).copied())
                .collect();
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
    fn quotes_and_comments_are_not_counted_by_their_words() {
        let counted = |text: &str| tokens_at_most(text);
        assert_eq!(counted("SELECT 'a, b, c' -- 1, 2, 3"), 2);
        assert_eq!(counted("/* 1, /* 2 */ 3 */ SELECT $x$ 1, 2 $x$, $1"), 4);
        assert_eq!(counted("SELECT E'it\\'s, 1', \"a b\""), 4);
    }

    #[test]
    fn long_texts_are_held_on_the_pool_until_they_are_done() {
        let memory = Arc::new(MemoryAccountant::new(64 << 20));
        let pool: Arc<dyn MemoryPool> = Arc::new(AccountedPool::new(Arc::clone(&memory)));
        let list = |values: usize| format!("SELECT 1 IN ({})", "1,".repeat(values));
        let held = TextMemory::of_statement(&list(10_000), &pool).unwrap();
        let used = memory.used_by(Holder::Query);
        assert!(used > 20_000 * PLANNED_TOKEN_BYTES, "{used}");
        drop(held);
        assert_eq!(memory.used_by(Holder::Query), 0);
        let error = TextMemory::of_statement(&list(1_000_000), &pool).unwrap_err();
        assert!(format!("{error:?}").contains("54000"), "{error:?}");
        let most = TextMemory::of_statement(&list(30_000), &pool).unwrap();
        let error = TextMemory::of_statement(&list(30_000), &pool).unwrap_err();
        let error = format!("{error:?}");
        assert!(error.contains("StatementText has 0 bytes"), "{error}");
        drop(most);
        TextMemory::of_statement("SELECT 1", &pool).unwrap();
    }
}
