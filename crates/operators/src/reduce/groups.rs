//! Groups: the group of each series, and the slots of groups and buckets.

use super::order::{GroupOrder, GroupRanks};
use super::recipe::GroupingTags;
use crate::rows::tag_array;
use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, DictionaryArray, Int32Array, StringBuilder,
};
use arrow::datatypes::{Int32Type, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DataFusionError, Result, exec_err, internal_err, resources_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use hashbrown::HashTable;
use marigram_engine::TableSnapshot;
use marigram_functions::TimeBuckets;
use marigram_functions::interrupt;
use marigram_functions::zoned;
use marigram_model::{SeriesId, TimeRange};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The number of series whose tags are read at once.
const SERIES_BATCH: usize = 8192;
/// Groups up to this size are not reserved twice, bytes.
const SMALL_BYTES: usize = 64 << 10;
/// Up to this many slots (groups times buckets) are laid out in advance; otherwise slots are added
/// as rows arrive.
const LAID_OUT_MAX: u64 = 1 << 18;

/// The groups of a query, by tags alone.
#[derive(Debug)]
pub(super) struct SeriesGroups {
    /// The number of groups.
    pub count: usize,
    /// One column per expression over tags, with one row per group.
    pub keys: Vec<ArrayRef>,
    /// The order of the groups, if one is required.
    pub ranks: GroupRanks,
    /// The memory of the groups and of the assignment of series to groups.
    _held: Option<MemoryReservation>,
}

/// The group of each series of a partition. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum GroupMembers {
    /// There is one group.
    One,
    /// Groups of the series from `first` on.
    Dense {
        /// First series.
        first: u32,
        /// The group of the first series and of each series that follows.
        groups: Arc<[u32]>,
    },
    /// For few series that are far apart.
    Sparse(Arc<HashMap<u32, u32, foldhash::fast::RandomState>>),
}

impl GroupMembers {
    /// The group of a series of the partition.
    pub(super) fn group(&self, series: SeriesId) -> u32 {
        match self {
            Self::One => 0,
            Self::Dense { first, groups } => groups[(series.0 - first) as usize],
            Self::Sparse(groups) => groups.get(&series.0).copied().unwrap_or_default(),
        }
    }

    fn from_groups(series: &[SeriesId], groups: &[u32]) -> Self {
        let (Some(first), Some(last)) = (series.first(), series.last()) else {
            return Self::One;
        };
        let width = (last.0 - first.0) as usize + 1;
        let pairs = series.iter().zip(groups);
        if width > 8 * series.len() + 1024 {
            let pairs = pairs.map(|(series, group)| (series.0, *group));
            return Self::Sparse(Arc::new(pairs.collect()));
        }
        let mut all = vec![0; width];
        for (series, group) in pairs {
            all[(series.0 - first.0) as usize] = *group;
        }
        Self::Dense {
            first: first.0,
            groups: all.into(),
        }
    }

    /// Memory in use, bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::One => 0,
            Self::Dense { groups, .. } => 4 * groups.len(),
            Self::Sparse(groups) => groups.capacity() * size_of::<(u32, u32)>(),
        }
    }
}

impl SeriesGroups {
    /// One group that contains all series.
    pub(super) fn one() -> Self {
        Self {
            count: 1,
            keys: Vec::new(),
            ranks: GroupRanks::default(),
            _held: None,
        }
    }

    /// Determines the groups of the series of some parts (shards and series). The groups keep
    /// `held`.
    ///
    /// # Errors
    /// If an expression over tags fails; `ResourcesExhausted` if `held` cannot be made large
    /// enough.
    pub(super) fn find(
        tags: &GroupingTags,
        order: &GroupOrder,
        snapshot: &TableSnapshot,
        parts: &[(usize, &RoaringBitmap)],
        held: MemoryReservation,
    ) -> Result<(Self, Vec<GroupMembers>)> {
        let mut values: Box<dyn GroupInterner> = match tags.one_text() {
            Some(ordinal) => Box::new(TextGroups::new(ordinal)),
            None => Box::new(ExpressionGroups {
                values: new_group_values(Arc::clone(&tags.keys_schema), &GroupOrdering::None)?,
                tags,
            }),
        };
        let mut members = Vec::with_capacity(parts.len());
        let mut members_bytes = 0;
        for (shard, series) in parts {
            let all: Vec<SeriesId> = series.iter().map(SeriesId).collect();
            let (mut groups, mut batch) = (Vec::with_capacity(all.len()), Vec::new());
            for series in all.chunks(SERIES_BATCH) {
                interrupt::check()?;
                values.intern(snapshot, *shard, series, &mut batch)?;
                groups.extend(batch.drain(..).map(|group| group as u32));
                if all.len() > SERIES_BATCH {
                    let part_bytes = 3 * size_of::<u32>() * all.len();
                    held.try_resize(values.size() + members_bytes + part_bytes)?;
                }
            }
            let part = GroupMembers::from_groups(&all, &groups);
            members_bytes += part.size();
            members.push(part);
        }
        let values_bytes = values.size();
        if values_bytes > SMALL_BYTES {
            // The interned values, and a copy of them as keys.
            held.try_resize(2 * values_bytes + members_bytes)?;
        }
        let (count, keys) = values.finish()?;
        let keys_bytes: usize = keys.iter().map(Array::get_array_memory_size).sum();
        held.try_resize(keys_bytes + members_bytes + count * order.group_bytes())?;
        let ranks = GroupRanks::from_keys(order, &keys)?;
        let held = Some(held);
        let groups = Self {
            count,
            keys,
            ranks,
            _held: held,
        };
        Ok((groups, members))
    }
}

