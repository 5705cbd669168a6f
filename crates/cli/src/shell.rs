//! The SQL shell: lines with history and completion, statements over several lines, and backslash
//! commands.
//!
//! Ctrl-C stops the running statement, or clears the line at the prompt; it does not end the shell.

mod complete;
mod copy;
mod edit;
mod meta;

use crate::answer::{self, PrintOptions};
use crate::client::DataClient;
use crate::output::{PagedOutput, ScreenSize};
use crate::reply::StatementFailure;
use crate::terminal::{TextStyle, styled};
use crate::{interrupt, terminal};
use anyhow::Result;
use complete::Completer;
use marigram_pgtext::split_script;
use meta::AfterCommand;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
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
    /// The last input that was not a command, for `\e`.
    last: String,
    /// The last statement that returned rows, for `\plot`.
    last_query: Option<String>,
}

/// Runs the shell until the user leaves it, then closes the client.
pub(crate) fn run(client: DataClient, printing: PrintOptions, pager: Option<String>) -> Result<()> {
    interrupt::watch()?;
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
    let mut shell = ShellState {
        client: Rc::clone(&client),
        printing,
        pager,
        screen: ScreenSize {
            columns: 80,
            rows: 24,
        },
        file: None,
        last: String::new(),
        last_query: None,
    };
    shell.converse(&mut editor, history.as_deref())?;
    drop((editor, shell));
    match Rc::try_unwrap(client) {
        Ok(client) => client.into_inner().close(),
        Err(_) => Ok(()),
    }
}

impl ShellState {
    fn converse(
        &mut self,
        editor: &mut Editor<Completer, FileHistory>,
        history: Option<&std::path::Path>,
    ) -> Result<()> {
        let mut begun = String::new();
        loop {
            let prompt = format!("{}> ", self.client.borrow().database());
            let initial = std::mem::take(&mut begun);
            let script = match editor.readline_with_initial(&prompt, (&initial, "")) {
                Ok(script) => script,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let command = script.trim();
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
            let next = if command.starts_with('\\') {
                self.command(command)?
            } else {
                command.clone_into(&mut self.last);
                AfterCommand::Run(script)
            };
            match next {
                AfterCommand::Leave => return Ok(()),
                AfterCommand::Stay => {}
                AfterCommand::Edit(text) => {
                    begun = text;
                    // An incomplete statement returns to the prompt.
                    self.edited(editor, &mut begun)?;
                }
                AfterCommand::Run(script) => self.run_script(&script, editor)?,
            }
        }
    }

    /// Runs the text that an editor returned if it is complete; otherwise puts it at the next
    /// prompt.
    fn edited(
        &mut self,
        editor: &mut Editor<Completer, FileHistory>,
        text: &mut String,
    ) -> Result<()> {
        if text.trim().is_empty() || !complete::is_whole(text) {
            return Ok(());
        }
        let script = std::mem::take(text);
        let _ = editor.add_history_entry(script.trim());
        script.trim().clone_into(&mut self.last);
        outln!("{}", script.trim());
        self.run_script(&script, editor)
    }

    fn run_script(
        &mut self,
        script: &str,
        editor: &mut Editor<Completer, FileHistory>,
    ) -> Result<()> {
        for statement in split_script(script) {
            if !self.run_statement(statement.text)? {
                break;
            }
        }
        if changes_names(script)
            && let Some(completer) = editor.helper_mut()
        {
            completer.learn();
        }
        Ok(())
    }

    /// Runs one statement and prints its answer; returns whether it succeeded.
    fn run_statement(&mut self, statement: &str) -> Result<bool> {
        interrupt::clear();
        let begin = Instant::now();
        let client = Rc::clone(&self.client);
        let reply = client.borrow_mut().execute(statement);
        if matches!(reply, Ok(crate::reply::StatementReply::Rows(_))) {
            self.last_query = Some(statement.to_owned());
        }
        let done = match reply {
            Ok(reply) => self.show(|printing, out| answer::print(reply, printing, begin, out)),
            Err(failure) => Err(failure.into()),
        };
        report_failure(done, statement)
    }

    /// Prints with `print`, to the file of `\o` or to the terminal.
    fn show(
        &mut self,
        print: impl FnOnce(PrintOptions, &mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        if let Some(file) = &mut self.file {
            let whole = PrintOptions {
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
