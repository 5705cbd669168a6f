//! Statements that the protocol layer itself answers: transactions, and a connection's prepared
//! statements.
//!
//! BEGIN, COMMIT and ROLLBACK are those of reference tables. A statement that changes tables of series is
//! durable by itself when it is answered. After an error within BEGIN … COMMIT, statements are refused
//! until the block ends, as drivers expect.

use marigram_pgtext::{StatementLexer, Token};

/// A statement that needs no database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControlStatement {
    /// `BEGIN`, `START TRANSACTION`
    Begin(TransactionModes),
    /// `COMMIT`, `END`.
    Commit,
    /// `ROLLBACK`, `ABORT`.
    Rollback,
    /// A statement that does nothing, with its command tag.
    Nothing(&'static str),
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE name`
    Release(String),
    /// `ROLLBACK TO name`: a failed block may continue.
    RollbackTo(String),
    /// `DEALLOCATE` of one statement, or of all.
    Deallocate(Option<String>),
}

/// The modes of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TransactionModes {
    /// Whether the block may only read, if it says so.
    pub read_only: Option<bool>,
    /// Whether its statements see one snapshot, if it says so.
    pub is_serializable: Option<bool>,
    /// Whether the block begins with `START TRANSACTION`, which the command tag repeats.
    pub is_started: bool,
}

impl TransactionModes {
    fn from_tokens(tokens: &[Token]) -> Self {
        let is =
            |token: &Token, expected: &str| matches!(token, Token::Word(word) if word == expected);
        let mut pairs = tokens.windows(2).filter(|pair| is(&pair[0], "read"));
        let read_only = pairs.find_map(|pair| {
            let (only, write) = (is(&pair[1], "only"), is(&pair[1], "write"));
            (only || write).then_some(only)
        });
        let mut levels = tokens.windows(2).filter(|pair| is(&pair[0], "level"));
        let level = levels.next().map(|pair| &pair[1]);
        Self {
            read_only,
            is_serializable: level
                .map(|level| is(level, "repeatable") || is(level, "serializable")),
            is_started: tokens.first().is_some_and(|first| is(first, "start")),
        }
    }
}

/// The control statement in `sql`, if it is one.
pub(super) fn recognize(sql: &str) -> Option<ControlStatement> {
    let tokens: Vec<Token> = StatementLexer::new(sql)
        .map(|(_, token)| token)
        .take(12)
        .collect();
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.as_str(),
        _ => "",
    };
    let name = |at: usize| tokens.get(at).and_then(Token::name).map(str::to_owned);
    // The word SAVEPOINT may precede the name, and is none itself if another follows.
    let savepoint = |at: usize| match word(at) {
        "savepoint" => name(at + 1).or_else(|| name(at)),
        _ => name(at),
    };
    let transaction = |at| matches!(word(at), "work" | "transaction");
    let control = match word(0) {
        // There is nothing that these could commit: the database refuses them.
        "commit" | "rollback" if word(1) == "prepared" => return None,
        "begin" => ControlStatement::Begin(TransactionModes::from_tokens(&tokens)),
        "start" if word(1) == "transaction" => {
            ControlStatement::Begin(TransactionModes::from_tokens(&tokens))
        }
        "commit" | "end" => ControlStatement::Commit,
        "rollback" if word(1) == "to" || (transaction(1) && word(2) == "to") => {
            let at = if transaction(1) { 3 } else { 2 };
            ControlStatement::RollbackTo(savepoint(at)?)
        }
        "rollback" | "abort" => ControlStatement::Rollback,
        "savepoint" => ControlStatement::Savepoint(name(1)?),
        "release" => ControlStatement::Release(savepoint(1)?),
        "deallocate" => {
            let at = if word(1) == "prepare" && tokens.len() > 2 {
                2
            } else {
                1
            };
            let all = word(at) == "all";
            ControlStatement::Deallocate(if all { None } else { Some(name(at)?) })
        }
        "discard" => match word(1) {
            "plans" => ControlStatement::Nothing("DISCARD PLANS"),
            "sequences" => ControlStatement::Nothing("DISCARD SEQUENCES"),
            "temp" | "temporary" => ControlStatement::Nothing("DISCARD TEMP"),
            _ => return None,
        },
        "unlisten" => ControlStatement::Nothing("UNLISTEN"),
        _ => return None,
    };
    Some(control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_send() {
        assert_eq!(
            recognize("begin"),
            Some(ControlStatement::Begin(TransactionModes::default()))
        );
        assert_eq!(
            recognize("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
            Some(ControlStatement::Begin(TransactionModes {
                read_only: Some(true),
                is_serializable: Some(true),
                is_started: true,
            }))
        );
        assert_eq!(
            recognize("ROLLBACK TO SAVEPOINT a"),
            Some(ControlStatement::RollbackTo("a".into()))
        );
        assert_eq!(
            recognize("rollback work to \"A b\""),
            Some(ControlStatement::RollbackTo("A b".into()))
        );
        assert_eq!(
            recognize("RELEASE savepoint"),
            Some(ControlStatement::Release("savepoint".into()))
        );
        assert_eq!(
            recognize("DEALLOCATE \"_pg3_0\""),
            Some(ControlStatement::Deallocate(Some("_pg3_0".into())))
        );
        assert_eq!(
            recognize("DEALLOCATE ALL"),
            Some(ControlStatement::Deallocate(None))
        );
    }

    #[test]
    fn what_is_the_databases_is_left_to_it() {
        for sql in [
            "SET timezone = 'UTC'",
            "SET TIME ZONE 'UTC'",
            "COMMIT PREPARED 'x'",
            "ROLLBACK PREPARED 'x'",
            "SET statement_timeout = 5",
            "SHOW TABLES",
            "SHOW COLUMNS FROM t",
            "select 1",
            "",
        ] {
            assert_eq!(recognize(sql), None, "{sql}");
        }
    }
}
