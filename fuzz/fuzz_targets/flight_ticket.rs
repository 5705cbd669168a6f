//! `cargo +nightly fuzz run flight_ticket`: see `src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| marigram_fuzz::flight_ticket(data));
