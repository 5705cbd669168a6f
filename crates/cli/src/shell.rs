//! The SQL shell: lines with history and completion, statements over several lines, and backslash
//! commands; and scripts, whose statements and commands run in the same way.
//!
//! Ctrl-C stops the running statement, or clears the line at the prompt; it does not end the shell. It
//! ends a script.

mod complete;
mod copy;
mod edit;
mod help;
mod leftover;
mod meta;
mod script;

use crate::answer::{self, PrintOptions};
use crate::client::DataClient;
use crate::interrupt::SecondInterrupt;
use crate::output::{PagedOutput, ScreenSize};
use crate::reply::StatementFailure;
use crate::terminal::{TextStyle, styled};
use crate::{interrupt, terminal};
use anyhow::Result;
use complete::Completer;
use meta::AfterCommand;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use script::{ScriptPart, has_words};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

/// Statements kept in the history.
const HISTORY_MAX: usize = 10_000;

/// State of the shell.
struct ShellState {
    client: Rc<RefCell<DataClient>>,
    printing: PrintOptions,
    /// The pager for answers that do not fit the terminal.
    pager: Option<String>,
    screen: ScreenSize,
    /// The file that receives answers (`\o`).
    file: Option<File>,
    /// The statement that has begun, before a command.
    begun: String,
    /// The last statement, for `\e`, `\g` and `\p`.
    last: String,
    /// The last statement that returned rows, for `\plot`.
    last_query: Option<String>,
    /// Whether a person types the statements.
    is_interactive: bool,
    /// Whether a script continues after an error.
    keeps_going: bool,
    /// The script that runs; none for what is typed.
    scripts: Vec<RunningScript>,
    /// Whether a statement or a command of a script failed.
    has_failed: bool,
}

/// A script that runs.
struct RunningScript {
    /// Its name, for messages.
    name: String,
    /// The folder in which it is.
    folder: PathBuf,
    /// The line of the command that runs.
    line: usize,
}

/// What happens after a script, or a part of it.
#[derive(Debug, PartialEq, Eq)]
enum AfterScript {
    /// What follows it.
    GoesOn,
    /// Nothing more of it: something failed.
    Stops,
    /// The shell ends.
    Leaves,
    /// The text goes to the prompt.
    Edits(String),
}

/// Scripts that may include each other.
const SCRIPTS_MAX: usize = 32;

/// Runs the shell until the user leaves it, then closes the client.
pub(crate) fn run(client: DataClient, printing: PrintOptions, pager: Option<String>) -> Result<()> {
    interrupt::watch(SecondInterrupt::Waits)?;
    let client = Rc::new(RefCell::new(client));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(HISTORY_MAX)?
        .build();
    let mut editor: Editor<Completer, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Completer::new(Rc::clone(&client))));
    let history = history_file();
    if let Some(history) = &history {
        if let Some(dir) = history.parent() {
            let _ = std::fs::create_dir_all(dir);
        }
        // A new user has no history yet.
        let _ = editor.load_history(history);
    }
    outln!(
        "{} ({}). Statements end with ;  {} helps, {} leaves.",
        styled(
            TextStyle::Bold,
            &format!("Marigram {}", env!("CARGO_PKG_VERSION"))
        ),
        client.borrow().describe(),
        styled(TextStyle::Code, "\\?"),
        styled(TextStyle::Code, "\\q"),
    );
    let mut shell = ShellState::new(Rc::clone(&client), printing, pager);
    shell.is_interactive = true;
    shell.converse(&mut editor, history.as_deref())?;
    drop((editor, shell));
    match Rc::try_unwrap(client) {
        Ok(client) => client.into_inner().close(),
        Err(_) => Ok(()),
    }
}

/// A script: its name, and its text.
pub(crate) type NamedScript = (String, String);

