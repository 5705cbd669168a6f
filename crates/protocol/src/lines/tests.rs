//! Tests of line protocol: the meaning of lines, refusals and their messages, and that parsing
//! inverts encoding.

use super::*;
use marigram_model::{FieldType, FieldValue, FieldValueRef, Limits, TagValueRef};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn parsed(body: &str) -> ParsedLines {
    parse(
        body.as_bytes(),
        Precision::Nanoseconds,
        99,
        LineLimits::default(),
    )
}

/// A row as text: `table{tags} fields @time #line`.
fn rows(parsed: &ParsedLines) -> Vec<String> {
    let mut rows = Vec::new();
    for (batch, lines) in parsed.batches.iter().zip(&parsed.lines) {
        assert_eq!(batch.check(), Ok(()));
        assert_eq!(lines.len(), batch.len());
        for (row, line) in lines.iter().enumerate() {
            let slot = batch.slots[row] as usize;
            let tags: BTreeMap<_, _> = batch
                .tags
                .iter()
                .filter_map(|tag| tag.value(slot).map(|value| (&tag.name, value.to_value())))
                .collect();
            let fields: Vec<_> = batch
                .fields
                .iter()
                .filter_map(|f| {
                    FieldValue::from_array(&f.values, row).map(|v| format!("{}={v:?}", f.name))
                })
                .collect();
            let tags: Vec<_> = tags
                .iter()
                .map(|(name, value)| format!("{name}={}", value.as_ref()))
                .collect();
            let (table, time) = (&batch.table, batch.times[row]);
            let (tags, fields) = (tags.join(";"), fields.join(";"));
            rows.push(format!("{table}{{{tags}}} {fields} @{time} #{line}"));
        }
    }
    rows
}

fn one(line: &str) -> String {
    let parsed = parsed(line);
    assert_eq!(parsed.errors, [], "{line}");
    let rows = rows(&parsed);
    assert_eq!(rows.len(), 1, "{line}");
    rows[0].clone()
}

#[test]
fn lines_become_rows_of_their_tables() {
    let body = "pump,site=north,unit=7 rpm=900i,temp=4.5 10\n\
                # a comment\n\
                \n\
                valve open=t 20\r\n\
                pump,site=north,unit=7 temp=5 30\n\
                \t pump,unit=8 rpm=1i\n";
    let parsed = parsed(body);
    assert_eq!(parsed.errors, []);
    assert_eq!(parsed.rows(), 4);
    let expected = [
        "pump{site=north;unit=7} rpm=I64(900);temp=F64(4.5) @10 #1",
        "pump{site=north;unit=7} temp=F64(5.0) @30 #5",
        "pump{unit=8} rpm=I64(1) @99 #6",
        "valve{} open=Bool(true) @20 #4",
    ];
    assert_eq!(rows(&parsed), expected);
    // The series has only one slot.
    assert_eq!(parsed.batches[0].slot_count, 2);
}

