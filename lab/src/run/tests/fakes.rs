//! A small source, and targets that behave in known ways.

use crate::data::{
    Column, Field, FieldKind, Rows, SECOND_NS, Source, Stream, Table, Tag, TagKind, Values,
};
use crate::expect::WrittenRows;
use crate::generate::SourceSpec;
use crate::question::{Aggregate, Answer, Ask, Cell, Question, Select, Selection};
use crate::study::{AskStep, Knobs, Plan, Setup, Step, StepAction, Write};
use crate::target::{
    Body, Kind, Make, Payload, Reply, Session, Settings, Target, TargetFacts, Tuning,
};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Devices and rows of the source.
pub(super) const DEVICES: usize = 4;
pub(super) const ROWS: usize = 50;

/// Four devices, fifty rows each, a second apart.
pub(super) struct Small(Vec<Table>);

impl Small {
    pub(super) fn new() -> Self {
        let name = |device| vec![Some(format!("d{device}"))];
        Self(vec![Table {
            name: "t".to_owned(),
            tags: vec![Tag {
                name: "d".to_owned(),
                kind: TagKind::Text,
            }],
            key: 0,
            fields: vec![Field {
                name: "v".to_owned(),
                kind: FieldKind::I64,
            }],
            series: Arc::new((0..DEVICES).map(name).collect()),
        }])
    }
}

impl Source for Small {
    fn tables(&self) -> &[Table] {
        &self.0
    }

    fn rows(&self) -> u64 {
        (DEVICES * ROWS) as u64
    }

    fn span_ns(&self) -> (i64, i64) {
        (0, ROWS as i64 * SECOND_NS)
    }

    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_> {
        let mine = move |at: &usize| at % DEVICES % clients == client;
        let rows: Vec<usize> = (0..DEVICES * ROWS).filter(mine).collect();
        let batch = |rows: &[usize]| Rows {
            table: 0,
            series: rows.iter().map(|at| (at % DEVICES) as u32).collect(),
            times: rows
                .iter()
                .map(|at| (at / DEVICES) as i64 * SECOND_NS)
                .collect(),
            columns: vec![Column {
                values: Values::I64(rows.iter().map(|at| *at as i64).collect()),
                present: None,
            }],
        };
        let batches: Vec<Rows> = rows.chunks(batch_rows).map(batch).collect();
        Box::new(batches.into_iter())
    }
}

/// Rows of each device, for any question.
fn count(rows: &[Rows]) -> Answer {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for series in rows.iter().flat_map(|rows| &rows.series) {
        *counts.entry(*series).or_default() += 1;
    }
    let row = |(series, count)| {
        vec![
            Cell::Text(format!("d{series}")),
            Cell::Number(f64::from(count)),
        ]
    };
    Answer {
        rows: counts.into_iter().map(row).collect(),
    }
}

/// The right answers, computed from the source.
pub(super) fn expect(
    source: &dyn Source,
    written: &WrittenRows,
    selects: &[&Select],
) -> Vec<Answer> {
    let mut rows = Vec::new();
    for (client, batches) in written.batches.iter().enumerate() {
        let stream = source.stream(client, written.clients, written.batch_rows);
        rows.extend(stream.take(*batches));
    }
    selects.iter().map(|_| count(&rows).sorted()).collect()
}

/// How a target behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Right,
    Slow,
    /// Its first request takes 150 ms.
    Stalls,
    /// Accepts three batches.
    Halfway,
    Panics,
    Wrong,
    NoStart,
    /// Fails if asked.
    Mute,
    /// Cannot store these tables.
    Unfit,
}

struct Fake {
    manner: Manner,
    /// File to which it adds a line when it starts.
    log: Option<String>,
    dir: PathBuf,
    kept: Arc<FakeTables>,
}

#[derive(Default)]
struct FakeTables {
    /// By name of the table.
    rows: Mutex<BTreeMap<String, Vec<Rows>>>,
    writes: AtomicUsize,
}

struct Client {
    manner: Manner,
    kept: Arc<FakeTables>,
    tables: Arc<[Table]>,
}

fn fake(manner: Manner, settings: &Settings) -> Box<dyn Target> {
    Box::new(Fake {
        manner,
        log: settings.url.clone(),
        dir: PathBuf::new(),
        kept: Arc::default(),
    })
}

/// Kinds by name.
pub(super) fn kind(name: &'static str) -> Kind {
    let make: Make = match name {
        "right" => |settings| Ok(fake(Manner::Right, settings)),
        "slow" => |settings| Ok(fake(Manner::Slow, settings)),
        "stalls" => |settings| Ok(fake(Manner::Stalls, settings)),
        "halfway" => |settings| Ok(fake(Manner::Halfway, settings)),
        "panics" => |settings| Ok(fake(Manner::Panics, settings)),
        "wrong" => |settings| Ok(fake(Manner::Wrong, settings)),
        "no-start" => |settings| Ok(fake(Manner::NoStart, settings)),
        "unfit" => |settings| Ok(fake(Manner::Unfit, settings)),
        "mute" => |settings| Ok(fake(Manner::Mute, settings)),
        _ => return crate::null::KIND,
    };
    Kind {
        name,
        about: "a fake",
        peer: false,
        make,
    }
}

