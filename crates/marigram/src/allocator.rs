//! What the allocator keeps of freed memory, and how it is told to give it back.
//!
//! The library sets no allocator: it asks glibc's, which most programs use, and changes its settings
//! only where the program wants that ([`tune_allocator`]).

/// Bounds what the allocator keeps in a program that is a server under a memory limit: a few arenas
/// instead of eight a core, and the free end of each goes back to the system from 1 MiB on. As glibc
/// has it by default, each arena keeps an end of up to 64 MiB, which no call gives back. For programs
/// that are nothing but a server, before they start threads; it does nothing with other allocators.
pub fn tune_allocator(memory_limit_bytes: usize, cores: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let arenas = cores.min(memory_limit_bytes / BYTES_AN_ARENA).max(2);
        set(M_ARENA_MAX, arenas);
        // Either of these ends that glibc raises both by itself.
        set(M_MMAP_THRESHOLD, 512 << 10);
        set(M_TRIM_THRESHOLD, 1 << 20);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (memory_limit_bytes, cores);
}

/// What of the limit there is to be for each arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const BYTES_AN_ARENA: usize = 64 << 20;

/// Numbers of settings in glibc's `malloc.h`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_TRIM_THRESHOLD: std::ffi::c_int = -1;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_MMAP_THRESHOLD: std::ffi::c_int = -3;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_ARENA_MAX: std::ffi::c_int = -8;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no other way to ask for it")]
fn set(setting: std::ffi::c_int, value: usize) {
    unsafe extern "C" {
        /// glibc: `man 3 mallopt`.
        fn mallopt(setting: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
    }
    let value = std::ffi::c_int::try_from(value).unwrap_or(std::ffi::c_int::MAX);
    // SAFETY: it takes two numbers; one that it does not know changes nothing.
    unsafe {
        mallopt(setting, value);
    }
}

/// Has the allocator give the pages that nobody uses back to the system, in all its arenas. Who
/// allocates from an arena meanwhile waits for its turn.
pub(crate) fn purge() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no other way to ask for it")]
fn trim() {
    unsafe extern "C" {
        /// glibc: `man 3 malloc_trim`.
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: it takes a number, and may be called at any time from any thread.
    unsafe {
        malloc_trim(0);
    }
}