#[test]
fn values_have_the_types_that_their_spelling_says() {
    let cases = [
        ("1", "F64(1.0)"),
        ("-1.5", "F64(-1.5)"),
        ("+1.5", "F64(1.5)"),
        (".5", "F64(0.5)"),
        ("1.", "F64(1.0)"),
        ("-0", "F64(-0.0)"),
        ("1e3", "F64(1000.0)"),
        ("1.5E-3", "F64(0.0015)"),
        ("0.1", "F64(0.1)"),
        ("9007199254740993", "F64(9007199254740992.0)"),
        ("12345678901234567890123", "F64(1.2345678901234568e22)"),
        ("5i", "I64(5)"),
        ("-9223372036854775808i", "I64(-9223372036854775808)"),
        ("9223372036854775807i", "I64(9223372036854775807)"),
        ("00000000000000000000007i", "I64(7)"),
        ("18446744073709551615u", "U64(18446744073709551615)"),
        ("0u", "U64(0)"),
        ("t", "Bool(true)"),
        ("T", "Bool(true)"),
        ("true", "Bool(true)"),
        ("True", "Bool(true)"),
        ("TRUE", "Bool(true)"),
        ("f", "Bool(false)"),
        ("F", "Bool(false)"),
        ("false", "Bool(false)"),
        ("False", "Bool(false)"),
        ("FALSE", "Bool(false)"),
        (r#""""#, r#"String("")"#),
        (r#""a, b = c""#, r#"String("a, b = c")"#),
        (r#""\"\\\n""#, r#"String("\"\\\\n")"#),
    ];
    for (spelling, value) in cases {
        assert_eq!(
            one(&format!("m v={spelling} 1")),
            format!("m{{}} v={value} @1 #1")
        );
    }
}

#[test]
fn backslashes_take_the_meaning_off_what_follows() {
    let line = r"my\,\ table\=x,tag\ \=\,=v\ \,\=\w field\=\ \,\f=1 7";
    assert_eq!(
        one(line),
        r"my, table\=x{tag =,=v ,=\w} field= ,\f=F64(1.0) @7 #1"
    );
    // A backslash before a backslash stands for itself.
    assert_eq!(
        one(r"m,t=a\\,b v=1 7".replace(",b", r"\,b").as_str()),
        r"m{t=a\\,b} v=F64(1.0) @7 #1"
    );
    assert_eq!(
        one("m,t=θ\\ 日本 \u{e4}=1 7"),
        "m{t=θ 日本} \u{e4}=F64(1.0) @7 #1"
    );
}

#[test]
fn quoted_text_may_hold_line_breaks() {
    let parsed = parsed("m a=\"one\ntwo\" 1\nm a=\"x\" 2\nm b=? 3\n");
    let expected = [
        r#"m{} a=String("one\ntwo") @1 #1"#,
        r#"m{} a=String("x") @2 #3"#,
    ];
    assert_eq!(rows(&parsed), expected);
    assert_eq!((parsed.errors[0].line, parsed.errors[0].column), (4, 5));
}

#[test]
fn times_are_scaled_by_the_precision() {
    let units = [
        ("n", 1),
        ("ns", 1),
        ("u", 1_000),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000_i64),
    ];
    for (name, unit) in units {
        let precision = Precision::from_name(name).unwrap();
        let parsed = parse(b"m v=1 -3", precision, 0, LineLimits::default());
        assert_eq!(parsed.batches[0].times[0], -3 * unit, "{name}");
    }
    assert_eq!(Precision::from_name("d"), None);
    let hours = parse(b"m v=1 2562048", Precision::Hours, 0, LineLimits::default());
    assert!(
        hours.errors[0].reason.contains("out of range"),
        "{:?}",
        hours.errors
    );
    assert_eq!(hours.rows(), 0);
}

#[test]
fn bad_lines_are_named_and_the_good_ones_kept() {
    let long = format!("m {}=1 1", "n".repeat(Limits::NAME_BYTES_MAX + 1));
    let long_tag = format!("m,t={} v=1 1", "n".repeat(Limits::TAG_BYTES_MAX + 1));
    let cases = [
        ("m", 2, "no fields"),
        ("m,t=1", 6, "no fields"),
        ("m ", 3, "no fields"),
        ("m  7", 4, "field '7' has no value"),
        (",t=1 v=1 1", 1, "empty"),
        ("m, v=1 1", 3, "no tag follows"),
        ("m,t v=1 1", 3, "tag 't' has no value"),
        ("m,t= v=1 1", 5, "tag 't' has an empty value"),
        ("m,=x v=1 1", 3, "empty"),
        ("m,t=a=b v=1 1", 6, "equals sign"),
        ("m,t=1,t=2 v=1 1", 7, "tag 't' occurs twice"),
        ("m,time=1 v=1 1", 3, "'time'"),
        ("m time=1 1", 3, "'time'"),
        ("m v=1,v=2 1", 7, "field 'v' occurs twice"),
        ("m v=1,v=2i 1", 7, "field 'v' occurs twice"),
        ("m,v=1 v=1 1", 7, "'v' is a tag"),
        ("m =1 1", 3, "empty"),
        ("m v= 1", 5, "no value"),
        ("m v=", 5, "no value"),
        ("m v=1, 1", 7, "has no value"),
        ("m v=1,,w=2 1", 7, "has no value"),
        ("m v=abc 1", 5, "'abc' is neither a number"),
        ("m v=1x 1", 5, "'1x' is not a number"),
        ("m v=1.5i 1", 5, "'1.5i' is not a number"),
        ("m v=-1u 1", 5, "64 bits"),
        ("m v=9223372036854775808i 1", 5, "64 bits"),
        ("m v=18446744073709551616u 1", 5, "64 bits"),
        ("m v=1e999 1", 5, "too large"),
        ("m v=NaN 1", 5, "NaN"),
        ("m v=inf 1", 5, "NaN"),
        ("m v=-inf 1", 5, "NaN"),
        ("m v=\"abc 1", 5, "closing quote"),
        ("m v=\"abc\"x 1", 10, "found 'x' where"),
        ("m v=1 abc", 7, "not a time"),
        ("m v=1 1.5", 7, "not a time"),
        ("m v=1 -", 7, "not a time"),
        ("m v=1 9223372036854775808", 7, "out of range"),
        ("m v=1 1 2", 9, "follows the time"),
        ("m\u{7} v=1 1", 1, "control"),
        (&long, 3, "256 bytes"),
        (&long_tag, 5, "16385 bytes"),
    ];
    for (line, column, reason) in cases {
        let parsed = parsed(&format!("good v=1 1\n{line}\ngood v=2 2"));
        assert_eq!(parsed.errors.len(), 1, "{line}: {:?}", parsed.errors);
        let error = &parsed.errors[0];
        assert_eq!((error.line, error.column), (2, column), "{line}: {error}");
        assert!(error.reason.contains(reason), "{line}: {error}");
        assert_eq!(rows(&parsed).len(), 2, "{line}");
        assert_eq!(
            parsed.batches.len(),
            1,
            "{line}: a refused line leaves no trace"
        );
    }
}

#[test]
fn a_refused_line_leaves_no_column() {
    let parsed = parsed("m,a=1 v=1 1\nm,b=1 w=1,x=? 2\nm,c=1 v=2 x\n");
    assert_eq!(parsed.errors.len(), 2);
    let names: Vec<_> = parsed.batches[0].tags.iter().map(|tag| &tag.name).collect();
    assert_eq!(names, ["a"]);
    let names: Vec<_> = parsed.batches[0]
        .fields
        .iter()
        .map(|field| &field.name)
        .collect();
    assert_eq!(names, ["v"]);
}

#[test]
fn a_name_is_a_tag_or_a_field_within_a_body() {
    let tag_first = parsed("m,a=1 v=1 1\nm a=1 2\n");
    assert_eq!(
        tag_first.errors[0].to_string(),
        "line 2, column 3: 'a' is a tag, and now a field"
    );
    let field_first = parsed("m a=1 1\nm,a=1 v=1 2\n");
    assert_eq!(
        field_first.errors[0].to_string(),
        "line 2, column 3: 'a' is a field, and now a tag"
    );
    // A refused line has no effect on types.
    assert_eq!(parsed("m a=1,b=? 1\nm,a=1 v=1 2\n").errors.len(), 1);
    assert_eq!(parsed("m,a=1 b=? 1\nm a=1 2\n").errors.len(), 1);
}

#[test]
fn types_that_disagree_make_two_columns_of_one_name() {
    let parsed = parsed("m v=1 1\nm v=2i 2\nm v=3 3\n");
    let kinds: Vec<_> = parsed.batches[0]
        .fields
        .iter()
        .map(|f| (&*f.name, f.kind()))
        .collect();
    assert_eq!(kinds, [("v", FieldType::F64), ("v", FieldType::I64)]);
}

#[test]
fn lines_that_are_not_utf8_are_refused_alone() {
    let parsed = parse(
        b"m v=1 1\nm v=\"\xff\" 2\nm v=3 3\n\xc3\nm v=4 4",
        Precision::Nanoseconds,
        0,
        LineLimits::default(),
    );
    let errors: Vec<_> = parsed
        .errors
        .iter()
        .map(|error| (error.line, error.column))
        .collect();
    assert_eq!(errors, [(2, 6), (4, 1)]);
    assert_eq!(parsed.lines, [[1, 3, 5]]);
}

#[test]
fn errors_beyond_the_limit_are_counted() {
    let body = "x\n".repeat(10);
    let limits = LineLimits {
        errors_max: 3,
        ..LineLimits::default()
    };
    let parsed = parse(body.as_bytes(), Precision::Nanoseconds, 0, limits);
    assert_eq!((parsed.errors.len(), parsed.errors_omitted), (3, 7));
}

#[test]
fn lines_without_common_names_do_not_make_square_batches() {
    use std::fmt::Write;
    let (mut fields, mut tags) = (String::new(), String::new());
    for n in 0..5000 {
        writeln!(fields, "m f{n}={n} {n}").unwrap();
        writeln!(tags, "m,t{n}=x v={n} {n}").unwrap();
    }
    for body in [fields, tags] {
        let parsed = parsed(&body);
        assert_eq!(parsed.errors, []);
        assert_eq!(parsed.rows(), 5000);
        let bytes: usize = parsed.batches.iter().map(WriteBatch::memory_bytes).sum();
        assert!(bytes < 100 * body.len(), "{bytes}");
        let lines: Vec<_> = parsed.lines.concat();
        assert!(lines.is_sorted() && lines.len() == 5000);
    }
}

#[test]
fn what_lines_cannot_say_is_refused_and_nothing_appended() {
    let mut out = String::from("before");
    let mut refused = |table: &str, tag: &str, value, field: &str, number| {
        let tags = [(tag, TagValueRef::String(value))];
        let fields = [(field, FieldValueRef::F64(number))];
        let result = encode_row(table, tags, fields, 1, &mut out);
        assert_eq!(out, "before");
        result.is_err()
    };
    assert!(refused("#m", "t", "v", "f", 1.0));
    assert!(refused("m", "t\\", "v", "f", 1.0));
    assert!(refused("m", "t", "", "f", 1.0));
    assert!(refused("m", "t", "a\nb", "f", 1.0));
    assert!(refused("m", "t", "C:\\", "f", 1.0));
    assert!(refused("m", "t", "v", "f", f64::NAN));
    assert_eq!(
        encode_row("m", [], [], 1, &mut out),
        Err(EncodeError::NoFields)
    );
    let bytes = [("f", FieldValueRef::Bytes(b"x"))];
    assert!(encode_row("m", [], bytes, 1, &mut out).is_err());
}

/// Names and tag values: with many characters that need escapes, and valid.
fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,3}",
        Just("\\".to_owned()),
        Just(" ".to_owned()),
        Just(",".to_owned()),
        Just("=".to_owned()),
        Just("\"".to_owned()),
        Just("é日".to_owned()),
    ];
    (prop::collection::vec(piece, 0..5), "[a-z]").prop_map(|(pieces, last)| pieces.concat() + &last)
}

