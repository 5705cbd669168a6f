//! Bytes of answers, as InfluxDB 1.6.7 gave them for the same rows.

use super::*;
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use arrow::datatypes::{Field, Schema};
use marigram_service::ROLE_KEY;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

type Column = (&'static str, &'static str, ArrayRef);

fn batch(columns: Vec<Column>) -> RecordBatch {
    let field = |(name, role, array): &Column| {
        let role = HashMap::from([(ROLE_KEY.to_owned(), (*role).to_owned())]);
        Field::new(*name, array.data_type().clone(), true).with_metadata(role)
    };
    let fields: Vec<_> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(.., array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn times(seconds: &[i64]) -> ArrayRef {
    let ns = seconds.iter().map(|second| second * 1_000_000_000);
    Arc::new(TimestampNanosecondArray::from_iter_values(ns))
}

/// `SELECT * FROM cpu`
fn cpu() -> RecordBatch {
    let names = texts(&[Some("cpu"); 3]);
    let flags = BooleanArray::from(vec![Some(true), Some(false), None]);
    let integers = Int64Array::from(vec![Some(7), Some(8), Some(-9)]);
    let floats = Float64Array::from(vec![1.5, 2.0, 3e22]);
    batch(vec![
        ("iox::measurement", "measurement", names),
        ("time", "time", times(&[1, 2, 3])),
        ("b", "field", Arc::new(flags)),
        ("host", "field", texts(&[Some("a"), Some("a"), Some("b")])),
        ("i", "field", Arc::new(integers)),
        (
            "s",
            "field",
            texts(&[Some("one"), Some("two <&> \"q\" é"), None]),
        ),
        ("v", "field", Arc::new(floats)),
        ("zone", "field", texts(&[Some("x"), Some("x"), Some("y")])),
    ])
}

/// `SELECT v FROM cpu GROUP BY host, zone`
fn grouped() -> RecordBatch {
    let floats = Float64Array::from(vec![5.0, 2.0, 1.5, 2.0]);
    batch(vec![
        ("iox::measurement", "measurement", texts(&[Some("cpu"); 4])),
        ("zone", "tag", texts(&[None, None, Some("x"), Some("x")])),
        ("host", "tag", texts(&[None, None, Some("a"), Some("a")])),
        ("time", "time", times(&[6, 9, 1, 2])),
        ("v", "field", Arc::new(floats)),
    ])
}

/// `SELECT v FROM cpu`
fn values() -> RecordBatch {
    let floats = Float64Array::from(vec![1.5, 2.0, 3e22, 3e-7, 4.0]);
    batch(vec![
        ("iox::measurement", "measurement", texts(&[Some("cpu"); 5])),
        ("time", "time", times(&[1, 2, 3, 4, 5])),
        ("v", "field", Arc::new(floats)),
    ])
}

/// `SELECT * FROM mem`
fn mem() -> RecordBatch {
    batch(vec![
        ("iox::measurement", "measurement", texts(&[Some("mem")])),
        (
            "time",
            "time",
            Arc::new(TimestampNanosecondArray::from(vec![1_500_000_123])),
        ),
        ("free", "field", Arc::new(Float64Array::from(vec![0.1]))),
        (
            "used",
            "field",
            Arc::new(Int64Array::from(vec![9_007_199_254_740_993])),
        ),
    ])
}

/// What a statement gives: rows, or an error.
type StatementResult = Result<Option<RecordBatch>, &'static str>;

fn answer(mut encoder: AnswerEncoder, statements: Vec<StatementResult>) -> Vec<u8> {
    for (id, given) in statements.into_iter().enumerate() {
        encoder.begin_statement(id);
        if let Ok(Some(batch)) = &given {
            let layout = SeriesLayout::new(&batch.schema());
            // Batches end where they like.
            for row in 0..batch.num_rows() {
                encoder.rows(&layout, &batch.slice(row, 1)).unwrap();
            }
        }
        encoder.end_statement(&[], given.err());
    }
    encoder.finish();
    encoder.take()
}

fn encoder(format: InfluxFormat, epoch: &str, chunk_rows: Option<usize>) -> AnswerEncoder {
    let times = TimeForm::from_parameter(epoch);
    AnswerEncoder::new(form(format, false, times), chunk_rows)
}

fn json(statements: Vec<StatementResult>) -> String {
    let bytes = answer(encoder(InfluxFormat::Json, "", None), statements);
    String::from_utf8(bytes).unwrap()
}

fn csv(statements: Vec<StatementResult>) -> String {
    let bytes = answer(encoder(InfluxFormat::Csv, "", None), statements);
    String::from_utf8(bytes).unwrap()
}

fn msgpack(statements: Vec<StatementResult>) -> String {
    let bytes = answer(encoder(InfluxFormat::Msgpack, "", None), statements);
    hex(&bytes)
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn rows_as_json() {
    assert_eq!(
        json(vec![Ok(Some(cpu()))]),
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"cpu\",\"columns\":[\"time\",\
         \"b\",\"host\",\"i\",\"s\",\"v\",\"zone\"],\"values\":[[\"1970-01-01T00:00:01Z\",true,\
         \"a\",7,\"one\",1.5,\"x\"],[\"1970-01-01T00:00:02Z\",false,\"a\",8,\
         \"two \\u003c\\u0026\\u003e \\\"q\\\" é\",2,\"x\"],[\"1970-01-01T00:00:03Z\",null,\"b\",\
         -9,null,3e+22,\"y\"]]}]}]}\n"
    );
    assert_eq!(
        json(vec![Ok(Some(grouped()))]),
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"cpu\",\"tags\":{\"host\":\"\",\
         \"zone\":\"\"},\"columns\":[\"time\",\"v\"],\"values\":[[\"1970-01-01T00:00:06Z\",5],\
         [\"1970-01-01T00:00:09Z\",2]]},{\"name\":\"cpu\",\"tags\":{\"host\":\"a\",\"zone\":\
         \"x\"},\"columns\":[\"time\",\"v\"],\"values\":[[\"1970-01-01T00:00:01Z\",1.5],\
         [\"1970-01-01T00:00:02Z\",2]]}]}]}\n"
    );
    let odd = texts(&[Some("a\\tb\tc\u{1}\u{2028}\u{7f}\u{8}\u{c}\nx")]);
    let odd = batch(vec![("time", "time", times(&[0])), ("v", "field", odd)]);
    let odd = json(vec![Ok(Some(odd))]);
    assert!(odd.contains("\"a\\\\tb\\tc\\u0001\\u2028\u{7f}\\u0008\\u000c\\nx\"]"));
}

#[test]
fn statements_without_rows_as_json() {
    assert_eq!(json(vec![]), "{}\n");
    assert_eq!(
        json(vec![Ok(None)]),
        "{\"results\":[{\"statement_id\":0}]}\n"
    );
    assert_eq!(
        json(vec![Ok(None), Err("undefined function foo()")]),
        "{\"results\":[{\"statement_id\":0},{\"statement_id\":1,\"error\":\"undefined function \
         foo()\"}]}\n"
    );
    // SHOW DATABASES where there are none, and SHOW USERS.
    let none = batch(vec![
        (
            "iox::measurement",
            "measurement",
            texts(&[Some("databases")]),
        ),
        ("name", "field", texts(&[None])),
    ]);
    assert_eq!(
        json(vec![Ok(Some(none))]),
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"databases\",\"columns\":\
         [\"name\"]}]}]}\n"
    );
    let users = batch(vec![
        ("user", "field", texts(&[None])),
        ("admin", "field", texts(&[None])),
    ]);
    assert_eq!(
        json(vec![Ok(Some(users))]),
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"columns\":[\"user\",\"admin\"]}]}]}\n"
    );
}

#[test]
fn columns_that_a_series_does_not_have_are_left_out_where_the_schema_says_so() {
    let rows = batch(vec![
        (
            "iox::measurement",
            "measurement",
            texts(&[Some("build"), Some("network")]),
        ),
        ("Version", "field", texts(&[Some("1"), None])),
        ("hostname", "field", texts(&[None, Some("h")])),
    ]);
    let sparse = HashMap::from([("marigram.sparse".to_owned(), String::new())]);
    let schema = Schema::clone(&rows.schema()).with_metadata(sparse);
    let rows = RecordBatch::try_new(Arc::new(schema), rows.columns().to_vec()).unwrap();
    assert_eq!(
        json(vec![Ok(Some(rows))]),
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"build\",\"columns\":\
         [\"Version\"],\"values\":[[\"1\"]]},{\"name\":\"network\",\"columns\":[\"hostname\"],\
         \"values\":[[\"h\"]]}]}]}\n"
    );
}

#[test]
fn pretty_json_has_a_line_for_each_value() {
    let form = form(InfluxFormat::Json, true, TimeForm::Default);
    let text = answer(
        AnswerEncoder::new(form, None),
        vec![Ok(Some(mem())), Ok(None)],
    );
    assert_eq!(
        String::from_utf8(text).unwrap(),
        r#"{
    "results": [
        {
            "statement_id": 0,
            "series": [
                {
                    "name": "mem",
                    "columns": [
                        "time",
                        "free",
                        "used"
                    ],
                    "values": [
                        [
                            "1970-01-01T00:00:01.500000123Z",
                            0.1,
                            9007199254740993
                        ]
                    ]
                }
            ]
        },
        {
            "statement_id": 1
        }
    ]
}
"#
    );
}

#[test]
fn times_in_units() {
    for (epoch, time) in [
        ("n", "1500000123"),
        ("ns", "1500000123"),
        ("u", "1500000"),
        ("ms", "1500"),
        ("s", "1"),
        ("m", "0"),
        ("h", "0"),
        ("x", "1500000123"),
    ] {
        let bytes = answer(
            encoder(InfluxFormat::Json, epoch, None),
            vec![Ok(Some(mem()))],
        );
        let text = String::from_utf8(bytes).unwrap();
        let values = format!("\"values\":[[{time},0.1,9007199254740993]]");
        assert!(text.contains(&values), "{epoch}: {text}");
    }
    let csv = answer(encoder(InfluxFormat::Csv, "s", None), vec![Ok(Some(mem()))]);
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "name,tags,time,free,used\nmem,,1,0.1,9007199254740993\n"
    );
}

#[test]
fn rows_as_csv() {
    assert_eq!(
        csv(vec![Ok(Some(cpu()))]),
        "name,tags,time,b,host,i,s,v,zone\ncpu,,1000000000,true,a,7,one,1.5,x\n\
         cpu,,2000000000,false,a,8,\"two <&> \"\"q\"\" é\",2,x\n\
         cpu,,3000000000,,b,-9,,30000000000000000000000,y\n"
    );
    assert_eq!(
        csv(vec![Ok(Some(grouped())), Ok(None), Ok(Some(mem()))]),
        "name,tags,time,v\ncpu,,6000000000,5\ncpu,,9000000000,2\n\
         cpu,\"host=a,zone=x\",1000000000,1.5\ncpu,\"host=a,zone=x\",2000000000,2\n\n\
         name,tags,time,free,used\nmem,,1500000123,0.1,9007199254740993\n"
    );
    assert_eq!(csv(vec![Err("undefined function foo()")]), "");
    let odd = batch(vec![
        ("iox::measurement", "measurement", texts(&[Some("tg")])),
        ("a b", "tag", texts(&[Some("c,d")])),
        ("e=f", "tag", texts(&[Some("g h")])),
        ("time", "time", times(&[1])),
    ]);
    assert_eq!(
        csv(vec![Ok(Some(odd))]),
        "name,tags,time\ntg,\"a\\ b=c\\,d,e\\=f=g\\ h\",1000000000\n"
    );
}

#[test]
fn rows_as_messagepack() {
    assert_eq!(
        msgpack(vec![Ok(Some(cpu()))]),
        "81a7726573756c74739182ac73746174656d656e745f696400a67365726965739183a46e616d65a3637075\
         a7636f6c756d6e7397a474696d65a162a4686f7374a169a173a176a47a6f6e65a676616c7565739397c70c\
         05000000000000000100000000c3a16107a36f6e65cb3ff8000000000000a17897c70c0500000000000000\
         0200000000c2a16108ae74776f203c263e2022712220c3a9cb4000000000000000a17897c70c0500000000\
         0000000300000000c0a162f7c0cb449969368974c05ba179"
    );
    assert_eq!(
        msgpack(vec![Ok(None)]),
        "81a7726573756c74739182ac73746174656d656e745f696400a673657269657390"
    );
    assert_eq!(
        msgpack(vec![Err("undefined function foo()")]),
        "81a7726573756c74739181a56572726f72b8756e646566696e65642066756e6374696f6e20666f6f2829"
    );
    let seconds = answer(
        encoder(InfluxFormat::Msgpack, "s", None),
        vec![Ok(Some(mem()))],
    );
    let seconds = hex(&seconds);
    assert_eq!(
        seconds,
        "81a7726573756c74739182ac73746174656d656e745f696400a67365726965739183a46e616d65a36d656d\
         a7636f6c756d6e7393a474696d65a466726565a475736564a676616c756573919301cb3fb999999999999a\
         d30020000000000001"
    );
}

#[test]
fn integers_take_as_few_bytes_in_messagepack_as_they_need() {
    let numbers = [
        (127, "7f"),
        (128, "d10080"),
        (32_768, "d200008000"),
        (1 << 31, "d30000000080000000"),
        (-32, "e0"),
        (-33, "d0df"),
        (-129, "d1ff7f"),
        (-32_769, "d2ffff7fff"),
        (i64::MIN, "d38000000000000000"),
    ];
    for (number, expected) in numbers {
        let column = Arc::new(Int64Array::from(vec![number]));
        let text = msgpack(vec![Ok(Some(batch(vec![("n", "field", column)])))]);
        assert!(
            text.ends_with(&format!("9191{expected}")),
            "{number}: {text}"
        );
    }
}

#[test]
fn a_long_series_that_is_not_cut_says_that_it_is_partial() {
    let long = |count: i64| {
        let seconds: Vec<i64> = (0..count).collect();
        let length = seconds.len();
        batch(vec![
            (
                "iox::measurement",
                "measurement",
                texts(&vec![Some("cpu"); length]),
            ),
            ("time", "time", times(&seconds)),
        ])
    };
    for (count, end) in [
        (10_000, "[9999]]}]}]}\n"),
        (10_001, "[10000]],\"partial\":true}]}]}\n"),
    ] {
        let encoder = encoder(InfluxFormat::Json, "s", None);
        let bytes = answer(encoder, vec![Ok(Some(long(count)))]);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with(end), "{}", &text[text.len() - 60..]);
    }
}

