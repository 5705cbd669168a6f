//! Tests of wildcards and of the names of columns.

use super::{InfluxFieldType, SourceSchema, column_names, expand_wildcards};
use crate::ast::{RegexSource, Select, Statement};
use crate::parse_query;
use crate::quote::QuotedIdent;
use crate::time_range::TimeContext;
use crate::validate::{SelectAnalysis, analyze};
use crate::zone::UtcOnly;

fn analyzed(text: &str) -> (Select, SelectAnalysis) {
    let mut query = parse_query(text).expect(text);
    let Statement::Select(select) = query.statements.remove(0) else {
        panic!("{text} is no SELECT");
    };
    let context = TimeContext {
        now_ns: 0,
        time_zone: None,
        zones: &UtcOnly,
    };
    let analysis = analyze(&select, &context).expect(text);
    (*select, analysis)
}

fn names(fields: &str) -> String {
    let text = format!("SELECT {fields} FROM m");
    let (select, analysis) = analyzed(&text);
    let time = Some(analysis.time_column.as_str());
    column_names(&analysis.fields, time, select.target.is_some()).join(" ")
}

#[test]
fn columns_are_named_after_what_is_in_them() {
    for (fields, expected) in [
        ("v", "time v"),
        ("v, v", "time v v_1"),
        ("v, v, v", "time v v_1 v_2"),
        ("v AS a, v", "time a v"),
        ("v AS v, v", "time v v_1"),
        ("v, w AS v", "time v_1 v"),
        ("v AS v_1, v, v", "time v_1 v v_2"),
        ("v, v, v AS v_1, v", "time v v_2 v_1 v_3"),
        ("w AS v, x AS v", "time v v"),
        ("mean(v)", "time mean"),
        ("mean(v), mean(w)", "time mean mean_1"),
        (
            "mean(v) AS mean_1, mean(w), mean(x)",
            "time mean_1 mean mean_2",
        ),
        ("a + b * mean", "time a_b_mean"),
        ("mean(a) / (max(b) + 1)", "time mean_max"),
        ("abs(a) + 1", "time abs"),
        ("(a)", "time a"),
        ("(a + 1)", "time a"),
        ("-a", "time a"),
        ("2 * 3 * a", "time a"),
        ("time, v", "time v"),
        ("time AS t, v", "t v"),
        ("v AS time", "time time"),
        ("DISTINCT v", "time distinct"),
        ("count(DISTINCT v)", "time count"),
        ("top(v, 2)", "time top"),
        ("top(v, host, region, 2)", "time top host region"),
        ("top(v, host, 2) AS t, host", "time t host host_1"),
    ] {
        assert_eq!(names(fields), expected, "{fields}");
    }
    assert_eq!(names("top(v, host, 2) INTO w"), "time top");
}

/// Fields `b` to `u`, named after their types, and tags `host` and `region`; a regular expression
/// matches names that contain it.
fn expanded(columns: &str) -> Result<String, String> {
    let (_, analysis) = analyzed(&format!("SELECT {columns}"));
    let matches = |regex: &RegexSource, name: &str| name.contains(regex.as_str());
    let schema = SourceSchema {
        fields: [
            ("u", InfluxFieldType::Unsigned),
            ("f", InfluxFieldType::Float),
            ("b", InfluxFieldType::Boolean),
            ("s", InfluxFieldType::String),
            ("i", InfluxFieldType::Integer),
        ]
        .map(|(name, kind)| (name.to_owned(), kind))
        .to_vec(),
        tags: vec!["region".to_owned(), "host".to_owned()],
        matches: &matches,
    };
    let expanded = expand_wildcards(&analysis.fields, &analysis.dimensions, &schema)
        .map_err(|error| error.to_string())?;
    let fields = expanded
        .fields
        .iter()
        .map(|field| match field.alias.as_str() {
            "" => field.expr.to_string(),
            alias => format!("{} {}", field.expr, QuotedIdent(alias)),
        });
    let dimensions = expanded.dimensions.iter().map(|by| format!("by {by}"));
    Ok(fields.chain(dimensions).collect::<Vec<_>>().join(", "))
}

#[test]
fn wildcards_stand_for_fields_and_tags() {
    let all = "b::boolean, f::float, host::tag, i::integer, region::tag, s::string, u::unsigned";
    let fields = "b::boolean, f::float, i::integer, s::string, u::unsigned";
    for (columns, expected) in [
        ("* FROM m", all.to_owned()),
        ("*::field FROM m", fields.to_owned()),
        ("*::tag FROM m", "host::tag, region::tag".to_owned()),
        ("/i/ FROM m", "i::integer, region::tag".to_owned()),
        ("v, /^x/ FROM m", "v".to_owned()),
        (
            "* FROM m GROUP BY host",
            all.replace("host::tag, ", "") + ", by host",
        ),
        (
            "* FROM m GROUP BY *",
            format!("{fields}, by host, by region"),
        ),
        ("f FROM m GROUP BY /reg/", "f, by region".to_owned()),
        (
            "mean(*) FROM m",
            "mean(f::float) mean_f, mean(i::integer) mean_i, mean(u::unsigned) mean_u".to_owned(),
        ),
        (
            "max(*) AS m FROM m",
            "max(b::boolean) m_b, max(f::float) m_f, max(i::integer) m_i, max(u::unsigned) m_u"
                .to_owned(),
        ),
        ("count(/s/) FROM m", "count(s::string) count_s".to_owned()),
        (
            "derivative(mean(/f/)) FROM m GROUP BY time(1m)",
            "derivative(mean(f::float)) derivative_f".to_owned(),
        ),
        (
            "holt_winters(mean(/u/), 2, 2) FROM m GROUP BY time(1m)",
            "holt_winters(mean(u::unsigned), 2, 2) holt_winters_u".to_owned(),
        ),
        (
            "percentile(/i/, 5) FROM m",
            "percentile(i::integer, 5) percentile_i".to_owned(),
        ),
        ("a + b FROM m", "a + b".to_owned()),
    ] {
        assert_eq!(expanded(columns), Ok(expected), "{columns}");
    }
    let error = expanded("mean(*::tag) FROM m");
    assert_eq!(
        error,
        Err("unable to use tag wildcard in mean()".to_owned())
    );
}

#[test]
fn repeated_wildcards_stand_for_a_bounded_number_of_columns() {
    let many = vec!["*"; 5_000].join(", ");
    let error = expanded(&format!("{many} FROM m")).unwrap_err();
    assert_eq!(
        error,
        "the wildcards of the statement stand for more than 32768 columns"
    );
    let few = vec!["*"; 1_000].join(", ");
    assert!(expanded(&format!("{few} FROM m")).is_ok());
}
