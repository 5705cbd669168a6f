//! An estimate of how many distinct values there are, in 16 KiB.

use crate::stage::accumulator::Accumulator;
use crate::taos_value::Val;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Registers.
const REGISTERS: usize = 1 << 14;

/// Bits of a hash that choose a register.
const PLACE_BITS: u32 = 14;

/// Registers with the longest runs of zeros that were seen.
#[derive(Default)]
pub(in crate::stage) struct DistinctSketch {
    registers: Vec<u8>,
}

impl Accumulator for DistinctSketch {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        let value = &arguments[0];
        if value.is_null() {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        match value {
            Val::Float(number) => number.to_bits().hash(&mut hasher),
            other => other.shown().hash(&mut hasher),
        }
        let hash = hasher.finish();
        if self.registers.is_empty() {
            self.registers = vec![0; REGISTERS];
        }
        let place = usize::try_from(hash >> (64 - PLACE_BITS)).unwrap_or(0);
        let rest = (hash << PLACE_BITS) | (1 << (PLACE_BITS - 1));
        let rank = u8::try_from(rest.leading_zeros() + 1).unwrap_or(u8::MAX);
        if let Some(register) = self.registers.get_mut(place) {
            *register = (*register).max(rank);
        }
        false
    }

    fn value(&self) -> Val {
        if self.registers.is_empty() {
            return Val::Int(0);
        }
        let count = REGISTERS as f64;
        let sum: f64 = self
            .registers
            .iter()
            .map(|rank| 0.5f64.powi(i32::from(*rank)))
            .sum();
        let empty = self.registers.iter().filter(|rank| **rank == 0).count() as f64;
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let estimate = if raw <= 2.5 * count && empty > 0.0 {
            count * (count / empty).ln()
        } else {
            raw
        };
        Val::Int(estimate.round() as i64)
    }

    fn held_bytes(&self) -> usize {
        self.registers.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_near() {
        let mut sketch = DistinctSketch::default();
        assert_eq!(sketch.value(), Val::Int(0));
        for value in 0..60_000 {
            sketch.push(0, &[Val::Int(value % 20_000)]);
        }
        let Val::Int(estimate) = sketch.value() else {
            panic!("a number");
        };
        assert!((19_000..21_000).contains(&estimate), "{estimate}");
    }
}
