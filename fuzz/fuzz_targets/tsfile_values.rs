//! `cargo +nightly fuzz run tsfile_values`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::tsfile_values(data));
