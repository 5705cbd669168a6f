//! Floats under `RLE` and `TS_2DIFF` of `TsFile`: a number of decimal places, then integers.
//!
//! ```text
//! if a value is not its integer / 10^places:
//!   varint  2^31 - 1; 2^31 - 2 if the second bitmap is there
//!   varint  number of values n
//!   [u8; n / 8 + 1]  bitmap: the value is its integer / 10^places, else it is its integer
//!   [u8; n / 8 + 1]  bitmap: the integer is the value's bits
//! varint  places
//! ...     the integers: 32 bits for f32, 64 for f64
//! ```
//!
//! The writer of Apache `TsFile` rounds to a configured number of places. This one uses the least
//! number with which every value decodes bit for bit. If there is none (most computed values; -0.0;
//! NaN with a payload), the page cannot be written this way.

use super::Strictness;
use super::word::TsFileInteger;
use crate::bytes::{ByteReader, put_varint};
use crate::error::{CodecError, Result};

/// Marks that replace the number of places.
const WITH_BITMAP: u64 = i32::MAX as u64;
const WITH_BITMAPS: u64 = WITH_BITMAP - 1;

/// What an integer represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScaledKind {
    /// The value times a power of ten.
    Scaled,
    /// The value: scaled, it would be too large.
    Whole,
    /// The value's bits: it is too large, or not a number.
    Bits,
}

/// A float and the integer that represents it.
pub(super) trait DecimalFloat: Copy {
    type Word: TsFileInteger;
    /// Most decimal places to try.
    const PLACES_MAX: i32;
    /// The bits that end a page of `GORILLA`: those of NaN.
    const GORILLA_END: Self::Word;
    /// The integer that represents the value, as Java computes it.
    fn split(self, scale: f64) -> (ScaledKind, Self::Word);
    fn join(kind: ScaledKind, word: Self::Word, scale: f64) -> Self;
    fn bits(self) -> Self::Word;
    fn from_bits(bits: Self::Word) -> Self;

    fn comes_back(self, scale: f64) -> bool {
        let (kind, word) = self.split(scale);
        Self::join(kind, word, scale).bits() == self.bits()
    }
}

/// Rounded to the nearest integer, halves up.
fn round(value: f64) -> f64 {
    let floor = value.floor();
    if value - floor >= 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

impl DecimalFloat for f32 {
    type Word = i32;
    const PLACES_MAX: i32 = 10;
    const GORILLA_END: i32 = 0x7fc0_0000;

    fn split(self, scale: f64) -> (ScaledKind, i32) {
        const LIMIT: f32 = i32::MAX as f32;
        let scaled = f64::from(self) * scale;
        if self.is_nan() {
            (ScaledKind::Bits, Self::GORILLA_END)
        } else if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&scaled) {
            (ScaledKind::Scaled, round(scaled) as i32)
        } else if (-LIMIT..=LIMIT).contains(&self) {
            (ScaledKind::Whole, round(f64::from(self)) as i32)
        } else {
            (ScaledKind::Bits, DecimalFloat::bits(self))
        }
    }

    fn join(kind: ScaledKind, word: i32, scale: f64) -> Self {
        match kind {
            ScaledKind::Scaled => (f64::from(word) / scale) as f32,
            ScaledKind::Whole => word as f32,
            ScaledKind::Bits => DecimalFloat::from_bits(word),
        }
    }

    fn bits(self) -> i32 {
        self.to_bits() as i32
    }

    fn from_bits(bits: i32) -> Self {
        Self::from_bits(bits as u32)
    }
}

impl DecimalFloat for f64 {
    type Word = i64;
    const PLACES_MAX: i32 = 18;
    const GORILLA_END: i64 = 0x7ff8_0000_0000_0000;

    fn split(self, scale: f64) -> (ScaledKind, i64) {
        const LIMIT: f64 = i64::MAX as f64;
        if self.is_nan() {
            (ScaledKind::Bits, Self::GORILLA_END)
        } else if (-LIMIT..=LIMIT).contains(&(self * scale)) {
            (ScaledKind::Scaled, round(self * scale) as i64)
        } else if (-LIMIT..=LIMIT).contains(&self) {
            (ScaledKind::Whole, round(self) as i64)
        } else {
            (ScaledKind::Bits, DecimalFloat::bits(self))
        }
    }

