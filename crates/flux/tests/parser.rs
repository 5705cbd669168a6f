//! What the parser reads, what it refuses and where, and that no text breaks it.

use marigram_flux::ast::{FluxBinary, FluxExprKind, FluxStatement};
use marigram_flux::parse_flux;
use proptest::prelude::*;

fn expression(text: &str) -> FluxExprKind {
    match parse_flux(text).expect(text).statements.pop() {
        Some(FluxStatement::Expression(expr)) => expr.kind,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> String {
    parse_flux(text).expect_err(text).to_string()
}

#[test]
fn a_script_of_a_dashboard_is_read() {
    let text = r#"
        package main
        import "influxdata/influxdb/schema"
        import dt "date"
        option task = {name: "a", every: 1h}
        option v.other = 1
        // a comment
        data = from(bucket: "plant/week")
            |> range(start: -1h30m, stop: 2024-01-01T00:00:00.5+01:00)
            |> filter(fn: (r) => r["_measurement"] == "m" and r.host =~ /^a\/b.*$/ or not exists r.x)
            |> map(fn: (r) => ({r with _value: if r._value > 1.5 then -r._value else r._value * 2.0}))
        f = (tables=<-, n=1) => { m = n + 1 return tables |> limit(n: m) }
        data |> f(n: 2) |> yield(name: "x")
    "#;
    assert_eq!(parse_flux(text).expect("it is Flux").statements.len(), 7);
}

#[test]
fn operators_bind_as_in_flux() {
    let FluxExprKind::Logical {
        is_and: false,
        operands,
    } = expression("a == 1 + 2 * 3 and b or c")
    else {
        panic!("or is the loosest");
    };
    let FluxExprKind::Logical {
        is_and: true,
        operands,
    } = &operands[0].kind
    else {
        panic!("and is below or");
    };
    let FluxExprKind::Binary {
        operator: FluxBinary::Equal,
        right,
        ..
    } = &operands[0].kind
    else {
        panic!("== is below and");
    };
    let FluxExprKind::Binary {
        operator: FluxBinary::Add,
        right,
        ..
    } = &right.kind
    else {
        panic!("+ is below ==");
    };
    assert!(matches!(
        right.kind,
        FluxExprKind::Binary {
            operator: FluxBinary::Multiply,
            ..
        }
    ));
    assert!(matches!(
        expression("a / b / c"),
        FluxExprKind::Binary {
            operator: FluxBinary::Divide,
            ..
        }
    ));
    let FluxExprKind::Unary { operand, .. } = expression("exists r.a == b") else {
        panic!("exists is above ==");
    };
    assert!(matches!(operand.kind, FluxExprKind::Binary { .. }));
    assert!(parse_flux("a == exists b").is_err());
    assert!(
        matches!(expression("a |> f() |> g()"), FluxExprKind::Pipe { calls, .. } if calls.len() == 2)
    );
}

#[test]
fn texts_have_escapes_and_expressions() {
    assert_eq!(
        expression(r#""a\"\\\n\x41é \${x}""#),
        FluxExprKind::Text("a\"\\\nAé ${x}".to_owned())
    );
    assert!(matches!(
        expression(r#""a ${r.x + "}"} b""#),
        FluxExprKind::Interpolated(parts) if parts.len() == 3
    ));
    assert_eq!(expression(r#""""#), FluxExprKind::Text(String::new()));
}

#[test]
fn errors_have_positions() {
    for (text, expected) in [
        (
            "from(bucket: )",
            "error @1:14: found ), expected an expression",
        ),
        ("a =\n  [1, 2", "error @2:8: found the end, expected ,"),
        (
            "x |> y",
            "error @1:6: what |> pipes into is the call of a function: add ( and )",
        ),
        ("x = \"a", "error @1:5: a text has no end: close it with \""),
        (
            "x = /a",
            "error @1:5: a regular expression has no end: close it with /",
        ),
        ("f(a: 1, a: 2)", "error @1:9: a is given twice"),
        ("x = 2024-13-01", "error @1:5: 2024-13-01 is no time"),
        ("x = 1q", "error @1:5: 1q is no duration"),
        (
            "x = 99999999999999999999",
            "error @1:5: 99999999999999999999 is no integer of 64 bits",
        ),
        ("é = \u{1}", "error @1:5: unexpected character '\\u{1}'"),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn hostile_texts_are_refused() {
    for text in [
        "(".repeat(100_000),
        "[".repeat(100_000),
        "{a:".repeat(100_000),
        "-".repeat(100_000),
        "not ".repeat(100_000),
        "if ".repeat(100_000),
        "() => ".repeat(100_000),
        "\"${".repeat(100_000),
        format!("a{}", "+ 1".repeat(100_000)),
        format!("a{}", ".b".repeat(100_000)),
        format!("a{}", "()".repeat(100_000)),
        "x = 1\n".repeat(100_000),
        " ".repeat(2 << 20),
    ] {
        assert!(parse_flux(&text).is_err(), "{}", &text[..20]);
    }
    // Long lists are no deep trees.
    let long = format!("a{}", " or b == 1".repeat(50_000));
    assert!(parse_flux(&long).is_ok());
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in "\\PC{0,80}") {
        let _ = parse_flux(&text);
    }

    #[test]
    fn no_tokens_break_the_parser(tokens in prop::collection::vec(prop::sample::select(vec![
        "(", ")", "{", "}", "[", "]", "=>", "|>", "<-", "=", "==", "=~", "/", "a", "r", ".", ",", ":",
        "1", "1.5", "1h", "2024-01-01", "2024-01-01T00:00:00Z", "\"t\"", "\"${a}\"", "\"", "${", "if",
        "then", "else", "and", "or", "not", "exists", "with", "return", "import", "option", "-", "+",
        "\n", "//", "\\", "é", "µ", "9999-99-99T",
    ]), 0..40), spaced: bool) {
        let _ = parse_flux(&tokens.join(if spaced { " " } else { "" }));
    }
}
