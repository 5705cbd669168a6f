//! Statements that define, list and delete.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

mod support;

use marigram_access::DatabasePrivileges;
use support::Harness;

#[tokio::test]
async fn databases_are_created_and_dropped() {
    let h = Harness::new();
    h.done("CREATE DATABASE root.sg").await;
    h.done("SET STORAGE GROUP TO root.a.b").await;
    for (statement, code) in [
        ("CREATE DATABASE root.sg", 501),
        ("CREATE DATABASE root.sg.x", 501),
        ("CREATE DATABASE root.a", 501),
        ("DELETE DATABASE root.nothing", 508),
        ("SET TTL TO root.nothing 1000", 500),
    ] {
        assert!(h.fails(statement, code).await, "{statement}");
    }
    let first = |text: String| -> Vec<String> {
        let lines = text.lines().skip(1);
        lines
            .map(|line| line.split(',').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        first(h.rows("SHOW DATABASES").await),
        ["root.a.b", "root.sg"]
    );
    assert_eq!(h.rows("COUNT DATABASES root.*").await, "count INT32\n1\n");
    h.done("SET TTL TO root.sg 3600000").await;
    assert_eq!(
        h.rows("SHOW ALL TTL").await,
        "Device TEXT,TTL(ms) TEXT\nroot.a.b.**,INF\nroot.sg.**,3600000\n"
    );
    h.done("UNSET TTL TO root.sg").await;
    assert_eq!(
        h.rows("SHOW TTL ON root.sg").await,
        "Device TEXT,TTL(ms) TEXT\nroot.sg.**,INF\n"
    );
    h.done("DROP DATABASE root.**").await;
    assert_eq!(first(h.rows("SHOW DATABASES").await), Vec::<String>::new());
}

#[tokio::test]
async fn timeseries_are_declared_and_listed() {
    let h = Harness::new();
    h.done("CREATE TIMESERIES root.sg.d.s(speed) WITH DATATYPE=INT32, ENCODING=RLE TAGS(unit='m')")
        .await;
    h.done("CREATE ALIGNED TIMESERIES root.sg.e(day DATE, name STRING)")
        .await;
    assert!(
        h.fails("CREATE TIMESERIES root.sg.d.s WITH DATATYPE=INT32", 503)
            .await
    );
    assert!(
        h.fails("CREATE TIMESERIES root.sg.d.speed WITH DATATYPE=INT32", 503)
            .await
    );
    assert_eq!(
        h.rows("SHOW TIMESERIES root.sg.d.*").await,
        "Timeseries TEXT,Alias TEXT,Database TEXT,DataType TEXT,Encoding TEXT,Compression TEXT,Tags TEXT,\
         Attributes TEXT,Deadband TEXT,DeadbandParameters TEXT,ViewType TEXT\n\
         root.sg.d.s,speed,root.sg,INT32,RLE,LZ4,{\"unit\":\"m\"},,,,BASE\n"
    );
    h.done("INSERT INTO root.sg.d(time, s) VALUES (1, 5)").await;
    h.done("INSERT INTO root.sg.e(time, day, name) ALIGNED VALUES (1, '2024-02-29', 'x')")
        .await;
    assert!(
        h.fails("INSERT INTO root.sg.d(time, s) VALUES (2, 1.5)", 507)
            .await
    );
    assert_eq!(
        h.rows("SELECT s FROM root.sg.d").await,
        "Time TIMESTAMP,root.sg.d.s INT32\n1,5\n"
    );
    assert_eq!(
        h.rows("SELECT day, name FROM root.sg.e WHERE day = '2024-02-29'")
            .await,
        "Time TIMESTAMP,root.sg.e.day DATE,root.sg.e.name STRING\n1,20240229,x\n"
    );
    assert_eq!(
        h.rows("SHOW DEVICES root.** WITH DATABASE").await,
        "Device TEXT,Database TEXT,IsAligned TEXT,Template TEXT,TTL(ms) TEXT\n\
         root.sg.d,root.sg,false,null,INF\nroot.sg.e,root.sg,true,null,INF\n"
    );
    assert_eq!(
        h.rows("COUNT TIMESERIES root.**").await,
        "count(timeseries) INT64\n3\n"
    );
    assert_eq!(h.rows("COUNT DEVICES").await, "count(devices) INT64\n2\n");
    assert_eq!(
        h.rows("COUNT TIMESERIES root.** GROUP BY LEVEL = 2").await,
        "Column TEXT,count(timeseries) INT64\nroot.sg.d,1\nroot.sg.e,2\n"
    );
    assert_eq!(
        h.rows("COUNT NODES root.** LEVEL = 2").await,
        "count(nodes) INT64\n2\n"
    );
    assert_eq!(
        h.rows("SHOW CHILD PATHS root.sg").await,
        "ChildPaths TEXT,NodeTypes TEXT\nroot.sg.d,DEVICE\nroot.sg.e,DEVICE\n"
    );
    assert_eq!(
        h.rows("SHOW CHILD NODES root.sg.e").await,
        "ChildNodes TEXT\nday\nname\n"
    );
    h.done("DELETE TIMESERIES root.sg.e.name").await;
    assert_eq!(
        h.rows("COUNT TIMESERIES root.sg.e.*").await,
        "count(timeseries) INT64\n1\n"
    );
    assert_eq!(
        h.rows("SELECT * FROM root.sg.e").await,
        "Time TIMESTAMP,root.sg.e.day DATE\n1,20240229\n"
    );
    assert!(h.fails("DROP TIMESERIES root.sg.e.name", 508).await);
}

#[tokio::test]
async fn devices_may_disagree_about_types() {
    let h = Harness::new();
    h.done("INSERT INTO root.sg.a(time, s) VALUES (1, 1.5)")
        .await;
    h.done("INSERT INTO root.sg.b(time, s) VALUES (1, 'text')")
        .await;
    h.done("INSERT INTO root.sg.c(time, device, time_) VALUES (1, true, 2)")
        .await;
    assert_eq!(
        h.rows("SELECT s FROM root.sg.*").await,
        "Time TIMESTAMP,root.sg.a.s DOUBLE,root.sg.b.s TEXT\n1,1.5,text\n"
    );
    assert_eq!(
        h.rows("SELECT device FROM root.sg.c").await,
        "Time TIMESTAMP,root.sg.c.device BOOLEAN\n1,true\n"
    );
    assert!(
        h.fails("INSERT INTO root.sg.a(time, s) VALUES (2, 'x')", 507)
            .await
    );
    assert!(
        h.fails("SELECT s FROM root.sg.* ALIGN BY DEVICE", 701)
            .await
    );
    assert!(
        h.fails("SELECT sum(s) FROM root.sg.* GROUP BY LEVEL = 1", 701)
            .await
    );
}

#[tokio::test]
async fn values_are_deleted() {
    let h = Harness::new();
    h.done("INSERT INTO root.sg.a(time, s, t) VALUES (1, 1, 10), (2, 2, 20), (3, 3, null)")
        .await;
    h.done("INSERT INTO root.sg.b(time, s) VALUES (1, 1), (2, 2)")
        .await;
    h.done("DELETE FROM root.sg.a.s WHERE time >= 2").await;
    assert_eq!(
        h.rows("SELECT s, t FROM root.sg.a").await,
        "Time TIMESTAMP,root.sg.a.s DOUBLE,root.sg.a.t DOUBLE\n1,1.0,10.0\n2,,20.0\n"
    );
    h.done("DELETE FROM root.sg.*.* WHERE time <= 1").await;
    assert_eq!(
        h.rows("SELECT * FROM root.sg.*").await,
        "Time TIMESTAMP,root.sg.a.t DOUBLE,root.sg.b.s DOUBLE\n2,20.0,2.0\n"
    );
    assert!(h.fails("DELETE FROM root.sg.a.s WHERE s > 1", 701).await);
}

#[tokio::test]
async fn rights_decide() {
    let mut h = Harness::new();
    h.done("INSERT INTO root.a.d(time, s) VALUES (1, 1)").await;
    h.done("INSERT INTO root.b.d(time, s) VALUES (1, 1)").await;
    h.restrict("root.a", DatabasePrivileges::READ);
    assert_eq!(
        h.rows("SELECT s FROM root.**").await,
        "Time TIMESTAMP,root.a.d.s DOUBLE\n1,1.0\n"
    );
    assert_eq!(h.rows("COUNT DATABASES").await, "count INT32\n1\n");
    for statement in [
        "INSERT INTO root.a.d(time, s) VALUES (1, 1)",
        "INSERT INTO root.b.d(time, s) VALUES (1, 1)",
        "INSERT INTO root.c.d(time, s) VALUES (1, 1)",
        "DELETE FROM root.**",
        "DROP DATABASE root.a",
        "CREATE DATABASE root.z",
        "CREATE TIMESERIES root.a.d.x WITH DATATYPE=INT32",
        "SET TTL TO root.a 10",
    ] {
        assert!(h.fails(statement, 803).await, "{statement}");
    }
}

#[tokio::test]
async fn the_server_is_described() {
    let h = Harness::new();
    for (statement, header) in [
        ("SHOW VERSION", "Version TEXT,BuildInfo TEXT"),
        (
            "SHOW CLUSTER",
            "NodeID INT32,NodeType TEXT,Status TEXT,InternalAddress TEXT,InternalPort INT32,Version TEXT,BuildInfo TEXT",
        ),
        (
            "SHOW DATANODES",
            "NodeID INT32,Status TEXT,RpcAddress TEXT,RpcPort INT32,DataRegionNum INT32,SchemaRegionNum INT32",
        ),
        ("SHOW VARIABLES", "Variable TEXT,Value TEXT"),
        ("SHOW CURRENT_USER", "CurrentUser TEXT"),
    ] {
        let rows = h.rows(statement).await;
        assert_eq!(rows.lines().next(), Some(header), "{statement}");
        assert!(rows.lines().count() > 1, "{statement}");
    }
    assert!(h.rows("SHOW FUNCTIONS").await.contains("\nMAX_VALUE,"));
    assert!(h.fails("SHOW PIPES", 300).await);
    assert!(h.fails("SELEC s FROM root.a", 700).await);
}
