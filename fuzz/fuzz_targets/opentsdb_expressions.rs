//! `cargo +nightly fuzz run opentsdb_expressions`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::opentsdb_expressions(data));
