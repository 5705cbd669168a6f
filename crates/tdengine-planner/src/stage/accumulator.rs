//! Aggregates: one value of the rows of a window.

pub(in crate::stage) mod distribution;
pub(in crate::stage) mod sketch;

use crate::planned_call::PlannedCall;
use crate::stage::accumulator::distribution::{LeastSquares, ModeAccumulator, Percentile};
use crate::stage::accumulator::sketch::DistinctSketch;
use crate::taos_value::{Val, arrow_type};
use arrow::datatypes::DataType;
use marigram_tdengine::TaosType;

/// Computes a value from rows that come in the order of time.
pub(crate) trait Accumulator: Send {
    /// Takes a row; returns whether the value is now that of this row.
    fn push(&mut self, time: i64, arguments: &[Val]) -> bool;

    /// The value of all rows so far.
    fn value(&self) -> Val;

    /// Bytes that it holds beside itself.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// The accumulator of a call.
pub(in crate::stage) fn accumulator(call: &PlannedCall) -> Box<dyn Accumulator> {
    let constant = |place: usize| call.constants.get(place).and_then(Val::number);
    match call.name.as_str() {
        "count" => Box::new(Count(0)),
        "sum" => Box::new(Sum {
            kind: call.kind,
            whole: 0,
            parts: 0.0,
            is_any: false,
        }),
        "avg" => Box::new(MomentAccumulator::new(MomentValue::Mean)),
        "stddev" | "stddev_pop" => Box::new(MomentAccumulator::new(MomentValue::Deviation(0.0))),
        "stddev_samp" => Box::new(MomentAccumulator::new(MomentValue::Deviation(1.0))),
        "var_pop" | "variance" => Box::new(MomentAccumulator::new(MomentValue::Variance(0.0))),
        "var_samp" => Box::new(MomentAccumulator::new(MomentValue::Variance(1.0))),
        "min" => Box::new(Extreme(Val::Null, false)),
        "max" => Box::new(Extreme(Val::Null, true)),
        "spread" => Box::new(Spread(None)),
        "first" => Box::new(EdgeAccumulator {
            value: None,
            is_last: false,
            takes_null: false,
        }),
        "last" => Box::new(EdgeAccumulator {
            value: None,
            is_last: true,
            takes_null: false,
        }),
        "last_row" => Box::new(EdgeAccumulator {
            value: None,
            is_last: true,
            takes_null: true,
        }),
        "percentile" | "apercentile" => {
            let wanted = if call.name == "percentile" {
                (0..call.constants.len()).filter_map(constant).collect()
            } else {
                constant(0).into_iter().collect()
            };
            Box::new(Percentile {
                wanted,
                values: Vec::new(),
            })
        }
        "twa" => Box::new(TimeWeighted::default()),
        "irate" => Box::new(Rate(None, None)),
        "elapsed" => Box::new(Elapsed {
            unit: call.constants.first().and_then(Val::integer),
            ends: None,
        }),
        "leastsquares" => Box::new(LeastSquares {
            x: constant(0).unwrap_or(0.0),
            step: constant(1).unwrap_or(1.0),
            sums: [0.0; 5],
        }),
        "mode" => Box::new(ModeAccumulator::default()),
        _ => Box::new(DistinctSketch::default()),
    }
}

struct Count(i64);

impl Accumulator for Count {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        if arguments.first().is_none_or(|value| !value.is_null()) {
            self.0 += 1;
        }
        false
    }

    fn value(&self) -> Val {
        Val::Int(self.0)
    }
}

struct Sum {
    kind: TaosType,
    whole: i128,
    parts: f64,
    is_any: bool,
}

impl Accumulator for Sum {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        match &arguments[0] {
            Val::Null => return false,
            Val::UInt(value) => self.whole += i128::from(*value),
            Val::Float(value) => self.parts += value,
            value => self.whole += i128::from(value.integer().unwrap_or(0)),
        }
        self.is_any = true;
        false
    }

    fn value(&self) -> Val {
        if !self.is_any {
            return Val::Null;
        }
        match arrow_type(self.kind) {
            // As in C, a sum beyond 64 bits wraps.
            DataType::UInt64 => Val::UInt(self.whole as u64),
            DataType::Int64 => Val::Int(self.whole as i64),
            _ => Val::of_number(self.parts + self.whole as f64),
        }
    }
}

#[derive(Clone, Copy)]
enum MomentValue {
    Mean,
    /// The number that is subtracted from the count.
    Deviation(f64),
    Variance(f64),
}

/// Mean and variance, updated row by row.
struct MomentAccumulator {
    shown: MomentValue,
    count: f64,
    sum: f64,
    mean: f64,
    squares: f64,
}

