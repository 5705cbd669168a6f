//! Filters of tags: `literal_or(a|b)`, `wildcard(web*)`, `regexp(…)`, `not_key()` and their kind.

use crate::error::QueryFault;
use crate::scalar::Flag;
use serde::{Deserialize, Serialize};

/// Filters of one query: each is a condition of a plan.
const FILTERS_MAX: usize = 256;

/// Refuses more filters than a query may have.
pub(crate) fn check_filter_count(count: usize) -> Result<(), QueryFault> {
    if count > FILTERS_MAX {
        return Err(QueryFault::new(format!(
            "There are more than {FILTERS_MAX} filters"
        )));
    }
    Ok(())
}

/// What a tag's value must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagTest {
    /// One of these.
    OneOf(Vec<String>),
    /// One of these, in any case.
    OneOfAnyCase(Vec<String>),
    /// There, and none of these.
    NoneOf(Vec<String>),
    /// There, and none of these in any case.
    NoneOfAnyCase(Vec<String>),
    /// Of this form, where `*` stands for any text.
    Wildcard(String),
    /// The same in any case.
    WildcardAnyCase(String),
    /// With a match of this regular expression.
    Regexp(String),
    /// Not there.
    NoKey,
}

/// A filter of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagValueFilter {
    /// The tag.
    pub key: String,
    /// What its value must be.
    pub test: TagTest,
    /// Whether each of its values is a group.
    pub group_by: bool,
}

/// What `/api/config/filters` says of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FilterDescription {
    /// Its name.
    #[serde(skip)]
    pub name: &'static str,
    /// Examples.
    pub examples: &'static str,
    /// What it does.
    pub description: &'static str,
}

const fn described(
    name: &'static str,
    examples: &'static str,
    description: &'static str,
) -> FilterDescription {
    FilterDescription {
        name,
        examples,
        description,
    }
}

/// The filters, by name.
pub const FILTERS: &[FilterDescription] = &[
    described(
        "iliteral_or",
        "host=iliteral_or(web01|WEB02)",
        "The value is one of those given, in any case.",
    ),
    described(
        "iwildcard",
        "host=iwildcard(web*)",
        "The value has the form given, where * stands for any text, in any case.",
    ),
    described(
        "literal_or",
        "host=literal_or(web01|web02)",
        "The value is one of those given.",
    ),
    described(
        "not_iliteral_or",
        "host=not_iliteral_or(web01|WEB02)",
        "The tag is there, and its value is none of those given, in any case.",
    ),
    described("not_key", "host=not_key()", "The tag is not there."),
    described(
        "not_literal_or",
        "host=not_literal_or(web01|web02)",
        "The tag is there, and its value is none of those given.",
    ),
    described(
        "regexp",
        "host=regexp(web.*)",
        "A part of the value matches the regular expression.",
    ),
    described(
        "wildcard",
        "host=wildcard(web*.example.com)",
        "The value has the form given, where * stands for any text.",
    ),
];

/// A filter as JSON has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct FilterSpec {
    #[serde(rename = "type")]
    pub kind: String,
    pub tagk: String,
    pub filter: String,
    #[serde(rename = "groupBy", alias = "group_by")]
    pub group_by: Flag,
}

impl TagValueFilter {
    /// The filter of a value behind a tag: a filter by its name, texts between `|`, or a text with `*`.
    pub(crate) fn from_value(key: &str, value: &str, group_by: bool) -> Result<Self, QueryFault> {
        let named = value
            .strip_suffix(')')
            .and_then(|value| value.split_once('('));
        if let Some((name, text)) = named {
            return Self::from_name(key, name, text, group_by);
        }
        let test = match value {
            "*" => TagTest::Wildcard("*".to_owned()),
            value if value.contains('*') => TagTest::WildcardAnyCase(value.to_owned()),
            value => TagTest::OneOf(literals(key, value)?),
        };
        Self::new(key, test, group_by)
    }

    /// The filter of a name.
    pub(crate) fn from_name(
        key: &str,
        name: &str,
        text: &str,
        group_by: bool,
    ) -> Result<Self, QueryFault> {
        let test = match name.to_ascii_lowercase().as_str() {
            "literal_or" => TagTest::OneOf(literals(key, text)?),
            "iliteral_or" => TagTest::OneOfAnyCase(literals(key, text)?),
            "not_literal_or" => TagTest::NoneOf(literals(key, text)?),
            "not_iliteral_or" => TagTest::NoneOfAnyCase(literals(key, text)?),
            "wildcard" => TagTest::Wildcard(form(key, text)?),
            "iwildcard" => TagTest::WildcardAnyCase(form(key, text)?),
            "regexp" if !text.is_empty() => TagTest::Regexp(text.to_owned()),
            "not_key" if text.is_empty() => TagTest::NoKey,
            "regexp" => return Err(empty(key)),
            "not_key" => {
                return Err(QueryFault::new(
                    "Filter value must be empty for the not_key filter",
                ));
            }
            _ => {
                let names: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
                return Err(QueryFault::new(format!("No such filter type: {name:.50}"))
                    .with_details(format!("There are {}", names.join(", "))));
            }
        };
        Self::new(key, test, group_by)
    }

    fn new(key: &str, test: TagTest, group_by: bool) -> Result<Self, QueryFault> {
        if key.is_empty() {
            return Err(QueryFault::new("Missing the tag key of a filter"));
        }
        Ok(Self {
            key: key.to_owned(),
            test,
            group_by,
        })
    }

