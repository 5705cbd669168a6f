//! Decides which statements change anything.
//!
//! A session may be [read-only](Session::read_only), and so may a
//! [transaction](Session::is_transaction_read_only), which may change settings. This module decides what it may run, by the
//! parsed statement and not by its text, and only admits statements that are known to change
//! nothing: a new kind of statement is refused until it is added here.
//!
//! Invariant: every path of a statement into the service calls [`check`] before anything is done.

use crate::dialect::access_statement::AccessStatement;
use crate::dialect::ast_walk::walk;
use crate::dialect::statement::Command;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement, Visitor};
use marigram_service::{ServiceError, Session};
use std::ops::ControlFlow;

/// Refuses a statement that would change anything in a read-only session or transaction.
///
/// # Errors
/// [`ServiceError::ChangesRefused`].
pub(crate) fn check(session: &Session, command: &Command) -> Result<(), ServiceError> {
    let is_setting = matches!(command, Command::Set { .. } | Command::Use(_));
    let refuses_data = session.is_transaction_read_only() && !is_setting;
    if !(session.read_only || refuses_data) || only_reads(command) {
        return Ok(());
    }
    Err(ServiceError::ChangesRefused(if session.read_only {
        "this statement changes something, and a GET request only reads; send it by POST".to_owned()
    } else {
        "cannot execute a statement that changes something in a read-only transaction".to_owned()
    }))
}

/// Whether a statement changes nothing, the session included.
pub(crate) fn only_reads(command: &Command) -> bool {
    match command {
        // Statements about transactions have no effect except their answer.
        Command::Show(_)
        | Command::Nothing(_)
        | Command::Transaction(..)
        | Command::Skipped { .. }
        | Command::Maintain { .. }
        | Command::Access(
            AccessStatement::ShowUsers
            | AccessStatement::ShowGrants(_)
            | AccessStatement::ShowTokens,
        ) => true,
        Command::Plan(statement, _) | Command::Summarize(statement) => plan_only_reads(statement),
        Command::CreateDatabase { .. }
        | Command::DropDatabase { .. }
        | Command::CreateTable { .. }
        | Command::AlterTable { .. }
        | Command::CreateIndex { .. }
        | Command::DropTable { .. }
        | Command::CreateTableAs(_)
        | Command::Truncate { .. }
        | Command::Reference(_)
        | Command::CreatePlainView(_)
        | Command::DropPlainView { .. }
        | Command::RenameView { .. }
        | Command::CreateView { .. }
        | Command::AlterView { .. }
        | Command::DropView { .. }
        | Command::RefreshView(_)
        | Command::Use(_)
        | Command::Set { .. }
        | Command::Flush
        | Command::Compact
        | Command::CopyFrom(_)
        | Command::CompactTable(_)
        | Command::Hypertable(_)
        | Command::Access(_) => false,
    }
}

fn plan_only_reads(parsed: &Parsed) -> bool {
    match parsed {
        Parsed::Statement(statement) => statement_only_reads(statement),
        Parsed::Explain(explain) => plan_only_reads(&explain.statement),
        Parsed::CreateExternalTable(_) | Parsed::CopyTo(_) | Parsed::Reset(_) => false,
    }
}

fn statement_only_reads(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_) => walk(statement, &mut NestedWriteFinder).is_continue(),
        Statement::Explain { statement, .. } => statement_only_reads(statement),
        Statement::ExplainTable { .. }
        | Statement::ShowVariable { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowTables { .. } => true,
        _ => false,
    }
}

/// Finds changes inside a query: `WITH x AS (DELETE …)`, `SELECT … INTO`.
struct NestedWriteFinder;

impl Visitor for NestedWriteFinder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if body_only_reads(&query.body) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Whether the body of a query changes nothing; queries inside it are visited separately.
fn body_only_reads(body: &SetExpr) -> bool {
    // Without recursion: a chain of UNIONs may be long.
    let mut rest = vec![body];
    while let Some(body) = rest.pop() {
        match body {
            SetExpr::Select(select) if select.into.is_none() => {}
            SetExpr::SetOperation { left, right, .. } => rest.extend([&**left, &**right]),
            SetExpr::Query(_) | SetExpr::Values(_) | SetExpr::Table(_) => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;

    #[test]
    fn what_changes_something_is_told_from_what_reads() {
        for sql in [
            "select 1",
            "SELECT * FROM t WHERE x IN (SELECT y FROM u) UNION ALL SELECT 2",
            "with x as (select 1), y as (values (2)) select * from x, y",
            "values (1), (2)",
            "(select 1)",
            "select 'drop table t'",
            "select \"insert\" from \"delete\"",
            "select time_bucket('1h', time), avg(v) from t group by 1",
            "explain select 1",
            "explain analyze select 1",
            "explain verbose select 1",
            "summarize t",
            "summarize select * from t",
            "from t",
            "select * from t latest on time partition by dev",
            "show tables",
            "show series from t",
            "show pages from t",
            "show timezone",
            "describe t",
            "show users",
            "show grants for ann",
            "show tokens",
            "begin",
            "commit",
            "vacuum t",
        ] {
            assert!(only_reads(&parse(sql).unwrap()), "{sql}");
        }
        for sql in [
            "insert into t values (1)",
            "insert into t select 1",
            "/* select */ insert into t values (1)",
            "with x as (select 1) insert into t select * from x",
            "with x as (delete from t returning *) select * from x",
            "with x as (insert into t values (1) returning *) select * from x",
            "select * from (with x as (delete from t returning *) select * from x)",
            "select * into t2 from t",
            "select 1 union select * into t2 from t",
            "select (select 1 into u)",
            "delete from t",
            "summarize with x as (delete from t returning *) select * from x",
            "from (delete from t returning *)",
            "update t set v = 1",
            "create database d",
            "drop database d",
            "create table t (time timestamp, v double)",
            "alter table t add column w double",
            "drop table t",
            "create materialized view v with (continuous) as select 1",
            "alter materialized view v set (lag = '1s')",
            "drop materialized view v",
            "refresh materialized view v",
            "create table t (id int primary key)",
            "create temp table t (id int)",
            "drop index if exists i",
            "create external table x stored as csv location '/etc/passwd'",
            "create view v as select 1",
            "copy t to 'x.csv'",
            "copy (select 1) to 'x.csv'",
            "copy t from 'x.csv'",
            "explain analyze insert into t values (1)",
            "explain delete from t",
            "explain copy t to 'x.csv'",
            "explain analyze copy t to 'x.csv'",
            "flush",
            "compact",
            "compact table t",
            "set timezone = 'UTC'",
            "set time zone 'UTC'",
            "reset timezone",
            "use main",
            "truncate table t",
            "select create_hypertable('t', 'time')",
            "select * from add_retention_policy('t', interval '1 day')",
            "call refresh_continuous_aggregate('v', null, null)",
            "create table t as select 1",
            "create or replace view v as select 1",
            "drop view v",
            "alter view v rename to w",
            "alter table t rename to u",
            "alter table t drop column v",
            "prepare p as select 1",
            "execute p",
            "deallocate p; select 1",
            "call f()",
            "do $$ begin end $$",
            "grant all on t to u",
            "create user u",
            "alter user u superuser",
            "drop user u",
            "create token",
            "drop token 1",
            "kill 1",
        ] {
            // A statement that cannot be parsed is not executed.
            if let Ok(command) = parse(sql) {
                assert!(!only_reads(&command), "{sql}: {command:?}");
            }
        }
    }
}
