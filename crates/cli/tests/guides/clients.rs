//! Runs the commands of the guides to Telegraf, to Grafana and to moving from InfluxDB, next to a server.
//!
//! What needs those programs is run by `testing/clients/run` and `testing/influxdb/migration`; here stand rows
//! and files in the form in which they come from them.

use super::pages::{FencedBlock, GuideServer, assert_holds, guide_folder, page};

/// A directory and a server.
fn place() -> (tempfile::TempDir, GuideServer) {
    let dir = guide_folder();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    (dir, server)
}

#[test]
fn the_commands_of_the_guide_to_telegraf_run() {
    let (dir, server) = place();
    let rows = "curl -sS 'http://127.0.0.1:8086/write?db=telegraf' --data-binary '
cpu,host=a,cpu=cpu-total usage_idle=97.5
mem,host=a used_percent=40.5,used=7i'";
    server.answer_to(dir.path(), rows);
    let (count, all) = server.answers_of(dir.path(), &["docs/guides/telegraf.md"]);
    assert_eq!(count, 2);
    assert_holds(
        &all,
        &[r#""a",2.5]"#, r#""columns":["time","mean"]"#, "40.5"],
    );
}

#[test]
fn the_commands_of_the_guide_to_grafana_run() {
    let (dir, server) = place();
    let (count, all) = server.answers_of(dir.path(), &["docs/guides/grafana.md"]);
    assert_eq!(count, 1);
    assert_holds(
        &all,
        &[
            r#""tags":{"host":"alpha"},"columns":["time","mean"]"#,
            ",mean,0,",
            "| alpha  |   90",
        ],
    );
}

/// Exports of InfluxDB 1 and 2: a line for each field, packed. And a table of InfluxDB 3.
const EXPORTS: &str = r#"
printf 'weather,station=so\\ uth temperature=20.5 1767225600000000000
weather,station=so\\ uth gust=3i 1767225600000000000
weather,station=north note="two
lines" 1767225600000000000
' | gzip > plant.autogen.lp.gz
now="$(date +%s)"
printf 'door,id=d1 open=true %s000000000\n' "$now" | gzip > plant.week.lp.gz
printf 'weather_hour,station=north temperature=19.5 1767225600000000000\n' | gzip > plant.years.lp.gz
printf 'rain,station=north mm=1.5 1767225600000000000
rain,station=north wet=true 1767225600000000000
' | gzip > weather.lp.gz
curl -sS 'http://127.0.0.1:8086/write?db=other' --data-binary '
home,room=a temp=1.5 1767225600000000000
home,room=b temp=2.5 1767225600000000000'
curl -sS -G 'http://127.0.0.1:8086/api/v3/query_sql' --data-urlencode 'db=other' \
  --data-urlencode 'format=parquet' --data-urlencode 'q=SELECT * FROM home' > home.parquet
"#;

#[test]
fn the_commands_of_the_guide_to_moving_from_influxdb_run() {
    let (dir, server) = place();
    server.answer_to(dir.path(), EXPORTS);
    let mut count = 0;
    // The first administrator closes the server, so the users come last.
    let (users, others): (Vec<_>, Vec<_>) = page("docs/guides/influxdb-migration.md")
        .into_iter()
        .filter(FencedBlock::is_run)
        .partition(|block| block.text.contains("marigram user add"));
    for block in others.iter().chain(&users) {
        count += 1;
        server.answer_to(dir.path(), &block.text);
    }
    assert_eq!(count, 8);
    let answers = server.answer_to(
        dir.path(),
        "ask() { curl -sS -G -u 'root:correct horse' 'http://127.0.0.1:8086/query' --data-urlencode \"$1\"; }
         ask 'q=SELECT temperature, gust FROM plant..weather'
         ask 'q=SELECT open FROM plant.week.door'
         ask 'q=SELECT temperature FROM plant.years.weather_hour'
         ask 'q=SELECT mm, wet FROM weather..rain'
         ask 'q=SELECT temp FROM sensors..home GROUP BY room'
         ask 'q=SHOW RETENTION POLICIES ON plant'
         ask 'q=SHOW GRANTS FOR ann'",
    );
    assert_holds(
        &answers,
        &[
            r#"["2026-01-01T00:00:00Z",20.5,3]"#,
            r#"Z",true]]"#,
            r#"["2026-01-01T00:00:00Z",19.5]"#,
            r#"["2026-01-01T00:00:00Z",1.5,true]"#,
            r#""tags":{"room":"b"},"columns":["time","temp"],"values":[["2026-01-01T00:00:00Z",2.5]]"#,
            r#"["week","168h0m0s","24h0m0s",1,false]"#,
            r#"["plant","READ"]"#,
        ],
    );
}
