//! `marigram export`: writes a table or the answer to a query to a file.
//!
//! The file is written under a temporary name in the same folder and renamed when complete, so that
//! a failed export leaves nothing that looks like a successful one.

use crate::client::{ClientTarget, DataClient, IfMissing};
use crate::csv_text;
use crate::import::{Precision, layout_path};
use crate::line_text;
use crate::reply::{ReplyRows, StatementReply};
use crate::table_columns::known_table;
use crate::terminal;
use anyhow::{Context, Result, bail};
use arrow::array::Array;
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::tz::TimeZone;
use marigram::Roles;
use marigram_model::quoted;
use marigram_pgtext::StatementLexer;
use marigram_sql::tsfile::TsFileExport;
use marigram_tabular::layout::{COMMENT, ColumnLayout};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as ParquetCompression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tempfile::NamedTempFile;

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Comma-separated values with a header line
    Csv,
    /// Apache Parquet, compressed with zstd
    Parquet,
    /// InfluxDB line protocol
    Lines,
    /// Apache TsFile, version 4
    Tsfile,
}

/// Where an export records the roles and types of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutDestination {
    /// In a file next to it, FILE.layout.json
    Beside,
    /// In a comment before the first line (#marigram …)
    Comment,
    /// Nowhere
    None,
}

/// Write a table or the answer to a query to a file.
#[derive(Args)]
pub(crate) struct Export {
    /// File to write (- for stdout); its extension selects the format: .csv, .parquet, .lp,
    /// .tsfile, and .gz after .csv or .lp
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    target: ClientTarget,
    /// Table to export; with --query, the table name of the rows in line protocol or TsFile
    #[arg(long, value_name = "NAME", required_unless_present = "query")]
    table: Option<String>,
    /// Query whose answer to export
    #[arg(long, value_name = "SQL")]
    query: Option<String>,
    /// Format of the file, if its extension does not tell
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
    /// For line protocol or TsFile of a query: the time column
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// For line protocol or TsFile of a query: columns that are tags
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    tags: Vec<String>,
    /// Unit of the times in a TsFile: s, ms, us or ns; times that are not whole units are refused
    /// [default: ms]
    #[arg(long, value_name = "UNIT")]
    precision: Option<Precision>,
    /// For CSV: write times as local times of this zone with their offset, such as Europe/Berlin
    /// [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    tz: Option<TimeZone>,
    /// Where to record the roles and types of a table's columns, so that `import` creates the same
    /// table from the file; Parquet always contains them [default: next to a CSV or TsFile, in a
    /// comment of line protocol; nowhere for a CSV to stdout]
    #[arg(long, value_enum, value_name = "PLACE")]
    layout: Option<LayoutDestination>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl Export {
    /// What the shell copies to a file: a whole table, or the answer to a query.
    pub(crate) fn copy(
        file: &Path,
        table: Option<String>,
        query: Option<String>,
        format: Option<ExportFormat>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            target: ClientTarget::default(),
            table,
            query,
            format,
            time_column: None,
            tags: Vec::new(),
            precision: None,
            tz: None,
            layout: Some(LayoutDestination::None),
            force: true,
        }
    }

    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.form()?;
        let to_stdout = self.file.as_os_str() == "-";
        if !to_stdout && self.file.exists() && !self.force {
            bail!("{} exists; --force replaces it", self.file.display());
        }
        let mut client = self.target.connect(IfMissing::Fail)?;
        self.export(&mut client)?;
        client.close()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the file and reports it.
    pub(crate) fn export(&self, client: &mut DataClient) -> Result<()> {
        let to_stdout = self.file.as_os_str() == "-";
        let begin = Instant::now();
        let count = self.export_rows(client)?;
        let time = begin.elapsed();
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        let size = if to_stdout {
            String::new()
        } else {
            format!(", {}", terminal::bytes(bytes))
        };
        erroutln!(
            "{}: {}{size} in {} ({})",
            if to_stdout {
                "stdout".into()
            } else {
                self.file.display().to_string()
            },
            terminal::counted(count, "row"),
            terminal::span(time),
            terminal::rate(count, time)
        );
        Ok(())
    }

