//! Random numbers by address, not in sequence: a value belongs to a (seed, device, row), so any
//! client can generate its own rows, in any order, without the rows of others.
//!
//! The function is splitmix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number
//! generators*, 2014): a [`Key`] is a state, [`Key::with`] is the output of that state at a
//! position, a [`Draw`] is the sequence of outputs. It uses integer arithmetic only, so it is the
//! same on every machine, which `rand`'s own small generator does not promise. [`sine`] is here for
//! the same reason: the last bit of the standard library's sine may differ between platforms.

use rand::{RngExt, TryRng};
use std::convert::Infallible;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// The address of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    /// The root address of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(GOLDEN)))
    }

    /// The address below this one with number `part`: a device, a sensor, a row.
    pub(super) fn with(self, part: u64) -> Self {
        let position = part.wrapping_add(1).wrapping_mul(GOLDEN);
        Self(mix(self.0.wrapping_add(position)))
    }

    /// The numbers at this address.
    pub(super) fn draw(self) -> Draw {
        // Inverted, so that they differ from the addresses below this one.
        Draw(!self.0)
    }

    /// The first number at this address, uniform in [0, 1).
    pub(super) fn uniform(self) -> f64 {
        self.draw().random()
    }
}

/// A sequence of random numbers; `rand` and `rand_distr` draw from it.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl TryRng for Draw {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|number| (number >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(GOLDEN);
        Ok(mix(self.0))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let number = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
        Ok(())
    }
}

/// Sine of `turn` whole turns, `turn` in [0, 1), to within 1e-10: Taylor's series about 0 of the
/// angle folded into [-π/2, π/2].
pub(super) fn sine(turn: f64) -> f64 {
    let angle = turn * TAU;
    let angle = if angle > 3.0 * FRAC_PI_2 {
        angle - TAU
    } else if angle > FRAC_PI_2 {
        PI - angle
    } else {
        angle
    };
    let square = angle * angle;
    // Horner's scheme: each factor moves the series from 1/n! to 1/(n-2)!.
    let series = [14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0]
        .iter()
        .fold(1.0, |series, n| 1.0 - square / (n * (n + 1.0)) * series);
    angle * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn the_function_is_splitmix64() {
        // First outputs of the reference implementation for the state 1234567.
        let mut draw = Draw(1_234_567);
        assert_eq!(draw.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(draw.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(Key(1_234_567).with(1), Key(3_203_168_211_198_807_973));
        let mut bytes = [0; 10];
        Draw(1_234_567).fill_bytes(&mut bytes);
        assert_eq!(bytes[..8], 6_457_827_717_110_365_317_u64.to_le_bytes());
        assert_eq!(bytes[8..], 3_203_168_211_198_807_973_u64.to_le_bytes()[..2]);
    }

    #[test]
    fn neighbouring_addresses_are_independent() {
        let key = Key::new(0);
        let count = 40_000;
        let numbers: Vec<f64> = (0..count)
            .map(|part| StandardNormal.sample(&mut key.with(part / 200).with(part % 200).draw()))
            .collect();
        let mean = numbers.iter().sum::<f64>() / count as f64;
        let square = numbers.iter().map(|n| n * n).sum::<f64>() / count as f64;
        let pairs = numbers
            .windows(2)
            .map(|pair| pair[0] * pair[1])
            .sum::<f64>()
            / count as f64;
        // Standard errors are 0.005, 0.007 and 0.005.
        assert!(mean.abs() < 0.025, "{mean}");
        assert!((square - 1.0).abs() < 0.035, "{square}");
        assert!(pairs.abs() < 0.025, "{pairs}");
        assert_ne!(Key::new(1).uniform(), Key::new(2).uniform());
    }

    #[test]
    fn the_sine_is_a_sine() {
        for step in 0..10_000 {
            let turn = f64::from(step) / 10_000.0;
            assert!((sine(turn) - (turn * TAU).sin()).abs() < 1e-10, "{turn}");
        }
    }
}
