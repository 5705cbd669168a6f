//! The memory that a statement uses is reserved in the shared pool, and returned.

use super::Database;
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
