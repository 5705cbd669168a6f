//! The mixed load: all writers and readers, at once and for a limited time.

mod questions;
mod writers;

use crate::SoakPlan;
use crate::client::{SoakClient, SoakOutcome};
use crate::verdict::RequestTally;
use anyhow::{Result, anyhow, bail};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SCHEMA: &str = "\
CREATE TABLE fleet (time TIMESTAMP, dev STRING TAG, site STRING TAG, temp DOUBLE, hum DOUBLE, status STRING);\
CREATE TABLE events (time TIMESTAMP, session STRING TAG, region STRING TAG, amount DOUBLE);\
CREATE MATERIALIZED VIEW fleet_minutes WITH (continuous) AS \
SELECT time_bucket('1 minute', time) AS minute, site, dev, count(temp) AS n, avg(temp) AS mean, \
max(hum) AS high FROM fleet GROUP BY minute, site, dev";

/// Number of concurrent slow readers.
const SLOW_READERS: usize = 4;
/// How long a refused client waits.
const PAUSE: Duration = Duration::from_millis(500);

/// The result of the load.
#[derive(Debug)]
pub(crate) struct LoadResult {
    pub tallies: Vec<RequestTally>,
    pub rows_sent: u64,
    pub rows_acknowledged: u64,
    pub rows_uncertain: u64,
    pub rows_found: Option<u64>,
}

/// State that the threads of the load share.
#[derive(Debug)]
pub(crate) struct LoadShared<'a> {
    pub client: &'a SoakClient,
    pub plan: &'a SoakPlan,
    pub until: Instant,
    pub rows_sent: AtomicU64,
    pub rows_acknowledged: AtomicU64,
    /// Rows of requests that were neither acknowledged nor refused.
    pub rows_uncertain: AtomicU64,
}

impl LoadShared<'_> {
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Makes one request after another until time is up, no more often than `every`.
    pub(crate) fn repeat(
        &self,
        name: &'static str,
        every: Duration,
        mut request: impl FnMut(u64) -> (SoakOutcome, String),
    ) -> RequestTally {
        let mut tally = RequestTally {
            name,
            ..RequestTally::default()
        };
        for number in 0.. {
            if self.is_over() {
                break;
            }
            let begun = Instant::now();
            let (outcome, words) = request(number);
            tally.note(outcome, begun.elapsed(), &words);
            let pause = if outcome == SoakOutcome::Done {
                every
            } else {
                PAUSE.max(every)
            };
            std::thread::sleep(pause.saturating_sub(begun.elapsed()));
        }
        tally
    }

    fn ask(&self, name: &'static str, every: Duration, questions: &[String]) -> RequestTally {
        self.repeat(name, every, |number| {
            let question = &questions[number as usize % questions.len()];
            let answer = self.client.sql(question);
            let words = match answer.outcome {
                SoakOutcome::Done => String::new(),
                SoakOutcome::Refused | SoakOutcome::Failed => {
                    format!("{question}: {}", answer.body)
                }
            };
            (answer.outcome, words)
        })
    }
}

/// Runs the load.
pub(crate) fn run(client: &SoakClient, plan: &SoakPlan) -> Result<LoadResult> {
    let made = client.sql(SCHEMA);
    if made.outcome != SoakOutcome::Done {
        bail!("the tables were not created: {}", made.body);
    }
    let begun = Instant::now();
    let shared = LoadShared {
        client,
        plan,
        until: begun + plan.duration,
        rows_sent: AtomicU64::new(0),
        rows_acknowledged: AtomicU64::new(0),
        rows_uncertain: AtomicU64::new(0),
    };
    let tallies = std::thread::scope(|scope| {
        let shared = &shared;
        let mut running = Vec::new();
        for part in 0..2 {
            running.push(scope.spawn(move || writers::fleet(shared, part)));
        }
        running.push(scope.spawn(|| writers::late(shared)));
        running.push(scope.spawn(|| writers::sessions(shared)));
        for _ in 0..2 {
            let every = Duration::from_millis(50);
            running.push(
                scope.spawn(move || shared.ask("dashboard", every, &questions::dashboards())),
            );
        }
        let every = Duration::from_millis(500);
        running.push(scope.spawn(move || shared.ask("view", every, &questions::views())));
        running.push(scope.spawn(move || shared.ask("sort", every, &questions::sorts())));
        running.push(scope.spawn(move || shared.ask("runaway", every, &questions::runaways())));
        for _ in 0..SLOW_READERS {
            running.push(scope.spawn(|| {
                shared.repeat("slow reader", Duration::ZERO, |_| {
                    let outcome = client.read_slowly(questions::EVERYTHING, || shared.is_over());
                    (outcome, String::new())
                })
            }));
        }
        let ended = running.into_iter().map(|thread| {
            let tally = thread.join();
            tally.map_err(|_| anyhow!("a client panicked"))
        });
        ended.collect::<Result<_>>().map(merged)
    })?;
    Ok(LoadResult {
        tallies,
        rows_sent: shared.rows_sent.load(Ordering::Acquire),
        rows_acknowledged: shared.rows_acknowledged.load(Ordering::Acquire),
        rows_uncertain: shared.rows_uncertain.load(Ordering::Acquire),
        rows_found: count_rows(client),
    })
}

/// Merges tallies with the same name.
fn merged(all: Vec<RequestTally>) -> Vec<RequestTally> {
    let mut merged: Vec<RequestTally> = Vec::new();
    for tally in all {
        match merged.iter_mut().find(|known| known.name == tally.name) {
            Some(known) => {
                known.done += tally.done;
                known.refused += tally.refused;
                known.failed += tally.failed;
                known.slowest = known.slowest.max(tally.slowest);
                known.errors.extend(tally.errors);
                known.refusals.extend(tally.refusals);
            }
            None => merged.push(tally),
        }
    }
    merged
}

/// Counts the rows in both tables; retries for a while if the server refuses.
fn count_rows(client: &SoakClient) -> Option<u64> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_mins(1) {
        let sql = "SELECT (SELECT count(*) FROM fleet) + (SELECT count(*) FROM events) AS n";
        let answer = client.sql(sql);
        if answer.outcome == SoakOutcome::Done {
            return answer.body.lines().nth(1)?.trim().parse().ok();
        }
        std::thread::sleep(PAUSE);
    }
    None
}

/// Whether one request of each kind is answered at once.
pub(crate) fn probes(client: &SoakClient) -> bool {
    let asked = [
        questions::dashboards(),
        questions::views(),
        questions::sorts()[..1].to_vec(),
    ];
    let done = |sql: &String| client.sql(sql).outcome == SoakOutcome::Done;
    let line = "probe,dev=a temp=1 1";
    client.write(line).outcome == SoakOutcome::Done && asked.concat().iter().all(done)
}
