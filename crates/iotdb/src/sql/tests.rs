//! Statements as clients send them, and what is refused.

use super::*;
use crate::path::{PathPattern, TreePath};
use crate::status::{IotDbFault, StatusCode};
use crate::value::IotDbType;
use jiff::tz::{Offset, TimeZone};
use proptest::prelude::*;

fn context() -> TreeSqlContext {
    TreeSqlContext {
        now_ms: 1_000_000,
        zone: TimeZone::fixed(Offset::constant(8)),
    }
}

fn parse(text: &str) -> Result<TreeStatement, IotDbFault> {
    parse_statement(text, &context())
}

fn parsed(text: &str) -> TreeStatement {
    parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

fn select(text: &str) -> TreeSelect {
    match parsed(text) {
        TreeStatement::Select(select) => *select,
        other => panic!("{other:?}"),
    }
}

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).expect("a pattern")
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).expect("a path")
}

#[test]
fn selects_of_the_benchmark_are_read() {
    let query = select(
        "SELECT s_0, s_1 FROM root.test.g_0.d_1 WHERE time >= 1640966400000 AND time <= 1640966650000 \
         AND root.test.g_0.d_1.s_0 > -5 ORDER BY time desc limit 10 offset 2",
    );
    assert_eq!(query.columns.len(), 2);
    assert_eq!(query.columns[1].expr, TreeExpr::Path(pattern("s_1")));
    assert_eq!(query.from, [pattern("root.test.g_0.d_1")]);
    assert_eq!(query.order, [(SortKey::Time, true)]);
    assert_eq!((query.limit, query.offset), (Some(10), 2));
    let Some(TreeExpr::And(parts)) = query.condition else {
        panic!("{query:?}");
    };
    let path = Box::new(TreeExpr::Path(pattern("root.test.g_0.d_1.s_0")));
    let five = Box::new(TreeExpr::Literal(TreeLiteral::Integer(-5)));
    assert_eq!(
        parts[2],
        TreeExpr::Compare(path, TreeComparison::Greater, five)
    );

    let grouped = select(
        "SELECT count(s_0), MAX_VALUE(s_1) AS m FROM root.test.g_0.d_1 \
         group by ([1640966400000, 1640966650000),20000ms)  ORDER BY time desc",
    );
    let windows = grouped.windows.expect("there are windows");
    assert_eq!(
        (windows.start_ms, windows.end_ms),
        (1_640_966_400_000, 1_640_966_650_000)
    );
    assert_eq!(
        (windows.length.ms, windows.step.ms, windows.has_ends),
        (20_000, 20_000, false)
    );
    let column = &grouped.columns[1];
    assert_eq!(column.alias.as_deref(), Some("m"));
    let TreeExpr::Call(call) = &column.expr else {
        panic!("{column:?}");
    };
    assert_eq!(call.name, "MAX_VALUE");
    assert_eq!(call.aggregate(), Some(TreeAggregate::MaxValue));

    let last = select("SELECT last s_0, s_1 FROM root.test.g_0.d_1");
    assert!(last.is_last && last.columns.len() == 2);
    assert!(!select("select last from root.a.b").is_last);
}

#[test]
fn clauses_of_selects_are_read() {
    let query = select(
        "select * from root.**, root.a.* where s1 in (1, 2.5, 'x') or not (s2 is not null) \
         group by ((2022-01-01T00:00:00, 2022-01-01 + 30d], 1d, 12h), level = 1, 2 \
         fill(previous) slimit 3 soffset 1 align by device; ",
    );
    let windows = query.windows.expect("there are windows");
    assert_eq!(windows.start_ms, 1_640_966_400_000);
    assert!(windows.has_ends && windows.step.ms == 43_200_000);
    assert_eq!(query.levels, [1, 2]);
    assert!(query.is_aligned_by_device);
    assert_eq!((query.series_limit, query.series_offset), (Some(3), 1));
    assert_eq!(query.fill, Some(TreeFill::Previous(None)));
    assert_eq!(
        select("select s1 from root.a fill(0)").fill,
        Some(TreeFill::Constant(TreeLiteral::Integer(0)))
    );
    let between = select("select s from root.a where time not between 1 and 2 and s like 'a%'");
    assert!(matches!(between.condition, Some(TreeExpr::And(parts)) if parts.len() == 2));
}

