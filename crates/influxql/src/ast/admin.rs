//! Databases, retention policies, continuous queries, subscriptions, and privileges.

use super::select::Select;
use crate::duration::{GoDuration, InfluxDuration};
use crate::quote::{QuotedIdent, QuotedString, write_list};
use std::fmt;

/// CREATE DATABASE.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateDatabase {
    /// The new database.
    pub name: String,
    /// Whether WITH describes the default retention policy.
    pub with_policy: bool,
    /// DURATION in nanoseconds; 0 means forever.
    pub duration_ns: Option<i64>,
    /// REPLICATION, at least 1.
    pub replication: Option<u32>,
    /// SHARD DURATION in nanoseconds; 0 if it is not written.
    pub shard_duration_ns: i64,
    /// NAME of the policy, or nothing.
    pub policy_name: String,
}

/// CREATE RETENTION POLICY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateRetentionPolicy {
    /// The new policy.
    pub name: String,
    /// Its database.
    pub database: String,
    /// How long rows are kept, in nanoseconds; 0 means forever.
    pub duration_ns: i64,
    /// REPLICATION, at least 1.
    pub replication: u32,
    /// SHARD DURATION in nanoseconds; 0 if it is not written.
    pub shard_duration_ns: i64,
    /// Whether it is the database's default policy.
    pub default: bool,
}

/// ALTER RETENTION POLICY.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlterRetentionPolicy {
    /// The policy.
    pub name: String,
    /// Its database.
    pub database: String,
    /// How long rows are kept, in nanoseconds; 0 means forever.
    pub duration_ns: Option<i64>,
    /// REPLICATION, at least 1.
    pub replication: Option<u32>,
    /// SHARD DURATION in nanoseconds.
    pub shard_duration_ns: Option<i64>,
    /// Whether it becomes the database's default policy.
    pub default: bool,
}

/// CREATE CONTINUOUS QUERY.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateContinuousQuery {
    /// The new query.
    pub name: String,
    /// Its database.
    pub database: String,
    /// RESAMPLE EVERY in nanoseconds; 0 if it is not written.
    pub resample_every_ns: i64,
    /// RESAMPLE FOR in nanoseconds; 0 if it is not written.
    pub resample_for_ns: i64,
    /// The query to compute; it has a target.
    pub select: Box<Select>,
}

/// CREATE SUBSCRIPTION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSubscription {
    /// The new subscription.
    pub name: String,
    /// The database whose writes are forwarded.
    pub database: String,
    /// Its retention policy.
    pub retention_policy: String,
    /// The destinations that receive a write.
    pub mode: SubscriptionMode,
    /// Addresses; at least one.
    pub destinations: Vec<String>,
}

/// The destinations of a subscription that receive a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionMode {
    /// Every one.
    All,
    /// One after another, in turn.
    Any,
}

/// What a user may do with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Privilege {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Read and write.
    All,
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::All => "ALL PRIVILEGES",
        })
    }
}

impl fmt::Display for CreateDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE DATABASE {}", QuotedIdent(&self.name))?;
        if !self.with_policy {
            return Ok(());
        }
        f.write_str(" WITH")?;
        if let Some(ns) = self.duration_ns {
            write!(f, " DURATION {}", GoDuration(ns))?;
        }
        if let Some(replication) = self.replication {
            write!(f, " REPLICATION {replication}")?;
        }
        if self.shard_duration_ns > 0 {
            write!(f, " SHARD DURATION {}", GoDuration(self.shard_duration_ns))?;
        }
        if !self.policy_name.is_empty() {
            write!(f, " NAME {}", QuotedIdent(&self.policy_name))?;
        }
        Ok(())
    }
}

impl fmt::Display for CreateRetentionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, database) = (QuotedIdent(&self.name), QuotedIdent(&self.database));
        let duration = InfluxDuration(self.duration_ns);
        write!(f, "CREATE RETENTION POLICY {name} ON {database}")?;
        write!(f, " DURATION {duration} REPLICATION {}", self.replication)?;
        if self.shard_duration_ns > 0 {
            write!(
                f,
                " SHARD DURATION {}",
                InfluxDuration(self.shard_duration_ns)
            )?;
        }
        f.write_str(if self.default { " DEFAULT" } else { "" })
    }
}

impl fmt::Display for AlterRetentionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, database) = (QuotedIdent(&self.name), QuotedIdent(&self.database));
        write!(f, "ALTER RETENTION POLICY {name} ON {database}")?;
        if let Some(ns) = self.duration_ns {
            write!(f, " DURATION {}", InfluxDuration(ns))?;
        }
        if let Some(replication) = self.replication {
            write!(f, " REPLICATION {replication}")?;
        }
        if let Some(ns) = self.shard_duration_ns {
            write!(f, " SHARD DURATION {}", InfluxDuration(ns))?;
        }
        f.write_str(if self.default { " DEFAULT" } else { "" })
    }
}

impl fmt::Display for CreateContinuousQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, database) = (QuotedIdent(&self.name), QuotedIdent(&self.database));
        write!(f, "CREATE CONTINUOUS QUERY {name} ON {database} ")?;
        if self.resample_every_ns > 0 || self.resample_for_ns > 0 {
            f.write_str("RESAMPLE ")?;
        }
        if self.resample_every_ns > 0 {
            write!(f, "EVERY {} ", InfluxDuration(self.resample_every_ns))?;
        }
        if self.resample_for_ns > 0 {
            write!(f, "FOR {} ", InfluxDuration(self.resample_for_ns))?;
        }
        write!(f, "BEGIN {} END", self.select)
    }
}

impl fmt::Display for CreateSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, database) = (QuotedIdent(&self.name), QuotedIdent(&self.database));
        let policy = QuotedIdent(&self.retention_policy);
        let mode = match self.mode {
            SubscriptionMode::All => "ALL",
            SubscriptionMode::Any => "ANY",
        };
        write!(
            f,
            "CREATE SUBSCRIPTION {name} ON {database}.{policy} DESTINATIONS {mode} "
        )?;
        write_list(f, self.destinations.iter().map(|to| QuotedString(to)), ", ")
    }
}
