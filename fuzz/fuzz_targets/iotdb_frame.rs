//! `cargo +nightly fuzz run iotdb_frame`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::iotdb_frame(data));
