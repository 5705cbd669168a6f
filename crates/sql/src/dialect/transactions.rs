//! Parses the statements that begin, end and divide transaction blocks.

use crate::dialect::identifiers::{accept_word, accept_words, parse_name};
use crate::dialect::statement::Command;
use crate::error::SqlResult;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use marigram_service::TransactionStep;

/// `BEGIN`, `START TRANSACTION`, `COMMIT`, `END`, `ROLLBACK`, `ABORT`, `SAVEPOINT`, `RELEASE`
///
/// # Errors
/// If a name is missing.
pub(crate) fn parse_step(parser: &mut Parser<'_>) -> SqlResult<Command> {
    if accept_word(parser, "SAVEPOINT") {
        let name = parse_name(parser)?;
        return Ok(Command::Transaction(
            TransactionStep::Savepoint(name),
            "SAVEPOINT",
        ));
    }
    if accept_word(parser, "RELEASE") {
        accept_word(parser, "SAVEPOINT");
        let name = parse_name(parser)?;
        return Ok(Command::Transaction(
            TransactionStep::Release(name),
            "RELEASE",
        ));
    }
    if accept_word(parser, "BEGIN") || accept_words(parser, &["START", "TRANSACTION"]) {
        let is_serializable = modes(parser);
        return Ok(Command::Transaction(
            TransactionStep::Begin { is_serializable },
            "BEGIN",
        ));
    }
    if accept_word(parser, "COMMIT") || accept_word(parser, "END") {
        modes(parser);
        return Ok(Command::Transaction(TransactionStep::Commit, "COMMIT"));
    }
    parser.next_token();
    let _ = accept_word(parser, "WORK") || accept_word(parser, "TRANSACTION");
    if accept_word(parser, "TO") {
        accept_word(parser, "SAVEPOINT");
        let name = parse_name(parser)?;
        return Ok(Command::Transaction(
            TransactionStep::RollBackTo(name),
            "ROLLBACK",
        ));
    }
    modes(parser);
    Ok(Command::Transaction(TransactionStep::RollBack, "ROLLBACK"))
}

/// Reads the modes of a transaction; whether its statements see one snapshot, if the modes say so.
fn modes(parser: &mut Parser<'_>) -> Option<bool> {
    let mut is_serializable = None;
    while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
        if accept_words(parser, &["ISOLATION", "LEVEL"]) {
            is_serializable = Some(
                accept_words(parser, &["REPEATABLE", "READ"])
                    || accept_word(parser, "SERIALIZABLE"),
            );
        } else {
            parser.next_token();
        }
    }
    is_serializable
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;

    fn step(sql: &str) -> TransactionStep {
        match parse(sql) {
            Ok(Command::Transaction(step, _)) => step,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn steps_are_told_apart() {
        let begin = |is_serializable| TransactionStep::Begin { is_serializable };
        assert_eq!(step("begin"), begin(None));
        assert_eq!(
            step("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
            begin(Some(true))
        );
        assert_eq!(
            step("BEGIN ISOLATION LEVEL READ COMMITTED"),
            begin(Some(false))
        );
        assert_eq!(step("end transaction"), TransactionStep::Commit);
        assert_eq!(step("abort"), TransactionStep::RollBack);
        let back = TransactionStep::RollBackTo("a".to_owned());
        assert_eq!(step("ROLLBACK WORK TO SAVEPOINT a"), back);
        assert_eq!(
            step("RELEASE \"A\""),
            TransactionStep::Release("A".to_owned())
        );
        assert_eq!(
            step("SAVEPOINT s"),
            TransactionStep::Savepoint("s".to_owned())
        );
    }
}
