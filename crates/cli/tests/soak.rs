//! The soak at a small scale: the mixed load for some seconds under a small limit, in a control
//! group where one can be made. `just soak` checks more, the ceiling on what is resident among it
//! (`docs/benchmarks/0.4-resident-memory`).

use marigram_soak::{Plan, run};
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn nothing_is_killed_or_lost_and_the_idle_server_answers() {
    let dir = tempfile::tempdir().unwrap();
    let verdict = run(&Plan {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_marigram")),
        data: dir.path().join("data"),
        out: None,
        limit_bytes: 256 << 20,
        duration: Duration::from_secs(20),
        rows_per_second: 20_000,
        series_max: 400_000,
        arguments: Vec::new(),
    })
    .unwrap();
    assert_eq!(verdict.oom_kills, 0, "{verdict}");
    assert_eq!(verdict.ended, None, "{verdict}");
    assert!(verdict.idle_after.is_some(), "{verdict}");
    let found = verdict.rows_found.unwrap();
    let possible = verdict.rows_acknowledged..=verdict.rows_sent;
    assert!(possible.contains(&found), "{verdict}");
}
