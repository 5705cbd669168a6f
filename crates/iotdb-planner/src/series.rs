//! Finds the timeseries that patterns match: those that were created, and those that have values.

mod declared;
mod finder;

pub(crate) use declared::{DECLARED_FIELDS, DeclaredSeries, tag_texts};

use crate::statement::TreeRun;
use crate::trees::{TreeDatabase, readable_databases};
use finder::SeriesFinder;
use marigram_engine::{TagFilter, ValueTest};
use marigram_iotdb::{DEVICE_TAG, IotDbType, PathNode, PathPattern, TreePath, node_text};
use marigram_model::{TableSchema, TagValue};
use marigram_sql::{SqlError, SqlResult};
use regex::RegexBuilder;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes that a found timeseries holds beside its texts.
const SERIES_BYTES: usize = 160;

/// Bytes of a compiled pattern.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A device.
#[derive(Clone, Debug)]
pub(crate) struct TreeDevice {
    /// Its database: a place in [`FoundSeries::databases`].
    pub(crate) database: usize,
    /// Its path.
    pub(crate) path: TreePath,
    /// The text of its path, as the tag has it.
    pub(crate) text: Arc<str>,
}

/// A timeseries.
#[derive(Clone, Debug)]
pub(crate) struct TreeSeries {
    pub(crate) device: Arc<TreeDevice>,
    pub(crate) measurement: Arc<str>,
    /// The type of its values.
    pub(crate) kind: IotDbType,
    /// The field of its values, if it has any.
    pub(crate) field: Option<Arc<str>>,
    pub(crate) declared: Option<Arc<DeclaredSeries>>,
}

impl TreeSeries {
    /// The text of its path.
    pub(crate) fn path(&self) -> String {
        format!("{}.{}", self.device.text, node_text(&self.measurement))
    }

    /// The nodes of its path.
    pub(crate) fn nodes(&self) -> Vec<&str> {
        let nodes = self.device.path.nodes().iter().map(String::as_str);
        nodes.chain([&*self.measurement]).collect()
    }

    /// Whether a pattern matches it, by its name or by its alias.
    pub(crate) fn is_matched(&self, pattern: &PathPattern) -> bool {
        let mut nodes = self.nodes();
        if pattern.matches(&nodes) {
            return true;
        }
        let alias = self.declared.as_ref().and_then(|it| it.alias.as_deref());
        let Some(alias) = alias else {
            return false;
        };
        nodes.pop();
        nodes.push(alias);
        pattern.matches(&nodes)
    }
}

/// Timeseries, in the order of their paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundSeries {
    pub(crate) databases: Vec<TreeDatabase>,
    pub(crate) series: Vec<TreeSeries>,
}

/// The patterns that the devices of the matched timeseries match.
pub(crate) fn device_patterns(patterns: &[PathPattern]) -> Vec<PathPattern> {
    let mut devices = Vec::new();
    for pattern in patterns {
        if pattern.nodes().len() > 1 {
            devices.push(pattern.parent());
        }
        if pattern.nodes().last() == Some(&PathNode::AnyDepth) {
            devices.push(pattern.clone());
        }
    }
    devices
}

/// The filter that selects the devices that patterns may match.
///
/// # Errors
/// If a pattern is too large.
pub(crate) fn device_filter(table: &TableSchema, patterns: &[PathPattern]) -> SqlResult<TagFilter> {
    let Some((tag, _)) = table.tag(DEVICE_TAG) else {
        return Ok(TagFilter::None);
    };
    let mut exact = HashSet::new();
    let mut filters = Vec::new();
    for pattern in patterns {
        match pattern.as_path() {
            Some(path) => {
                exact.insert(path.to_string());
            }
            None => {
                let regex = RegexBuilder::new(&pattern.regex())
                    .size_limit(REGEX_BYTES_MAX)
                    .build();
                let regex = regex.map_err(|error| SqlError::invalid("2201B", error.to_string()))?;
                filters.push(TagFilter::Matches(tag, ValueTest::Regex(regex)));
            }
        }
    }
    if !exact.is_empty() {
        let values = exact.into_iter().map(TagValue::String).collect();
        filters.push(TagFilter::In(tag, values));
    }
    Ok(TagFilter::Or(filters))
}

/// Finds the timeseries that one of the patterns matches.
///
/// # Errors
/// If there is no memory for them, or storage cannot be read.
pub(crate) async fn find_series(
    run: &TreeRun<'_>,
    patterns: &[PathPattern],
) -> SqlResult<FoundSeries> {
    let databases = readable_databases(run, patterns);
    find_series_in(run, databases, patterns).await
}

/// The same, in these databases.
///
/// # Errors
/// As [`find_series`].
pub(crate) async fn find_series_in(
    run: &TreeRun<'_>,
    databases: Vec<TreeDatabase>,
    patterns: &[PathPattern],
) -> SqlResult<FoundSeries> {
    let mut series = Vec::new();
    for (place, database) in databases.iter().enumerate() {
        let finder = SeriesFinder {
            run,
            database,
            place,
            patterns,
            devices: device_patterns(patterns),
        };
        finder.find(&mut series).await?;
    }
    series.sort_by(|a: &TreeSeries, b| a.nodes().cmp(&b.nodes()));
    Ok(FoundSeries { databases, series })
}

/// A timeseries by its device and measurement.
pub(crate) type TimeseriesKey = (Arc<str>, Arc<str>);
