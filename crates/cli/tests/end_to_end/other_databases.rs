//! What a user with rights on one database learns of another one: nothing, in every language and on
//! every path. The answer for a database that is there is that for one that is not.

use crate::access::{ask, basic, connect, encoded, password_of, sql_as, start};
use crate::server::ServerResponse;

/// Forms of InfluxQL that name a database in place of `DB`, and which only who may see that database may run.
const INFLUXQL_ELSEWHERE: [&str; 38] = [
    "SELECT * FROM DB..secrets",
    "SELECT * FROM DB.autogen.secrets",
    "SELECT * FROM DB../.*/",
    "SELECT * FROM m, DB../.*/",
    "SELECT max(v) FROM (SELECT v FROM (SELECT v FROM DB..secrets))",
    "SELECT * INTO stolen FROM DB..secrets",
    "SELECT * INTO DB..stolen FROM m",
    "SELECT * INTO DB.autogen.:MEASUREMENT FROM m",
    "EXPLAIN SELECT * FROM DB..secrets",
    "EXPLAIN ANALYZE SELECT * FROM DB..secrets",
    "SHOW MEASUREMENTS ON DB",
    "SHOW MEASUREMENTS WITH MEASUREMENT = DB..secrets",
    "SHOW MEASUREMENTS WITH MEASUREMENT =~ DB../.*/",
    "SHOW MEASUREMENTS ON plant WITH MEASUREMENT =~ DB../.*/",
    "SHOW MEASUREMENTS WITH MEASUREMENT =~ DB../.*/ WHERE hidden =~ /^4/",
    "SHOW MEASUREMENTS WITH MEASUREMENT = DB.week.secrets",
    "SHOW SERIES ON DB",
    "SHOW SERIES FROM DB..secrets",
    "SHOW SERIES FROM DB../.*/ WHERE hidden =~ /^4/",
    "SHOW SERIES CARDINALITY ON DB",
    "SHOW SERIES CARDINALITY FROM DB../.*/",
    "SHOW SERIES CARDINALITY FROM DB..secrets WHERE hidden =~ /^4/",
    "SHOW SERIES EXACT CARDINALITY FROM DB../.*/",
    "SHOW MEASUREMENT CARDINALITY ON DB",
    "SHOW MEASUREMENT CARDINALITY FROM DB../.*/",
    "SHOW MEASUREMENT EXACT CARDINALITY FROM DB../.*/",
    "SHOW TAG KEYS FROM DB../.*/",
    "SHOW TAG KEY CARDINALITY FROM DB../.*/",
    "SHOW TAG VALUES FROM DB../.*/ WITH KEY =~ /.*/",
    "SHOW TAG VALUES CARDINALITY FROM DB../.*/ WITH KEY = hidden",
    "SHOW FIELD KEYS FROM DB..secrets",
    "SHOW FIELD KEY CARDINALITY FROM DB../.*/",
    "SHOW RETENTION POLICIES ON DB",
    "DROP RETENTION POLICY autogen ON DB",
    "CREATE CONTINUOUS QUERY q ON DB BEGIN SELECT max(v) INTO w FROM m GROUP BY time(1h) END",
    "CREATE CONTINUOUS QUERY q ON plant BEGIN SELECT max(v) INTO w FROM DB..secrets GROUP BY time(1h) END",
    "CREATE CONTINUOUS QUERY q ON plant BEGIN SELECT max(v) INTO DB..w FROM m GROUP BY time(1h) END",
    "DROP CONTINUOUS QUERY q ON DB",
];

/// Flux that names a bucket in place of `DB`.
const FLUX_ELSEWHERE: [&str; 6] = [
    "from(bucket: \"DB\") |> range(start: 0)",
    "from(bucket: \"DB/autogen\") |> range(start: 0)",
    "import \"influxdata/influxdb/schema\" schema.measurements(bucket: \"DB\")",
    "import \"influxdata/influxdb/schema\" schema.tagKeys(bucket: \"DB\")",
    "import \"influxdata/influxdb/schema\" schema.tagValues(bucket: \"DB\", tag: \"hidden\")",
    "a = from(bucket: \"plant\") |> range(start: 0) b = from(bucket: \"DB\") |> range(start: 0) \
     join(tables: {a: a, b: b}, on: [\"_time\"])",
];

