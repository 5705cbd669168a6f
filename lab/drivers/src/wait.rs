//! Waiting for a server, with a bound.

use anyhow::{Result, ensure};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Calls `is_done` every `interval` until it returns true. Fails with `late` after `wait_max`, or as soon as
/// `is_done` fails.
pub fn wait_until(
    wait_max: Duration,
    interval: Duration,
    late: impl Fn() -> String,
    mut is_done: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + wait_max;
    while !is_done()? {
        ensure!(Instant::now() < deadline, "{}", late());
        sleep(interval);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn it_ends_when_done_late_or_failed() {
        let wait = |wait_ms, is_done: &mut dyn FnMut() -> Result<bool>| {
            let wait_max = Duration::from_millis(wait_ms);
            wait_until(wait_max, Duration::ZERO, || "too late".to_owned(), is_done)
        };
        let mut calls = 0;
        let mut third = || {
            calls += 1;
            Ok(calls == 3)
        };
        wait(60_000, &mut third).expect("the third call succeeds");
        let late = wait(0, &mut || Ok(false)).expect_err("it is never done");
        assert_eq!(late.to_string(), "too late");
        let failed = wait(60_000, &mut || bail!("broken")).expect_err("it fails");
        assert_eq!(failed.to_string(), "broken");
    }
}
