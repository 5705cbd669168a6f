//! The command line of the instrument: `marigram lab list | run | report`.

mod choose;
pub mod list;

use crate::run::{Order, Outcome};
use crate::study::Scale;
use crate::target::{Kind, Settings};
use crate::{report, run};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// What `marigram lab` does with studies.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the studies, and the targets that they can be run on
    List,
    /// Run studies, and write the report
    Run(Box<RunOptions>),
    /// Write the report of a folder again
    Report {
        /// The folder that `run` wrote into
        folder: PathBuf,
    },
}

/// The options of `marigram lab run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Names of studies, the beginning of names followed by `*`, or `all`
    #[arg(required = true)]
    names: Vec<String>,
    /// How large: `small` ends within a quarter of an hour, `paper` is the published size
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    /// Marigram's interfaces to measure, and `null`, which measures the client alone
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "null,embedded,http,postgres"
    )]
    target: Vec<String>,
    /// Peers to measure beside it; NAME, or NAME=URL for an instance that runs already
    #[arg(long, value_delimiter = ',')]
    peer: Vec<String>,
    /// Repetitions
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Folder for results and report; results that it already has are not measured again
    /// [default: marigram-lab-SCALE]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the databases' data [default: a folder inside --out]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Seed of all data
    #[arg(long, default_value_t = 20_240_101)]
    seed: u64,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

impl Command {
    /// Does what the command line says. `kinds` are the targets that there are, `peers` is the folder
    /// of the installed peers.
    pub fn run(self, kinds: &[Kind], peers: &Path) -> Result<()> {
        let mut kinds = kinds.to_vec();
        // Marigram's interfaces first, then the peers.
        kinds.sort_by_key(|kind| kind.peer);
        match self {
            Self::List => {
                print!("{}", list::text(&crate::studies::all(), &kinds));
                Ok(())
            }
            Self::Run(command) => command.run(&kinds, peers),
            Self::Report { folder } => write_report(&folder),
        }
    }
}

impl RunOptions {
    fn run(self, kinds: &[Kind], peers: &Path) -> Result<()> {
        let settings = Settings {
            peers: peers.to_owned(),
            marigram: std::env::current_exe().context("the path of this program")?,
            ..Settings::default()
        };
        let studies = choose::studies(&crate::studies::all(), &self.names)?;
        let targets = choose::targets(kinds, &self.target, &self.peer, &settings)?;
        for (kind, settings) in &targets {
            // Fails now if something is not installed, not after an hour of runs.
            (kind.make)(settings).with_context(|| format!("target {}", kind.name))?;
        }
        let scale = clap::ValueEnum::to_possible_value(&self.scale);
        let scale = scale.map_or_else(String::new, |value| value.get_name().to_owned());
        let out = match self.out {
            Some(out) => out,
            None => PathBuf::from(format!("marigram-lab-{scale}")),
        };
        let order = Order {
            studies,
            targets,
            scale: self.scale,
            repeat: usize::from(self.repeat),
            seed: self.seed,
            out: std::path::absolute(out)?,
            data: self.data.map(std::path::absolute).transpose()?,
            command: command_line(),
            quiet: self.quiet,
        };
        let outcome = run::run(&order)?;
        write_report(&order.out)?;
        judge(&outcome)
    }
}

/// The command line as it was typed, without the path of the program.
fn command_line() -> String {
    let arguments = std::env::args().skip(1);
    let words: Vec<String> = std::iter::once("marigram".to_owned())
        .chain(arguments)
        .collect();
    words.join(" ")
}

fn judge(outcome: &Outcome) -> Result<()> {
    if outcome.failed > 0 {
        bail!(
            "{} of {} runs failed; the report says why, and the same command runs them again",
            outcome.failed,
            outcome.done + outcome.failed
        );
    }
    Ok(())
}

fn write_report(folder: &Path) -> Result<()> {
    let written = report::write(folder)?;
    for sentence in &written.sentences {
        println!("{sentence}");
    }
    println!("\nThe report: {}", written.html.display());
    Ok(())
}
