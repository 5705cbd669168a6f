//! The shell's own commands, which begin with a backslash.

use super::script::has_words;
use super::{
    AfterScript, RunningScript, SCRIPTS_MAX, ShellState, copy, edit, help, report_failure,
};
use crate::answer::{AnswerForm, ExpandedRows};
use crate::names::texts;
use crate::reply::{StatementFailure, StatementReply};
use crate::{interrupt, output, plot, terminal};
use anyhow::Result;
use clap::ValueEnum;
use marigram_model::quoted;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the shell does after a command.
pub(super) enum AfterCommand {
    /// Continues.
    Stay,
    /// Continues, or stops the script: the command failed.
    Failed,
    /// Puts this text at the prompt.
    Edit(String),
    /// Ends.
    Leave,
}

/// Commands that need a person at a terminal.
const FOR_TERMINALS: [&str; 2] = ["\\e", "\\pager"];

impl ShellState {
    /// Runs a command, which begins with a backslash.
    pub(super) fn command(&mut self, line: &str) -> Result<AfterCommand> {
        let (command, argument) = parts(line);
        // \dt; and \copy …; are statements for whoever ends each line so.
        let has_text = ["\\echo", "\\warn", "\\!"].contains(&command);
        let argument = if has_text {
            argument
        } else {
            argument.trim_end_matches(';').trim_end()
        };
        if self.runs_script() && FOR_TERMINALS.contains(&command) {
            return Ok(self.refuse(&format!("{command} is for the shell at a terminal")));
        }
        let is_done = match command {
            "\\q" => return Ok(AfterCommand::Leave),
            "\\?" => self.say(help::COMMANDS),
            "\\h" => self.say(&help::statements(argument)),
            "\\l" => self.run("SHOW DATABASES")?,
            "\\du" => self.run("SHOW USERS")?,
            "\\dm" => self.run("SHOW MATERIALIZED VIEWS")?,
            "\\d" | "\\dt" | "\\d+" if argument.is_empty() => self.run("SHOW TABLES")?,
            "\\d" | "\\d+" | "\\dt" => self.describe(argument)?,
            "\\c" | "\\u" if !argument.is_empty() => {
                self.run(&format!("USE {}", bare(argument)))?
            }
            "\\c" | "\\u" | "\\conninfo" => {
                let client = self.client.borrow();
                let said = format!("database {}, {}", client.database(), client.describe());
                drop(client);
                self.say(&said)
            }
            "\\g" => self.send(argument, false)?,
            "\\gx" => self.send(argument, true)?,
            "\\p" => self.show_begun(),
            "\\r" => {
                self.begun.clear();
                self.say("the statement that had begun is forgotten")
            }
            "\\echo" => {
                outln!("{}", unquoted(argument));
                true
            }
            "\\warn" => {
                erroutln!("{}", unquoted(argument));
                true
            }
            "\\!" => self.run_system(argument)?,
            "\\set" | "\\unset" => self.set(command, argument),
            "\\timing" => self.timing(argument),
            "\\x" => self.expand(argument),
            "\\pager" => self.page(argument),
            "\\limit" => match argument.parse::<usize>() {
                Ok(rows) => {
                    self.printing.rows_max = Some(rows).filter(|rows| *rows > 0);
                    true
                }
                Err(_) => self.complain("\\limit takes a number of rows; 0 shows all"),
            },
            "\\format" => match AnswerForm::from_str(argument, true) {
                Ok(form) => {
                    self.printing.form = form;
                    true
                }
                Err(_) => self.complain("\\format takes table, csv, tsv, json or ndjson"),
            },
            "\\i" | "\\ir" => return self.include(argument, command == "\\ir"),
            "\\e" => return Ok(self.edit()),
            "\\o" => self.redirect(argument),
            "\\plot" => self.plot(argument)?,
            "\\copy" => self.copy(argument),
            _ => self.complain(&format!("{command} is unknown; \\? lists the commands")),
        };
        Ok(if is_done {
            AfterCommand::Stay
        } else {
            AfterCommand::Failed
        })
    }

    /// Shows a text: beside the answers in a terminal, and not among them in a script.
    fn say(&self, text: &str) -> bool {
        if self.is_interactive {
            outln!("{text}");
        } else {
            erroutln!("{text}");
        }
        true
    }

    /// Tells why a command does nothing, and where it is.
    fn complain(&mut self, text: &str) -> bool {
        self.has_failed = true;
        match self.scripts.last() {
            None => outln!("{text}"),
            Some(script) => erroutln!(
                "{} {}:{}: {text}",
                terminal::error_label(),
                script.name,
                script.line
            ),
        }
        false
    }

