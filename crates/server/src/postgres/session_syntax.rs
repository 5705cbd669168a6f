//! Parses `PREPARE`, `EXECUTE`, `DECLARE`, `FETCH`, `MOVE`, `CLOSE` and `DISCARD`, the statements
//! about a connection's state, in PostgreSQL's syntax.

use crate::postgres::error::PgError;
use marigram_pgtext::{StatementLexer, Token};

/// A statement about the connection's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionStatement {
    /// `PREPARE name [(types)] AS statement`
    Prepare {
        /// Its name.
        name: String,
        /// Types of its first parameters, in lower case.
        types: Vec<String>,
        /// The statement to prepare.
        inner: InnerStatement,
    },
    /// `EXECUTE name [(arguments)]`
    Execute {
        /// Name of the statement.
        name: String,
        /// The arguments, as written.
        arguments: Vec<String>,
    },
    /// `DECLARE name CURSOR FOR query`
    Declare {
        /// Name of the cursor.
        name: String,
        /// Whether it outlives its transaction.
        hold: bool,
        /// Whether its rows are sent in binary.
        binary: bool,
        /// The query.
        inner: InnerStatement,
    },
    /// `FETCH` of a cursor, or `MOVE`.
    Fetch {
        /// Name of the cursor.
        name: String,
        /// Most rows.
        rows_max: usize,
        /// Whether the rows are skipped.
        is_move: bool,
    },
    /// `CLOSE` of a cursor, or of all.
    Close(Option<String>),
    /// `DISCARD ALL`
    DiscardAll,
}

/// A statement within a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InnerStatement {
    /// Its text.
    pub sql: String,
    /// Characters before it.
    pub before: usize,
}

/// Tokens of a statement about the connection.
struct SessionTokens<'a> {
    text: &'a str,
    lexer: StatementLexer<'a>,
    next: Option<Token>,
    /// Byte offset of `next`.
    at: usize,
    /// The syntax of the statement, for errors.
    usage: &'static str,
}

impl<'a> SessionTokens<'a> {
    fn new(text: &'a str) -> Self {
        let lexer = StatementLexer::new(text);
        let (next, at, usage) = (None, 0, "");
        let mut words = Self {
            text,
            lexer,
            next,
            at,
            usage,
        };
        words.step();
        words
    }

    fn step(&mut self) -> Option<Token> {
        let read = self.lexer.next();
        self.at = read.as_ref().map_or(self.text.len(), |(at, _)| *at);
        std::mem::replace(&mut self.next, read.map(|(_, token)| token))
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self
            .next
            .as_ref()
            .is_some_and(|token| token.is_keyword(word));
        if is_there {
            self.step();
        }
        is_there
    }

    fn takes_sign(&mut self, sign: char) -> bool {
        let is_there = self.next == Some(Token::Sign(sign));
        if is_there {
            self.step();
        }
        is_there
    }

    fn wrong(&self) -> PgError {
        let position = self.text[..self.at].chars().count() + 1;
        PgError {
            position: Some(position),
            ..PgError::new("42601", format!("this is written {}", self.usage))
        }
    }

