//! `marigram import`: reads files into a database.
//!
//! Every file is read at least twice. First, `import` makes its plan (dialect, roles, types,
//! times), shows it, and checks the rows: rows that would replace each other stop the import before
//! the first one is written. Then one thread reads and parses while this one writes. Good rows are
//! stored, and bad ones are reported with their line; nothing is dropped silently.

mod column_roles;
mod content;
mod csv_plan;
mod csv_rows;
mod duplicate_advice;
mod duplicate_check;
mod existing_rows;
mod json_records;
mod line_rows;
mod new_columns;
mod number_times;
mod option_check;
mod options;
mod parquet_plan;
mod parquet_rows;
mod parquet_values;
mod plan_text;
mod prepared;
mod refusals;
mod repeated_hours;
mod row_values;
mod seen_rows;
mod series_steps;
mod source;
mod tables;
mod time_columns;
mod time_extras;
mod time_guess;
mod time_search;
mod tsfile_rows;

use crate::client::{ClientTarget, DataClient, IfMissing};
use crate::{interrupt, terminal};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use duplicate_check::DuplicateCheck;
use existing_rows::ExistingRows;
use marigram_model::{FieldType, TableSchema, WriteBatch};
use marigram_tabular::duplicate_keys::DuplicateKeys;
pub(crate) use marigram_tabular::layout::ColumnLayout as KnownColumns;
pub(crate) use marigram_tabular::time::Precision;
use number_times::LineTimes;
pub(crate) use options::{CellDelimiter, DateOrder, ReadOptions};
pub(crate) use prepared::layout_path;
use prepared::{PreparedFile, check_types, unify};
use refusals::RefusedLines;
use seen_rows::SeenRows;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Batches that are parsed ahead of the writer.
const BATCHES_AHEAD: usize = 4;

/// Approximate number of rows of a batch.
const BATCH_ROWS: usize = 20_000;

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// Comma-separated values with a header line
    Csv,
    /// JSON lines: an object on each line
    Jsonl,
    /// InfluxDB line protocol
    Lines,
    /// Apache Parquet
    Parquet,
    /// Apache TsFile, version 3 or 4
    Tsfile,
}

/// Read files into a database.
#[derive(Args)]
pub(crate) struct Import {
    /// Files (- for stdin); the extension selects the format: .csv, .tsv, .jsonl, .lp, .line,
    /// .txt, .parquet, .tsfile, each also with .gz or .zst
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: ClientTarget,
    /// Show how the files would be read, and what would happen; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
    /// Also store rows with the same time and tags; the last values win
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    options: ReadOptions,
}

/// Where the rows of a CSV or Parquet file go, and how its columns are interpreted.
#[derive(Clone, Debug)]
pub(crate) struct ReadPlanOptions {
    /// The table.
    pub table: String,
    /// Its schema, if it exists and is open in this process.
    pub schema: Option<Arc<TableSchema>>,
    /// Its columns, if it exists.
    pub known: Option<KnownColumns>,
    /// The columns of the table that the file was exported from.
    pub layout: Option<KnownColumns>,
    /// As given on the command line.
    pub options: ReadOptions,
    /// Tags with the same value in every row.
    pub constant_tags: Vec<(String, String)>,
    /// Types given on the command line.
    pub types: Vec<(String, FieldType)>,
    /// The time of rows that have none, in ns: the same whenever the file is read.
    pub now_ns: i64,
}

/// Rows that were parsed together.
pub(crate) struct ParsedBatch {
    /// The rows.
    pub batches: Vec<WriteBatch>,
    /// For each batch, the line of each row (or the row of the file, for Parquet), from 1.
    pub lines: Vec<Vec<u64>>,
    /// Lines that are not rows, and why.
    pub bad: Vec<(u64, String)>,
    /// Rows without a value: a table stores nothing of them.
    pub empty: u64,
}

