//! The embedded API from outside, on a real disk: write, query, close, reopen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Float64Array, RecordBatch, TimestampNanosecondArray,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use futures::StreamExt;
use marigram::{BatchBuilder, FieldValueRef, Ingest, Marigram, Query, Roles, TagValueRef, arrow};
use std::sync::Arc;

fn open(dir: &std::path::Path) -> Marigram {
    Marigram::options()
        .shards(2)
        .query_threads(2)
        .memory_limit(256 << 20)
        .open(dir)
        .unwrap()
}

fn weather(station: &str, times: &[i64], temp: f64) -> marigram::WriteBatch {
    let mut rows = BatchBuilder::new("weather");
    let slot = rows.slot([("station", TagValueRef::String(station))]);
    for time in times {
        rows.row(slot, *time);
        rows.field("temp", FieldValueRef::F64(temp + *time as f64));
    }
    rows.finish()
}

fn count(db: &Marigram, table: &str) -> i64 {
    let batches = db.sql(&format!("SELECT count(*) FROM {table}")).unwrap();
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn rows_are_there_after_closing_and_opening() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    assert_eq!(
        db.write("main", &weather("north", &[1, 2, 3], 0.5))
            .unwrap()
            .stored,
        3
    );
    assert_eq!(
        db.write("main", &weather("south", &[2, 1, 2], 0.5))
            .unwrap()
            .rejected
            .len(),
        0
    );
    assert_eq!(count(&db, "weather"), 5, "a repeated row is one row");
    let second = Marigram::open(dir.path()).unwrap_err().to_string();
    assert!(second.contains("open"), "{second}");
    db.close().unwrap();
    assert!(db.write("main", &weather("north", &[9], 0.0)).is_err());
    let db = open(dir.path());
    let sums = db.sql("SELECT station, sum(temp) FROM weather GROUP BY station ORDER BY station");
    let sums = sums.unwrap();
    let sums: Vec<f64> = sums
        .iter()
        .flat_map(|batch| {
            batch
                .column(1)
                .as_primitive::<Float64Type>()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(sums, [7.5, 4.0]);
    db.close().unwrap();
}

#[test]
fn arrow_rows_make_a_table_and_follow_its_types() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let rows = |values: ArrayRef| {
        let site: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        RecordBatch::try_from_iter_with_nullable([
            (
                "at",
                Arc::new(TimestampNanosecondArray::from(vec![Some(1), Some(2), None])) as ArrayRef,
                true,
            ),
            ("site", Arc::new(site) as ArrayRef, true),
            ("level", values, true),
        ])
        .unwrap()
    };
    let levels = rows(Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5])));
    let missing = db.write_arrow("main", "tank", &levels, None).unwrap_err();
    assert!(missing.to_string().contains("tank"), "{missing}");
    let roles = Roles::new("at", ["site"]);
    let report = db
        .write_arrow("main", "tank", &levels, Some(&roles))
        .unwrap();
    assert_eq!((report.stored, report.rejected[0].row), (2, 2));
    let text = rows(Arc::new(arrow::array::StringArray::from(vec![
        "7", "full", "8",
    ])));
    let report = db.write_arrow("main", "tank", &text, None).unwrap();
    assert_eq!(report.stored, 1);
    let refused: Vec<u32> = report.rejected.iter().map(|row| row.row).collect();
    assert_eq!(refused, [1, 2]);
    let batches = db.sql("SELECT level FROM tank ORDER BY at").unwrap();
    let levels: Vec<f64> = batches
        .iter()
        .flat_map(|batch| {
            batch
                .column(0)
                .as_primitive::<Float64Type>()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(levels, [7.0, 1.5]);
    db.close().unwrap();
}

#[test]
fn servers_write_and_stream_through_the_traits() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let batches = vec![weather("north", &[1, 2], 0.0), weather("south", &[1], 0.0)];
        let unknown = Ingest::write(&db, "plant", batches.clone(), false).await;
        assert!(unknown.unwrap_err().to_string().contains("plant"));
        let reports = Ingest::write(&db, "plant", batches, true).await.unwrap();
        let stored: Vec<usize> = reports.iter().map(|report| report.stored).collect();
        assert_eq!(stored, [2, 1]);
        let schema = db.table_schema("plant", "weather").await.unwrap();
        assert_eq!(
            Roles::from_metadata(&schema),
            Some(Roles::new("time", ["station"]))
        );
        let mut session = db
            .session(Some("plant"), &marigram::Identity::owner("test"))
            .await
            .unwrap();
        let prepared = db
            .prepare(&session, "SELECT time FROM weather WHERE station = $1")
            .await;
        let north: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["north"]));
        let prepared = prepared.unwrap();
        let answer = db
            .execute_prepared(&mut session, prepared.as_ref(), vec![north])
            .await;
        let marigram::Answer::Rows(mut rows) = answer.unwrap() else {
            panic!("a query has rows")
        };
        let mut seen = 0;
        while let Some(batch) = rows.batches.next().await {
            seen += batch.unwrap().num_rows();
        }
        assert_eq!(seen, 2);
        // The blocking API also works inside an async context.
        assert_eq!(db.sql_in("plant", "SELECT 1").unwrap()[0].num_rows(), 1);
    });
    db.close().unwrap();
}

