//! The statement COPY, in its current syntax and in the older ones that drivers still send (`COPY t
//! FROM STDIN BINARY`, `… WITH CSV HEADER`).

use crate::postgres::error::PgError;
use marigram_pgtext::{StatementLexer, Token};

/// Format of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyDataFormat {
    /// Lines with escapes.
    Text,
    /// Comma-separated values.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

/// Meaning of the first line of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CopyHeader {
    /// Data.
    #[default]
    None,
    /// Names to skip.
    Skip,
    /// Names that must be those of the columns.
    Match,
}

/// How the data is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    /// The format.
    pub form: CopyDataFormat,
    /// Separates values.
    pub delimiter: u8,
    /// Represents NULL.
    pub null: String,
    /// Meaning of the first line.
    pub header: CopyHeader,
    /// Encloses CSV values.
    pub quote: u8,
    /// Precedes a quote inside a CSV value.
    pub escape: u8,
}

/// A COPY statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyStatement {
    /// Into a table.
    In {
        /// Database, if named.
        database: Option<String>,
        /// Table.
        table: String,
        /// Columns in the order of the data; all of the table's if empty.
        columns: Vec<String>,
        /// Format of the data.
        options: CopyOptions,
    },
    /// Out of a query.
    Out {
        /// The query, as SQL.
        query: String,
        /// Format of the data.
        options: CopyOptions,
    },
}

/// Parses a statement that begins with COPY.
///
/// # Errors
/// What cannot be parsed, and where.
pub(crate) fn parse(sql: &str) -> Result<CopyStatement, PgError> {
    let mut parser = CopyParser {
        sql,
        lexer: StatementLexer::new(sql),
        token: None,
        at: 0,
    };
    parser.advance();
    parser.expect("copy")?;
    let mut copy = if parser.token == Some(Token::Sign('(')) {
        let query = parser.lexer.parenthesized().map(str::to_owned);
        let query = query.ok_or_else(|| parser.error("a '(' is not closed"))?;
        parser.advance();
        parser.expect("to")?;
        parser.expect("stdout")?;
        CopyStatement::Out {
            query,
            options: default_options(),
        }
    } else {
        parser.table()?
    };
    let options = parser.options()?;
    match &mut copy {
        CopyStatement::In { options: own, .. } | CopyStatement::Out { options: own, .. } => {
            *own = options;
        }
    }
    Ok(copy)
}

fn default_options() -> CopyOptions {
    CopyOptions {
        form: CopyDataFormat::Text,
        delimiter: b'\t',
        null: "\\N".to_owned(),
        header: CopyHeader::None,
        quote: b'"',
        escape: b'"',
    }
}

struct CopyParser<'a> {
    sql: &'a str,
    lexer: StatementLexer<'a>,
    token: Option<Token>,
    /// Byte offset of `token`.
    at: usize,
}

