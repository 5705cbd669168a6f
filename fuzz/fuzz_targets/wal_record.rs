//! `cargo +nightly fuzz run wal_record`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::wal_record(data));
