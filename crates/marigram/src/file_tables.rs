//! Files in place of tables: `SELECT * FROM 'machine.csv'`.
//!
//! A text after FROM or JOIN whose extension is that of a file with rows names such a file. For
//! that one statement, it becomes a table over the file, with the delimiter and the header that an
//! import would detect.
//!
//! Invariant: only the embedded API and the command line use this module. Servers use
//! [`Query::execute`], which does not know files, so that no client reads files of the server's
//! machine.

use crate::database::Marigram;
use marigram_pgtext::{StatementLexer, Token};
use marigram_service::{Answer, Query, Result, ServiceError, Session};
use marigram_tabular::dialect::{self, DialectOptions};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Bytes from which the dialect of a CSV file is detected.
const SAMPLE_BYTES: u64 = 256 << 10;

/// Functions whose arguments use FROM as a keyword rather than as a clause.
const WITH_FROM: [&str; 5] = ["EXTRACT", "SUBSTRING", "TRIM", "OVERLAY", "POSITION"];

/// First words of statements that may name files.
const BEGINNINGS: [&str; 8] = [
    "SELECT",
    "WITH",
    "EXPLAIN",
    "INSERT",
    "CREATE",
    "COPY",
    "FROM",
    "SUMMARIZE",
];

/// Words after a table that are not an alias.
const NOT_ALIASES: [&str; 22] = [
    "WHERE",
    "GROUP",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "HAVING",
    "WINDOW",
    "QUALIFY",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "NATURAL",
    "ASOF",
    "ON",
    "USING",
];

/// Format of a file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueriedFileFormat {
    Csv,
    Parquet,
    Json,
}

/// A file that a statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedFile {
    /// Its range in the statement, with its quotes.
    place: Range<usize>,
    path: String,
    form: QueriedFileFormat,
    /// Whether the statement gives it no alias.
    is_unnamed: bool,
}

impl Marigram {
    /// Runs one statement like [`Query::execute`], and treats texts after FROM and JOIN that end in
    /// `.csv`, `.tsv`, `.parquet`, `.json`, `.jsonl` or `.ndjson` as files of this machine.
    ///
    /// # Errors
    /// As [`Query::execute`]; if a file does not exist or cannot be read, or
    /// [`OpenOptions::any_file`](crate::OpenOptions::any_file) is not set.
    pub async fn execute_with_files(
        &self,
        session: &mut Session,
        statement: &str,
    ) -> Result<Answer> {
        let files = named_files(statement);
        if files.is_empty() {
            return self.execute(session, statement).await;
        }
        let number = self.file_tables.fetch_add(1, Ordering::Relaxed);
        let mut names = Vec::new();
        let (mut text, mut end) = (String::new(), 0);
        let mut made = Ok(());
        for (at, file) in files.iter().enumerate() {
            let name = format!("__file_{number}_{at}");
            made = self.make_file_table(session, &name, file).await;
            if made.is_err() {
                break;
            }
            text.push_str(&statement[end..file.place.start]);
            text.extend(["\"", &name, "\""]);
            if file.is_unnamed {
                let stem = Path::new(&file.path).file_stem().unwrap_or_default();
                let stem = stem.to_string_lossy().replace('"', "\"\"");
                text.extend([" AS \"", &stem, "\""]);
            }
            end = file.place.end;
            names.push(name);
        }
        text.push_str(&statement[end..]);
        let answer = match made {
            Ok(()) => self.execute(session, &text).await,
            Err(error) => Err(error),
        };
        for name in names {
            // The plan holds what it reads.
            self.execute(session, &format!("DROP TABLE \"{name}\""))
                .await?;
        }
        answer.map_err(without_position)
    }

