//! Statements over a real engine: definitions, rows, and what lists them.

mod harness;

use harness::Harness;
use marigram_service::{Query, ServiceError, Session};

/// A super table with two sub-tables.
async fn meters() -> Harness {
    let data = Harness::with_database().await;
    data.done(
        "CREATE STABLE meters (ts TIMESTAMP, current FLOAT, voltage INT, phase DOUBLE) \
         TAGS (location BINARY(24), groupid INT)",
    )
    .await;
    data.done("CREATE TABLE d1001 USING meters TAGS ('California.SF', 2)")
        .await;
    let rows = data
        .done(
            "INSERT INTO d1001 VALUES (1000, 10.5, 219, 0.31) (2000, 12.6, 218, 0.33) \
             d1002 USING meters (groupid) TAGS (3) (ts, voltage) VALUES (1500, 220) (2500, NULL)",
        )
        .await;
    assert_eq!(rows, 4);
    data
}

#[tokio::test]
async fn rows_are_inserted_and_read() {
    let data = meters().await;
    let answer = data.query("SELECT * FROM d1001").await;
    let columns: Vec<(&str, &str)> = answer
        .columns
        .iter()
        .map(|(name, kind)| (name.as_str(), kind.as_str()))
        .collect();
    let wanted = [
        ("ts", "TIMESTAMP"),
        ("current", "FLOAT"),
        ("voltage", "INT"),
        ("phase", "DOUBLE"),
    ];
    assert_eq!(columns, wanted);
    assert_eq!(answer.rows.len(), 2);
    assert_eq!(answer.rows[0], ["1000", "10.5", "219", "0.31"]);
    let all = data.rows("SELECT tbname, * FROM meters ORDER BY ts").await;
    let wanted = [
        "d1001 1000 10.5 219 0.31 California.SF 2",
        "d1002 1500 NULL 220 NULL NULL 3",
        "d1001 2000 12.600000381469727 218 0.33 California.SF 2",
        "d1002 2500 NULL NULL NULL NULL 3",
    ];
    assert_eq!(all, wanted);
    let some = data
        .rows(
            "SELECT ts, voltage + 1 FROM meters WHERE voltage BETWEEN 219 AND 220 AND groupid = 2",
        )
        .await;
    assert_eq!(some, ["1000 220"]);
    let named = data
        .rows("SELECT ts t FROM meters WHERE tbname = 'd1002' ORDER BY t DESC")
        .await;
    assert_eq!(named, ["2500", "1500"]);
    let paged = data
        .rows("SELECT ts FROM meters ORDER BY ts LIMIT 1, 2")
        .await;
    assert_eq!(paged, ["1500", "2000"]);
    let distinct = data
        .rows("SELECT DISTINCT tbname FROM meters ORDER BY tbname")
        .await;
    assert_eq!(distinct, ["d1001", "d1002"]);
    let times = data
        .rows("SELECT voltage FROM d1001 WHERE ts >= '1970-01-01 00:00:02'")
        .await;
    assert_eq!(times, ["218"]);
    let tags = data
        .rows("SELECT TAGS tbname, groupid FROM meters ORDER BY tbname")
        .await;
    assert_eq!(tags, ["d1001 2", "d1002 3"]);
    // Tags of a table without rows.
    data.done("CREATE TABLE empty USING meters TAGS ('x', 9)")
        .await;
    let tags = data
        .rows("SELECT TAGS tbname FROM meters WHERE groupid > 2 ORDER BY tbname")
        .await;
    assert_eq!(tags, ["d1002", "empty"]);
}

#[tokio::test]
async fn sub_tables_are_found_after_a_restart() {
    let data = meters().await.reopen();
    assert_eq!(
        data.done("INSERT INTO d1002 VALUES (3500, 1.5, 1, 2)")
            .await,
        1
    );
    let rows = data
        .rows("SELECT groupid, COUNT(*) FROM meters GROUP BY groupid ORDER BY 1")
        .await;
    assert_eq!(rows, ["2 2", "3 3"]);
    assert_eq!(
        data.value("SELECT current FROM d1002 WHERE ts = 3500")
            .await,
        "1.5"
    );
}

