//! The SQL shell: lines with history and completion, statements over several lines, and a few
//! commands that begin with a backslash.

mod complete;
mod meta;

use crate::answer::{self, Printing};
use crate::client::Client;
use crate::script;
use crate::terminal::{Style, styled};
use anyhow::Result;
use complete::Completer;
pub use complete::{quoted, texts};
use meta::Next;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

/// Runs the shell until the user leaves it.
pub fn run(client: &mut Client, mut printing: Printing) -> Result<()> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(10_000)?
        .build();
    let mut editor: Editor<Completer, FileHistory> = Editor::with_config(config)?;
    let mut completer = Completer::default();
    completer.learn(client);
    editor.set_helper(Some(completer));
    let history = history_file();
    if let Some(history) = &history {
        // The first shell has no history yet.
        let _ = editor.load_history(history);
    }
    outln!(
        "{} ({}). Statements end with ;  {} helps, {} leaves.",
        styled(
            Style::Bold,
            &format!("Marigram {}", env!("CARGO_PKG_VERSION"))
        ),
        client.describe(),
        styled(Style::Code, "\\?"),
        styled(Style::Code, "\\q"),
    );
    loop {
        let script = match editor.readline(&format!("{}> ", client.database())) {
            Ok(script) => script,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        let command = script.trim();
        if command.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(command);
        if command.starts_with('\\') {
            match meta::run(command, client, &mut printing)? {
                Next::Leave => break,
                Next::Stay => continue,
            }
        }
        if complete::leaves(command) {
            break;
        }
        for statement in script::split(&script) {
            if !run_statement(client, statement.text, printing)? {
                break;
            }
        }
        if changes_names(&script)
            && let Some(completer) = editor.helper_mut()
        {
            completer.learn(client);
        }
    }
    if let Some(history) = &history {
        if let Some(dir) = history.parent() {
            let _ = std::fs::create_dir_all(dir);
        }
        let _ = editor.save_history(history);
    }
    Ok(())
}

/// Runs one statement and prints its answer; whether it was done.
fn run_statement(client: &mut Client, statement: &str, printing: Printing) -> Result<bool> {
    let begin = Instant::now();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = match client.execute(statement) {
        Ok(reply) => answer::print(reply, printing, begin, &mut out),
        Err(failure) => Err(failure.into()),
    };
    out.flush()?;
    match done.map_err(anyhow::Error::downcast::<crate::reply::Failure>) {
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

/// `$XDG_STATE_HOME/marigram/history`, by default in `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("marigram/history"))
}
