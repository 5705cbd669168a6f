//! Bound parameters, against what InfluxDB 1.6.7 answered to the same requests.

use marigram_influxql::{ParamJson, Params, ParseOptions, parse_query_with};

fn string(text: &str) -> ParamJson {
    ParamJson::String(text.to_owned())
}

fn number(text: &str) -> ParamJson {
    ParamJson::Number(text.to_owned())
}

fn object(kind: &str, value: ParamJson) -> ParamJson {
    ParamJson::Object(vec![(kind.to_owned(), value)])
}

/// The statement with `p` bound to `value`, printed, or why it cannot be read.
fn bound(text: &str, value: &ParamJson) -> String {
    let mut params = Params::default();
    if let Err(error) = params.bind("p", value) {
        return error.to_string();
    }
    let options = ParseOptions {
        params: Some(&params),
        ..ParseOptions::default()
    };
    match parse_query_with(text, options) {
        Ok(query) => query.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn values_stand_for_literals() {
    for (value, printed) in [
        (string("it's"), "'it\\'s'"),
        (number("5"), "5"),
        (number("-5"), "-5"),
        (number("1.5"), "1.500"),
        (ParamJson::Boolean(true), "true"),
        (ParamJson::Boolean(false), "false"),
        (object("ident", string("a b")), "\"a b\""),
        (object("identifier", string("select")), "\"select\""),
        (object("string", string("x")), "'x'"),
        (object("regex", string("^a/b")), "/^a\\/b/"),
        (object("float", number("2")), "2.000"),
        (object("number", number("2.5")), "2.500"),
        (object("int", number("7")), "7"),
        (object("integer", number("7")), "7"),
        (object("duration", string("90s")), "90s"),
        (object("duration", number("60000000000")), "1m"),
    ] {
        let found = bound("SELECT v FROM m WHERE a = $p", &value);
        assert_eq!(found, format!("SELECT v FROM m WHERE a = {printed}"));
    }
}

#[test]
fn names_and_regular_expressions_stand_everywhere() {
    let ident = object("ident", string("my m"));
    let regex = object("regex", string("a.*"));
    for (text, value, printed) in [
        ("SELECT $p FROM $p", &ident, "SELECT \"my m\" FROM \"my m\""),
        (
            "SELECT mean($p) FROM m",
            &ident,
            "SELECT mean(\"my m\") FROM m",
        ),
        (
            "SELECT $p::float FROM a.$p",
            &ident,
            "SELECT \"my m\"::float FROM a.\"my m\"",
        ),
        (
            "SELECT v AS $p FROM m GROUP BY $p",
            &ident,
            "SELECT v AS \"my m\" FROM m GROUP BY \"my m\"",
        ),
        ("DROP MEASUREMENT $p", &ident, "DROP MEASUREMENT \"my m\""),
        ("SELECT $p FROM $p", &regex, "SELECT /a.*/ FROM /a.*/"),
        (
            "SELECT v FROM m WHERE a =~ $p",
            &regex,
            "SELECT v FROM m WHERE a =~ /a.*/",
        ),
        (
            "SELECT mean($p) FROM m",
            &regex,
            "SELECT mean(/a.*/) FROM m",
        ),
        (
            "SELECT v FROM m LIMIT $p",
            &number("5"),
            "SELECT v FROM m LIMIT 5",
        ),
        (
            "SELECT v FROM m LIMIT $p",
            &number("-5"),
            "LIMIT must be >= 0 at line 1, char 23",
        ),
        ("KILL QUERY $p", &number("5"), "KILL QUERY 5"),
        (
            "SELECT mean(v) FROM m GROUP BY time($p)",
            &object("duration", string("1h")),
            "SELECT mean(v) FROM m GROUP BY time(1h)",
        ),
    ] {
        assert_eq!(bound(text, value), printed, "{text}");
    }
}

#[test]
fn what_cannot_be_bound_is_an_error_where_it_is_used() {
    let two = vec![
        ("a".to_owned(), ParamJson::Null),
        ("b".to_owned(), ParamJson::Null),
    ];
    for (value, error) in [
        (ParamJson::Null, "unable to bind parameter with type <nil>"),
        (
            ParamJson::Array,
            "unable to bind parameter with type []interface {}",
        ),
        (
            ParamJson::Object(two),
            "bound object parameter value must have exactly one entry",
        ),
        (
            object("what", string("x")),
            "unknown bind object type: what",
        ),
        (
            object("ident", number("5")),
            "identifier must be a string value",
        ),
        (
            object("regex", number("5")),
            "regex literal must be a string value",
        ),
        (
            object("string", number("5")),
            "string literal must be a string value",
        ),
        (
            object("float", string("x")),
            "number literal must be a float value",
        ),
        (
            object("int", number("1.5")),
            "integer literal must be an integer value",
        ),
        (
            object("duration", ParamJson::Boolean(true)),
            "duration literal must be a string or integer value",
        ),
        (
            object("int", number("1e3")),
            "strconv.ParseInt: parsing \"1e3\": invalid syntax",
        ),
    ] {
        let found = bound("SELECT v FROM m WHERE a = $p", &value);
        assert_eq!(found, format!("missing parameter: {error}"));
        assert_eq!(bound("SELECT v FROM m", &value), "SELECT v FROM m");
    }
    for (text, error) in [
        ("1e3", "invalid syntax"),
        ("99999999999999999999", "value out of range"),
    ] {
        let found = bound("SHOW USERS", &number(text));
        let expected = format!("error parsing json value: strconv.ParseInt: parsing \"{text}\": ");
        assert_eq!(found, expected + error);
    }
    let five = number("5");
    assert_eq!(
        bound("SELECT v FROM m WHERE a = $q", &five),
        "missing parameter: q"
    );
    assert_eq!(
        bound("SELECT v FROM m WHERE a = $", &five),
        "empty bound parameter"
    );
    assert_eq!(
        bound("SELECT v FROM $p", &five),
        "found 5, expected identifier at line 1, char 15"
    );
    assert_eq!(
        bound(
            "SELECT v FROM m WHERE a =~ $p",
            &object("regex", string("("))
        ),
        "error parsing regexp: missing closing ): `(` at line 1, char 28"
    );
}
