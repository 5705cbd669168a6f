//! Tests of reading and writing JSON.

use super::*;
use proptest::prelude::*;

fn canonical(text: &str) -> String {
    canonical_jsonb(text).unwrap()
}

#[test]
fn objects_have_their_keys_by_length_and_then_by_bytes() {
    assert_eq!(
        canonical(r#" {"bb":1 , "a":[ 1,true,null ],"c":{"z":"","y":{} },"aa":2}"#),
        r#"{"a": [1, true, null], "c": {"y": {}, "z": ""}, "aa": 2, "bb": 1}"#
    );
}

#[test]
fn the_last_of_equal_keys_stays() {
    assert_eq!(canonical(r#"{"a":1,"b":2,"a":3}"#), r#"{"a": 3, "b": 2}"#);
    assert_eq!(canonical(r#"{"a":1,"\u0061":2}"#), r#"{"a": 2}"#);
}

#[test]
fn numbers_lose_their_exponent_and_keep_their_digits() {
    for (text, expected) in [
        ("1e5", "100000"),
        ("1.50", "1.50"),
        ("1.0e-3", "0.0010"),
        ("-0", "0"),
        ("-0.0", "0.0"),
        ("0e5", "0"),
        ("0.00e1", "0.0"),
        ("12.345e1", "123.45"),
        ("12.345E+5", "1234500"),
        ("0.05e1", "0.5"),
        ("0.05e2", "5"),
        (
            "123456789012345678901234567890.5",
            "123456789012345678901234567890.5",
        ),
        ("-12e-1", "-1.2"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
    for text in ["1e131073", "1e-16384", "1e99999999999999999999"] {
        assert_eq!(canonical_jsonb(text).unwrap_err().sqlstate, "22003");
        check_json(text).unwrap();
    }
}

#[test]
fn strings_are_escaped_as_little_as_possible() {
    assert_eq!(
        canonical(r#""\u00e4\/\n\u001f\ud83d\ude00""#),
        "\"ä/\\n\\u001f😀\""
    );
    assert_eq!(
        canonical_jsonb(r#""\u0000""#).unwrap_err().sqlstate,
        "22P05"
    );
    assert_eq!(
        canonical_jsonb(r#""\ud800""#).unwrap_err().sqlstate,
        "22P02"
    );
    check_json(r#""\u0000\ud800""#).unwrap();
}

#[test]
fn what_is_no_json_is_refused() {
    let texts = [
        "",
        " ",
        "{",
        "[1,",
        "[1 2]",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":1,}",
        "[1,]",
        "01",
        "1.",
        "-",
        "1e",
        ".5",
        "+1",
        "nul",
        "nulll",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\n\"",
        "1 2",
        "1a",
        "\u{e4}",
        "\"\\u\u{e4}\u{e4}\"",
    ];
    for text in texts {
        let error = check_json(text).unwrap_err();
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22P02", "invalid input syntax for type json"),
            "{text}"
        );
        assert!(canonical_jsonb(text).is_err(), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check_json(&deep(1000)).unwrap();
    assert_eq!(check_json(&deep(100_000)).unwrap_err().sqlstate, "54001");
}

proptest! {
    #[test]
    fn canonical_texts_stay_as_they_are(text in r#"(\{"[a-c]{1,2}":[0-9]{1,3}\.?[0-9]e?-?[0-9],"[a-c]{1,2}":"[^"\\\x00-\x1f]{0,4}"\}|\[[1-9]{1,4}\])"#) {
        if let Ok(once) = canonical_jsonb(&text) {
            prop_assert_eq!(&canonical_jsonb(&once).unwrap(), &once);
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = (check_json(&text), canonical_jsonb(&text));
    }
}