fn value() -> impl Strategy<Value = FieldValue> {
    prop_oneof![
        any::<f64>()
            .prop_filter("finite", |v| v.is_finite())
            .prop_map(FieldValue::F64),
        (any::<i64>(), 0..19_u32)
            .prop_map(|(v, by)| FieldValue::F64(v as f64 / 10_f64.powi(by as i32))),
        any::<i64>().prop_map(FieldValue::I64),
        any::<u64>().prop_map(FieldValue::U64),
        any::<bool>().prop_map(FieldValue::Bool),
        "[a-z\\\\\"\n\r ,=]{0,8}".prop_map(FieldValue::String),
    ]
}

proptest! {
    #[test]
    fn parsing_undoes_encoding(
        (table, tags, fields, time) in (
            name(),
            prop::collection::btree_map(name(), name(), 0..4),
            prop::collection::btree_map(name(), value(), 1..5),
            any::<i64>(),
        )
    ) {
        prop_assume!(!tags.keys().any(|tag| fields.contains_key(tag)));
        prop_assume!(!tags.contains_key("time") && !fields.contains_key("time"));
        let mut builder = marigram_model::BatchBuilder::new(table);
        let slot = builder.slot(tags.iter().map(|(n, v)| (n.as_str(), TagValueRef::String(v))));
        builder.row(slot, time);
        for (name, value) in &fields {
            builder.field(name, match value {
                FieldValue::F64(v) => FieldValueRef::F64(*v),
                FieldValue::I64(v) => FieldValueRef::I64(*v),
                FieldValue::U64(v) => FieldValueRef::U64(*v),
                FieldValue::Bool(v) => FieldValueRef::Bool(*v),
                FieldValue::String(v) => FieldValueRef::String(v),
                other => unreachable!("{other:?} is not drawn"),
            });
        }
        let batch = builder.finish();
        let mut text = String::new();
        encode_batch(&batch, &mut text).unwrap();
        let back = parsed(&text);
        prop_assert_eq!(&back.errors, &[]);
        let expected =
            ParsedLines { batches: vec![batch], lines: vec![vec![1]], ..ParsedLines::default() };
        prop_assert_eq!(rows(&back), rows(&expected));
    }

    #[test]
    fn floats_are_read_as_the_standard_library_reads_them(text in "-?[0-9]{1,20}(\\.[0-9]{0,20})?(e-?[0-9]{1,2})?") {
        let parsed = parsed(&format!("m v={text} 1"));
        let expected: f64 = text.parse().unwrap();
        let value = FieldValue::from_array(&parsed.batches[0].fields[0].values, 0);
        prop_assert_eq!(value, Some(FieldValue::F64(expected)));
    }

    #[test]
    fn any_bytes_give_rows_or_errors_but_no_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let parsed = parse(&body, Precision::Seconds, 0, LineLimits::default());
        for batch in &parsed.batches {
            prop_assert_eq!(batch.check(), Ok(()));
        }
    }

    #[test]
    fn any_line_like_bytes_are_accounted_for_line_by_line(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "m", "t", ",", "=", " ", "\n", "\r\n", "\\", "\"", "1", "i", "u", "-", ".", "e",
                "true", "#", "é", "time", "9999999999999999999", "m,t=1 v=1 1\n",
            ]),
            0..40,
        )
    ) {
        let body = pieces.concat();
        let parsed = parsed(&body);
        for batch in &parsed.batches {
            prop_assert_eq!(batch.check(), Ok(()));
        }
        // No line is both stored and refused, and none occurs twice.
        let mut lines = parsed.lines.concat();
        lines.extend(parsed.errors.iter().map(|error| error.line));
        lines.sort_unstable();
        prop_assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", lines);
    }
}

