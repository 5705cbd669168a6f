//! Cuts sorted rows into partitions.

use crate::chunk::sort::{ChunkOrder, TextSizes};
use marigram_model::{SeriesId, SeriesRun, TimeRange, partition_start};
use std::collections::BTreeMap;
use std::ops::Range;

/// Consecutive rows of one series in an order, all in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionPiece {
    pub series: SeriesId,
    pub rows: Range<usize>,
}

/// The rows of an order by the start of their partition, each partition in storage order. All their
/// times are in `range`.
pub(super) fn cut(
    order: &ChunkOrder,
    range: TimeRange,
    width_ns: i64,
) -> BTreeMap<i64, Vec<PartitionPiece>> {
    let mut pieces: BTreeMap<i64, Vec<PartitionPiece>> = BTreeMap::new();
    let first = partition_start(range.min, width_ns);
    let one_partition = first == partition_start(range.max, width_ns);
    let mut row = 0;
    for run in &order.runs {
        let end = row + run.rows as usize;
        if one_partition {
            pieces.entry(first).or_default().push(PartitionPiece {
                series: run.series,
                rows: row..end,
            });
            row = end;
            continue;
        }
        while row < end {
            let start = partition_start(order.times[row], width_ns);
            // The last partition of i64 time has no end within i64.
            let next = start.checked_add(width_ns);
            let after =
                order.times[row..end].partition_point(|time| next.is_none_or(|next| *time < next));
            let rows = row..row + after;
            row = rows.end;
            pieces.entry(start).or_default().push(PartitionPiece {
                series: run.series,
                rows,
            });
        }
    }
    pieces
}

/// Groups the pieces into portions of at most `rows_max` rows, and of at most `text_max` bytes of
/// text or a single row; long pieces are cut.
pub(super) fn portions(
    pieces: &[PartitionPiece],
    rows_max: usize,
    texts: Option<&TextSizes<'_>>,
    text_max: usize,
) -> Vec<Vec<PartitionPiece>> {
    let mut portions = Vec::new();
    let (mut portion, mut rows, mut text_left) = (Vec::new(), 0, text_max);
    for piece in pieces {
        let mut left = piece.rows.clone();
        while !left.is_empty() {
            let space = left.len().min(rows_max - rows);
            let take = match texts {
                None => space,
                Some(texts) => rows_within(texts, left.start, space, &mut text_left),
            };
            if take > 0 || rows == 0 {
                let take = take.max(1);
                portion.push(PartitionPiece {
                    series: piece.series,
                    rows: left.start..left.start + take,
                });
                left.start += take;
                rows += take;
            }
            if rows == rows_max || take < space {
                portions.push(std::mem::take(&mut portion));
                (rows, text_left) = (0, text_max);
            }
        }
    }
    if !portion.is_empty() {
        portions.push(portion);
    }
    portions
}

/// How many of `most` rows from `start` on fit in `left` bytes of text, which they reduce.
fn rows_within(texts: &TextSizes<'_>, start: usize, most: usize, left: &mut usize) -> usize {
    for row in 0..most {
        match left.checked_sub(texts.bytes_max(start + row)) {
            Some(rest) => *left = rest,
            None => return row,
        }
    }
    most
}

/// The runs of a portion, and its rows as ranges of the order.
pub(super) fn runs_and_ranges(portion: &[PartitionPiece]) -> (Vec<SeriesRun>, Vec<Range<usize>>) {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for piece in portion {
        match ranges.last_mut() {
            Some(last) if last.end == piece.rows.start => last.end = piece.rows.end,
            _ => ranges.push(piece.rows.clone()),
        }
    }
    let runs = portion
        .iter()
        .map(|piece| SeriesRun {
            series: piece.series,
            rows: piece.rows.len() as u32,
        })
        .collect();
    (runs, ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::part::ChunkPart;

    fn order(rows: &[(u32, i64)]) -> ChunkOrder {
        let series: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let times: Vec<i64> = rows.iter().map(|row| row.1).collect();
        ChunkOrder::from_parts(&[ChunkPart {
            series: series.into(),
            times: times.into(),
            columns: Vec::new(),
        }])
    }

    #[test]
    fn rows_are_cut_at_partition_boundaries_and_at_the_ends_of_time() {
        let order = order(&[
            (1, i64::MIN),
            (1, -1),
            (1, 0),
            (1, 9),
            (1, 10),
            (2, 5),
            (2, i64::MAX),
        ]);
        let pieces = cut(&order, TimeRange::ALL, 10);
        let of = |start: i64| pieces[&start].iter().map(|p| (p.series.0, p.rows.clone()));
        assert_eq!(of(-10).collect::<Vec<_>>(), vec![(1, 1..2)]);
        assert_eq!(of(0).collect::<Vec<_>>(), vec![(1, 2..4), (2, 5..6)]);
        assert_eq!(of(10).collect::<Vec<_>>(), vec![(1, 4..5)]);
        assert_eq!(
            pieces
                .values()
                .flatten()
                .map(|piece| piece.rows.len())
                .sum::<usize>(),
            7
        );
    }

    #[test]
    fn portions_cut_long_pieces_and_join_neighbours() {
        let pieces = vec![
            PartitionPiece {
                series: SeriesId(1),
                rows: 0..5,
            },
            PartitionPiece {
                series: SeriesId(2),
                rows: 5..6,
            },
            PartitionPiece {
                series: SeriesId(4),
                rows: 8..9,
            },
        ];
        let portions = portions(&pieces, 4, None, 0);
        assert_eq!(portions.len(), 2);
        let (runs, ranges) = runs_and_ranges(&portions[1]);
        assert_eq!(ranges, vec![4..6, 8..9]);
        let runs: Vec<_> = runs.iter().map(|run| (run.series.0, run.rows)).collect();
        assert_eq!(runs, vec![(1, 1), (2, 1), (4, 1)]);
    }

    #[test]
    fn portions_are_bounded_by_the_text_of_all_that_was_written() {
        let texts = |texts: &[&str]| -> arrow_array::ArrayRef {
            std::sync::Arc::new(arrow_array::StringArray::from(texts.to_vec()))
        };
        let part = |times: &[i64], values| ChunkPart {
            series: vec![0; times.len()].into(),
            times: times.to_vec().into(),
            columns: vec![(marigram_model::ColumnId(1), values)],
        };
        // The row of time 2 was written twice: only one of both texts is in the output.
        let parts = [
            part(&[0, 1, 2, 3], texts(&["aa", "bb", "cc", "dd"])),
            part(&[2, 4, 5], texts(&["ee", "a text over the bound", "ff"])),
        ];
        let order = ChunkOrder::from_parts(&parts);
        let bounds = TextSizes::from_order(&order, &parts).unwrap();
        assert_eq!((bounds.bytes_max(1), bounds.bytes_max(2)), (2, 4));
        let pieces = cut(&order, TimeRange { min: 0, max: 5 }, 100);
        let rows = |text_max| -> Vec<usize> {
            let portions = portions(&pieces[&0], 100, Some(&bounds), text_max);
            let rows =
                |portion: &Vec<PartitionPiece>| portion.iter().map(|piece| piece.rows.len()).sum();
            portions.iter().map(rows).collect()
        };
        assert_eq!(rows(6), [2, 2, 1, 1]);
        assert_eq!(rows(1000), [6]);
        assert_eq!(rows(0), [1; 6]);
        let numbers = [part(
            &[1],
            std::sync::Arc::new(arrow_array::Int64Array::from(vec![1])),
        )];
        assert!(TextSizes::from_order(&ChunkOrder::from_parts(&numbers), &numbers).is_none());
    }
}
