//! Limits how much freed memory the allocator keeps, and makes it return memory to the system.
//!
//! The library sets no allocator: it talks to glibc's, which most programs use, and changes the
//! settings only if the program asks for it ([`tune_allocator`]).

/// Limits what the allocator keeps, for a program that is a server under a memory limit: a few
/// arenas instead of eight per core, each of which returns its free end to the system from 1 MiB
/// on. By default, glibc lets each arena keep a free end of up to 64 MiB, which no call returns.
/// Only for programs that are nothing but a server; call it before they start threads. It does
/// nothing with other allocators.
pub fn tune_allocator(memory_limit_bytes: usize, cores: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let arenas = cores.min(memory_limit_bytes / BYTES_AN_ARENA).max(2);
        set(M_ARENA_MAX, arenas);
        // Setting either one stops glibc from raising both by itself.
        set(M_MMAP_THRESHOLD, 512 << 10);
        set(M_TRIM_THRESHOLD, 1 << 20);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (memory_limit_bytes, cores);
}

/// Bytes of the limit for each arena.
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
#[expect(unsafe_code, reason = "glibc has no safe interface for it")]
fn set(setting: std::ffi::c_int, value: usize) {
    unsafe extern "C" {
        /// glibc: `man 3 mallopt`.
        fn mallopt(setting: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
    }
    let value = std::ffi::c_int::try_from(value).unwrap_or(std::ffi::c_int::MAX);
    // SAFETY: it takes two numbers; an unknown setting changes nothing.
    unsafe {
        mallopt(setting, value);
    }
}

/// Makes the allocator return unused pages of all its arenas to the system. Threads that allocate
/// from an arena meanwhile wait.
pub(crate) fn purge() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc has no safe interface for it")]
fn trim() {
    unsafe extern "C" {
        /// glibc: `man 3 malloc_trim`.
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: it takes a number, and any thread may call it at any time.
    unsafe {
        malloc_trim(0);
    }
}
