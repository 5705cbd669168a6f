//! Checks that the examples in the guides to functions and views occur in the test cases, with
//! statement and answer.

use marigram_fixtures::text;
use std::collections::BTreeMap;

/// A row in the form in which it is compared: its words.
fn words(row: &str) -> String {
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_examples_of_the_guides_are_cases() {
    compare(
        "docs/guides/functions.md",
        "testing/slt/time_functions.slt",
        25,
    );
    compare("docs/guides/views.md", "testing/slt/views_guide.slt", 2);
}

/// A guide has more than `few` examples, and each is a case of a file.
fn compare(guide: &str, cases: &str, few: usize) {
    let cases = text(cases);
    let mut answers = BTreeMap::new();
    for case in cases.split("\n\n") {
        if let Some((head, answer)) = case.split_once("\n----\n") {
            let statement = head.lines().last().expect("a case has a statement");
            answers.insert(statement, answer.lines().map(words).collect::<Vec<_>>());
        }
    }
    let guide = text(guide);
    let mut examples: Vec<(&str, Vec<String>)> = Vec::new();
    for line in guide.lines() {
        if let Some(statement) = line.strip_suffix(';')
            && statement.starts_with("SELECT ")
        {
            examples.push((statement, Vec::new()));
        } else if let Some(row) = line.strip_prefix("-- ")
            && let Some((_, rows)) = examples.last_mut()
        {
            rows.push(words(row));
        }
    }
    assert!(examples.len() > few, "{} examples", examples.len());
    for (statement, rows) in &examples {
        let answer = answers.get(statement);
        assert_eq!(answer, Some(rows), "of {statement}");
    }
    assert_eq!(examples.len(), answers.len(), "every case is an example");
}
