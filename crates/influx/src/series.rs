//! The series to which a row of an answer belongs: its measurement, and the tags of GROUP BY.

use std::cmp::Ordering;
use std::sync::Arc;

/// A measurement and tags, sorted by key. A tag that a row lacks is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct SeriesKey {
    /// The measurement.
    pub name: Arc<str>,
    /// Keys and values.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
}

impl SeriesKey {
    /// The value of a tag; `None` if the key is not one of the series.
    pub(crate) fn tag(&self, key: &str) -> Option<&Arc<str>> {
        let found = self.tags.iter().find(|(known, _)| &**known == key);
        found.map(|(_, value)| value)
    }

    /// The same series with these tags only, in this order; tags that it lacks are empty.
    #[must_use]
    pub(crate) fn subset(&self, keys: &[Arc<str>]) -> Self {
        let empty: Arc<str> = "".into();
        let of = |key: &Arc<str>| {
            let value = self.tag(key).unwrap_or(&empty);
            (Arc::clone(key), Arc::clone(value))
        };
        Self {
            name: Arc::clone(&self.name),
            tags: keys.iter().map(of).collect(),
        }
    }

    /// The order of InfluxDB's answers, restricted to some tags.
    pub(crate) fn order_by(&self, other: &Self, keys: &[Arc<str>]) -> Ordering {
        let value = |series: &Self, key: &Arc<str>| series.tag(key).cloned().unwrap_or_default();
        self.name.cmp(&other.name).then_with(|| {
            let mut order = keys
                .iter()
                .map(|key| value(self, key).cmp(&value(other, key)));
            order.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    /// The order of InfluxDB's answers.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name).then_with(|| {
            let (ours, theirs) = (self.tags.iter(), other.tags.iter());
            let keys = ours.clone().map(|(key, _)| key);
            let keys = keys.cmp(theirs.clone().map(|(key, _)| key));
            keys.then_with(|| {
                ours.map(|(_, value)| value)
                    .cmp(theirs.map(|(_, value)| value))
            })
        })
    }
}

/// Sorted keys without duplicates, for grouping.
pub(crate) fn sorted_keys(keys: impl IntoIterator<Item = String>) -> Arc<[Arc<str>]> {
    let mut keys: Vec<Arc<str>> = keys.into_iter().map(Into::into).collect();
    keys.sort();
    keys.dedup();
    keys.into()
}

/// Reduces series to some of their tags, and remembers the last result.
#[derive(Debug)]
pub(crate) struct Narrowing {
    keys: Arc<[Arc<str>]>,
    last: Option<(Arc<SeriesKey>, Arc<SeriesKey>)>,
}

impl Narrowing {
    /// Reduces to these keys, which are sorted.
    pub(crate) const fn new(keys: Arc<[Arc<str>]>) -> Self {
        Self { keys, last: None }
    }

    /// The series with these keys only.
    pub(crate) fn narrow(&mut self, series: &Arc<SeriesKey>) -> Arc<SeriesKey> {
        if let Some((known, narrowed)) = &self.last
            && (Arc::ptr_eq(known, series) || known == series)
        {
            return Arc::clone(narrowed);
        }
        let same = series.tags.iter().map(|(key, _)| key).eq(self.keys.iter());
        let mut narrowed = if same {
            Arc::clone(series)
        } else {
            Arc::new(series.subset(&self.keys))
        };
        // Equal series share one key, so that comparing them is fast.
        if let Some((_, last)) = &self.last
            && **last == *narrowed
        {
            narrowed = Arc::clone(last);
        }
        self.last = Some((Arc::clone(series), Arc::clone(&narrowed)));
        narrowed
    }
}

/// Whether two series are the same.
pub(crate) fn same(a: &Arc<SeriesKey>, b: &Arc<SeriesKey>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}
