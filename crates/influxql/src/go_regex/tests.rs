//! Tests of the errors, in Go's words, and of the translation for Rust.

use super::translate;
use regex::Regex;

#[test]
fn refusals_are_worded_as_go_does() {
    for (source, error) in [
        ("[a", "missing closing ]: `[a`"),
        ("a)", "unexpected ): `a)`"),
        ("(a", "missing closing ): `(a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|+?", "missing argument to repetition operator: `+?`"),
        ("(?i)*", "missing argument to repetition operator: `*`"),
        (r"\Q\E+", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}?", "invalid nested repetition operator: `{2}{3}?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:what:]]", "invalid character class range: `[:what:]`"),
        (r"\p{Greek", r"invalid character class range: `\p{Greek`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        (r"\pF", r"invalid character class range: `\pF`"),
    ] {
        let found = translate(source).expect_err(source).to_string();
        assert_eq!(found, format!("error parsing regexp: {error}"), "{source}");
    }
}

#[test]
fn the_rest_is_written_for_rust() {
    for (source, rust) in [
        ("^cpu_[0-9]+$", "^cpu_[0-9]+$"),
        (r"\d\W", "[0-9][^0-9A-Za-z_]"),
        (r"\bx\B", r"(?-u:\b)x(?-u:\B)"),
        (r"[\d\]a&&-]", r"[[0-9]\]a\&\&\-]"),
        ("[]a[]", r"[\]a\[]"),
        ("[^^]", r"[^\^]"),
        ("[[:alpha:]_]", "[[:alpha:]_]"),
        ("a{,2}", r"a\{,2\}"),
        ("a{2,}?|b*?", "a{2,}?|b*?"),
        ("(?P<1>a)(?<n>(?i:b))(?-s)c", "(a)((?i:b))(?-s)c"),
        ("a(?i)(?s){2}b", "a{2}(?i)(?s)b"),
        (r"\Qa.b\E*", r"a\.b*"),
        (r"\101\x41\x{41}\/", "AAA/"),
        (r"\pL\P{^Greek}\p{^L}", r"\p{L}\p{Greek}\P{L}"),
        ("é µ", "é µ"),
    ] {
        assert_eq!(translate(source).as_deref(), Ok(rust), "{source}");
        Regex::new(rust).expect(rust);
    }
}

#[test]
fn translations_match_what_the_source_means() {
    for (source, text, matches) in [
        (r"^\d+$", "٣", false),
        (r"^[\W]$", "é", true),
        (r"^[a&&b]$", "&", true),
        (r"^[[]$", "[", true),
        (r"^x{,2}$", "x{,2}", true),
        (r"^\Q(a\E)*$".trim_end_matches(")*$"), "(a", true),
        (r"(?i)^ß?K$", "k", true),
        (r"^#a b~$", "#a b~", true),
    ] {
        let regex = Regex::new(&translate(source).expect(source)).expect(source);
        assert_eq!(regex.is_match(text), matches, "{source}");
    }
}
