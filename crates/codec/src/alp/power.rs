//! How the integers of a block become floats: a power of ten, and how it is applied.

use super::float::AlpFloat;
use crate::error::{CodecError, Result};

/// Set in a block's first byte if the integer is multiplied by the inverse power.
const MULTIPLY: u8 = 0x40;
/// Set in a block's first byte if the result is rounded to f32 before it becomes a double.
const SINGLE: u8 = 0x20;

pub(super) const POWERS: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];
const INVERSES: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
    1e-15, 1e-16, 1e-17, 1e-18,
];

/// How a block's integers become floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PowerOfTen {
    pub(super) exponent: u8,
    pub(super) multiply: bool,
    pub(super) single: bool,
}

impl PowerOfTen {
    pub(super) const NONE: Self = Self {
        exponent: 0,
        multiply: false,
        single: false,
    };

    pub(super) fn number(self) -> u8 {
        let multiply = if self.multiply { MULTIPLY } else { 0 };
        self.exponent | multiply | if self.single { SINGLE } else { 0 }
    }

    pub(super) fn from_number(number: u8) -> Result<Self> {
        let exponent = number & !(MULTIPLY | SINGLE);
        if usize::from(exponent) >= POWERS.len() {
            return Err(CodecError::Damaged("a power of ten is out of range"));
        }
        Ok(Self {
            exponent,
            multiply: number & MULTIPLY != 0,
            single: number & SINGLE != 0,
        })
    }

    /// Passes `use_it` the function that converts integers to floats, so that loops are compiled
    /// separately for each variant.
    #[inline]
    pub(super) fn with<F: AlpFloat, R>(self, use_it: impl WithPower<F, R>) -> R {
        let (up, inverse) = (self.up(), self.inverse());
        match (self.multiply, self.single) {
            (false, false) if self.exponent == 0 => use_it.run(|n| F::multiplied(n, 1.0)),
            (false, false) => use_it.run(|n| F::divided(n, up)),
            (true, false) => use_it.run(|n| F::multiplied(n, inverse)),
            (false, true) => use_it.run(|n| F::divided(n, up).single()),
            (true, true) => use_it.run(|n| F::multiplied(n, inverse).single()),
        }
    }

    pub(super) fn up(self) -> f64 {
        POWERS[usize::from(self.exponent)]
    }

    pub(super) fn inverse(self) -> f64 {
        INVERSES[usize::from(self.exponent)]
    }
}

/// A computation with the function that converts integers to floats.
pub(super) trait WithPower<F: AlpFloat, R> {
    fn run(self, back: impl Fn(F::Lane) -> F) -> R;
}