#[test]
fn a_sample_of_a_fleet_is_read_without_errors() {
    // A real body from the generator of a public benchmark, if available.
    let Ok(path) = std::env::var("MARIGRAM_TEST_TSBS") else {
        return;
    };
    let body = std::fs::read_to_string(path).unwrap();
    let parsed = parsed(&body);
    assert_eq!(parsed.errors, []);
    assert_eq!(parsed.rows(), body.lines().count());
}

#[test]
fn a_field_with_the_name_of_a_tag_has_a_column_of_its_own() {
    let limits = LineLimits {
        tagged_fields: true,
        ..LineLimits::default()
    };
    let body = "m,core=1 core=7i,v=1 1\nm v=2,core=8i 2\nm,core=2 c\\ore=9i,core=3i 3\n";
    let parsed = parse(body.as_bytes(), Precision::Nanoseconds, 0, limits);
    assert_eq!(parsed.errors, vec![]);
    let batch = &parsed.batches[0];
    let fields: Vec<&str> = batch.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(fields, ["core::field", "v", "c\\ore"]);
    assert_eq!(batch.tags[0].name, "core");
    // A name that is already that of a field is no tag.
    let parsed = parse(
        b"m core=1 1\nm,core=1 v=1 2",
        Precision::Nanoseconds,
        0,
        limits,
    );
    assert_eq!(parsed.errors[0].reason, "'core' is a field, and now a tag");
}
