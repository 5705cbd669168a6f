//! Functions of one row, and conditions.

mod harness;

use harness::Harness;
use marigram_service::Query;

#[tokio::test]
async fn functions_of_constants() {
    let mut data = Harness::with_database().await;
    let cases = [
        ("ABS(-3)", "3"),
        ("ABS(-3.5)", "3.5"),
        ("CEIL(1.2)", "2"),
        ("FLOOR(-1.2)", "-2"),
        ("ROUND(2.5)", "3"),
        ("ROUND(2.345, 2)", "2.35"),
        ("POW(2, 10)", "1024"),
        ("LOG(8, 2)", "3"),
        ("SQRT(-1)", "NULL"),
        ("MOD(7, 4)", "3"),
        ("7 % 4", "3"),
        ("5 & 3", "1"),
        ("GREATEST(1, 5, 3)", "5"),
        ("LOWER('ABC')", "abc"),
        ("LENGTH('日本')", "6"),
        ("CHAR_LENGTH('日本')", "2"),
        ("CONCAT_WS(',', 'a', 'b')", "a,b"),
        ("SUBSTR('abcdef', 2, 3)", "bcd"),
        ("TRIM('  a ')", "a"),
        ("CAST('12' AS INT)", "12"),
        ("CAST(1.9 AS BIGINT)", "1"),
        ("CAST(12 AS VARCHAR(4))", "12"),
        ("CAST('1970-01-01 00:00:01' AS TIMESTAMP)", "1000"),
        ("TO_ISO8601(1000)", "1970-01-01T00:00:01.000Z"),
        ("TO_UNIXTIMESTAMP('1970-01-01T00:00:02Z')", "2000"),
        ("TIMEDIFF(5000, 1000)", "4000"),
        ("TIMEDIFF(5000, 1000, 1s)", "4"),
        ("TIMETRUNCATE(3700000, 1h)", "3600000"),
        ("DAYOFWEEK(0)", "5"),
        ("WEEKDAY(0)", "3"),
        ("WEEKOFYEAR(0)", "1"),
        ("IFNULL(NULL, 3)", "3"),
        ("NULLIF(3, 3)", "NULL"),
        ("CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END", "b"),
        ("CASE 2 WHEN 1 THEN 10 WHEN 2 THEN 20 END", "20"),
        ("2 BETWEEN 1 AND 3", "true"),
        ("'abc' LIKE 'a%'", "true"),
        ("'abc' MATCH '^a.c$'", "true"),
        ("'abc' NMATCH 'x'", "true"),
        ("NULL + 1", "NULL"),
        ("'5' + 1", "6"),
        ("3 IN (1, 2, '3')", "true"),
        ("1 = NULL", "NULL"),
        ("TODAY() + 1d > NOW()", "true"),
    ];
    for (expr, wanted) in cases {
        assert_eq!(
            data.value(&format!("SELECT {expr}")).await,
            wanted,
            "{expr}"
        );
    }
    data.session.time_zone = "Asia/Shanghai".to_owned();
    let local = data.value("SELECT TO_ISO8601(0)").await;
    assert_eq!(local, "1970-01-01T08:00:00.000+08:00");
    let local = data
        .value("SELECT TO_UNIXTIMESTAMP('1970-01-01 08:00:01')")
        .await;
    assert_eq!(local, "1000");
    let local = data.value("SELECT TIMETRUNCATE(0, 1d)").await;
    assert_eq!(local, (-8 * 3_600_000).to_string());
    assert_eq!(data.code("SELECT ABS()").await, 0x2801);
    assert_eq!(data.code("SELECT SQRT('a')").await, 0x2802);
}

