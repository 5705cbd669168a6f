//! Marigram's metrics as figures of the laboratory.

use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Metrics, each with its figure.
const FIGURES: [(&str, &str); 10] = [
    ("marigram_write_amplification", "write_amplification"),
    ("marigram_segments", "segments"),
    ("marigram_segment_bytes", "segment_bytes"),
    ("marigram_series", "series"),
    ("marigram_wal_bytes", "wal_bytes"),
    ("marigram_rows_late", "late_rows"),
    ("marigram_flushes", "flushes"),
    ("marigram_compactions", "compactions"),
    ("marigram_flushed_bytes", "flushed_bytes"),
    ("marigram_compacted_bytes", "compacted_bytes"),
];

/// The figures in metrics, given as name (without `_total`), label `holder` if there is one, and
/// value. Other metrics are ignored.
pub fn figures<'a>(
    metrics: impl IntoIterator<Item = (&'a str, Option<&'a str>, f64)>,
) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    for (name, holder, value) in metrics {
        let known = FIGURES.iter().find(|(metric, _)| *metric == name);
        let figure = match (known, holder) {
            (Some((_, figure)), _) => figure,
            (None, Some("series_index")) if name == "marigram_memory_bytes" => "index_bytes",
            (None, _) => continue,
        };
        figures.insert(figure.to_owned(), value);
    }
    figures
}

/// The figures in a text of `OpenMetrics`. Fails if a value is not a number.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, f64>> {
    let mut metrics = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("marigram_")) {
        let (metric, value) = line.rsplit_once(' ').unwrap_or((line, ""));
        let (name, labels) = metric.split_once('{').unwrap_or((metric, ""));
        let holder = labels.split_once("holder=\"").map(|(_, rest)| rest);
        let holder = holder.and_then(|rest| rest.split_once('"'));
        let value = value.parse().with_context(|| format!("metric {line:?}"))?;
        let name = name.strip_suffix("_total").unwrap_or(name);
        metrics.push((name, holder.map(|(holder, _)| holder), value));
    }
    Ok(figures(metrics))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_become_figures() {
        let text = "# HELP marigram_segments Segments.\n# TYPE marigram_segments gauge\n\
                    marigram_segments 3\nmarigram_flushes_total 12\n\
                    marigram_memory_bytes{holder=\"memtable\"} 7\n\
                    marigram_memory_bytes{holder=\"series_index\"} 4096\n\
                    marigram_write_amplification 1.25\nmarigram_unheard_of 9\n# EOF\n";
        let figures = parse(text).expect("it is read");
        let expected = [
            ("flushes", 12.0),
            ("index_bytes", 4096.0),
            ("segments", 3.0),
            ("write_amplification", 1.25),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(figures, expected.into_iter().collect());
        assert!(parse("marigram_segments three\n").is_err());
        assert!(parse("").expect("it is read").is_empty());
    }
}
