//! Statements that create, change, drop and show databases and retention policies.
//!
//! A policy sets the `ttl` and the partition width of the tables that writes create. So changing a
//! policy changes the `ttl` of its tables, and dropping it drops them.

use crate::output::Listing;
use crate::schema::refused;
use crate::value::{InfluxValueType, Value};
use marigram_access::AccessRights;
use marigram_engine::{Engine, EngineError, TableChange};
use marigram_influxql::GoDuration;
use marigram_influxql::ast::{
    AlterRetentionPolicy, CreateDatabase, CreateRetentionPolicy, Statement,
};
use marigram_model::{RetentionPolicies, RetentionPolicy, TableOptions, TableSchema};
use marigram_service::DEFAULT_DATABASE;
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// Executes a statement about databases or retention policies, waiting for the disk; `None` for
/// other statements.
///
/// # Errors
/// Why the statement failed, in InfluxDB's words.
pub(crate) fn execute(
    engine: &Engine,
    rights: &AccessRights,
    statement: &Statement,
) -> SqlResult<Option<StatementRows>> {
    let done = match statement {
        Statement::CreateDatabase(create) => create_database(engine, create),
        Statement::DropDatabase(name) => Ok(engine.drop_database(name, true)?),
        Statement::CreateRetentionPolicy(create) => create_policy(engine, create),
        Statement::AlterRetentionPolicy(alter) => alter_policy(engine, alter),
        Statement::DropRetentionPolicy { name, database } => drop_policy(engine, database, name),
        Statement::ShowDatabases => return show_databases(engine, rights).map(Some),
        Statement::ShowRetentionPolicies(database) => {
            return show_policies(engine, database).map(Some);
        }
        _ => return Ok(None),
    };
    done?;
    Ok(Some(StatementRows::Done {
        tag: String::new(),
        rows: 0,
        notices: Vec::new(),
    }))
}

/// Refuses names that InfluxDB refuses.
fn check_name(name: &str) -> SqlResult<()> {
    let is_valid = !["", ".", ".."].contains(&name)
        && !name.contains(|char: char| char.is_control() || matches!(char, '/' | '\\'));
    if is_valid {
        Ok(())
    } else {
        Err(refused("invalid name"))
    }
}

/// A duration as in the catalog: `None` if it is 0.
fn kept(duration_ns: i64) -> Option<i64> {
    (duration_ns != 0).then_some(duration_ns)
}

/// The shard duration of a policy that requests `asked_ns`.
fn shard_duration_ns(asked_ns: i64, duration_ns: Option<i64>) -> i64 {
    match asked_ns {
        0 => RetentionPolicy::usual_shard_duration_ns(duration_ns),
        asked_ns => asked_ns.max(RetentionPolicy::DURATION_NS_MIN),
    }
}

fn check_duration(duration_ns: Option<i64>) -> SqlResult<()> {
    let shortest = RetentionPolicy::DURATION_NS_MIN;
    if duration_ns.is_some_and(|duration_ns| duration_ns < shortest) {
        let shortest = GoDuration(shortest);
        return Err(refused(format!(
            "retention policy duration must be at least {shortest}"
        )));
    }
    Ok(())
}

fn check_shard_duration(duration_ns: Option<i64>, shard_duration_ns: i64) -> SqlResult<()> {
    if duration_ns.is_some_and(|duration_ns| duration_ns < shard_duration_ns) {
        return Err(refused(
            "retention policy duration must be greater than the shard duration",
        ));
    }
    Ok(())
}

/// The error for a database that does not exist, in InfluxDB's words.
fn in_influxdbs_words(database: &str, error: SqlError) -> SqlError {
    match error {
        SqlError::Engine(EngineError::NotFound {
            kind: "database", ..
        }) => refused(format!("database not found: {database}")),
        error => error,
    }
}

