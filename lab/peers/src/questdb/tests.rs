//! Tables, rows and questions as QuestDB gets them.

use super::question::statement;
use super::*;
use marigram_lab::data::{Column, FieldKind, Rows, SECOND_NS, TagKind, Values};
use marigram_lab::question::{Aggregate, Ask, Cell, Devices, Select, Selection};
use marigram_lab::target::{Body, Reply};

fn table() -> Table {
    let text = |text: &str| Some(text.to_owned());
    Table::new(
        "t",
        &[
            ("number", TagKind::Integer),
            ("name", TagKind::Text),
            ("site", TagKind::Text),
        ],
        1,
        &[("f", FieldKind::F32), ("b", FieldKind::Bool)],
        vec![
            vec![text("7"), text("d7"), text("n")],
            vec![None, text("d8"), None],
        ],
    )
}

#[test]
fn numeric_tags_are_integer_columns() {
    assert_eq!(
        schema::create(&table()),
        "CREATE TABLE t (ts TIMESTAMP_NS, number INT, name SYMBOL CAPACITY 2, \
         site SYMBOL CAPACITY 2, f FLOAT, b BOOLEAN) TIMESTAMP(ts) PARTITION BY DAY WAL \
         DEDUP UPSERT KEYS(ts, name)"
    );
    let rows = Rows {
        table: 0,
        series: vec![0, 1],
        times: vec![5, 6],
        columns: vec![
            Column {
                values: Values::F32(vec![1.5, 2.0]),
                present: None,
            },
            Column {
                values: Values::Bool(vec![true, false]),
                present: Some(vec![true, false]),
            },
        ],
    };
    let tables: Arc<[Table]> = vec![table()].into();
    let mut session = session::QuestDbSession::new("http://127.0.0.1:1", &tables);
    let payload = session.encode(&rows).expect("rows");
    assert_eq!((payload.rows, payload.points), (2, 3));
    let Body::Bytes(text) = payload.body else {
        panic!("bytes for the wire");
    };
    assert_eq!(
        String::from_utf8(text).expect("text"),
        "t,name=d7,site=n number=7i,f=1.5,b=true 5\nt,name=d8 f=2 6\n"
    );
}

#[test]
fn statements_suit_its_types() {
    let table = table();
    let all = |function| Select::all(0, Selection::Aggregates(vec![(function, 0), (function, 1)]));
    let sum = Select {
        devices: Devices::Below(0, 9),
        bucket_ns: Some(60 * SECOND_NS),
        ..all(Aggregate::Sum)
    };
    assert_eq!(
        statement(&table, &sum),
        "SELECT timestamp_floor('60s', ts), sum(f::double), sum(CAST(b AS INT)) FROM t \
         WHERE number < 9 GROUP BY timestamp_floor('60s', ts)"
    );
    let tenths = Select {
        bucket_ns: Some(7_500_000_000),
        ..all(Aggregate::Count)
    };
    let tenths = statement(&table, &tenths);
    assert!(tenths.contains("timestamp_floor('7500T', ts)"), "{tenths}");
    assert_eq!(
        statement(&table, &all(Aggregate::Count)),
        "SELECT count(f), count(*) FROM t"
    );
    let last = Select {
        devices: Devices::In(1, vec!["7".to_owned()]),
        ..Select::all(0, Selection::Last(vec![0]))
    };
    assert_eq!(
        statement(&table, &last),
        "SELECT name, ts, f FROM t WHERE name = '7' LATEST ON ts PARTITION BY name"
    );
}

#[test]
fn answers_are_decoded_by_what_was_asked() {
    let tables: Arc<[Table]> = vec![table()].into();
    let mut session = session::QuestDbSession::new("http://127.0.0.1:1", &tables);
    let question = Question {
        name: "q".to_owned(),
        ask: Ask::Select(Select::all(0, Selection::Rows(vec![0, 1]))),
    };
    let reply = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
    let text = r#"{"dataset":[["d7","1970-01-01T00:00:01.000000002Z",null,true]],"count":1}"#;
    let answer = session.decode(&question, reply(text)).expect("an answer");
    let time = SECOND_NS + 2;
    assert_eq!(
        answer.rows,
        [[
            Cell::Text("d7".to_owned()),
            Cell::Time(time),
            Cell::Null,
            Cell::Number(1.0)
        ]]
    );
    let short = r#"{"dataset":[["d7"]]}"#;
    session
        .decode(&question, reply(short))
        .expect_err("columns are missing");
}

#[test]
fn an_address_is_refused() {
    let settings = Settings {
        url: Some("http://127.0.0.1:9000".to_owned()),
        ..Settings::default()
    };
    assert!((KIND.make)(&settings).is_err());
}
