//! The series that share a value.

use marigram_model::TagValueRef;
use roaring::RoaringBitmap;

/// Ids that are stored in the posting itself.
const INLINE: usize = 5;
/// Number of ids from which on a bitmap is used, if there are [`CONTAINER_IDS`] of them for each
/// 2^16 that they span: with fewer, its containers need more memory than a list.
const BITMAP_IDS: usize = 64;
const CONTAINER_IDS: usize = 16;

#[derive(Debug)]
pub(super) enum SeriesPosting {
    Few(u8, [u32; INLINE]),
    Many(Box<PostingMany>),
}

#[derive(Debug)]
pub(super) struct PostingMany {
    /// The value, if it is a text; keys may refer to it.
    text: Option<Box<str>>,
    ids: PostingIds,
}

#[derive(Debug)]
enum PostingIds {
    /// Ascending.
    List(Vec<u32>),
    Bitmap(RoaringBitmap),
}

/// An empty posting.
impl Default for SeriesPosting {
    fn default() -> Self {
        Self::Few(0, [0; INLINE])
    }
}

impl SeriesPosting {
    pub(super) fn pair(first: u32, second: u32) -> Self {
        Self::Few(2, [first, second, 0, 0, 0])
    }

    /// Adds an id, larger than the others, with this value.
    pub(super) fn push(&mut self, id: u32, value: TagValueRef<'_>) {
        match self {
            Self::Few(len, ids) => {
                if let Some(place) = ids.get_mut(usize::from(*len)) {
                    *place = id;
                    *len += 1;
                    return;
                }
                let text = match value {
                    TagValueRef::String(text) => Some(text.into()),
                    _ => None,
                };
                let ids = PostingIds::List(ids.iter().copied().chain([id]).collect());
                *self = Self::Many(Box::new(PostingMany { text, ids }));
            }
            Self::Many(many) => match &mut many.ids {
                PostingIds::List(ids) => {
                    // Checked when the list would grow.
                    let grows = ids.len() == ids.capacity() && ids.len() >= BITMAP_IDS;
                    if grows && is_dense(ids) {
                        let all = ids.iter().copied().chain([id]).collect();
                        many.ids = PostingIds::Bitmap(all);
                    } else {
                        ids.push(id);
                    }
                }
                PostingIds::Bitmap(ids) => append(ids, id),
            },
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        match self {
            Self::Few(len, ids) => {
                let held = &mut ids[..usize::from(*len)];
                if let Some(at) = held.iter().position(|own| *own == id) {
                    held.copy_within(at + 1.., at);
                    *len -= 1;
                }
            }
            Self::Many(many) => match &mut many.ids {
                PostingIds::List(ids) => {
                    if let Ok(at) = ids.binary_search(&id) {
                        ids.remove(at);
                    }
                }
                PostingIds::Bitmap(ids) => {
                    ids.remove(id);
                }
            },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(len, _) => *len == 0,
            Self::Many(many) => match &many.ids {
                PostingIds::List(ids) => ids.is_empty(),
                PostingIds::Bitmap(ids) => ids.is_empty(),
            },
        }
    }

    /// The lowest id of a posting that is not empty.
    pub(super) fn first(&self) -> u32 {
        match self {
            Self::Few(_, ids) => ids[0],
            Self::Many(many) => match &many.ids {
                PostingIds::List(ids) => ids[0],
                PostingIds::Bitmap(ids) => ids.min().unwrap_or_default(),
            },
        }
    }

    /// The value, if it is stored here.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Few(..) => None,
            Self::Many(many) => many.text.as_deref(),
        }
    }

    pub(super) fn to_bitmap(&self) -> RoaringBitmap {
        match self {
            Self::Few(len, ids) => ids[..usize::from(*len)].iter().copied().collect(),
            Self::Many(many) => match &many.ids {
                PostingIds::List(ids) => ids.iter().copied().collect(),
                PostingIds::Bitmap(ids) => ids.clone(),
            },
        }
    }

    /// Memory in addition to the posting itself, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let Self::Many(many) = self else { return 0 };
        let ids = match &many.ids {
            PostingIds::List(ids) => ids.capacity() * 4,
            PostingIds::Bitmap(ids) => bitmap_bytes(ids),
        };
        size_of::<PostingMany>() + many.text.as_ref().map_or(0, |text| text.len()) + ids
    }
}

fn is_dense(ids: &[u32]) -> bool {
    let span = ids
        .last()
        .zip(ids.first())
        .map_or(0, |(last, first)| last - first);
    ids.len() >= CONTAINER_IDS * (1 + (span >> 16) as usize)
}

/// Approximate memory of a bitmap: its containers, and 32 bytes of head for each.
pub(crate) fn bitmap_bytes(bitmap: &RoaringBitmap) -> usize {
    let statistics = bitmap.statistics();
    let bytes = statistics.n_bytes_array_containers
        + statistics.n_bytes_run_containers
        + statistics.n_bytes_bitset_containers;
    bytes as usize + statistics.n_containers as usize * 32
}

/// Adds an id above all others of a bitmap. (Not with `push`, which finds the highest id by
/// scanning all words of a container.)
pub(crate) fn append(bitmap: &mut RoaringBitmap, id: u32) {
    bitmap.insert(id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_hold_what_was_added_and_not_removed() {
        for step in [1, 7, 5000] {
            let mut posting = SeriesPosting::pair(0, step);
            assert_eq!(size_of_val(&posting), 24);
            let mut ids = vec![0, step];
            for at in 2..3000 {
                posting.push(at * step, TagValueRef::String("a"));
                ids.push(at * step);
            }
            assert!(posting.to_bitmap().iter().eq(ids.iter().copied()));
            assert_eq!((posting.first(), posting.text()), (0, Some("a")));
            for id in ids.drain(..2990) {
                posting.remove(id);
            }
            assert!(posting.to_bitmap().iter().eq(ids.iter().copied()));
            assert_eq!(posting.first(), ids[0]);
            for id in ids {
                posting.remove(id);
            }
            assert!(posting.is_empty());
        }
    }

    #[test]
    fn few_series_leave_a_posting_in_any_order() {
        let mut posting = SeriesPosting::pair(3, 8);
        posting.push(9, TagValueRef::I64(1));
        posting.remove(8);
        posting.remove(7);
        assert!(posting.to_bitmap().iter().eq([3, 9]));
        posting.remove(3);
        posting.remove(9);
        assert!(posting.is_empty() && posting.text().is_none());
    }
}
