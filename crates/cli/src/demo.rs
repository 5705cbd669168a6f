//! `marigram demo`: shows the main features on real input, within a minute.
//!
//! It imports the sensor series of the Numenta Anomaly Benchmark, which the binary carries, and the
//! synthetic records of a fleet of trucks from [`trucks`]. Then it answers questions that the
//! owners of such data ask.

mod nab;
mod questions;
mod trucks;

use crate::client::DataClient;
use crate::terminal::{self, TextStyle, styled};
use anyhow::{Result, ensure};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use clap::Args;
use marigram::{DEFAULT_DATABASE, Marigram};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use trucks::TruckFleet;

/// See Marigram at work.
#[derive(Args)]
pub(crate) struct Demo {
    /// Keep the data in this directory [default: a temporary one that is removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Trucks in the fleet
    #[arg(long, value_name = "NUMBER", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trucks: u32,
    /// Days that they drive, one row per minute
    #[arg(long, value_name = "NUMBER", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
}

impl Demo {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let begin = Instant::now();
        let (dir, temporary) = match &self.data {
            Some(dir) => (dir.clone(), None),
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("marigram-demo-")
                    .tempdir()?;
                (temporary.path().to_path_buf(), Some(temporary))
            }
        };
        heading(&format!(
            "Marigram {}: real sensors and a fleet of trucks",
            env!("CARGO_PKG_VERSION")
        ));
        outln!(
            "data in {}{}\n",
            dir.display(),
            if temporary.is_some() {
                " (temporary)"
            } else {
                ""
            }
        );
        let db = Marigram::open(&dir)?;
        let mut client = DataClient::over(db.clone(), DEFAULT_DATABASE)?;
        heading("1. Import");
        nab::import(&client)?;
        let fleet = TruckFleet {
            trucks: self.trucks,
            days: self.days,
        };
        let sent = trucks::import(&client, fleet)?;
        check_fleet(&mut client, &sent)?;
        report_size(&db, &dir)?;
        heading("2. Questions");
        questions::ask_all(&mut client)?;
        drop(client);
        db.close()?;
        say_goodbye(&dir, temporary.is_some(), begin);
        Ok(ExitCode::SUCCESS)
    }
}

fn heading(text: &str) {
    outln!("{}", styled(TextStyle::Bold, text));
}

/// The data contains late and repeated rows on purpose: each must be stored exactly once.
fn check_fleet(client: &mut DataClient, sent: &trucks::SentRows) -> Result<()> {
    let counted = client.query("SELECT count(*) FROM readings")?;
    let counted = counted
        .first()
        .and_then(|batch| batch.column(0).as_primitive_opt::<Int64Type>())
        .map(|counts| counts.value(0));
    ensure!(
        counted == i64::try_from(sent.distinct).ok(),
        "{} distinct rows of trucks were sent, but {counted:?} are stored: this is a bug",
        sent.distinct
    );
    outln!(
        "  {} rows of the fleet arrived late and {} arrived twice; each is stored exactly once",
        terminal::count(sent.late),
        terminal::count(sent.repeated)
    );
    Ok(())
}

fn report_size(db: &Marigram, dir: &Path) -> Result<()> {
    db.engine().flush()?;
    let status = db.engine().status();
    let rows: u64 = db
        .engine()
        .segments()
        .iter()
        .map(|segment| segment.meta.rows)
        .sum();
    let (_, on_disk) = crate::verify::size(dir);
    outln!(
        "  {} in {}: {:.1} bytes a row; {} on disk with log and indexes\n",
        terminal::counted(rows, "row"),
        terminal::counted(status.segments, "segment"),
        status.segment_bytes as f64 / rows.max(1) as f64,
        terminal::bytes(on_disk)
    );
    Ok(())
}

fn say_goodbye(dir: &Path, is_temporary: bool, begin: Instant) {
    outln!("All of this took {}.\n", terminal::span(begin.elapsed()));
    heading("3. Your turn");
    let mut lines = Vec::new();
    if is_temporary {
        lines.push((
            "marigram demo --data ./demo-data".to_owned(),
            "keeps the data",
        ));
        lines.push((
            "marigram sql --data ./demo-data".to_owned(),
            "then takes your questions",
        ));
    } else {
        let dir = dir.display();
        lines.push((format!("marigram sql --data {dir}"), "takes your questions"));
        lines.push((format!("marigram inspect {dir}"), "shows what is on disk"));
    }
    let import = "marigram import --data ./data --tags device FILE.csv";
    lines.push((import.to_owned(), "reads your files"));
    lines.push((
        "marigram serve --data ./data".to_owned(),
        "takes rows over HTTP and PostgreSQL",
    ));
    let width = lines
        .iter()
        .map(|(command, _)| command.chars().count())
        .max()
        .unwrap_or(0);
    for (command, what) in lines {
        let space = " ".repeat(width - command.chars().count());
        outln!("  {}{space}  {what}", styled(TextStyle::Code, &command));
    }
}
