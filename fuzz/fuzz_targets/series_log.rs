//! `cargo +nightly fuzz run series_log`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::series_log(data));