impl CopyParser<'_> {
    fn advance(&mut self) {
        let next = self.lexer.next();
        self.at = next.as_ref().map_or(self.sql.len(), |(at, _)| *at);
        self.token = next.map(|(_, token)| token);
    }

    fn error(&self, message: &str) -> PgError {
        let near = self
            .sql
            .get(self.at..)
            .unwrap_or("")
            .chars()
            .take(20)
            .collect::<String>();
        let message = if near.is_empty() {
            format!("COPY: {message}, at the end of the statement")
        } else {
            format!("COPY: {message}, near '{near}'")
        };
        let position = self
            .sql
            .get(..self.at)
            .map(|before| before.chars().count() + 1);
        PgError {
            position,
            ..PgError::new("42601", message)
        }
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        self.token
            .as_ref()
            .is_some_and(|token| token.is_keyword(keyword))
    }

    fn take(&mut self, keyword: &str) -> bool {
        let is = self.is_keyword(keyword);
        if is {
            self.advance();
        }
        is
    }

    fn sign(&mut self, sign: char) -> bool {
        let is = self.token == Some(Token::Sign(sign));
        if is {
            self.advance();
        }
        is
    }

    fn expect(&mut self, keyword: &str) -> Result<(), PgError> {
        if self.take(keyword) {
            return Ok(());
        }
        Err(self.error(&format!("'{}' is expected", keyword.to_uppercase())))
    }

    fn name(&mut self) -> Result<String, PgError> {
        let name = self.token.as_ref().and_then(Token::name).map(str::to_owned);
        let name = name.ok_or_else(|| self.error("a name is expected"))?;
        self.advance();
        Ok(name)
    }

    /// `[database.][public.]table [(columns)] FROM STDIN | TO STDOUT`.
    fn table(&mut self) -> Result<CopyStatement, PgError> {
        let begin = self.at;
        let mut parts = vec![self.name()?];
        let mut end = self.at;
        while self.sign('.') {
            parts.push(self.name()?);
            end = self.at;
        }
        let raw_table = self.sql[begin..end].trim().to_owned();
        let mut columns = Vec::new();
        let list_begin = self.at;
        let mut raw_columns = "*".to_owned();
        if self.sign('(') {
            loop {
                columns.push(self.name()?);
                if !self.sign(',') {
                    break;
                }
            }
            self.sql[list_begin + 1..self.at].clone_into(&mut raw_columns);
            if !self.sign(')') {
                return Err(self.error("')' is expected"));
            }
        }
        if self.take("to") {
            self.expect("stdout")?;
            let query = format!("SELECT {raw_columns} FROM {raw_table}");
            return Ok(CopyStatement::Out {
                query,
                options: default_options(),
            });
        }
        self.expect("from")?;
        self.expect("stdin")?;
        let (database, table) = match parts.as_slice() {
            [table] => (None, table.clone()),
            [schema, table] if schema == "public" => (None, table.clone()),
            [database, table] | [database, _, table] => (Some(database.clone()), table.clone()),
            _ => return Err(self.error("the name of the table has too many parts")),
        };
        Ok(CopyStatement::In {
            database,
            table,
            columns,
            options: default_options(),
        })
    }

    fn options(&mut self) -> Result<CopyOptions, PgError> {
        let mut given = GivenCopyOptions::default();
        self.take("with");
        if self.sign('(') {
            while !self.sign(')') {
                self.option(&mut given, true)?;
                self.sign(',');
            }
        }
        self.sign(';');
        while self.token.is_some() {
            self.option(&mut given, false)?;
            self.sign(';');
        }
        given.finish()
    }

    fn option(&mut self, given: &mut GivenCopyOptions, modern: bool) -> Result<(), PgError> {
        let unknown = self.error("there is no such option");
        let option = self.name().map_err(|_| unknown.clone())?;
        match option.as_str() {
            "format" => {
                let form = self.name()?;
                given.form = Some(match form.as_str() {
                    "text" => CopyDataFormat::Text,
                    "csv" => CopyDataFormat::Csv,
                    "binary" => CopyDataFormat::Binary,
                    _ => return Err(self.error("the format must be text, csv or binary")),
                });
            }
            "binary" if !modern => given.form = Some(CopyDataFormat::Binary),
            "csv" if !modern => given.form = Some(CopyDataFormat::Csv),
            "delimiter" => given.delimiter = Some(self.byte()?),
            "quote" => given.quote = Some(self.byte()?),
            "escape" => given.escape = Some(self.byte()?),
            "null" => {
                self.take("as");
                given.null = Some(self.text()?);
            }
            "header" => {
                given.header = if self.take("match") {
                    CopyHeader::Match
                } else if self.take("false") || self.take("off") || self.take("0") {
                    CopyHeader::None
                } else {
                    let _ = self.take("true") || self.take("on") || self.take("1");
                    CopyHeader::Skip
                };
            }
            // Some drivers send these; there is only one encoding, and rows are never frozen.
            "encoding" => {
                self.advance();
            }
            "freeze" => {
                let _ = self.take("true") || self.take("on") || self.take("false");
            }
            _ => return Err(unknown),
        }
        Ok(())
    }

    fn text(&mut self) -> Result<String, PgError> {
        let Some(Token::Text(text)) = self.token.clone() else {
            return Err(self.error("a text in single quotes is expected"));
        };
        self.advance();
        Ok(text)
    }

    fn byte(&mut self) -> Result<u8, PgError> {
        self.take("as");
        let text = self.text()?;
        match text.as_bytes() {
            [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(self.error("one character of one byte is expected")),
        }
    }
}