    /// The filter as JSON has it.
    pub(crate) fn spec(&self) -> FilterSpec {
        let (kind, filter) = match &self.test {
            TagTest::OneOf(values) => ("literal_or", values.join("|")),
            TagTest::OneOfAnyCase(values) => ("iliteral_or", values.join("|")),
            TagTest::NoneOf(values) => ("not_literal_or", values.join("|")),
            TagTest::NoneOfAnyCase(values) => ("not_iliteral_or", values.join("|")),
            TagTest::Wildcard(form) => ("wildcard", form.clone()),
            TagTest::WildcardAnyCase(form) => ("iwildcard", form.clone()),
            TagTest::Regexp(text) => ("regexp", text.clone()),
            TagTest::NoKey => ("not_key", String::new()),
        };
        FilterSpec {
            kind: kind.to_owned(),
            tagk: self.key.clone(),
            filter,
            group_by: Flag(self.group_by),
        }
    }

    /// The regular expression that stands for the test, where it is one of texts; without regard to
    /// whether the values found are wanted or not.
    pub fn pattern(&self) -> Option<String> {
        match &self.test {
            TagTest::OneOf(_) | TagTest::NoneOf(_) | TagTest::NoKey => None,
            TagTest::OneOfAnyCase(values) | TagTest::NoneOfAnyCase(values) => {
                let values: Vec<String> = values.iter().map(|value| escaped(value)).collect();
                Some(format!("(?is)^(?:{})$", values.join("|")))
            }
            TagTest::Wildcard(form) => Some(format!("(?s)^{}$", wildcard(form))),
            TagTest::WildcardAnyCase(form) => Some(format!("(?is)^{}$", wildcard(form))),
            TagTest::Regexp(text) => Some(text.clone()),
        }
    }
}

fn empty(key: &str) -> QueryFault {
    QueryFault::new(format!("Filter cannot be null or empty: tag '{key:.50}'"))
}

fn literals(key: &str, text: &str) -> Result<Vec<String>, QueryFault> {
    let values = text.split('|').filter(|value| !value.is_empty());
    let mut values: Vec<String> = values.map(str::to_owned).collect();
    values.sort();
    values.dedup();
    if values.is_empty() {
        return Err(empty(key));
    }
    Ok(values)
}

fn form(key: &str, text: &str) -> Result<String, QueryFault> {
    if text.is_empty() {
        return Err(empty(key));
    }
    if !text.contains('*') {
        return Err(QueryFault::new(format!(
            "Filter must contain an asterisk: '{text:.50}'"
        )));
    }
    Ok(text.to_owned())
}

/// A text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 8);
    for ch in text.chars() {
        if ch.is_ascii_punctuation() && !matches!(ch, '<' | '>') {
            pattern.push('\\');
        }
        pattern.push(ch);
    }
    pattern
}

fn wildcard(form: &str) -> String {
    let parts: Vec<String> = form.split('*').map(escaped).collect();
    parts.join(".*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(value: &str) -> Result<TagTest, String> {
        let filter = TagValueFilter::from_value("host", value, true);
        filter
            .map(|filter| filter.test)
            .map_err(|fault| fault.message)
    }

    #[test]
    fn a_value_is_a_filter() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(test("web01"), Ok(TagTest::OneOf(texts(&["web01"]))));
        assert_eq!(test("b|a|b"), Ok(TagTest::OneOf(texts(&["a", "b"]))));
        assert_eq!(test("*"), Ok(TagTest::Wildcard("*".into())));
        assert_eq!(test("web*"), Ok(TagTest::WildcardAnyCase("web*".into())));
        assert_eq!(
            test("regexp(a(b|c)+)"),
            Ok(TagTest::Regexp("a(b|c)+".into()))
        );
        assert_eq!(test("not_key()"), Ok(TagTest::NoKey));
        assert_eq!(
            test("iliteral_or(A)"),
            Ok(TagTest::OneOfAnyCase(texts(&["A"])))
        );
        for wrong in [
            "",
            "|",
            "nothing(a)",
            "wildcard(a)",
            "regexp()",
            "not_key(a)",
            "literal_or()",
        ] {
            assert!(test(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn forms_become_regular_expressions() {
        let pattern = |value: &str| {
            let filter = TagValueFilter::from_value("host", value, true).unwrap();
            filter.pattern()
        };
        assert_eq!(
            pattern("wildcard(a.*<b>)").as_deref(),
            Some("(?s)^a\\..*<b>$")
        );
        assert_eq!(pattern("iwildcard(*x)").as_deref(), Some("(?is)^.*x$"));
        assert_eq!(
            pattern("iliteral_or(b|a-c)").as_deref(),
            Some("(?is)^(?:a\\-c|b)$")
        );
        assert_eq!(pattern("a"), None);
    }

    #[test]
    fn every_filter_that_is_described_can_be_made() {
        for filter in FILTERS {
            let value = filter.examples.split_once('=').unwrap().1;
            assert!(test(value).is_ok(), "{value}");
            assert!(value.starts_with(filter.name));
            let made = TagValueFilter::from_value("host", value, true).unwrap();
            let spec = made.spec();
            let again =
                TagValueFilter::from_name(&spec.tagk, &spec.kind, &spec.filter, spec.group_by.0);
            assert_eq!(again, Ok(made));
        }
    }
}