    /// Writes the file; returns the number of its rows.
    pub(crate) fn export_rows(&self, client: &mut DataClient) -> Result<u64> {
        let (form, gzip) = self.form()?;
        if self.tz.is_some() && form != ExportFormat::Csv {
            bail!("--tz is for CSV; the other formats hold moments, which need no zone");
        }
        let to_stdout = self.file.as_os_str() == "-";
        let sql = match (&self.query, &self.table) {
            (Some(query), _) => query.trim().trim_end_matches(';').to_owned(),
            (None, Some(table)) => format!("SELECT * FROM {}", quoted(table)),
            (None, None) => bail!("nothing to export: give --table NAME or --query SQL"),
        };
        let roles = match form {
            ExportFormat::Lines | ExportFormat::Tsfile => Some(self.roles(client)?),
            ExportFormat::Csv | ExportFormat::Parquet => None,
        };
        let sql = match &roles {
            Some(roles) if form == ExportFormat::Tsfile => {
                let order = TsFileExport::<File, File>::order_by(&roles.time, &roles.tags);
                format!("SELECT * FROM ({sql}) {order}")
            }
            _ => sql,
        };
        let mut layout = match (&self.query, &self.table) {
            (None, Some(table)) => known_table(client, table)?,
            _ => None,
        };
        if let Some(layout) = layout.as_mut().filter(|_| form == ExportFormat::Tsfile) {
            layout.unit_ns = Some(self.precision.unwrap_or(Precision::Ms).ns());
        }
        let place = self.place(form, to_stdout)?;
        let comment = layout
            .as_ref()
            .filter(|_| place == LayoutDestination::Comment);
        check_reads(&sql)?;
        let rows = match client.execute(&sql) {
            Ok(StatementReply::Rows(rows)) => rows,
            Ok(StatementReply::Done(tag)) => bail!("{tag}: the statement has no rows to export"),
            Err(failure) => bail!("{}", failure.explain(&sql)),
        };
        let count = if to_stdout {
            self.write(rows, form, gzip, roles.as_ref(), comment, io::stdout())?
        } else {
            let dir = self.file.parent().filter(|dir| !dir.as_os_str().is_empty());
            let dir = dir.unwrap_or_else(|| Path::new("."));
            if let Some(device) = open_device(&self.file)? {
                return self.write(rows, form, gzip, roles.as_ref(), comment, device);
            }
            let file = NamedTempFile::new_in(dir)
                .with_context(|| format!("cannot write in {}", dir.display()))?;
            let unwritten = || format!("cannot write {}", self.file.display());
            let count = self
                .write(rows, form, gzip, roles.as_ref(), comment, file.as_file())
                .with_context(unwritten)?;
            allow_reading(file.as_file())?;
            let beside = layout
                .as_ref()
                .filter(|_| place == LayoutDestination::Beside);
            let beside = beside.map(|layout| written_layout(layout, dir)).transpose();
            let beside = beside.with_context(unwritten)?;
            file.persist(&self.file).with_context(unwritten)?;
            self.put_layout(beside)?;
            count
        };
        Ok(count)
    }

    fn place(&self, form: ExportFormat, to_stdout: bool) -> Result<LayoutDestination> {
        let default = match form {
            ExportFormat::Lines => LayoutDestination::Comment,
            ExportFormat::Csv | ExportFormat::Tsfile if !to_stdout => LayoutDestination::Beside,
            _ => LayoutDestination::None,
        };
        let place = self.layout.unwrap_or(default);
        match (place, form) {
            (LayoutDestination::Comment, ExportFormat::Parquet | ExportFormat::Tsfile) => {
                bail!("--layout comment is for CSV and line protocol")
            }
            (LayoutDestination::Beside, ExportFormat::Parquet) => Ok(LayoutDestination::None),
            (LayoutDestination::Beside, _) if to_stdout => {
                bail!("stdout has no file next to it; give --layout comment")
            }
            (LayoutDestination::Beside, ExportFormat::Lines) => Ok(LayoutDestination::Comment),
            (place, _) => Ok(place),
        }
    }

