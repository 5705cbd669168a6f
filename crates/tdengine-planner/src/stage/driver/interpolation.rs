//! INTERP: values at regular times, from the rows around them.

pub(in crate::stage) mod fill;

use crate::run::fault;
use crate::stage::driver::StageOutput;
use crate::stage::driver::interpolation::fill::TaosFillWith;
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::TaosCode;

/// Most times of one partition.
const TIMES_MAX: i64 = 1_000_000;

/// Times that are answered before their rows are passed on.
const AHEAD_MAX: usize = 1_000_000;

/// The times of INTERP, and what stands where there is no row.
#[derive(Clone, Debug)]
pub(crate) struct InterpolationSpec {
    /// The first and the last time, ns.
    pub(crate) range: (i64, i64),
    /// The distance of times, ns; at least 1.
    pub(crate) every_ns: i64,
    /// FILL.
    pub(crate) fill: TaosFillWith,
}

impl InterpolationSpec {
    /// Fails if there are too many times.
    ///
    /// # Errors
    /// TDengine's.
    pub(crate) fn check(&self) -> SqlResult<()> {
        let count = self.range.1.saturating_sub(self.range.0) / self.every_ns.max(1);
        if count > TIMES_MAX {
            return Err(fault(TaosCode::FillTimeRange));
        }
        Ok(())
    }
}

/// The state of a partition: for each call the row before, and the next time of all.
pub(in crate::stage) struct InterpolationStage {
    spec: InterpolationSpec,
    /// Of each call: the last row with a value, and the next one.
    around: Vec<EnclosingRows>,
}

/// The values of a call that are not yet answered.
#[derive(Clone, Default)]
struct EnclosingRows {
    rows: Vec<(i64, Val)>,
}

impl InterpolationStage {
    pub(in crate::stage) fn new(spec: InterpolationSpec, calls: usize) -> Self {
        Self {
            spec,
            around: vec![EnclosingRows::default(); calls],
        }
    }

    /// Takes a row. Rows far from the wanted times are not kept.
    pub(in crate::stage) fn push(
        &mut self,
        time: i64,
        values: Vec<Val>,
        _key: &[Val],
        _output: &mut StageOutput,
    ) -> SqlResult<()> {
        let (min, max) = self.spec.range;
        for (around, value) in self.around.iter_mut().zip(values) {
            if value.is_null() {
                continue;
            }
            let rows = &mut around.rows;
            // Of the rows before the range only the last one counts, and of those after it the first.
            if time <= min && rows.last().is_some_and(|(last, _)| *last <= min) {
                rows.clear();
            }
            if time > max && rows.last().is_some_and(|(last, _)| *last > max) {
                continue;
            }
            if rows.len() >= AHEAD_MAX {
                return Err(fault(TaosCode::OutOfMemory));
            }
            rows.push((time, value));
        }
        Ok(())
    }

    /// Bytes that it holds.
    pub(in crate::stage) fn held_bytes(&self) -> usize {
        let rows: usize = self
            .around
            .iter()
            .map(|around| around.rows.capacity())
            .sum();
        rows * size_of::<(i64, Val)>()
    }

    /// Answers all times.
    pub(in crate::stage) fn finish(&mut self, key: &[Val], output: &mut StageOutput) {
        let (min, max) = self.spec.range;
        let mut places = vec![0; self.around.len()];
        let mut at = min;
        while at <= max {
            let values = self.around.iter().zip(&mut places);
            let found: Vec<Option<Val>> = values
                .enumerate()
                .map(|(call, (around, place))| {
                    value_at(&around.rows, place, (at, call), &self.spec.fill)
                })
                .collect();
            if found.iter().any(Option::is_some) {
                let values = found.into_iter().map(|value| value.unwrap_or(Val::Null));
                output.push(key, (at, at), values, []);
            }
            match at.checked_add(self.spec.every_ns.max(1)) {
                Some(next) => at = next,
                None => return,
            }
        }
    }
}

/// The value at a time; `None` if there is none.
fn value_at(
    rows: &[(i64, Val)],
    place: &mut usize,
    (at, call): (i64, usize),
    fill: &TaosFillWith,
) -> Option<Val> {
    while rows.get(*place).is_some_and(|(time, _)| *time < at) {
        *place += 1;
    }
    let after = rows.get(*place);
    if let Some((time, value)) = after
        && *time == at
    {
        return Some(value.clone());
    }
    let before = place.checked_sub(1).and_then(|before| rows.get(before));
    match fill {
        TaosFillWith::Null => Some(Val::Null),
        TaosFillWith::Values(values) => {
            let value = values.get(call).or(values.last());
            Some(value.cloned().unwrap_or(Val::Null))
        }
        TaosFillWith::Previous => before.map(|(_, value)| value.clone()),
        TaosFillWith::Next => after.map(|(_, value)| value.clone()),
        TaosFillWith::Linear => match (before, after) {
            (Some(before), Some(after)) => Some(on_line(before, after, at)),
            _ => None,
        },
        TaosFillWith::Near => match (before, after) {
            (Some(before), Some(after)) => {
                let is_first = at.saturating_sub(before.0) <= after.0.saturating_sub(at);
                Some(if is_first {
                    before.1.clone()
                } else {
                    after.1.clone()
                })
            }
            (Some((_, value)), None) | (None, Some((_, value))) => Some(value.clone()),
            (None, None) => None,
        },
        TaosFillWith::None => None,
    }
}

/// The value on the line between two rows.
pub(in crate::stage) fn on_line(before: &(i64, Val), after: &(i64, Val), at: i64) -> Val {
    let (Some(low), Some(high)) = (before.1.number(), after.1.number()) else {
        return Val::Null;
    };
    let width = after.0.saturating_sub(before.0) as f64;
    let share = at.saturating_sub(before.0) as f64 / width;
    let value = low + (high - low) * share;
    match before.1 {
        Val::Int(_) => Val::Int(value as i64),
        Val::UInt(_) => Val::UInt(value as u64),
        Val::Bool(_) => before.1.clone(),
        Val::Time(_) => Val::Time(value as i64),
        _ => Val::of_number(value),
    }
}
