//! `cargo +nightly fuzz run tdengine`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::tdengine(data));
