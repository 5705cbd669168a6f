//! Statements and their trees; texts that are none.

use super::*;
use crate::ast::{
    TaosExpr, TaosFill, TaosFrom, TaosJoinKind, TaosLiteral, TaosOperator, TaosQuery,
    TaosQueryBody, TaosSelect, TaosShow, TaosTableChange, TaosTableKind, TaosWindow,
};
use crate::duration::TimeShift;
use crate::error::TaosCode;
use crate::types::TaosType;
use crate::value::{TaosMoment, TaosValue};
use proptest::prelude::*;

fn parsed(sql: &str) -> TaosStatement {
    parse_statement(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn query_of(sql: &str) -> TaosQuery {
    match parsed(sql) {
        TaosStatement::Query(query) => *query,
        other => panic!("{sql}: {other:?}"),
    }
}

fn select_of(sql: &str) -> TaosSelect {
    match query_of(sql).body {
        TaosQueryBody::Select(select) => *select,
        other @ TaosQueryBody::Union { .. } => panic!("{sql}: {other:?}"),
    }
}

fn code_of(sql: &str) -> TaosCode {
    match parse_statement(sql) {
        Ok(statement) => panic!("{sql}: {statement:?}"),
        Err(error) => error.code,
    }
}

#[test]
fn databases_are_created_with_options() {
    let sql =
        "CREATE DATABASE IF NOT EXISTS Power PRECISION 'us' KEEP 365d,3650d BUFFER 16 WAL_LEVEL 1;";
    let TaosStatement::CreateDatabase {
        name,
        if_not_exists,
        options,
    } = parsed(sql)
    else {
        panic!("it creates a database");
    };
    assert_eq!((name.as_str(), if_not_exists), ("power", true));
    assert_eq!(options[0].name, "precision");
    assert_eq!(options[0].values, ["us"]);
    assert_eq!(options[1].values, ["365d", "3650d"]);
    assert_eq!(options.len(), 4);
    assert!(matches!(
        parsed("drop database if exists p"),
        TaosStatement::DropDatabase { .. }
    ));
    assert!(matches!(parsed("use `P`"), TaosStatement::UseDatabase(name) if name == "P"));
    assert!(matches!(
        parsed("alter database p cachemodel 'both'"),
        TaosStatement::AlterDatabase { .. }
    ));
}

#[test]
fn tables_are_created_with_columns_and_tags() {
    let sql = "create stable if not exists power.meters (ts timestamp, current float, n int unsigned, \
               s binary(16)) tags (location nchar(64), groupid int) comment 'x' sma(current)";
    let TaosStatement::CreateTable(create) = parsed(sql) else {
        panic!("it creates a table");
    };
    assert_eq!(create.name.database.as_deref(), Some("power"));
    let kinds: Vec<TaosType> = create.columns.iter().map(|column| column.kind).collect();
    assert_eq!(
        kinds,
        [
            TaosType::Timestamp,
            TaosType::Float,
            TaosType::UInt,
            TaosType::VarChar(16)
        ]
    );
    assert_eq!(create.tags[0].kind, TaosType::NChar(64));
    assert_eq!(
        code_of("create table t (a int, b int)"),
        TaosCode::InvalidFirstColumn
    );
    assert_eq!(
        code_of("create table t (ts timestamp)"),
        TaosCode::InvalidColumnCount
    );
    assert_eq!(
        code_of("create table t (ts timestamp, a int, A int)"),
        TaosCode::DuplicatedColumn
    );
    assert_eq!(
        code_of("create table t (ts timestamp, a binary(0))"),
        TaosCode::InvalidLength
    );
    assert_eq!(
        code_of("create stable t (ts timestamp, a int)"),
        TaosCode::IncompleteSql
    );
    assert_eq!(
        code_of("create table t (ts timestamp, a decimal(10,2))"),
        TaosCode::NotSupported
    );
}

#[test]
fn several_sub_tables_are_created_at_once() {
    let sql = "create table d1 using meters tags ('a', 1) if not exists d2 using p.meters (location) \
               tags (NULL) `D3` using meters tags (\"c\", -3)";
    let TaosStatement::CreateSubTables(tables) = parsed(sql) else {
        panic!("it creates sub-tables");
    };
    assert_eq!(tables.len(), 3);
    assert_eq!(tables[0].tags[1], TaosValue::Integer(1));
    assert!(tables[1].if_not_exists);
    assert_eq!(
        tables[1].tag_names.as_deref(),
        Some(&["location".to_owned()][..])
    );
    assert_eq!(tables[2].name.name, "D3");
    assert_eq!(tables[2].tags[1], TaosValue::Integer(-3));
}

#[test]
fn tables_change() {
    let change = |sql: &str| match parsed(sql) {
        TaosStatement::AlterTable(alter) => alter.change,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        change("alter stable t add column c double"),
        TaosTableChange::AddColumn(_)
    ));
    assert!(
        matches!(change("alter table t drop tag g"), TaosTableChange::DropTag(name) if name == "g")
    );
    assert!(matches!(
        change("alter table t modify column c nchar(20)"),
        TaosTableChange::ModifyColumn(column) if column.kind == TaosType::NChar(20)
    ));
    assert!(matches!(
        change("alter stable t rename tag a b"),
        TaosTableChange::RenameTag(..)
    ));
    assert!(matches!(
        change("alter table d1 set tag location = 'x', tag groupid = 2"),
        TaosTableChange::SetTags(tags) if tags.len() == 2
    ));
    assert_eq!(change("alter table t ttl 10"), TaosTableChange::Options);
    assert_eq!(code_of("alter table t"), TaosCode::IncompleteSql);
}

/// The clauses of an INSERT with their rows.
fn rows_of(sql: &str) -> Vec<(String, Vec<Vec<TaosValue<'static>>>)> {
    let TaosStatement::Insert(insert) = parsed(sql) else {
        panic!("{sql} inserts");
    };
    let mut clauses = Vec::new();
    for clause in &insert.clauses {
        let mut reader = InsertedRows::new(sql, clause).unwrap();
        let (mut row, mut rows) = (Vec::new(), Vec::new());
        while reader.next_row(&mut row).unwrap() {
            rows.push(row.iter().cloned().map(TaosValue::into_owned).collect());
        }
        assert_eq!(rows.len(), clause.row_count, "{sql}");
        clauses.push((clause.table.name.clone(), rows));
    }
    clauses
}

#[test]
fn rows_are_read_from_the_text() {
    let sql = "INSERT INTO d1 USING meters (location) TAGS ('x') (ts, c) VALUES (now, 1.5) (now+1a-2s, NULL), \
               ('2024-01-01', -1) db.d2 VALUES (1700000000000, true);";
    let clauses = rows_of(sql);
    assert_eq!(clauses.len(), 2);
    let (name, rows) = &clauses[0];
    assert_eq!((name.as_str(), rows.len()), ("d1", 3));
    assert_eq!(
        rows[0][0],
        TaosValue::Moment(TaosMoment::Now, TimeShift::default())
    );
    let shift = TimeShift {
        months: 0,
        ns: 1_000_000 - 2_000_000_000,
    };
    assert_eq!(
        rows[1],
        [TaosValue::Moment(TaosMoment::Now, shift), TaosValue::Null]
    );
    assert_eq!(rows[2][1], TaosValue::Integer(-1));
    assert_eq!(clauses[1].1[0][1], TaosValue::Bool(true));
    let TaosStatement::Insert(insert) = parsed(sql) else {
        panic!("it inserts");
    };
    assert_eq!(
        insert.clauses[0].columns.as_deref(),
        Some(&["ts".to_owned(), "c".to_owned()][..])
    );
    assert!(insert.clauses[0].using.is_some());
    assert_eq!(code_of("insert into d1 values"), TaosCode::IncompleteSql);
    assert_eq!(
        code_of("insert into d1 values (1, 2"),
        TaosCode::IncompleteSql
    );
    assert_eq!(
        code_of("insert into d1 values (1, x)"),
        TaosCode::SyntaxError
    );
    assert_eq!(
        code_of("insert into d1 file '/etc/passwd'"),
        TaosCode::NotSupported
    );
}

#[test]
fn the_clauses_of_a_select_are_read() {
    let sql = "select _wstart, tbname, avg(current) + 1 as a, count(*) from power.meters m \
               where ts >= '2024-01-01' and ts < now - 1d and location like 'a%' \
               partition by tbname, groupid g interval(1m, 5s) sliding(30s) fill(value, 0, 1) \
               having count(*) > 1 order by _wstart desc, 2 slimit 3 soffset 1 limit 10, 20";
    let query = query_of(sql);
    assert_eq!(
        query
            .partition_limit
            .map(|limit| (limit.count, limit.offset)),
        Some((3, 1))
    );
    assert_eq!(
        query.limit.map(|limit| (limit.count, limit.offset)),
        Some((20, 10))
    );
    assert_eq!(query.order_by.len(), 2);
    assert!(query.order_by[0].descending);
    let select = select_of(sql);
    let names: Vec<&str> = select.items.iter().map(|item| item.text.as_str()).collect();
    assert_eq!(names, ["_wstart", "tbname", "avg(current) + 1", "count(*)"]);
    assert_eq!(select.items[2].alias.as_deref(), Some("a"));
    assert!(matches!(&select.condition, Some(TaosExpr::All(all)) if all.len() == 3));
    assert_eq!(select.partition_by[1].alias.as_deref(), Some("g"));
    assert!(matches!(
        select.window,
        Some(TaosWindow::Interval { width, offset: Some(_), sliding: Some(_) }) if width.count == 1
    ));
    assert!(
        matches!(&select.fill, Some(TaosFill::Values { values, forced: false }) if values.len() == 2)
    );
    assert!(matches!(
        select.from,
        Some(TaosFrom::Table { alias: Some(_), .. })
    ));
}

#[test]
fn windows_ranges_and_joins_are_read() {
    let window = |clause: &str| select_of(&format!("select count(*) from t {clause}")).window;
    assert!(matches!(
        window("session(ts, 10s)"),
        Some(TaosWindow::Session { .. })
    ));
    assert!(matches!(
        window("state_window(v)"),
        Some(TaosWindow::State(_))
    ));
    let event = window("event_window start with a > 1 end with a < 1");
    assert!(matches!(event, Some(TaosWindow::Event { .. })));
    assert!(matches!(
        window("count_window(10, 2)"),
        Some(TaosWindow::Count {
            count: 10,
            sliding: Some(2)
        })
    ));
    let interp = select_of(
        "select _irowts, interp(c) from t range('2024-01-01', now) every(1s) fill(linear)",
    );
    assert!(interp.range.is_some() && interp.every.is_some());
    assert_eq!(interp.fill, Some(TaosFill::Linear));
    let join = select_of("select a.ts, b.v from t1 a left join t2 b on a.ts = b.ts where a.v > 1");
    let Some(TaosFrom::Join(join)) = join.from else {
        panic!("it joins");
    };
    assert_eq!(join.kind, TaosJoinKind::Left);
    assert!(join.condition.is_some());
    assert_eq!(
        code_of("select * from t1 asof join t2"),
        TaosCode::NotSupported
    );
    let union = query_of("select a from t union all (select b from u limit 1) order by 1 limit 5");
    assert!(
        matches!(union.body, TaosQueryBody::Union { rest, .. } if rest.len() == 1 && rest[0].0)
    );
    assert_eq!(union.limit.map(|limit| limit.count), Some(5));
    let limited = query_of("(select a from t limit 1) limit 2");
    assert!(matches!(limited.body, TaosQueryBody::Union { .. }));
}

#[test]
fn expressions_follow_precedence() {
    let item = |text: &str| select_of(&format!("select {text}")).items.remove(0).expr;
    let TaosExpr::Binary {
        operator, right, ..
    } = item("1 + 2 * 3")
    else {
        panic!("a sum");
    };
    assert_eq!(operator, TaosOperator::Add);
    assert!(matches!(
        *right,
        TaosExpr::Binary {
            operator: TaosOperator::Multiply,
            ..
        }
    ));
    assert_eq!(item("-5"), TaosExpr::Literal(TaosLiteral::Integer(-5)));
    assert!(matches!(item("not a = 1 or b is not null"), TaosExpr::Any(any) if any.len() == 2));
    assert!(matches!(
        item("a not in (1, 2)"),
        TaosExpr::In { negated: true, .. }
    ));
    assert!(matches!(
        item("a between 1 and 2"),
        TaosExpr::Between { .. }
    ));
    assert!(matches!(
        item("cast(a as binary(10))"),
        TaosExpr::Cast {
            kind: TaosType::VarChar(10),
            ..
        }
    ));
    assert!(matches!(
        item("case when a then 1 else 2 end"),
        TaosExpr::Case { .. }
    ));
    assert!(matches!(
        item("info -> 'key'"),
        TaosExpr::Binary {
            operator: TaosOperator::JsonValue,
            ..
        }
    ));
    assert_eq!(item("now()"), TaosExpr::Literal(TaosLiteral::Now));
    assert_eq!(item("m.*"), TaosExpr::Star(Some("m".to_owned())));
    assert_eq!(item("0x10"), TaosExpr::Literal(TaosLiteral::Integer(16)));
    assert!(matches!(item("server_version()"), TaosExpr::Call(call) if call.arguments.is_empty()));
}

#[test]
fn what_is_shown_is_read() {
    let shown = |sql: &str| match parsed(sql) {
        TaosStatement::Show(show) => show,
        other => panic!("{other:?}"),
    };
    assert_eq!(shown("show databases"), TaosShow::Databases);
    let tables = TaosShow::Tables {
        database: Some("db".to_owned()),
        kind: TaosTableKind::Child,
        pattern: Some("d%".to_owned()),
    };
    assert_eq!(shown("SHOW CHILD TABLES FROM db LIKE 'd%'"), tables);
    assert_eq!(shown("show child db.tables like 'd%'"), tables);
    assert!(matches!(
        shown("show db.stables"),
        TaosShow::Stables {
            database: Some(_),
            ..
        }
    ));
    assert!(
        matches!(shown("show tags from d1 from db"), TaosShow::Tags(name) if name.database.is_some())
    );
    assert!(
        matches!(shown("show table tags a, b from meters"), TaosShow::TableTags { tags, .. } if tags.len() == 2)
    );
    assert!(matches!(
        shown("show create stable db.meters"),
        TaosShow::CreateTable(_)
    ));
    assert!(matches!(
        shown("show local variables like 'x'"),
        TaosShow::Variables { .. }
    ));
    assert_eq!(
        shown("show cluster alive"),
        TaosShow::System("cluster alive".to_owned())
    );
    assert!(matches!(parsed("desc db.t"), TaosStatement::Describe(_)));
    assert!(matches!(
        parsed("delete from t where ts < now"),
        TaosStatement::Delete { .. }
    ));
    assert_eq!(parsed("flush database db"), TaosStatement::Maintain);
}

#[test]
fn errors_show_where_the_text_goes_wrong() {
    let error = parse_statement("select * form t").unwrap_err();
    assert_eq!(error.code, TaosCode::SyntaxError);
    let error = parse_statement("wrong sql").unwrap_err();
    assert_eq!(error.to_string(), "syntax error near \"wrong sql\"");
    assert_eq!(code_of("select"), TaosCode::IncompleteSql);
    assert_eq!(code_of(""), TaosCode::IncompleteSql);
    assert_eq!(code_of("select 1; select 2"), TaosCode::SyntaxError);
    assert_eq!(
        code_of("create topic t as select 1"),
        TaosCode::NotSupported
    );
    assert_eq!(code_of("grant all on x to y"), TaosCode::NotSupported);
}

#[test]
fn depth_has_a_limit() {
    for (open, close) in [
        ("(", ")"),
        ("abs(", ")"),
        ("not ", ""),
        ("- ", ""),
        ("case when ", " then 1 end"),
    ] {
        let sql = |depth: usize| {
            format!(
                "select {}1{} from t",
                open.repeat(depth),
                close.repeat(depth)
            )
        };
        assert!(parse_statement(&sql(40)).is_ok(), "{open}");
        assert!(parse_statement(&sql(100_000)).is_err(), "{open}");
    }
    let queries = format!(
        "{}t{}",
        "select * from (".repeat(100_000),
        ")".repeat(100_000)
    );
    assert!(parse_statement(&queries).is_err());
    let joins = format!("select * from {}t", "(".repeat(100_000));
    assert!(parse_statement(&joins).is_err());
    let sum = format!("select 1{}", " + 1".repeat(100_000));
    assert!(parse_statement(&sum).is_err());
    let many = format!("select * from t where a = 1{}", " or a = 1".repeat(100_000));
    assert!(parse_statement(&many).is_ok(), "a list is not deep");
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse_statement(&text);
    }

    #[test]
    fn words_in_any_order_do_not_panic(words in prop::collection::vec(prop::sample::select(vec![
        "select", "from", "where", "insert", "into", "values", "using", "tags", "(", ")", ",", "*", "t",
        "a", "1", "1.5", "10s", "'x'", "\"y\"", "`z`", "and", "or", "not", "in", "between", "is", "null",
        "interval", "sliding", "fill", "partition", "by", "group", "order", "limit", "union", "all", "now",
        "+", "-", "->", ".", "create", "table", "stable", "show", "alter", "add", "column", "case", "when",
        "then", "end", "cast", "as", "int", ";", "join", "on", "=", "range", "every", "tbname", "delete",
    ]), 0..40)) {
        let text = words.join(" ");
        if let Ok(TaosStatement::Insert(insert)) = parse_statement(&text) {
            for clause in &insert.clauses {
                let mut rows = InsertedRows::new(&text, clause).unwrap();
                let (mut row, mut count) = (Vec::new(), 0);
                while rows.next_row(&mut row).unwrap() {
                    count += 1;
                }
                prop_assert_eq!(count, clause.row_count);
            }
        }
    }

    #[test]
    fn no_prefix_panics(cut in 0_usize..400) {
        let sql = "insert into d1 using meters tags ('日本', 1) values (now + 1s, 'it''s\\'') d2 values (1, 2)";
        let query = "select _wstart, last(*) from (select * from t where a -> 'b' = 1) partition by tbname \
                     session(ts, 1s) order by 1 limit 1";
        for text in [sql, query] {
            let end = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let _ = parse_statement(&text[..end]);
        }
    }
}
