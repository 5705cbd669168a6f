//! Statements, and queries with several statements.

use super::admin::{
    AlterRetentionPolicy, CreateContinuousQuery, CreateDatabase, CreateRetentionPolicy,
    CreateSubscription, Privilege,
};
use super::expr::Expr;
use super::password::Password;
use super::print;
use super::select::{Select, Source};
use super::show::{
    ShowCardinality, ShowFieldKeys, ShowMeasurements, ShowSeries, ShowTagKeys, ShowTagValues,
};
use super::span::SourceSpan;
use crate::quote::{QuotedIdent, QuotedString, write_list};
use std::fmt;

/// Statements separated by `;`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InfluxQlQuery {
    /// The statements, in order. A statement's number in an answer is its index here.
    pub statements: Vec<Statement>,
    /// Where each statement stands in the text.
    pub spans: Vec<SourceSpan>,
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Statement {
    /// SELECT
    Select(Box<Select>),
    /// EXPLAIN
    Explain {
        /// ANALYZE: run it and measure.
        analyze: bool,
        /// The query to explain.
        select: Box<Select>,
    },
    /// DELETE: rows, by measurement, tags and time.
    Delete {
        /// Measurements only; all if empty.
        sources: Vec<Source>,
        /// WHERE.
        condition: Option<Expr>,
    },
    /// DROP SERIES: whole series, by measurement and tags.
    DropSeries {
        /// Measurements only; all if empty.
        sources: Vec<Source>,
        /// WHERE.
        condition: Option<Expr>,
    },
    /// DROP MEASUREMENT
    DropMeasurement(String),
    /// DROP SHARD
    DropShard(u64),
    /// SHOW SERIES
    ShowSeries(ShowSeries),
    /// SHOW MEASUREMENTS
    ShowMeasurements(ShowMeasurements),
    /// SHOW TAG KEYS
    ShowTagKeys(ShowTagKeys),
    /// SHOW TAG VALUES
    ShowTagValues(ShowTagValues),
    /// SHOW FIELD KEYS
    ShowFieldKeys(ShowFieldKeys),
    /// SHOW … CARDINALITY
    ShowCardinality(ShowCardinality),
    /// SHOW CONTINUOUS QUERIES
    ShowContinuousQueries,
    /// SHOW DATABASES
    ShowDatabases,
    /// SHOW DIAGNOSTICS, of the module behind FOR or of all.
    ShowDiagnostics(String),
    /// SHOW GRANTS FOR a user.
    ShowGrants(String),
    /// SHOW QUERIES
    ShowQueries,
    /// SHOW RETENTION POLICIES, of the database behind ON or of the request's.
    ShowRetentionPolicies(String),
    /// SHOW SHARD GROUPS
    ShowShardGroups,
    /// SHOW SHARDS
    ShowShards,
    /// SHOW STATS, of the module behind FOR or of all.
    ShowStats(String),
    /// SHOW SUBSCRIPTIONS
    ShowSubscriptions,
    /// SHOW USERS
    ShowUsers,
    /// CREATE DATABASE
    CreateDatabase(CreateDatabase),
    /// DROP DATABASE
    DropDatabase(String),
    /// CREATE RETENTION POLICY
    CreateRetentionPolicy(CreateRetentionPolicy),
    /// ALTER RETENTION POLICY
    AlterRetentionPolicy(AlterRetentionPolicy),
    /// DROP RETENTION POLICY
    DropRetentionPolicy {
        /// The policy.
        name: String,
        /// Its database.
        database: String,
    },
    /// CREATE CONTINUOUS QUERY
    CreateContinuousQuery(CreateContinuousQuery),
    /// DROP CONTINUOUS QUERY
    DropContinuousQuery {
        /// The query.
        name: String,
        /// Its database.
        database: String,
    },
    /// CREATE SUBSCRIPTION
    CreateSubscription(CreateSubscription),
    /// DROP SUBSCRIPTION
    DropSubscription {
        /// The subscription.
        name: String,
        /// Its database.
        database: String,
        /// Its retention policy.
        retention_policy: String,
    },
    /// CREATE USER
    CreateUser {
        /// The new user.
        name: String,
        /// The password; never printed.
        password: Password,
        /// WITH ALL PRIVILEGES: may do anything.
        admin: bool,
    },
    /// DROP USER
    DropUser(String),
    /// SET PASSWORD
    SetPassword {
        /// The user.
        name: String,
        /// The new password; never printed.
        password: Password,
    },
    /// GRANT … ON a database, or without ON the right to do everything.
    Grant {
        /// What is granted.
        privilege: Privilege,
        /// The database; nothing makes the user an administrator.
        database: Option<String>,
        /// The user who gets it.
        user: String,
    },
    /// REVOKE … ON a database, or without ON the right to do everything.
    Revoke {
        /// The revoked privilege.
        privilege: Privilege,
        /// The database; `None` removes the administrator's rights.
        database: Option<String>,
        /// The user who loses it.
        user: String,
    },
    /// KILL QUERY
    KillQuery {
        /// The number from SHOW QUERIES.
        id: u64,
        /// The host after ON, or empty.
        host: String,
    },
}

impl fmt::Display for InfluxQlQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.statements, ";\n")
    }
}

