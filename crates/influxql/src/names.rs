//! Completes a statement with the databases and retention policies that it leaves out.
//!
//! InfluxDB does this before it runs a statement: SHOW QUERIES and SHOW CONTINUOUS QUERIES print
//! the completed statement.

use crate::ast::{Measurement, MeasurementName, Select, Source, Statement, Target};

/// Access to databases.
pub trait Databases {
    /// The default retention policy of a database, or `None` if there is no such database. A
    /// database without a default policy has the empty name.
    fn default_policy(&self, database: &str) -> Option<String>;
}

/// The databases and policies that a request names.
#[derive(Clone, Copy)]
pub struct NameContext<'a> {
    /// The request's database, or empty.
    pub database: &'a str,
    /// The request's retention policy, or empty.
    pub retention_policy: &'a str,
    /// The existing databases.
    pub databases: &'a dyn Databases,
}

/// Why names cannot be completed, in InfluxDB's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is described by its text")]
pub enum NameCompletionError {
    #[error("invalid measurement")]
    InvalidMeasurement,
    #[error("database name required")]
    DatabaseRequired,
    #[error("database not found: {0}")]
    DatabaseNotFound(String),
    #[error("default retention policy not set for: {0}")]
    NoDefaultPolicy(String),
}

/// Writes the database and the retention policy into every measurement of a SELECT (including those
/// of EXPLAIN and CREATE CONTINUOUS QUERY), and the database into SHOW statements. Statements that
/// remove something stay unchanged: they apply to all policies of the request's database.
///
/// # Errors
/// If a database is missing or unknown.
pub fn complete_names(
    statement: &mut Statement,
    context: &NameContext<'_>,
) -> Result<(), NameCompletionError> {
    let fill = |database: &mut String| {
        if database.is_empty() {
            context.database.clone_into(database);
        }
    };
    match statement {
        Statement::Select(select) | Statement::Explain { select, .. } => {
            complete_select(select, context)?;
        }
        Statement::CreateContinuousQuery(create) => {
            // The request's database takes precedence over that of the continuous query.
            let database = match context.database {
                "" => create.database.as_str(),
                database => database,
            };
            let context = NameContext {
                database,
                ..*context
            };
            complete_select(&mut create.select, &context)?;
        }
        Statement::ShowSeries(show) => fill(&mut show.database),
        Statement::ShowMeasurements(show) => fill(&mut show.database),
        Statement::ShowTagKeys(show) => fill(&mut show.database),
        Statement::ShowTagValues(show) => fill(&mut show.database),
        Statement::ShowFieldKeys(show) => fill(&mut show.database),
        Statement::ShowCardinality(show) => fill(&mut show.database),
        Statement::ShowRetentionPolicies(database) => fill(database),
        _ => {}
    }
    Ok(())
}

fn complete_select(
    select: &mut Select,
    context: &NameContext<'_>,
) -> Result<(), NameCompletionError> {
    if let Some(target) = &mut select.target {
        let Target {
            database,
            retention_policy,
            ..
        } = target;
        complete_place(database, retention_policy, context)?;
    }
    for source in &mut select.sources {
        match source {
            Source::Subquery(inner) => complete_select(inner, context)?,
            Source::Measurement(measurement) => complete_measurement(measurement, context)?,
        }
    }
    Ok(())
}

fn complete_measurement(
    measurement: &mut Measurement,
    context: &NameContext<'_>,
) -> Result<(), NameCompletionError> {
    let Measurement {
        database,
        retention_policy,
        name,
    } = measurement;
    if *name == MeasurementName::Name(String::new()) {
        return Err(NameCompletionError::InvalidMeasurement);
    }
    complete_place(database, retention_policy, context)
}

fn complete_place(
    database: &mut String,
    policy: &mut String,
    context: &NameContext<'_>,
) -> Result<(), NameCompletionError> {
    if database.is_empty() {
        context.database.clone_into(database);
    }
    if database.is_empty() {
        return Err(NameCompletionError::DatabaseRequired);
    }
    let Some(default_policy) = context.databases.default_policy(database) else {
        return Err(NameCompletionError::DatabaseNotFound(database.clone()));
    };
    if policy.is_empty() {
        context.retention_policy.clone_into(policy);
    }
    if policy.is_empty() {
        *policy = default_policy;
    }
    if policy.is_empty() {
        return Err(NameCompletionError::NoDefaultPolicy(database.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Databases, NameContext, complete_names};
    use crate::parse_query;

    /// `db` with the policy `autogen`, `bare` without one.
    struct Two;

    impl Databases for Two {
        fn default_policy(&self, database: &str) -> Option<String> {
            match database {
                "db" => Some("autogen".to_owned()),
                "bare" => Some(String::new()),
                _ => None,
            }
        }
    }

    fn completed(text: &str, database: &str, retention_policy: &str) -> String {
        let context = NameContext {
            database,
            retention_policy,
            databases: &Two,
        };
        let mut statement = parse_query(text).expect(text).statements.remove(0);
        match complete_names(&mut statement, &context) {
            Ok(()) => statement.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_are_completed() {
        for (text, expected) in [
            (
                "SELECT v INTO w FROM m, (SELECT a FROM rp.n), /x/, bare.p.q",
                "SELECT v INTO db.autogen.w FROM db.autogen.m, (SELECT a FROM db.rp.n), \
                 db.autogen./x/, bare.p.q",
            ),
            (
                "SELECT v INTO rp.:MEASUREMENT FROM m",
                "SELECT v INTO db.rp.:MEASUREMENT FROM db.autogen.m",
            ),
            (
                "EXPLAIN SELECT v FROM m",
                "EXPLAIN SELECT v FROM db.autogen.m",
            ),
            ("SHOW TAG KEYS FROM m", "SHOW TAG KEYS ON db FROM m"),
            ("SHOW SERIES ON other", "SHOW SERIES ON other"),
            ("SHOW RETENTION POLICIES", "SHOW RETENTION POLICIES ON db"),
            ("DELETE FROM m", "DELETE FROM m"),
            ("SELECT v FROM zz..m", "database not found: zz"),
            (
                "SELECT v FROM bare..m",
                "default retention policy not set for: bare",
            ),
            ("SELECT v FROM \"\"", "invalid measurement"),
        ] {
            assert_eq!(completed(text, "db", ""), expected, "{text}");
        }
        let policy = completed("SELECT v FROM m, bare..n", "db", "rp");
        assert_eq!(policy, "SELECT v FROM db.rp.m, bare.rp.n");
        assert_eq!(
            completed("SELECT v FROM m", "", ""),
            "database name required"
        );
        let query = "CREATE CONTINUOUS QUERY q ON db BEGIN SELECT v INTO w FROM m END";
        let expected = query.replace("INTO w FROM m", "INTO db.autogen.w FROM db.autogen.m");
        assert_eq!(completed(query, "", ""), expected);
    }
}
