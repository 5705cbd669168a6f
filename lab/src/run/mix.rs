//! Clients that ask a mixture of questions at once, like people with dashboards.

use super::ask::{self, Asker, CheckedAnswers};
use super::client::{Halt, all};
use super::life::{At, RunningTarget, put_asked};
use crate::monitor::Latencies;
use crate::question::Question;
use crate::record::{StepResult, Verdict};
use crate::study::AskStep;
use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::time::Instant;

/// Name of the result of all questions together.
const ALL: &str = "all";

/// The names of a step's results: of all questions, then of each.
pub(super) fn names(plan: &AskStep) -> Vec<&str> {
    let each = ask::by_name(&plan.questions).into_iter();
    std::iter::once(ALL)
        .chain(each.map(|(name, _)| name))
        .collect()
}

/// Instances of a name, and the number of rows of their answers.
struct Kind<'a> {
    instances: Vec<&'a Question>,
    rows: Vec<usize>,
}

/// A client, and its latencies by kind.
struct Client {
    asker: Asker,
    latencies: Vec<Latencies>,
}

/// The step.
pub(super) fn mix<'a>(life: &mut RunningTarget<'a>, at: At<'_>, plan: &'a AskStep) -> Result<()> {
    let names = names(plan);
    let mut results: Vec<StepResult> = names
        .iter()
        .map(|name| at.result(Some(("question", name))))
        .collect();
    let tables = life.tables(&plan.suffix)?;
    let mut questions = plan.questions.iter();
    // Part of the questions would be another load, so a target that cannot answer all is asked
    // none.
    if let Some(why) = questions.find_map(|question| life.target.cannot(&tables, question)) {
        for result in &mut results {
            result.verdict = Verdict::Cannot(why.clone());
        }
    } else if let Err(error) = ask_all(life, &mut results, &names[1..], plan) {
        life.go_on()?;
        results[0].verdict = Verdict::Failed(format!("{error:#}"));
        life.failures.push(format!("{error:#}"));
    }
    life.steps.append(&mut results);
    Ok(())
}

fn ask_all(
    life: &mut RunningTarget<'_>,
    results: &mut [StepResult],
    names: &[&str],
    plan: &AskStep,
) -> Result<()> {
    let tables = life.tables(&plan.suffix)?;
    let askers = ask::connect(life, &tables, plan.clients)?;
    let client = |asker| Client {
        asker,
        latencies: names.iter().map(|_| Latencies::default()).collect(),
    };
    let mut clients: Vec<Client> = askers.into_iter().map(client).collect();
    let kinds = check(life, &mut results[1..], &mut clients, plan)?;
    let (mark, start) = (life.monitor.mark(), Instant::now());
    let halt = Halt::new(life.stop);
    let seed = life.seed;
    let done = all(&mut clients, &halt, |client| {
        let is_over = || halt.is_set() || plan.time_max.is_some_and(|max| start.elapsed() >= max);
        client.ask_while(&kinds, plan.times, seed, || !is_over())
    });
    let seconds = start.elapsed().as_secs_f64();
    results[0].resources = Some(life.monitor.since(&mark));
    for (kind, result) in results[1..].iter_mut().enumerate() {
        let of_kind = clients.iter_mut();
        let of_kind = of_kind.map(|client| std::mem::take(&mut client.latencies[kind]));
        put_asked(result, &of_kind.collect::<Vec<_>>(), seconds);
    }
    let mut askers: Vec<Asker> = clients.into_iter().map(|client| client.asker).collect();
    ask::conclude(life, &mut results[0], &mut askers, seconds, names)?;
    done
}

/// Lets every client ask every question once, off the clock, and checks the first client's answers.
fn check<'a>(
    life: &mut RunningTarget<'_>,
    results: &mut [StepResult],
    clients: &mut [Client],
    plan: &'a AskStep,
) -> Result<Vec<Kind<'a>>> {
    let mut kinds = Vec::new();
    for ((_, instances), result) in ask::by_name(&plan.questions).into_iter().zip(results) {
        let expected = ask::expected(life, plan, &instances)?;
        let halt = Halt::new(life.stop);
        let mut checked = CheckedAnswers::default();
        let (first, others) = clients.split_at_mut(1);
        all(
            &mut [(&mut first[0], &mut checked)],
            &halt,
            |(client, checked)| client.asker.check(&instances, &expected, checked),
        )?;
        all(others, &halt, |client| {
            let question = instances[client.asker.number % instances.len()];
            let reply = client.asker.session.ask(question);
            reply.context("warming up").map(drop)
        })?;
        result.verdict = checked.verdict();
        result.answers = checked.kept;
        kinds.push(Kind {
            instances,
            rows: checked.rows,
        });
    }
    Ok(kinds)
}

impl Client {
    /// Asks every kind up to `times` times while `go_on` holds, in an order of its own, and at
    /// least once.
    fn ask_while(
        &mut self,
        kinds: &[Kind<'_>],
        times: usize,
        seed: u64,
        go_on: impl Fn() -> bool,
    ) -> Result<()> {
        let number = self.asker.number;
        let mut random = StdRng::seed_from_u64(seed ^ number as u64);
        let mut order: Vec<usize> = (0..kinds.len()).collect();
        for time in 0..times.max(1) {
            order.shuffle(&mut random);
            for at in &order {
                if time > 0 && !go_on() {
                    return Ok(());
                }
                let kind = &kinds[*at];
                let instance = (number + time) % kind.instances.len();
                let latency =
                    self.asker
                        .timed(kind.instances[instance], *at, kind.rows[instance])?;
                self.latencies[*at].record(latency);
            }
        }
        Ok(())
    }
}
