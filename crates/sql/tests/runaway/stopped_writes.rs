//! A statement whose client is told that it was stopped has stored nothing, and changed nothing.

use super::{Database, ask};
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use futures::StreamExt;
use marigram_service::{Answer, Query, ServiceError, Session};
use std::time::Duration;

const ROWS: i64 = 3_000;

/// The number of rows of `t`, and the sum of their values.
async fn seen(database: &Database) -> (i64, f64) {
    let mut session = database.session.clone();
    let sql = "SELECT count(*), coalesce(sum(v), 0) FROM w";
    let Answer::Rows(mut rows) = database.sql.execute(&mut session, sql).await.unwrap() else {
        panic!("it has rows")
    };
    let batch = rows.batches.next().await.unwrap().unwrap();
    let count = batch.column(0).as_primitive::<Int64Type>().value(0);
    (
        count,
        batch.column(1).as_primitive::<Float64Type>().value(0),
    )
}

#[test]
fn a_stopped_write_has_written_nothing() {
    let database = Database::open();
    database.must("CREATE TABLE w (time TIMESTAMP, device STRING TAG, v DOUBLE)");
    database.clients.block_on(async {
        let (mut stopped, mut expected) = (0, (0, 0.0));
        for round in 0..120 {
            let session = Session {
                statement_timeout: Some(Duration::from_micros(250 * (round % 20 + 1))),
                ..database.session.clone()
            };
            let insert = format!(
                "INSERT INTO w SELECT to_timestamp_seconds(1700000000 + {round} * {ROWS} + value), \
                 'd', 0 FROM generate_series(1, {ROWS})"
            );
            let update = "UPDATE w SET v = v + 1 WHERE time < '2100-01-01'";
            match ask(&database.sql, &session, &insert).await {
                Ok(_) => expected.0 += ROWS,
                Err(ServiceError::Cancelled(_)) => stopped += 1,
                Err(error) => panic!("{error}"),
            }
            assert_eq!(seen(&database).await, expected, "INSERT, round {round}");
            match ask(&database.sql, &session, update).await {
                Ok(_) => expected.1 += expected.0 as f64,
                Err(ServiceError::Cancelled(_)) => stopped += 1,
                Err(error) => panic!("{error}"),
            }
            assert_eq!(seen(&database).await, expected, "UPDATE, round {round}");
        }
        eprintln!(
            "{stopped} of 240 statements were stopped, and {} rows stored",
            expected.0
        );
    });
}