impl MomentAccumulator {
    fn new(shown: MomentValue) -> Self {
        Self {
            shown,
            count: 0.0,
            sum: 0.0,
            mean: 0.0,
            squares: 0.0,
        }
    }
}

impl Accumulator for MomentAccumulator {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        if let Some(value) = arguments[0].number() {
            self.count += 1.0;
            self.sum += value;
            let away = value - self.mean;
            self.mean += away / self.count;
            self.squares += away * (value - self.mean);
        }
        false
    }

    fn value(&self) -> Val {
        if self.count == 0.0 {
            return Val::Null;
        }
        Val::of_number(match self.shown {
            MomentValue::Mean => self.sum / self.count,
            MomentValue::Deviation(less) => (self.squares / (self.count - less)).sqrt(),
            MomentValue::Variance(less) => self.squares / (self.count - less),
        })
    }
}

/// The smallest or the greatest value; the first of equal ones.
struct Extreme(Val, bool);

impl Accumulator for Extreme {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        let value = &arguments[0];
        if value.is_null() {
            return false;
        }
        let order = value.order(&self.0);
        let is_better = if self.1 { order.is_gt() } else { order.is_lt() };
        if self.0.is_null() || is_better {
            self.0 = value.clone();
            return true;
        }
        false
    }

    fn value(&self) -> Val {
        self.0.clone()
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

struct Spread(Option<(f64, f64)>);

impl Accumulator for Spread {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        if let Some(value) = arguments[0].number() {
            let (low, high) = self.0.unwrap_or((value, value));
            self.0 = Some((low.min(value), high.max(value)));
        }
        false
    }

    fn value(&self) -> Val {
        self.0
            .map_or(Val::Null, |(low, high)| Val::of_number(high - low))
    }
}

struct EdgeAccumulator {
    value: Option<Val>,
    is_last: bool,
    takes_null: bool,
}

impl Accumulator for EdgeAccumulator {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        let value = &arguments[0];
        if (value.is_null() && !self.takes_null) || (self.value.is_some() && !self.is_last) {
            return false;
        }
        self.value = Some(value.clone());
        true
    }

    fn value(&self) -> Val {
        self.value.clone().unwrap_or(Val::Null)
    }

    fn held_bytes(&self) -> usize {
        self.value.as_ref().map_or(0, Val::held_bytes)
    }
}

/// The average of the line between the values.
#[derive(Default)]
struct TimeWeighted {
    first: Option<i64>,
    last: Option<(i64, f64)>,
    area: f64,
}

impl Accumulator for TimeWeighted {
    fn push(&mut self, time: i64, arguments: &[Val]) -> bool {
        let Some(value) = arguments[0].number() else {
            return false;
        };
        match self.last {
            None => self.first = Some(time),
            Some((before, old)) => {
                self.area += f64::midpoint(old, value) * (time.saturating_sub(before)) as f64;
            }
        }
        self.last = Some((time, value));
        false
    }

    fn value(&self) -> Val {
        match (self.first, self.last) {
            (Some(first), Some((last, _))) if last > first => {
                Val::of_number(self.area / (last.saturating_sub(first)) as f64)
            }
            (_, Some((_, only))) => Val::of_number(only),
            _ => Val::Null,
        }
    }
}

/// The rate between the last two rows, per second.
struct Rate(Option<(i64, f64)>, Option<(i64, f64)>);

impl Accumulator for Rate {
    fn push(&mut self, time: i64, arguments: &[Val]) -> bool {
        if let Some(value) = arguments[0].number() {
            self.0 = self.1;
            self.1 = Some((time, value));
        }
        false
    }

    fn value(&self) -> Val {
        match (self.0, self.1) {
            (Some((before, old)), Some((time, value))) if time > before => {
                // A counter that went back began anew.
                let grown = if value >= old { value - old } else { value };
                Val::of_number(grown / ((time - before) as f64 / 1e9))
            }
            (_, Some(_)) => Val::Float(0.0),
            _ => Val::Null,
        }
    }
}

/// The time between the first row and the last one.
struct Elapsed {
    /// ns; the precision of the database if none.
    unit: Option<i64>,
    ends: Option<(i64, i64)>,
}

impl Accumulator for Elapsed {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        if let Some(time) = arguments[0].integer() {
            let (first, last) = self.ends.unwrap_or((time, time));
            self.ends = Some((first.min(time), last.max(time)));
        }
        false
    }

    fn value(&self) -> Val {
        match self.ends {
            None => Val::Null,
            Some((first, last)) => {
                let unit = self.unit.unwrap_or(1_000_000).max(1);
                Val::of_number((last.saturating_sub(first)) as f64 / unit as f64)
            }
        }
    }
}
