//! InfluxDB's HTTP APIs 2 and 3: writes, buckets, deletes and queries.

use crate::server::ServeProcess;
use serde_json::{Value, json};

fn ask(server: &ServeProcess, method: &str, target: &str, body: &str) -> (u16, String) {
    let answer = server.request(method, target, &[], body.as_bytes());
    (answer.status, answer.body)
}

fn json_of(answer: (u16, String)) -> Value {
    serde_json::from_str(&answer.1).unwrap_or_else(|_| panic!("{answer:?} is not JSON"))
}

#[test]
fn version_3_writes_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let lines =
        "home,room=Sun temp=21.5,hum=35i 1641024000\nhome,room=Moon temp=20.5 1641024000000\n";
    let write = "/api/v3/write_lp?db=sensors&precision=auto&no_sync=true";
    assert_eq!(ask(&server, "POST", write, lines).0, 204);
    let partial = json_of(ask(&server, "POST", write, "home temp=1 1\nhome temp= 2\n"));
    assert_eq!(partial["error"], "partial write of line protocol occurred");
    assert_eq!(partial["data"][0]["line_number"], 2);
    assert_eq!(partial["data"][0]["original_line"], "home temp= 2");
    let none = format!("{write}&accept_partial=false");
    let none = json_of(ask(&server, "POST", &none, "late v=1 1\nlate v= 2\n"));
    assert_eq!(none["error"], "parsing failed for write_lp endpoint");
    let unknown = ask(
        &server,
        "POST",
        "/api/v3/write_lp?db=d&precision=days",
        "m v=1",
    );
    assert_eq!(unknown.0, 400, "{unknown:?}");
    assert_eq!(ask(&server, "POST", "/api/v3/write_lp", "m v=1").0, 400);

    let rows = |format: &str| {
        let body = json!({
            "db": "sensors", "format": format, "params": {"room": "Sun"},
            "q": "SELECT time, room, temp, hum FROM home WHERE room = $room",
        });
        ask(&server, "POST", "/api/v3/query_sql", &body.to_string())
    };
    let row = r#"{"time":"2022-01-01T08:00:00","room":"Sun","temp":21.5,"hum":35}"#;
    assert_eq!(rows("json"), (200, format!("[{row}]")));
    assert_eq!(rows("jsonl"), (200, format!("{row}\n")));
    assert!(
        rows("csv")
            .1
            .starts_with("time,room,temp,hum\n2022-01-01T08:00:00")
    );
    assert!(
        rows("pretty")
            .1
            .contains("| 2022-01-01T08:00:00 | Sun  | 21.5 | 35")
    );
    assert!(rows("parquet").1.starts_with("PAR1"));
    assert_eq!(rows("xml").0, 400);
    let get = |target: &str| ask(&server, "GET", target, "");
    let by_get = "/api/v3/query_sql?db=sensors&q=SELECT%20count(*)%20AS%20n%20FROM%20home";
    assert_eq!(get(by_get), (200, r#"[{"n":3}]"#.to_owned()));
    assert_eq!(get("/api/v3/query_sql?db=nowhere&q=SELECT%201").0, 404);
    assert_eq!(
        get("/api/v3/query_sql?db=sensors&q=SELECT%201;SELECT%202").0,
        400
    );
    assert_eq!(
        get("/api/v3/query_sql?db=sensors&q=DROP%20TABLE%20home").0,
        405
    );

    let influxql = "/api/v3/query_influxql?db=sensors&format=jsonl&\
                    params=%7B%22r%22:%22Sun%22%7D&q=SELECT%20temp%20FROM%20home%20WHERE%20room=$r";
    let line = r#"{"iox::measurement":"home","time":"2022-01-01T08:00:00","temp":21.5}"#;
    assert_eq!(get(influxql), (200, format!("{line}\n")));
}

#[test]
fn version_2_has_buckets_and_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let post = |target: &str, body: &Value| ask(&server, "POST", target, &body.to_string());
    let rule = json!([{"type": "expire", "everySeconds": 7200}]);
    let plant = json!({"orgID": "0000000000000001", "name": "plant", "retentionRules": rule});
    let (status, made) = post("/api/v2/buckets", &plant);
    let made = json_of((status, made));
    assert_eq!(
        (status, &made["retentionRules"][0]["everySeconds"]),
        (201, &json!(7200))
    );
    let (status, again) = post("/api/v2/buckets", &plant);
    assert_eq!(status, 422);
    assert!(
        again.contains(r#""message":"bucket with name plant already exists""#),
        "{again}"
    );
    let long = json!({"name": "plant/long", "retentionRules": []});
    assert_eq!(post("/api/v2/buckets", &long).0, 201);

    let names = |target: &str| -> Vec<String> {
        let listed = json_of(ask(&server, "GET", target, ""));
        let buckets = listed["buckets"].as_array().cloned().unwrap_or_default();
        buckets
            .iter()
            .map(|bucket| bucket["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("/api/v2/buckets"), ["plant", "plant/long"]);
    assert_eq!(names("/api/v2/buckets?limit=1&offset=1"), ["plant/long"]);
    assert_eq!(names("/api/v2/buckets?name=plant/long"), ["plant/long"]);
    assert!(names("/api/v2/buckets?name=nothing").is_empty());
    let id = made["id"].as_str().unwrap();
    assert_eq!(
        names(&format!("/api/v2/buckets?after={id}")),
        ["plant/long"]
    );
    let one = format!("/api/v2/buckets/{id}");
    let longer = json!({"retentionRules": [{"everySeconds": 0}]});
    let changed = json_of(ask(&server, "PATCH", &one, &longer.to_string()));
    assert_eq!(changed["retentionRules"][0]["everySeconds"], 0, "{changed}");

    let lines = "pump,site=a v=1 1\npump,site=b v=2 2\nfan,site=a v=3 3\n";
    for bucket in ["plant", id, "plant/long"] {
        let write = format!("/api/v2/write?org=o&bucket={bucket}&precision=s");
        assert_eq!(ask(&server, "POST", &write, lines).0, 204);
    }
    let count = |table: &str| {
        let query = format!("SELECT count(*) FROM \"{table}\"");
        let target = "/api/v1/sql?db=plant";
        json_of(ask(&server, "POST", target, &query))["rows"][0][0].clone()
    };
    assert_eq!([count("pump"), count("long.pump")], [json!(2), json!(2)]);
    let delete = |bucket: &str, predicate: &str| {
        let body = json!({
            "start": "1970-01-01T00:00:00Z", "stop": "2100-01-01T00:00:00Z",
            "predicate": predicate,
        });
        post(&format!("/api/v2/delete?org=o&bucket={bucket}"), &body)
    };
    // A delete of InfluxQL would reach the other bucket, too.
    assert_eq!(delete("plant", "").0, 400);
    assert_eq!([count("pump"), count("long.pump")], [json!(2), json!(2)]);
    assert_eq!(delete("nothing", "").0, 404);
    assert_eq!(ask(&server, "DELETE", &one, "").0, 400);
    let long = json_of(ask(&server, "GET", "/api/v2/buckets?name=plant/long", ""));
    let long = format!(
        "/api/v2/buckets/{}",
        long["buckets"][0]["id"].as_str().unwrap()
    );
    assert_eq!(ask(&server, "DELETE", &long, "").0, 204);
    let gone = delete("plant", r#"_measurement="pump" AND site="a""#);
    assert_eq!(gone.0, 204, "{gone:?}");
    assert_eq!([count("pump"), count("fan")], [json!(1), json!(1)]);
    assert_eq!(delete("plant", "site!=\"a\"").0, 400);
    assert_eq!(delete("plant", "").0, 204);
    assert_eq!([count("pump"), count("fan")], [json!(0), json!(0)]);
    assert_eq!(ask(&server, "DELETE", &one, "").0, 204);
    assert_eq!(ask(&server, "GET", &one, "").0, 404);
    assert!(names("/api/v2/buckets").is_empty());
    assert_eq!(names("/api/v2/buckets?name=main"), ["main"]);
}

#[test]
fn version_2_has_one_organisation_and_takes_every_token() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let get = |target: &str| json_of(ask(&server, "GET", target, ""));
    assert_eq!(get("/api/v2/orgs?org=mine")["orgs"][0]["name"], "mine");
    assert_eq!(
        get("/api/v2/me")["name"],
        "http",
        "it did not say who it is"
    );
    assert_eq!(get("/api/v2/users")["users"][0]["status"], "active");
    assert_eq!(get("/api/v2/setup")["allowed"], false);
    assert_eq!(get("/ready")["status"], "ready");
    assert_eq!(
        get("/api/v2/authorizations")["authorizations"][0]["token"],
        "any"
    );
    assert_eq!(ask(&server, "POST", "/api/v2/setup", "{}").0, 422);
    assert_eq!(ask(&server, "POST", "/api/v2/signin", "").0, 204);
    assert_eq!(ask(&server, "POST", "/api/v2/authorizations", "{}").0, 501);
    let missing = ask(&server, "GET", "/api/v2/orgs?orgID=00", "");
    assert_eq!(
        missing,
        (
            404,
            r#"{"code":"not found","message":"organization not found"}"#.to_owned()
        )
    );
}

/// InfluxQL and Flux read materialized views as measurements, exactly: newest rows, too, which no
/// refresh has seen.
#[test]
fn every_language_reads_materialized_views() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let rows = "m,host=a n=1i,v=1 0\nm,host=a n=2i,v=2 1000000000\nm,host=b n=5i,v=5 61000000000";
    assert_eq!(server.write(rows).status, 204);
    let view = "CREATE MATERIALIZED VIEW db.minutes WITH (continuous, refresh = '1d') AS \
        SELECT time_bucket('1 minute', time) AS minute, host AS machine, avg(n) AS mean, sum(n) AS total, \
        count(v) AS rows, max(v) AS high FROM db.m GROUP BY 1, 2";
    let made = ask(&server, "POST", "/api/v1/sql?db=db", view);
    assert_eq!(made.0, 200, "{made:?}");
    assert_eq!(server.write("m,host=a n=4i,v=9 2000000000").status, 204);
    let influxql = |text: &str| {
        let text = crate::access::encoded(text);
        let answer = ask(
            &server,
            "POST",
            &format!("/query?db=db&epoch=s&q={text}"),
            "",
        );
        json_of(answer)["results"][0]["series"].clone()
    };
    let all = influxql("SELECT * FROM minutes");
    let columns = json!(["time", "high", "machine", "mean", "rows", "total"]);
    assert_eq!(all[0]["columns"], columns, "{all}");
    let values = json!([[0, 9, "a", 7.0 / 3.0, 3, 7], [60, 5, "b", 5, 1, 5]]);
    assert_eq!(all[0]["values"], values, "{all}");
    let grouped = influxql("SELECT max(high) FROM minutes WHERE time < 60s GROUP BY machine");
    assert_eq!(grouped[0]["tags"], json!({"machine": "a"}));
    assert_eq!(grouped[0]["values"], json!([[0, 9]]));
    let named = influxql("SHOW MEASUREMENTS");
    assert_eq!(named[0]["values"], json!([["m"], ["minutes"]]));
    let keys = influxql("SHOW SERIES FROM minutes");
    assert_eq!(
        keys[0]["values"],
        json!([["minutes,machine=a"], ["minutes,machine=b"]])
    );
    // A read of the whole bucket reads the view, too.
    let flux = |script: &str| {
        let script = json!({"query": format!("from(bucket: \"db\") |> range(start: 0) {script}")});
        ask(&server, "POST", "/api/v2/query?org=o", &script.to_string())
    };
    let (status, body) = flux("|> filter(fn: (r) => r._field == \"high\") |> max()");
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(",9,high,minutes,a"), "{body}");
    let (status, body) = flux("|> last()");
    assert!(
        status == 200 && body.contains(",total,minutes,b"),
        "{status} {body}"
    );
}

/// A continuous query is there after a restart, and follows rows that come late.
#[test]
fn continuous_queries_outlast_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(
        server
            .write("m,host=a v=1 0\nm,host=a v=3 1000000000")
            .status,
        204
    );
    let query = |server: &ServeProcess, text: &str| {
        let text = crate::access::encoded(text);
        ask(
            server,
            "POST",
            &format!("/query?db=db&epoch=s&q={text}"),
            "",
        )
        .1
    };
    let made = query(
        &server,
        "CREATE RETENTION POLICY years ON db DURATION INF REPLICATION 1; \
         CREATE CONTINUOUS QUERY \"a \\\\ b\" ON db BEGIN SELECT mean(v) INTO years.hourly FROM m \
         WHERE host != 'x\\\\y' GROUP BY time(1h), host END",
    );
    assert!(!made.contains("error"), "{made}");
    let shown = query(&server, "SHOW CONTINUOUS QUERIES");
    assert!(server.terminate().success());
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(query(&server, "SHOW CONTINUOUS QUERIES"), shown);
    assert!(
        shown.contains("INTO db.years.hourly FROM db.autogen.m"),
        "{shown}"
    );
    assert_eq!(server.write("m,host=a v=8 2000000000").status, 204);
    let rows = query(&server, "SELECT * FROM years.hourly");
    assert!(rows.contains("[0,\"a\",4]"), "{rows}");
}
