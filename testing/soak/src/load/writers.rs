//! The writers: a fleet in order, late rows, and sessions that are always new series.

use super::LoadShared;
use crate::client::SoakOutcome;
use crate::verdict::RequestTally;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// 2026-01-01T00:00:00Z.
const START_MS: u64 = 1_767_225_600_000;
/// Late rows are at least this much earlier than the others.
const LATE_MS: u64 = 6 * 3600 * 1000;
const DEVICES: usize = 2000;
const FLEET_LINES: usize = 5000;
const LATE_LINES: usize = 1000;
const SESSION_LINES: usize = 4000;

/// Half of the fleet, in order: each of two writers has every second device.
pub(super) fn fleet(shared: &LoadShared<'_>, part: usize) -> RequestTally {
    let rate = (shared.plan.rows_per_second / 2).max(1) as f64;
    let every = Duration::from_secs_f64(FLEET_LINES as f64 / rate);
    let (mut lines, mut row) = (String::new(), 0_usize);
    shared.repeat("fleet", every, |_| {
        lines.clear();
        for _ in 0..FLEET_LINES {
            let device = row % (DEVICES / 2) * 2 + part;
            let time = START_MS + (row / (DEVICES / 2)) as u64 * 1000;
            line(&mut lines, device, time, row);
            row += 1;
        }
        send(shared, &lines, FLEET_LINES)
    })
}

/// Rows that are hours before the others, in an order of their own.
pub(super) fn late(shared: &LoadShared<'_>) -> RequestTally {
    let (mut lines, mut row) = (String::new(), 0_usize);
    shared.repeat("late", Duration::from_millis(250), |_| {
        lines.clear();
        for _ in 0..LATE_LINES {
            let device = row.wrapping_mul(7919) % DEVICES;
            // Each time occurs once, in descending order, so that each batch is late relative to
            // the existing rows.
            let time = START_MS - LATE_MS - row as u64;
            line(&mut lines, device, time, row);
            row += 1;
        }
        send(shared, &lines, LATE_LINES)
    })
}

/// Sessions: every line is a new series, until there are enough of them.
pub(super) fn sessions(shared: &LoadShared<'_>) -> RequestTally {
    let (mut lines, mut row) = (String::new(), 0_usize);
    shared.repeat("sessions", Duration::from_millis(250), |_| {
        lines.clear();
        for _ in 0..SESSION_LINES {
            let session = row % shared.plan.series_max.max(1);
            let (region, time) = (session % 50, START_MS + row as u64);
            // Writing to a string cannot fail.
            let _ = writeln!(
                lines,
                "events,session=s{session:012x}-{:08x},region=r{region} amount={} {time}",
                mix(session) as u32,
                row % 1000
            );
            row += 1;
        }
        send(shared, &lines, SESSION_LINES)
    })
}

fn line(lines: &mut String, device: usize, time: u64, row: usize) {
    let _ = writeln!(
        lines,
        "fleet,dev=dev{device:06},site=site{:02} temp={},hum={},status=\"{}\" {time}",
        device % 20,
        (mix(row) % 400) as f64 / 10.0,
        (mix(row ^ 0x55) % 1_000_000) as f64 / 1e4,
        ["ok", "warm", "charging", "a longer word about the state"][row % 4],
    );
}

fn mix(row: usize) -> u64 {
    let mut hash = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^= hash >> 29;
    hash.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 31
}

/// Sends lines until they are stored, have been refused for long, or time is up. Repeated lines are
/// the same rows.
fn send(shared: &LoadShared<'_>, lines: &str, rows: usize) -> (SoakOutcome, String) {
    shared.rows_sent.fetch_add(rows as u64, Ordering::AcqRel);
    let answer = shared.client.write(lines);
    let count = match answer.outcome {
        SoakOutcome::Done => Some(&shared.rows_acknowledged),
        SoakOutcome::Failed => Some(&shared.rows_uncertain),
        SoakOutcome::Refused => None,
    };
    if let Some(count) = count {
        count.fetch_add(rows as u64, Ordering::AcqRel);
    }
    (answer.outcome, answer.body)
}