#[tokio::test]
async fn unknown_names_have_numbers() {
    let data = meters().await;
    assert_eq!(data.code("SELECT * FROM nothing").await, 0x2603);
    assert_eq!(data.code("SELECT nothing FROM meters").await, 0x2602);
    assert_eq!(data.code("SELECT nothing(ts) FROM meters").await, 0x264D);
    assert_eq!(data.code("SELECT * FROM x.meters").await, 0x0388);
    assert_eq!(data.code("USE x").await, 0x0388);
    assert_eq!(data.code("CREATE DATABASE d").await, 0x0381);
    assert_eq!(
        data.code("CREATE TABLE d1001 USING meters TAGS ('x', 1)")
            .await,
        0x0603
    );
    assert_eq!(
        data.code("CREATE STABLE meters (ts TIMESTAMP, v INT) TAGS (t INT)")
            .await,
        0x0360
    );
    assert_eq!(data.code("INSERT INTO d1001 VALUES (1)").await, 0x263F);
    assert_eq!(
        data.code("INSERT INTO d1001 VALUES (1, 'x', 1, 1)").await,
        0x2605
    );
    assert_eq!(data.code("INSERT INTO d9 VALUES (1, 1)").await, 0x2603);
    assert_eq!(data.code("SELECT FROM").await, 0x2600);
    assert_eq!(data.code("SELECT ts, COUNT(*) FROM meters").await, 0x260C);
    assert_eq!(data.code("SELECT SUM(location) FROM meters").await, 0x2802);
    data.done("CREATE DATABASE IF NOT EXISTS d").await;
    data.done("DROP DATABASE IF EXISTS x").await;
    let mut other = data;
    other.session.database = String::new();
    assert_eq!(other.code("SELECT * FROM meters").await, 0x2616);
}

#[tokio::test]
async fn precision_decides_what_integers_count() {
    let mut data = Harness::new();
    data.done("CREATE DATABASE us PRECISION 'us' KEEP 36500")
        .await;
    data.session.database = "us".to_owned();
    data.done("CREATE TABLE t (ts TIMESTAMP, v BIGINT UNSIGNED, b BOOL, n NCHAR(4))")
        .await;
    data.done("INSERT INTO t VALUES (1500000, 18446744073709551615, true, '日本語')")
        .await;
    let rows = data
        .rows("SELECT * FROM t WHERE ts = '1970-01-01 00:00:01.5'")
        .await;
    assert_eq!(rows, ["1500000 18446744073709551615 true 日本語"]);
    assert_eq!(
        data.code("INSERT INTO t (ts, n) VALUES (1, '日本語日本')")
            .await,
        0x2653
    );
    assert_eq!(
        data.code("INSERT INTO t (ts, v) VALUES (1, -1)").await,
        0x0224
    );
    let shown =
        data.value("SELECT precision FROM information_schema.ins_databases WHERE name='us'");
    assert_eq!(shown.await, "us");
    data.done("INSERT INTO t (ts, v) VALUES (NOW, 1)").await;
    data.done("INSERT INTO t (ts, v) VALUES (NOW + 1s, 2)")
        .await;
    let recent = data.rows("SELECT v FROM t WHERE ts > NOW - 1h").await;
    assert_eq!(recent, ["1", "2"]);
}

#[tokio::test]
async fn the_server_answers_about_itself() {
    let data = Harness::with_database().await;
    assert_eq!(data.value("SELECT 1").await, "1");
    assert_eq!(data.value("SELECT SERVER_STATUS()").await, "1");
    assert_eq!(data.value("SELECT DATABASE()").await, "d");
    assert!(
        data.value("SELECT SERVER_VERSION()")
            .await
            .starts_with("3.")
    );
    assert_eq!(data.value("SELECT 1 + 2").await, "3");
    assert_eq!(data.value("SELECT 1 / 0").await, "NULL");
    assert_eq!(data.value("SELECT CONCAT('a', 'b')").await, "ab");
    let now: i64 = data.value("SELECT NOW()").await.parse().unwrap();
    assert!(now > 1_700_000_000_000);
    let databases = data.rows("SHOW DATABASES").await;
    assert!(databases.contains(&"d".to_owned()));
    assert!(databases.contains(&"information_schema".to_owned()));
    assert_eq!(data.rows("SHOW DNODES").await.len(), 1);
    assert_eq!(data.rows("SHOW STREAMS").await.len(), 0);
    data.rows("SHOW VARIABLES").await;
    data.rows("SHOW USERS").await;
    data.rows("EXPLAIN SELECT * FROM information_schema.ins_tables")
        .await;
}

