//! The memory that a statement uses is reserved in the shared pool, and returned.

use super::{Database, MEMORY_LIMIT, ask, forget_peak, in_own_process, resident_peak};
use futures::StreamExt;
use futures::future::join_all;
use marigram_engine::Holder;
use marigram_service::{Answer, Query, ServiceError};

const DEVICES: usize = 200_000;
/// Names of this many bytes; a group also needs a table entry and a number.
const GROUP_BYTES_MIN: usize = 11 + 16 + 4;

#[test]
fn groups_of_unique_tags_are_accounted() {
    let database = Database::open();
    database.must("CREATE TABLE fleet (time TIMESTAMP, device STRING TAG, v DOUBLE)");
    database.must(&format!(
        "INSERT INTO fleet SELECT to_timestamp_seconds(1700000000), \
         concat('device-', lpad(value::text, 6, '0')), value::double \
         FROM generate_series(1, {DEVICES})"
    ));
    let held = || database.engine.memory().usage(Holder::Query);
    let before = held();
    assert!(before.peak_bytes < DEVICES * GROUP_BYTES_MIN, "{before:?}");
    for sql in [
        "SELECT count(*) FROM (SELECT device, max(v) AS v FROM fleet GROUP BY device)",
        "SELECT count(DISTINCT device) FROM fleet",
    ] {
        assert_eq!(database.must(sql), 1);
        let after = held();
        assert!(
            after.peak_bytes > DEVICES * GROUP_BYTES_MIN,
            "{sql}: {after:?}"
        );
        // Groups that may be requested again are cached, within a part of the limit.
        assert!(after.bytes < before.bytes + (2 << 20), "{sql}: {after:?}");
    }
}

/// Clients that read the first rows of a sorted answer, and nothing after that.
const PAUSED: usize = 20;

#[test]
fn answers_that_nobody_reads_do_not_keep_memory_from_others() {
    let database = Database::open();
    let sorted = "SELECT concat('text', value * 7919 % 1000003) AS s \
                  FROM generate_series(1, 400000) ORDER BY s";
    let begin = async || {
        let mut session = database.session.clone();
        let answer = database.sql.execute(&mut session, sorted).await;
        let Answer::Rows(rows) = answer.unwrap() else {
            panic!("it has rows")
        };
        rows
    };
    let paused: Vec<_> = (0..PAUSED)
        .map(|_| database.clients.block_on(begin()))
        .collect();
    let available = database.engine.memory().available(Holder::Query);
    let held = database.engine.memory().usage(Holder::Query).bytes;
    assert!(held > available / 4, "{held} of {available} bytes");
    // A statement that needs more and more, until it needs what they hold.
    let mut rows = 300_000;
    while database.engine.memory().usage(Holder::Query).bytes >= held {
        let needs = format!(
            "SELECT count(a) FROM (SELECT array_agg(s ORDER BY s DESC) AS a FROM \
             (SELECT concat('text', value) AS s FROM generate_series(1, {rows})))"
        );
        assert_eq!(database.must(&needs), 1, "{rows} rows");
        rows += rows / 4;
    }
    // Who was ended for it learns the reason; the others get all their rows.
    let mut ended = 0;
    for mut rows in paused {
        let answer = database.clients.block_on(async {
            let mut count = 0;
            while let Some(batch) = rows.batches.next().await {
                count += batch?.num_rows();
            }
            Ok::<_, ServiceError>(count)
        });
        match answer {
            Ok(count) => assert_eq!(count, 400_000),
            Err(error) => {
                assert_eq!(error.sqlstate(), "53200", "{error}");
                ended += usize::from(error.to_string().contains("did not read"));
            }
        }
    }
    assert!(ended > 0 && ended < PAUSED, "{ended} were ended");
}

/// What the test itself takes: code, threads, and what the allocator retains in its arenas, which only a
/// server gives back.
const OWN_BYTES: usize = 288 << 20;

#[test]
fn collected_values_stay_within_the_limit() {
    let name = "accounted::collected_values_stay_within_the_limit";
    in_own_process(name, || {
        let database = Database::open();
        let rows = "(SELECT concat('text', value * 7919 % 1000003) AS s, value % 50 AS k \
                    FROM generate_series(1, 1000000))";
        for (answer, by) in [
            ("string_agg(s, ',' ORDER BY s)", " GROUP BY k"),
            ("string_agg(s, ',' ORDER BY k, s DESC)", ""),
            ("array_agg(s ORDER BY s DESC)", ""),
            ("array_agg(DISTINCT s)", ""),
            ("string_agg(DISTINCT s, ',' ORDER BY s)", " GROUP BY k"),
        ] {
            let sql = format!("SELECT count(a) FROM (SELECT {answer} AS a FROM {rows}{by})");
            forget_peak();
            let asked = (0..4).map(|_| ask(&database.sql, &database.session, &sql));
            for answer in database.clients.block_on(join_all(asked)) {
                let refused = answer.err().map(|error| error.to_string());
                assert!(
                    refused.as_ref().is_none_or(|text| text.contains("memory")),
                    "{sql}: {refused:?}"
                );
            }
            let peak = resident_peak();
            assert!(peak < MEMORY_LIMIT + OWN_BYTES, "{sql}: {peak} bytes");
            assert_eq!(database.must("SELECT 1"), 1);
        }
    });
}