    fn refuse(&mut self, text: &str) -> AfterCommand {
        self.complain(text);
        AfterCommand::Failed
    }

    fn describe(&mut self, argument: &str) -> Result<bool> {
        let table: Vec<String> = argument.split('.').map(bare).collect();
        let statement = format!("SHOW COLUMNS FROM {}", table.join("."));
        let is_done = self.run(&statement)?;
        if !is_done || self.printing.form != AnswerForm::Table {
            return Ok(is_done);
        }
        let columns = self.client.borrow_mut().query(&statement);
        let columns = columns.unwrap_or_default();
        let names = texts(&columns, &["column_name"]);
        let roles = texts(&columns, &["role"]);
        let of = |role: &str| {
            let columns = names.iter().zip(&roles);
            let found = columns.filter(|(_, found)| *found == role);
            found.map(|(name, _)| bare(name)).collect::<Vec<_>>()
        };
        if let [time] = of("time").as_slice() {
            let key = [of("tag"), vec![time.clone()]].concat().join(", ");
            let said =
                format!("primary key: {key}; a row replaces the values of one with the same key");
            self.show(|_, out| Ok(writeln!(out, "{said}")?))?;
        }
        Ok(true)
    }

    /// Runs the statement that has begun, or the last one again.
    fn send(&mut self, argument: &str, is_expanded: bool) -> Result<bool> {
        let begun = std::mem::take(&mut self.begun);
        if has_words(&begun) {
            begun.trim().clone_into(&mut self.last);
        }
        let statement = self.last.clone();
        if statement.is_empty() {
            return Ok(self.complain("there is no statement yet to run"));
        }
        let before = self.printing.expanded;
        if is_expanded {
            self.printing.expanded = ExpandedRows::On;
        }
        let file = if argument.is_empty() {
            None
        } else {
            match File::create(unquoted(argument)) {
                Ok(file) => Some(file),
                Err(error) => {
                    self.printing.expanded = before;
                    return Ok(self.complain(&format!("cannot write {argument}: {error}")));
                }
            }
        };
        let usual = self.file.take();
        self.file = file.or_else(|| usual.as_ref().and_then(|usual| usual.try_clone().ok()));
        let done = self.run(&statement);
        self.file = usual;
        self.printing.expanded = before;
        done
    }

    /// Shows the statement that has begun, or the last one.
    fn show_begun(&mut self) -> bool {
        let text = if has_words(&self.begun) {
            self.begun.trim()
        } else {
            &self.last
        };
        match text {
            "" => self.say("there is no statement yet"),
            text => {
                outln!("{text}");
                true
            }
        }
    }

    /// Runs a command of the system, or a shell of it.
    fn run_system(&mut self, argument: &str) -> Result<bool> {
        io::stdout().flush()?;
        let status = if argument.is_empty() {
            let shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
            Command::new(shell).status()
        } else {
            Command::new("sh").args(["-c", argument]).status()
        };
        Ok(match status {
            Ok(status) if status.success() => true,
            Ok(status) => self.complain(&format!("\\!: {status}")),
            Err(error) => self.complain(&format!("\\!: {error}")),
        })
    }

    /// `\set ON_ERROR_STOP`, the only variable.
    fn set(&mut self, command: &str, argument: &str) -> bool {
        let (name, value) = argument
            .split_once(char::is_whitespace)
            .unwrap_or((argument, ""));
        if name.is_empty() {
            let state = if self.keeps_going { "off" } else { "on" };
            return self.say(&format!("ON_ERROR_STOP = {state}"));
        }
        if !name.eq_ignore_ascii_case("ON_ERROR_STOP") {
            return self.complain(&format!(
                "{command} knows ON_ERROR_STOP only; statements have no variables of the shell"
            ));
        }
        let value = unquoted(value.trim()).to_ascii_lowercase();
        self.keeps_going = match value.as_str() {
            _ if command == "\\unset" => true,
            "" | "on" | "1" | "true" | "yes" => false,
            "off" | "0" | "false" | "no" => true,
            _ => return self.complain("ON_ERROR_STOP is on or off"),
        };
        true
    }

