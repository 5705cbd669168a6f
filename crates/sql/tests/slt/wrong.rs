//! Wrong statements: each is refused with the SQLSTATE given in `testing/wrong_statements.tsv`, in
//! words that users understand. The states are PostgreSQL's if it has such a statement; the head of
//! the file says where ours deliberately differ.
//!
//! `MARIGRAM_BLESS=1` rewrites the file with the actual answers.

use super::service::block_on;
use super::{Database, Failure};
use sqllogictest::AsyncDB as _;
use std::fmt::Write;

const FILE: &str = "testing/wrong_statements.tsv";

/// Text that no user should read: Arrow's types and values, syntax trees, and the names of crates
/// and their modules.
const INNER_WORDS: &[&str] = &[
    "Int64",
    "Int32",
    "Utf8",
    "Float64",
    "Boolean",
    "Timestamp(",
    "Interval(",
    "Dictionary",
    "Date32",
    "{",
    "}",
    "Expr",
    "Exec",
    "exec",
    "Some(",
    "None",
    "Span(",
    "Location(",
    "EOF",
    "LogicalPlan",
    "Physical plan",
    "DataFusion",
    "datafusion",
    "Arrow",
    "arrow",
    "sqlparser",
    "sqltorel",
    "coerc",
    "Placeholder",
    "ast node",
];

#[test]
fn wrong_statements_are_refused_in_words_that_users_know() {
    let file = marigram_fixtures::root().join(FILE);
    let listed = std::fs::read_to_string(&file).unwrap();
    let bless = marigram_fixtures::is_blessing();
    let (mut faults, mut answered) = (String::new(), String::new());
    let mut count = 0;
    block_on(async {
        let mut db = Database::open().await.unwrap();
        for sql in [
            "CREATE TABLE r (time TIMESTAMP, dev STRING TAG, site STRING TAG, temp DOUBLE, n BIGINT, \
             ok BOOLEAN, note STRING)",
            "INSERT INTO r (time, dev, site, temp, n, ok, note) VALUES \
             ('2024-01-01 00:00:00', 'a', 'x', 1.5, 3, true, 'hi'), \
             ('2024-01-01 01:00:00', 'b', 'y', 2.5, 4, false, '5')",
        ] {
            db.run(sql).await.unwrap();
        }
        for line in listed.lines() {
            let Some((wanted, sql)) = line.split_once('\t').filter(|_| !line.starts_with('#'))
            else {
                writeln!(answered, "{line}").unwrap();
                continue;
            };
            count += 1;
            let (sqlstate, message) = match db.run(sql).await {
                Ok(_) => ("00000".to_owned(), String::new()),
                Err(Failure(error)) => (error.sqlstate().to_owned(), error.to_string()),
            };
            writeln!(answered, "{sqlstate}\t{sql}").unwrap();
            if sqlstate != wanted && !bless {
                writeln!(faults, "{sql}: {sqlstate}, not {wanted}: {message}").unwrap();
            }
            // Text of the statement itself may be repeated.
            let inner = INNER_WORDS
                .iter()
                .find(|word| message.contains(**word) && !sql.contains(**word));
            if let Some(word) = inner {
                writeln!(faults, "{sql}: '{word}' in: {message}").unwrap();
            }
            if matches!(sqlstate.as_str(), "00000" | "XX000") {
                writeln!(faults, "{sql}: {sqlstate} {message}").unwrap();
            }
        }
    });
    if bless {
        std::fs::write(&file, answered).unwrap();
    }
    assert!(count >= 500, "{count} statements");
    assert!(faults.is_empty(), "{faults}");
}
