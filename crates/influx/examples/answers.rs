//! Answers InfluxQL over rows in line protocol: `answers LINES STATEMENTS` prints, for each line of
//! STATEMENTS, a line of JSON in the form of `/query?epoch=ns`. `testing/influxql/answers.py`
//! compares these with the answers of a real InfluxDB.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut file = || fs::read_to_string(args.next().unwrap_or_default());
    let (lines, statements) = (file()?, file()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let harness = support::Harness::new();
    for chunk in lines.split("\n\n") {
        harness.write(chunk);
    }
    let mut out = io::stdout().lock();
    for statement in statements.lines() {
        writeln!(out, "{}", runtime.block_on(harness.ask(statement)))?;
    }
    Ok(())
}
