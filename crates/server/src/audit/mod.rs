//! The audit log: who came in, who was refused, and who changed definitions (by statements, or by writing rows
//! that need new tables and columns), users and stored rows; a line of JSON each, in files of bounded size and number (`docs/guides/security.md`).
//!
//! Invariants: whoever notes an event never waits for the disk, and the events that wait for it are
//! bounded; those beyond are counted, and the log says how many were lost. No password and no token is
//! in it: texts of statements pass [`statement_text`](crate::statement_text).

mod events;
mod file;
mod services;

pub(crate) use crate::statement_text::AuditedAction;
pub(crate) use events::{AuditEvent, AuditOutcome, ClientAddress};
pub(crate) use services::audited;

use crate::logins::RecentLogins;
use crate::slow_log::PEER;
use crate::statement_text::loggable_names;
use events::{LostEvents, line};
use file::RotatedFile;
use marigram_service::{Identity, ServiceError};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Events that may wait for the disk.
const WAITING_MAX: usize = 10_000;

/// After an error of the disk, the log waits this long before it says so again.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// Settings of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// Its newest file; older ones are beside it, with `.1`, `.2` and so on behind their names.
    pub path: PathBuf,
    /// Size at which a new file begins, bytes.
    pub file_bytes_max: u64,
    /// Files in all, the newest included.
    pub files_max: usize,
}

/// Where events go; nowhere if the log is off. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditLog(Option<Arc<AuditQueue>>);

#[derive(Debug)]
struct AuditQueue {
    /// `None` once the log is closed.
    events: Mutex<Option<SyncSender<String>>>,
    lost: Arc<AtomicU64>,
    logins: RecentLogins,
}