#[tokio::test]
async fn conditions_compare_across_types() {
    let data = Harness::with_database().await;
    data.done("CREATE TABLE t (ts TIMESTAMP, i TINYINT, u BIGINT UNSIGNED, b BOOL, s VARCHAR(8), x VARBINARY(8), w TIMESTAMP)")
        .await;
    data.done(
        "INSERT INTO t VALUES (1000, 1, 18446744073709551615, true, '10', 'ab', 5000) \
         (2000, -1, 0, false, 'b', '\\x6364', '1970-01-01 00:00:06') (3000, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    .await;
    let cases = [
        ("i > 0", "1000"),
        ("i = '1'", "1000"),
        ("i < 0.5", "2000"),
        ("u = 18446744073709551615", "1000"),
        ("u > 1.5", "1000"),
        ("b", "1000"),
        ("b = 0", "2000"),
        ("NOT b", "2000"),
        ("s = 10", "1000"),
        ("s IN ('b', 'c')", "2000"),
        ("w = 5000", "1000"),
        ("w > '1970-01-01 00:00:05'", "2000"),
        ("w - ts = 4000 AND i = 1", "1000"),
        ("ts + 1s = 3000", "2000"),
        ("i IS NULL", "3000"),
        ("x IS NOT NULL AND i + 1 = 2", "1000"),
        ("ts IN (2000, 9000)", "2000"),
        ("2500 < ts", "3000"),
        ("i NOT IN (1, 7)", "2000"),
    ];
    for (condition, wanted) in cases {
        let rows = data
            .rows(&format!("SELECT ts FROM t WHERE {condition}"))
            .await;
        assert_eq!(rows, [wanted], "{condition}");
    }
    let bytes = data.rows("SELECT x FROM t WHERE ts < 3000").await;
    assert_eq!(bytes, ["[97, 98]", "[99, 100]"]);
    let ordered = data.rows("SELECT i FROM t ORDER BY i").await;
    assert_eq!(ordered, ["NULL", "-1", "1"]);
}

#[tokio::test]
async fn tags_of_all_types_are_read() {
    let data = Harness::with_database().await;
    data.done(
        "CREATE STABLE s (ts TIMESTAMP, v INT) TAGS (f DOUBLE, b BOOL, u BIGINT UNSIGNED, t TIMESTAMP, n NCHAR(4))",
    )
    .await;
    data.done(
        "INSERT INTO a USING s TAGS (1.5, true, 18446744073709551615, 7000, '日') VALUES (1, 1)",
    )
    .await;
    data.done("INSERT INTO b USING s (n) TAGS ('x') VALUES (2, 2)")
        .await;
    let rows = data.rows("SELECT f, b, u, t, n FROM s ORDER BY ts").await;
    assert_eq!(
        rows,
        [
            "1.5 true 18446744073709551615 7000 日",
            "NULL NULL NULL NULL x"
        ]
    );
    for condition in [
        "f > 1",
        "b",
        "u > 5",
        "t >= 7000",
        "n = '日'",
        "tbname LIKE 'a%'",
    ] {
        let rows = data
            .rows(&format!("SELECT v FROM s WHERE {condition}"))
            .await;
        assert_eq!(rows, ["1"], "{condition}");
    }
    data.done("CREATE STABLE j (ts TIMESTAMP, v INT) TAGS (info JSON)")
        .await;
    data.done(r#"INSERT INTO c USING j TAGS ('{"k":"x","n":5}') VALUES (1, 1)"#)
        .await;
    assert_eq!(
        data.value("SELECT info->'k' FROM j WHERE info->'n' > 4")
            .await,
        "x"
    );
    assert_eq!(
        data.value("SELECT v FROM j WHERE info CONTAINS 'k'").await,
        "1"
    );
}

#[tokio::test]
async fn tables_of_other_languages_are_super_tables() {
    let mut data = Harness::with_database().await;
    let create = "CREATE TABLE plain (time TIMESTAMP, host TAG, v DOUBLE)";
    let mut session = data.session.clone();
    if data.sql.execute(&mut session, create).await.is_err() {
        let create = "CREATE TABLE plain (time TIMESTAMP, host STRING TAG, v DOUBLE)";
        data.sql
            .execute(&mut session, create)
            .await
            .expect("a table");
    }
    let insert = "INSERT INTO plain (time, host, v) VALUES ('1970-01-01T00:00:01Z', 'a', 2.5)";
    data.sql.execute(&mut session, insert).await.expect("a row");
    data.session = session;
    assert_eq!(data.rows("SELECT * FROM plain").await, ["1000 2.5 a"]);
    assert_eq!(
        data.rows("SELECT tbname, MAX(v) FROM plain GROUP BY tbname")
            .await,
        ["a 2.5"]
    );
    assert!(
        data.rows("SHOW STABLES")
            .await
            .contains(&"plain".to_owned())
    );
    let described = data.rows("DESCRIBE plain").await;
    assert_eq!(described[0], "time TIMESTAMP 8 ");
}