/// Assigns series to groups.
trait GroupInterner {
    /// Appends the groups of some series of a shard.
    fn intern(
        &mut self,
        snapshot: &TableSnapshot,
        shard: usize,
        series: &[SeriesId],
        groups: &mut Vec<usize>,
    ) -> Result<()>;

    /// Memory in use, bytes.
    fn size(&self) -> usize;

    /// The number of groups, and their keys.
    fn finish(self: Box<Self>) -> Result<(usize, Vec<ArrayRef>)>;
}

/// Groups by arbitrary expressions over tags.
struct ExpressionGroups<'a> {
    tags: &'a GroupingTags,
    values: Box<dyn GroupValues>,
}

impl GroupInterner for ExpressionGroups<'_> {
    fn intern(
        &mut self,
        snapshot: &TableSnapshot,
        shard: usize,
        series: &[SeriesId],
        groups: &mut Vec<usize>,
    ) -> Result<()> {
        let tags = self.tags;
        let columns = tags
            .ordinals
            .iter()
            .map(|(ordinal, kind)| tag_array(&snapshot.tag_values(shard, series, *ordinal), *kind));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let batch = batch_of(&tags.schema, columns, series.len())?;
        let keys = tags.keys.iter();
        let keys = keys
            .map(|key| key.evaluate(&batch)?.into_array(series.len()))
            .collect::<Result<Vec<_>>>()?;
        self.values.intern(&keys, groups)
    }

    fn size(&self) -> usize {
        self.values.size()
    }

    fn finish(mut self: Box<Self>) -> Result<(usize, Vec<ArrayRef>)> {
        let count = self.values.len();
        let keys = if count == 0 {
            Vec::new()
        } else {
            self.values.emit(EmitTo::All)?
        };
        Ok((count, keys))
    }
}

/// Groups by one text tag, as most queries do: this needs no keys in row format.
struct TextGroups {
    ordinal: u16,
    /// The hash and the group of each text.
    known: HashTable<(u64, u32)>,
    state: foldhash::fast::RandomState,
    /// The group of series without the tag.
    none: Option<usize>,
    /// The text of each group.
    words: StringBuilder,
    bytes: usize,
}

impl TextGroups {
    fn new(ordinal: u16) -> Self {
        Self {
            ordinal,
            known: HashTable::new(),
            state: foldhash::fast::RandomState::default(),
            none: None,
            words: StringBuilder::new(),
            bytes: 0,
        }
    }

    /// The group of a text, which is `next` if the text is new.
    fn group(&mut self, text: &str, next: usize) -> usize {
        let hash = self.state.hash_one(text);
        let (bytes, ends) = (self.words.values_slice(), self.words.offsets_slice());
        let is_it = |known: &(u64, u32)| {
            let at = known.1 as usize;
            let word = ends[at] as usize..ends[at + 1] as usize;
            known.0 == hash && bytes[word] == *text.as_bytes()
        };
        if let Some(known) = self.known.find(hash, is_it) {
            return known.1 as usize;
        }
        self.known
            .insert_unique(hash, (hash, next as u32), |known| known.0);
        next
    }
}

impl GroupInterner for TextGroups {
    fn intern(
        &mut self,
        snapshot: &TableSnapshot,
        shard: usize,
        series: &[SeriesId],
        groups: &mut Vec<usize>,
    ) -> Result<()> {
        let texts = snapshot.tag_values(shard, series, self.ordinal);
        let Some(texts) = texts.as_string_opt::<i32>() else {
            return internal_err!("a tag of text is of type {}", texts.data_type());
        };
        self.known.reserve(texts.len(), |known| known.0);
        for text in texts {
            let next = self.words.len();
            let group = match text {
                None => *self.none.get_or_insert(next),
                Some(text) => self.group(text, next),
            };
            if group == next {
                self.bytes += text.map_or(0, str::len);
                if self.bytes > i32::MAX as usize {
                    return resources_err!("the groups have more than 2 GiB of text");
                }
                self.words.append_option(text);
            }
            groups.push(group);
        }
        Ok(())
    }