/// The thread that writes; ends when the log is closed.
#[derive(Debug)]
pub(crate) struct AuditWriter {
    log: AuditLog,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Opens the file and starts the thread that writes.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn open(settings: &AuditSettings) -> io::Result<(Self, AuditWriter)> {
        let file = RotatedFile::open(settings)?;
        let (events, waiting) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&lost);
        let thread = std::thread::Builder::new()
            .name("marigram-audit".to_owned())
            .spawn(move || write_all(file, &waiting, &count))?;
        let queue = AuditQueue {
            events: Mutex::new(Some(events)),
            lost,
            logins: RecentLogins::default(),
        };
        let log = Self(Some(Arc::new(queue)));
        let writer = AuditWriter {
            log: log.clone(),
            thread: Some(thread),
        };
        Ok((log, writer))
    }

    /// Notes an event.
    pub(crate) fn note(&self, event: &AuditEvent<'_>) {
        let Some(queue) = &self.0 else { return };
        let line = line(SystemTime::now(), event);
        let events = queue.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events
            .as_ref()
            .is_none_or(|events| events.try_send(line).is_err())
        {
            queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a client proved who it is. Protocols that prove it with each request are told with
    /// `repeats`: of these, an address and a user are noted once in a while.
    pub(crate) fn note_login(&self, client: ClientAddress, identity: &Identity, repeats: bool) {
        let Some(queue) = &self.0 else { return };
        if repeats
            && !queue
                .logins
                .is_first(client.address.ip(), identity, Instant::now())
        {
            return;
        }
        self.note(&AuditEvent::for_client(
            client,
            AuditedAction::Login,
            &identity.user,
        ));
    }

    /// Notes that a client did not prove who it is; `user` is what it said.
    pub(crate) fn note_failed_login(&self, client: ClientAddress, user: &str) {
        self.note(&AuditEvent {
            outcome: AuditOutcome::Refused,
            ..AuditEvent::for_client(client, AuditedAction::Login, user)
        });
    }

    /// Notes what rows that a client wrote created: a database, tables, columns.
    pub(crate) fn note_created(
        &self,
        listener: &'static str,
        user: &str,
        database: &str,
        created: &[String],
    ) {
        if !self.is_on() {
            return;
        }
        let address = PEER.try_with(|peer| *peer).ok();
        for statement in created {
            self.note(&AuditEvent {
                client: address.map(|address| ClientAddress { listener, address }),
                action: AuditedAction::Definition,
                outcome: AuditOutcome::Done,
                user,
                database: Some(database),
                statement: Some(&loggable_names(statement)),
                error: None,
            });
        }
    }

    /// Whether events go anywhere.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

impl AuditWriter {
    /// Writes what waits, and closes the log. Blocks.
    pub(crate) fn close(mut self) {
        if let Some(queue) = &self.log.0 {
            let mut events = queue.events.lock().unwrap_or_else(PoisonError::into_inner);
            *events = None;
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the audit log failed");
        }
    }
}

/// The outcome for which an error of a statement counts.
fn outcome_of(error: &ServiceError) -> AuditOutcome {
    match error {
        ServiceError::Forbidden(_) | ServiceError::Unauthenticated(_) => AuditOutcome::Refused,
        _ => AuditOutcome::Failed,
    }
}

fn write_all(mut file: RotatedFile, waiting: &Receiver<String>, lost: &AtomicU64) {
    let mut told: Option<Instant> = None;
    while let Ok(line) = waiting.recv() {
        let gone = lost.swap(0, Ordering::Relaxed);
        let mut written = Ok(());
        if gone > 0 {
            written = file.append(&LostEvents::line(SystemTime::now(), gone));
        }
        let written = written.and_then(|()| file.append(&line));
        if let Err(error) = written {
            lost.fetch_add(gone + 1, Ordering::Relaxed);
            if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                told = Some(Instant::now());
                tracing::error!(%error, "the audit log cannot be written; events are lost");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::path::Path;

    fn settings(dir: &Path) -> AuditSettings {
        AuditSettings {
            path: dir.join("audit.jsonl"),
            file_bytes_max: 2_000,
            files_max: 3,
        }
    }

    fn client() -> ClientAddress {
        ClientAddress {
            listener: "http",
            address: SocketAddr::from(([10, 0, 0, 1], 5)),
        }
    }

    #[test]
    fn files_are_bounded_in_size_and_number() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = settings(dir.path());
        let (log, writer) = AuditLog::open(&settings).expect("it opens");
        for number in 0..100 {
            let user = format!("user {number}");
            log.note(&AuditEvent::for_client(
                client(),
                AuditedAction::Login,
                &user,
            ));
        }
        writer.close();
        log.note(&AuditEvent::for_client(
            client(),
            AuditedAction::Login,
            "late",
        ));
        let mut names: Vec<_> = std::fs::read_dir(dir.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string())
            .collect::<Result<_, _>>()
            .expect("names");
        names.sort();
        assert_eq!(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
        let mut last = None;
        for name in names.iter().rev() {
            let text = std::fs::read_to_string(dir.path().join(name)).expect("a text");
            assert!(text.len() <= 2_000 && text.ends_with('\n'), "{name}");
            for line in text.lines() {
                let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
                let user = value["user"].as_str().expect("a user").to_owned();
                let number: u32 = user["user ".len()..].parse().expect("a number");
                assert!(last.is_none_or(|last| number == last + 1), "in order");
                last = Some(number);
            }
        }
        assert_eq!(last, Some(99), "the newest are kept");
        // What is there already is continued.
        let (log, writer) = AuditLog::open(&settings).expect("it opens");
        log.note(&AuditEvent::for_client(
            client(),
            AuditedAction::Login,
            "again",
        ));
        writer.close();
        let text = std::fs::read_to_string(&settings.path).expect("a text");
        assert!(text.contains("user 99") && text.contains("again"), "{text}");
    }

    #[test]
    fn nobody_waits_for_a_disk_that_takes_nothing() {
        let lost = Arc::new(AtomicU64::new(0));
        // Nobody receives.
        let (events, _waiting) = sync_channel(2);
        let log = AuditLog(Some(Arc::new(AuditQueue {
            events: Mutex::new(Some(events)),
            lost: Arc::clone(&lost),
            logins: RecentLogins::default(),
        })));
        for _ in 0..10 {
            log.note(&AuditEvent::for_client(
                client(),
                AuditedAction::Login,
                "ann",
            ));
        }
        assert_eq!(lost.load(Ordering::Relaxed), 8);
    }

    #[test]
    fn what_was_lost_is_told_when_the_disk_takes_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = RotatedFile::open(&settings(dir.path())).expect("it opens");
        let (events, waiting) = sync_channel(2);
        events.send("{\"a\":1}\n".to_owned()).expect("room");
        drop(events);
        write_all(file, &waiting, &AtomicU64::new(7));
        let text = std::fs::read_to_string(dir.path().join("audit.jsonl")).expect("a text");
        let first: serde_json::Value =
            serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        assert_eq!(
            (&first["action"], &first["count"]),
            (&"lost".into(), &7.into())
        );
        assert!(text.ends_with("{\"a\":1}\n"));
    }

    #[test]
    fn repeated_logins_are_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = settings(dir.path());
        let (log, writer) = AuditLog::open(&settings).expect("it opens");
        for _ in 0..5 {
            log.note_login(client(), &Identity::of_password("ann", 1), true);
        }
        log.note_login(client(), &Identity::of_password("bob", 1), true);
        log.note_failed_login(client(), "bob");
        writer.close();
        let text = std::fs::read_to_string(&settings.path).expect("a text");
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