    /// Runs a file; with `is_beside`, it is looked for beside the script that runs.
    fn include(&mut self, argument: &str, is_beside: bool) -> Result<AfterCommand> {
        if self.scripts.len() >= SCRIPTS_MAX {
            let reason = format!("more than {SCRIPTS_MAX} scripts run each other");
            return Ok(self.refuse(&reason));
        }
        let name = unquoted(argument);
        let path = match self.scripts.last() {
            Some(script) if is_beside => script.folder.join(name),
            _ => PathBuf::from(name),
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Ok(self.refuse(&format!("cannot read {argument}: {error}"))),
        };
        let script = RunningScript {
            name: path.display().to_string(),
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            line: 0,
        };
        if !self.runs_script() {
            interrupt::clear();
        }
        Ok(match self.run_script(script, &text)? {
            AfterScript::Stops => AfterCommand::Failed,
            _ => AfterCommand::Stay,
        })
    }

    fn edit(&mut self) -> AfterCommand {
        let begun = std::mem::take(&mut self.begun);
        let text = if has_words(&begun) {
            begun.trim().to_owned()
        } else if self.last.is_empty() {
            return self.refuse("there is no statement yet to edit");
        } else {
            // The semicolon that ended it is not part of `last`.
            format!("{};", self.last)
        };
        match edit::edit(&text) {
            Ok(text) => AfterCommand::Edit(text),
            Err(error) => {
                self.begun = begun;
                self.refuse(&terminal::chain(&error))
            }
        }
    }

    fn copy(&mut self, argument: &str) -> bool {
        if self.is_interactive {
            interrupt::clear();
        }
        let copied = copy::run(argument, &mut self.client.borrow_mut());
        match copied {
            Ok(said) => self.say(&said),
            Err(error) if self.scripts.is_empty() => {
                erroutln!("{} {}", terminal::error_label(), terminal::chain(&error));
                self.has_failed = true;
                false
            }
            Err(error) => self.complain(&terminal::chain(&error)),
        }
    }

    fn run(&mut self, statement: &str) -> Result<bool> {
        self.run_statement(statement)
    }

    fn timing(&mut self, argument: &str) -> bool {
        self.printing.timing = match argument {
            "on" => true,
            "off" => false,
            _ => !self.printing.timing,
        };
        let state = if self.printing.timing { "on" } else { "off" };
        self.say(&format!("timing is {state}"))
    }

    fn expand(&mut self, argument: &str) -> bool {
        self.printing.expanded = match (argument, self.printing.expanded) {
            ("on", _) | ("", ExpandedRows::Off) => ExpandedRows::On,
            ("off" | "", _) => ExpandedRows::Off,
            ("auto", _) => ExpandedRows::Auto,
            _ => return self.complain("\\x takes on, off or auto"),
        };
        self.say(match self.printing.expanded {
            ExpandedRows::On => "rows are shown one value per line",
            ExpandedRows::Off => "rows are shown in a table",
            ExpandedRows::Auto => "rows are shown in a table if it fits the terminal",
        })
    }

    fn page(&mut self, argument: &str) -> bool {
        let is_on = match argument {
            "on" => true,
            "off" => false,
            "" => self.pager.is_none(),
            _ => return self.complain("\\pager takes on or off"),
        };
        self.pager = output::pager().filter(|_| is_on);
        self.say(&match &self.pager {
            Some(pager) => format!("long answers go through {pager}"),
            None if is_on => "PAGER is empty: no pager is set".to_owned(),
            None => "answers are shown without a pager".to_owned(),
        })
    }

    fn redirect(&mut self, argument: &str) -> bool {
        if argument.is_empty() {
            self.file = None;
            return true;
        }
        match File::create(unquoted(argument)) {
            Ok(file) => {
                self.file = Some(file);
                true
            }
            Err(error) => self.complain(&format!("cannot write {argument}: {error}")),
        }
    }

    /// Plots the rows of the given query, or of the last one.
    fn plot(&mut self, argument: &str) -> Result<bool> {
        let query = match (argument, &self.last_query) {
            ("", None) => {
                let reason = "there was no query yet: \\plot SELECT time, … draws one";
                return Ok(self.complain(reason));
            }
            ("", Some(query)) => query.clone(),
            (query, _) => query.to_owned(),
        };
        if self.is_interactive {
            interrupt::clear();
        }
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
        let is_done = report_failure(done, &query)?;
        self.has_failed |= !is_done;
        Ok(is_done)
    }
}

/// A command and its argument. `\!` and `\?` need no blank behind them.
fn parts(line: &str) -> (&str, &str) {
    let line = line.trim();
    if let Some(argument) = line.strip_prefix("\\!") {
        return ("\\!", argument.trim());
    }
    let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (command.trim_end_matches(';'), argument.trim())
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
