//! One trial: whether the target keeps the clock with some number of devices.

use super::TrialContext;
use super::devices::{START_NS, rows, table};
use crate::data::Table;
use crate::monitor::Latencies;
use crate::question::{Aggregate, Ask, Devices, Question, Select, Selection};
use crate::record::{Latency, Resources, StepResult, Verdict};
use crate::study::ClockStep;
use crate::target::{Payload, Session, Target};
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the trial with `devices` devices, in a folder of its own.
pub(super) fn run(
    target: &mut dyn Target,
    step: &ClockStep,
    place: &TrialContext<'_>,
    devices: u64,
    number: usize,
) -> Result<StepResult> {
    let dir = place.dir.join(format!("trial-{number}"));
    std::fs::create_dir_all(&dir)?;
    target.start(&dir)?;
    place.monitor.follow(&target.processes());
    let tried = keep_the_clock(target, step, place, devices);
    place.monitor.follow(&[]);
    target.stop()?;
    std::fs::remove_dir_all(&dir)?;
    tried
}

fn keep_the_clock(
    target: &mut dyn Target,
    step: &ClockStep,
    place: &TrialContext<'_>,
    devices: u64,
) -> Result<StepResult> {
    let tables: Arc<[Table]> = Arc::new([table(devices, step.fields)]);
    target.create(&tables)?;
    let mut clients = (0..step.clients.max(1) as u64)
        .map(|number| Client::new(&*target, &tables, step, place.seed, devices, number))
        .collect::<Result<Vec<_>>>()?;
    let mark = place.monitor.mark();
    let behind = if step.virtual_time {
        without_waiting(&mut clients, step)?
    } else {
        by_the_clock(&mut clients, step)?
    };
    let used = place.monitor.since(&mark);
    drop_sessions(&mut clients);
    target.settle(&tables)?;
    let disk_bytes = target.disk_bytes()?;
    let points = devices * step.fields as u64 * u64::from(step.periods);
    Ok(judge(
        step,
        devices,
        &clients,
        behind,
        &used,
        disk_bytes as f64 / points as f64,
    ))
}

/// Connections are closed before the target is asked to settle.
fn drop_sessions(clients: &mut [Client]) {
    for client in clients {
        client.session = None;
    }
}

/// What a trial measured, and whether the clock was kept.
fn judge(
    step: &ClockStep,
    devices: u64,
    clients: &[Client],
    behind: ClockLag,
    used: &Resources,
    bytes_per_point: f64,
) -> StepResult {
    let summary = |latencies: fn(&Client) -> &Latencies| {
        let all: Vec<Latencies> = clients
            .iter()
            .map(|client| latencies(client).clone())
            .collect();
        Latencies::summary(&all)
    };
    let (writes, asks): (Latency, Latency) = (summary(|c| &c.writes), summary(|c| &c.asks));
    let series = devices * step.fields as u64;
    // The memory of a target in the laboratory's process cannot be distinguished from the
    // laboratory's.
    let server = used.server.unwrap_or(used.client);
    let verdict = if behind.worst >= step.period {
        Verdict::Failed(format!(
            "{:.1} s behind the clock",
            behind.worst.as_secs_f64()
        ))
    } else if step
        .memory_bytes
        .is_some_and(|limit| server.rss_bytes > limit)
    {
        Verdict::Failed(format!("{} MiB of memory", server.rss_bytes >> 20))
    } else {
        Verdict::Right
    };
    let figures = [
        ("series", series as f64),
        ("devices", devices as f64),
        ("mean_ms", writes.mean),
        ("p999_ms", writes.p999),
        ("ask_mean_ms", asks.mean),
        ("ask_p999_ms", asks.p999),
        ("bytes_per_point", bytes_per_point),
        (
            "cpu_share",
            server.cpu_s / behind.took.as_secs_f64().max(1e-9),
        ),
        ("rss_bytes", server.rss_bytes as f64),
        ("behind_s", behind.worst.as_secs_f64()),
    ];
    StepResult {
        knobs: BTreeMap::from([("series".to_owned(), series.to_string())]),
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        latency: Some(writes),
        resources: Some(*used),
        verdict,
        ..StepResult::default()
    }
}

/// How far behind the clock a trial fell.
#[derive(Clone, Copy, Debug, Default)]
struct ClockLag {
    /// The worst of all periods: from the end of the period to its last acknowledgement; in virtual
    /// time, the duration of the work of a period.
    worst: Duration,
    /// Of the whole trial.
    took: Duration,
}

/// One client: a range of the devices, and a connection.
struct Client {
    session: Option<Box<dyn Session>>,
    table: Table,
    questions: Vec<Question>,
    devices: std::ops::Range<u64>,
    seed: u64,
    /// Questions that are due, as a fraction.
    due: f64,
    asked: usize,
    writes: Latencies,
    asks: Latencies,
}

impl Client {
    fn new(
        target: &dyn Target,
        tables: &Arc<[Table]>,
        step: &ClockStep,
        seed: u64,
        devices: u64,
        number: u64,
    ) -> Result<Self> {
        let clients = step.clients.max(1) as u64;
        let share = |number: u64| devices * number / clients;
        let own = share(number)..share(number + 1);
        let mut questions = questions(step, own.start);
        questions.retain(|question| target.cannot(tables, question).is_none());
        Ok(Self {
            session: Some(target.connect(tables)?),
            table: tables[0].clone(),
            questions,
            devices: own,
            seed,
            due: 0.0,
            asked: 0,
            writes: Latencies::default(),
            asks: Latencies::default(),
        })
    }

