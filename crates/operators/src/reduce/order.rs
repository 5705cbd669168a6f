//! The order of the result if it is sorted by group keys only.
//!
//! There are far fewer groups by tags than rows by tags and buckets, and they are often in order
//! already. So each group gets its rank by the keys over tags, and rows are sorted by two numbers
//! and a time.

use super::recipe::{AggregateRecipe, CallSource, RecipeKey};
use arrow::array::{Array, ArrayRef, DynComparator, UInt32Array, make_comparator};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use std::cmp::Ordering;
use std::sync::Arc;

/// Whether this module can sort keys of a type.
pub(super) fn is_sortable(kind: &DataType) -> bool {
    match kind {
        DataType::Boolean | DataType::Utf8 => true,
        DataType::Dictionary(_, values) => **values == DataType::Utf8,
        other => other.is_primitive(),
    }
}

/// The keys by which the result is sorted: those over tags before and after the bucket, by their
/// index in [`GroupingTags::keys`](super::recipe::GroupingTags::keys).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GroupOrder {
    before: Vec<(usize, SortOptions)>,
    bucket: Option<SortOptions>,
    after: Vec<(usize, SortOptions)>,
}

impl AggregateRecipe {
    /// The order as an ordering of the result's columns; `None` if there is none.
    pub(super) fn ordering(&self) -> Option<LexOrdering> {
        LexOrdering::new(self.sorted_by.iter().map(|(column, options)| {
            let column = Column::new(self.schema.field(*column).name(), *column);
            PhysicalSortExpr::new(Arc::new(column), *options)
        }))
    }

    /// The group key in a column of the result.
    pub(super) fn key_of(&self, column: usize) -> Option<usize> {
        let Some(answer) = column.checked_sub(self.keys.len()) else {
            return Some(column);
        };
        match self.answers.get(answer)? {
            CallSource::Key(key) => Some(*key),
            CallSource::Fold(..) => None,
        }
    }

    /// The required order.
    pub(super) fn order(&self) -> GroupOrder {
        let mut order = GroupOrder::default();
        for (column, options) in &self.sorted_by {
            let key = self.key_of(*column).and_then(|key| self.keys.get(key));
            match key {
                Some(RecipeKey::Tags(place)) if order.bucket.is_none() => {
                    order.before.push((*place, *options));
                }
                Some(RecipeKey::Tags(place)) => order.after.push((*place, *options)),
                Some(RecipeKey::Bucket) => {
                    order.bucket.get_or_insert(*options);
                }
                None => {}
            }
        }
        order
    }
}

/// The ranks of groups in the required order. Equal groups share a rank; there are no ranks if no
/// order is required.
#[derive(Debug, Default)]
pub(super) struct GroupRanks {
    before: Vec<u32>,
    after: Vec<u32>,
    /// The groups sorted by their ranks before the bucket, unless they are in that order already.
    sorted: Option<UInt32Array>,
}

impl GroupRanks {
    /// Computes the ranks of groups with these keys.
    ///
    /// # Errors
    /// Arrow's errors, for keys that cannot be compared.
    pub(super) fn from_keys(order: &GroupOrder, keys: &[ArrayRef]) -> Result<Self> {
        let (before, sorted) = ranks(&order.before, keys)?;
        let (after, _) = ranks(&order.after, keys)?;
        Ok(Self {
            before,
            after,
            sorted,
        })
    }

    /// The groups in the required order, if there are no buckets; `None` if they are in that order
    /// already.
    pub(super) fn sorted(&self) -> Option<&UInt32Array> {
        self.sorted.as_ref()
    }

    /// Memory in use, bytes.
    pub(super) fn size(&self) -> usize {
        let sorted = self.sorted.as_ref().map_or(0, Array::get_array_memory_size);
        4 * (self.before.len() + self.after.len()) + sorted
    }
}

impl GroupOrder {
    /// The bytes that the ranks of a group take while they are computed.
    pub(super) fn group_bytes(&self) -> usize {
        let sorts = usize::from(!self.before.is_empty()) + usize::from(!self.after.is_empty());
        sorts * 4 * size_of::<u32>()
    }

    /// Sorts slots in this order; `key` returns the group and the start of the bucket of each.
    pub(super) fn arrange(
        &self,
        ranks: &GroupRanks,
        slots: &mut [u32],
        key: impl Fn(u32) -> (u32, i64),
    ) {
        let rank = |ranks: &[u32], group: u32| ranks.get(group as usize).copied().unwrap_or(0);
        let bucket = |start: i64| match self.bucket {
            None => 0,
            Some(options) if options.descending => !start,
            Some(_) => start,
        };
        if *self == Self::default() {
            return;
        }
        slots.sort_unstable_by_key(|slot| {
            let (group, start) = key(*slot);
            let (before, after) = (rank(&ranks.before, group), rank(&ranks.after, group));
            (before, bucket(start), after)
        });
    }
}

/// The rank of each group by some keys, and the groups in that order.
fn ranks(
    by: &[(usize, SortOptions)],
    keys: &[ArrayRef],
) -> Result<(Vec<u32>, Option<UInt32Array>)> {
    let columns = by.iter().filter_map(|(place, options)| {
        Some(SortColumn {
            values: ArrayRef::clone(keys.get(*place)?),
            options: Some(*options),
        })
    });
    let columns: Vec<SortColumn> = columns.collect();
    let Some(first) = columns.first() else {
        return Ok((Vec::new(), None));
    };
    let comparators = columns.iter().map(|column| {
        let options = column.options.unwrap_or_default();
        make_comparator(&column.values, &column.values, options)
    });
    let comparators: Vec<DynComparator> = comparators.collect::<Result<_, _>>()?;
    let compare = |left: u32, right: u32| {
        let (left, right) = (left as usize, right as usize);
        let orders = comparators.iter().map(|compare| compare(left, right));
        orders.fold(Ordering::Equal, Ordering::then)
    };
    let count = first.values.len() as u32;
    let is_sorted = (1..count).all(|at| compare(at - 1, at) != Ordering::Greater);
    let sorted = (!is_sorted).then(|| lexsort_to_indices(&columns, None));
    let sorted = sorted.transpose()?;
    let at = |place: u32| match &sorted {
        Some(sorted) => sorted.value(place as usize),
        None => place,
    };
    let mut ranks = vec![0; count as usize];
    let mut rank = 0;
    for place in 1..count {
        let (left, right) = (at(place - 1), at(place));
        rank += u32::from(compare(left, right) == Ordering::Less);
        ranks[right as usize] = rank;
    }
    Ok((ranks, sorted))
}