/// Requests that name a database in place of `DB` by their paths: method, path and body.
const PATHS_ELSEWHERE: [(&str, &str, &str); 14] = [
    ("POST", "/write?db=DB", "secrets v=1 1"),
    ("POST", "/write?db=DB&rp=week", "secrets v=1 1"),
    ("POST", "/api/v2/write?bucket=DB&org=o", "secrets v=1 1"),
    ("POST", "/api/v3/write_lp?db=DB", "secrets v=1 1"),
    ("POST", "/query?db=DB&q=SHOW%20MEASUREMENTS", ""),
    (
        "GET",
        "/query?db=DB&rp=week&q=SELECT%20*%20FROM%20secrets",
        "",
    ),
    ("GET", "/api/v2/buckets?name=DB", ""),
    ("POST", "/api/v2/delete?bucket=DB&org=o", DELETE_ALL),
    ("GET", "/api/v3/query_sql?db=DB&q=SELECT%201", ""),
    (
        "GET",
        "/api/v3/query_influxql?db=DB&q=SHOW%20MEASUREMENTS",
        "",
    ),
    ("POST", "/api/v1/sql?db=DB", "SELECT * FROM secrets"),
    ("POST", "/api/v1/sql?db=DB", "SELECT 1"),
    (
        "POST",
        "/api/v2/buckets",
        "{\"name\": \"DB\", \"orgID\": \"o\"}",
    ),
    ("POST", "/api/v1/backup", "{\"database\": \"DB\"}"),
];
const DELETE_ALL: &str = r#"{"start": "1970-01-01T00:00:00Z", "stop": "2100-01-01T00:00:00Z"}"#;

/// A user of one database learns of no other one by InfluxQL, Flux or InfluxDB's API: the answer for
/// a database that is there is that for one that is not.
#[test]
fn influxdbs_languages_tell_nothing_of_other_databases() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let root = basic("root", &password_of("root"));
    let line = ("POST", "/write?db=vault");
    let written = ask(&server, line, &root, "secrets,hidden=4711 v=42 1");
    assert_eq!(written.status, 204, "{}", written.body);
    let as_told = |user: &str, way: &str, of: &dyn Fn(&str) -> ServerResponse| {
        let (told, of_ghost) = (of("vault"), of("ghost"));
        let (status, body) = (told.status, &told.body);
        assert!(
            [401, 403, 404].contains(&status),
            "{user}, {way}: {status} {body}"
        );
        let ghost = of_ghost.body.replace("ghost", "vault");
        assert_eq!((status, body), (of_ghost.status, &ghost), "{user}, {way}");
        assert!(!body.contains("4711"), "{user}, {way}: {body}");
    };
    for user in ["reader", "writer", "definer", "nobody"] {
        let client = basic(user, &password_of(user));
        for form in INFLUXQL_ELSEWHERE {
            as_told(user, form, &|database| {
                let statement = form.replace("DB", database);
                let target = format!("/query?db=plant&q={}", encoded(&statement));
                ask(&server, ("POST", &target), &client, "")
            });
            // Without a database of the request, and by the other path.
            as_told(user, form, &|database| {
                let target = format!("/query?q={}", encoded(&form.replace("DB", database)));
                ask(&server, ("POST", &target), &client, "")
            });
            as_told(user, form, &|database| {
                let statement = form.replace("DB", database);
                let body = serde_json::json!({"db": "plant", "q": statement}).to_string();
                let line = ("POST", "/api/v3/query_influxql");
                ask(&server, line, &client, &body)
            });
        }
        for (method, path, body) in PATHS_ELSEWHERE {
            as_told(user, path, &|database| {
                let (path, body) = (path.replace("DB", database), body.replace("DB", database));
                ask(&server, (method, &path), &client, &body)
            });
        }
        for form in FLUX_ELSEWHERE {
            as_told(user, form, &|database| {
                let body = serde_json::json!({"query": form.replace("DB", database)});
                ask(
                    &server,
                    ("POST", "/api/v2/query"),
                    &client,
                    &body.to_string(),
                )
            });
        }
    }
}

/// What lists databases lists those that the user may see, on every path.
#[test]
fn lists_hold_only_what_one_may_see() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    for user in ["reader", "writer", "definer", "nobody"] {
        let client = basic(user, &password_of(user));
        let query = |text: &str| format!("/query?db=plant&q={}", encoded(text));
        let influxql = [
            "SHOW DATABASES",
            "SHOW CONTINUOUS QUERIES",
            "SHOW QUERIES",
            "SHOW SUBSCRIPTIONS",
            "SHOW SHARDS",
            "SHOW SHARD GROUPS",
            "SHOW STATS",
            "SHOW DIAGNOSTICS",
            "SHOW USERS",
        ];
        let mut lines: Vec<(&str, String, String)> = Vec::new();
        for text in influxql {
            lines.push(("POST", query(text), String::new()));
        }
        for path in [
            "/metrics",
            "/health",
            "/ready",
            "/ping?verbose=true",
            "/debug/vars",
            "/debug/requests",
            "/debug/pprof",
            "/api/v2/buckets",
            "/api/v2/orgs",
            "/api/v2/users",
            "/api/v2/me",
            "/api/v2/authorizations",
            "/api/v2/setup",
        ] {
            lines.push(("GET", path.to_owned(), String::new()));
        }
        let buckets = serde_json::json!({"query": "buckets()"}).to_string();
        lines.push(("POST", "/api/v2/query".to_owned(), buckets));
        for (method, target, body) in lines {
            let told = ask(&server, (method, &target), &client, &body);
            let (status, body) = (told.status, &told.body);
            let is_told = body.contains("vault") || body.contains("secrets");
            assert!(
                !is_told && status < 500,
                "{user}, {target}: {status} {body}"
            );
        }
    }
}

