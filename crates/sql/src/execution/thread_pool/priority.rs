//! Threads with lowered priority: the operating system gives them a core mainly when others leave
//! one idle.
//!
//! A thread may lower its own priority, but needs a privilege to raise it again. So a thread whose
//! priority was lowered ends with its statement and is not reused.

/// A thread id of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadId(#[cfg_attr(not(target_os = "linux"), expect(dead_code))] u32);

/// The nice value of threads with lowered priority. A thread with the usual value gets about ten
/// times as much of a core that both want.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;

/// The calling thread.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the standard library does not expose the id of a thread"
)]
pub(super) fn this_thread() -> ThreadId {
    // SAFETY: it takes no arguments, touches no memory of ours and cannot fail.
    let id = unsafe { libc::gettid() };
    ThreadId(id.cast_unsigned())
}

/// Lowers the priority of a thread of this process. If the operating system refuses, nothing
/// changes.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no priorities")]
pub(super) fn lower(ThreadId(id): ThreadId) {
    // SAFETY: it only takes numbers and touches no memory of ours.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, id, NICE) };
}

/// Other systems have no priorities by thread id.
#[cfg(not(target_os = "linux"))]
pub fn this_thread() -> ThreadId {
    ThreadId(0)
}

/// Does nothing: the system shares cores evenly.
#[cfg(not(target_os = "linux"))]
pub fn lower(_: ThreadId) {}
