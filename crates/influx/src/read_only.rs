//! Decides which statements only read: a GET request may contain no others.

use marigram_influxql::ast::{Select, Statement};
use marigram_service::ServiceError;

/// Refuses a statement that changes something. Unknown kinds of statements are refused, too.
///
/// # Errors
/// `ChangesRefused`, with the statement.
pub(crate) fn check(statement: &Statement) -> Result<(), ServiceError> {
    if only_reads(statement) {
        return Ok(());
    }
    Err(ServiceError::ChangesRefused(format!(
        "'{statement}' changes something, and a GET request only reads; use POST"
    )))
}

fn only_reads(statement: &Statement) -> bool {
    let has_target = |select: &Select| select.target.is_some();
    match statement {
        Statement::Select(select) | Statement::Explain { select, .. } => !has_target(select),
        Statement::ShowSeries(_)
        | Statement::ShowMeasurements(_)
        | Statement::ShowTagKeys(_)
        | Statement::ShowTagValues(_)
        | Statement::ShowFieldKeys(_)
        | Statement::ShowCardinality(_)
        | Statement::ShowContinuousQueries
        | Statement::ShowDatabases
        | Statement::ShowDiagnostics(_)
        | Statement::ShowGrants(_)
        | Statement::ShowQueries
        | Statement::ShowRetentionPolicies(_)
        | Statement::ShowShardGroups
        | Statement::ShowShards
        | Statement::ShowStats(_)
        | Statement::ShowSubscriptions
        | Statement::ShowUsers => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use marigram_influxql::parse_query;

    #[test]
    fn what_changes_something_is_refused() {
        let is_refused = |text: &str| {
            let query = parse_query(text).expect(text);
            check(&query.statements[0]).is_err()
        };
        for text in [
            "SELECT v FROM m",
            "EXPLAIN SELECT v FROM m",
            "SHOW DATABASES",
            "SHOW TAG VALUES WITH KEY = k",
            "SHOW SERIES EXACT CARDINALITY",
            "SHOW QUERIES",
        ] {
            assert!(!is_refused(text), "{text}");
        }
        for text in [
            "SELECT v INTO w FROM m",
            "EXPLAIN ANALYZE SELECT v INTO w FROM m",
            "CREATE DATABASE d",
            "DROP DATABASE d",
            "DROP MEASUREMENT m",
            "DELETE FROM m",
            "DROP SERIES FROM m",
            "CREATE RETENTION POLICY p ON d DURATION 1d REPLICATION 1",
            "ALTER RETENTION POLICY p ON d DEFAULT",
            "CREATE USER u WITH PASSWORD 'p'",
            "GRANT ALL TO u",
            "KILL QUERY 1",
        ] {
            assert!(is_refused(text), "{text}");
        }
    }
}
