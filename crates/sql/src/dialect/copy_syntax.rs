//! Parses `COPY t FROM 'file'`, and the options of every COPY.

use crate::dialect::identifiers::{accept_words, parse_name, parse_target};
use crate::dialect::statement::{CopyFileFormat, CopyFrom};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::path::Path;

/// Options by their names in lower case; known options are taken out one by one, so that unknown
/// ones remain.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementOptions(Vec<(String, String)>);

impl StatementOptions {
    pub(crate) fn new(options: impl IntoIterator<Item = (String, String)>) -> Self {
        let lower = |(name, value): (String, String)| (name.to_lowercase(), value);
        Self(options.into_iter().map(lower).collect())
    }

    /// Adds an option.
    pub(crate) fn push(&mut self, name: &str, value: String) {
        self.0.push((name.to_lowercase(), value));
    }

    /// Removes an option and returns its value.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// The unit of the times of a TsFile, in nanoseconds: `precision`, by default milliseconds.
    pub(crate) fn take_unit_ns(&mut self) -> SqlResult<i64> {
        match self.take("precision").as_deref() {
            None | Some("ms") => Ok(1_000_000),
            Some("s") => Ok(1_000_000_000),
            Some("us") => Ok(1_000),
            Some("ns") => Ok(1),
            Some(other) => Err(SqlError::syntax(format!(
                "'{other}' is not a precision of times; use s, ms, us or ns"
            ))),
        }
    }

    /// Refuses options that were not taken.
    pub(crate) fn end(&self) -> SqlResult<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::syntax(format!(
                "COPY has no option '{name}' for this file format"
            ))),
        }
    }
}

/// Reads a COPY … FROM a file; `None` if it is another form of COPY.
///
/// # Errors
/// If it is one and cannot be parsed.
pub(crate) fn parse_from(parser: &mut Parser<'_>) -> SqlResult<Option<CopyFrom>> {
    accept_words(parser, &["COPY"]);
    if parser.peek_token().token == Token::LParen {
        return Ok(None);
    }
    let target = parse_target(parser)?;
    if !accept_words(parser, &["FROM"]) {
        return Ok(None);
    }
    let Token::SingleQuotedString(path) = parser.next_token().token else {
        return Err(SqlError::syntax(
            "COPY … FROM needs the name of a file in quotes here; FROM STDIN is for PostgreSQL's \
             protocol",
        ));
    };
    let mut options = StatementOptions::default();
    if accept_words(parser, &["STORED", "AS"]) {
        options.push("format", parse_name(parser)?);
    }
    let _ = accept_words(parser, &["WITH"]) || accept_words(parser, &["OPTIONS"]);
    if parser.consume_token(&Token::LParen) {
        loop {
            let key = option_word(parser)?;
            let is_alone = matches!(parser.peek_token().token, Token::Comma | Token::RParen);
            let value = if is_alone {
                "true".to_owned()
            } else {
                option_word(parser)?
            };
            options.push(&key, value);
            if !parser.consume_token(&Token::Comma) {
                parser.expect_token(&Token::RParen)?;
                break;
            }
        }
    }
    let form = form_of(&path, options.take("format").as_deref())?;
    let mut copy = CopyFrom {
        target,
        path,
        form,
        delimiter: b',',
        has_header: true,
        unit_ns: 1_000_000,
    };
    match form {
        CopyFileFormat::Csv => {
            if let Some(delimiter) = options.take("delimiter") {
                let [byte] = delimiter.as_bytes() else {
                    return Err(SqlError::syntax("the delimiter of CSV is one character"));
                };
                copy.delimiter = *byte;
            }
            if let Some(header) = options.take("header") {
                copy.has_header = matches!(header.to_lowercase().as_str(), "true" | "on" | "1");
            }
        }
        CopyFileFormat::TsFile => copy.unit_ns = options.take_unit_ns()?,
        CopyFileFormat::Parquet => {}
    }
    options.end()?;
    Ok(Some(copy))
}

/// The word, the quoted text or the number that is the value of an option.
fn option_word(parser: &mut Parser<'_>) -> SqlResult<String> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) | Token::Number(text, _) => Ok(text),
        _ => Ok(parser.expected("an option", token)?),
    }
}

/// The file format that a statement names.
fn named(name: &str) -> SqlResult<CopyFileFormat> {
    match name.to_ascii_lowercase().as_str() {
        "csv" => Ok(CopyFileFormat::Csv),
        "parquet" => Ok(CopyFileFormat::Parquet),
        "tsfile" => Ok(CopyFileFormat::TsFile),
        other => Err(SqlError::unsupported(format!(
            "COPY does not support the file format '{other}'; it supports csv, parquet and tsfile"
        ))),
    }
}

/// The given format, or else the one that the file's extension implies.
pub(crate) fn form_of(path: &str, told: Option<&str>) -> SqlResult<CopyFileFormat> {
    if let Some(told) = told {
        return named(told);
    }
    match Path::new(path)
        .extension()
        .and_then(|ending| ending.to_str())
    {
        Some(ending) => named(if ending.eq_ignore_ascii_case("pq") {
            "parquet"
        } else {
            ending
        }),
        None => Err(SqlError::syntax(format!(
            "the name '{path}' does not imply a file format; end it in .csv, .parquet or \
                 .tsfile, or add FORMAT"
        ))),
    }
}