    fn session(&mut self) -> Result<&mut dyn Session> {
        match &mut self.session {
            Some(session) => Ok(session.as_mut()),
            None => Err(anyhow!("the connection is closed")),
        }
    }

    /// The batches of a tick, ready to be sent.
    fn encode(&mut self, step: &ClockStep, tick: u64) -> Result<Vec<Payload>> {
        let period_ns = step.period.as_nanos() as i64;
        let size = step.batch_rows.max(1) as u64;
        let mut payloads = Vec::new();
        let mut from = self.devices.start;
        while from < self.devices.end {
            let to = (from + size).min(self.devices.end);
            let rows = rows(&self.table, from..to, tick, period_ns, self.seed);
            payloads.push(self.session()?.encode(&rows)?);
            from = to;
        }
        Ok(payloads)
    }

    /// Sends a batch, and asks the questions that are due. Latencies count from `due`.
    fn request(&mut self, step: &ClockStep, payload: &Payload, due: Instant) -> Result<()> {
        self.session()?.write(payload)?;
        self.writes.record(due.elapsed());
        if self.questions.is_empty() {
            return Ok(());
        }
        self.due += step.ask_share / (1.0 - step.ask_share).max(1e-6);
        while self.due >= 1.0 {
            self.due -= 1.0;
            let question = self.questions[self.asked % self.questions.len()].clone();
            self.asked += 1;
            let begin = Instant::now();
            let reply = self.session()?.ask(&question)?;
            self.asks.record(begin.elapsed());
            drop(reply);
        }
        Ok(())
    }
}

/// The five kinds of questions, about devices from number `device` on.
fn questions(step: &ClockStep, device: u64) -> Vec<Question> {
    let end = START_NS + step.period.as_nanos() as i64 * i64::from(step.periods);
    let all: Vec<usize> = (0..step.fields).collect();
    let one = Devices::In(0, vec![format!("d_{device}")]);
    let few = Devices::In(0, (device..device + 5).map(|d| format!("d_{d}")).collect());
    let question =
        |name: &str, what: Selection, devices: &Devices, bucket_ns: Option<i64>| Question {
            name: name.to_owned(),
            ask: Ask::Select(Select {
                devices: devices.clone(),
                from_ns: Some(START_NS),
                to_ns: Some(end),
                bucket_ns,
                ..Select::all(0, what)
            }),
        };
    let average = |fields: &[usize]| {
        Selection::Aggregates(
            fields
                .iter()
                .map(|field| (Aggregate::Avg, *field))
                .collect(),
        )
    };
    vec![
        question("last", Selection::Last(all.clone()), &one, None),
        question("rows", Selection::Rows(all.clone()), &one, None),
        question("average", average(&all), &one, None),
        question(
            "average by minute",
            average(&[0]),
            &one,
            Some(60_000_000_000),
        ),
        question("average of devices", average(&[0]), &few, None),
    ]
}

/// Runs `work` of every client in a thread of its own, and returns the largest result.
fn together(
    clients: &mut [Client],
    work: impl Fn(&mut Client) -> Result<ClockLag> + Sync,
) -> Result<ClockLag> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(move || work(client)))
            .collect();
        let mut all = ClockLag::default();
        for thread in threads {
            let one = thread.join().map_err(|_| anyhow!("a client panicked"))??;
            all.worst = all.worst.max(one.worst);
            all.took = all.took.max(one.took);
        }
        Ok(all)
    })
}

/// Runs the periods on schedule. The batches of a period are encoded before it begins.
fn by_the_clock(clients: &mut [Client], step: &ClockStep) -> Result<ClockLag> {
    let encoded = std::sync::Barrier::new(clients.len());
    together(clients, |client| {
        let first = client.encode(step, 0);
        // Reached even after a failure, because the other clients wait here.
        encoded.wait();
        let begin = Instant::now();
        let (mut payloads, mut worst) = (first?, Duration::ZERO);
        for tick in 0..step.periods {
            let tick_begin = begin + step.period * tick;
            for (number, payload) in payloads.iter().enumerate() {
                let due = tick_begin + step.period.mul_f64(number as f64 / payloads.len() as f64);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                client
                    .request(step, payload, due)
                    .with_context(|| format!("period {tick}"))?;
            }
            let end = tick_begin + step.period;
            worst = worst.max(Instant::now().saturating_duration_since(end));
            // The target cannot catch up with so much, so the search need not wait.
            if worst >= step.period {
                break;
            }
            payloads = client.encode(step, u64::from(tick) + 1)?;
        }
        let took = begin.elapsed();
        Ok(ClockLag { worst, took })
    })
}

/// Runs the periods without waiting.
fn without_waiting(clients: &mut [Client], step: &ClockStep) -> Result<ClockLag> {
    let mut all = ClockLag::default();
    for tick in 0..step.periods {
        let payloads = clients
            .iter_mut()
            .map(|client| client.encode(step, u64::from(tick)))
            .collect::<Result<Vec<_>>>()?;
        let mut work: Vec<_> = clients.iter_mut().zip(payloads).collect();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> = work
                .iter_mut()
                .map(|(client, payloads)| {
                    scope.spawn(move || {
                        payloads
                            .iter()
                            .try_for_each(|payload| client.request(step, payload, Instant::now()))
                    })
                })
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?)
        })
        .with_context(|| format!("period {tick}"))?;
        let took = begin.elapsed();
        all.worst = all.worst.max(took);
        all.took += took;
        if all.worst >= step.period {
            break;
        }
    }
    Ok(all)
}