#[test]
fn times_have_zones() {
    for (text, ms) in [
        ("2022-01-01T00:00:00", 1_640_966_400_000),
        ("2022-01-01 00:00:00.5Z", 1_640_995_200_500),
        ("2022/1/1T08:00:00+08:00", 1_640_995_200_000),
        ("2022-01-01", 1_640_966_400_000),
        ("now()", 1_000_000),
        ("now() + 1s - 2ms", 1_000_998),
    ] {
        let statement = parsed(&format!("delete from root.a.b where time >= {text}"));
        assert_eq!(
            statement,
            TreeStatement::Delete(vec![pattern("root.a.b")], (ms, i64::MAX))
        );
    }
    let range = parsed("delete from root.a.b where time > 1 and 5 >= time");
    assert_eq!(
        range,
        TreeStatement::Delete(vec![pattern("root.a.b")], (2, 5))
    );
}

#[test]
fn inserts_are_read() {
    let TreeStatement::Insert(insert) = parsed(
        "insert into root.test.g_0.d_0(timestamp,s_0,s_1,s_2,`a b`) aligned \
         values(1640966405000,true,6,0.5,'it''s'),(2,null,-7,1e3,\"x\")",
    ) else {
        panic!("it is an INSERT");
    };
    assert_eq!(insert.device, path("root.test.g_0.d_0"));
    assert_eq!(insert.measurements, ["s_0", "s_1", "s_2", "a b"]);
    assert_eq!(insert.rows[0].time_ms, 1_640_966_405_000);
    let values = [
        TreeLiteral::Null,
        TreeLiteral::Integer(-7),
        TreeLiteral::Float(1000.0),
        TreeLiteral::Text("x".to_owned()),
    ];
    assert_eq!(insert.rows[1].values, values);
    let TreeStatement::Insert(now) = parsed("insert into root.a.b(s) values (X'0aff')") else {
        panic!("it is an INSERT");
    };
    assert_eq!(now.rows[0].time_ms, 1_000_000);
    assert_eq!(now.rows[0].values, [TreeLiteral::Bytes(vec![10, 255])]);
}

#[test]
fn definitions_are_read() {
    assert_eq!(
        parsed("create database root.sg"),
        TreeStatement::CreateDatabase(path("root.sg"), None)
    );
    assert_eq!(
        parsed("set storage group to root.sg"),
        TreeStatement::CreateDatabase(path("root.sg"), None)
    );
    assert_eq!(
        parsed("drop database root.test.**"),
        TreeStatement::DropDatabases(vec![pattern("root.test.**")])
    );
    assert_eq!(
        parsed("delete storage group root.test.*"),
        TreeStatement::DropDatabases(vec![pattern("root.test.*")])
    );
    let created = |text: &str| match parsed(text) {
        TreeStatement::CreateTimeseries(series) => series,
        other => panic!("{other:?}"),
    };
    let one = created(
        "create timeseries root.a.b.s(speed) with datatype=INT32, encoding=RLE, compressor=SNAPPY \
         tags('unit'='m/s', site=north) attributes(a='1')",
    );
    let [series] = one.as_slice() else {
        panic!("{one:?}");
    };
    assert_eq!(
        (&series.device, series.measurement.as_str()),
        (&path("root.a.b"), "s")
    );
    assert_eq!((series.kind, series.is_aligned), (IotDbType::Int32, false));
    assert_eq!(series.encoding.as_deref(), Some("RLE"));
    assert_eq!(series.compressor.as_deref(), Some("SNAPPY"));
    assert_eq!(series.alias.as_deref(), Some("speed"));
    assert_eq!(series.tags.len(), 2);
    assert_eq!(series.attributes, [("a".to_owned(), "1".to_owned())]);
    let two = created(
        "CREATE ALIGNED TIMESERIES root.a.b(x FLOAT encoding=PLAIN compressor=LZ4, y TEXT)",
    );
    let names: Vec<_> = two
        .iter()
        .map(|it| (it.measurement.as_str(), it.kind))
        .collect();
    assert_eq!(names, [("x", IotDbType::Float), ("y", IotDbType::Text)]);
    assert!(two.iter().all(|series| series.is_aligned));
    assert_eq!(
        parsed("create database root.sg with ttl=1000, schema_region_group_num=1"),
        TreeStatement::CreateDatabase(path("root.sg"), Some(1000))
    );
    assert_eq!(
        parsed("set ttl to root.a 1000"),
        TreeStatement::SetTtl(path("root.a"), Some(1000))
    );
    assert_eq!(
        parsed("set ttl to root.a.** 1d"),
        TreeStatement::SetTtl(path("root.a"), Some(86_400_000))
    );
    assert_eq!(
        parsed("unset ttl to root.a"),
        TreeStatement::SetTtl(path("root.a"), None)
    );
}