/// Writes FROM and WHERE of a statement that removes something.
fn write_removal(
    f: &mut fmt::Formatter<'_>,
    sources: &[Source],
    condition: Option<&Expr>,
) -> fmt::Result {
    print::list(f, "FROM", sources)?;
    print::optional(f, "WHERE", condition)
}

/// Writes ` ON database`, if a privilege is for one database.
fn write_database(f: &mut fmt::Formatter<'_>, database: Option<&str>) -> fmt::Result {
    database.map_or(Ok(()), |name| write!(f, " ON {}", QuotedIdent(name)))
}

/// Writes ` FOR 'module'`, unless it means all modules.
fn write_module(f: &mut fmt::Formatter<'_>, module: &str) -> fmt::Result {
    if module.is_empty() {
        return Ok(());
    }
    write!(f, " FOR {}", QuotedString(module))
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Select(select) => write!(f, "{select}"),
            Self::Explain { analyze, select } => {
                let analyze = if *analyze { "ANALYZE " } else { "" };
                write!(f, "EXPLAIN {analyze}{select}")
            }
            Self::Delete { sources, condition } => {
                f.write_str("DELETE")?;
                write_removal(f, sources, condition.as_ref())
            }
            Self::DropSeries { sources, condition } => {
                f.write_str("DROP SERIES")?;
                write_removal(f, sources, condition.as_ref())
            }
            Self::DropMeasurement(name) => write!(f, "DROP MEASUREMENT {}", QuotedIdent(name)),
            Self::DropShard(id) => write!(f, "DROP SHARD {id}"),
            Self::ShowSeries(show) => write!(f, "{show}"),
            Self::ShowMeasurements(show) => write!(f, "{show}"),
            Self::ShowTagKeys(show) => write!(f, "{show}"),
            Self::ShowTagValues(show) => write!(f, "{show}"),
            Self::ShowFieldKeys(show) => write!(f, "{show}"),
            Self::ShowCardinality(show) => write!(f, "{show}"),
            Self::ShowContinuousQueries => f.write_str("SHOW CONTINUOUS QUERIES"),
            Self::ShowDatabases => f.write_str("SHOW DATABASES"),
            Self::ShowDiagnostics(module) => {
                f.write_str("SHOW DIAGNOSTICS")?;
                write_module(f, module)
            }
            Self::ShowGrants(user) => write!(f, "SHOW GRANTS FOR {}", QuotedIdent(user)),
            Self::ShowQueries => f.write_str("SHOW QUERIES"),
            Self::ShowRetentionPolicies(database) => {
                f.write_str("SHOW RETENTION POLICIES")?;
                print::on(f, database)
            }
            Self::ShowShardGroups => f.write_str("SHOW SHARD GROUPS"),
            Self::ShowShards => f.write_str("SHOW SHARDS"),
            Self::ShowStats(module) => {
                f.write_str("SHOW STATS")?;
                write_module(f, module)
            }
            Self::ShowSubscriptions => f.write_str("SHOW SUBSCRIPTIONS"),
            Self::ShowUsers => f.write_str("SHOW USERS"),
            Self::CreateDatabase(create) => write!(f, "{create}"),
            Self::DropDatabase(name) => write!(f, "DROP DATABASE {}", QuotedIdent(name)),
            Self::CreateRetentionPolicy(create) => write!(f, "{create}"),
            Self::AlterRetentionPolicy(alter) => write!(f, "{alter}"),
            Self::DropRetentionPolicy { name, database } => {
                let (name, database) = (QuotedIdent(name), QuotedIdent(database));
                write!(f, "DROP RETENTION POLICY {name} ON {database}")
            }
            Self::CreateContinuousQuery(create) => write!(f, "{create}"),
            Self::DropContinuousQuery { name, database } => {
                let (name, database) = (QuotedIdent(name), QuotedIdent(database));
                write!(f, "DROP CONTINUOUS QUERY {name} ON {database}")
            }
            Self::CreateSubscription(create) => write!(f, "{create}"),
            Self::DropSubscription {
                name,
                database,
                retention_policy,
            } => {
                let (name, database) = (QuotedIdent(name), QuotedIdent(database));
                let policy = QuotedIdent(retention_policy);
                write!(f, "DROP SUBSCRIPTION {name} ON {database}.{policy}")
            }
            Self::CreateUser { name, admin, .. } => {
                let name = QuotedIdent(name);
                let admin = if *admin { " WITH ALL PRIVILEGES" } else { "" };
                write!(f, "CREATE USER {name} WITH PASSWORD [REDACTED]{admin}")
            }
            Self::DropUser(name) => write!(f, "DROP USER {}", QuotedIdent(name)),
            Self::SetPassword { name, .. } => {
                write!(f, "SET PASSWORD FOR {} = [REDACTED]", QuotedIdent(name))
            }
            Self::Grant {
                privilege,
                database,
                user,
            } => {
                write!(f, "GRANT {privilege}")?;
                write_database(f, database.as_deref())?;
                write!(f, " TO {}", QuotedIdent(user))
            }
            Self::Revoke {
                privilege,
                database,
                user,
            } => {
                write!(f, "REVOKE {privilege}")?;
                write_database(f, database.as_deref())?;
                write!(f, " FROM {}", QuotedIdent(user))
            }
            Self::KillQuery { id, host } => {
                write!(f, "KILL QUERY {id}")?;
                print::on(f, host)
            }
        }
    }
}