#[test]
fn chunks_as_json() {
    let chunked = |statements, rows| {
        let bytes = answer(encoder(InfluxFormat::Json, "s", Some(rows)), statements);
        String::from_utf8(bytes).unwrap()
    };
    let chunk = |values: &str, more: &str| {
        format!(
            "{{\"results\":[{{\"statement_id\":0,\"series\":[{{\"name\":\"cpu\",\"columns\":\
             [\"time\",\"v\"],\"values\":[{values}]{more}}}]{more}}}]}}\n"
        )
    };
    let more = ",\"partial\":true";
    let expected =
        chunk("[1,1.5],[2,2]", more) + &chunk("[3,3e+22],[4,3e-7]", more) + &chunk("[5,4]", "");
    assert_eq!(chunked(vec![Ok(Some(values()))], 2), expected);
    // A chunk that is full at the end is the last one.
    let whole = chunked(vec![Ok(Some(values()))], 5);
    assert_eq!(whole, chunk("[1,1.5],[2,2],[3,3e+22],[4,3e-7],[5,4]", ""));
    // Each series begins a chunk; the first of two ends without being partial itself.
    let grouped = chunked(vec![Ok(Some(grouped()))], 100);
    assert_eq!(
        grouped,
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"cpu\",\"tags\":{\"host\":\"\",\
         \"zone\":\"\"},\"columns\":[\"time\",\"v\"],\"values\":[[6,5],[9,2]]}],\"partial\":true\
         }]}\n{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"cpu\",\"tags\":{\"host\":\
         \"a\",\"zone\":\"x\"},\"columns\":[\"time\",\"v\"],\"values\":[[1,1.5],[2,2]]}]}]}\n"
    );
    assert_eq!(
        chunked(vec![Ok(None), Err("undefined function foo()")], 2),
        "{\"results\":[{\"statement_id\":0}]}\n{\"results\":[{\"statement_id\":1,\"error\":\
         \"undefined function foo()\"}]}\n"
    );
}

#[test]
fn chunks_as_csv_and_messagepack() {
    let bytes = answer(
        encoder(InfluxFormat::Csv, "s", Some(2)),
        vec![Ok(Some(values()))],
    );
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "name,tags,time,v\ncpu,,1,1.5\ncpu,,2,2\ncpu,,3,30000000000000000000000\n\
         cpu,,4,0.0000003\ncpu,,5,4\n"
    );
    let bytes = answer(
        encoder(InfluxFormat::Msgpack, "", Some(2)),
        vec![Ok(Some(values().slice(0, 3)))],
    );
    let hex = hex(&bytes);
    assert_eq!(
        hex,
        "81a7726573756c74739183ac73746174656d656e745f696400a67365726965739184a46e616d65a3637075\
         a7636f6c756d6e7392a474696d65a176a676616c7565739292c70c05000000000000000100000000cb3ff8\
         00000000000092c70c05000000000000000200000000cb4000000000000000a77061727469616cc3a77061\
         727469616cc381a7726573756c74739182ac73746174656d656e745f696400a67365726965739183a46e61\
         6d65a3637075a7636f6c756d6e7392a474696d65a176a676616c7565739192c70c05000000000000000300\
         000000cb449969368974c05b"
    );
}
