//! Many devices, several databases, strange names, and little memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

mod support;

use arrow::array::{ArrayRef, Int32Array, StringArray};
use marigram_engine::WriteOptions;
use marigram_model::{BatchField, BatchTag, WriteBatch};
use std::sync::Arc;
use support::Harness;

/// Devices `root.many.d0` and so on, each with one row: the number at time 1 s.
fn write_devices(harness: &Harness, count: i32) {
    let names: StringArray = (0..count)
        .map(|it| Some(format!("root.many.d{it}")))
        .collect();
    let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
    let count = count as usize;
    let batch = WriteBatch {
        table: "devices".to_owned(),
        tags: vec![BatchTag {
            name: "device".to_owned(),
            values: Arc::new(names),
        }],
        slot_count: count,
        slots: (0..count as u32).collect(),
        times: vec![1_000_000_000; count].into(),
        fields: vec![BatchField {
            name: "s".to_owned(),
            values,
        }],
    };
    let report = harness
        .engine
        .write("root.many", &batch, WriteOptions { grow: true })
        .unwrap();
    assert_eq!(report.stored, count);
}

#[tokio::test]
async fn many_devices_are_one_query() {
    let h = Harness::new();
    h.done("CREATE DATABASE root.many").await;
    write_devices(&h, 2500);
    assert_eq!(
        h.rows("SELECT sum(s), count(s) FROM root.many.* GROUP BY LEVEL = 1")
            .await,
        format!(
            "sum(root.many.*.s) DOUBLE,count(root.many.*.s) INT64\n{:?},2500\n",
            f64::from(2499 * 2500 / 2)
        )
    );
    let rows = h.rows("SELECT s FROM root.many.*").await;
    let mut lines = rows.lines();
    assert_eq!(lines.next().unwrap().matches(',').count(), 2500);
    let row = lines.next().unwrap();
    assert!(
        row.starts_with("1000,0,1,10,100,1000,1001,"),
        "{}",
        &row[..60]
    );
    assert_eq!(lines.next(), None);
    let rows = h
        .rows("SELECT s FROM root.many.d1* WHERE s < 20 ALIGN BY DEVICE")
        .await;
    assert_eq!(rows.lines().count(), 1 + 11, "{rows}");
    let rows = h
        .rows("SELECT LAST s FROM root.many.* ORDER BY TIMESERIES LIMIT 2 OFFSET 1")
        .await;
    assert!(
        rows.ends_with("\n1000,root.many.d1.s,1,INT32\n1000,root.many.d10.s,10,INT32\n"),
        "{rows}"
    );
    assert_eq!(
        h.rows("COUNT DEVICES root.many.**").await,
        "count(devices) INT64\n2500\n"
    );
    let rows = h.rows("SHOW DEVICES root.many.d9* LIMIT 2 OFFSET 1").await;
    assert!(
        rows.ends_with("\nroot.many.d90,false,null,INF\nroot.many.d900,false,null,INF\n"),
        "{rows}"
    );
}

#[tokio::test]
async fn databases_are_read_together() {
    let h = Harness::new();
    h.done("INSERT INTO root.a.d(time, s, t) VALUES (1, 1, true), (2, 2, false)")
        .await;
    h.done("INSERT INTO root.b.d(time, s) VALUES (2, 20), (3, 30)")
        .await;
    h.done("INSERT INTO root.b.e(time, s) VALUES (3, 'x')")
        .await;
    assert_eq!(
        h.rows("SELECT s, t FROM root.*.d").await,
        "Time TIMESTAMP,root.a.d.s DOUBLE,root.b.d.s DOUBLE,root.a.d.t BOOLEAN\n\
         1,1.0,,true\n2,2.0,20.0,false\n3,,30.0,\n"
    );
    assert_eq!(
        h.rows("SELECT s, t FROM root.*.d ALIGN BY DEVICE").await,
        "Time TIMESTAMP,Device TEXT,s DOUBLE,t BOOLEAN\n\
         1,root.a.d,1.0,true\n2,root.a.d,2.0,false\n2,root.b.d,20.0,\n3,root.b.d,30.0,\n"
    );
    assert_eq!(
        h.rows("SELECT count(s) FROM root.** GROUP BY ([1, 5), 2ms)")
            .await,
        "Time TIMESTAMP,count(root.a.d.s) INT64,count(root.b.d.s) INT64,count(root.b.e.s) INT64\n\
         1,2,1,0\n3,0,1,1\n"
    );
    assert_eq!(
        h.rows("SELECT sum(s) FROM root.*.d GROUP BY LEVEL = 0")
            .await,
        "sum(root.*.*.s) DOUBLE\n53.0\n"
    );
    assert_eq!(
        h.rows("SELECT LAST s FROM root.**").await,
        "Time TIMESTAMP,Timeseries TEXT,Value TEXT,DataType TEXT\n\
         2,root.a.d.s,2.0,DOUBLE\n3,root.b.d.s,30.0,DOUBLE\n3,root.b.e.s,x,TEXT\n"
    );
}

