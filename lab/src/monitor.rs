//! The cost of a run: processor, memory, page cache and disk of server and client separately, and
//! the latencies of requests.
//!
//! A thread reads the kernel's counters from `/proc` once per second (more often in short runs) and
//! at every mark. They count processor time in ticks of 10 ms, so a shorter step may seem to cost
//! nothing.

mod disk;
mod latency;
mod machine;
mod processes;

pub use disk::folder_bytes;
pub use latency::Latencies;
pub use machine::machine;
pub use processes::Resident;

use crate::record::{Resources, Usage};
use anyhow::Result;
use processes::Processes;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A sample of the counters: processor time and bytes since the monitor began, and current memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Since the monitor began, seconds.
    pub at_s: f64,
    /// The server's processes and their children; `None` if the server runs in this process.
    pub server: Option<Usage>,
    /// This process.
    pub client: Usage,
    /// Page cache of the machine, bytes.
    pub page_cache_bytes: u64,
}

/// A moment that [`Monitor::since`] counts from.
#[derive(Clone, Copy, Debug)]
pub struct Mark(Sample);

/// Samples in the background until it is finished.
pub struct Monitor {
    state: Arc<Mutex<State>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    begin: Instant,
    server: Processes,
    client: Processes,
    samples: Vec<Sample>,
}

impl State {
    /// Reads all counters, and keeps what it read.
    fn sample(&mut self) -> Sample {
        let sample = Sample {
            at_s: self.begin.elapsed().as_secs_f64(),
            server: (!self.server.is_empty()).then(|| self.server.usage()),
            client: self.client.usage(),
            page_cache_bytes: processes::page_cache_bytes(),
        };
        self.samples.push(sample);
        sample
    }
}

/// A thread that panicked while it held the lock left complete samples.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Monitor {
    /// Begins to sample the processes `server` and this process at intervals of `every`.
    pub fn start(server: Vec<u32>, every: Duration) -> Result<Self> {
        let state = Arc::new(Mutex::new(State {
            begin: Instant::now(),
            server: Processes::running(&server),
            client: Processes::this(),
            samples: Vec::new(),
        }));
        lock(&state).sample();
        let (end, ended) = channel();
        let sampled = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || {
                while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    lock(&sampled).sample();
                }
            })?;
        Ok(Self {
            state,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Follows other processes of the server, after a restart. What the old ones used stays
    /// counted.
    pub fn follow(&self, server: &[u32]) {
        lock(&self.state).server.follow(server);
    }

    /// This moment.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(lock(&self.state).sample())
    }

    /// Memory of the server's processes; `None` if the server runs in this process.
    #[must_use]
    pub fn resident(&self) -> Option<Resident> {
        let state = lock(&self.state);
        (!state.server.is_empty()).then(|| state.server.resident())
    }

    /// The resources used since `mark`.
    #[must_use]
    pub fn since(&self, mark: &Mark) -> Resources {
        let mut state = lock(&self.state);
        let now = state.sample();
        let between = state
            .samples
            .iter()
            .rev()
            .take_while(|sample| sample.at_s >= mark.0.at_s);
        let mut peak = Sample::default();
        for sample in between {
            peak.client.rss_bytes = peak.client.rss_bytes.max(sample.client.rss_bytes);
            peak.page_cache_bytes = peak.page_cache_bytes.max(sample.page_cache_bytes);
            if let Some(server) = sample.server {
                let peak = peak.server.get_or_insert_default();
                peak.rss_bytes = peak.rss_bytes.max(server.rss_bytes);
            }
        }
        let used = |now: Usage, then: Usage, rss_bytes| Usage {
            cpu_s: now.cpu_s - then.cpu_s,
            rss_bytes,
            read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
            write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
        };
        Resources {
            seconds: now.at_s - mark.0.at_s,
            server: now.server.map(|server| {
                let rss_bytes = peak.server.unwrap_or_default().rss_bytes;
                used(server, mark.0.server.unwrap_or_default(), rss_bytes)
            }),
            client: used(now.client, mark.0.client, peak.client.rss_bytes),
            page_cache_bytes: peak.page_cache_bytes,
        }
    }

    /// Ends, and returns all samples.
    #[must_use]
    pub fn finish(mut self) -> Vec<Sample> {
        self.end();
        let mut state = lock(&self.state);
        state.sample();
        std::mem::take(&mut state.samples)
    }

    fn end(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The thread only samples, so its result has no use.
            let _ = thread.join();
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn burn(time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn work_of_this_process_is_the_clients() {
        let every = Duration::from_millis(5);
        let monitor = Monitor::start(Vec::new(), every).expect("it starts");
        let mark = monitor.mark();
        let taken = || lock(&monitor.state).samples.len();
        let before = taken();
        while taken() < before + 3 {
            burn(every);
        }
        let mut used = monitor.since(&mark);
        while used.client.cpu_s == 0.0 {
            burn(every);
            used = monitor.since(&mark);
        }
        assert_eq!(used.server, None);
        assert!(used.seconds >= every.as_secs_f64());
        assert!(used.client.rss_bytes > 1 << 20);
        assert!(used.page_cache_bytes > 0);
        let samples = monitor.finish();
        assert!(samples.is_sorted_by(|a, b| a.at_s <= b.at_s));
    }

    #[test]
    fn work_of_a_servers_child_is_the_servers_and_stays_counted_after_its_end() {
        let script = "sh -c 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done'; sleep 60";
        let mut server = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let monitor =
            Monitor::start(vec![server.id()], Duration::from_millis(5)).expect("it starts");
        let mark = monitor.mark();
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut used = monitor.since(&mark);
        while Instant::now() < deadline && used.server.is_none_or(|server| server.cpu_s == 0.0) {
            std::thread::sleep(Duration::from_millis(10));
            used = monitor.since(&mark);
        }
        let busy = used.server.expect("there is a server").cpu_s;
        assert!(busy > 0.0, "{used:?}");
        server.kill().expect("it is killed");
        server.wait().expect("it ends");
        let later = monitor.since(&mark).server.expect("there was a server");
        assert!(later.cpu_s >= busy, "{later:?} after {busy}");
        monitor.follow(&[]);
        assert!(monitor.since(&mark).server.is_none());
    }
}