fn create_database(engine: &Engine, create: &CreateDatabase) -> SqlResult<()> {
    let name = &create.name;
    check_name(name)?;
    if !create.with_policy {
        return Ok(engine.create_database(name, true)?);
    }
    let policy_name = match create.policy_name.as_str() {
        "" => RetentionPolicy::AUTOGEN,
        name => name,
    };
    check_name(policy_name)?;
    let duration_ns = kept(create.duration_ns.unwrap_or(0));
    check_duration(duration_ns)?;
    let shard_duration_ns = shard_duration_ns(create.shard_duration_ns, duration_ns);
    check_shard_duration(duration_ns, shard_duration_ns)?;
    let policy = RetentionPolicy {
        name: policy_name.to_owned(),
        duration_ns,
        shard_duration_ns,
        replicas: create.replication.unwrap_or(1),
        plain: true,
    };
    let conflict = || {
        Err(refused(
            "retention policy conflicts with an existing policy",
        ))
    };
    if engine.databases().contains(name) {
        // Repeating the same statement changes nothing.
        let policies = engine.retention_policies(name)?;
        let matches = policies.find(policy_name).is_some_and(|known| {
            let duration = create.duration_ns.is_none() || known.duration_ns == duration_ns;
            let replicas = create.replication.is_none() || known.replicas == policy.replicas;
            duration && replicas && known.shard_duration_ns == shard_duration_ns
        });
        if matches && policies.default == policy_name {
            return Ok(());
        }
        return conflict();
    }
    engine.create_database(name, true)?;
    engine.change_retention_policies(name, |policies| {
        *policies = RetentionPolicies {
            default: policy.name.clone(),
            policies: vec![policy],
        };
        Ok(())
    })
}

fn create_policy(engine: &Engine, create: &CreateRetentionPolicy) -> SqlResult<()> {
    let (name, database) = (&create.name, &create.database);
    check_name(name)?;
    let duration_ns = kept(create.duration_ns);
    check_duration(duration_ns)?;
    let shard_duration_ns = shard_duration_ns(create.shard_duration_ns, duration_ns);
    check_shard_duration(duration_ns, shard_duration_ns)?;
    let tables = engine.tables(database).unwrap_or_default();
    let change = |policies: &mut RetentionPolicies| {
        if let Some(known) = policies.find(name) {
            let is_same = known.duration_ns == duration_ns
                && known.shard_duration_ns == shard_duration_ns
                && known.replicas == create.replication;
            if !is_same {
                return Err(refused("retention policy already exists"));
            }
            if create.default && policies.default != *name {
                return Err(refused(
                    "retention policy conflicts with an existing policy",
                ));
            }
            return Ok(());
        }
        let plain = !policies.policies.iter().any(|policy| policy.plain);
        let policy = RetentionPolicy {
            name: name.clone(),
            duration_ns,
            shard_duration_ns,
            replicas: create.replication,
            plain,
        };
        policies.policies.push(policy);
        if create.default {
            policies.default.clone_from(name);
        }
        // A table must not become one of another policy.
        let taken = |table: &&Arc<TableSchema>| {
            let owner = policies.locate(&table.name);
            !plain && owner.is_some_and(|(owner, _)| owner.name == *name)
        };
        if let Some(table) = tables.iter().find(taken) {
            return Err(refused(format!(
                "retention policy {name} would take the table '{}'; give it another name",
                table.name
            )));
        }
        Ok(())
    };
    engine
        .change_retention_policies(database, change)
        .map_err(|error| in_influxdbs_words(database, error))
}

fn alter_policy(engine: &Engine, alter: &AlterRetentionPolicy) -> SqlResult<()> {
    let (name, database) = (&alter.name, &alter.database);
    let duration_ns = alter.duration_ns.map(kept);
    let change = |policies: &mut RetentionPolicies| {
        let found = policies.policies.iter_mut();
        let Some(policy) = found.into_iter().find(|policy| policy.name == *name) else {
            return Err(refused(format!("retention policy not found: {name}")));
        };
        let new_duration_ns = duration_ns.unwrap_or(policy.duration_ns);
        check_duration(duration_ns.flatten())?;
        let asked_ns = alter.shard_duration_ns.unwrap_or(policy.shard_duration_ns);
        if duration_ns.is_some() || alter.shard_duration_ns.is_some() {
            check_shard_duration(new_duration_ns, asked_ns)?;
        }
        policy.duration_ns = new_duration_ns;
        if let Some(asked_ns) = alter.shard_duration_ns {
            policy.shard_duration_ns = shard_duration_ns(asked_ns, new_duration_ns);
        }
        policy.replicas = alter.replication.unwrap_or(policy.replicas);
        if alter.default {
            policies.default.clone_from(name);
        }
        Ok(())
    };
    engine
        .change_retention_policies(database, change)
        .map_err(|error| in_influxdbs_words(database, error))?;
    let Some(ttl_ns) = duration_ns else {
        return Ok(());
    };
    for table in tables_of(engine, database, name)? {
        if table.options.ttl_ns != ttl_ns {
            let options = TableOptions {
                ttl_ns,
                ..table.options.clone()
            };
            engine.alter_table(database, &table.name, &TableChange::SetOptions(options))?;
        }
    }
    Ok(())
}

