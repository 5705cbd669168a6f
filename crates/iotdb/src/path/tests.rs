//! Texts of paths, and what patterns match.

use super::*;

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).expect("it is a pattern")
}

fn matches(text: &str, path: &str) -> bool {
    let path = TreePath::parse(path).expect("it is a path");
    pattern(text).matches(path.nodes())
}

#[test]
fn equal_paths_have_equal_texts() {
    for (given, shown) in [
        ("root.sg.d1", "root.sg.d1"),
        ("root.`sg`.`1`", "root.sg.`1`"),
        ("root.sg.d-1", "root.sg.`d-1`"),
        ("root.sg.`a.b`", "root.sg.`a.b`"),
        ("root.sg.`a``b`", "root.sg.`a``b`"),
        ("root.温度.s", "root.温度.s"),
    ] {
        assert_eq!(TreePath::parse(given).expect("a path").to_string(), shown);
    }
    for wrong in [
        "",
        "root.",
        ".root",
        "root..a",
        "root.`a",
        "root.a b",
        "root.***",
        "root.`a`b",
    ] {
        assert!(PathPattern::parse(wrong).is_err(), "{wrong}");
    }
    assert!(TreePath::parse("root.*").is_err());
    assert!(PathPattern::parse(&"a.".repeat(500)).is_err());
}

#[test]
fn wildcards_match_nodes() {
    assert!(matches("root.sg.*", "root.sg.d1") && !matches("root.sg.*", "root.sg.d1.s1"));
    assert!(matches("root.**", "root.sg.d1.s1") && !matches("root.**", "root"));
    assert!(matches("root.**.s1", "root.sg.d1.s1") && !matches("root.**.s1", "root.s1"));
    assert!(matches("root.sg.d*", "root.sg.d12") && !matches("root.sg.d*", "root.sg.x"));
    assert!(matches("root.*g.*1*", "root.sg.d12") && !matches("root.a*a", "root.a"));
}

#[test]
fn patterns_touch_what_is_above_and_below() {
    let touches = |text: &str, path: &str| {
        pattern(text).touches(TreePath::parse(path).expect("a path").nodes())
    };
    assert!(touches("root.sg.d1.*", "root.sg") && touches("root.**", "root.a.b"));
    assert!(touches("root.a", "root.a.b") && !touches("root.a.x", "root.b"));
    assert!(touches("root.**.s1", "root.a.b") && !touches("root.*.c.d", "root.a.b"));
}

#[test]
fn regular_expressions_are_anchored_and_escaped() {
    assert_eq!(pattern("root.a.d1").regex(), "^root\\.a\\.d1$");
    assert!(pattern("root.`a.b`").regex().contains("\\`a\\.b\\`"));
    assert!(pattern("root.**").regex().ends_with(")*$"));
}
