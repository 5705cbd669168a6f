//! `marigram import`: files into a database.
//!
//! A thread reads and parses while this one writes. Good rows are stored and bad ones are named
//! with their line; nothing is dropped silently.

mod csv_rows;
mod infer;
mod line_rows;
mod parquet_rows;
mod refusals;
mod source;
mod time_text;
mod tsfile_rows;

use crate::client::{Client, IfMissing, Target};
use crate::terminal;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use marigram_model::{FieldType, TableSchema, WriteBatch};
use refusals::Refusals;
use source::Source;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Instant;
pub use time_text::Precision;

/// Batches that are parsed ahead of the writer.
const BATCHES_AHEAD: usize = 4;

/// Rows of a batch, about.
const BATCH_ROWS: usize = 20_000;

/// Form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileForm {
    /// Comma-separated values with a header line
    Csv,
    /// InfluxDB line protocol
    Lines,
    /// Apache Parquet
    Parquet,
    /// Apache TsFile, version 3 or 4
    Tsfile,
}

/// Read files into a database.
#[derive(Args)]
pub struct Import {
    /// Files (- for stdin); the form is told by the ending: .csv, .tsv, .lp, .line, .txt,
    /// .parquet, .tsfile, each also with .gz
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    options: ReadOptions,
}

/// How files are read.
#[derive(Args, Clone, Debug, Default)]
pub struct ReadOptions {
    /// Form of the files, where their ending does not tell
    #[arg(long, value_enum)]
    format: Option<FileForm>,
    /// Table [default: the file's name without its ending; for TsFile the file's own tables]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Time column [default: the table's, or one named time, timestamp, ts, date…]
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// Form of times, as strftime writes it, such as "%d.%m.%Y %H:%M:%S" [default: found out]
    #[arg(long, value_name = "FORMAT")]
    time_format: Option<String>,
    /// Unit of times that are numbers: s, ms, us, ns; line protocol without it is in ns, TsFile in
    /// ms [default: found out]
    #[arg(long, value_name = "UNIT")]
    precision: Option<Precision>,
    /// Columns that are tags, such as site,device [default: the table's]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    tags: Vec<String>,
    /// A tag with the same value in every row, such as site=north
    #[arg(long, value_name = "NAME=VALUE")]
    tag: Vec<String>,
    /// Types of columns, such as count=bigint,label=string [default: found out from a sample]
    #[arg(long, value_name = "NAME=TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Refused lines that are named one by one
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    show_refused: usize,
}

/// Where rows of a CSV or Parquet file go, and how its columns are understood.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The table.
    pub table: String,
    /// Its schema, if it exists.
    pub schema: Option<Arc<TableSchema>>,
    /// As told on the command line.
    pub options: ReadOptions,
    /// Tags with the same value in every row.
    pub constant_tags: Vec<(String, String)>,
    /// Types told on the command line.
    pub types: Vec<(String, FieldType)>,
}

/// Rows that were parsed together.
pub struct Parsed {
    /// The rows.
    pub batches: Vec<WriteBatch>,
    /// For each batch the line (or row of the file, for Parquet) of each row, from 1.
    pub lines: Vec<Vec<u64>>,
    /// Lines that are no rows, and why.
    pub bad: Vec<(u64, String)>,
}