    fn join(kind: ScaledKind, word: i64, scale: f64) -> Self {
        match kind {
            ScaledKind::Scaled => word as f64 / scale,
            ScaledKind::Whole => word as f64,
            ScaledKind::Bits => DecimalFloat::from_bits(word),
        }
    }

    fn bits(self) -> i64 {
        self.to_bits() as i64
    }

    fn from_bits(bits: i64) -> Self {
        Self::from_bits(bits as u64)
    }
}

/// The least number of places with which every value decodes correctly.
fn places<F: DecimalFloat>(values: &[F]) -> Option<i32> {
    let mut places = 0;
    loop {
        let scale = 10f64.powi(places);
        let Some(lost) = values.iter().find(|value| !value.comes_back(scale)) else {
            return Some(places);
        };
        places = (places + 1..=F::PLACES_MAX).find(|more| lost.comes_back(10f64.powi(*more)))?;
    }
}

/// Appends the header of the integers of `values`, and returns the integers.
pub(super) fn put_decimals<F: DecimalFloat>(
    values: &[F],
    out: &mut Vec<u8>,
) -> Result<Vec<F::Word>> {
    let places = places(values).ok_or(CodecError::Unsupported(
        "RLE and TS_2DIFF",
        "floats that are not decimals of few places",
    ))?;
    let scale = 10f64.powi(places);
    let (kinds, words): (Vec<_>, Vec<_>) = values.iter().map(|value| value.split(scale)).unzip();
    if kinds.iter().any(|kind| *kind != ScaledKind::Scaled) {
        let with_bits = kinds.contains(&ScaledKind::Bits);
        put_varint(if with_bits { WITH_BITMAPS } else { WITH_BITMAP }, out);
        put_varint(values.len() as u64, out);
        put_bitmap(&kinds, ScaledKind::Scaled, out);
        if with_bits {
            put_bitmap(&kinds, ScaledKind::Bits, out);
        }
    }
    put_varint(places as u64, out);
    Ok(words)
}

fn put_bitmap(kinds: &[ScaledKind], marked: ScaledKind, out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + kinds.len() / 8 + 1, 0);
    for (at, _) in kinds
        .iter()
        .enumerate()
        .filter(|(_, kind)| **kind == marked)
    {
        out[from + at / 8] |= 1 << (at % 8);
    }
}

/// The header before the integers of floats.
pub(super) struct DecimalHeader<'a> {
    places: u64,
    scaled: Option<&'a [u8]>,
    bits: Option<&'a [u8]>,
}

impl<'a> DecimalHeader<'a> {
    pub(super) fn read(
        reader: &mut ByteReader<'a>,
        count: usize,
        strictness: Strictness,
    ) -> Result<Self> {
        let (mut places, mut scaled, mut bits) = (reader.varint()?, None, None);
        if places == WITH_BITMAP || places == WITH_BITMAPS {
            let marks = reader.varint()?;
            let is_longer = marks > count as u64 && strictness == Strictness::Foreign;
            if marks != count as u64 && !is_longer {
                return Err(CodecError::Damaged("a bitmap is not as long as its page"));
            }
            let bytes = usize::try_from(marks / 8 + 1);
            let bytes = bytes.map_err(|_| CodecError::Damaged("it ends early"))?;
            scaled = Some(reader.take(bytes)?);
            if places == WITH_BITMAPS {
                bits = Some(reader.take(bytes)?);
            }
            places = reader.varint()?;
        }
        Ok(Self {
            places,
            scaled,
            bits,
        })
    }

    pub(super) fn join<F: DecimalFloat>(&self, words: Vec<F::Word>) -> Vec<F> {
        let scale = 10f64.powi(i32::try_from(self.places).unwrap_or(i32::MAX));
        let is_marked = |bitmap: Option<&[u8]>, at: usize| {
            bitmap.is_some_and(|bitmap| bitmap[at / 8] >> (at % 8) & 1 == 1)
        };
        let kind = |at| {
            if is_marked(self.bits, at) {
                ScaledKind::Bits
            } else if self.scaled.is_none() || is_marked(self.scaled, at) {
                ScaledKind::Scaled
            } else {
                ScaledKind::Whole
            }
        };
        let words = words.into_iter().enumerate();
        words
            .map(|(at, word)| F::join(kind(at), word, scale))
            .collect()
    }
}
