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
        fn value<'a>(series: &'a SeriesKey, key: &str) -> &'a str {
            series.tag(key).map_or("", |value| value)
        }
        if std::ptr::eq(self, other) {
            return Ordering::Equal;
        }
        self.name.cmp(&other.name).then_with(|| {
            let mut order = keys
                .iter()
                .map(|key| value(self, key).cmp(value(other, key)));
            order.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    /// The order of InfluxDB's answers.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        if std::ptr::eq(self, other) {
            return Ordering::Equal;
        }
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

/// The number of results that a [`Narrowing`] remembers.
const NARROWED_SLOTS: usize = 1_024;

/// A series, and what it was reduced to.
type Narrowed = (Arc<SeriesKey>, Arc<SeriesKey>);

/// Reduces series to some of their tags, and remembers results: that of the last series, and, by the
/// addresses of their keys, those of earlier ones, because rows in the order of time change series often.
#[derive(Debug)]
pub(crate) struct Narrowing {
    keys: Arc<[Arc<str>]>,
    last: Option<Narrowed>,
    /// Empty until a second series comes.
    earlier: Vec<Option<Narrowed>>,
}

impl Narrowing {
    /// Reduces to these keys, which are sorted.
    pub(crate) const fn new(keys: Arc<[Arc<str>]>) -> Self {
        Self {
            keys,
            last: None,
            earlier: Vec::new(),
        }
    }

    /// The series with these keys only.
    pub(crate) fn narrow(&mut self, series: &Arc<SeriesKey>) -> Arc<SeriesKey> {
        if let Some((known, narrowed)) = &self.last
            && (Arc::ptr_eq(known, series) || known == series)
        {
            return Arc::clone(narrowed);
        }
        let slot = slot_of(series);
        if let Some(Some((known, narrowed))) = self.earlier.get(slot)
            && Arc::ptr_eq(known, series)
        {
            let narrowed = Arc::clone(narrowed);
            self.last = Some((Arc::clone(series), Arc::clone(&narrowed)));
            return narrowed;
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
        if self.last.is_some() {
            self.earlier.resize(NARROWED_SLOTS, None);
            self.earlier[slot] = Some((Arc::clone(series), Arc::clone(&narrowed)));
        }
        self.last = Some((Arc::clone(series), Arc::clone(&narrowed)));
        narrowed
    }
}

/// The slot of a series, by the address of its key: allocations are at least 16 bytes apart.
fn slot_of(series: &Arc<SeriesKey>) -> usize {
    let address = Arc::as_ptr(series).addr() >> 4;
    (address ^ address >> 10) % NARROWED_SLOTS
}

/// Whether two series are the same.
pub(crate) fn same(a: &Arc<SeriesKey>, b: &Arc<SeriesKey>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}
