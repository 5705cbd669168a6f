//! `cargo +nightly fuzz run opentsdb_telnet`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::opentsdb_telnet(data));