/// The tables of a policy, without views.
fn tables_of(engine: &Engine, database: &str, policy: &str) -> SqlResult<Vec<Arc<TableSchema>>> {
    let policies = engine.retention_policies(database)?;
    let mut tables = engine.tables(database)?;
    tables.retain(|table| {
        let owner = policies.locate(&table.name);
        table.view.is_none() && owner.is_some_and(|(owner, _)| owner.name == policy)
    });
    Ok(tables)
}

fn drop_policy(engine: &Engine, database: &str, name: &str) -> SqlResult<()> {
    let Ok(policies) = engine.retention_policies(database) else {
        return Ok(());
    };
    if policies.find(name).is_none() {
        return Ok(());
    }
    // Drop rollups before the tables that they read.
    let mut tables = tables_of(engine, database, name)?;
    tables.sort_by_key(|table| table.rollup.is_none());
    for table in tables {
        engine.drop_table(database, &table.name, true)?;
    }
    engine.change_retention_policies(database, |policies| {
        policies.policies.retain(|policy| policy.name != name);
        if policies.default == name {
            policies.default.clear();
        }
        Ok(())
    })
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// The databases that are shown. The one that is always there is, once it holds something.
pub(crate) fn shown_databases(engine: &Engine, rights: &AccessRights) -> Vec<String> {
    let mut names = engine.databases();
    names.retain(|name| {
        if !rights.see(name) {
            return false;
        }
        let is_empty = engine.tables(name).is_ok_and(|tables| tables.is_empty());
        name != DEFAULT_DATABASE || !is_empty
    });
    names
}

fn show_databases(engine: &Engine, rights: &AccessRights) -> SqlResult<StatementRows> {
    let mut listing = Listing::new(vec![("name", InfluxValueType::String)]);
    let series: Arc<str> = "databases".into();
    let names = shown_databases(engine, rights);
    for name in &names {
        listing.push(Some(&series), vec![text(name)]);
    }
    if names.is_empty() {
        listing.push(Some(&series), vec![Value::Null]);
    }
    listing.answer()
}

fn show_policies(engine: &Engine, database: &str) -> SqlResult<StatementRows> {
    if database.is_empty() {
        return Err(refused("database name required"));
    }
    let policies = engine
        .retention_policies(database)
        .map_err(|error| in_influxdbs_words(database, error.into()))?;
    let mut listing = Listing::new(vec![
        ("name", InfluxValueType::String),
        ("duration", InfluxValueType::String),
        ("shardGroupDuration", InfluxValueType::String),
        ("replicaN", InfluxValueType::Integer),
        ("default", InfluxValueType::Boolean),
    ]);
    for policy in &policies.policies {
        let duration = GoDuration(policy.duration_ns.unwrap_or(0)).to_string();
        let shards = GoDuration(policy.shard_duration_ns).to_string();
        listing.push(
            None,
            vec![
                text(&policy.name),
                text(&duration),
                text(&shards),
                Value::Integer(i64::from(policy.replicas)),
                Value::Boolean(policies.default == policy.name),
            ],
        );
    }
    if policies.policies.is_empty() {
        listing.push(None, vec![Value::Null; 5]);
    }
    listing.answer()
}

#[cfg(test)]
#[path = "databases_tests.rs"]
mod tests;