/// SQL that names a database in place of `DB`.
const SQL_ELSEWHERE: [&str; 47] = [
    "EXPLAIN ANALYZE SELECT * FROM DB.secrets",
    "EXPLAIN VERBOSE SELECT * FROM DB.secrets",
    "SUMMARIZE DB.secrets",
    "DESCRIBE DB.secrets",
    "SHOW COLUMNS FROM DB.secrets",
    "SHOW CREATE TABLE DB.secrets",
    "SHOW SERIES FROM DB.secrets",
    "SHOW SEGMENTS FROM DB.secrets",
    "SHOW MATERIALIZED VIEWS FROM DB",
    "SHOW TABLES FROM DB",
    "COPY DB.secrets TO STDOUT",
    "COPY (SELECT * FROM DB.secrets) TO STDOUT",
    "COPY DB.secrets FROM STDIN",
    "INSERT INTO DB.secrets VALUES ('2024-01-01', 1)",
    "DELETE FROM DB.secrets",
    "TRUNCATE DB.secrets",
    "DROP TABLE DB.secrets",
    "DROP TABLE IF EXISTS DB.secrets",
    "DROP VIEW IF EXISTS DB.secrets",
    "DROP MATERIALIZED VIEW IF EXISTS DB.secrets",
    "REFRESH MATERIALIZED VIEW DB.secrets",
    "ALTER TABLE DB.secrets SET (ttl = '1d')",
    "ALTER TABLE DB.secrets RENAME TO told",
    "CREATE TABLE IF NOT EXISTS DB.secrets (time TIMESTAMP, v DOUBLE FIELD)",
    "CREATE VIEW DB.stolen AS SELECT 1",
    "WITH s AS (SELECT * FROM DB.secrets) SELECT count(*) FROM s",
    "SELECT (SELECT max(v) FROM DB.secrets)",
    "SELECT * FROM m WHERE v IN (SELECT v FROM DB.secrets)",
    "SELECT * FROM m UNION ALL SELECT time, 'x', v FROM DB.secrets",
    "SELECT * FROM DB.information_schema.columns",
    "SELECT * FROM DB.information_schema.table_constraints",
    "SELECT * FROM DB.information_schema.key_column_usage",
    "SELECT * FROM DB.pg_catalog.pg_class",
    "SELECT * FROM DB.timescaledb_information.chunks",
    "SELECT show_chunks('DB.secrets')",
    "SELECT hypertable_size('DB.secrets')",
    "SELECT create_hypertable('DB.secrets', 'time')",
    "SELECT drop_chunks('DB.secrets', now())",
    "PREPARE p AS SELECT * FROM DB.secrets",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM DB.secrets",
    "GRANT READ ON DB TO reader",
    "SELECT 'DB.secrets'::regclass",
    "SELECT to_regclass('DB.secrets')",
    "SELECT has_database_privilege('DB', 'CONNECT')",
    "SELECT pg_database_size('DB')",
    "SELECT count(*) FROM pg_database WHERE datname = 'DB'",
    "SELECT count(*) FROM information_schema.tables WHERE table_catalog = 'DB'",
];

/// SQL answers for a database that is there as for one that is not, by HTTP and by PostgreSQL's wire.
#[tokio::test(flavor = "multi_thread")]
async fn sql_tells_nothing_of_other_databases() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    for user in ["reader", "writer", "definer"] {
        let client = basic(user, &password_of(user));
        let wire = connect(&server, user, &password_of(user), "plant").await;
        let wire = wire.expect("the user comes in");
        for form in SQL_ELSEWHERE {
            let as_vault = |text: String| text.replace("ghost", "vault");
            let [told, of_ghost] = ["vault", "ghost"].map(|database| {
                let reply = sql_as(&server, &client, &form.replace("DB", database));
                let body = as_vault(reply.body);
                let body = body.split(",\"elapsed_ms\"").next().map(str::to_owned);
                (reply.status, body.unwrap_or_default())
            });
            assert_eq!(told, of_ghost, "{user}: {form}");
            assert!(!told.1.contains("42.0"), "{user}: {form}: {}", told.1);
            let mut answers = Vec::new();
            for database in ["vault", "ghost"] {
                let answer = wire.simple_query(&form.replace("DB", database)).await;
                answers.push(as_vault(match answer {
                    Ok(messages) => format!("{messages:?}"),
                    Err(error) => format!("{:?}", error.as_db_error()),
                }));
                let _ = wire.simple_query("DEALLOCATE ALL; CLOSE ALL").await;
            }
            assert_eq!(answers[0], answers[1], "{user}, by PostgreSQL: {form}");
        }
    }
}