#[test]
fn show_and_count_are_read() {
    let everything = || pattern("root.**");
    for (text, target) in [
        ("show databases", ShowTarget::Databases(everything())),
        (
            "show devices root.a.** with database limit 5 offset 1",
            ShowTarget::Devices(pattern("root.a.**"), true),
        ),
        (
            "SHOW TIMESERIES",
            ShowTarget::Timeseries(everything(), None),
        ),
        (
            "show child paths",
            ShowTarget::Children(pattern("root"), false),
        ),
        ("show version", ShowTarget::Version),
        ("show all ttl", ShowTarget::Ttl(everything())),
    ] {
        let TreeStatement::Show { target: found, .. } = parsed(text) else {
            panic!("{text} shows something");
        };
        assert_eq!(found, target, "{text}");
    }
    assert_eq!(
        parsed("count timeseries root.** group by level = 2"),
        TreeStatement::Count(ShowTarget::Timeseries(everything(), Some(2)))
    );
    assert_eq!(
        parsed("count nodes root.a.** level=1"),
        TreeStatement::Count(ShowTarget::Nodes(pattern("root.a.**"), 1))
    );
}

#[test]
fn faults_have_codes_and_places() {
    for (text, code) in [
        ("", StatusCode::SQL_PARSE),
        ("selec s from root.a", StatusCode::SQL_PARSE),
        ("select s from root.a where", StatusCode::SQL_PARSE),
        ("select s from root.a.b x", StatusCode::SQL_PARSE),
        ("select s from a", StatusCode::ILLEGAL_PATH),
        ("select s + from root.a", StatusCode::SQL_PARSE),
        ("select f(s from root.a", StatusCode::SQL_PARSE),
        ("select s not 1 from root.a", StatusCode::SQL_PARSE),
        (
            "select count(s) from root.a group by ([2, 1), 1s)",
            StatusCode::SEMANTIC,
        ),
        (
            "select count(s) from root.a group by ([1, 2), 0s)",
            StatusCode::SEMANTIC,
        ),
        ("delete from root.a.b where s > 1", StatusCode::SEMANTIC),
        (
            "insert into root.a.b(time, s) values (1, 2, 3)",
            StatusCode::SEMANTIC,
        ),
        ("create user u 'p'", StatusCode::UNSUPPORTED),
        ("show pipes", StatusCode::UNSUPPORTED),
        (
            "insert into root.a.b(time, s) values (99999999999999999999, 3)",
            StatusCode::SQL_PARSE,
        ),
    ] {
        let fault = parse(text).expect_err(text);
        assert_eq!(fault.code, code, "{text}: {fault}");
    }
    let fault = parse("select s\nfrom root.a where time >> 3").expect_err("it is wrong");
    assert!(fault.message.contains("line 2:"), "{fault}");
    let deep = format!("select s from root.a where {}1 = 1", "(".repeat(10_000));
    assert_eq!(
        parse(&deep).expect_err("it is too deep").code,
        StatusCode::SQL_PARSE
    );
    let deep = format!("select s from root.a where {}s = 1", "not ".repeat(10_000));
    assert_eq!(
        parse(&deep).expect_err("it is too deep").code,
        StatusCode::SQL_PARSE
    );
}

