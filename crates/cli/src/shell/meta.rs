//! The shell's own commands, which begin with a backslash.

use super::{ShellState, copy, edit, report_failure};
use crate::answer::{AnswerForm, ExpandedRows};
use crate::reply::{StatementFailure, StatementReply};
use crate::{interrupt, output, plot, terminal};
use anyhow::Result;
use clap::ValueEnum;
use marigram_model::quoted;
use marigram_pgtext::split_script;
use std::fs::File;

/// What the shell does after a command.
pub(super) enum AfterCommand {
    /// Waits for the next line.
    Stay,
    /// Runs this.
    Run(String),
    /// Puts this text at the prompt.
    Edit(String),
    /// Ends.
    Leave,
}

const HELP: &str = r"  \d            tables            \d TABLE     columns of a table
  \dt           tables            \l           databases
  \dm           materialized views  \du          users
  \c DATABASE   use a database    \i FILE      run the statements of a file
  \x [on|off|auto]  rows one under the other, a line for each value
  \timing [on|off]  show times    \limit N     rows shown of an answer (0: all)
  \format F     table, csv, tsv, json, ndjson
  \plot [SQL]   draw the last or this query: a time, numbers, a line for each tag
  \e            edit the last statement in $EDITOR
  \o FILE       answers go to a file; \o to the terminal again
  \copy TABLE|(QUERY) to 'FILE' [(format csv, header, delimiter ';', null '')]
  \copy TABLE from 'FILE' [(format csv, header, delimiter ';', null 'x', tz 'Europe/Berlin')]
  \pager [on|off]   long answers through $PAGER
  \q            leave

  Ctrl-C cancels a statement or clears the line. Tab completes words, names and values of tags.
  Statements end with ;
  SHOW TABLES, SHOW COLUMNS FROM t, SHOW SERIES FROM t, SHOW SEGMENTS, EXPLAIN ANALYZE SELECT …";

impl ShellState {
    /// Runs a line that begins with a backslash.
    pub(super) fn command(&mut self, line: &str) -> Result<AfterCommand> {
        // \dt; and \copy …; are statements for whoever ends each line so.
        let line = line.trim_end().trim_end_matches(';').trim_end();
        let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        match command {
            "\\q" => return Ok(AfterCommand::Leave),
            "\\?" | "\\h" => outln!("{HELP}"),
            "\\l" => self.run("SHOW DATABASES")?,
            "\\du" => self.run("SHOW USERS")?,
            "\\dm" => self.run("SHOW MATERIALIZED VIEWS")?,
            "\\d" | "\\dt" | "\\d+" if argument.is_empty() => self.run("SHOW TABLES")?,
            "\\d" | "\\d+" => {
                let table: Vec<String> = argument.split('.').map(bare).collect();
                self.run(&format!("SHOW COLUMNS FROM {}", table.join(".")))?;
            }
            "\\c" | "\\u" if !argument.is_empty() => {
                self.run(&format!("USE {}", bare(argument)))?;
            }
            "\\timing" => self.timing(argument),
            "\\x" => self.expand(argument),
            "\\pager" => self.page(argument),
            "\\limit" => match argument.parse::<usize>() {
                Ok(rows) => self.printing.rows_max = Some(rows).filter(|rows| *rows > 0),
                Err(_) => outln!("\\limit takes a number of rows; 0 shows all"),
            },
            "\\format" => match AnswerForm::from_str(argument, true) {
                Ok(form) => self.printing.form = form,
                Err(_) => outln!("\\format takes table, csv, tsv, json or ndjson"),
            },
            "\\i" => match std::fs::read_to_string(unquoted(argument)) {
                Err(error) => outln!("cannot read {argument}: {error}"),
                Ok(text) => {
                    for statement in split_script(&text) {
                        if !self.run_statement(statement.text)? {
                            break;
                        }
                    }
                }
            },
            "\\e" if self.last.is_empty() => {
                outln!("there is no statement yet to edit");
            }
            "\\e" => match edit::edit(&self.last) {
                Ok(text) => return Ok(AfterCommand::Edit(text)),
                Err(error) => outln!("{}", terminal::chain(&error)),
            },
            "\\o" => self.redirect(argument),
            "\\plot" => self.plot(argument)?,
            "\\copy" => {
                interrupt::clear();
                let copied = copy::run(argument, &mut self.client.borrow_mut());
                match copied {
                    Ok(said) => outln!("{said}"),
                    Err(error) => {
                        eprintln!("{} {}", terminal::error_label(), terminal::chain(&error));
                    }
                }
            }
            _ => outln!("{command} is unknown; \\? lists the commands"),
        }
        Ok(AfterCommand::Stay)
    }

