//! `\copy`: writes a table or the answer to a query to a file on this machine, or reads a file into
//! a table, even if the database is on a server.

use crate::answer;
use crate::client::DataClient;
use crate::export::{self, Export, check_reads};
use crate::import::{self, CellDelimiter, DateOrder, ReadOptions};
use crate::reply::StatementReply;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use marigram_model::quoted;
use marigram_pgtext::StatementLexer;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const FORM: &str = "\\copy TABLE|(QUERY) to 'FILE' or \\copy TABLE from 'FILE', with options such as \
                    (format csv, header, delimiter ';')";

/// What to copy.
#[derive(Debug, PartialEq, Eq)]
struct ShellCopy {
    /// A table name in SQL notation, or a query in parentheses.
    source: String,
    is_to: bool,
    file: PathBuf,
    options: Vec<(String, String)>,
}

/// Copies as the text after `\copy` says; returns a summary.
///
/// # Errors
/// If the text is not such a command, or the copy fails.
pub(super) fn run(text: &str, client: &mut DataClient) -> Result<String> {
    let copy = parse(text)?;
    if copy.is_to {
        return to_file(&copy, client);
    }
    from_file(&copy, client)
}

fn to_file(copy: &ShellCopy, client: &mut DataClient) -> Result<String> {
    let (mut format, mut header, mut delimiter, mut null) = (None, true, None, None);
    for (name, value) in &copy.options {
        match name.as_str() {
            "format" => {
                let Ok(known) = export::ExportFormat::from_str(value, true) else {
                    bail!("format is csv, parquet, lines or tsfile, not '{value}'");
                };
                format = Some(known);
            }
            "header" => header = truth(name, value)?,
            "delimiter" => delimiter = Some(delimiter_of(value)?),
            "null" => null = Some(value.clone()),
            _ => bail!(
                "{name} is not an option of \\copy … to; the options are format, header, delimiter, null"
            ),
        }
    }
    let is_query = copy.source.starts_with('(');
    let query = match copy.source.strip_prefix('(') {
        Some(query) => query.trim_end_matches(')').to_owned(),
        None => format!("SELECT * FROM {}", sql_name(&copy.source)),
    };
    if header && delimiter.is_none() && null.is_none() {
        let table = (!is_query).then(|| bare_name(&copy.source));
        let count = Export::copy(&copy.file, table, is_query.then_some(query), format)
            .export_rows(client)?;
        return Ok(format!("COPY {count}"));
    }
    let is_csv = |file: &PathBuf| {
        file.extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("csv"))
    };
    if format.map_or(!is_csv(&copy.file), |form| {
        form != export::ExportFormat::Csv
    }) {
        bail!("header, delimiter and null are for CSV: give (format csv, …)");
    }
    check_reads(&query)?;
    let rows = match client.execute(&query) {
        Ok(StatementReply::Rows(rows)) => rows,
        Ok(StatementReply::Done(tag)) => bail!("{tag}: the statement has no rows to copy"),
        Err(failure) => bail!("{}", failure.explain(&query)),
    };
    let file = File::create(&copy.file)
        .with_context(|| format!("cannot write {}", copy.file.display()))?;
    let mut out = BufWriter::new(file);
    let mut writer = answer::csv_builder()
        .with_header(header)
        .with_delimiter(delimiter.unwrap_or(b','))
        .with_null(null.unwrap_or_default())
        .build(&mut out);
    let empty = arrow::array::RecordBatch::new_empty(rows.schema.clone());
    writer.write(&answer::with_flat_values(&empty)?)?;
    let mut count = 0;
    for batch in rows.batches {
        let batch = batch?;
        count += batch.num_rows();
        writer.write(&answer::with_flat_values(&batch)?)?;
    }
    drop(writer);
    out.flush()?;
    Ok(format!("COPY {count}"))
}

fn from_file(copy: &ShellCopy, client: &mut DataClient) -> Result<String> {
    if copy.source.starts_with('(') {
        bail!("rows go into a table, not into a query");
    }
    let mut options = ReadOptions {
        table: Some(bare_name(&copy.source)),
        strict: true,
        keeps_nan: true,
        show_refused: 10,
        ..ReadOptions::default()
    };
    let mut replace = false;
    for (name, value) in &copy.options {
        match name.as_str() {
            "format" => {
                let Ok(known) = import::ImportFormat::from_str(value, true) else {
                    bail!("format is csv, parquet, lines or tsfile, not '{value}'");
                };
                options.format = Some(known);
            }
            "header" if truth(name, value)? => options.header = true,
            "header" => options.no_header = true,
            "delimiter" => options.delimiter = Some(CellDelimiter(delimiter_of(value)?)),
            "null" => options.null.push(value.clone()),
            "tz" => options.tz = Some(value.clone()),
            "encoding" => options.encoding = Some(value.clone()),
            "date_order" => {
                let Ok(order) = DateOrder::from_str(value, true) else {
                    bail!("date_order is ymd, dmy or mdy, not '{value}'");
                };
                options.date_order = Some(order);
            }
            "replace" => replace = truth(name, value)?,
            _ => bail!(
                "{name} is not an option of \\copy … from; the options are format, header, delimiter, null, tz, \
                 date_order, encoding, replace. `marigram import` has more"
            ),
        }
    }
    import::copy_in(client, &copy.file, &options, replace)
}