/// Runs scripts without a terminal; returns whether everything in them succeeded.
pub(crate) fn run_scripts(
    client: DataClient,
    scripts: &[NamedScript],
    printing: PrintOptions,
    keeps_going: bool,
) -> Result<ExitCode> {
    interrupt::watch(SecondInterrupt::Ends)?;
    let client = Rc::new(RefCell::new(client));
    let mut shell = ShellState::new(Rc::clone(&client), printing, None);
    shell.keeps_going = keeps_going;
    for (name, text) in scripts {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let running = RunningScript {
            name: name.clone(),
            folder: folder.to_owned(),
            line: 0,
        };
        match shell.run_script(running, text)? {
            AfterScript::GoesOn => {}
            _ => break,
        }
    }
    let code = match (interrupt::is_raised(), shell.has_failed) {
        (true, _) => ExitCode::from(interrupt::INTERRUPTED),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    };
    drop(shell);
    if let Ok(client) = Rc::try_unwrap(client) {
        client.into_inner().close()?;
    }
    Ok(code)
}

impl ShellState {
    fn new(client: Rc<RefCell<DataClient>>, printing: PrintOptions, pager: Option<String>) -> Self {
        Self {
            client,
            printing,
            pager,
            screen: ScreenSize {
                columns: 80,
                rows: 24,
            },
            file: None,
            begun: String::new(),
            last: String::new(),
            last_query: None,
            is_interactive: false,
            keeps_going: false,
            scripts: Vec::new(),
            has_failed: false,
        }
    }

