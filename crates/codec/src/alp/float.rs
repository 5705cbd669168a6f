//! Floats as ALP needs them: scaled to integers, and back.

use crate::bitpack::PackedLane;
use crate::plain::PlainNumber;

/// Adding this to a float below 2^51 leaves the rounded float in the low bits of the sum;
/// subtracting it reverses that.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const MAGIC_BITS: u64 = MAGIC.to_bits();

/// A float and the integer lane it is packed as.
pub(crate) trait AlpFloat: PlainNumber + Default + Send + Sync + 'static {
    type Lane: PackedLane;
    /// The powers to try: from 0 to this.
    const EXPONENT_MAX: u8;
    /// Whether multiplication is tried before division.
    const MULTIPLY_FIRST: bool;
    /// The integer nearest to the value times `up`; arbitrary if there is none.
    fn scale(self, up: f64) -> Self::Lane;
    fn multiplied(integer: Self::Lane, inverse: f64) -> Self;
    fn divided(integer: Self::Lane, up: f64) -> Self;
    #[inline]
    fn same(self, other: Self) -> bool {
        self.lane() == other.lane()
    }
    /// The bits.
    fn lane(self) -> Self::Lane;
    fn from_lane(lane: Self::Lane) -> Self;
    /// Whether the integer may represent a value.
    fn allowed(integer: Self::Lane) -> bool;
    /// The value rounded to f32.
    fn single(self) -> Self;
}

#[inline]
fn float_of(integer: u64) -> f64 {
    f64::from_bits(integer.wrapping_add(MAGIC_BITS)) - MAGIC
}

impl AlpFloat for f64 {
    type Lane = u64;
    const EXPONENT_MAX: u8 = 18;
    const MULTIPLY_FIRST: bool = false;
    #[inline]
    fn scale(self, up: f64) -> u64 {
        (self * up + MAGIC).to_bits().wrapping_sub(MAGIC_BITS)
    }
    #[inline]
    fn multiplied(integer: u64, inverse: f64) -> f64 {
        float_of(integer) * inverse
    }
    #[inline]
    fn divided(integer: u64, up: f64) -> f64 {
        float_of(integer) / up
    }
    #[inline]
    fn lane(self) -> Self::Lane {
        self.to_bits()
    }
    #[inline]
    fn from_lane(lane: Self::Lane) -> Self {
        Self::from_bits(lane)
    }
    #[inline]
    fn allowed(integer: u64) -> bool {
        integer.wrapping_add(1 << 51) < 1 << 52
    }
    #[inline]
    fn single(self) -> f64 {
        f64::from(self as f32)
    }
}

impl AlpFloat for f32 {
    type Lane = u32;
    const EXPONENT_MAX: u8 = 12;
    const MULTIPLY_FIRST: bool = true;
    #[inline]
    fn scale(self, up: f64) -> u32 {
        (f64::from(self) * up + MAGIC).to_bits() as u32
    }
    #[inline]
    fn multiplied(integer: u32, inverse: f64) -> f32 {
        (f64::from(integer as i32) * inverse) as f32
    }
    #[inline]
    fn divided(integer: u32, up: f64) -> f32 {
        (f64::from(integer as i32) / up) as f32
    }
    #[inline]
    fn lane(self) -> Self::Lane {
        self.to_bits()
    }
    #[inline]
    fn from_lane(lane: Self::Lane) -> Self {
        Self::from_bits(lane)
    }
    #[inline]
    fn allowed(_: u32) -> bool {
        true
    }
    #[inline]
    fn single(self) -> f32 {
        self
    }
}
