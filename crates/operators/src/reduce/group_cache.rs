//! The group cache: groups that were determined before.
//!
//! A series keeps its tags for life, and its id is never reused. So the groups of the same series
//! by the same tags never change, whatever is written.

use super::groups::{GroupMembers, SeriesGroups};
use super::order::GroupOrder;
use super::recipe::{AggregateRecipe, GroupingTags};
use arrow::array::Array;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use marigram_engine::TableSnapshot;
use marigram_model::TableId;
use parking_lot::Mutex;
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::sync::Arc;

/// For fewer series, determining the groups is as fast as looking them up.
const SERIES_MIN: u64 = 8;
/// The largest number of cache entries.
const ENTRIES_MAX: usize = 64;

/// The groups of some series, and the assignment of series to groups.
#[derive(Clone, Debug)]
pub(super) struct GroupAssignment {
    /// The groups.
    pub groups: Arc<SeriesGroups>,
    /// The groups of the series of each part.
    pub members: Vec<GroupMembers>,
}

/// What the groups depend on.
#[derive(Debug, PartialEq)]
struct GroupCacheKey {
    table: TableId,
    /// The ordinals of the tags by which rows are grouped.
    tags: Vec<u16>,
    order: GroupOrder,
    /// Shards and series.
    parts: Vec<(usize, RoaringBitmap)>,
}

impl GroupCacheKey {
    /// `None` if caching is not worthwhile, or if rows are grouped by more than plain tags.
    fn new(
        table: TableId,
        tags: &GroupingTags,
        order: &GroupOrder,
        parts: &[(usize, &RoaringBitmap)],
    ) -> Option<Self> {
        let series: u64 = parts.iter().map(|(_, series)| series.len()).sum();
        if series < SERIES_MIN {
            return None;
        }
        let ordinal = |key: &Arc<dyn PhysicalExpr>| {
            let place = key.downcast_ref::<Column>()?.index();
            Some(tags.ordinals.get(place)?.0)
        };
        Some(Self {
            table,
            tags: tags.keys.iter().map(ordinal).collect::<Option<_>>()?,
            order: order.clone(),
            parts: parts
                .iter()
                .map(|(shard, series)| (*shard, (*series).clone()))
                .collect(),
        })
    }

    /// The approximate memory of the key, bytes.
    fn size(&self) -> usize {
        let series = self
            .parts
            .iter()
            .map(|(_, series)| series.serialized_size());
        2 * series.sum::<usize>() + size_of::<Self>()
    }
}

#[derive(Debug)]
struct GroupCacheEntry {
    key: GroupCacheKey,
    found: GroupAssignment,
    bytes: usize,
}

/// See the module documentation; an extension of the session's configuration.
#[derive(Debug)]
pub struct GroupCache {
    bytes_max: usize,
    /// In LRU order: the most recently used entry is last.
    entries: Mutex<VecDeque<GroupCacheEntry>>,
}

impl GroupCache {
    /// Creates a cache of at most this many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            entries: Mutex::default(),
        }
    }

    /// Looks up an assignment.
    fn find(&self, key: &GroupCacheKey) -> Option<GroupAssignment> {
        let mut entries = self.entries.lock();
        let at = entries.iter().rposition(|entry| entry.key == *key)?;
        let found = entries.remove(at)?;
        let answer = found.found.clone();
        entries.push_back(found);
        Some(answer)
    }

    /// Caches an assignment if there is room, and evicts the least recently used entries.
    fn keep(&self, key: GroupCacheKey, found: &GroupAssignment) {
        let bytes = key.size() + found.size();
        if bytes > self.bytes_max {
            return;
        }
        let mut entries = self.entries.lock();
        let all = |entries: &VecDeque<GroupCacheEntry>| {
            entries.iter().map(|entry| entry.bytes).sum::<usize>()
        };
        while entries.len() >= ENTRIES_MAX || all(&entries) + bytes > self.bytes_max {
            entries.pop_front();
        }
        entries.push_back(GroupCacheEntry {
            key,
            found: found.clone(),
            bytes,
        });
    }
}

impl GroupAssignment {
    /// The groups of the series of some parts (shards and series), from the cache or computed.
    ///
    /// # Errors
    /// If an expression over tags fails; `ResourcesExhausted` if there is not enough memory for
    /// them.
    pub(super) fn find_or_compute(
        recipe: &AggregateRecipe,
        snapshot: &TableSnapshot,
        parts: &[(usize, &RoaringBitmap)],
        context: &TaskContext,
    ) -> Result<Self> {
        let Some(tags) = &recipe.tags else {
            return Ok(Self {
                groups: Arc::new(SeriesGroups::one()),
                members: parts.iter().map(|_| GroupMembers::One).collect(),
            });
        };
        let order = recipe.order();
        let entries = context.session_config().get_extension::<GroupCache>();
        let key = GroupCacheKey::new(snapshot.schema().id, tags, &order, parts);
        let known = entries.as_ref().zip(key.as_ref());
        if let Some(known) = known.and_then(|(entries, key)| entries.find(key)) {
            return Ok(known);
        }
        let held = MemoryConsumer::new("SeriesGroups").register(context.memory_pool());
        let (groups, members) = SeriesGroups::find(tags, &order, snapshot, parts, held)?;
        let groups = Arc::new(groups);
        let found = Self { groups, members };
        if let Some((entries, key)) = entries.zip(key) {
            entries.keep(key, &found);
        }
        Ok(found)
    }

    /// Memory in use, bytes.
    fn size(&self) -> usize {
        let keys = self.groups.keys.iter();
        let keys = keys.map(Array::get_array_memory_size);
        let members = self.members.iter().map(GroupMembers::size);
        keys.sum::<usize>() + members.sum::<usize>() + self.groups.ranks.size()
    }
}
