//! `cargo +nightly fuzz run line_protocol`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::line_protocol(data));
