//! `cargo +nightly fuzz run tag_key`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::tag_key(data));
