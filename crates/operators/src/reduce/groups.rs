//! Groups: which one each series is of, and the slots of groups and buckets.

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

/// Series whose tags are looked up at once.
const SERIES_BATCH: usize = 8192;
/// Groups up to this size are not reserved twice, bytes.
const SMALL_BYTES: usize = 64 << 10;
/// Up to so many slots are laid out beforehand, groups by buckets; more are made as rows come.
const LAID_OUT_MAX: u64 = 1 << 18;

/// The groups of a query, by tags alone.
#[derive(Debug)]
pub struct SeriesGroups {
    /// How many.
    pub count: usize,
    /// A column of each expression over tags, with one row a group.
    pub keys: Vec<ArrayRef>,
    /// Their order, where one is asked for.
    pub ranks: GroupRanks,
    /// The memory that they hold, and which series is of which.
    _held: Option<MemoryReservation>,
}

/// The group of each series of a partition. Cheap to clone.
#[derive(Clone, Debug)]
pub enum GroupMembers {
    /// There is one group.
    One,
    /// Groups of the series from `first` on.
    Dense {
        /// First series.
        first: u32,
        /// Its group and those of the series that follow.
        groups: Arc<[u32]>,
    },
    /// Few series far apart.
    Sparse(Arc<HashMap<u32, u32, foldhash::fast::RandomState>>),
}

impl GroupMembers {
    /// The group of a series of the partition.
    pub fn group(&self, series: SeriesId) -> u32 {
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
    pub fn size(&self) -> usize {
        match self {
            Self::One => 0,
            Self::Dense { groups, .. } => 4 * groups.len(),
            Self::Sparse(groups) => groups.capacity() * size_of::<(u32, u32)>(),
        }
    }
}

impl SeriesGroups {
    /// One group of all series.
    pub fn one() -> Self {
        Self {
            count: 1,
            keys: Vec::new(),
            ranks: GroupRanks::default(),
            _held: None,
        }
    }

    /// Finds the groups of the series of some parts: shards and series. They keep `held`.
    ///
    /// # Errors
    /// If an expression over tags fails; `ResourcesExhausted` if `held` cannot hold what they take.
    pub fn find(
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
            // What was found, and the same as keys.
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

/// Finds groups of series.
trait GroupInterner {
    /// Appends the group of each of some series of a shard.
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

/// Groups by any expressions over tags.
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

/// Groups by one tag of text, which most queries ask for: without keys as rows.
struct TextGroups {
    ordinal: u16,
    /// Hash and group of each word.
    known: HashTable<(u64, u32)>,
    state: foldhash::fast::RandomState,
    /// The group of series without the tag.
    none: Option<usize>,
    /// By group.
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

    /// The group of a word, which is `next` where it is new.
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
        // Their vectors may be twice as long as what is in them.
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

/// A batch of so many rows.
pub fn batch_of(
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
pub enum GroupSlots {
    /// A slot is a group.
    Groups {
        /// How many.
        count: usize,
    },
    /// Each group has a slot for each bucket of one width.
    LaidOut {
        /// Start of the first bucket, ns.
        first: i64,
        /// Width of a bucket, ns.
        width: i64,
        /// Buckets of a group.
        buckets: usize,
        /// How many groups.
        groups: usize,
    },
    /// Slots are made as rows come.
    Made {
        /// Slot of a group and the start of a bucket.
        places: HashMap<(u32, i64), u32, foldhash::fast::RandomState>,
        /// The other way round.
        keys: Vec<(u32, i64)>,
    },
}

impl GroupSlots {
    /// Slots for rows of `groups` groups between two times.
    pub fn new(groups: usize, buckets: Option<&TimeBuckets>, range: TimeRange) -> Self {
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

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Groups { count } => *count,
            Self::LaidOut {
                buckets, groups, ..
            } => buckets * groups,
            Self::Made { keys, .. } => keys.len(),
        }
    }

    /// The slot of a group and the start of a bucket (which is of no account without buckets).
    ///
    /// # Errors
    /// If the bucket is not between the times that the slots are for: a file has rows at times that
    /// its index does not tell.
    pub fn slot(&mut self, group: u32, start: i64) -> Result<u32> {
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
                        "rows lie at times that the index of their file does not tell"
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

    /// Group and start of the bucket of a slot.
    pub fn key(&self, slot: u32) -> (u32, i64) {
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
    pub fn size(&self) -> usize {
        match self {
            Self::Groups { .. } | Self::LaidOut { .. } => 0,
            Self::Made { places, keys } => {
                places.capacity() * size_of::<((u32, i64), u32)>()
                    + keys.capacity() * size_of::<(u32, i64)>()
            }
        }
    }
}

/// An error of buckets as DataFusion's.
pub fn bucket_error(reason: String) -> DataFusionError {
    DataFusionError::Execution(format!("time_bucket: {reason}"))
}
