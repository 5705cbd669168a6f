//! Random numbers that are the same on every machine, and that can be computed for any truck and
//! time on their own: `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", 2014).

use std::convert::Infallible;

/// The purpose of a sequence of random numbers; it separates sequences that share other keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum RandomPurpose {
    Tags = 1,
    Walk,
    Load,
    Group,
    Row,
    Arrival,
}

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

/// Distance of two states: 2⁶⁴ over the golden ratio, odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Random {
    /// The sequence for these keys.
    pub(super) fn new(seed: u64, purpose: RandomPurpose, a: u64, b: u64) -> Self {
        let keyed = mix(seed ^ (purpose as u64).wrapping_mul(GOLDEN));
        Self(mix(mix(keyed ^ a).wrapping_add(b.wrapping_mul(GOLDEN))))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in 0 (inclusive) to 1 (exclusive).
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Uniform in 0 to `end` (exclusive), which is small.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (((self.next() >> 32) * end as u64) >> 32) as usize
    }
}

impl rand::TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
