//! `marigram user`: users of a database, on a server or in a data directory whose server is stopped.

use crate::client::{ClientTarget, IfMissing};
use crate::reply::StatementReply;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use marigram_model::always_quoted;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// Add, change, list and remove users.
#[derive(Args)]
pub(crate) struct User {
    #[command(subcommand)]
    action: UserAction,
}

#[derive(Subcommand)]
enum UserAction {
    /// Add a user who can log in; clients must log in once there is an administrator
    Add {
        /// Name
        name: String,
        /// Let the user do everything
        #[arg(long)]
        admin: bool,
        #[command(flatten)]
        password: PasswordSource,
        #[command(flatten)]
        target: ClientTarget,
    },
    /// Set a user's password
    Password {
        /// Name
        name: String,
        #[command(flatten)]
        password: PasswordSource,
        #[command(flatten)]
        target: ClientTarget,
    },
    /// List users and roles
    List {
        #[command(flatten)]
        target: ClientTarget,
    },
    /// Remove a user or role
    Remove {
        /// Name
        name: String,
        #[command(flatten)]
        target: ClientTarget,
    },
}

/// Where a new password comes from. There is no option with the password itself: other users of the
/// machine see the arguments of a process.
#[derive(Args)]
struct PasswordSource {
    /// Read the new password from the first line of a file (- for stdin) [default: ask]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordSource {
    fn read(&self, name: &str) -> Result<String> {
        let text = match &self.password_file {
            Some(file) if file.as_os_str() != "-" => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?,
            None if io::stdin().is_terminal() => {
                let password = rpassword::prompt_password(format!("Password for {name}: "))?;
                if rpassword::prompt_password("Again: ")? != password {
                    bail!("the two passwords differ");
                }
                password
            }
            _ => {
                let mut text = String::new();
                let read = io::stdin().read_to_string(&mut text);
                read.context("cannot read the password on stdin")?;
                text
            }
        };
        let password = text.lines().next().unwrap_or_default();
        if password.is_empty() {
            bail!("the password is empty");
        }
        Ok(password.to_owned())
    }
}

/// A text as SQL writes it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl User {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.action {
            UserAction::Add {
                name,
                admin,
                password,
                target,
            } => {
                let password = literal(&password.read(&name)?);
                let rights = if admin { " SUPERUSER" } else { "" };
                let user = always_quoted(&name);
                let sql = format!("CREATE USER {user} WITH PASSWORD {password}{rights}");
                run(&target, IfMissing::Create, &sql, &format!("added {name}"))
            }
            UserAction::Password {
                name,
                password,
                target,
            } => {
                let password = literal(&password.read(&name)?);
                let user = always_quoted(&name);
                let sql = format!("ALTER USER {user} WITH PASSWORD {password}");
                run(&target, IfMissing::Fail, &sql, &format!("changed {name}"))
            }
            UserAction::List { target } => run(&target, IfMissing::Fail, "SHOW USERS", ""),
            UserAction::Remove { name, target } => {
                let sql = format!("DROP USER {}", always_quoted(&name));
                run(&target, IfMissing::Fail, &sql, &format!("removed {name}"))
            }
        }
    }
}

/// Runs a statement about users, and prints its rows or what was done.
fn run(target: &ClientTarget, if_missing: IfMissing, sql: &str, done: &str) -> Result<ExitCode> {
    let mut client = target.connect(if_missing)?;
    match client.execute(sql).map_err(anyhow::Error::from)? {
        StatementReply::Rows(mut rows) => {
            for batch in rows.batches.by_ref() {
                outln!("{}", arrow::util::pretty::pretty_format_batches(&[batch?])?);
            }
        }
        StatementReply::Done(_) => outln!("{done}"),
    }
    client.close()?;
    Ok(ExitCode::SUCCESS)
}
