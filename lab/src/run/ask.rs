//! Asking clients.

use super::client::{Halt, Tally, all};
use super::life::{At, RunningTarget, put_asked};
use crate::data::Table;
use crate::question::{Answer, Ask, Cell, Question, Select};
use crate::record::{StepResult, Verdict};
use crate::study::{AskStep, StepAction};
use crate::target::{Reply, Session};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of an answer that are stored to be compared between targets.
const ANSWER_ROWS_MAX: usize = 2_000;

/// A client that asks.
pub(super) struct Asker {
    pub(super) number: usize,
    pub(super) session: Box<dyn Session>,
    pub(super) tally: Tally,
    /// Questions asked by [`Asker::ask_while`].
    asked: usize,
}

/// Connects `clients` of them.
pub(super) fn connect(
    life: &RunningTarget<'_>,
    tables: &Arc<[Table]>,
    clients: usize,
) -> Result<Vec<Asker>> {
    let sessions = life.connect(tables, clients)?.into_iter().enumerate();
    let asker = |(number, session)| Asker {
        number,
        session,
        tally: life.tally(number, clients),
        asked: 0,
    };
    Ok(sessions.map(asker).collect())
}

/// The step: one question name after the other. If a question fails, the failure is recorded, and
/// new connections ask the next one.
pub(super) fn ask<'a>(life: &mut RunningTarget<'a>, at: At<'_>, plan: &'a AskStep) -> Result<()> {
    let tables = life.tables(&plan.suffix)?;
    let mut askers = Vec::new();
    for (name, instances) in by_name(&plan.questions) {
        life.go_on()?;
        let mut result = at.result(Some(("question", name)));
        let mut cannot = instances.iter();
        if let Some(why) = cannot.find_map(|question| life.target.cannot(&tables, question)) {
            result.verdict = Verdict::Cannot(why);
            life.steps.push(result);
            continue;
        }
        if askers.is_empty() {
            askers = connect(life, &tables, plan.clients)?;
        }
        if let Err(error) = ask_one(life, &mut result, &mut askers, plan, &instances) {
            life.go_on()?;
            result.verdict = Verdict::Failed(format!("{error:#}"));
            life.failures.push(format!("question {name}: {error:#}"));
            askers.clear();
        }
        life.steps.push(result);
    }
    Ok(())
}

/// Questions by name, in the order of their first instances.
pub(super) fn by_name(questions: &[Question]) -> Vec<(&str, Vec<&Question>)> {
    let mut groups: Vec<(&str, Vec<&Question>)> = Vec::new();
    for question in questions {
        match groups.iter_mut().find(|(name, _)| *name == question.name) {
            Some((_, instances)) => instances.push(question),
            None => groups.push((&question.name, vec![question])),
        }
    }
    groups
}

fn ask_one(
    life: &mut RunningTarget<'_>,
    result: &mut StepResult,
    askers: &mut [Asker],
    plan: &AskStep,
    instances: &[&Question],
) -> Result<()> {
    let expected = expected(life, plan, instances)?;
    let clients = askers.len();
    for asker in askers.iter_mut() {
        asker.tally = life.tally(asker.number, clients);
    }
    let (first, others) = askers.split_at_mut(1);
    let halt = Halt::new(life.stop);
    // In a thread, like every use of a session, so that a driver's panic is a failure of this
    // question only.
    let mut checked = CheckedAnswers::default();
    all(
        &mut [(&mut first[0], &mut checked)],
        &halt,
        |(asker, checked)| asker.check(instances, &expected, checked),
    )?;
    result.verdict = checked.verdict();
    result.answers = checked.kept;
    all(others, &halt, |asker| {
        let question = instances[asker.number % instances.len()];
        asker.session.ask(question).context("warming up").map(drop)
    })?;
    let (mark, start) = (life.monitor.mark(), Instant::now());
    let rows = &checked.rows;
    let asked = all(askers, &halt, |asker| {
        for time in 0..plan.times.max(1) {
            let is_over = || plan.time_max.is_some_and(|max| start.elapsed() >= max);
            if time > 0 && (is_over() || halt.is_set()) {
                break;
            }
            let instance = (asker.number + time) % instances.len();
            asker.timed(instances[instance], 0, rows[instance])?;
        }
        Ok(())
    });
    let seconds = start.elapsed().as_secs_f64();
    result.resources = Some(life.monitor.since(&mark));
    conclude(life, result, askers, seconds, &[&instances[0].name])?;
    asked
}

/// Figures and samples of `askers`.
pub(super) fn conclude(
    life: &mut RunningTarget<'_>,
    result: &mut StepResult,
    askers: &mut [Asker],
    seconds: f64,
    kinds: &[&str],
) -> Result<()> {
    let mut latencies = Vec::new();
    for asker in askers {
        let samples = &asker.tally.samples;
        life.operations.append(result.step, kinds, samples)?;
        latencies.push(std::mem::take(&mut asker.tally.latencies));
    }
    put_asked(result, &latencies, seconds);
    Ok(())
}

