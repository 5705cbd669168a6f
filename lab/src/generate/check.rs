//! Checks that the tests of all sources share.

use crate::data::{Rows, Source, Values};

fn text(values: &Values, row: usize) -> String {
    match values {
        Values::Bool(values) => values[row].to_string(),
        Values::I32(values) => values[row].to_string(),
        Values::I64(values) => values[row].to_string(),
        Values::F32(values) => format!("{:?}", values[row]),
        Values::F64(values) => format!("{:?}", values[row]),
        Values::Text(values) => values[row].clone(),
    }
}

/// The rows of a batch as text.
pub(super) fn lines(rows: &Rows) -> Vec<String> {
    let line = |row| {
        let values = rows.columns.iter().map(|column| {
            if column.is_present(row) {
                text(&column.values, row)
            } else {
                "null".to_owned()
            }
        });
        let values: Vec<String> = values.collect();
        let (series, time) = (rows.series[row], rows.times[row]);
        format!("{} {series:06} {time} {}", rows.table, values.join(" "))
    };
    (0..rows.len()).map(line).collect()
}

/// Everything that `clients` clients send, sorted. Also checks that each client sends only its own
/// devices and that every batch has the columns of its table.
pub(super) fn sent(source: &dyn Source, clients: usize, batch_rows: usize) -> Vec<String> {
    let mut all = Vec::new();
    for client in 0..clients {
        for rows in source.stream(client, clients, batch_rows) {
            let table = &source.tables()[rows.table];
            assert!(!rows.is_empty() && rows.len() <= batch_rows);
            assert_eq!(rows.columns.len(), table.fields.len());
            for (column, field) in rows.columns.iter().zip(&table.fields) {
                assert_eq!(column.values.len(), rows.len());
                assert_eq!(
                    std::mem::discriminant(&column.values),
                    std::mem::discriminant(&Values::new(field.kind))
                );
            }
            for series in &rows.series {
                assert_eq!(*series as usize % clients, client);
                assert!((*series as usize) < table.series.len());
            }
            let (from, to) = source.span_ns();
            assert!(rows.times.iter().all(|time| (from..to).contains(time)));
            all.extend(lines(&rows));
        }
    }
    assert_eq!(all.len() as u64, source.rows());
    all.sort();
    all
}

/// Checks that one, three and seven clients send the same.
pub(super) fn same_for_any_clients(source: &dyn Source) {
    let one = sent(source, 1, 100);
    assert_eq!(one, sent(source, 3, 7));
    assert_eq!(one, sent(source, 7, 1_000));
}

/// FNV-1a of everything that is sent. Tests pin it, so that a change of the rows of a seed fails.
pub(super) fn checksum(source: &dyn Source) -> u64 {
    let all = sent(source, 1, 100);
    let bytes = all.iter().flat_map(|line| line.bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Mean and standard deviation.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = |value: &f64| (value - mean) * (value - mean);
    (
        mean,
        (values.iter().map(square).sum::<f64>() / count).sqrt(),
    )
}

/// The numbers of field `field`, by series, in the order of arrival at one client.
pub(super) fn numbers(source: &dyn Source, field: usize) -> Vec<Vec<f64>> {
    let mut all = vec![Vec::new(); source.tables()[0].series.len()];
    for rows in source.stream(0, 1, 1_000) {
        for (row, series) in rows.series.iter().enumerate() {
            all[*series as usize].extend(rows.columns[field].values.number(row));
        }
    }
    all
}