fn truth(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "" | "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => bail!("{name} is true or false, not '{value}'"),
    }
}

fn delimiter_of(value: &str) -> Result<u8> {
    match value.parse::<CellDelimiter>() {
        Ok(delimiter) => Ok(delimiter.0),
        Err(advice) => bail!("delimiter '{value}': {advice}"),
    }
}

/// The name of a table without quotation marks.
fn bare_name(name: &str) -> String {
    match name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_lowercase(),
    }
}

fn sql_name(name: &str) -> String {
    quoted(&bare_name(name))
}

fn parse(text: &str) -> Result<ShellCopy> {
    let mut words = CopyWords(text.trim());
    let source = words.next().with_context(|| FORM)?.to_owned();
    let is_to = match words.next().map(str::to_ascii_lowercase).as_deref() {
        Some("to") => true,
        Some("from") => false,
        Some(columns) if columns.starts_with('(') => {
            bail!("\\copy takes no list of columns: columns are found by their names in the file")
        }
        _ => bail!("{FORM}"),
    };
    let file = PathBuf::from(unquoted(words.next().with_context(|| FORM)?));
    let mut rest = words.0.trim();
    if let Some((with, after)) = rest.split_at_checked(4)
        && with.eq_ignore_ascii_case("with")
    {
        rest = after.trim();
    }
    let inner = rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let mut options = Vec::new();
    let mut words = CopyWords(inner.unwrap_or(rest));
    while let Some(name) = words.next() {
        if name == "," {
            continue;
        }
        let mut after = CopyWords(words.0);
        let value = after.next().filter(|word| *word != ",").unwrap_or("");
        // Options without parentheses follow one another, as in older PostgreSQL versions.
        let is_switch =
            inner.is_none() && matches!(name.to_ascii_lowercase().as_str(), "csv" | "header");
        if is_switch {
            let option = match name.to_ascii_lowercase().as_str() {
                "csv" => ("format".to_owned(), "csv".to_owned()),
                header => (header.to_owned(), String::new()),
            };
            options.push(option);
            continue;
        }
        if !value.is_empty() {
            words = after;
        }
        options.push((name.to_ascii_lowercase(), unquoted(value)));
    }
    Ok(ShellCopy {
        source,
        is_to,
        file,
        options,
    })
}

fn unquoted(word: &str) -> String {
    match word
        .strip_prefix('\'')
        .and_then(|word| word.strip_suffix('\''))
    {
        Some(inner) => inner.replace("''", "'"),
        None => word.to_owned(),
    }
}

/// Tokens: words, quoted texts, commas, and everything between parentheses as one token.
struct CopyWords<'a>(&'a str);

impl<'a> CopyWords<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let first = text.chars().next()?;
        let end = match first {
            ',' => 1,
            '(' => parentheses_end(text),
            '\'' | '"' => token_end(text),
            _ => text
                .find(|c: char| c.is_whitespace() || c == ',' || c == '(')
                .unwrap_or(text.len()),
        };
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// After the first token.
fn token_end(text: &str) -> usize {
    let first = StatementLexer::new(text).next_token_range();
    first.map_or(text.len(), |token| token.end)
}

/// After the parenthesis that closes the first one.
fn parentheses_end(text: &str) -> usize {
    let mut lexer = StatementLexer::new(text);
    lexer.next_token_range();
    lexer.parenthesized();
    lexer.offset()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, bool, String, String) {
        let copy = parse(text).unwrap();
        let options = copy
            .options
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let options = options.collect::<Vec<_>>().join(";");
        (
            copy.source,
            copy.is_to,
            copy.file.display().to_string(),
            options,
        )
    }

    #[test]
    fn commands_are_read_in_psqls_forms() {
        let (source, is_to, file, options) = parsed("t to 'a b.csv'");
        assert_eq!(
            (source.as_str(), is_to, file.as_str()),
            ("t", true, "a b.csv")
        );
        assert_eq!(options, "");
        let (source, is_to, file, options) = parsed(
            "(select ')' from t) TO x.csv with (format csv, header, delimiter ',', null '')",
        );
        assert_eq!(
            (source.as_str(), is_to, file.as_str()),
            ("(select ')' from t)", true, "x.csv")
        );
        assert_eq!(options, "format=csv;header=;delimiter=,;null=");
        let (source, is_to, _, options) = parsed("\"My t\" from 'it''s.csv' csv header");
        assert_eq!((source.as_str(), is_to), ("\"My t\"", false));
        assert_eq!(options, "format=csv;header=");
        let (.., options) = parsed("t from f (header false, tz 'Europe/Berlin')");
        assert_eq!(options, "header=false;tz=Europe/Berlin");
        for wrong in ["", "t", "t into 'x'", "t to", "t (a, b) from 'x'"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_folded_unless_quoted() {
        assert_eq!(bare_name("Weather"), "weather");
        assert_eq!(bare_name("\"Wea\"\"ther\""), "Wea\"ther");
        assert_eq!(sql_name("Weather"), "weather");
    }
}
