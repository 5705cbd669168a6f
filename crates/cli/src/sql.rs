//! `marigram sql`: a shell, one command, a file, or a script on stdin.

use crate::answer::{self, AnswerForm, ExpandedRows, PrintOptions, WIDTH_MAX};
use crate::client::{ClientTarget, DataClient, IfMissing};
use crate::reply::StatementFailure;
use crate::{output, shell};
use anyhow::{Context, Result};
use clap::Args;
use marigram_pgtext::split_script;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

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
        let mut scripts = self.command.clone();
        for file in &self.file {
            let script = if file.as_os_str() == "-" {
                read_stdin()
            } else {
                std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))
            };
            scripts.push(script?);
        }
        let interactive = scripts.is_empty() && io::stdin().is_terminal();
        if scripts.is_empty() && !interactive {
            scripts.push(read_stdin()?);
        }
        let mut client = self.target.connect(IfMissing::Fail)?;
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
        let code = run_scripts(&mut client, &scripts, printing, self.keep_going)?;
        client.close()?;
        Ok(code)
    }
}

fn read_stdin() -> Result<String> {
    let mut script = String::new();
    io::stdin()
        .read_to_string(&mut script)
        .context("cannot read the script on stdin")?;
    Ok(script)
}

/// Why a script has no command of the shell.
const OF_THE_SHELL: &str = "commands that begin with \\ are for the shell at a terminal; scripts \
    write SHOW TABLES, SHOW COLUMNS FROM t and SHOW DATABASES, and --expanded, --format and --limit \
    say how rows are shown";

fn run_scripts(
    client: &mut DataClient,
    scripts: &[String],
    printing: PrintOptions,
    keep_going: bool,
) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for script in scripts {
        for statement in split_script(script) {
            let begin = Instant::now();
            let is_of_shell = statement.text.starts_with('\\');
            let answered = if is_of_shell {
                Err(StatementFailure::new(OF_THE_SHELL))
            } else {
                client.execute(statement.text)
            };
            let done = match answered {
                Ok(reply) => answer::print(reply, printing, begin, &mut out),
                Err(failure) => Err(failure.into()),
            };
            out.flush()?;
            let Err(error) = done else { continue };
            match error.downcast::<StatementFailure>() {
                Ok(failure) => answer::print_failure(&failure, statement.text),
                Err(error) => return Err(error),
            }
            code = ExitCode::FAILURE;
            if !keep_going {
                return Ok(code);
            }
        }
    }
    Ok(code)
}
