//! QuestDB, DuckDB and chdb, where they are installed: set `MARIGRAM_LAB_PEERS` to the folder of the
//! peers. Without it the tests pass and say so.

use marigram_lab::conformance;
use marigram_lab::data::{Column, Field, FieldKind, Rows, SECOND_NS, Table, Tag, TagKind, Values};
use marigram_lab::question::{Aggregate, Ask, Cell, Question, Select, Selection};
use marigram_lab::target::{Kind, Session, Settings, Target};
use marigram_lab_peers::{chdb, duckdb, questdb};
use std::sync::Arc;

/// Sessions that write at once.
const WRITERS: u32 = 4;

/// Batches of each.
const BATCHES: u32 = 25;

/// Rows of a batch.
const BATCH_ROWS: u32 = 200;

/// A target of `kind`, bounded in cores and memory; `None` without the peers.
fn target(kind: &Kind) -> Option<Box<dyn Target>> {
    let Some(peers) = std::env::var_os("MARIGRAM_LAB_PEERS") else {
        eprintln!("{}: passed over, MARIGRAM_LAB_PEERS is not set", kind.name);
        return None;
    };
    let settings = Settings {
        peers: peers.into(),
        cores: Some(2),
        memory_bytes: Some(2 << 30),
        ..Settings::default()
    };
    Some((kind.make)(&settings).expect("a target"))
}

fn conforms(kind: &Kind) {
    if let Some(mut target) = target(kind) {
        let folder = tempfile::tempdir().expect("a folder");
        conformance::check(target.as_mut(), folder.path()).expect("it conforms");
    }
}

fn table() -> Table {
    Table {
        name: "many".to_owned(),
        tags: vec![Tag {
            name: "device".to_owned(),
            kind: TagKind::Text,
        }],
        key: 0,
        fields: vec![
            Field {
                name: "single".to_owned(),
                kind: FieldKind::F32,
            },
            Field {
                name: "flag".to_owned(),
                kind: FieldKind::Bool,
            },
        ],
        series: Arc::new(
            (0..WRITERS)
                .map(|device| vec![Some(format!("d{device}"))])
                .collect(),
        ),
    }
}

fn batch(device: u32, batch: u32) -> Rows {
    let rows = batch * BATCH_ROWS..(batch + 1) * BATCH_ROWS;
    let column = |values| Column {
        values,
        present: None,
    };
    Rows {
        table: 0,
        series: vec![device; BATCH_ROWS as usize],
        times: rows.clone().map(|row| i64::from(row) * SECOND_NS).collect(),
        columns: vec![
            column(Values::F32(
                rows.clone().map(|row| row as f32 * 1.5).collect(),
            )),
            column(Values::Bool(rows.map(|row| row % 2 == 0).collect())),
        ],
    }
}

fn ask(session: &mut dyn Session, aggregates: Vec<(Aggregate, usize)>) -> Vec<Vec<Cell>> {
    let question = Question {
        name: "all".to_owned(),
        ask: Ask::Select(Select::all(0, Selection::Aggregates(aggregates))),
    };
    let reply = session.ask(&question).expect("an answer");
    session
        .decode(&question, reply)
        .expect("a right answer")
        .rows
}

/// Sessions write while another asks; afterwards all rows are there.
fn takes_many_sessions(kind: &Kind) {
    let Some(mut target) = target(kind) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    target.start(folder.path()).expect("started");
    let tables: Arc<[Table]> = vec![table()].into();
    target.create(&tables).expect("created");
    let connect = || target.connect(&tables).expect("a session");
    std::thread::scope(|scope| {
        for device in 0..WRITERS {
            let mut session = connect();
            scope.spawn(move || {
                for number in 0..BATCHES {
                    let payload = session.encode(&batch(device, number)).expect("encoded");
                    session.write(&payload).expect("written");
                }
            });
        }
        let mut asker = connect();
        scope.spawn(move || {
            for _ in 0..BATCHES {
                ask(asker.as_mut(), vec![(Aggregate::Count, 0)]);
            }
        });
    });
    target.settle(&tables).expect("settled");
    let of = [
        Aggregate::Count,
        Aggregate::Sum,
        Aggregate::Avg,
        Aggregate::Max,
    ];
    let aggregates = [0, 1]
        .into_iter()
        .flat_map(|field| of.map(|function| (function, field)));
    let answer = ask(connect().as_mut(), aggregates.collect());
    let each = f64::from(BATCHES * BATCH_ROWS);
    let all = each * f64::from(WRITERS);
    let mean = (each - 1.0) / 2.0 * 1.5;
    let numbers = [
        all,
        mean * all,
        mean,
        (each - 1.0) * 1.5,
        all,
        all / 2.0,
        0.5,
        1.0,
    ];
    assert_eq!(answer, [numbers.map(Cell::Number)]);
    let bytes = target.disk_bytes().expect("a size");
    assert!(bytes > 0, "{bytes} bytes");
}

#[test]
fn questdb_conforms() {
    conforms(&questdb::KIND);
    takes_many_sessions(&questdb::KIND);
}

#[test]
fn duckdb_conforms() {
    conforms(&duckdb::KIND);
    takes_many_sessions(&duckdb::KIND);
}

#[test]
fn chdb_conforms() {
    conforms(&chdb::KIND);
    takes_many_sessions(&chdb::KIND);
}