impl Import {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut client = if self.target.is_new()? {
            None
        } else {
            Some(self.target.connect(IfMissing::Fail)?)
        };
        let mut files = Vec::new();
        for path in &self.files {
            let file = PreparedFile::new(path, &self.options, client.as_mut());
            files.push(file.with_context(|| name_of(path))?);
        }
        unify(&mut files);
        check_types(&files)?;
        if let Some(client) = &client {
            tables::know(client, &mut files);
        }
        for file in &files {
            if self.dry_run {
                out!("{}", file.describe());
            } else {
                errout!("{}", file.describe());
            }
        }
        let checked = check_all(&files, client.as_mut(), self.dry_run)?;
        tell_rows(&files, &checked, self.dry_run);
        let found = replaced_rows(checked.check, &files)?;
        if found.repeats > 0 && !self.replace {
            bail!("{}", duplicate_advice::reason(&found, &files)?);
        }
        let existing = &checked.existing;
        let can_ask = !self.yes && is_asked();
        if existing.changed > 0 && !self.replace && (self.dry_run || !can_ask) {
            bail!("{}", existing.reason(&names(&files), "--replace"));
        }
        if found.equal > 0 && files.iter().any(|file| file.form != ImportFormat::Lines) {
            let (rows, have) = match found.equal {
                1 => ("1 row".to_owned(), "has"),
                rows => (terminal::counted(rows, "row"), "have"),
            };
            erroutln!(
                "{rows} {have} the time and the tags of another row, and no other value: they make up one"
            );
        }
        if let Some(summary) = existing.summary() {
            erroutln!("{summary}");
        }
        if self.dry_run {
            let (rows, bad) = (checked.rows, checked.bad);
            outln!(
                "nothing was written: {} would be stored, {} refused, {} replaced by others{}",
                terminal::counted(rows, "row"),
                terminal::count(bad),
                terminal::count(found.repeats),
                skipped(checked.empty)
            );
            return Ok(ExitCode::SUCCESS);
        }
        let question = match existing.changed {
            0 => "Import? [Y/n] ".to_owned(),
            _ if self.replace => "Import? [Y/n] ".to_owned(),
            changed => format!(
                "Import, and replace the values of {}? [y/N] ",
                terminal::counted(changed, "row")
            ),
        };
        if can_ask && !agreed(&question)? {
            erroutln!("nothing was written");
            return Ok(ExitCode::FAILURE);
        }
        let mut client = match client.take() {
            Some(client) => client,
            None => self.target.connect(IfMissing::Create)?,
        };
        tables::create(&mut client, &mut files, &checked.columns)?;
        let before = tables::count(&mut client, &checked.spans);
        let begin = Instant::now();
        let mut total = ImportedFile::default();
        for file in &files {
            let done = write_file(&client, file).with_context(|| file.name.clone())?;
            if files.len() > 1 {
                report(&file.name, &done, None);
            }
            total.add(&done);
        }
        total.time = begin.elapsed();
        let after = tables::count(&mut client, &checked.spans);
        client.close()?;
        let replaced = total.stored.saturating_sub(after.saturating_sub(before));
        let name = match files.as_slice() {
            [file] => file.name.clone(),
            files => terminal::counted(files.len() as u64, "file"),
        };
        report(&name, &total, Some(replaced));
        Ok(if total.refused > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Reads a file into an existing table, as the shell's `\\copy` does, and reports the result.
///
/// # Errors
/// If there is no such table, the file cannot be read, its rows would replace each other and the user does
/// not want that, or some of them are refused; the others are stored then.
pub(crate) fn copy_in(
    client: &mut DataClient,
    path: &Path,
    options: &ReadOptions,
    replace: bool,
) -> Result<String> {
    let mut options = options.clone();
    let asked = options.table.clone();
    let opened = content::open(path, options.format).with_context(|| name_of(path))?;
    let is_lines = opened.form == ImportFormat::Lines;
    if is_lines && line_rows::layout(opened.input.source()?, None)?.is_none() {
        // Lines name their tables; below, they must be the one that was asked for.
        options.table = None;
    }
    let prepared =
        PreparedFile::new(path, &options, Some(client)).with_context(|| name_of(path))?;
    if prepared.form != ImportFormat::Lines && prepared.reading.known.is_none() {
        bail!(
            "there is no table '{}'; `marigram import` creates one from a file",
            prepared.reading.table
        );
    }
    let mut files = vec![prepared];
    check_types(&files)?;
    tables::know(client, &mut files);
    let checked = check_all(&files, Some(&mut *client), false)?;
    if let Some(asked) = &asked
        && is_lines
        && let Some(other) = checked.columns.keys().find(|table| *table != asked)
    {
        bail!("the file has lines of table '{other}'; nothing was written");
    }
    let found = replaced_rows(checked.check, &files)?;
    if found.repeats > 0 && !replace {
        bail!(
            "{}",
            duplicate_advice::reason(&found, &files)?.replace("--replace", "(replace)")
        );
    }
    if checked.existing.changed > 0 && !replace {
        bail!("{}", checked.existing.reason(&names(&files), "(replace)"));
    }
    let contents = files.iter().filter_map(|file| file.content_note.clone());
    let rows = checked.seen.iter().flat_map(|seen| seen.notes(None));
    for note in contents.chain(rows) {
        erroutln!("note: {note}");
    }
    tables::create(client, &mut files, &checked.columns)?;
    let done = write_file(client, &files[0])?;
    let copied = format!("COPY {}{}", done.stored, skipped(done.empty));
    if done.refused > 0 {
        bail!("{copied}, {} refused", terminal::count(done.refused));
    }
    Ok(copied)
}

/// Shows what the rows of the files say, below the plans.
fn tell_rows(files: &[PreparedFile], checked: &CheckedFiles, is_dry_run: bool) {
    for (file, seen) in files.iter().zip(&checked.seen) {
        let name = (files.len() > 1).then_some(file.name.as_str());
        let columns = file.is_unplanned().then_some(&checked.columns);
        let mut text = seen.describe(name, columns);
        for note in seen.notes(name) {
            let _ = writeln!(text, "  note    {note}");
        }
        if is_dry_run {
            out!("{text}");
        } else {
            errout!("{text}");
        }
    }
}

/// Whether a user can answer a question.
fn is_asked() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks whether to continue; the capital letter in the question is the answer of an empty line.
fn agreed(question: &str) -> Result<bool> {
    errout!("{question}");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(match answer.trim().to_ascii_lowercase().as_str() {
        "" => question.contains("[Y/"),
        answer => matches!(answer, "y" | "yes"),
    })
}

fn names(files: &[PreparedFile]) -> Vec<String> {
    files.iter().map(|file| file.name.clone()).collect()
}

/// Reports rows that have no value.
fn skipped(empty: u64) -> String {
    match empty {
        0 => String::new(),
        empty => format!(", {} without a value skipped", terminal::count(empty)),
    }
}

/// Reports the result of one file, or of all.
fn report(name: &str, done: &ImportedFile, replaced: Option<u64>) {
    let replaced = match replaced {
        Some(replaced) => format!(", {} replaced", terminal::count(replaced)),
        None => String::new(),
    };
    outln!(
        "{name}: {} read, {} stored{replaced}, {} refused{} in {} ({})",
        terminal::counted(done.stored + done.refused + done.empty, "row"),
        terminal::count(done.stored),
        terminal::count(done.refused),
        skipped(done.empty),
        terminal::span(done.time),
        terminal::rate(done.stored, done.time)
    );
}

/// Reads the CSV in the same way as a CSV file.
pub(crate) fn read_csv(
    csv: &'static [u8],
    reading: &ReadPlanOptions,
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let open = || -> Result<Box<dyn Read>> { Ok(Box::new(csv)) };
    let plan = csv_plan::plan(&open, reading, csv_plan::TextKind::Csv)?;
    let steps = Arc::new(plan.series_steps(&open, &reading.options)?);
    csv_rows::read(open()?, reading, (&plan, steps), send)
}

/// The result of one file.
#[derive(Clone, Copy, Debug, Default)]
struct ImportedFile {
    stored: u64,
    refused: u64,
    empty: u64,
    time: Duration,
}

impl ImportedFile {
    fn add(&mut self, other: &Self) {
        self.stored += other.stored;
        self.refused += other.refused;
        self.empty += other.empty;
    }
}

/// Results of the first reading of all files.
struct CheckedFiles {
    check: DuplicateCheck,
    existing: ExistingRows,
    /// What the rows of each file say.
    seen: Vec<SeenRows>,
    spans: tables::TableTimeSpans,
    columns: tables::NewTableColumns,
    rows: u64,
    bad: u64,
    empty: u64,
}

/// Reads all files, and compares their rows with those of `client`; `tells` says whether to report the
/// rows that would be refused.
fn check_all(
    files: &[PreparedFile],
    mut client: Option<&mut DataClient>,
    tells: bool,
) -> Result<CheckedFiles> {
    let mut check = DuplicateCheck::new();
    let mut existing = ExistingRows::default();
    let mut columns = tables::NewTableColumns::new();
    let mut empty = 0;
    let mut seen = Vec::new();
    for (number, file) in files.iter().enumerate() {
        check.begin_file(number);
        let mut file_rows = SeenRows::new(file.reading.now_ns);
        let by_field = file.form == ImportFormat::Lines;
        let mut refusals = RefusedLines::new(file.reading.options.show_refused);
        let mut times = LineTimes::new();
        let is_guessed = file.has_unknown_unit();
        read_aside(file, "checking", |mut item, _| {
            check.add(&item, by_field)?;
            for (batch, lines) in item.batches.iter().zip(&item.lines).filter(|_| is_guessed) {
                times.add(&batch.times, lines);
            }
            if tells {
                refusals.extend(std::mem::take(&mut item.bad));
            }
            empty += item.empty;
            for (batch, lines) in item.batches.iter().zip(&item.lines) {
                tables::gather(&mut columns, batch, file.time_name());
                let known = match client.as_deref_mut() {
                    Some(client) => existing.known(client, &batch.table)?,
                    None => None,
                };
                let tags = known.into_iter().flat_map(|known| &known.tags);
                file_rows.add(batch, lines, tags.map(|(tag, _)| tag.as_str()));
                if let Some(known) = known
                    && file.reading.options.strict
                {
                    new_columns::check_strict(batch, known)?;
                }
            }
            match client.as_deref_mut() {
                Some(client) => existing.add(client, number as u64, item),
                None => Ok(()),
            }
        })
        .with_context(|| file.name.clone())?;
        refusals.print();
        times.check().with_context(|| file.name.clone())?;
        seen.push(file_rows);
    }
    if let Some(client) = client {
        existing.compare(client)?;
    }
    Ok(CheckedFiles {
        existing,
        seen,
        spans: check.spans.clone(),
        rows: check.rows,
        bad: check.bad,
        empty,
        check,
        columns,
    })
}

/// The rows that would replace values of others.
fn replaced_rows(check: DuplicateCheck, files: &[PreparedFile]) -> Result<DuplicateKeys> {
    let (found, mut values) = check.finish()?;
    let is_by_field = |file: &PreparedFile| file.form == ImportFormat::Lines;
    if found.repeats == 0 || files.iter().all(is_by_field) {
        return Ok(found);
    }
    for (number, file) in files.iter().enumerate() {
        read_aside(file, "comparing", |item, _| {
            values.add(number, &item, is_by_field(file))
        })
        .with_context(|| file.name.clone())?;
    }
    values.finish(&found)
}

fn write_file(client: &DataClient, file: &PreparedFile) -> Result<ImportedFile> {
    let begin = Instant::now();
    let mut refusals = RefusedLines::new(file.reading.options.show_refused);
    let mut stored = 0;
    let mut empty = 0;
    let written = read_aside(file, "", |item, bar| {
        if interrupt::is_raised() {
            bail!(interrupt::CANCELLED);
        }
        refusals.extend(item.bad);
        empty += item.empty;
        // A file without rows has a batch without rows, for its columns.
        if item.batches.iter().any(|batch| !batch.is_empty()) {
            let reports = client.write(item.batches)?;
            for (report, lines) in reports.iter().zip(&item.lines) {
                stored += report.stored as u64;
                refusals.extend(report.rejected.iter().map(|rejected| {
                    let line = lines.get(rejected.row).copied().unwrap_or(0);
                    (line, rejected.reason.clone())
                }));
            }
        }
        bar.set_message(terminal::rate(stored, begin.elapsed()));
        Ok(())
    });
    refusals.print();
    let done = ImportedFile {
        stored,
        refused: refusals.count(),
        empty,
        time: begin.elapsed(),
    };
    if let Err(error) = written {
        report(&file.name, &done, None);
        return Err(error);
    }
    Ok(done)
}

/// Reads and parses a file on a thread of its own, and passes each batch to `take`.
fn read_aside(
    file: &PreparedFile,
    what: &str,
    mut take: impl FnMut(ParsedBatch, &indicatif::ProgressBar) -> Result<()>,
) -> Result<()> {
    let source = file.input.source()?;
    let bar = terminal::progress(source.bytes_total());
    bar.set_prefix(format!("{what} {}", file.name).trim_start().to_owned());
    let position = source.position();
    let (sender, parsed): (_, Receiver<Result<ParsedBatch>>) = sync_channel(BATCHES_AHEAD);
    let taken = thread::scope(|scope| {
        let reader = thread::Builder::new()
            .name("marigram-import".into())
            .spawn_scoped(scope, move || {
                let send = |item| sender.send(item).is_ok();
                if let Err(error) = file.read(source, &send) {
                    send(Err(error));
                }
            })?;
        let mut taken = Ok(());
        for item in &parsed {
            taken = item.and_then(|item| take(item, &bar));
            if taken.is_err() {
                break;
            }
            bar.set_position(position.bytes());
        }
        drop(parsed);
        if reader.join().is_err() {
            bail!("the thread that reads the file panicked, which is a bug");
        }
        taken
    });
    bar.finish_and_clear();
    taken
}

fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "stdin".to_owned();
    }
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The extension without that of a compression, in lower case, and the name before it.
fn ending(path: &Path) -> (Option<String>, String) {
    let mut name = name_of(path);
    let lower = name.to_lowercase();
    let packed = [".gz", ".zst", ".zstd"];
    if let Some(end) = packed.into_iter().find(|end| lower.ends_with(end)) {
        name.truncate(name.len() - end.len());
    }
    match name.rsplit_once('.') {
        Some((stem, ending)) => (Some(ending.to_ascii_lowercase()), stem.to_owned()),
        None => (None, name),
    }
}

/// Whether a name is that of a spreadsheet.
fn is_spreadsheet(path: &Path) -> bool {
    let ending = ending(path).0;
    ending.is_some_and(|ending| ["xlsx", "xlsm", "xls", "ods"].contains(&ending.as_str()))
}

fn form_of(path: &Path, told: Option<ImportFormat>) -> Result<ImportFormat> {
    if let Some(form) = told {
        return Ok(form);
    }
    match ending(path).0.as_deref() {
        Some("csv" | "tsv") => Ok(ImportFormat::Csv),
        Some("lp" | "line" | "lines" | "influx" | "txt") => Ok(ImportFormat::Lines),
        Some("jsonl" | "ndjson" | "json") => Ok(ImportFormat::Jsonl),
        Some("parquet" | "pq") => Ok(ImportFormat::Parquet),
        Some("tsfile") => Ok(ImportFormat::Tsfile),
        _ => {
            let program = match ending(path).0.as_deref() {
                Some("xlsx" | "xlsm" | "xls") => "Excel or LibreOffice",
                Some("ods") => "LibreOffice",
                _ => bail!(
                    "its name does not tell its format; give --format csv, jsonl, lines, parquet or tsfile"
                ),
            };
            bail!(
                "spreadsheets are not read; save the sheet in {program} as CSV UTF-8, or convert all sheets: \
                 soffice --headless --convert-to csv:\"Text - txt - csv (StarCalc)\":59,34,76,1,,0,false,\
                 true,false,false,false,-1 FILE"
            )
        }
    }
}

/// Imports a file as the command does, but silently; returns the reasons for refusals.
#[cfg(test)]
pub(crate) fn import_for_test(
    client: &mut DataClient,
    path: &Path,
    options: &ReadOptions,
) -> Result<Vec<String>> {
    let mut files = vec![PreparedFile::new(path, options, Some(client))?];
    unify(&mut files);
    let checked = check_all(&files, None, false)?;
    let found = replaced_rows(checked.check, &files)?;
    if found.repeats > 0 {
        bail!("{}", duplicate_advice::reason(&found, &files)?);
    }
    tables::create(client, &mut files, &checked.columns)?;
    let mut refused = Vec::new();
    read_aside(&files[0], "", |item, _| {
        refused.extend(
            item.bad
                .into_iter()
                .map(|(line, reason)| format!("{line}: {reason}")),
        );
        for report in client.write(item.batches)? {
            refused.extend(report.rejected.into_iter().map(|row| row.reason));
        }
        Ok(())
    })?;
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_tells_the_form() {
        let form = |name: &str| form_of(Path::new(name), None).ok();
        assert_eq!(form("a/b.csv"), Some(ImportFormat::Csv));
        assert_eq!(form("b.CSV.gz"), Some(ImportFormat::Csv));
        assert_eq!(form("b.CSV.GZ"), Some(ImportFormat::Csv));
        assert_eq!(form("b.tsv.zst"), Some(ImportFormat::Csv));
        assert_eq!(form("b.lp.gz"), Some(ImportFormat::Lines));
        assert_eq!(form("b.parquet"), Some(ImportFormat::Parquet));
        assert_eq!(form("b.tsfile"), Some(ImportFormat::Tsfile));
        assert_eq!(form("b"), None);
        assert_eq!(
            form_of(Path::new("-"), Some(ImportFormat::Lines)).ok(),
            Some(ImportFormat::Lines)
        );
        assert_eq!(ending(Path::new("x/machine.2026.csv.gz")).1, "machine.2026");
    }
}
