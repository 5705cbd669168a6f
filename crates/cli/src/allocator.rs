//! The allocator of the binary: mimalloc, told to give back what is free.
//!
//! By itself it keeps free pages for a second in case they are wanted again; at the rate at which
//! rows are written and pages decoded that is hundreds of megabytes that count against
//! `memory_limit` and do nothing.

use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc's `mi_option_t`, the same number in its versions 2 and 3.
const PURGE_DELAY: c_int = 15;
/// How long free pages are kept, ms.
const PURGE_DELAY_MS: c_long = 50;

#[expect(
    unsafe_code,
    reason = "the crate mimalloc does not offer the option; the C library does"
)]
// SAFETY: the signature is that of `mi_option_set` in `mimalloc.h`, which stores the value and
// touches nothing else; a number that is no option is ignored.
unsafe extern "C" {
    safe fn mi_option_set(option: c_int, value: c_long);
}

/// Has free pages given back soon. `MIMALLOC_PURGE_DELAY` in the environment overrides it.
pub fn give_back_soon() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        mi_option_set(PURGE_DELAY, PURGE_DELAY_MS);
    }
}
