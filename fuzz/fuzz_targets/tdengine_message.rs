//! `cargo +nightly fuzz run tdengine_message`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::tdengine_message(data));