    fn run(&mut self, statement: &str) -> Result<()> {
        self.run_statement(statement).map(|_| ())
    }

    fn timing(&mut self, argument: &str) {
        self.printing.timing = match argument {
            "on" => true,
            "off" => false,
            _ => !self.printing.timing,
        };
        let state = if self.printing.timing { "on" } else { "off" };
        outln!("timing is {state}");
    }

    fn expand(&mut self, argument: &str) {
        self.printing.expanded = match (argument, self.printing.expanded) {
            ("on", _) | ("", ExpandedRows::Off) => ExpandedRows::On,
            ("off" | "", _) => ExpandedRows::Off,
            ("auto", _) => ExpandedRows::Auto,
            _ => return outln!("\\x takes on, off or auto"),
        };
        outln!(
            "{}",
            match self.printing.expanded {
                ExpandedRows::On => "rows are shown one value per line",
                ExpandedRows::Off => "rows are shown in a table",
                ExpandedRows::Auto => "rows are shown in a table if it fits the terminal",
            }
        );
    }

    fn page(&mut self, argument: &str) {
        let is_on = match argument {
            "on" => true,
            "off" => false,
            "" => self.pager.is_none(),
            _ => return outln!("\\pager takes on or off"),
        };
        self.pager = output::pager().filter(|_| is_on);
        match &self.pager {
            Some(pager) => outln!("long answers go through {pager}"),
            None if is_on => outln!("PAGER is empty: no pager is set"),
            None => outln!("answers are shown without a pager"),
        }
    }

    fn redirect(&mut self, argument: &str) {
        if argument.is_empty() {
            self.file = None;
            return;
        }
        match File::create(unquoted(argument)) {
            Ok(file) => self.file = Some(file),
            Err(error) => outln!("cannot write {argument}: {error}"),
        }
    }

    /// Plots the rows of the given query, or of the last one.
    fn plot(&mut self, argument: &str) -> Result<()> {
        let query = match (argument, &self.last_query) {
            ("", None) => {
                outln!("there was no query yet: \\plot SELECT time, … draws one");
                return Ok(());
            }
            ("", Some(query)) => query.clone(),
            (query, _) => query.to_owned(),
        };
        interrupt::clear();
        let reply = self.client.borrow_mut().execute(&query);
        let drawn = match reply {
            Ok(StatementReply::Rows(rows)) => {
                rows.batches.collect::<Result<Vec<_>, StatementFailure>>()
            }
            Ok(StatementReply::Done(tag)) => {
                Err(StatementFailure::new(format!("{tag}: no rows to draw")))
            }
            Err(failure) => Err(failure),
        };
        let drawn = drawn.and_then(|batches| {
            self.last_query = Some(query.clone());
            plot::render(&batches).map_err(StatementFailure::new)
        });
        let done = match drawn {
            Ok(text) => self.show(|_, out| Ok(writeln!(out, "{text}")?)),
            Err(failure) => Err(failure.into()),
        };
        report_failure(done, &query).map(|_| ())
    }
}

/// A name as the user typed it, quoted if necessary.
fn bare(name: &str) -> String {
    if name.starts_with('"') {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// The name of a file, without its optional quotes.
fn unquoted(name: &str) -> &str {
    let inner = name
        .strip_prefix('\'')
        .and_then(|name| name.strip_suffix('\''));
    inner.unwrap_or(name)
}
