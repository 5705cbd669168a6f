//! Functions that answer some rows of a window: TOP, BOTTOM, SAMPLE, TAIL, UNIQUE, and HISTOGRAM, whose
//! rows are its bins.

use crate::planned_call::PlannedCall;
use crate::taos_value::Val;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};

/// Most bins of a histogram.
const BINS_MAX: i64 = 1000;

/// A chosen row: its time, the value, and what else is shown of it.
pub(in crate::stage) type ChosenRow = (i64, Val, Vec<Val>);

/// Chooses rows.
pub(in crate::stage) struct RowSet {
    kind: SetKind,
    /// How many.
    count: usize,
    rows: VecDeque<ChosenRow>,
    seen: HashSet<String>,
    seen_rows: u64,
    random: u64,
    bytes: usize,
}

enum SetKind {
    /// The greatest if true, else the smallest.
    Extreme(bool),
    Sample,
    Tail(usize),
    Unique,
    Histogram {
        edges: Vec<f64>,
        counts: Vec<u64>,
        normalized: bool,
    },
}

impl RowSet {
    /// What a call chooses.
    pub(in crate::stage) fn new(call: &PlannedCall) -> Self {
        let constant = |place: usize| {
            let number = call.constants.get(place).and_then(Val::integer);
            number.and_then(|number| usize::try_from(number).ok())
        };
        let mut count = constant(0).unwrap_or(1);
        let kind = match call.name.as_str() {
            "top" => SetKind::Extreme(true),
            "bottom" => SetKind::Extreme(false),
            "sample" => SetKind::Sample,
            "tail" => {
                let offset = constant(1).unwrap_or(0);
                count += offset;
                SetKind::Tail(offset)
            }
            "histogram" => {
                let edges = histogram_bins(&call.constants).unwrap_or_default();
                SetKind::Histogram {
                    counts: vec![0; edges.len().saturating_sub(1)],
                    edges,
                    normalized: constant(2) == Some(1),
                }
            }
            _ => SetKind::Unique,
        };
        Self {
            kind,
            count,
            rows: VecDeque::new(),
            seen: HashSet::new(),
            seen_rows: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            bytes: 0,
        }
    }

    /// Takes a row.
    pub(in crate::stage) fn push(
        &mut self,
        time: i64,
        value: &Val,
        carried: &dyn Fn() -> Vec<Val>,
    ) {
        if value.is_null() && !matches!(self.kind, SetKind::Tail(_) | SetKind::Unique) {
            return;
        }
        self.seen_rows += 1;
        match &mut self.kind {
            SetKind::Extreme(greatest) => {
                let greatest = *greatest;
                if self.rows.len() < self.count {
                    self.rows.push_back((time, value.clone(), carried()));
                    return;
                }
                let worst = self.rows.iter_mut().reduce(|a, b| {
                    let order = b.1.order(&a.1);
                    let is_worse = if greatest {
                        order.is_le()
                    } else {
                        order.is_ge()
                    };
                    if is_worse { b } else { a }
                });
                if let Some(worst) = worst {
                    let order = value.order(&worst.1);
                    if if greatest {
                        order.is_gt()
                    } else {
                        order.is_lt()
                    } {
                        *worst = (time, value.clone(), carried());
                    }
                }
            }
            SetKind::Sample => {
                if self.rows.len() < self.count {
                    self.rows.push_back((time, value.clone(), carried()));
                    return;
                }
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                let place = self.random % self.seen_rows;
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                if let Some(row) = self.rows.get_mut(place) {
                    *row = (time, value.clone(), carried());
                }
            }
            SetKind::Tail(_) => {
                self.rows.push_back((time, value.clone(), carried()));
                if self.rows.len() > self.count {
                    self.rows.pop_front();
                }
            }
            SetKind::Unique => {
                let key = match value {
                    Val::Float(number) => number.to_bits().to_string(),
                    other => other
                        .shown()
                        .map_or_else(String::new, |text| format!("={text}")),
                };
                let row_bytes = 2 * key.len() + 192;
                if self.seen.insert(key) {
                    let row = (time, value.clone(), carried());
                    self.bytes += row_bytes + row.2.iter().map(Val::held_bytes).sum::<usize>();
                    self.rows.push_back(row);
                }
            }
            SetKind::Histogram { edges, counts, .. } => {
                let Some(number) = value.number() else {
                    return;
                };
                let bins = edges.windows(2).zip(counts);
                for (edge, count) in bins {
                    if edge[0] < number && number <= edge[1] {
                        *count += 1;
                    }
                }
            }
        }
    }

    /// The rows, in the order of time.
    pub(in crate::stage) fn finish(self) -> Vec<ChosenRow> {
        let mut rows: Vec<ChosenRow> = self.rows.into();
        match self.kind {
            SetKind::Tail(offset) => {
                let shown = rows.len().saturating_sub(offset);
                rows.truncate(shown);
            }
            SetKind::Histogram {
                edges,
                counts,
                normalized,
            } => {
                let total: u64 = counts.iter().sum();
                return edges
                    .windows(2)
                    .zip(&counts)
                    .map(|(edge, count)| {
                        let count = if normalized && total > 0 {
                            format!("{:.6}", *count as f64 / total as f64)
                        } else {
                            count.to_string()
                        };
                        let (low, high) = (edge[0], edge[1]);
                        let text = format!(
                            "{{\"lower_bin\":{low}, \"upper_bin\":{high}, \"count\":{count}}}"
                        );
                        (0, Val::of_text(text), Vec::new())
                    })
                    .collect();
            }
            _ => {}
        }
        rows.sort_by_key(|row| row.0);
        rows
    }

    /// Bytes that it holds.
    pub(in crate::stage) fn held_bytes(&self) -> usize {
        self.bytes + self.rows.len() * 64
    }
}

/// The edges of the bins that HISTOGRAM's arguments describe.
pub(crate) fn histogram_bins(constants: &[Val]) -> Option<Vec<f64>> {
    let [kind, bins, _] = constants else {
        return None;
    };
    let bins: Value = serde_json::from_str(bins.text()?).ok()?;
    let number = |name: &str| bins.get(name).and_then(Value::as_f64);
    let count = || {
        let count = bins.get("count")?.as_i64()?;
        (1..=BINS_MAX).contains(&count).then_some(count)
    };
    let ends = |mut edges: Vec<f64>| {
        if bins
            .get("infinity")
            .and_then(Value::as_bool)
            .unwrap_or(false)
        {
            edges.insert(0, f64::NEG_INFINITY);
            edges.push(f64::INFINITY);
        }
        edges
    };
    match kind.text()?.to_ascii_lowercase().as_str() {
        "user_input" => {
            let edges = bins.as_array()?.iter().map(Value::as_f64);
            let edges = edges.collect::<Option<Vec<_>>>()?;
            (edges.len() >= 2 && edges.is_sorted()).then_some(edges)
        }
        "linear_bin" => {
            let (start, width) = (number("start")?, number("width")?);
            let edges = (0..=count()?).map(|place| start + width * place as f64);
            (width > 0.0).then(|| ends(edges.collect()))
        }
        "log_bin" => {
            let (start, factor) = (number("start")?, number("factor")?);
            let edges = (0..=count()?).map(|place| start * factor.powf(place as f64));
            (start > 0.0 && factor > 1.0).then(|| ends(edges.collect()))
        }
        _ => None,
    }
}