#[tokio::test]
async fn tables_are_listed_and_described() {
    let data = meters().await;
    data.done("CREATE TABLE normal (ts TIMESTAMP, v INT)").await;
    assert_eq!(data.rows("SHOW STABLES").await, ["meters"]);
    let mut tables = data.rows("SHOW TABLES").await;
    tables.sort();
    assert_eq!(tables, ["d1001", "d1002", "normal"]);
    assert_eq!(data.rows("SHOW d.TABLES LIKE 'd1%2'").await, ["d1002"]);
    let described = data.rows("DESCRIBE meters").await;
    let wanted = [
        "ts TIMESTAMP 8 ",
        "current FLOAT 4 ",
        "voltage INT 4 ",
        "phase DOUBLE 8 ",
        "location VARCHAR 24 TAG",
        "groupid INT 4 TAG",
    ];
    assert_eq!(described, wanted);
    let tags = data.rows("SHOW TABLE TAGS FROM meters").await;
    assert!(
        tags.contains(&"d1001 California.SF 2".to_owned()),
        "{tags:?}"
    );
    let tags = data.rows("SHOW TAGS FROM d1002").await;
    assert_eq!(tags[1], "d1002 d meters groupid INT 3");
    let created = data.rows("SHOW CREATE TABLE d1001").await;
    let wanted = "d1001 CREATE TABLE `d1001` USING `meters` (`location`, `groupid`) \
                  TAGS (\"California.SF\", 2)";
    assert_eq!(created, [wanted]);
    let counted = data
        .value("SELECT COUNT(*) FROM information_schema.ins_tables WHERE stable_name = 'meters'")
        .await;
    assert_eq!(counted, "2");
    data.done("DROP TABLE d1001").await;
    assert_eq!(data.code("SELECT * FROM d1001").await, 0x2603);
    assert_eq!(data.value("SELECT COUNT(*) FROM meters").await, "2");
    data.done("DROP STABLE meters").await;
    assert_eq!(data.rows("SHOW TABLES").await, ["normal"]);
    assert_eq!(
        data.code("INSERT INTO d1002 VALUES (1, 1, 1, 1)").await,
        0x2603
    );
    data.done("DROP TABLE IF EXISTS meters").await;
}

#[tokio::test]
async fn tables_change() {
    let data = meters().await;
    data.done("ALTER STABLE meters ADD COLUMN extra VARCHAR(4)")
        .await;
    assert_eq!(
        data.code("ALTER STABLE meters ADD COLUMN extra INT").await,
        0x036B
    );
    data.done("INSERT INTO d1001 (ts, extra) VALUES (1000, 'abcd')")
        .await;
    let row = data
        .value("SELECT voltage, extra FROM d1001 WHERE ts = 1000")
        .await;
    assert_eq!(row, "219 abcd");
    assert_eq!(
        data.code("ALTER STABLE meters MODIFY COLUMN extra VARCHAR(2)")
            .await,
        0x264B
    );
    data.done("ALTER STABLE meters MODIFY COLUMN extra VARCHAR(9)")
        .await;
    data.done("INSERT INTO d1001 (ts, extra) VALUES (1000, 'abcdefgh')")
        .await;
    data.done("ALTER STABLE meters DROP COLUMN extra").await;
    assert_eq!(data.code("SELECT extra FROM d1001").await, 0x2602);
    data.done("ALTER STABLE meters RENAME TAG groupid grp")
        .await;
    data.done("ALTER STABLE meters ADD TAG since TIMESTAMP")
        .await;
    data.done("ALTER TABLE d1002 SET TAG grp = 7").await;
    data.done("ALTER TABLE d1002 SET TAG since = 5000").await;
    let rows = data
        .rows("SELECT DISTINCT tbname, grp, since FROM meters ORDER BY grp")
        .await;
    assert_eq!(rows, ["d1001 2 NULL", "d1002 7 5000"]);
    let rows = data
        .rows("SELECT grp, COUNT(*) FROM meters WHERE grp > 2 GROUP BY grp")
        .await;
    assert_eq!(rows, ["7 2"]);
    // A row at an old time replaces the one that was written with the old tags.
    data.done("INSERT INTO d1002 (ts, voltage) VALUES (1500, 221)")
        .await;
    assert_eq!(
        data.value("SELECT voltage FROM d1002 WHERE ts = 1500")
            .await,
        "221"
    );
    data.done("ALTER STABLE meters DROP TAG since").await;
    assert_eq!(data.code("SELECT since FROM meters").await, 0x2602);
}

