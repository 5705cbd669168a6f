//! The shell's own commands: `\d`, `\dt`, `\l`, `\c`, `\timing`, `\limit`, `\format`, `\i`, `\?`, `\q`.

use super::complete::quoted;
use super::run_statement;
use crate::answer::{Form, Printing};
use crate::client::Client;
use crate::script;
use anyhow::Result;
use clap::ValueEnum;

/// What the shell does after a command.
pub enum Next {
    /// Waits for the next line.
    Stay,
    /// Ends.
    Leave,
}

const HELP: &str = r"  \d            tables            \d TABLE   columns of a table
  \dt           tables            \l         databases
  \c DATABASE   use a database    \i FILE    run the statements of a file
  \timing       time on or off    \limit N   rows shown of an answer (0: all)
  \format F     table, csv, tsv, json, ndjson
  \q            leave

  Tab completes words and names. Statements end with ;
  SHOW TABLES, SHOW COLUMNS FROM t, SHOW SERIES FROM t, SHOW SEGMENTS, EXPLAIN ANALYZE SELECT …";

/// Runs a line that begins with a backslash.
pub fn run(line: &str, client: &mut Client, printing: &mut Printing) -> Result<Next> {
    let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim().trim_end_matches(';');
    match command {
        "\\q" => return Ok(Next::Leave),
        "\\?" | "\\h" => outln!("{HELP}"),
        "\\l" => show(client, "SHOW DATABASES", *printing)?,
        "\\d" | "\\dt" | "\\d+" if argument.is_empty() => show(client, "SHOW TABLES", *printing)?,
        "\\d" | "\\d+" => {
            let table: Vec<String> = argument.split('.').map(bare).collect();
            show(
                client,
                &format!("SHOW COLUMNS FROM {}", table.join(".")),
                *printing,
            )?;
        }
        "\\c" | "\\u" if !argument.is_empty() => {
            show(client, &format!("USE {}", bare(argument)), *printing)?;
        }
        "\\timing" => {
            printing.timing = match argument {
                "on" => true,
                "off" => false,
                _ => !printing.timing,
            };
            outln!("timing is {}", if printing.timing { "on" } else { "off" });
        }
        "\\limit" => match argument.parse::<usize>() {
            Ok(rows) => printing.rows_max = Some(rows).filter(|rows| *rows > 0),
            Err(_) => outln!("\\limit takes a number of rows; 0 shows all"),
        },
        "\\format" => match Form::from_str(argument, true) {
            Ok(form) => printing.form = form,
            Err(_) => outln!("\\format takes table, csv, tsv, json or ndjson"),
        },
        "\\i" => match std::fs::read_to_string(argument) {
            Err(error) => outln!("cannot read {argument}: {error}"),
            Ok(text) => {
                for statement in script::split(&text) {
                    if !run_statement(client, statement.text, *printing)? {
                        break;
                    }
                }
            }
        },
        _ => outln!("{command} is unknown here; \\? lists what there is"),
    }
    Ok(Next::Stay)
}

/// A name as the user typed it, quoted where it must be.
fn bare(name: &str) -> String {
    if name.starts_with('"') {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn show(client: &mut Client, statement: &str, printing: Printing) -> Result<()> {
    run_statement(client, statement, printing).map(|_| ())
}