#[derive(Default)]
struct GivenCopyOptions {
    form: Option<CopyDataFormat>,
    delimiter: Option<u8>,
    null: Option<String>,
    header: CopyHeader,
    quote: Option<u8>,
    escape: Option<u8>,
}

impl GivenCopyOptions {
    fn finish(self) -> Result<CopyOptions, PgError> {
        let form = self.form.unwrap_or(CopyDataFormat::Text);
        let csv = form == CopyDataFormat::Csv;
        let quote = self.quote.unwrap_or(b'"');
        let options = CopyOptions {
            form,
            delimiter: self.delimiter.unwrap_or(if csv { b',' } else { b'\t' }),
            null: self
                .null
                .unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() }),
            header: self.header,
            quote,
            escape: self.escape.unwrap_or(quote),
        };
        if csv && options.delimiter == options.quote {
            return Err(PgError::new(
                "22023",
                "COPY: delimiter and quote must differ",
            ));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_send() {
        let copy = parse("copy \"readings\" ( \"time\", \"tags_id\" ) from stdin binary;");
        let Ok(CopyStatement::In {
            database: None,
            table,
            columns,
            options,
        }) = copy
        else {
            panic!("{copy:?}")
        };
        assert_eq!(
            (table.as_str(), options.form),
            ("readings", CopyDataFormat::Binary)
        );
        assert_eq!(columns, ["time", "tags_id"]);

        let copy = parse("COPY main.public.T FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';')");
        let Ok(CopyStatement::In {
            database,
            table,
            columns,
            options,
        }) = copy
        else {
            panic!("{copy:?}")
        };
        assert_eq!((database.as_deref(), table.as_str()), (Some("main"), "t"));
        assert!(columns.is_empty());
        let expected = CopyOptions {
            form: CopyDataFormat::Csv,
            delimiter: b';',
            null: String::new(),
            header: CopyHeader::Skip,
            quote: b'"',
            escape: b'"',
        };
        assert_eq!(options, expected);

        let copy = parse("COPY t FROM STDIN WITH CSV HEADER NULL AS 'x'").unwrap();
        assert!(matches!(
            copy,
            CopyStatement::In {
                options: CopyOptions {
                    form: CopyDataFormat::Csv,
                    ..
                },
                ..
            }
        ));
    }

    #[test]
    fn out_of_a_query_or_a_table() {
        let copy = parse("COPY (SELECT ')' FROM t) TO STDOUT (FORMAT binary)").unwrap();
        assert!(matches!(&copy, CopyStatement::Out { query, .. } if query == "SELECT ')' FROM t"));
        let copy = parse("COPY \"T\" (a, \"B\") TO STDOUT").unwrap();
        let CopyStatement::Out { query, options } = copy else {
            panic!("{copy:?}")
        };
        assert_eq!(query, "SELECT a, \"B\" FROM \"T\"");
        assert_eq!(options, default_options());
    }

    #[test]
    fn errors_say_where() {
        let error = parse("COPY t FROM '/etc/passwd'").unwrap_err();
        assert_eq!((error.sqlstate, error.position), ("42601", Some(13)));
        assert!(error.message.contains("STDIN"), "{}", error.message);
        assert!(parse("COPY t FROM STDIN (FORMAT xml)").is_err());
        assert!(parse("COPY (select 1 TO STDOUT").is_err());
        assert!(parse("COPY").is_err());
    }
}