    async fn make_file_table(
        &self,
        session: &mut Session,
        name: &str,
        file: &NamedFile,
    ) -> Result<()> {
        let path = std::path::absolute(&file.path).map_err(|error| unreadable(file, &error))?;
        // A bare path would be a pattern, in which `[`, `*` and `?` have a meaning.
        let location =
            marigram_sql::file_url(&path).map_err(|error| invalid("58030", error.to_string()))?;
        let (form, options) = match file.form {
            QueriedFileFormat::Parquet => ("PARQUET", String::new()),
            QueriedFileFormat::Json => ("JSON", String::new()),
            QueriedFileFormat::Csv => ("CSV", csv_options(file, &path)?),
        };
        if !path.is_file() {
            return Err(invalid(
                "58P01",
                format!("there is no file '{}'", file.path),
            ));
        }
        let create = format!(
            "CREATE EXTERNAL TABLE \"{name}\" STORED AS {form} LOCATION '{location}'{options}"
        );
        match self.execute(session, &create).await {
            Ok(_) => Ok(()),
            Err(ServiceError::Invalid {
                sqlstate: "42501", ..
            }) => Err(invalid(
                "42501",
                format!(
                    "'{}' is a file, and this database was opened without OpenOptions::any_file, \
                     which lets statements read files",
                    file.path
                ),
            )),
            Err(error) => Err(without_position(error)),
        }
    }
}

/// The options that describe the dialect of a CSV file.
#[expect(
    clippy::disallowed_methods,
    reason = "the file is the user's, not the database's"
)]
fn csv_options(file: &NamedFile, path: &Path) -> Result<String> {
    let mut sample = Vec::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|opened| opened.take(SAMPLE_BYTES).read_to_end(&mut sample));
    read.map_err(|error| unreadable(file, &error))?;
    if sample.len() as u64 == SAMPLE_BYTES {
        let end = sample.iter().rposition(|byte| *byte == b'\n');
        sample.truncate(end.map_or(sample.len(), |end| end + 1));
    }
    let advice = "`marigram import` reads such files";
    let Ok(sample) = String::from_utf8(sample) else {
        let message = format!("'{}' is not UTF-8; {advice}", file.path);
        return Err(invalid("22021", message));
    };
    let sniffed = dialect::sniff(&sample, &DialectOptions::default());
    let dialect = sniffed.map_err(|error| unreadable(file, &error))?;
    let Some(dialect) = dialect else {
        return Err(invalid("22P04", format!("'{}' holds no rows", file.path)));
    };
    if dialect.skipped() > 0 || dialect.units.is_some() {
        let message = format!(
            "'{}' has lines that are neither its header nor its rows; {advice}",
            file.path
        );
        return Err(invalid("22P04", message));
    }
    let delimiter = match dialect.delimiter {
        b'\t' => "\t".to_owned(),
        other => char::from(other).to_string(),
    };
    Ok(format!(
        " OPTIONS ('format.has_header' '{}', 'format.delimiter' '{delimiter}')",
        dialect.header_line.is_some()
    ))
}

fn unreadable(file: &NamedFile, error: &std::io::Error) -> ServiceError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return invalid("58P01", format!("there is no file '{}'", file.path));
    }
    invalid("58030", format!("'{}' cannot be read: {error}", file.path))
}

fn invalid(sqlstate: &'static str, message: String) -> ServiceError {
    ServiceError::Invalid {
        message,
        position: None,
        sqlstate,
    }
}

/// The same error without its position, which refers to the rewritten statement.
fn without_position(error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Invalid {
            message, sqlstate, ..
        } => invalid(sqlstate, message),
        other => other,
    }
}

fn form_of(path: &str) -> Option<QueriedFileFormat> {
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "csv" | "tsv" => Some(QueriedFileFormat::Csv),
        "parquet" | "pq" => Some(QueriedFileFormat::Parquet),
        "json" | "jsonl" | "ndjson" => Some(QueriedFileFormat::Json),
        _ => None,
    }
}