#[tokio::test]
async fn rows_are_deleted() {
    let data = meters().await;
    assert_eq!(data.done("DELETE FROM d1001 WHERE ts < 2000").await, 1);
    assert_eq!(data.value("SELECT COUNT(*) FROM meters").await, "3");
    assert_eq!(
        data.code("DELETE FROM d1001 WHERE voltage = 1").await,
        0x2655
    );
    assert_eq!(
        data.done("DELETE FROM meters WHERE ts >= 0 AND groupid = 3")
            .await,
        2
    );
    assert_eq!(data.rows("SELECT ts FROM meters").await, ["2000"]);
}

#[tokio::test]
async fn rows_name_their_tables() {
    let data = meters().await;
    data.done(
        "INSERT INTO meters (tbname, ts, voltage, groupid) VALUES ('d5', 1, 5, 9) ('d1001', 9, 6, 1)",
    )
    .await;
    let rows = data.rows("SELECT tbname, groupid, voltage FROM meters WHERE ts < 10 ORDER BY ts");
    assert_eq!(rows.await, ["d5 9 5", "d1001 2 6"]);
}

#[tokio::test]
async fn queries_are_joined_and_united() {
    let data = meters().await;
    data.done("CREATE TABLE o (ts TIMESTAMP, v INT)").await;
    data.done("INSERT INTO o VALUES (1000, 1) (2000, 2) (3000, 3)")
        .await;
    let joined = data
        .rows("SELECT a.ts, a.voltage, b.v FROM d1001 a, o b WHERE a.ts = b.ts ORDER BY a.ts")
        .await;
    assert_eq!(joined, ["1000 219 1", "2000 218 2"]);
    let joined = data
        .rows("SELECT b.ts, a.voltage FROM d1001 a RIGHT JOIN o b ON a.ts = b.ts ORDER BY b.ts")
        .await;
    assert_eq!(joined, ["1000 219", "2000 218", "3000 NULL"]);
    let united = data
        .rows("SELECT v FROM o UNION ALL SELECT voltage FROM d1001 ORDER BY v DESC LIMIT 2")
        .await;
    assert_eq!(united, ["219", "218"]);
    let nested = data
        .value("SELECT MAX(m) FROM (SELECT tbname, MAX(voltage) m FROM meters PARTITION BY tbname)")
        .await;
    assert_eq!(nested, "220");
}

#[tokio::test]
async fn rights_are_checked() {
    let mut data = meters().await;
    let mut owner = data.session.clone();
    for text in [
        "CREATE USER root SUPERUSER PASSWORD 'p'",
        "CREATE USER ann PASSWORD 'p'",
    ] {
        data.sql.execute(&mut owner, text).await.unwrap();
    }
    let ann = data.sql.access().check_password("ann", "p").unwrap();
    data.session = Session::new("d", ann);
    let is_forbidden = |outcome| matches!(outcome, Err(ServiceError::Forbidden(_)));
    assert!(is_forbidden(
        data.try_query("SELECT * FROM meters").await.map(drop)
    ));
    assert!(is_forbidden(data.try_query("SHOW TABLES").await.map(drop)));
    assert!(!data.rows("SHOW DATABASES").await.contains(&"d".to_owned()));
    let grant = "GRANT READ ON DATABASE d TO ann";
    data.sql.execute(&mut owner, grant).await.unwrap();
    assert_eq!(data.rows("SELECT ts FROM d1001").await.len(), 2);
    let changes = [
        "INSERT INTO d1001 VALUES (1, 1, 1, 1)",
        "CREATE TABLE n (ts TIMESTAMP, v INT)",
        "DELETE FROM d1001",
        "DROP STABLE meters",
        "ALTER STABLE meters ADD COLUMN x INT",
        "DROP DATABASE d",
        "CREATE DATABASE e",
    ];
    for change in changes {
        assert!(
            is_forbidden(data.try_query(change).await.map(drop)),
            "{change}"
        );
    }
    let mut reader = data;
    reader.session = owner;
    reader.session.read_only = true;
    for change in changes {
        let outcome = reader.try_query(change).await.map(drop);
        let is_refused = matches!(outcome, Err(ServiceError::ChangesRefused(_)));
        assert!(is_refused, "{change}");
    }
}