impl Target for Fake {
    fn start(&mut self, dir: &Path) -> Result<()> {
        ensure!(self.manner != Manner::NoStart, "it is not installed");
        ensure!(dir.read_dir()?.next().is_none(), "the folder is not empty");
        std::fs::write(dir.join("file"), [0; 400])?;
        dir.clone_into(&mut self.dir);
        if let Some(log) = &self.log {
            let mut log = std::fs::File::options()
                .create(true)
                .append(true)
                .open(log)?;
            writeln!(log, "{:?}", self.manner)?;
        }
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: format!("{:?}", self.manner),
            path: String::new(),
            durability: String::new(),
            notes: String::new(),
        }
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn cannot_keep(&self, _tables: &[Table]) -> Option<String> {
        (self.manner == Manner::Unfit).then(|| "too wide".to_owned())
    }

    fn tell(&self) -> Result<BTreeMap<String, f64>> {
        Ok(match self.manner {
            Manner::Mute => BTreeMap::new(),
            _ => BTreeMap::from([("segments".to_owned(), 3.0)]),
        })
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        ensure!(self.manner != Manner::Unfit, "asked to make what it cannot");
        let mut rows = self.kept.rows.lock().expect("a lock");
        for table in tables {
            let before = rows.insert(table.name.clone(), Vec::new());
            ensure!(before.is_none(), "{} was made twice", table.name);
        }
        Ok(())
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(Client {
            manner: self.manner,
            kept: Arc::clone(&self.kept),
            tables: Arc::clone(tables),
        }))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        crate::monitor::folder_bytes(&self.dir)
    }

    fn restart(&mut self, _tables: &[Table]) -> Result<Option<Duration>> {
        Ok(Some(Duration::from_millis(7)))
    }

    fn cannot(&self, _tables: &[Table], question: &Question) -> Option<String> {
        (question.name == "hard").then(|| "too hard".to_owned())
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Session for Client {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Own(Box::new(rows.clone())),
        })
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let number = self.kept.writes.fetch_add(1, Ordering::Relaxed);
        match self.manner {
            Manner::Slow => std::thread::sleep(Duration::from_millis(10)),
            Manner::Stalls if number == 0 => std::thread::sleep(Duration::from_millis(150)),
            Manner::Halfway if number >= 3 => bail!("the disk is full"),
            Manner::Panics if number >= 3 => panic!("a bug of the driver"),
            _ => {}
        }
        let Body::Own(rows) = &payload.body else {
            bail!("not a payload of this session");
        };
        let rows: &Rows = rows.downcast_ref().expect("rows");
        let mut kept = self.kept.rows.lock().expect("a lock");
        let table = kept.get_mut(&self.tables[rows.table].name);
        table.expect("a table").push(rows.clone());
        Ok(())
    }

    fn ask(&mut self, _question: &Question) -> Result<Reply> {
        ensure!(self.manner != Manner::Mute, "no answer");
        std::thread::sleep(Duration::from_micros(200));
        let kept = self.kept.rows.lock().expect("a lock");
        let mut answer = count(&kept[&self.tables[0].name]);
        if self.manner == Manner::Wrong {
            answer.rows.pop();
        }
        Ok(Reply::Own(Box::new(answer)))
    }

    fn decode(&mut self, _question: &Question, reply: Reply) -> Result<Answer> {
        let Reply::Own(answer) = reply else {
            bail!("not a reply of this session");
        };
        Ok(*answer.downcast().expect("an answer"))
    }
}

/// A question by name; `sql` is one that only targets can answer.
pub(super) fn question(name: &str, instance: i64) -> Question {
    let mut select = Select::all(0, Selection::Aggregates(vec![(Aggregate::Count, 0)]));
    select.from_ns = Some(-instance);
    Question {
        name: name.to_owned(),
        ask: match name {
            "sql" => Ask::Sql("SELECT 1".to_owned()),
            _ => Ask::Select(select),
        },
    }
}

/// Two clients, batches of ten rows, as fast as they can.
pub(super) fn writing() -> Write {
    Write {
        clients: 2,
        batch_rows: 10,
        rows_max: None,
        time_max: None,
        rows_per_s: None,
        suffix: String::new(),
    }
}

/// Two clients that ask these questions three times each.
pub(super) fn asking(names: &[&str]) -> AskStep {
    let instances = |name: &&str| [question(name, 0), question(name, 1)];
    AskStep {
        clients: 2,
        questions: names.iter().flat_map(instances).collect(),
        times: 3,
        time_max: None,
        suffix: String::new(),
    }
}

/// A plan of setups of steps.
pub(super) fn plan(setups: Vec<(&str, Vec<StepAction>)>) -> Plan {
    let step = |act| Step {
        knobs: Knobs::from([("knob".to_owned(), "1".to_owned())]),
        act,
    };
    let setup = |(name, acts): (&str, Vec<StepAction>)| Setup {
        name: name.to_owned(),
        source: SourceSpec::SetS {
            devices: DEVICES,
            rows: ROWS,
        },
        steps: acts.into_iter().map(step).collect(),
        tuning: Tuning::default(),
    };
    Plan {
        setups: setups.into_iter().map(setup).collect(),
        views: Vec::new(),
        ..Plan::default()
    }
}
