//! Asking with nothing in memory: what a question reads from disk, and how long that takes.

use super::ask::{self, CheckedAnswers};
use super::life::{At, RunningTarget, put, put_asked};
use crate::data::Table;
use crate::monitor::Latencies;
use crate::question::Question;
use crate::record::{StepResult, Verdict};
use crate::study::AskStep;
use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The step: each name by itself. If a question fails, the failure is recorded, and the next one is
/// asked.
pub(super) fn cold<'a>(life: &mut RunningTarget<'a>, at: At<'_>, plan: &'a AskStep) -> Result<()> {
    let tables = life.tables(&plan.suffix)?;
    for (name, instances) in ask::by_name(&plan.questions) {
        life.go_on()?;
        let mut result = at.result(Some(("question", name)));
        let question = instances[0];
        if let Some(why) = life.target.cannot(&tables, question) {
            result.verdict = Verdict::Cannot(why);
        } else if let Err(error) = ask_one(life, &mut result, &tables, plan, question) {
            life.go_on()?;
            result.verdict = Verdict::Failed(format!("{error:#}"));
            life.failures.push(format!("question {name}: {error:#}"));
        }
        life.steps.push(result);
    }
    Ok(())
}

fn ask_one(
    life: &mut RunningTarget<'_>,
    result: &mut StepResult,
    tables: &Arc<[Table]>,
    plan: &AskStep,
    question: &Question,
) -> Result<()> {
    let expected = ask::expected(life, plan, &[question])?;
    if life.target.restart(&life.all_tables())?.is_some() {
        life.monitor.follow(&life.target.processes());
    }
    let mut askers = ask::connect(life, tables, 1)?;
    let asker = &mut askers[0];
    forget(life.dir).context("dropping files from the page cache")?;
    let (mark, start) = (life.monitor.mark(), Instant::now());
    let reply = asker.session.ask(question)?;
    let took = start.elapsed();
    let used = life.monitor.since(&mark);
    let read = used.server.unwrap_or(used.client).read_bytes;
    let mut latencies = Latencies::default();
    latencies.record(took);
    put_asked(result, &[latencies], took.as_secs_f64());
    put(result, "read_bytes", read as f64);
    result.resources = Some(used);
    let mut checked = CheckedAnswers::default();
    asker.compare(question, reply, expected[0].as_deref(), &mut checked)?;
    result.verdict = checked.verdict();
    result.answers = checked.kept;
    Ok(())
}

/// Drops the files below `folder` from the page cache, except pages that a process has mapped.
fn forget(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            forget(&entry.path())?;
        } else if kind.is_file() {
            // Another process may remove its files at any time.
            let Ok(file) = File::open(entry.path()) else {
                continue;
            };
            // Only pages that are on disk can be dropped.
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
