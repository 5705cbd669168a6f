//! The binary `marigram`: server, shell, import and export, and tools that look inside a data
//! directory.
//!
//! Everything that touches data goes through the public API of the crate `marigram`, so an embedder
//! can do whatever the command line can. Answers go to stdout; progress, notes and errors go to
//! stderr. Exit status: 0 for success, 1 for failure, refused rows or damaged data, 2 for wrong
//! usage.

#![allow(
    clippy::disallowed_methods,
    reason = "the command line is at the edge: it reads the user's files and the machine's clock"
)]
#![allow(
    clippy::doc_markdown,
    reason = "the documentation of an argument is its help text"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line prints"
)]

#[macro_use]
mod terminal;
mod answer;
mod backup;
mod client;
mod credentials;
mod csv_text;
mod demo;
mod descriptors;
mod directory;
mod export;
mod import;
mod inspect;
mod interrupt;
mod json_numbers;
mod lab;
mod line_comments;
mod line_sender;
mod line_text;
mod log;
mod names;
mod output;
mod plot;
mod remote;
mod reply;
mod restore;
#[cfg(test)]
mod round_trip;
mod serve;
mod settings;
mod shell;
mod sql;
mod sql_rows;
mod table;
mod table_columns;
mod tls_settings;
mod tls_trust;
mod user;
mod verify;
mod zoned_rows;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A time-series database for fleets of devices.
#[derive(Parser)]
#[command(
    name = "marigram",
    version,
    about,
    max_term_width = 100,
    infer_subcommands = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server: HTTP with line protocol and SQL, PostgreSQL's wire protocol, and Arrow Flight SQL
    Serve(Box<serve::Serve>),
    /// Run SQL: in a shell, as single commands, or from a script
    Sql(sql::Sql),
    /// Read files into a database: CSV, line protocol, Parquet, TsFile, and gzip of these
    Import(Box<import::Import>),
    /// Write a table or the answer to a query to a file: CSV, line protocol, Parquet or TsFile
    Export(export::Export),
    /// Show what a data directory or a segment contains
    Inspect(inspect::Inspect),
    /// Read every byte of a data directory and check every checksum
    Verify(verify::Verify),
    /// Back up a database into a folder: from a running server, or from a data directory
    Backup(backup::Backup),
    /// Restore a data directory from a backup, or single partitions into a database
    Restore(restore::Restore),
    /// Add, change, list and remove the users who may log in
    User(user::User),
    /// See Marigram at work on real sensor data and a small fleet of trucks
    Demo(demo::Demo),
    /// Measure Marigram and its peers: the laboratory
    Lab(Box<lab::Lab>),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Serve(command) => command.run(),
        Command::Sql(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Backup(command) => command.run(),
        Command::Restore(command) => command.run(),
        Command::User(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Lab(command) => command.run(),
    };
    match done {
        Ok(code) => code,
        Err(error) if terminal::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            erroutln!("{} {}", terminal::error_label(), terminal::chain(&error));
            ExitCode::FAILURE
        }
    }
}
