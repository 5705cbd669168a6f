//! The Bloom filter of the series in a file, as the format's own libraries build it: 128-bit Murmur
//! hashes with a seed for each hash function.

use crate::bytes::put_uvar;

const SEEDS: [u64; 5] = [5, 7, 11, 19, 31];
const BITS_MIN: u32 = 256;
/// Bits per series for a false positive rate of one in twenty: -ln(0.05) / ln(2)².
const BITS_PER_SERIES: f64 = 6.235_224;

/// A filter under construction.
pub(super) struct BloomFilter {
    bits: Vec<u8>,
    len: u32,
}

impl BloomFilter {
    pub(super) fn new(series: u64) -> Self {
        let len = (series as f64 * BITS_PER_SERIES) as u64 + 1;
        let len = u32::try_from(len).unwrap_or(i32::MAX as u32);
        let len = len.clamp(BITS_MIN, i32::MAX as u32);
        Self {
            bits: vec![0; len.div_ceil(8) as usize],
            len,
        }
    }

    pub(super) fn add(&mut self, path: &str) {
        for seed in SEEDS {
            let hash = murmur(path.as_bytes(), seed) as i32;
            let at = hash.checked_abs().unwrap_or(0) as u32 % self.len;
            self.bits[at as usize / 8] |= 1 << (at % 8);
        }
    }

    pub(super) fn put(mut self, out: &mut Vec<u8>) {
        while self.bits.last() == Some(&0) {
            self.bits.pop();
        }
        put_uvar(self.bits.len() as u32, out);
        if !self.bits.is_empty() {
            out.extend_from_slice(&self.bits);
            put_uvar(self.len, out);
            put_uvar(SEEDS.len() as u32, out);
        }
    }
}

fn murmur(bytes: &[u8], seed: u64) -> u64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, b| word << 8 | u64::from(*b))
    };
    let (mut h1, mut h2) = (seed, seed);
    let blocks = bytes.chunks_exact(16);
    let tail = blocks.remainder();
    for block in blocks {
        h1 ^= mix1(word(&block[..8]));
        h1 = h1.rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(word(&block[8..]));
        h2 = h2.rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    h2 ^= mix2(word(high));
    h1 ^= mix1(word(low));
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1.wrapping_add(h2)
}

fn finish(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}