    fn expect(&mut self, word: &str) -> Result<(), PgError> {
        if self.takes(word) {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    fn name(&mut self) -> Result<String, PgError> {
        let name = self.next.as_ref().and_then(Token::name).map(str::to_owned);
        let name = name.ok_or_else(|| self.wrong())?;
        self.step();
        Ok(name)
    }

    /// A signed number of rows.
    fn number(&mut self) -> Option<i64> {
        let is_negative = self.next == Some(Token::Sign('-'));
        if is_negative || self.next == Some(Token::Sign('+')) {
            self.step();
        }
        let Some(Token::Word(digits)) = &self.next else {
            return None;
        };
        let number: i64 = digits.parse().ok()?;
        self.step();
        Some(if is_negative { -number } else { number })
    }

    fn end(&mut self) -> Result<(), PgError> {
        while self.takes_sign(';') {}
        if self.next.is_none() {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    /// The rest of the statement.
    fn rest(&self) -> Result<InnerStatement, PgError> {
        let sql = self.text[self.at..].trim_end().to_owned();
        if sql.is_empty() {
            return Err(self.wrong());
        }
        let before = self.text[..self.at].chars().count();
        Ok(InnerStatement { sql, before })
    }

    /// The parenthesized list whose `(` was just read, split at its commas.
    fn list(&mut self) -> Result<Vec<String>, PgError> {
        let (mut items, mut begin, mut depth) = (Vec::new(), self.at, 0);
        loop {
            let at = self.at;
            match self.step().ok_or_else(|| self.wrong())? {
                Token::Sign('(' | '[') => depth += 1,
                Token::Sign(')') if depth == 0 => {
                    let last = self.text[begin..at].trim();
                    if !(last.is_empty() && items.is_empty()) {
                        items.push(last.to_owned());
                    }
                    return if items.iter().any(String::is_empty) {
                        Err(self.wrong())
                    } else {
                        Ok(items)
                    };
                }
                Token::Sign(')' | ']') => depth -= 1,
                Token::Sign(',') if depth == 0 => {
                    items.push(self.text[begin..at].trim().to_owned());
                    begin = at + 1;
                }
                _ => {}
            }
        }
    }
}

/// The statement about the connection in `sql`, if it is one.
///
/// # Errors
/// If it is malformed, or moves a cursor in an unsupported direction.
pub(super) fn recognize(sql: &str) -> Result<Option<SessionStatement>, PgError> {
    let mut words = SessionTokens::new(sql);
    while words.takes_sign(';') {}
    let Some(Token::Word(first)) = words.next.clone() else {
        return Ok(None);
    };
    let read = match first.as_str() {
        "prepare" => prepare,
        "execute" => execute,
        "declare" => declare,
        "fetch" | "move" => fetch,
        "close" => close,
        "discard" => discard,
        _ => return Ok(None),
    };
    read(&mut words).map(Some)
}

fn prepare(words: &mut SessionTokens<'_>) -> Result<SessionStatement, PgError> {
    words.usage = "PREPARE name [(types)] AS SELECT, INSERT, DELETE or VALUES";
    words.step();
    let name = words.name()?;
    let types = if words.takes_sign('(') {
        words.list()?
    } else {
        Vec::new()
    };
    words.expect("as")?;
    let is_query = match &words.next {
        Some(Token::Word(word)) => [
            "select", "insert", "delete", "update", "values", "with", "table",
        ]
        .contains(&&**word),
        Some(Token::Sign('(')) => true,
        _ => false,
    };
    if !is_query {
        return Err(words.wrong());
    }
    Ok(SessionStatement::Prepare {
        name,
        types: types.iter().map(|kind| kind.to_lowercase()).collect(),
        inner: words.rest()?,
    })
}

fn execute(words: &mut SessionTokens<'_>) -> Result<SessionStatement, PgError> {
    words.usage = "EXECUTE name [(arguments)]";
    words.step();
    let name = words.name()?;
    let arguments = if words.takes_sign('(') {
        words.list()?
    } else {
        Vec::new()
    };
    words.end()?;
    Ok(SessionStatement::Execute { name, arguments })
}

fn declare(words: &mut SessionTokens<'_>) -> Result<SessionStatement, PgError> {
    words.usage = "DECLARE name [BINARY] [NO SCROLL] CURSOR [WITH HOLD] FOR query";
    words.step();
    let name = words.name()?;
    let mut binary = false;
    while !words.takes("cursor") {
        if words.takes("binary") {
            binary = true;
        } else if words.takes("no") {
            words.expect("scroll")?;
        } else if words.takes("scroll") {
            let message = "cursors only go forward; leave out SCROLL";
            return Err(PgError::new("0A000", message));
        } else if !(words.takes("insensitive") || words.takes("asensitive")) {
            return Err(words.wrong());
        }
    }
    let hold = words.takes("with");
    if hold || words.takes("without") {
        words.expect("hold")?;
    }
    words.expect("for")?;
    Ok(SessionStatement::Declare {
        name,
        hold,
        binary,
        inner: words.rest()?,
    })
}

/// The direction of a FETCH or MOVE, after which only the cursor's name and `FROM` may follow.
fn fetch(words: &mut SessionTokens<'_>) -> Result<SessionStatement, PgError> {
    words.usage = "FETCH [NEXT | number | ALL | FORWARD [number | ALL]] [FROM] cursor";
    let is_move = words
        .next
        .as_ref()
        .is_some_and(|token| token.is_keyword("move"));
    words.step();
    let backward = || {
        let message = "a cursor can only scan forward";
        PgError::new("55000", message)
    };
    // A cursor may have the name of a direction.
    let mut only = SessionTokens::new(words.text);
    only.step();
    let is_only = only.name().is_ok() && only.end().is_ok();
    let mut goes_back = false;
    let mut rows = Some(1);
    if !is_only && !words.takes("next") {
        let is_forward = words.takes("forward");
        for word in ["prior", "first", "last", "absolute", "relative", "backward"] {
            goes_back |= !is_forward && words.takes(word);
        }
        if words.takes("all") {
            rows = None;
        } else if let Some(number) = words.number() {
            goes_back |= number <= 0;
            rows = Some(number);
        }
    }
    if !words.takes("from") {
        words.takes("in");
    }
    let name = words.name()?;
    words.end()?;
    if goes_back {
        return Err(backward());
    }
    let rows_max = rows.map_or(usize::MAX, |rows| {
        usize::try_from(rows).unwrap_or(usize::MAX)
    });
    Ok(SessionStatement::Fetch {
        name,
        rows_max,
        is_move,
    })
}

fn close(words: &mut SessionTokens<'_>) -> Result<SessionStatement, PgError> {
    words.usage = "CLOSE cursor, or CLOSE ALL";
    words.step();
    let is_all = words
        .next
        .as_ref()
        .is_some_and(|token| token.is_keyword("all"));
    let name = words.name()?;
    words.end()?;
    Ok(SessionStatement::Close((!is_all).then_some(name)))
}

fn discard(words: &mut SessionTokens<'_>) -> Result<SessionStatement, PgError> {
    words.usage = "DISCARD ALL";
    words.step();
    words.expect("all")?;
    words.end()?;
    Ok(SessionStatement::DiscardAll)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> SessionStatement {
        recognize(sql).unwrap().unwrap()
    }

    #[test]
    fn statements_are_prepared_and_executed() {
        let prepared = SessionStatement::Prepare {
            name: "p".to_owned(),
            types: vec!["int".to_owned(), "numeric(3, 1)".to_owned()],
            inner: InnerStatement {
                sql: "SELECT $1, 'ü;'".to_owned(),
                before: 34,
            },
        };
        let sql = "PREPARE P (int, NUMERIC(3, 1)) AS SELECT $1, 'ü;'";
        assert_eq!(read(sql), prepared);
        let executed = |arguments: &[&str]| SessionStatement::Execute {
            name: "Q r".to_owned(),
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(read("execute \"Q r\";"), executed(&[]));
        assert_eq!(
            read("execute \"Q r\" ( 1, ARRAY[1,2], f(2, ',)') )"),
            executed(&["1", "ARRAY[1,2]", "f(2, ',)')"])
        );
    }

    #[test]
    fn cursors_go_forward() {
        let fetch = |name: &str, rows_max, is_move| SessionStatement::Fetch {
            name: name.to_owned(),
            rows_max,
            is_move,
        };
        for (sql, expected) in [
            ("FETCH c", fetch("c", 1, false)),
            ("FETCH next", fetch("next", 1, false)),
            ("FETCH NEXT FROM c", fetch("c", 1, false)),
            ("FETCH FORWARD FROM c", fetch("c", 1, false)),
            ("FETCH FORWARD 2000 FROM \"a b\"", fetch("a b", 2000, false)),
            ("FETCH 10 IN c;", fetch("c", 10, false)),
            ("fetch all from c", fetch("c", usize::MAX, false)),
            ("MOVE FORWARD ALL c", fetch("c", usize::MAX, true)),
        ] {
            assert_eq!(read(sql), expected, "{sql}");
        }
        for sql in [
            "FETCH PRIOR FROM c",
            "FETCH BACKWARD 3 FROM c",
            "FETCH BACKWARD ALL FROM c",
            "FETCH -1 FROM c",
            "FETCH 0 FROM c",
            "MOVE ABSOLUTE 1 FROM c",
        ] {
            assert_eq!(recognize(sql).unwrap_err().sqlstate, "55000", "{sql}");
        }
    }

    #[test]
    fn cursors_are_declared_and_closed() {
        let declared = |hold, binary, before| SessionStatement::Declare {
            name: "c".to_owned(),
            hold,
            binary,
            inner: InnerStatement {
                sql: "SELECT 1".to_owned(),
                before,
            },
        };
        let sql = "DECLARE c CURSOR FOR SELECT 1";
        assert_eq!(read(sql), declared(false, false, 21));
        let sql = "declare C binary no scroll cursor with hold for SELECT 1";
        assert_eq!(read(sql), declared(true, true, 48));
        let sql = "DECLARE \"c\" CURSOR WITHOUT HOLD FOR SELECT 1";
        assert_eq!(read(sql), declared(false, false, 36));
        assert_eq!(
            read("close c"),
            SessionStatement::Close(Some("c".to_owned()))
        );
        assert_eq!(read("CLOSE ALL"), SessionStatement::Close(None));
        assert_eq!(read("discard all"), SessionStatement::DiscardAll);
    }

    #[test]
    fn what_is_written_wrongly_says_how_it_is_written() {
        for sql in [
            "PREPARE p",
            "PREPARE p AS",
            "PREPARE p AS COMMIT",
            "PREPARE p AS PREPARE q AS SELECT 1",
            "PREPARE p (int AS SELECT 1",
            "EXECUTE",
            "EXECUTE p(1,)",
            "EXECUTE p(1) 2",
            "DECLARE c CURSOR",
            "DECLARE c CURSOR FOR",
            "DECLARE c CUR FOR SELECT 1",
            "FETCH",
            "FETCH 5 FROM",
            "FETCH FROM c d",
            "CLOSE",
            "DISCARD x",
        ] {
            let error = recognize(sql).unwrap_err();
            assert_eq!(error.sqlstate, "42601", "{sql}");
            assert!(error.position.is_some(), "{sql}");
        }
        assert_eq!(recognize("SELECT 1").unwrap(), None);
        assert_eq!(recognize("\"fetch\" c").unwrap(), None);
        assert_eq!(recognize("").unwrap(), None);
    }
}
