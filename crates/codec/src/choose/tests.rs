//! The choice for many kinds of values.

use super::*;

fn random() -> impl FnMut() -> u64 {
    let mut state = 3u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state ^ (state >> 29)
    }
}

#[test]
fn the_choice_follows_integers() {
    let times: Vec<i64> = (0..8192)
        .map(|i| 1_700_000_000_000_000_000 + i * 1000)
        .collect();
    assert_eq!(choose(PageValues::I64(&times)), Encoding::Delta);
    let mut next = random();
    let small: Vec<i32> = (0..8192).map(|_| (next() >> 20) as i32 % 64).collect();
    assert_eq!(choose(PageValues::I32(&small)), Encoding::For);
    assert_eq!(choose(PageValues::U64(&[7; 100])), Encoding::Runs);
    let steps: Vec<i64> = (0..8192).map(|i| i / 512 * 7919 % 101).collect();
    assert_eq!(choose(PageValues::I64(&steps)), Encoding::Runs);
    let levels: Vec<i64> = (0..8192)
        .map(|_| ((next() >> 20) % 11 * 1_000_003) as i64)
        .collect();
    assert_eq!(
        choose(PageValues::I64(&levels)),
        Encoding::For,
        "a common factor is divided out"
    );
    let levels: Vec<i64> = levels
        .iter()
        .map(|level| level * level % 1_000_033)
        .collect();
    assert_eq!(choose(PageValues::I64(&levels)), Encoding::Entries);
    let cycle: Vec<i32> = (0..8192).map(|i| i % 60 * 37 % 61 % 16).collect();
    assert_eq!(choose(PageValues::I32(&cycle)), Encoding::Entries);
}

#[test]
fn the_choice_follows_floats() {
    let mut next = random();
    let decimals: Vec<f64> = (0..8192)
        .map(|_| f64::from((next() >> 20) as u32 % 100_000) / 10.0)
        .collect();
    assert_eq!(choose(PageValues::F64(&decimals)), Encoding::Alp);
    let mut tenths = 0i32;
    let walk: Vec<f32> = (0..8192)
        .map(|_| {
            tenths += (next() >> 20) as i32 % 7 - 3;
            tenths as f32 / 10.0
        })
        .collect();
    assert_eq!(choose(PageValues::F32(&walk)), Encoding::AlpDelta);
    let noise: Vec<f64> = (0..8192).map(|_| f64::from_bits(next())).collect();
    assert_eq!(choose(PageValues::F64(&noise)), Encoding::Plain);
    let mut angle = 0.0f64;
    let computed: Vec<f64> = (0..8192)
        .map(|_| {
            angle += 0.7;
            50.0 + angle.sin()
        })
        .collect();
    assert_eq!(choose(PageValues::F64(&computed)), Encoding::AlpRd);
    let wave: Vec<f64> = (0..8192)
        .map(|i| (f64::from(i % 1000) / 159.1).sin())
        .collect();
    assert_eq!(choose(PageValues::F64(&wave)), Encoding::Entries);
    let square: Vec<f64> = (0..8192).map(|i| f64::from(i / 250 % 2)).collect();
    assert_eq!(choose(PageValues::F64(&square)), Encoding::Runs);
    assert_eq!(choose(PageValues::F32(&[])), Encoding::Plain);
}

#[test]
fn the_choice_follows_truths() {
    assert_eq!(choose(PageValues::Bool(&[true; 64])), Encoding::Runs);
    let mixed = [true, false, false, true];
    assert_eq!(choose(PageValues::Bool(&mixed)), Encoding::Plain);
}

#[test]
fn the_choice_follows_strings() {
    let offsets = [0, 1, 2, 3, 4];
    let choose_text = |data: &[u8]| {
        choose(PageValues::Bytes {
            offsets: &offsets,
            data,
        })
    };
    assert_eq!(choose_text(b"abab"), Encoding::Entries);
    assert_eq!(choose_text(b"abcd"), Encoding::Plain);
    assert_eq!(choose_text(b"aaaa"), Encoding::Runs);
    let mut next = random();
    let texts: Vec<String> = (0..2000)
        .map(|_| {
            let words = ["pump", "valve", "tank", "motor", "sensor", "belt"];
            let word = |number: u64| words[(number >> 20) as usize % words.len()];
            format!(
                "{}-{}-{:05}",
                word(next()),
                word(next()),
                (next() >> 20) % 100_000
            )
        })
        .collect();
    let mut offsets = vec![0];
    for text in &texts {
        offsets.push(offsets[offsets.len() - 1] + text.len() as i32);
    }
    let data = texts.concat();
    let texts = PageValues::Bytes {
        offsets: &offsets,
        data: data.as_bytes(),
    };
    assert_eq!(choose(texts), Encoding::Fsst);
}
