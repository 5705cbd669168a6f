//! Writing clients.
//!
//! Batches are generated and encoded before the clock starts. If all batches together exceed their
//! memory, clients work in *rounds*: all clients encode, the clock runs while they send, and it
//! stops while they encode again.
//!
//! At a given pace, a client sends on a schedule, and a request's latency counts from its scheduled
//! time. So the requests that a stalled server delays count, too (otherwise: coordinated omission).

use super::client::{Halt, Tally, all, sleep_until};
use super::life::{RunningTarget, put, put_cpu};
use crate::data::Stream;
use crate::expect::WrittenRows;
use crate::monitor::Latencies;
use crate::record::{Resources, StepResult};
use crate::study::Write;
use crate::target::{Body, Payload, Session};
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// The longest wait of a schedule.
const DUE_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// Clients that write together.
pub(super) struct Writers<'a> {
    pub(super) clients: Vec<Writer<'a>>,
    pub(super) plan: &'a Write,
    /// Batches that each client wrote in an earlier step.
    before: Vec<usize>,
    round_bytes: usize,
}

/// One client.
pub(super) struct Writer<'a> {
    number: usize,
    session: Box<dyn Session>,
    stream: Stream<'a>,
    /// Encoded batches, last first.
    ready: Vec<(Payload, Duration)>,
    /// Rows encoded so far; they determine when the next batch is due.
    scheduled: u64,
    /// Whether the time of the step ended before its batches did.
    ended: bool,
    /// Batches acknowledged.
    batches: usize,
    /// Bytes acknowledged; `None` if payloads are not bytes.
    bytes: Option<u64>,
    tally: Tally,
}

/// An interval in which the clock runs.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// When it starts.
    pub(super) start: Instant,
    /// How long the clock ran before.
    pub(super) before: Duration,
}

impl Round {
    /// What the clock shows.
    pub(super) fn clock(&self) -> Duration {
        self.before + Instant::now().saturating_duration_since(self.start)
    }

    /// The instant at which the clock shows `time`.
    fn instant(&self, time: Duration) -> Instant {
        let (ahead, behind) = (
            time.saturating_sub(self.before),
            self.before.saturating_sub(time),
        );
        let instant = self.start.checked_add(ahead);
        instant
            .and_then(|instant| instant.checked_sub(behind))
            .unwrap_or(self.start)
    }
}