    /// Puts the layout next to the file, or removes an old one, which `import` would otherwise
    /// believe.
    fn put_layout(&self, layout: Option<NamedTempFile>) -> Result<()> {
        let path = layout_path(&self.file);
        let Some(layout) = layout else {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("cannot remove {}", path.display()))
                }
                _ => Ok(()),
            };
        };
        layout
            .persist(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }

    fn form(&self) -> Result<(ExportFormat, bool)> {
        let name = self.file.to_string_lossy().to_ascii_lowercase();
        let (name, gzip) = match name.strip_suffix(".gz") {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let told = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Some(ExportFormat::Csv),
            Some("parquet" | "pq") => Some(ExportFormat::Parquet),
            Some("lp" | "line" | "lines" | "influx") => Some(ExportFormat::Lines),
            Some("tsfile") => Some(ExportFormat::Tsfile),
            _ => None,
        };
        let Some(form) = self.format.or(told) else {
            bail!(
                "the file name does not tell the format; give --format csv, parquet, lines or \
                 tsfile"
            );
        };
        if gzip && matches!(form, ExportFormat::Parquet | ExportFormat::Tsfile) {
            bail!("Parquet and TsFile are compressed already; leave .gz out");
        }
        Ok((form, gzip))
    }

    /// Which columns are time and tags: from the options, otherwise from the table.
    fn roles(&self, client: &mut DataClient) -> Result<Roles> {
        let Some(table) = &self.table else {
            let Some(time) = &self.time_column else {
                bail!(
                    "line protocol or TsFile of a query needs --table NAME (the name of the \
                     measurement), and --time-column and --tags if the table does not exist"
                );
            };
            return Ok(Roles::new(time.clone(), self.tags.clone()));
        };
        if let Some(time) = &self.time_column {
            return Ok(Roles::new(time.clone(), self.tags.clone()));
        }
        let sql = format!("SHOW COLUMNS FROM {}", quoted(table));
        let columns = match client.query(&sql) {
            Ok(columns) => columns,
            Err(failure) => bail!("{failure}"),
        };
        let names = crate::names::texts(&columns, &["column_name", "column", "name"]);
        let kinds = crate::names::texts(&columns, &["role", "kind", "category"]);
        let of_kind = |kind: &'static str| {
            let pairs = names.iter().zip(&kinds);
            pairs
                .filter(move |(_, k)| k.eq_ignore_ascii_case(kind))
                .map(|(name, _)| name.clone())
        };
        let Some(time) = of_kind("time").next() else {
            bail!("the columns of table '{table}' do not say which of them is the time");
        };
        Ok(Roles::new(time, of_kind("tag")))
    }

    fn write(
        &self,
        rows: ReplyRows,
        form: ExportFormat,
        gzip: bool,
        roles: Option<&Roles>,
        comment: Option<&ColumnLayout>,
        out: impl Write + Send,
    ) -> Result<u64> {
        let out = BufWriter::with_capacity(1 << 18, out);
        if gzip {
            let mut out = GzEncoder::new(out, Compression::default());
            let count = self.write_rows(rows, form, roles, comment, &mut out)?;
            out.finish()?.flush()?;
            return Ok(count);
        }
        let mut out = out;
        let count = self.write_rows(rows, form, roles, comment, &mut out)?;
        out.flush()?;
        Ok(count)
    }

    fn write_rows(
        &self,
        rows: ReplyRows,
        form: ExportFormat,
        roles: Option<&Roles>,
        comment: Option<&ColumnLayout>,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        let mut count = 0;
        if let Some(layout) = comment {
            writeln!(out, "{COMMENT}{}", layout.to_line()?)?;
        }
        match form {
            ExportFormat::Csv => {
                let mut text = String::new();
                csv_text::put_header(&rows.schema, &mut text);
                for batch in rows.batches {
                    let batch = batch?;
                    count += batch.num_rows() as u64;
                    csv_text::put_rows(&batch, self.tz.as_ref(), &mut text)?;
                    out.write_all(text.as_bytes())?;
                    text.clear();
                }
                out.write_all(text.as_bytes())?;
            }
            ExportFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(ParquetCompression::ZSTD(ZstdLevel::default()))
                    .build();
                let mut writer = ArrowWriter::try_new(out, rows.schema.clone(), Some(properties))?;
                for batch in rows.batches {
                    let batch = batch?;
                    count += batch.num_rows() as u64;
                    writer.write(&batch)?;
                }
                writer.close()?;
            }
            ExportFormat::Tsfile => {
                let table = self.table.as_deref().unwrap_or("rows");
                let roles = roles.context("a TsFile needs to know time and tags")?;
                let roles = (roles.time.as_str(), roles.tags.as_slice());
                let unit_ns = self.precision.unwrap_or(Precision::Ms).ns();
                let scratch = tempfile::tempfile().context("cannot create a temporary file")?;
                let mut file =
                    TsFileExport::new(out, scratch, table, &rows.schema, roles, unit_ns)?;
                for batch in rows.batches {
                    file.write(&batch?)?;
                }
                count = file.finish()?.1;
            }
            ExportFormat::Lines => {
                let table = self.table.as_deref().unwrap_or("rows");
                let roles = roles.context("line protocol needs to know time and tags")?;
                let mut text = String::new();
                let (mut beyond, mut left_out) = (0, 0);
                for batch in rows.batches {
                    let converted = marigram::convert(table, roles, None, &batch?)?;
                    if let Some(bad) = converted.rejected.first() {
                        bail!("row {}: {}", bad.row + 1, bad.reason);
                    }
                    let batch = converted.batch;
                    let is_empty = |row| batch.fields.iter().all(|field| field.values.is_null(row));
                    for row in 0..batch.len() {
                        if is_empty(row) {
                            left_out += 1;
                            continue;
                        }
                        if comment.is_some() {
                            beyond += line_text::put_whole_row(&batch, row, &mut text)?;
                        } else if let Err(reason) = line_text::put_row(&batch, row, &mut text) {
                            bail!("{reason}");
                        }
                        count += 1;
                    }
                    out.write_all(text.as_bytes())?;
                    text.clear();
                }
                if left_out > 0 {
                    erroutln!(
                        "{} without a value left out: line protocol has no such lines",
                        terminal::counted(left_out, "row")
                    );
                }
                if beyond > 0 {
                    erroutln!(
                        "{} that line protocol cannot hold are in comments, which only Marigram \
                         reads",
                        terminal::counted(beyond as u64, "value")
                    );
                }
            }
        }
        Ok(count)
    }
}

