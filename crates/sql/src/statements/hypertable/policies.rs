//! Policies: settings of a table or a view under the names of TimescaleDB.

use super::{CallOutcome, set_options};
use crate::dialect::timescale::arguments::CallArguments;
use crate::error::{SqlError, SqlResult};
use crate::tables::hypertable_jobs::JobKind;
use marigram_engine::{Engine, TableChange};
use marigram_functions::duration::format_ns;
use marigram_model::{ColdCodec, TableSchema};

/// What a client is told of a policy that is there already, or the error.
fn exists(table: &TableSchema, kind: JobKind, arguments: &CallArguments) -> SqlResult<CallOutcome> {
    let message = format!(
        "'{}' has a {} already, which was left as it is",
        table.name,
        kind.title()
    );
    if arguments.flag("if_not_exists")? == Some(true) {
        return Ok(CallOutcome::job(-1).telling(message));
    }
    let message = format!("'{}' has a {} already", table.name, kind.title());
    Err(SqlError::named("42710", &table.name, message))
}

/// What a client is told of a policy that is not there, or the error.
fn missing(
    table: &TableSchema,
    kind: JobKind,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    let message = format!("'{}' has no {}", table.name, kind.title());
    if arguments.flag("if_exists")? == Some(true) {
        return Ok(CallOutcome::void().telling(message));
    }
    Err(SqlError::named("42704", &table.name, message))
}

/// Refuses a plain view, which has no rows of its own.
fn check_stored(table: &TableSchema) -> SqlResult<()> {
    if table.view.is_none() {
        return Ok(());
    }
    let message = format!("'{}' is a view: it has no rows of its own", table.name);
    Err(SqlError::named("42809", &table.name, message))
}

/// `add_retention_policy`: sets `ttl`.
pub(super) fn add_retention(
    engine: &Engine,
    table: &TableSchema,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_stored(table)?;
    if arguments.has("drop_created_before") {
        let message = "drop_created_before is not supported: rows are dropped by their times; write \
                       drop_after";
        return Err(SqlError::named("0A000", "drop_created_before", message));
    }
    let Some(ttl_ns) = arguments.kept_ns("drop_after")? else {
        let message = "add_retention_policy needs drop_after, as in INTERVAL '30 days'";
        return Err(SqlError::named("22023", "add_retention_policy", message));
    };
    if table.options.ttl_ns.is_some() {
        return exists(table, JobKind::Retention, arguments);
    }
    set_ttl(engine, table, Some(ttl_ns))?;
    let outcome = CallOutcome::job(JobKind::Retention.id(table));
    let has_months = arguments
        .interval("drop_after")?
        .is_some_and(|i| i.months != 0);
    Ok(if has_months {
        outcome.telling(format!(
            "months have no fixed length; rows are kept for {}",
            format_ns(ttl_ns)
        ))
    } else {
        outcome
    })
}

/// Sets how long rows are kept.
pub(super) fn set_ttl(engine: &Engine, table: &TableSchema, ttl_ns: Option<i64>) -> SqlResult<()> {
    set_options(engine, table, |options| options.ttl_ns = ttl_ns)
}

/// `remove_retention_policy`: rows are kept for ever.
pub(super) fn remove_retention(
    engine: &Engine,
    table: &TableSchema,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_stored(table)?;
    if table.options.ttl_ns.is_none() {
        return missing(table, JobKind::Retention, arguments);
    }
    set_ttl(engine, table, None)?;
    Ok(CallOutcome::void())
}

/// `add_columnstore_policy`: compaction may store cold rows in smaller forms.
pub(super) fn add_columnstore(
    engine: &Engine,
    table: &TableSchema,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_stored(table)?;
    if table.options.cold_codec == ColdCodec::Auto {
        return exists(table, JobKind::Columnstore, arguments);
    }
    set_cold_codec(engine, table, ColdCodec::Auto)?;
    let notice = "rows are stored in columns and compressed from the first flush on; compaction now \
                  stores partitions that no longer change in smaller forms (cold_codec = 'auto')";
    Ok(CallOutcome::job(JobKind::Columnstore.id(table)).telling(notice))
}

/// Sets how cold rows are stored.
pub(super) fn set_cold_codec(
    engine: &Engine,
    table: &TableSchema,
    codec: ColdCodec,
) -> SqlResult<()> {
    set_options(engine, table, |options| options.cold_codec = codec)
}

/// `remove_columnstore_policy`
pub(super) fn remove_columnstore(
    engine: &Engine,
    table: &TableSchema,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_stored(table)?;
    if table.options.cold_codec != ColdCodec::Auto {
        return missing(table, JobKind::Columnstore, arguments);
    }
    set_cold_codec(engine, table, ColdCodec::default())?;
    Ok(CallOutcome::void())
}

/// Refuses what is no materialized view.
pub(super) fn check_view(table: &TableSchema) -> SqlResult<()> {
    if table.rollup.is_some() {
        return Ok(());
    }
    let message = format!("'{}' is not a materialized view", table.name);
    Err(SqlError::named("42809", &table.name, message))
}

/// `add_continuous_aggregate_policy`: how often a view is refreshed, and how far it stays behind.
pub(super) fn add_refresh(
    engine: &Engine,
    table: &TableSchema,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_view(table)?;
    let refresh_ns = arguments.partition_ns("schedule_interval")?;
    let lag_ns = match arguments.interval("end_offset")? {
        Some(_) => lag_ns(arguments)?,
        None => None,
    };
    set_refresh(engine, table, refresh_ns, lag_ns)?;
    let notice = "a view is always exact: queries read rows that it does not cover yet from its table, \
                  and a refresh recomputes all buckets that changed, however old";
    Ok(CallOutcome::job(JobKind::Refresh.id(table)).telling(notice))
}

/// How far a view stays behind: `end_offset`, which may be zero.
fn lag_ns(arguments: &CallArguments) -> SqlResult<Option<i64>> {
    let interval = arguments.interval("end_offset")?;
    let zero = interval.is_some_and(|i| i.months == 0 && i.days == 0 && i.nanos == 0);
    if zero {
        return Ok(Some(0));
    }
    arguments.partition_ns("end_offset")
}

/// Sets how often a view is refreshed, and how far it stays behind.
pub(super) fn set_refresh(
    engine: &Engine,
    table: &TableSchema,
    refresh_ns: Option<i64>,
    lag_ns: Option<i64>,
) -> SqlResult<()> {
    let Some(rollup) = &table.rollup else {
        return Ok(());
    };
    let change = TableChange::SetRefresh(
        refresh_ns.unwrap_or(rollup.refresh_ns),
        lag_ns.unwrap_or(rollup.lag_ns),
    );
    engine.alter_table(&table.database, &table.name, &change)?;
    Ok(())
}

/// `remove_continuous_aggregate_policy`
pub(super) fn remove_refresh(table: &TableSchema) -> SqlResult<CallOutcome> {
    check_view(table)?;
    let notice = format!(
        "'{name}' is refreshed in the background as long as it exists; ALTER MATERIALIZED VIEW {name} \
         SET (refresh = '1d') makes that rare",
        name = table.name
    );
    Ok(CallOutcome::void().telling(notice))
}
