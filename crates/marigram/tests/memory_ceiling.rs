//! The memory ceiling at a small scale: rows are written while queries run in a loop, and the
//! process never holds more than the limit plus a tenth of it.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures this machine's memory over time"
)]

#[path = "ceiling/workload.rs"]
mod workload;

use marigram::{Durability, OpenOptions};
use workload::{Plan, run};

/// The code alone takes a considerable part of it.
const LIMIT: usize = 256 << 20;

#[test]
fn writing_while_aggregates_run_stays_under_the_ceiling() {
    let rows = if cfg!(debug_assertions) { 1000 } else { 20_000 };
    let plan = Plan {
        devices: 500,
        rows,
        batch_rows: 5000,
        writers: 2,
        questions: 5,
        options: OpenOptions::default()
            .shards(2)
            .query_threads(2)
            .background_threads(2)
            .durability(Durability::Os)
            .memory_limit(LIMIT)
            .whole_process(true),
    };
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(dir.path(), &plan).unwrap();
    assert_eq!(outcome.failures, [] as [String; 0], "{outcome:?}");
    assert_eq!(outcome.found, outcome.sent, "nothing is lost");
    assert!(outcome.answers[0] > 0, "{outcome:?}");
    assert!(outcome.accounted_max <= LIMIT / 10 * 11, "{outcome:?}");
    assert!(
        outcome.resident_before < LIMIT,
        "the code leaves no room for rows: {outcome:?}"
    );
    assert!(outcome.resident_max <= LIMIT / 10 * 11, "{outcome:?}");
    assert!(
        std::fs::read_dir(dir.path().join("spill"))
            .unwrap()
            .next()
            .is_none()
    );
}
