//! `COPY t FROM 'file'` as it is written, and the options of every COPY.

use crate::dialect::identifiers::{accept_words, parse_name, parse_target};
use crate::dialect::statement::{CopyFileFormat, CopyFrom};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::path::Path;

/// Options by their names in lower case; taken one by one, so that what is left is unknown.
#[derive(Clone, Debug, Default)]
pub struct StatementOptions(Vec<(String, String)>);

impl StatementOptions {
    pub fn new(options: impl IntoIterator<Item = (String, String)>) -> Self {
        let lower = |(name, value): (String, String)| (name.to_lowercase(), value);
        Self(options.into_iter().map(lower).collect())
    }

    /// Adds an option.
    pub fn push(&mut self, name: &str, value: String) {
        self.0.push((name.to_lowercase(), value));
    }

    /// The value of an option; it is not there again.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Nanoseconds of a unit of the times of a TsFile: `precision`, milliseconds if it is not there.
    pub fn take_unit_ns(&mut self) -> SqlResult<i64> {
        match self.take("precision").as_deref() {
            None | Some("ms") => Ok(1_000_000),
            Some("s") => Ok(1_000_000_000),
            Some("us") => Ok(1_000),
            Some("ns") => Ok(1),
            Some(other) => Err(SqlError::syntax(format!(
                "'{other}' is no precision of times; use s, ms, us or ns"
            ))),
        }
    }

    /// Refuses what was not taken.
    pub fn end(&self) -> SqlResult<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::syntax(format!(
                "COPY has no option '{name}' for this form of file"
            ))),
        }
    }
}

/// Reads a COPY … FROM a file; `None` where it is another COPY.
///
/// # Errors
/// Where it is one and is not understood.
pub fn parse_from(parser: &mut Parser<'_>) -> SqlResult<Option<CopyFrom>> {
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

/// A word, a text in quotes or a number of an option.
fn option_word(parser: &mut Parser<'_>) -> SqlResult<String> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) | Token::Number(text, _) => Ok(text),
        _ => Ok(parser.expected("an option", token)?),
    }
}

/// The form by the name that a statement gives it.
fn named(name: &str) -> SqlResult<CopyFileFormat> {
    match name.to_ascii_lowercase().as_str() {
        "csv" => Ok(CopyFileFormat::Csv),
        "parquet" => Ok(CopyFileFormat::Parquet),
        "tsfile" => Ok(CopyFileFormat::TsFile),
        other => Err(SqlError::unsupported(format!(
            "'{other}' is no form of files that COPY knows; it knows csv, parquet and tsfile"
        ))),
    }
}

/// The form as told, or else by the file's ending.
pub fn form_of(path: &str, told: Option<&str>) -> SqlResult<CopyFileFormat> {
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
            "the name '{path}' does not tell the form of the file; end it in .csv, .parquet or \
                 .tsfile, or add FORMAT"
        ))),
    }
}