#[test]
fn a_batch_that_is_wrong_as_a_whole_takes_no_other_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut nameless = weather("north", &[1, 2], 0.0);
    nameless.table = "n".repeat(300);
    let good = weather("north", &[1], 0.0);
    let reports = runtime.block_on(Ingest::write(&db, "main", vec![nameless, good], false));
    let reports = reports.unwrap();
    assert_eq!((reports[0].stored, reports[0].rejected.len()), (0, 2));
    assert_eq!(reports[1].stored, 1);
    db.close().unwrap();
}

#[test]
fn files_stand_in_place_of_tables_where_any_file_may_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pumps.csv");
    let text = "unit;rpm;label\na;900;\"x;y\"\nb;1200;z\n";
    #[expect(clippy::disallowed_methods, reason = "the user writes it")]
    std::fs::write(&file, text).unwrap();
    let path = file.display();
    let query = format!("SELECT label FROM '{path}' WHERE pumps.rpm < 1000");

    let db = open(&dir.path().join("data"));
    let refused = db.sql(&query).unwrap_err().to_string();
    assert!(refused.contains("any_file"), "{refused}");
    db.close().unwrap();

    let db = Marigram::options()
        .any_file(true)
        .memory_limit(256 << 20)
        .open(dir.path().join("data"))
        .unwrap();
    let rows = db.sql(&query).unwrap();
    let label = arrow::util::display::array_value_to_string(rows[0].column(0), 0).unwrap();
    assert_eq!(label, "x;y");
    // The file is a table for this one statement only.
    db.sql("CREATE TABLE units (time TIMESTAMP, unit STRING TAG, rpm BIGINT FIELD)")
        .unwrap();
    let insert = format!("INSERT INTO units SELECT now(), p.unit, p.rpm FROM '{path}' AS p");
    db.sql(&insert).unwrap();
    assert_eq!(count(&db, "units"), 2);
    let tables = db.sql("SHOW TABLES").unwrap();
    assert_eq!(tables[0].num_rows(), 1);
    // The name is no pattern.
    for name in ["pumps[1].csv", "50% o'pumps*?.csv"] {
        let odd = dir.path().join(name);
        #[expect(clippy::disallowed_methods, reason = "the user writes it")]
        std::fs::write(&odd, text).unwrap();
        let quoted = odd.display().to_string().replace('\'', "''");
        let rows = db.sql(&format!("SELECT unit FROM '{quoted}'")).unwrap();
        assert_eq!(
            rows.iter().map(RecordBatch::num_rows).sum::<usize>(),
            2,
            "{name}"
        );
    }
    let missing = db.sql("SELECT * FROM 'nowhere.csv'").unwrap_err();
    assert!(
        missing.to_string().contains("no file 'nowhere.csv'"),
        "{missing}"
    );
    // Servers use this interface: they read no files for their clients.
    let mut session = marigram::Session::new("main", marigram::Identity::owner("a client"));
    let asked = futures::executor::block_on(db.execute(&mut session, &query));
    assert!(asked.is_err(), "a client of a server must not read files");
    db.close().unwrap();
}
