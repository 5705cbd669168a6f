//! All of a table's row groups as one.

use super::*;

#[test]
fn totals_of_a_table_are_those_of_all_its_row_groups() {
    let (_dir, fs, path) = disk();
    let mut writer = SegmentWriter::create(&*fs, name(&path), options()).unwrap();
    for table in [1, 5] {
        writer.table(TableId(table), &columns(), &layout()).unwrap();
        let value = |series: u32, row: u32| Some(u64::from(series * 100 + row + table));
        writer.append(&rows(&[300, 2, 1], value)).unwrap();
    }
    // A table whose row groups have no value at all.
    writer.table(TableId(7), &columns(), &layout()).unwrap();
    writer.append(&rows(&[4], |_, _| None)).unwrap();
    writer.finish().unwrap();
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    let before = segment.memory_bytes();
    for table in [TableId(1), TableId(5), TableId(7)] {
        let groups = segment.row_groups_of(table);
        assert!(groups.len() > 1 || table == TableId(7), "{groups:?}");
        let whole = segment.whole(table).unwrap();
        let of_groups = &segment.row_groups()[groups.clone()];
        let rows = of_groups.iter().map(|group| u64::from(group.rows));
        assert_eq!(whole.rows, rows.sum::<u64>());
        let all = |what: fn(&RowGroup) -> i64| of_groups.iter().map(what);
        assert_eq!(Some(whole.range.min), all(|group| group.range.min).min());
        assert_eq!(Some(whole.range.max), all(|group| group.range.max).max());
        let first = all(|group| group.series_min.0.into()).min();
        let last = all(|group| group.series_max.0.into()).max();
        assert_eq!(Some(whole.series_min.0.into()), first);
        assert_eq!(Some(whole.series_max.0.into()), last);
        let pages = groups.clone().map(|group| {
            let pages = segment.pages(group, ColumnId::TIME).unwrap();
            pages.map_or(0, |pages| pages.len() as u64)
        });
        let pages: u64 = pages.sum();
        for _ in 0..2 {
            assert_eq!(segment.whole_pages(table).unwrap(), pages);
            for column in columns() {
                let each: Vec<_> = groups
                    .clone()
                    .filter_map(|group| segment.totals(group, column.id).unwrap())
                    .collect();
                let total = segment.whole_totals(table, column.id).unwrap();
                let Some(total) = total else {
                    assert!(each.is_empty());
                    continue;
                };
                let sum = each.iter().filter_map(|stats| match stats.sum {
                    Some(FieldValue::I64(sum)) => Some(sum),
                    _ => None,
                });
                let missing: u32 = of_groups
                    .iter()
                    .filter(|group| !group.columns.contains(&column))
                    .map(|group| group.rows)
                    .sum();
                let nulls: u32 = each.iter().map(|stats| stats.nulls).sum();
                assert_eq!(total.nulls, nulls + missing);
                if let Some(FieldValue::I64(total)) = total.sum {
                    assert_eq!(total, sum.sum::<i64>());
                }
                let by = |pick: fn(&PageStats) -> Option<&FieldValue>, least: bool| {
                    let values = each.iter().filter_map(|stats| pick(stats));
                    let order = |a: &&FieldValue, b: &&FieldValue| a.total_cmp(b).unwrap();
                    if least {
                        values.min_by(order).cloned()
                    } else {
                        values.max_by(order).cloned()
                    }
                };
                assert_eq!(total.min, by(|stats| stats.min.as_ref(), true));
                assert_eq!(total.max, by(|stats| stats.max.as_ref(), false));
            }
        }
    }
    assert!(segment.whole(TableId(2)).is_none());
    assert_eq!(segment.whole_totals(TableId(2), ColumnId(1)).unwrap(), None);
    assert_eq!(segment.whole_pages(TableId(2)).unwrap(), 0);
    assert!(
        segment.memory_bytes() > before,
        "they are kept, and counted"
    );
}