impl Import {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let client = self.target.connect(IfMissing::Create)?;
        let mut client = client;
        let begin = Instant::now();
        let mut stored = 0;
        let mut refused = 0;
        for file in &self.files {
            let done = import_file(&mut client, file, &self.options)
                .with_context(|| format!("{}", file.display()))?;
            stored += done.stored;
            refused += done.refused;
        }
        client.close()?;
        if self.files.len() > 1 {
            let time = begin.elapsed();
            outln!(
                "{} in {} from {} ({})",
                terminal::counted(stored, "row"),
                terminal::span(time),
                terminal::counted(self.files.len() as u64, "file"),
                terminal::rate(stored, time)
            );
        }
        Ok(if refused > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Reads CSV with a comma and a header, as a file of it is read.
pub fn read_csv(
    csv: &[u8],
    reading: &Reading,
    send: &dyn Fn(Result<Parsed>) -> bool,
) -> Result<()> {
    csv_rows::read(csv, reading, b',', send)
}

/// What became of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    stored: u64,
    refused: u64,
}

fn import_file(client: &mut Client, path: &Path, options: &ReadOptions) -> Result<Done> {
    let form = form_of(path, options.format)?;
    let source = Source::open(path)?;
    let bar = terminal::progress(source.bytes_total());
    bar.set_prefix(name_of(path));
    let position = source.position();
    let (sender, parsed) = sync_channel(BATCHES_AHEAD);
    let reading = match form {
        FileForm::Lines => None,
        FileForm::Csv | FileForm::Parquet | FileForm::Tsfile => {
            Some(reading(client, path, options)?)
        }
    };
    let schemas = match form {
        FileForm::Tsfile => schemas(client),
        _ => tsfile_rows::Schemas::new(),
    };
    let lines_options = options.clone();
    let is_tabbed = ending(path).0.as_deref() == Some("tsv");
    let reader = thread::Builder::new()
        .name("marigram-import".into())
        .spawn(move || {
            let send = |item| sender.send(item).is_ok();
            let result = match (form, reading) {
                (FileForm::Csv, Some(reading)) => csv_rows::read(
                    source,
                    &reading,
                    if is_tabbed { b'\t' } else { b',' },
                    &send,
                ),
                (FileForm::Parquet, Some(reading)) => parquet_rows::read(source, &reading, &send),
                (FileForm::Tsfile, Some(reading)) => {
                    tsfile_rows::read(source, &reading, &schemas, &send)
                }
                _ => line_rows::read(source, &lines_options, &send),
            };
            if let Err(error) = result {
                send(Err(error));
            }
        })?;
    let written = write_all(client, &parsed, options, &bar, &position);
    drop(parsed);
    let joined = reader.join();
    bar.finish_and_clear();
    let done = written?;
    if joined.is_err() {
        bail!("the thread that reads the file died of a bug");
    }
    Ok(done)
}

/// Writes what the reader hands over; reports at the end.
fn write_all(
    client: &Client,
    parsed: &Receiver<Result<Parsed>>,
    options: &ReadOptions,
    bar: &indicatif::ProgressBar,
    position: &source::Position,
) -> Result<Done> {
    let begin = Instant::now();
    let mut refusals = Refusals::new(options.show_refused);
    let mut stored = 0;
    let mut failure = None;
    for item in parsed {
        let item = match item {
            Ok(item) => item,
            Err(error) => {
                failure = Some(error);
                break;
            }
        };
        refusals.extend(item.bad);
        if !item.batches.is_empty() {
            let reports = match client.write(item.batches) {
                Ok(reports) => reports,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            };
            for (report, lines) in reports.iter().zip(&item.lines) {
                stored += report.stored as u64;
                refusals.extend(report.rejected.iter().map(|rejected| {
                    let line = lines.get(rejected.row).copied().unwrap_or(0);
                    (line, rejected.reason.clone())
                }));
            }
        }
        bar.set_position(position.bytes());
        bar.set_message(terminal::rate(stored, begin.elapsed()));
    }
    bar.finish_and_clear();
    let time = begin.elapsed();
    outln!(
        "{}: {} stored in {} ({})",
        bar.prefix(),
        terminal::counted(stored, "row"),
        terminal::span(time),
        terminal::rate(stored, time)
    );
    refusals.print();
    match failure {
        Some(error) => Err(error),
        None => Ok(Done {
            stored,
            refused: refusals.count(),
        }),
    }
}

fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "stdin".to_owned();
    }
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The ending without `.gz`, in lower case, and the name before it.
fn ending(path: &Path) -> (Option<String>, String) {
    let name = name_of(path);
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.') {
        Some((stem, ending)) => (Some(ending.to_ascii_lowercase()), stem.to_owned()),
        None => (None, name.to_owned()),
    }
}

fn form_of(path: &Path, told: Option<FileForm>) -> Result<FileForm> {
    if let Some(form) = told {
        return Ok(form);
    }
    match ending(path).0.as_deref() {
        Some("csv" | "tsv") => Ok(FileForm::Csv),
        Some("lp" | "line" | "lines" | "influx" | "txt") => Ok(FileForm::Lines),
        Some("parquet" | "pq") => Ok(FileForm::Parquet),
        Some("tsfile") => Ok(FileForm::Tsfile),
        _ => bail!("its name does not tell its form; give --format csv, lines, parquet or tsfile"),
    }
}

/// The tables that exist, where the database is open in this process.
fn schemas(client: &Client) -> tsfile_rows::Schemas {
    let tables = client
        .local()
        .map(|db| db.engine().tables(client.database()));
    let tables = tables.and_then(Result::ok).unwrap_or_default();
    tables
        .into_iter()
        .map(|table| (table.name.clone(), table))
        .collect()
}

fn reading(client: &mut Client, path: &Path, options: &ReadOptions) -> Result<Reading> {
    let table = match &options.table {
        Some(table) => table.clone(),
        None if path.as_os_str() == "-" => bail!("which table? Give --table NAME"),
        None => ending(path).1,
    };
    let schema = match client.local() {
        Some(db) => db.engine().table(client.database(), &table).ok(),
        None => None,
    };
    let pair = |text: &str| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => bail!("'{text}' is not NAME=VALUE"),
    };
    let constant_tags = options
        .tag
        .iter()
        .map(|text| pair(text))
        .collect::<Result<_>>()?;
    let types = options.types.iter().map(|text| {
        let (name, kind) = pair(text)?;
        Ok((name, infer::named_type(&kind)?))
    });
    let types = types.collect::<Result<_>>()?;
    Ok(Reading {
        table,
        schema,
        options: options.clone(),
        constant_tags,
        types,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_tells_the_form() {
        let form = |name: &str| form_of(Path::new(name), None).ok();
        assert_eq!(form("a/b.csv"), Some(FileForm::Csv));
        assert_eq!(form("b.CSV.gz"), Some(FileForm::Csv));
        assert_eq!(form("b.lp.gz"), Some(FileForm::Lines));
        assert_eq!(form("b.parquet"), Some(FileForm::Parquet));
        assert_eq!(form("b.tsfile"), Some(FileForm::Tsfile));
        assert_eq!(form("b"), None);
        assert_eq!(
            form_of(Path::new("-"), Some(FileForm::Lines)).ok(),
            Some(FileForm::Lines)
        );
        assert_eq!(ending(Path::new("x/machine.2026.csv.gz")).1, "machine.2026");
    }
}