/// Rows per second, if writing has a pace.
fn pace(plan: &Write) -> Option<f64> {
    plan.rows_per_s
        .filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// The largest number of batches that `client` sends.
fn share(plan: &Write, client: usize) -> usize {
    let rows_max = plan.rows_max.map_or(usize::MAX, |rows| {
        let batches = (rows as usize / plan.batch_rows).max(1);
        batches / plan.clients + usize::from(client < batches % plan.clients)
    });
    let time_max = pace(plan)
        .zip(plan.time_max)
        .map_or(usize::MAX, |(rate, time)| {
            let batches = rate * time.as_secs_f64() / plan.batch_rows as f64;
            ((batches / plan.clients as f64).ceil() as usize).saturating_add(1)
        });
    rows_max.min(time_max)
}

impl<'a> Writers<'a> {
    /// Creates the tables, and connects. If an earlier step wrote the tables with the same clients
    /// and batches, writing continues where that step stopped. Any other combination is refused,
    /// because the contents of the tables would be undefined.
    pub(super) fn open(life: &mut RunningTarget<'a>, plan: &'a Write) -> Result<Self> {
        ensure!(
            plan.clients > 0 && plan.batch_rows > 0,
            "a step that writes needs clients, and batches of rows"
        );
        let before = match life.written.get(&plan.suffix) {
            None => vec![0; plan.clients],
            Some(written) => {
                ensure!(
                    written.clients == plan.clients && written.batch_rows == plan.batch_rows,
                    "an earlier step wrote tables with {:?} by {} clients in batches of {}; \
                     another suffix is needed",
                    plan.suffix,
                    written.clients,
                    written.batch_rows
                );
                written.batches.clone()
            }
        };
        let tables = life.make_tables(&plan.suffix)?;
        let sessions = life.connect(&tables, plan.clients)?;
        let (source, before_of) = (life.source, &before);
        let writer = |(number, session)| {
            let stream = source.stream(number, plan.clients, plan.batch_rows);
            Writer {
                number,
                session,
                stream: Box::new(stream.skip(before_of[number]).take(share(plan, number))),
                ready: Vec::new(),
                scheduled: 0,
                ended: false,
                batches: 0,
                bytes: Some(0),
                tally: life.tally(number, plan.clients),
            }
        };
        Ok(Self {
            clients: sessions.into_iter().enumerate().map(writer).collect(),
            plan,
            before,
            round_bytes: life.round_bytes,
        })
    }

    /// Encodes the batches of the next round. Returns whether there are any.
    pub(super) fn encode(&mut self, halt: &Halt<'_>) -> Result<bool> {
        let (plan, bytes_max) = (self.plan, self.round_bytes / self.plan.clients);
        all(&mut self.clients, halt, |writer| {
            writer.encode(plan, bytes_max, halt)
        })?;
        Ok(self.clients.iter().any(|writer| !writer.ready.is_empty()))
    }

    /// Whether the time of the step is over.
    pub(super) fn is_over(&self, clock: Duration) -> bool {
        self.plan.time_max.is_some_and(|max| clock >= max)
    }

    /// The result of all clients, which took `time` and `resources`; also recorded in `life`.
    pub(super) fn conclude(
        self,
        life: &mut RunningTarget<'_>,
        result: &mut StepResult,
        time: Duration,
        resources: Resources,
    ) -> Result<()> {
        let sum = |count: fn(&Tally) -> u64| -> u64 {
            self.clients.iter().map(|writer| count(&writer.tally)).sum()
        };
        let (rows, points) = (sum(|tally| tally.rows), sum(|tally| tally.points));
        let seconds = time.as_secs_f64();
        put(result, "rows_per_s", rows as f64 / seconds);
        put(result, "points_per_s", points as f64 / seconds);
        let bytes: Option<u64> = self.clients.iter().map(|writer| writer.bytes).sum();
        if let Some(bytes) = bytes {
            put(result, "mib_per_s", bytes as f64 / 1_048_576.0 / seconds);
        }
        put_cpu(result, &resources, rows);
        result.resources = Some(resources);
        life.rows += rows;
        life.points += points;
        let batches = self.before.iter().zip(&self.clients);
        let written = WrittenRows {
            clients: self.plan.clients,
            batch_rows: self.plan.batch_rows,
            batches: batches.map(|(before, now)| before + now.batches).collect(),
        };
        life.written.insert(self.plan.suffix.clone(), written);
        let mut latencies: Vec<Latencies> = Vec::new();
        for writer in self.clients {
            let samples = &writer.tally.samples;
            life.operations.append(result.step, &["write"], samples)?;
            latencies.push(writer.tally.latencies);
        }
        let latency = Latencies::summary(&latencies);
        if latency.count > 0 {
            put(result, "latency_ms", latency.p50);
        }
        result.latency = Some(latency);
        Ok(())
    }
}

impl Writer<'_> {
    fn encode(&mut self, plan: &Write, bytes_max: usize, halt: &Halt<'_>) -> Result<()> {
        self.ready.clear();
        let mut bytes = 0;
        while bytes < bytes_max && !self.ended && !halt.is_set() {
            let Some(rows) = self.stream.next() else {
                break;
            };
            let payload = self.session.encode(&rows).context("encoding a batch")?;
            bytes += match &payload.body {
                Body::Bytes(bytes) => bytes.len(),
                // A value of the driver's own type is about as large as the values and the row's
                // time and series.
                Body::Own(_) => payload.points as usize * 16 + payload.rows * 24,
            };
            self.ready.push((payload, self.due(plan)));
            self.scheduled += rows.len() as u64;
        }
        self.ready.reverse();
        Ok(())
    }

    /// When the next batch is due. Clients take turns: each follows the one before by one batch.
    fn due(&self, plan: &Write) -> Duration {
        let rows = self.scheduled * plan.clients as u64 + (self.number * plan.batch_rows) as u64;
        pace(plan).map_or(Duration::ZERO, |rate| {
            Duration::try_from_secs_f64(rows as f64 / rate).map_or(DUE_MAX, |due| due.min(DUE_MAX))
        })
    }

    /// Sends the encoded batches.
    pub(super) fn send(&mut self, plan: &Write, round: Round, halt: &Halt<'_>) -> Result<()> {
        sleep_until(round.start, halt);
        while let Some((payload, due)) = self.ready.pop() {
            let over = |max: Duration| round.clock().max(due) >= max;
            self.ended = plan.time_max.is_some_and(over);
            if self.ended || halt.is_set() {
                break;
            }
            let start = match pace(plan) {
                None => Instant::now(),
                Some(_) => {
                    let instant = round.instant(due);
                    sleep_until(instant, halt);
                    instant
                }
            };
            let sent = self.session.write(&payload);
            self.tally.request(0, start, payload.rows, sent.is_ok());
            sent.with_context(|| format!("client {}, batch {}", self.number, self.batches))?;
            self.batches += 1;
            self.tally.rows += payload.rows as u64;
            self.tally.points += payload.points;
            self.bytes = match &payload.body {
                Body::Bytes(bytes) => self.bytes.map(|sum| sum + bytes.len() as u64),
                Body::Own(_) => None,
            };
        }
        Ok(())
    }
}
