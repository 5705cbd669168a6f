//! Filters on tags, as the model defines them.

use super::OracleTags;
use marigram_engine::TagFilter;
use marigram_model::{TableSchema, TagValue};

/// Which series, by the names of tags. A tag that the table does not have is null in every series.
#[derive(Clone, Debug)]
pub enum OracleFilter {
    /// Every series.
    All,
    /// The tag has one of the values.
    In(String, Vec<TagValue>),
    /// The tag is null.
    IsNull(String),
    /// The tag is not null.
    IsNotNull(String),
    /// All of them match.
    And(Vec<OracleFilter>),
    /// At least one of them matches.
    Or(Vec<OracleFilter>),
}

impl OracleFilter {
    /// Whether a series matches.
    #[must_use]
    pub fn matches(&self, tags: &OracleTags) -> bool {
        match self {
            Self::All => true,
            Self::In(tag, values) => tags.get(tag).is_some_and(|value| values.contains(value)),
            Self::IsNull(tag) => !tags.contains_key(tag),
            Self::IsNotNull(tag) => tags.contains_key(tag),
            Self::And(all) => all.iter().all(|filter| filter.matches(tags)),
            Self::Or(any) => any.iter().any(|filter| filter.matches(tags)),
        }
    }

    /// The same filter for the engine.
    #[must_use]
    pub fn to_engine(&self, schema: &TableSchema) -> TagFilter {
        let ordinal = |tag: &str| schema.tag(tag).map(|(ordinal, _)| ordinal);
        match self {
            Self::All => TagFilter::All,
            Self::In(tag, values) => match ordinal(tag) {
                Some(ordinal) => TagFilter::In(ordinal, values.clone()),
                None => TagFilter::None,
            },
            Self::IsNull(tag) => ordinal(tag).map_or(TagFilter::All, TagFilter::IsNull),
            Self::IsNotNull(tag) => ordinal(tag).map_or(TagFilter::None, TagFilter::IsNotNull),
            Self::And(all) => {
                TagFilter::And(all.iter().map(|filter| filter.to_engine(schema)).collect())
            }
            Self::Or(any) => {
                TagFilter::Or(any.iter().map(|filter| filter.to_engine(schema)).collect())
            }
        }
    }
}