/// The right answers to `instances`; `None` if only targets can answer. Also computes and caches
/// the answers to all other questions about the same tables.
pub(super) fn expected(
    life: &mut RunningTarget<'_>,
    plan: &AskStep,
    instances: &[&Question],
) -> Result<Vec<Option<Arc<Answer>>>> {
    let written = life.written.get(&plan.suffix).context("written tables")?;
    let selects: Vec<&Select> = instances.iter().filter_map(|q| select(q)).collect();
    let steps = life.setup.steps.iter();
    let same_tables = steps.filter_map(|step| match &step.act {
        StepAction::Ask(ask) | StepAction::Mix(ask) | StepAction::Cold(ask)
            if ask.suffix == plan.suffix =>
        {
            Some(&ask.questions)
        }
        _ => None,
    });
    let later: Vec<&Select> = same_tables.flatten().filter_map(select).collect();
    let answers = life
        .expected
        .answers(life.source, written, &selects, &later)?;
    let mut answers = answers.into_iter();
    let of = |question: &&Question| select(question).and_then(|_| answers.next());
    Ok(instances.iter().map(of).collect())
}

fn select(question: &Question) -> Option<&Select> {
    match &question.ask {
        Ask::Select(select) => Some(select),
        Ask::Sql(_) => None,
    }
}

/// The result of checking the answers.
#[derive(Default)]
pub(super) struct CheckedAnswers {
    right: usize,
    /// The first wrong answer.
    wrong: Option<String>,
    /// Answers that can only be compared between targets.
    pub(super) kept: Vec<Answer>,
    /// Rows of each instance's answer.
    pub(super) rows: Vec<usize>,
}

impl CheckedAnswers {
    pub(super) fn verdict(&mut self) -> Verdict {
        match self.wrong.take() {
            Some(why) => Verdict::Wrong(why),
            None if self.right > 0 => Verdict::Right,
            None => Verdict::Unchecked,
        }
    }
}

impl Asker {
    /// Asks every instance once, off the clock, and compares the answers.
    pub(super) fn check(
        &mut self,
        instances: &[&Question],
        expected: &[Option<Arc<Answer>>],
        checked: &mut CheckedAnswers,
    ) -> Result<()> {
        for (question, expected) in instances.iter().zip(expected) {
            let reply = self.session.ask(question).context("warming up")?;
            self.compare(question, reply, expected.as_deref(), checked)?;
        }
        Ok(())
    }

    /// Decodes an answer, and compares it with the right one if that is known.
    pub(super) fn compare(
        &mut self,
        question: &Question,
        reply: Reply,
        expected: Option<&Answer>,
        checked: &mut CheckedAnswers,
    ) -> Result<()> {
        let answer = self.session.decode(question, reply);
        let answer = answer.context("decoding the answer")?.sorted();
        let number = checked.rows.len();
        checked.rows.push(answer.rows.len());
        match expected.map(|expected| answer.compare(expected)) {
            None => checked.kept.push(storable(answer)),
            Some(Ok(())) => checked.right += 1,
            Some(Err(difference)) => {
                let first = || format!("instance {number}: {difference}");
                checked.wrong.get_or_insert_with(first);
            }
        }
        Ok(())
    }

    /// Asks once, on the clock, and returns the latency.
    pub(super) fn timed(
        &mut self,
        question: &Question,
        kind: usize,
        rows: usize,
    ) -> Result<Duration> {
        let start = Instant::now();
        let reply = self.session.ask(question);
        let latency = self.tally.request(kind, start, rows, reply.is_ok());
        reply.map(|_| latency)
    }

    /// Asks the questions in turn while `go_on` holds. While rows arrive, the right answers are
    /// unknown, but the first answer to each question is decoded.
    pub(super) fn ask_while(
        &mut self,
        questions: &[Question],
        go_on: impl Fn() -> bool,
    ) -> Result<()> {
        while go_on() {
            let kind = (self.number + self.asked) % questions.len();
            let question = &questions[kind];
            let start = Instant::now();
            let reply = self.session.ask(question);
            self.tally.request(kind, start, 0, reply.is_ok());
            let reply = reply.with_context(|| format!("question {}", question.name))?;
            if self.asked < questions.len() {
                self.session
                    .decode(question, reply)
                    .with_context(|| format!("decoding the answer to {}", question.name))?;
            }
            self.asked += 1;
        }
        Ok(())
    }
}

/// Shortened, and without numbers that JSON cannot represent.
fn storable(mut answer: Answer) -> Answer {
    answer.rows.truncate(ANSWER_ROWS_MAX);
    for cell in answer.rows.iter_mut().flatten() {
        if let Cell::Number(number) = cell
            && !number.is_finite()
        {
            *cell = Cell::Text(number.to_string());
        }
    }
    answer
}