#[tokio::test]
async fn names_may_be_strange() {
    let h = Harness::new();
    h.done("INSERT INTO root.sg.`a.b`.`1`(time, `x y`, `s::DATE`) VALUES (1, 5, true)")
        .await;
    assert_eq!(
        h.rows("SELECT `x y`, `s::DATE` FROM root.sg.`a.b`.`1`")
            .await,
        "Time TIMESTAMP,root.sg.`a.b`.`1`.`x y` DOUBLE,root.sg.`a.b`.`1`.s::DATE BOOLEAN\n1,5.0,true\n"
    );
    assert_eq!(
        h.rows("SELECT * FROM root.sg.*.* WHERE `x y` + 1 = 6")
            .await
            .lines()
            .last(),
        Some("1,true,5.0")
    );
    assert_eq!(
        h.rows("SHOW CHILD NODES root.sg").await,
        "ChildNodes TEXT\n`a.b`\n"
    );
}

#[tokio::test]
async fn texts_bytes_and_times_come_back() {
    let h = Harness::new();
    h.done("INSERT INTO root.sg.d(time, a, b, c) VALUES (1, 'one', X'00ff', 1970-01-01T00:00:01Z)")
        .await;
    h.done("INSERT INTO root.sg.d(time, a) VALUES (2, 'two')")
        .await;
    assert_eq!(
        h.rows("SELECT a, b, c FROM root.sg.d WHERE a LIKE 'on%' AND c >= 1970-01-01T00:00:00Z")
            .await,
        "Time TIMESTAMP,root.sg.d.a TEXT,root.sg.d.b BLOB,root.sg.d.c TIMESTAMP\n1,one,00ff,1000\n"
    );
    assert_eq!(
        h.rows("SELECT upper(a), length(a) FROM root.sg.d WHERE a REGEXP '^t'")
            .await,
        "Time TIMESTAMP,upper(root.sg.d.a) TEXT,length(root.sg.d.a) INT32\n2,TWO,3\n"
    );
    assert_eq!(
        h.rows("SELECT last_value(c), max_value(c), count(b) FROM root.sg.d")
            .await,
        "last_value(root.sg.d.c) TIMESTAMP,max_value(root.sg.d.c) TIMESTAMP,count(root.sg.d.b) INT64\n\
         1000,1000,1\n"
    );
    assert_eq!(
        h.rows("SELECT LAST * FROM root.sg.d")
            .await
            .lines()
            .skip(1)
            .collect::<Vec<_>>(),
        [
            "2,root.sg.d.a,two,TEXT",
            "1,root.sg.d.b,0x00ff,BLOB",
            "1,root.sg.d.c,1000,TIMESTAMP"
        ]
    );
}

#[tokio::test]
async fn gaps_are_filled() {
    let h = Harness::new();
    h.done("INSERT INTO root.sg.d(time, s, t) VALUES (0, 0, 1), (10, null, 2), (30, 6, 3), (40, null, 4)").await;
    let column = |rows: String| -> Vec<String> {
        let lines = rows.lines().skip(1);
        lines
            .map(|line| line.split(',').nth(1).unwrap().to_owned())
            .collect()
    };
    for (fill, values) in [
        ("LINEAR", ["0.0", "2.0", "6.0", ""]),
        ("PREVIOUS", ["0.0", "0.0", "6.0", "6.0"]),
        ("PREVIOUS, 5ms", ["0.0", "", "6.0", ""]),
        ("7", ["0.0", "7.0", "6.0", "7.0"]),
    ] {
        let rows = h
            .rows(&format!("SELECT s, t FROM root.sg.d FILL({fill})"))
            .await;
        assert_eq!(column(rows), values, "{fill}");
    }
    assert!(h.fails("SELECT LAST s FROM root.sg.d FILL(7)", 701).await);
}

#[tokio::test]
async fn months_are_windows() {
    let h = Harness::new();
    h.done(
        "INSERT INTO root.sg.d(time, s) VALUES (2024-01-31T12:00:00, 1), (2024-02-29T12:00:00, 2), \
         (2024-03-01T00:00:00, 3)",
    )
    .await;
    assert_eq!(
        h.rows("SELECT sum(s) FROM root.sg.d GROUP BY ([2024-01-01, 2024-04-01), 1mo)")
            .await,
        "Time TIMESTAMP,sum(root.sg.d.s) DOUBLE\n1704067200000,1.0\n1706745600000,2.0\n1709251200000,3.0\n"
    );
}

#[tokio::test]
async fn values_can_order_rows() {
    let h = Harness::new();
    h.done("INSERT INTO root.sg.d(time, s) VALUES (1, 3), (2, 1), (3, 2)")
        .await;
    h.done("INSERT INTO root.sg.e(time, s) VALUES (1, 0)").await;
    assert_eq!(
        h.rows("SELECT s FROM root.sg.d ORDER BY s DESC LIMIT 2")
            .await,
        "Time TIMESTAMP,root.sg.d.s DOUBLE\n1,3.0\n3,2.0\n"
    );
    assert_eq!(
        h.rows("SELECT s FROM root.sg.* ORDER BY s ALIGN BY DEVICE LIMIT 2")
            .await,
        "Time TIMESTAMP,Device TEXT,s DOUBLE\n1,root.sg.e,0.0\n2,root.sg.d,1.0\n"
    );
}

#[tokio::test]
async fn queries_end_where_memory_does() {
    let h = Harness::with_memory(24 << 20);
    h.done("CREATE DATABASE root.many").await;
    write_devices(&h, 2000);
    // Two wildcards of two thousand timeseries each are four million columns.
    assert!(h.fails("SELECT s + s FROM root.many.*", 701).await);
}