/// A layout in a temporary file, so that a full disk leaves no export without its layout.
fn written_layout(layout: &ColumnLayout, dir: &Path) -> Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all((layout.to_line()? + "\n").as_bytes())?;
    allow_reading(file.as_file())?;
    Ok(file)
}

/// A time zone by its name.
fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name)
        .map_err(|_| format!("'{name}' is not a time zone; give one such as Europe/Berlin"))
}

/// Temporary files are readable by their owner only; an export is an ordinary file.
fn allow_reading(file: &File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.set_permissions(std::fs::Permissions::from_mode(0o644))?)
}

/// First words of the statements that only read.
const QUERY_WORDS: [&str; 8] = [
    "SELECT",
    "WITH",
    "FROM",
    "VALUES",
    "TABLE",
    "SHOW",
    "DESCRIBE",
    "SUMMARIZE",
];

/// Refuses a statement that is not a query, before it does anything.
pub(crate) fn check_reads(statement: &str) -> Result<()> {
    let mut lexer = StatementLexer::new(statement);
    let mut tokens = std::iter::from_fn(|| lexer.next_token_range());
    let first = tokens.find(|place| &statement[place.clone()] != "(");
    let word = first.map_or("", |place| &statement[place]);
    if QUERY_WORDS.contains(&word.to_ascii_uppercase().as_str()) {
        return Ok(());
    }
    bail!(
        "only the rows of a query can be exported, and this statement begins with '{word}'; nothing was done"
    )
}

/// A path that is not a regular file (a device, a pipe) is opened and written to: a rename would
/// replace it.
fn open_device(path: &Path) -> Result<Option<File>> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let device = File::options().write(true).open(path);
            Ok(Some(device.with_context(|| {
                format!("cannot write to {}", path.display())
            })?))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        export: Export,
    }

    fn form(arguments: &[&str]) -> Option<(ExportFormat, bool)> {
        let line = ["x", "--table", "t", "--data", "d"].iter().chain(arguments);
        Line::try_parse_from(line).unwrap().export.form().ok()
    }

    #[test]
    fn only_queries_are_exported() {
        for query in [
            "select 1",
            " (( FROM t))",
            "/* a /* b */ c */ SELECT 1",
            "-- drop\n-- it\nwith a as (select 1) from a",
            "values(1)",
        ] {
            assert!(check_reads(query).is_ok(), "{query}");
        }
        for (other, word) in [
            ("Drop TABLE t", "'Drop'"),
            ("/* select */ DELETE FROM t", "'DELETE'"),
            ("selected", "'selected'"),
            ("'select'", "''select''"),
            ("", "''"),
        ] {
            let error = check_reads(other).map_err(|error| error.to_string());
            assert!(error.is_err_and(|error| error.contains(word)), "{other}");
        }
    }

    #[test]
    fn the_ending_tells_the_form() {
        assert_eq!(form(&["a.csv"]), Some((ExportFormat::Csv, false)));
        assert_eq!(form(&["a.lp.gz"]), Some((ExportFormat::Lines, true)));
        assert_eq!(form(&["a.parquet"]), Some((ExportFormat::Parquet, false)));
        assert_eq!(form(&["a.parquet.gz"]), None);
        assert_eq!(form(&["a.tsfile"]), Some((ExportFormat::Tsfile, false)));
        assert_eq!(form(&["-"]), None);
        assert_eq!(
            form(&["-", "--format", "csv"]),
            Some((ExportFormat::Csv, false))
        );
    }
}