/// The files that a statement names as tables, in their order.
fn named_files(statement: &str) -> Vec<NamedFile> {
    let mut files: Vec<NamedFile> = Vec::new();
    // For each open parenthesis, whether it belongs to a function with a FROM of its own.
    let mut parentheses: Vec<bool> = Vec::new();
    let (mut first, mut last) = (None, "");
    let mut lexer = StatementLexer::new(statement);
    // Tokens are looked at and not copied: an INSERT may have millions of them.
    while let Some(place) = lexer.next_token_range() {
        let written = &statement[place.clone()];
        let before = std::mem::take(&mut last);
        let begins_word = written.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if begins_word && !written.ends_with('\'') {
            last = written;
            match first {
                None if !is_one_of(&BEGINNINGS, written) => return Vec::new(),
                None => first = Some(written),
                // The table over the file is gone when the statement ends.
                Some(first)
                    if first.eq_ignore_ascii_case("CREATE")
                        && files.is_empty()
                        && written.eq_ignore_ascii_case("VIEW") =>
                {
                    return Vec::new();
                }
                Some(_) => {}
            }
        } else if written.starts_with('\'') {
            let is_source = is_one_of(&["FROM", "JOIN"], before)
                && parentheses.last() != Some(&true)
                // COPY itself handles COPY t FROM 'file'.
                && (!first.is_some_and(|first: &str| first.eq_ignore_ascii_case("COPY"))
                    || !parentheses.is_empty());
            if !is_source || lexer.is_open() {
                continue;
            }
            let path = written.get(1..written.len() - 1).unwrap_or_default();
            let path = path.replace("''", "'");
            if let Some(form) = form_of(&path) {
                files.push(NamedFile {
                    is_unnamed: is_unnamed(&statement[place.end..]),
                    place,
                    path,
                    form,
                });
            }
        } else if written == "(" {
            parentheses.push(is_one_of(&WITH_FROM, before));
        } else if written == ")" {
            parentheses.pop();
        }
    }
    files
}

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether what follows a table gives it no name.
fn is_unnamed(after: &str) -> bool {
    match StatementLexer::new(after).next() {
        Some((_, Token::Word(word))) => NOT_ALIASES.contains(&word.to_ascii_uppercase().as_str()),
        Some((_, Token::Quoted(_))) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(statement: &str) -> Vec<String> {
        named_files(statement)
            .into_iter()
            .map(|file| file.path)
            .collect()
    }

    #[test]
    fn files_stand_after_from_and_join_alone() {
        assert_eq!(paths("SELECT * FROM 'a.csv'"), ["a.csv"]);
        assert_eq!(
            paths(
                "select 'x.csv' from -- 'c.csv'\n 'it''s.PARQUET' p JOIN t ON true join 'b.json' b"
            ),
            ["it's.PARQUET", "b.json"]
        );
        assert_eq!(paths("INSERT INTO t SELECT * FROM 'a.tsv'"), ["a.tsv"]);
        assert_eq!(paths("COPY (SELECT * FROM 'a.csv') TO 'b.csv'"), ["a.csv"]);
        for none in [
            "COPY t FROM 'a.csv'",
            "SELECT EXTRACT(year FROM 'a.csv')",
            "SELECT trim(both 'x' from 'a.csv')",
            "DELETE FROM 'a.csv'",
            "SELECT $$ FROM 'a.csv' $$",
            "SELECT \" FROM 'a.csv'\"",
            "SELECT * FROM 'nothing'",
            "SELECT * FROM t WHERE x = 'a.csv'",
            "SELECT * FROM 'open.csv",
        ] {
            assert_eq!(paths(none), Vec::<String>::new(), "{none}");
        }
    }

    #[test]
    fn a_name_of_its_own_is_kept() {
        let unnamed = |statement: &str| named_files(statement)[0].is_unnamed;
        assert!(unnamed("SELECT * FROM 'a.csv'"));
        assert!(unnamed("SELECT * FROM 'a.csv' where x = 1"));
        assert!(unnamed("SELECT * FROM (SELECT * FROM 'a.csv') AS s"));
        assert!(!unnamed("SELECT * FROM 'a.csv' AS s"));
        assert!(!unnamed("SELECT * FROM 'a.csv' s"));
        assert!(!unnamed("SELECT * FROM 'a.csv' \"s\""));
    }
}
