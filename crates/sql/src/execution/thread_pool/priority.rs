//! Threads that stand back: the operating system gives them a core only as far as others leave one.
//!
//! A thread may lower its own priority, but needs a right to raise it again. So a thread that once
//! stood back ends with its statement and is not used for another.

/// A thread, as the operating system names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(#[cfg_attr(not(target_os = "linux"), expect(dead_code))] u32);

/// Nice value of threads that stand back. A thread of the usual value gets about ten times as much
/// of a core that both want.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;

/// The thread that calls.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the standard library does not tell the number of a thread"
)]
pub fn this_thread() -> ThreadId {
    // SAFETY: it takes nothing, touches no memory of ours and cannot fail.
    let id = unsafe { libc::gettid() };
    ThreadId(id.cast_unsigned())
}

/// Makes a thread of this process stand back. It goes on as before where the machine refuses.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library knows no priorities")]
pub fn lower(ThreadId(id): ThreadId) {
    // SAFETY: it takes numbers alone and touches no memory of ours.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, id, NICE) };
}

/// Other systems have no priority of a thread by its number.
#[cfg(not(target_os = "linux"))]
pub fn this_thread() -> ThreadId {
    ThreadId(0)
}

/// Does nothing here: the system shares cores evenly.
#[cfg(not(target_os = "linux"))]
pub fn lower(_: ThreadId) {}
