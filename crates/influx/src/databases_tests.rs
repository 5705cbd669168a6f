//! Tests statements about databases and retention policies on an engine in memory, in InfluxDB's
//! words.

use super::*;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use marigram_engine::{EngineOptions, WriteOptions};
use marigram_env::{Env, SimClock, SimFs};
use marigram_influxql::parse_query;
use marigram_model::{BatchBuilder, FieldValueRef, Limits};
use std::path::Path;

struct PolicyServer {
    engine: Engine,
}

impl PolicyServer {
    fn new() -> Self {
        let (disk, clock) = (SimFs::new(1), SimClock::new(1_000_000));
        let env = Env::simulated(&disk, &clock);
        let options = EngineOptions {
            shards: 1,
            background_threads: 0,
            ..EngineOptions::default()
        };
        let engine = Engine::open(env, Path::new("/data"), options).unwrap();
        Self { engine }
    }

    /// The rows of an answer, one text each; or the error.
    fn run(&self, text: &str) -> Result<Vec<String>, String> {
        let query = parse_query(text).unwrap();
        let answer = execute(
            &self.engine,
            &AccessRights::of_administrator(),
            &query.statements[0],
        );
        let rows = match answer.map_err(|error| error.into_service("").to_string())? {
            Some(StatementRows::Rows { batches, .. }) => batches,
            Some(StatementRows::Done { .. }) => return Ok(Vec::new()),
            None => return Err("not of databases".to_owned()),
        };
        let batches: Vec<_> = futures::executor::block_on(rows.collect());
        let mut shown = Vec::new();
        for batch in batches {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter().map(|column| {
                    if column.is_null(row) {
                        return "-".to_owned();
                    }
                    if let Some(texts) = column.as_string_opt::<i32>() {
                        return texts.value(row).to_owned();
                    }
                    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
                        return numbers.value(row).to_string();
                    }
                    column.as_boolean().value(row).to_string()
                });
                shown.push(cells.collect::<Vec<_>>().join(" "));
            }
        }
        Ok(shown)
    }

    fn policies(&self, database: &str) -> Vec<String> {
        self.run(&format!("SHOW RETENTION POLICIES ON {database}"))
            .unwrap()
    }

    fn write(&self, table: &str) {
        let mut builder = BatchBuilder::new(table);
        let slot = builder.slot([]);
        builder.row(slot, 4_000_000_000_000_000_000);
        builder.field("v", FieldValueRef::F64(1.0));
        let batch = builder.finish();
        let report = self.engine.write("d", &batch, WriteOptions { grow: true });
        assert_eq!(report.unwrap().stored, 1);
    }

    fn ttl_h(&self, table: &str) -> Option<i64> {
        let table = self.engine.table("d", table).unwrap();
        table.options.ttl_ns.map(|ns| ns / 3_600_000_000_000)
    }
}

/// Statements in order, with the answers of InfluxDB 1.6.7.
#[test]
fn statements_are_refused_in_influxdbs_words() {
    let server = PolicyServer::new();
    for (text, error) in [
        ("CREATE DATABASE d", ""),
        ("CREATE DATABASE d", ""),
        ("CREATE DATABASE \"a/b\"", "invalid name"),
        (
            "CREATE DATABASE e WITH DURATION 3d REPLICATION 1 SHARD DURATION 2h NAME three",
            "",
        ),
        (
            "CREATE DATABASE e WITH DURATION 3d REPLICATION 1 SHARD DURATION 2h NAME three",
            "",
        ),
        (
            "CREATE DATABASE e WITH DURATION 4d",
            "retention policy conflicts with an existing policy",
        ),
        (
            "CREATE DATABASE f WITH DURATION 1s",
            "retention policy duration must be at least 1h0m0s",
        ),
        (
            "CREATE DATABASE f WITH DURATION 2h SHARD DURATION 3h",
            "retention policy duration must be greater than the shard duration",
        ),
        ("DROP DATABASE nowhere", ""),
        (
            "CREATE RETENTION POLICY week ON d DURATION 1w REPLICATION 1",
            "",
        ),
        (
            "CREATE RETENTION POLICY week ON d DURATION 1w REPLICATION 1",
            "",
        ),
        (
            "CREATE RETENTION POLICY week ON d DURATION 2w REPLICATION 1",
            "retention policy already exists",
        ),
        (
            "CREATE RETENTION POLICY p ON nowhere DURATION 1w REPLICATION 1",
            "database not found: nowhere",
        ),
        (
            "CREATE RETENTION POLICY p ON d DURATION 1m REPLICATION 1",
            "retention policy duration must be at least 1h0m0s",
        ),
        (
            "CREATE RETENTION POLICY year ON d DURATION 52w REPLICATION 2 SHARD DURATION 30m DEFAULT",
            "",
        ),
        (
            "ALTER RETENTION POLICY year ON d DURATION 2h SHARD DURATION 1h",
            "",
        ),
        (
            "ALTER RETENTION POLICY year ON d SHARD DURATION 3h",
            "retention policy duration must be greater than the shard duration",
        ),
        (
            "ALTER RETENTION POLICY nothing ON d DURATION 2h",
            "retention policy not found: nothing",
        ),
        (
            "ALTER RETENTION POLICY year ON nowhere DURATION 2h",
            "database not found: nowhere",
        ),
        (
            "ALTER RETENTION POLICY year ON d DURATION 1s",
            "retention policy duration must be at least 1h0m0s",
        ),
        ("DROP RETENTION POLICY nothing ON d", ""),
        ("DROP RETENTION POLICY year ON nowhere", ""),
        (
            "SHOW RETENTION POLICIES ON nowhere",
            "database not found: nowhere",
        ),
    ] {
        let told = server.run(text).err().unwrap_or_default();
        assert_eq!(told, error, "{text}");
    }
    assert_eq!(
        server.run("SHOW DATABASES").unwrap(),
        ["databases d", "databases e"]
    );
    assert_eq!(server.policies("e"), ["- three 72h0m0s 2h0m0s 1 true"]);
    assert_eq!(
        server.policies("d"),
        [
            "- autogen 0s 168h0m0s 1 false",
            "- week 168h0m0s 24h0m0s 1 false",
            "- year 2h0m0s 1h0m0s 2 true",
        ]
    );
    server
        .run("ALTER RETENTION POLICY autogen ON d DEFAULT")
        .unwrap();
    server.run("DROP RETENTION POLICY year ON d").unwrap();
    assert_eq!(server.policies("d").len(), 2);
    assert!(server.policies("d")[0].ends_with("true"));
}

