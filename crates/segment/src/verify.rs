//! Reads every byte of a segment and says what is wrong.

use crate::error::SegmentError;
use crate::layout::{HEADER_BYTES, PageMeta};
use crate::segment::Segment;
use crate::stats::PageStats;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use marigram_codec::ChecksummedPrefix;
use marigram_env::BlobStore;
use marigram_model::ColumnId;
use std::sync::Arc;

/// Bytes read at a time.
const READ_BYTES: u64 = 1 << 20;

/// Decoded times of a row group by page; a page that could not be read is missing.
type RowGroupTimes = Vec<Option<ArrayRef>>;

impl Segment {
    /// Reads every byte of the blob `name`, checks every checksum, the statistics of every page
    /// and the order of rows, and calls `damage` for each place that is wrong.
    pub fn verify(store: &dyn BlobStore, name: &str, damage: &mut dyn FnMut(SegmentError)) {
        let segment = match Self::open(store, name) {
            Ok(segment) => segment,
            Err(error) => return damage(error),
        };
        let (outer, mut is_sound) = (damage, true);
        let damage: &mut dyn FnMut(SegmentError) = &mut |error| {
            is_sound = false;
            outer(error);
        };
        let mut extents: Vec<(u64, u64)> = segment
            .block_places()
            .map(|place| (place.offset, u64::from(place.bytes)))
            .collect();
        let mut whole = true;
        for group in 0..segment.row_groups().len() {
            whole &= segment.verify_group(group, &mut extents, damage);
        }
        if whole {
            segment.verify_tiling(extents, damage);
        }
        // A damaged segment has another checksum anyway.
        if is_sound && let Err(error) = segment.verify_body() {
            outer(error);
        }
    }

    /// Compares everything before the footer with the checksum in it: whole pages and blocks may belong
    /// to another segment.
    fn verify_body(&self) -> Result<(), SegmentError> {
        let Some(body) = self.body() else {
            return Ok(());
        };
        let (mut read, mut buffer) = (ChecksummedPrefix::default(), Vec::new());
        while read.bytes < body.bytes {
            buffer.resize((body.bytes - read.bytes).min(READ_BYTES) as usize, 0);
            self.file
                .read_exact_at(&mut buffer, read.bytes)
                .map_err(|source| SegmentError::io(self.path(), source))?;
            read.grow(&buffer);
        }
        if read == body {
            return Ok(());
        }
        let reason = "what stands before the footer has not the checksum that the footer says";
        Err(SegmentError::corrupt(self.path(), 0, reason))
    }

    /// Checks a row group; whether its page indexes could be read.
    fn verify_group(
        &self,
        group: usize,
        extents: &mut Vec<(u64, u64)>,
        damage: &mut dyn FnMut(SegmentError),
    ) -> bool {
        let ids = std::iter::once(ColumnId::TIME).chain(
            self.row_groups()[group]
                .columns
                .iter()
                .map(|column| column.id),
        );
        let mut indexes: Vec<(ColumnId, Arc<[PageMeta]>)> = Vec::new();
        let mut whole = true;
        for id in ids {
            match self.pages(group, id) {
                Ok(pages) => indexes.extend(pages.map(|pages| (id, Arc::clone(pages)))),
                Err(error) => {
                    whole = false;
                    damage(error);
                }
            }
        }
        let mut times: RowGroupTimes = Vec::new();
        for (id, pages) in &indexes {
            for (at, meta) in pages.iter().enumerate() {
                extents.push((meta.offset, u64::from(meta.bytes)));
                let values = self.read_page(group, *id, at);
                let values = values.map_err(&mut *damage).ok();
                if *id == ColumnId::TIME {
                    times.push(values.clone());
                }
                let page_times = times.get(at).and_then(Option::as_ref);
                if let Some((values, page_times)) = values.as_ref().zip(page_times) {
                    let page_times = page_times.as_primitive::<Int64Type>().values();
                    if page_times.len() != values.len() {
                        let reason = "the pages of a row group do not share their boundaries";
                        damage(SegmentError::corrupt(self.path(), meta.offset, reason));
                    } else if PageStats::from_values(values, page_times) != meta.stats {
                        let reason = format!("column {id}: the statistics are not the page's");
                        damage(SegmentError::corrupt(self.path(), meta.offset, reason));
                    }
                }
            }
        }
        self.verify_order(group, &times, damage);
        whole
    }

    /// Checks that the rows of each series stand in the order of time.
    fn verify_order(
        &self,
        group: usize,
        times: &RowGroupTimes,
        damage: &mut dyn FnMut(SegmentError),
    ) {
        let runs = match self.directory(group) {
            Ok(runs) => runs,
            Err(error) => return damage(error),
        };
        let Some(times) = times.iter().cloned().collect::<Option<Vec<ArrayRef>>>() else {
            return;
        };
        let parts = times
            .iter()
            .map(|page| page.as_primitive::<Int64Type>().values());
        let mut times = parts.flat_map(|part| part.iter().copied());
        for run in runs.iter() {
            let mut last = None;
            for time in times.by_ref().take(run.rows as usize) {
                if last.is_some_and(|last| last >= time) {
                    let reason = format!("rows of series {} are out of order", run.series);
                    return damage(SegmentError::corrupt(self.path(), HEADER_BYTES, reason));
                }
                last = Some(time);
            }
        }
    }

    /// Checks that pages and blocks fill the file without gap or overlap.
    fn verify_tiling(&self, mut extents: Vec<(u64, u64)>, damage: &mut dyn FnMut(SegmentError)) {
        extents.sort_unstable();
        let mut next = HEADER_BYTES;
        for (offset, bytes) in extents.into_iter().chain([(self.end(), 0)]) {
            if offset != next {
                let reason = "bytes here belong to no page, or to two";
                return damage(SegmentError::corrupt(self.path(), next.min(offset), reason));
            }
            next = offset + bytes;
        }
    }
}