    fn size(&self) -> usize {
        // The capacity of the vectors may be twice their length.
        self.known.allocation_size() + 2 * (self.bytes + size_of::<i32>() * self.words.len())
    }

    fn finish(mut self: Box<Self>) -> Result<(usize, Vec<ArrayRef>)> {
        let words = self.words.finish();
        let keys: Int32Array = (0..words.len())
            .map(|word| words.is_valid(word).then_some(word as i32))
            .collect();
        let count = words.len();
        let keys = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(words))?;
        Ok((count, vec![Arc::new(keys)]))
    }
}

/// A batch with this number of rows.
pub(super) fn batch_of(
    schema: &Arc<Schema>,
    mut columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    zoned::label(&mut columns, schema)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// Slots: one for each group, or for each group and bucket.
#[derive(Clone, Debug)]
pub(super) enum GroupSlots {
    /// A slot is a group.
    Groups {
        /// The number of groups.
        count: usize,
    },
    /// Each group has a slot for each bucket of one width.
    LaidOut {
        /// Start of the first bucket, ns.
        first: i64,
        /// The width of a bucket, ns.
        width: i64,
        /// The number of buckets per group.
        buckets: usize,
        /// The number of groups.
        groups: usize,
    },
    /// Slots are added as rows arrive.
    Made {
        /// The slot of a group and the start of a bucket.
        places: HashMap<(u32, i64), u32, foldhash::fast::RandomState>,
        /// The reverse mapping.
        keys: Vec<(u32, i64)>,
    },
}

impl GroupSlots {
    /// Creates the slots for rows of `groups` groups within `range`.
    pub(super) fn new(groups: usize, buckets: Option<&TimeBuckets>, range: TimeRange) -> Self {
        let Some(buckets) = buckets else {
            return Self::Groups { count: groups };
        };
        let laid_out = || {
            let width = buckets.fixed_ns()?;
            let mut buckets = buckets.clone();
            let first = buckets.floor(range.min).ok()?;
            let last = buckets.floor(range.max).ok()?;
            let count = last.checked_sub(first)? as u64 / width as u64 + 1;
            (count.checked_mul(groups as u64)? <= LAID_OUT_MAX).then_some(Self::LaidOut {
                first,
                width,
                buckets: count as usize,
                groups,
            })
        };
        let made = || Self::Made {
            places: HashMap::default(),
            keys: Vec::new(),
        };
        (!range.is_empty())
            .then(laid_out)
            .flatten()
            .unwrap_or_else(made)
    }

    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Groups { count } => *count,
            Self::LaidOut {
                buckets, groups, ..
            } => buckets * groups,
            Self::Made { keys, .. } => keys.len(),
        }
    }

    /// The slot of a group and the start of a bucket (which is ignored without buckets).
    ///
    /// # Errors
    /// If the bucket is outside the times for which the slots were made: then a file has rows at
    /// times that its index does not mention.
    pub(super) fn slot(&mut self, group: u32, start: i64) -> Result<u32> {
        Ok(match self {
            Self::Groups { .. } => group,
            Self::LaidOut {
                first,
                width,
                buckets,
                ..
            } => {
                let since = start.checked_sub(*first);
                let bucket = since.and_then(|since| u32::try_from(since / *width).ok());
                let bucket = bucket.filter(|bucket| (*bucket as usize) < *buckets);
                let Some(bucket) = bucket else {
                    return exec_err!(
                        "rows have times that the index of their file does not mention"
                    );
                };
                group * *buckets as u32 + bucket
            }
            Self::Made { places, keys } => *places.entry((group, start)).or_insert_with(|| {
                keys.push((group, start));
                keys.len() as u32 - 1
            }),
        })
    }

    /// The group of a slot, and the start of its bucket.
    pub(super) fn key(&self, slot: u32) -> (u32, i64) {
        match self {
            Self::Groups { .. } => (slot, 0),
            Self::LaidOut {
                first,
                width,
                buckets,
                ..
            } => {
                let buckets = *buckets as u32;
                (slot / buckets, first + i64::from(slot % buckets) * width)
            }
            Self::Made { keys, .. } => keys[slot as usize],
        }
    }

    /// Memory in use, bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Groups { .. } | Self::LaidOut { .. } => 0,
            Self::Made { places, keys } => {
                places.capacity() * size_of::<((u32, i64), u32)>()
                    + keys.capacity() * size_of::<(u32, i64)>()
            }
        }
    }
}

/// Converts an error of buckets to DataFusion's.
pub(super) fn bucket_error(reason: String) -> DataFusionError {
    DataFusionError::Execution(format!("time_bucket: {reason}"))
}
