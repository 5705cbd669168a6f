//! A check of a driver: whether it does what [`crate::target`] requires.
//!
//! [`check`] runs a target from an empty folder to its end: tables, 1,000 rows by two clients,
//! every kind of question, a crash, the questions again, further tables. It computes the right
//! answers from the formulas of the rows, question by question and independently of
//! [`crate::expect`]. It skips what a target says that it cannot do; everything else must be right.
//! `lab/peers/tests/drivers.rs` runs it on every database that the machine has.

mod cases;
mod sample;

use crate::data::{Source, Table};
use crate::question::{Ask, Cell, Question, Select};
use crate::target::Target;
use anyhow::{Context, Result, bail, ensure};
use cases::{ConformanceCase, cases};
use sample::Sample;
use std::path::Path;
use std::sync::Arc;

/// Number of clients that write.
const CLIENTS: usize = 2;

/// Rows per request. It does not divide the number of rows, so the last batches are smaller.
const BATCH_ROWS: usize = 37;

/// Checks `target` on the empty folder `dir`. Fails with everything that was wrong, and prints on
/// stderr what the target cannot answer.
pub fn check(target: &mut dyn Target, dir: &Path) -> Result<()> {
    target.start(dir).context("start")?;
    let facts = target.facts();
    let said = [&facts.version, &facts.path, &facts.durability];
    ensure!(said.iter().all(|text| !text.is_empty()), "facts: {facts:?}");
    let tables: Arc<[Table]> = Sample::new("").tables().into();
    write(target, &Sample::new("")).context("writing")?;
    target.settle(&tables).context("settle")?;
    ask_all(target, &tables, &cases()).context("after writing")?;
    ensure!(target.disk_bytes().context("disk_bytes")? > 0, "no bytes");
    if target.restart(&tables).context("restart")?.is_some() {
        ask_all(target, &tables, &cases()).context("after the crash")?;
    }
    let again = Sample::new("_again");
    write(target, &again).context("writing into further tables")?;
    target.settle(again.tables()).context("settle again")?;
    let tables: Arc<[Table]> = again.tables().into();
    ask_all(target, &tables, &cases()).context("in further tables")?;
    target.stop().context("stop")
}

/// Creates the tables of `sample`, and writes its rows by [`CLIENTS`] sessions in turn.
fn write(target: &dyn Target, sample: &Sample) -> Result<()> {
    target.create(sample.tables()).context("create")?;
    let tables: Arc<[Table]> = sample.tables().into();
    let mut written = 0;
    for client in 0..CLIENTS {
        let mut session = target.connect(&tables).context("connect")?;
        for rows in sample.stream(client, CLIENTS, BATCH_ROWS) {
            let payload = session.encode(&rows).context("encode")?;
            ensure!(
                payload.rows == rows.len() && payload.points == rows.points(),
                "a payload of {} rows, {} points, made of {} rows, {} points",
                payload.rows,
                payload.points,
                rows.len(),
                rows.points()
            );
            session.write(&payload).context("write")?;
            written += rows.len() as u64;
        }
    }
    ensure!(written == sample.rows(), "the sample has other rows");
    Ok(())
}

/// Asks everything on one session. Fails with every wrong answer.
fn ask_all(target: &dyn Target, tables: &Arc<[Table]>, cases: &[ConformanceCase]) -> Result<()> {
    let mut session = target.connect(tables).context("connect")?;
    let mut wrong = Vec::new();
    for case in cases {
        let question = Question {
            name: case.name.to_owned(),
            ask: Ask::Select(case.select.clone()),
        };
        if let Some(why) = target.cannot(tables, &question) {
            eprintln!("{}: cannot: {why}", case.name);
            continue;
        }
        let answer = session
            .ask(&question)
            .and_then(|reply| session.decode(&question, reply));
        let verdict = answer.and_then(|answer| {
            in_order(&case.select, &answer.rows)?;
            let compared = answer.sorted().compare(&case.answer);
            compared.map_err(|difference| anyhow::anyhow!("{difference}"))
        });
        if let Err(error) = verdict {
            wrong.push(format!("{}: {error:#}", case.name));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// Fails if rows that were asked for newest first have another order.
fn in_order(select: &Select, rows: &[Vec<Cell>]) -> Result<()> {
    let Some(column) = cases::time_column(select).filter(|_| select.descending) else {
        return Ok(());
    };
    let time = |row: &Vec<Cell>| match row.get(column) {
        Some(Cell::Time(ns)) => Ok(*ns),
        other => bail!("{other:?} where a time should be"),
    };
    let times = rows.iter().map(time).collect::<Result<Vec<_>>>()?;
    ensure!(
        times.is_sorted_by(|newer, older| newer >= older),
        "rows are not newest first"
    );
    Ok(())
}

#[cfg(test)]
mod tests;
