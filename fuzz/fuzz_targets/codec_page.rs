//! `cargo +nightly fuzz run codec_page`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::codec_page(data));
