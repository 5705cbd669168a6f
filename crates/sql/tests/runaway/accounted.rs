//! The memory that a statement uses is reserved in the shared pool, and returned.

use super::{Database, MEMORY_LIMIT, ask, forget_peak, in_own_process, resident_peak};
use futures::future::join_all;
use marigram_engine::Holder;

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
