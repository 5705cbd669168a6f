//! The jobs of TimescaleDB: the settings of tables and views that work in the background.

use super::policies::{set_cold_codec, set_refresh, set_ttl};
use super::{CallOutcome, text};
use crate::dialect::timescale::arguments::CallArguments;
use crate::error::{SqlError, SqlResult};
use crate::tables::hypertable_jobs::{HypertableJob, JobKind, list_jobs};
use datafusion::common::ScalarValue;
use marigram_engine::Engine;
use marigram_model::ColdCodec;

/// The job that an argument names.
fn named(engine: &Engine, database: &str, arguments: &CallArguments) -> SqlResult<HypertableJob> {
    let Some(id) = arguments.number("job_id")? else {
        let message = "a job is named by its number; SELECT * FROM timescaledb_information.jobs";
        return Err(SqlError::named("22023", "job_id", message));
    };
    let found = list_jobs(engine, database)?.into_iter();
    let mut found = found.filter(|job| i64::from(job.id) == id);
    found.next().ok_or_else(|| {
        let message = format!("job {id} does not exist");
        SqlError::named("42704", &id.to_string(), message)
    })
}

/// `alter_job`
pub(super) fn alter(
    engine: &Engine,
    database: &str,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    let job = match named(engine, database, arguments) {
        Err(error) if arguments.flag("if_exists")? == Some(true) => {
            let outcome = CallOutcome::default();
            return Ok(outcome.telling(error.to_string()));
        }
        job => job?,
    };
    if arguments.flag("scheduled")? == Some(false) {
        let message = "a job cannot be paused: remove the policy, or give it a long interval";
        return Err(SqlError::named("0A000", "scheduled", message));
    }
    let every = arguments.partition_ns("schedule_interval")?;
    let mut notices = Vec::new();
    match job.kind {
        JobKind::Refresh => set_refresh(engine, &job.table, every, None)?,
        _ if every.is_some() => notices.push(
            "schedule_interval: this work is done when it is due, without a schedule".to_owned(),
        ),
        _ => {}
    }
    if let Some(config) = arguments.text("config")? {
        match (job.kind, json_text(&config, "drop_after")) {
            (JobKind::Retention, Some(kept)) => {
                let values = CallArguments(vec![("drop_after", text(kept))]);
                set_ttl(engine, &job.table, values.kept_ns("drop_after")?)?;
            }
            _ => notices.push("config: nothing in it is a setting of this job".to_owned()),
        }
    }
    let job = HypertableJob {
        table: engine.table(database, &job.table.name)?,
        ..job
    };
    let mut outcome = CallOutcome::row(vec![
        ScalarValue::Int32(Some(job.id)),
        ScalarValue::Utf8(job.schedule()),
        ScalarValue::Boolean(Some(true)),
        text(&job.config()),
    ]);
    outcome.notices = notices;
    Ok(outcome)
}

/// The text of a key in a flat JSON object.
fn json_text<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{key}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    rest.strip_prefix('"')?
        .split_once('"')
        .map(|(text, _)| text)
}

/// `delete_job`
pub(super) fn delete(
    engine: &Engine,
    database: &str,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    let job = named(engine, database, arguments)?;
    match job.kind {
        JobKind::Retention => set_ttl(engine, &job.table, None)?,
        JobKind::Columnstore => set_cold_codec(engine, &job.table, ColdCodec::default())?,
        JobKind::Refresh => {
            let message = format!(
                "'{}' is refreshed as long as it exists: DROP MATERIALIZED VIEW ends that",
                job.table.name
            );
            return Err(SqlError::named("0A000", "delete_job", message));
        }
    }
    Ok(CallOutcome::void())
}

/// `run_job`
pub(super) fn run(
    engine: &Engine,
    database: &str,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    let job = named(engine, database, arguments)?;
    match job.kind {
        JobKind::Retention => engine.retain()?,
        JobKind::Columnstore => {
            engine.compact_table(database, &job.table.name)?;
        }
        JobKind::Refresh => {
            return Ok(CallOutcome {
                refresh: Some(job.table),
                ..CallOutcome::void()
            });
        }
    }
    Ok(CallOutcome::void())
}

#[cfg(test)]
mod tests {
    use super::json_text;

    #[test]
    fn texts_are_found_in_json() {
        let json = "{\"hypertable_id\": 5, \"drop_after\" : \"30 days\"}";
        assert_eq!(json_text(json, "drop_after"), Some("30 days"));
        assert_eq!(json_text(json, "hypertable_id"), None);
        assert_eq!(json_text("{}", "drop_after"), None);
    }
}
