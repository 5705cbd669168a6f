//! Functions with a value for each row: DIFF, DERIVATIVE, CSUM, MAVG, STATECOUNT and STATEDURATION.

use crate::planned_call::PlannedCall;
use crate::taos_value::{Val, arrow_type};
use arrow::datatypes::DataType;
use std::collections::VecDeque;

/// What a function remembers of the rows before.
pub(in crate::stage) enum Sequence {
    Diff {
        before: Option<Val>,
        ignores_negative: bool,
    },
    Derivative {
        before: Option<(i64, f64)>,
        unit_ns: f64,
        ignores_negative: bool,
    },
    Sum {
        is_whole: bool,
        whole: i128,
        parts: f64,
    },
    Average {
        count: usize,
        values: VecDeque<f64>,
    },
    State {
        operator: String,
        constant: f64,
        /// The unit of the duration, ns; `None` counts rows.
        unit_ns: Option<i64>,
        count: i64,
        since: Option<i64>,
    },
}

impl Sequence {
    /// What a call needs.
    pub(in crate::stage) fn new(call: &PlannedCall, tick_ns: i64) -> Self {
        let constant = |place: usize| call.constants.get(place);
        let number = |place: usize| constant(place).and_then(Val::number);
        match call.name.as_str() {
            "diff" => Self::Diff {
                before: None,
                ignores_negative: number(0).is_some_and(|option| option as i64 % 2 == 1),
            },
            "derivative" => Self::Derivative {
                before: None,
                unit_ns: number(0).unwrap_or(1e9),
                ignores_negative: number(1) == Some(1.0),
            },
            "csum" => Self::Sum {
                is_whole: arrow_type(call.kind) != DataType::Float64,
                whole: 0,
                parts: 0.0,
            },
            "mavg" => Self::Average {
                count: constant(0)
                    .and_then(Val::integer)
                    .and_then(|count| usize::try_from(count).ok())
                    .unwrap_or(1),
                values: VecDeque::new(),
            },
            name => Self::State {
                operator: constant(0)
                    .and_then(Val::text)
                    .unwrap_or_default()
                    .to_ascii_uppercase(),
                constant: number(1).unwrap_or(0.0),
                unit_ns: (name == "stateduration").then(|| {
                    let unit = constant(2).and_then(Val::integer);
                    unit.unwrap_or(tick_ns).max(1)
                }),
                count: 0,
                since: None,
            },
        }
    }

    /// The value of a row; `None` if the row has none.
    pub(in crate::stage) fn push(&mut self, time: i64, value: &Val) -> Option<Val> {
        match self {
            Self::Diff {
                before,
                ignores_negative,
            } => {
                if value.is_null() {
                    return None;
                }
                let old = before.replace(value.clone())?;
                let difference = match (&old, value) {
                    (Val::Float(old), Val::Float(new)) => Val::of_number(new - old),
                    (old, new) => {
                        let pair = old.integer().zip(new.integer());
                        let between = pair.and_then(|(old, new)| new.checked_sub(old));
                        between.map_or(Val::Null, Val::Int)
                    }
                };
                let is_negative = difference.number().is_some_and(|number| number < 0.0);
                Some(if *ignores_negative && is_negative {
                    Val::Null
                } else {
                    difference
                })
            }
            Self::Derivative {
                before,
                unit_ns,
                ignores_negative,
            } => {
                let number = value.number()?;
                let (then, old) = before.replace((time, number))?;
                let units = time.saturating_sub(then) as f64 / *unit_ns;
                let rate = (number - old) / units;
                (!(*ignores_negative && rate < 0.0)).then(|| Val::of_number(rate))
            }
            Self::Sum {
                is_whole,
                whole,
                parts,
            } => {
                if value.is_null() {
                    return None;
                }
                if *is_whole {
                    *whole += match value {
                        Val::UInt(number) => i128::from(*number),
                        other => i128::from(other.integer().unwrap_or(0)),
                    };
                    return Some(match value {
                        Val::UInt(_) => Val::UInt(*whole as u64),
                        _ => Val::Int(*whole as i64),
                    });
                }
                *parts += value.number()?;
                Some(Val::of_number(*parts))
            }
            Self::Average { count, values } => {
                values.push_back(value.number()?);
                if values.len() > *count {
                    values.pop_front();
                }
                if values.len() < *count {
                    return None;
                }
                let sum: f64 = values.iter().sum();
                Some(Val::of_number(sum / values.len() as f64))
            }
            Self::State {
                operator,
                constant,
                unit_ns,
                count,
                since,
            } => {
                let Some(number) = value.number() else {
                    return Some(Val::Null);
                };
                if !holds(operator, number, *constant) {
                    (*count, *since) = (0, None);
                    return Some(Val::Int(-1));
                }
                *count += 1;
                let since = *since.get_or_insert(time);
                Some(Val::Int(match unit_ns {
                    None => *count,
                    Some(unit) => time.saturating_sub(since) / *unit,
                }))
            }
        }
    }
}

fn holds(operator: &str, value: f64, constant: f64) -> bool {
    match operator {
        "LT" => value < constant,
        "GT" => value > constant,
        "LE" => value <= constant,
        "GE" => value >= constant,
        "NE" => value != constant,
        _ => value == constant,
    }
}