    fn converse(
        &mut self,
        editor: &mut Editor<Completer, FileHistory>,
        history: Option<&Path>,
    ) -> Result<()> {
        let mut begun = String::new();
        loop {
            let prompt = format!("{}> ", self.client.borrow().database());
            let initial = std::mem::take(&mut begun);
            let input = match editor.readline_with_initial(&prompt, (&initial, "")) {
                Ok(input) => input,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let command = input.trim();
            if command.is_empty() {
                continue;
            }
            let _ = editor.add_history_entry(command);
            // Save now rather than at the end, so that the history survives a closed window.
            if let Some(history) = history {
                let _ = editor.append_history(history);
            }
            if let Some((columns, rows)) = editor.dimensions() {
                self.screen = ScreenSize {
                    columns: usize::from(columns).max(20),
                    rows: usize::from(rows).max(5),
                };
                self.printing.columns = self.screen.columns;
            }
            if complete::leaves(command) {
                return Ok(());
            }
            let mut after = self.run_parts(&input)?;
            if let AfterScript::Edits(text) = &after {
                // An incomplete statement returns to the prompt.
                if has_words(text) && complete::is_whole(text) {
                    let text = text.trim().to_owned();
                    let _ = editor.add_history_entry(&text);
                    outln!("{text}");
                    after = self.run_parts(&text)?;
                } else {
                    begun.clone_from(text);
                }
            }
            if after == AfterScript::Leaves {
                return Ok(());
            }
            let left = std::mem::take(&mut self.begun);
            if has_words(&left) && begun.is_empty() {
                begun = left.trim().to_owned() + "\n";
            }
            if changes_names(&input)
                && let Some(completer) = editor.helper_mut()
            {
                completer.learn();
            }
        }
    }

    /// Runs a script to its end, or to its first error if that stops it.
    fn run_script(&mut self, script: RunningScript, text: &str) -> Result<AfterScript> {
        let begun = std::mem::take(&mut self.begun);
        self.scripts.push(script);
        let mut after = self.run_parts(text);
        if matches!(after, Ok(AfterScript::GoesOn)) {
            // The last statement of a script needs no semicolon.
            let last = std::mem::take(&mut self.begun);
            if has_words(&last) {
                last.trim().clone_into(&mut self.last);
                if !self.run_statement(last.trim())? && !self.keeps_going {
                    after = Ok(AfterScript::Stops);
                }
            }
        }
        self.scripts.pop();
        self.begun = begun;
        after
    }

    /// Runs the statements and commands of a text; what is left of it has begun a statement.
    fn run_parts(&mut self, text: &str) -> Result<AfterScript> {
        for part in script::split(text) {
            let is_done = match part {
                ScriptPart::Begun(rest) => {
                    self.begun.push_str(rest);
                    continue;
                }
                ScriptPart::Statement(rest) => {
                    self.begun.push_str(rest);
                    let statement = std::mem::take(&mut self.begun);
                    if !has_words(&statement) {
                        continue;
                    }
                    statement.trim().clone_into(&mut self.last);
                    self.run_statement(statement.trim())?
                }
                ScriptPart::Command { before, text, line } => {
                    self.begun.push_str(before);
                    if let Some(script) = self.scripts.last_mut() {
                        script.line = line;
                    }
                    match self.command(text)? {
                        AfterCommand::Leave if self.scripts.len() > 1 => {
                            self.begun.clear();
                            break;
                        }
                        AfterCommand::Leave => return Ok(AfterScript::Leaves),
                        AfterCommand::Edit(text) => return Ok(AfterScript::Edits(text)),
                        AfterCommand::Stay => true,
                        AfterCommand::Failed => false,
                    }
                }
            };
            let is_stopped = self.runs_script() && interrupt::is_raised();
            if is_stopped || !(is_done || self.keeps_going) {
                return Ok(AfterScript::Stops);
            }
        }
        Ok(AfterScript::GoesOn)
    }

    /// Whether statements come from a script, also from one that a user at the prompt runs.
    fn runs_script(&self) -> bool {
        !self.is_interactive || !self.scripts.is_empty()
    }

    /// Runs one statement and prints its answer; returns whether it succeeded.
    fn run_statement(&mut self, statement: &str) -> Result<bool> {
        if self.is_interactive {
            interrupt::clear();
        }
        let begin = Instant::now();
        let client = Rc::clone(&self.client);
        let reply = client.borrow_mut().execute(statement);
        if matches!(reply, Ok(crate::reply::StatementReply::Rows(_))) {
            self.last_query = Some(statement.to_owned());
        }
        let done = match reply {
            Ok(reply) => self.show(|printing, out| answer::print(reply, printing, begin, out)),
            Err(mut failure) => {
                if interrupt::is_raised() {
                    let left = leftover::after(&mut client.borrow_mut(), statement);
                    failure.message = left.unwrap_or(failure.message);
                }
                Err(failure.into())
            }
        };
        let is_done = report_failure(done, statement)?;
        self.has_failed |= !is_done;
        Ok(is_done)
    }

    /// Prints with `print`, to the file of `\o` or to the terminal.
    fn show(
        &mut self,
        print: impl FnOnce(PrintOptions, &mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        if let Some(file) = &mut self.file {
            let whole = PrintOptions {
                rows_max: None,
                width_max: None,
                is_plain: true,
                ..self.printing
            };
            let mut out = io::BufWriter::new(file);
            print(whole, &mut out)?;
            return Ok(out.flush()?);
        }
        let mut out = PagedOutput::new(self.pager.as_deref(), self.screen);
        let printed = print(self.printing, &mut out);
        let is_left = out.finish()?;
        match printed {
            Err(error) if is_left && terminal::is_closed_pipe(&error) => Ok(()),
            printed => printed,
        }
    }
}

/// Prints why something failed; returns whether it succeeded. Errors other than failures end the
/// shell.
fn report_failure(done: Result<()>, statement: &str) -> Result<bool> {
    match done.map_err(anyhow::Error::downcast::<StatementFailure>) {
        Ok(()) => Ok(true),
        Err(Ok(failure)) => {
            answer::print_failure(&failure, statement);
            Ok(false)
        }
        Err(Err(error)) => Err(error),
    }
}

fn changes_names(script: &str) -> bool {
    let upper = script.to_ascii_uppercase();
    ["CREATE", "DROP", "ALTER", "USE", "INSERT"]
        .iter()
        .any(|word| upper.contains(word))
}

/// `$XDG_STATE_HOME/marigram/history`, by default below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("marigram/history"))
}
