//! `marigram restore`: restores a data directory from a backup, or single partitions into a
//! database.
//!
//! Partitions are first restored into a temporary data directory, which holds only the segments of
//! their times. Then their rows are written like any others: a row that exists already takes the
//! fields of the backup.

use crate::client::{ClientTarget, DataClient, IfMissing};
use crate::names::texts;
use crate::reply::{ReplyRows, StatementReply};
use crate::terminal;
use crate::tls_trust::TlsTrust;
use anyhow::{Context, Result, bail};
use chrono::{DateTime, NaiveDate, NaiveTime};
use clap::Args;
use marigram::backup::{self, RestoreSelection};
use marigram::{Env, Marigram, OpenOptions, Roles, TableSchema, TimeRange};
use marigram_model::quoted;
use marigram_model::{DAY_NS, partition_start};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Refused rows to name one by one.
const REFUSED_SHOWN: usize = 10;
/// Memory limit of the temporary database, in bytes.
const READER_BYTES: usize = 256 << 20;

/// Restore a backup.
#[derive(Args)]
pub(crate) struct Restore {
    /// Folder of backups
    #[arg(value_name = "BACKUP")]
    folder: PathBuf,
    /// Data directory to create; must be empty or not exist
    #[arg(
        value_name = "DATADIR",
        required_unless_present = "partition",
        conflicts_with = "partition"
    )]
    dir: Option<PathBuf>,
    /// Number of the backup [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    at: Option<u64>,
    /// Restore the rows of these partitions into a database instead: a day such as 2026-11-20
    /// (every partition of it), or a time such as 2026-11-20T06:00:00Z (the partition that holds
    /// it); UTC
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    partition: Vec<TimeRange>,
    /// Only this table, as DATABASE.TABLE [default: every table]
    #[arg(long, value_name = "TABLE", requires = "partition")]
    table: Option<String>,
    /// With --partition: data directory to write the rows into
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "url",
        requires = "partition"
    )]
    into: Option<PathBuf>,
    /// With --partition: running server to write the rows into
    #[arg(long, value_name = "URL", requires = "partition")]
    url: Option<String>,
    #[command(flatten)]
    tls: TlsTrust,
    /// With --partition: where to create the temporary directory [default: the system's]
    #[arg(long, value_name = "DIR", requires = "partition")]
    temp: Option<PathBuf>,
}

/// A day or a moment.
fn parse_time(text: &str) -> Result<TimeRange, String> {
    let bad =
        || format!("'{text}' is neither a day (2026-11-20) nor a time (2026-11-20T06:00:00Z)");
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        let start = day.and_time(NaiveTime::MIN).and_utc();
        let min = start.timestamp_nanos_opt().ok_or_else(bad)?;
        let max = min.checked_add(DAY_NS - 1).ok_or_else(bad)?;
        return Ok(TimeRange { min, max });
    }
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| bad())?;
    let ns = time.timestamp_nanos_opt().ok_or_else(bad)?;
    Ok(TimeRange { min: ns, max: ns })
}

/// A table of the backup, and the times to restore.
struct RestoredTable {
    schema: Arc<TableSchema>,
    ranges: Vec<TimeRange>,
}

/// Counts of the rows that were written.
#[derive(Default)]
struct RestoreCounts {
    stored: u64,
    refused: u64,
}

