//! `marigram sql`: a shell, one command, a file, or a script on stdin.

use crate::answer::{AnswerForm, ExpandedRows, PrintOptions, WIDTH_MAX};
use crate::client::{ClientTarget, IfMissing};
use crate::output;
use crate::shell::{self, NamedScript};
use anyhow::{Context, Result};
use clap::Args;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run SQL.
#[derive(Args)]
pub(crate) struct Sql {
    #[command(flatten)]
    target: ClientTarget,
    /// Run these statements and exit; may be given several times
    #[arg(long, short = 'c', value_name = "SQL")]
    command: Vec<String>,
    /// Run the statements in a file and exit (- for stdin)
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Format of answers
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerForm,
    /// Rows of a table to show; 0 for all [default: 100 in the shell, otherwise all]
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    /// Show one value per line, as \x does
    #[arg(long, short = 'x')]
    expanded: bool,
    /// Continue after a statement that failed
    #[arg(long)]
    keep_going: bool,
    /// Show long answers in the shell without $PAGER
    #[arg(long)]
    no_pager: bool,
}

impl Sql {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let command = |text: &String| ("-c".to_owned(), text.clone());
        let mut scripts: Vec<NamedScript> = self.command.iter().map(command).collect();
        for file in &self.file {
            let script = if file.as_os_str() == "-" {
                read_stdin()?
            } else {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                (file.display().to_string(), text)
            };
            scripts.push(script);
        }
        let interactive = scripts.is_empty() && io::stdin().is_terminal();
        if scripts.is_empty() && !interactive {
            scripts.push(read_stdin()?);
        }
        let client = self.target.connect(IfMissing::Fail)?;
        let default_limit = if interactive { 100 } else { 0 };
        let printing = PrintOptions {
            form: self.format,
            rows_max: Some(self.limit.unwrap_or(default_limit)).filter(|rows| *rows > 0),
            timing: true,
            summary: interactive || self.format == AnswerForm::Table,
            // Output to a program or a file is never cut.
            width_max: interactive.then_some(WIDTH_MAX),
            expanded: if self.expanded {
                ExpandedRows::On
            } else {
                ExpandedRows::Off
            },
            columns: usize::MAX,
            is_plain: false,
        };
        if interactive {
            let pager = output::pager().filter(|_| !self.no_pager && io::stdout().is_terminal());
            shell::run(client, printing, pager)?;
            return Ok(ExitCode::SUCCESS);
        }
        shell::run_scripts(client, &scripts, printing, self.keep_going)
    }
}

fn read_stdin() -> Result<NamedScript> {
    let mut script = String::new();
    io::stdin()
        .read_to_string(&mut script)
        .context("cannot read the script on stdin")?;
    Ok(("stdin".to_owned(), script))
}