#[test]
fn tables_follow_their_policy() {
    let server = PolicyServer::new();
    server.run("CREATE DATABASE d").unwrap();
    server
        .run("CREATE RETENTION POLICY week ON d DURATION 1w REPLICATION 1")
        .unwrap();
    server.write("m");
    server.write("week.m");
    assert_eq!(
        (server.ttl_h("m"), server.ttl_h("week.m")),
        (None, Some(168))
    );
    server
        .run("ALTER RETENTION POLICY week ON d DURATION 2w")
        .unwrap();
    assert_eq!(
        (server.ttl_h("m"), server.ttl_h("week.m")),
        (None, Some(336))
    );
    server
        .run("ALTER RETENTION POLICY autogen ON d DURATION 8d")
        .unwrap();
    assert_eq!(
        (server.ttl_h("m"), server.ttl_h("week.m")),
        (Some(192), Some(336))
    );
    server.write("m.x");
    let taken = server.run("CREATE RETENTION POLICY m ON d DURATION 1d REPLICATION 1");
    assert!(taken.unwrap_err().contains("'m.x'"));
    server.run("DROP RETENTION POLICY week ON d").unwrap();
    assert!(server.engine.table("d", "week.m").is_err());
    assert!(server.engine.table("d", "m").is_ok());
    server.run("DROP RETENTION POLICY autogen ON d").unwrap();
    assert!(server.engine.tables("d").unwrap().is_empty());
    assert_eq!(server.policies("d"), ["- - - - - -"]);
    // The next one is plain again.
    server
        .run("CREATE RETENTION POLICY new ON d DURATION INF REPLICATION 1 DEFAULT")
        .unwrap();
    server.write("m");
    assert_eq!(server.policies("d"), ["- new 0s 168h0m0s 1 true"]);
    server.run("DROP DATABASE d").unwrap();
    assert_eq!(server.run("SHOW DATABASES").unwrap(), ["databases -"]);
}

#[test]
fn the_number_of_retention_policies_is_limited() {
    let server = PolicyServer::new();
    server.run("CREATE DATABASE d").unwrap();
    let fill = |policies: &mut RetentionPolicies| {
        let known = policies.policies[0].clone();
        for number in 1..Limits::RETENTION_POLICIES_MAX {
            policies.policies.push(RetentionPolicy {
                name: format!("p{number}"),
                plain: false,
                ..known.clone()
            });
        }
        Ok::<(), EngineError>(())
    };
    server.engine.change_retention_policies("d", fill).unwrap();
    let error = server
        .run("CREATE RETENTION POLICY one_more ON d DURATION 1d REPLICATION 1")
        .unwrap_err();
    assert!(error.contains("at most 1000"), "{error}");
    server.run("DROP RETENTION POLICY p7 ON d").unwrap();
    server
        .run("CREATE RETENTION POLICY one_more ON d DURATION 1d REPLICATION 1")
        .unwrap();
}
