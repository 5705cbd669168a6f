//! Writing, alone or while questions are asked.

use super::ask::{self, Asker};
use super::client::{Halt, all, sleep_until};
use super::life::{At, RunningTarget};
use super::write::{Round, Writer, Writers};
use crate::monitor::{Mark, Monitor};
use crate::question::Question;
use crate::record::{Resources, Usage, Verdict};
use crate::study::{AskStep, Write};
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time between the decision to start a round and its start, in which threads are created.
const LEAD: Duration = Duration::from_millis(2);

/// The step that writes.
pub(super) fn write<'a>(life: &mut RunningTarget<'a>, at: At<'_>, plan: &'a Write) -> Result<()> {
    let mut writers = Writers::open(life, plan)?;
    let mut result = at.result(None);
    let mut cost = Cost::default();
    let done = rounds(life, &mut writers, &mut [], &[], &mut cost);
    writers.conclude(life, &mut result, cost.writing, cost.resources)?;
    if let Err(error) = &done {
        result.verdict = Verdict::Failed(format!("{error:#}"));
    }
    life.steps.push(result);
    done
}

/// The step that writes and asks.
pub(super) fn mixed<'a>(
    life: &mut RunningTarget<'a>,
    at: At<'_>,
    plan: &'a Write,
    ask: &'a AskStep,
) -> Result<()> {
    let mut writers = Writers::open(life, plan)?;
    let tables = life.tables(&ask.suffix)?;
    let mut asking = at.result(Some(("side", "ask")));
    let mut cannot = ask.questions.iter();
    // Part of the questions would be another load, so a target that cannot answer all is asked
    // none.
    let cannot = cannot.find_map(|question| life.target.cannot(&tables, question));
    let clients = if cannot.is_some() || ask.questions.is_empty() {
        0
    } else {
        ask.clients
    };
    let mut askers = match clients {
        0 => Vec::new(),
        clients => ask::connect(life, &tables, clients)?,
    };
    let mut writing = at.result(Some(("side", "write")));
    let mut cost = Cost::default();
    let questions = &ask.questions;
    let done = rounds(life, &mut writers, &mut askers, questions, &mut cost);
    let failed = |error: &anyhow::Error| Verdict::Failed(format!("{error:#}"));
    let verdict = done.as_ref().map_or_else(failed, |()| Verdict::Unchecked);
    writing.verdict = verdict.clone();
    asking.verdict = cannot.map_or(verdict, Verdict::Cannot);
    writers.conclude(life, &mut writing, cost.writing, cost.resources)?;
    if !askers.is_empty() {
        let kinds: Vec<&str> = questions.iter().map(|q| q.name.as_str()).collect();
        let seconds = cost.lasted.as_secs_f64();
        ask::conclude(life, &mut asking, &mut askers, seconds, &kinds)?;
        asking.resources = Some(cost.resources);
    }
    life.steps.extend([writing, asking]);
    done
}

/// Time and resources of all rounds of a step.
#[derive(Default)]
struct Cost {
    /// While the clock ran for the writers.
    writing: Duration,
    /// The same until the last question was answered.
    lasted: Duration,
    resources: Resources,
    first: Option<Mark>,
}

impl Cost {
    /// Adds the round that began at `mark`. The client's cost counts while the clock runs. The
    /// server's cost counts from the first round on, because the server may use pauses of the clock
    /// for work that it deferred.
    fn add(&mut self, monitor: &Monitor, mark: Mark) {
        let first = *self.first.get_or_insert(mark);
        let (round, whole) = (monitor.since(&mark), monitor.since(&first));
        let client = self.resources.client;
        self.resources = Resources {
            seconds: self.lasted.as_secs_f64(),
            server: whole.server,
            client: Usage {
                cpu_s: client.cpu_s + round.client.cpu_s,
                rss_bytes: client.rss_bytes.max(round.client.rss_bytes),
                read_bytes: client.read_bytes + round.client.read_bytes,
                write_bytes: client.write_bytes + round.client.write_bytes,
            },
            page_cache_bytes: whole.page_cache_bytes,
        };
    }
}

/// A client of either side.
enum Role<'w, 'a> {
    Writer(&'w mut Writer<'a>),
    Asker(&'w mut Asker),
}

/// Lets the writers write everything, while the askers ask whenever the clock runs.
fn rounds(
    life: &RunningTarget<'_>,
    writers: &mut Writers<'_>,
    askers: &mut [Asker],
    questions: &[Question],
    cost: &mut Cost,
) -> Result<()> {
    let halt = Halt::new(life.stop);
    while !writers.is_over(cost.writing) && writers.encode(&halt)? {
        let plan = writers.plan;
        let mark = life.monitor.mark();
        let round = Round {
            start: Instant::now() + LEAD,
            before: cost.writing,
        };
        let busy = AtomicUsize::new(writers.clients.len());
        let end_ns = AtomicU64::new(0);
        let writing = writers.clients.iter_mut().map(Role::Writer);
        let asking = askers.iter_mut().map(Role::Asker);
        let mut roles: Vec<Role<'_, '_>> = writing.chain(asking).collect();
        let done = all(&mut roles, &halt, |role| match role {
            Role::Writer(writer) => {
                let sent = writer.send(plan, round, &halt);
                end_ns.fetch_max(round.clock().as_nanos() as u64, Ordering::Relaxed);
                busy.fetch_sub(1, Ordering::Relaxed);
                sent
            }
            Role::Asker(asker) => {
                sleep_until(round.start, &halt);
                let go_on = || busy.load(Ordering::Relaxed) > 0 && !halt.is_set();
                asker.ask_while(questions, go_on)
            }
        });
        cost.lasted += Instant::now().saturating_duration_since(round.start);
        cost.writing = Duration::from_nanos(end_ns.into_inner()).max(cost.writing);
        cost.add(&life.monitor, mark);
        done?;
        life.go_on()?;
    }
    ensure!(
        cost.first.is_some(),
        "there are no rows to write, or an earlier step wrote them all"
    );
    Ok(())
}