#[test]
fn expressions_are_names_of_columns() {
    for (text, name) in [
        ("s1+ 1", "s1 + 1"),
        ("(s1 + s2)*-2", "(s1 + s2) * -2"),
        ("s1 - (s2 - s3)", "s1 - (s2 - s3)"),
        ("-s1", "-s1"),
        ("count( * )", "count(*)"),
        ("avg(s1)/2.5", "avg(s1) / 2.5"),
        (
            "s1>1 and not s2 or s3 is not null",
            "s1 > 1 & !s2 | !(s3 IS NULL)",
        ),
        (
            "diff(s1, 'ignoreNull'='false')",
            "diff(s1, \"ignoreNull\"=\"false\")",
        ),
        ("cast(s1 as int32)", "cast(s1 AS INT32)"),
        ("time", "Time"),
        ("root.a.b.s", "root.a.b.s"),
        ("s1 in (1, 2)", "s1 IN (1,2)"),
    ] {
        let query = select(&format!("select {text} from root.a"));
        assert_eq!(query.columns[0].expr.to_string(), name, "{text}");
        let again = select(&format!("select {name} from root.a"));
        assert_eq!(again.columns[0].expr, query.columns[0].expr, "{name}");
    }
    let having = select("select count(s) from root.a group by ([0, 9), 1ms) having count(s) > 2");
    assert!(matches!(having.having, Some(TreeExpr::Compare(..))));
    let long = format!("select s{} from root.a", " + 1".repeat(1000));
    assert_eq!(
        parse(&long).expect_err("it is too long").code,
        StatusCode::SQL_PARSE
    );
}

#[test]
fn texts_become_values() {
    assert_eq!(TreeLiteral::from_text("TRUE"), TreeLiteral::Boolean(true));
    assert_eq!(TreeLiteral::from_text("-3"), TreeLiteral::Integer(-3));
    assert_eq!(TreeLiteral::from_text("2.5"), TreeLiteral::Float(2.5));
    assert_eq!(
        TreeLiteral::from_text("inf"),
        TreeLiteral::Text("inf".to_owned())
    );
    assert_eq!(
        TreeLiteral::from_text("'a'"),
        TreeLiteral::Text("a".to_owned())
    );
    assert_eq!(
        TreeLiteral::from_text("'"),
        TreeLiteral::Text("'".to_owned())
    );
}

/// Pieces of which statements consist.
const PIECES: &[&str] = &[
    "select ",
    "last ",
    "s1",
    "*",
    "**",
    "root",
    ".",
    ",",
    "(",
    ")",
    "[",
    " from ",
    " where ",
    "time",
    "=",
    ">",
    "-",
    "1",
    "2.5",
    "1e9",
    "2022-01-01",
    "T00:00:00",
    "now()",
    " and ",
    " or ",
    " not ",
    " in ",
    "'a'",
    "'",
    "`",
    " group by ",
    "1d",
    "1mo",
    "level",
    " fill(",
    " order by ",
    " limit ",
    "insert into ",
    " values",
    "delete ",
    "show ",
    "devices",
    "count ",
    "timeseries ",
    "é",
    "--",
    "/*",
    " is null",
    " like ",
    "X'0",
    "null",
];

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_pieces_panic(pieces in proptest::collection::vec(0..PIECES.len(), 0..30)) {
        let text: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
        let _ = parse(&text);
    }

    #[test]
    fn paths_read_what_they_print(nodes in proptest::collection::vec("[a-z0-9`.*_ é-]{1,8}", 1..6)) {
        let path = TreePath::from_nodes(nodes);
        prop_assert_eq!(TreePath::parse(&path.to_string()), Ok(path.clone()));
        let text = format!("delete from root.{path}");
        let full = TreePath::parse(&format!("root.{path}")).expect("it is a path");
        let range = (i64::MIN, i64::MAX);
        prop_assert_eq!(parse(&text), Ok(TreeStatement::Delete(vec![PathPattern::for_path(&full)], range)));
        let pattern = PathPattern::for_path(&full);
        prop_assert!(pattern.matches(full.nodes()));
    }
}