impl Restore {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match &self.dir {
            Some(dir) => self.whole(dir),
            None => self.partitions(),
        }
    }

    fn whole(&self, dir: &Path) -> Result<ExitCode> {
        let begin = Instant::now();
        let report = backup::restore(&Env::real(), &self.folder, self.at, dir)?;
        outln!(
            "{} holds backup {}, as of {} UTC: {} in {}, in {}",
            dir.display(),
            report.info.number,
            terminal::time(report.info.taken_ns),
            terminal::bytes(report.bytes),
            terminal::counted(report.files as u64, "file"),
            terminal::span(begin.elapsed())
        );
        Ok(ExitCode::SUCCESS)
    }

    fn partitions(&self) -> Result<ExitCode> {
        let begin = Instant::now();
        if self.into.is_none() && self.url.is_none() {
            bail!(
                "restore into what? Give --into DIR for a data directory, or --url URL for a server"
            );
        }
        let env = Env::real();
        let parts = self.parts(backup::schemas(&env, &self.folder, self.at)?)?;
        let wanted = parts.iter().flat_map(|part| {
            part.ranges.iter().map(|range| RestoreSelection {
                table: part.schema.id,
                range: *range,
            })
        });
        let wanted: Vec<RestoreSelection> = wanted.collect();
        let temporary = match &self.temp {
            Some(dir) => tempfile::tempdir_in(dir),
            None => tempfile::tempdir(),
        };
        let temporary = temporary.context("cannot create a temporary directory")?;
        let dir = temporary.path().join("data");
        backup::restore_part(&env, &self.folder, self.at, &dir, &wanted)?;
        let source = OpenOptions::default()
            .memory_limit(READER_BYTES)
            .open(&dir)
            .context("cannot open what was restored")?;
        let target = ClientTarget {
            data: self.into.clone(),
            url: self.url.clone(),
            tls: self.tls.clone(),
            database: marigram::DEFAULT_DATABASE.to_owned(),
        };
        let opened = target.connect(IfMissing::Create)?;
        let mut total = RestoreCounts::default();
        for part in &parts {
            let mut client = database(&target, &opened, &part.schema.database)?;
            let counts = copy(&source, &mut client, part)?;
            outln!(
                "{}.{}: {} stored",
                part.schema.database,
                part.schema.name,
                terminal::counted(counts.stored, "row")
            );
            total.stored += counts.stored;
            total.refused += counts.refused;
        }
        opened.close()?;
        source.close()?;
        outln!(
            "{} in {} ({})",
            terminal::counted(total.stored, "row"),
            terminal::span(begin.elapsed()),
            terminal::rate(total.stored, begin.elapsed())
        );
        if total.refused > 0 {
            erroutln!("{} refused", terminal::counted(total.refused, "row"));
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The tables and partitions that the options select.
    fn parts(&self, schemas: Vec<Arc<TableSchema>>) -> Result<Vec<RestoredTable>> {
        let named = |schema: &TableSchema| format!("{}.{}", schema.database, schema.name);
        let is_meant = |schema: &TableSchema| match &self.table {
            // A view has no rows of its own.
            None => schema.view.is_none() && schema.rollup.is_none(),
            Some(table) => *table == named(schema),
        };
        let known: Vec<String> = schemas.iter().map(|schema| named(schema)).collect();
        let meant = schemas.into_iter().filter(|schema| is_meant(schema));
        let parts: Vec<RestoredTable> = meant
            .map(|schema| RestoredTable {
                ranges: self
                    .partition
                    .iter()
                    .map(|times| partitions_of(*times, schema.options.partition_ns))
                    .collect(),
                schema,
            })
            .collect();
        match (&self.table, parts.is_empty()) {
            (Some(table), true) => bail!(
                "the backup has no table '{table}'; it has {}",
                known.join(", ")
            ),
            _ => Ok(parts),
        }
    }
}

/// The times of all partitions that overlap `times`.
fn partitions_of(times: TimeRange, width_ns: i64) -> TimeRange {
    let last = partition_start(times.max, width_ns);
    TimeRange {
        min: partition_start(times.min, width_ns),
        max: last.saturating_add(width_ns - 1),
    }
}

/// A client of another database in the same target; creates the database if it is missing.
fn database(target: &ClientTarget, opened: &DataClient, name: &str) -> Result<DataClient> {
    let mut client = match opened.local() {
        Some(db) => {
            db.create_database(name)?;
            return DataClient::over(db.clone(), name);
        }
        None => target.connect(IfMissing::Fail)?,
    };
    let statement = format!("CREATE DATABASE IF NOT EXISTS {}", quoted(name));
    run(&mut client, &statement)?;
    ClientTarget {
        database: name.to_owned(),
        ..target.clone()
    }
    .connect(IfMissing::Fail)
}

/// Writes the rows of a table, in the order in which they are read.
fn copy(source: &Marigram, into: &mut DataClient, part: &RestoredTable) -> Result<RestoreCounts> {
    let schema = &part.schema;
    let mut from = DataClient::over(source.clone(), &schema.database)?;
    make_table(&mut from, into, schema)?;
    let mut counts = RestoreCounts::default();
    for range in &part.ranges {
        let time = |ns: i64| {
            let time = DateTime::from_timestamp_nanos(ns);
            time.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string()
        };
        let sql = format!(
            "SELECT * FROM {} WHERE {name} >= '{}' AND {name} <= '{}'",
            quoted(&schema.name),
            time(range.min),
            time(range.max),
            name = quoted(&schema.time_name),
        );
        match from.execute(&sql) {
            Ok(StatementReply::Rows(rows)) => write(rows, into, schema, &mut counts)?,
            Ok(StatementReply::Done(tag)) => bail!("{tag}: the partition cannot be read"),
            Err(failure) => bail!("{}", failure.explain(&sql)),
        }
    }
    Ok(counts)
}

fn write(
    rows: ReplyRows,
    into: &DataClient,
    schema: &TableSchema,
    counts: &mut RestoreCounts,
) -> Result<()> {
    let roles = Roles::of(schema);
    for batch in rows.batches {
        let converted = marigram::convert(&schema.name, &roles, Some(schema), &batch?)?;
        let refused = converted.rejected.into_iter().map(|row| row.reason);
        let mut refused: Vec<String> = refused.collect();
        for report in into.write(vec![converted.batch])? {
            counts.stored += report.stored as u64;
            refused.extend(report.rejected.into_iter().map(|row| row.reason));
        }
        for reason in refused {
            counts.refused += 1;
            if counts.refused <= REFUSED_SHOWN as u64 {
                erroutln!("{}.{}: refused: {reason}", schema.database, schema.name);
            }
        }
    }
    Ok(())
}

/// Creates the table, or the columns that it lacks, as they are in the backup.
fn make_table(from: &mut DataClient, into: &mut DataClient, schema: &TableSchema) -> Result<()> {
    let show = format!("SHOW CREATE TABLE {}", quoted(&schema.name));
    let shown = match from.query(&show) {
        Ok(shown) => shown,
        Err(failure) => bail!("{failure}"),
    };
    let statement = texts(&shown, &["statement"]);
    let Some(statement) = statement.first() else {
        bail!("{show}: nothing came back");
    };
    let create = statement.replacen("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1);
    run(into, &create)?;
    let tags = schema.tags.iter();
    let tags = tags.map(|tag| format!("{} {} TAG", quoted(&tag.name), tag.kind));
    let fields = schema.fields.iter();
    let fields = fields.map(|field| format!("{} {} FIELD", quoted(&field.name), field.kind));
    for column in tags.chain(fields) {
        let table = quoted(&schema.name);
        run(
            into,
            &format!("ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column}"),
        )?;
    }
    Ok(())
}

fn run(client: &mut DataClient, statement: &str) -> Result<()> {
    match client.execute(statement) {
        Ok(StatementReply::Done(_)) => Ok(()),
        Ok(StatementReply::Rows(rows)) => {
            for batch in rows.batches {
                batch?;
            }
            Ok(())
        }
        Err(failure) => bail!("{}", failure.explain(statement)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = DAY_NS / 24;

    #[test]
    fn days_and_times_name_the_partitions_that_they_touch() {
        let day = parse_time("1970-01-03").unwrap();
        assert_eq!((day.min, day.max), (2 * DAY_NS, 3 * DAY_NS - 1));
        assert_eq!(partitions_of(day, DAY_NS), day);
        assert_eq!(partitions_of(day, HOUR_NS), day);
        let week = partitions_of(day, 7 * DAY_NS);
        assert_eq!((week.min, week.max), (0, 7 * DAY_NS - 1));

        let moment = parse_time("1970-01-03T06:30:00Z").unwrap();
        let hour = partitions_of(moment, HOUR_NS);
        assert_eq!(hour.min, 2 * DAY_NS + 6 * HOUR_NS);
        assert_eq!(hour.max, hour.min + HOUR_NS - 1);
        for bad in ["yesterday", "2026-13-01", "2026-11-20 06:00", "9999-01-01"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
