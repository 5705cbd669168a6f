//! The drivers of InfluxDB and VictoriaMetrics on the real servers: what goes in comes out. Runs only
//! where `MARIGRAM_LAB_PEERS` names a folder of installed peers.

#![allow(
    missing_docs,
    clippy::disallowed_methods,
    reason = "a test of real servers reads the machine's disk and environment"
)]

use marigram_lab::data::{Column, Field, FieldKind, Rows, Table, Tag, TagKind, Values};
use marigram_lab::question::{Aggregate, Answer, Ask, Cell, Devices, Question, Select, Selection};
use marigram_lab::target::{Settings, Target};
use marigram_lab_drivers::process::free_port;
use marigram_lab_peers::manage::Peers;
use std::path::PathBuf;
use std::sync::Arc;

const SECOND_NS: i64 = 1_000_000_000;

/// 2021-01-01T00:00:50Z: ten seconds before a minute.
const START_NS: i64 = 1_609_459_250 * SECOND_NS;

/// Rows of each of three devices, one a second.
const ROWS: usize = 100;

fn peers() -> Option<PathBuf> {
    let folder = std::env::var_os("MARIGRAM_LAB_PEERS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: MARIGRAM_LAB_PEERS names no folder of peers");
    }
    folder
}

fn table() -> Table {
    let tag = |name: &str, kind| Tag {
        name: name.to_owned(),
        kind,
    };
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let series = (0..3).map(|device| vec![Some(format!("d{device}")), Some(device.to_string())]);
    Table {
        name: "t".to_owned(),
        tags: vec![tag("dev", TagKind::Text), tag("id", TagKind::Integer)],
        key: 0,
        fields: vec![field("i", FieldKind::I64), field("x", FieldKind::F64)],
        series: Arc::new(series.collect()),
    }
}

fn integer(device: usize, row: usize) -> f64 {
    (device * 1000 + row) as f64
}

/// Null in every second row.
fn double(device: usize, row: usize) -> Option<f64> {
    row.is_multiple_of(2)
        .then_some(device as f64 + row as f64 / 4.0)
}

fn time(row: usize) -> i64 {
    START_NS + row as i64 * SECOND_NS
}

fn rows() -> Rows {
    let at: Vec<(usize, usize)> = (0..ROWS)
        .flat_map(|row| (0..3).map(move |device| (device, row)))
        .collect();
    let doubles: Vec<Option<f64>> = at.iter().map(|at| double(at.0, at.1)).collect();
    Rows {
        table: 0,
        series: at.iter().map(|at| at.0 as u32).collect(),
        times: at.iter().map(|at| time(at.1)).collect(),
        columns: vec![
            Column {
                values: Values::I64(at.iter().map(|at| integer(at.0, at.1) as i64).collect()),
                present: None,
            },
            Column {
                present: Some(doubles.iter().map(Option::is_some).collect()),
                values: Values::F64(doubles.iter().map(|x| x.unwrap_or(0.0)).collect()),
            },
        ],
    }
}

fn device(device: usize) -> Cell {
    Cell::Text(format!("d{device}"))
}

/// Questions with their answers: rows that are null, bounds within windows, chosen devices.
fn cases() -> Vec<(Select, Vec<Vec<Cell>>)> {
    let number = |value: Option<f64>| value.map_or(Cell::Null, Cell::Number);
    let row = |(at, row): (usize, usize)| {
        vec![device(at), Cell::Time(time(row)), number(double(at, row))]
    };
    let below = Select {
        devices: Devices::Below(1, 2),
        from_ns: Some(time(3)),
        to_ns: Some(time(7)),
        ..Select::all(0, Selection::Rows(vec![1]))
    };
    let last = Select::all(0, Selection::Last(vec![1]));
    let windows = Select {
        by: vec![1],
        bucket_ns: Some(60 * SECOND_NS),
        from_ns: Some(time(5)),
        to_ns: Some(time(95)),
        ..Select::all(
            0,
            Selection::Aggregates(vec![(Aggregate::Count, 0), (Aggregate::Spread, 0)]),
        )
    };
    let parts = [
        (START_NS - 50 * SECOND_NS, 5.0),
        (time(10), 60.0),
        (time(70), 25.0),
    ];
    let windows_of = |at: usize| {
        parts.map(|(start, count)| {
            let id = Cell::Text(at.to_string());
            vec![
                id,
                Cell::Time(start),
                Cell::Number(count),
                Cell::Number(count - 1.0),
            ]
        })
    };
    let single = Select {
        by: vec![0],
        bucket_ns: Some(7 * SECOND_NS),
        devices: Devices::In(0, vec!["d1".to_owned()]),
        from_ns: Some(time(50)),
        to_ns: Some(time(51)),
        ..Select::all(
            0,
            Selection::Aggregates(vec![(Aggregate::Avg, 0), (Aggregate::Min, 1)]),
        )
    };
    let single_row = vec![
        device(1),
        Cell::Time(time(50).div_euclid(7 * SECOND_NS) * 7 * SECOND_NS),
        Cell::Number(integer(1, 50)),
        number(double(1, 50)),
    ];
    vec![
        (
            below,
            (0..2)
                .flat_map(|at| (3..7).map(move |row| (at, row)))
                .map(row)
                .collect(),
        ),
        (last, (0..3).map(|at| row((at, ROWS - 1))).collect()),
        (windows, (0..3).flat_map(windows_of).collect()),
        (single, vec![single_row]),
    ]
}

fn ask_all(target: &dyn Target, tables: &Arc<[Table]>) {
    let mut session = target.connect(tables).expect("a session");
    for (select, rows) in cases() {
        let question = Question {
            name: "case".to_owned(),
            ask: Ask::Select(select),
        };
        assert_eq!(target.cannot(tables, &question), None, "{question:?}");
        let reply = session.ask(&question).expect("an answer");
        let answer = session.decode(&question, reply).expect("a decoded answer");
        let compared = answer.sorted().compare(&Answer { rows }.sorted());
        compared.unwrap_or_else(|difference| panic!("{question:?}: {difference}"));
    }
}

fn check(kind: &str) {
    let Some(peers) = peers() else { return };
    let kinds = marigram_lab_peers::kinds();
    let kind = kinds
        .iter()
        .find(|found| found.name == kind)
        .expect("a kind");
    let settings = Settings {
        peers,
        ..Settings::default()
    };
    let dir = tempfile::tempdir().expect("a folder");
    let mut target = (kind.make)(&settings).expect("a target");
    target.start(dir.path()).expect("it starts");
    assert_eq!(target.processes().len(), 1);
    let tables: Arc<[Table]> = vec![table()].into();
    target.create(&tables).expect("tables");
    let mut session = target.connect(&tables).expect("a session");
    // Twice: what is sent again counts once.
    for _ in 0..2 {
        let payload = session.encode(&rows()).expect("a batch");
        session.write(&payload).expect("an acknowledgement");
    }
    target.settle(&tables).expect("it settles");
    ask_all(target.as_ref(), &tables);
    assert!(target.disk_bytes().expect("a size") > 0);
    let restarted = target.restart(&tables).expect("it starts again");
    eprintln!("{}: restart {restarted:?}", target.facts().version);
    ask_all(target.as_ref(), &tables);
    target.stop().expect("it stops");
    assert!(target.processes().is_empty());
}

#[test]
fn influxdb_answers_rightly() {
    check("influxdb");
}

#[test]
fn victoriametrics_answers_rightly() {
    check("victoriametrics");
}

#[test]
fn a_peer_goes_up_is_found_and_goes_down() {
    let Some(folder) = peers() else { return };
    let peers = Peers::new(folder);
    let name = "victoriametrics";
    let state = |peers: &Peers| {
        let found = peers.list().into_iter().find(|peer| peer.name == name);
        found.expect("a peer")
    };
    if state(&peers).running.is_some() {
        eprintln!("skipped: {name} is up already, and somebody may need it");
        return;
    }
    let port = free_port().expect("a port");
    let running = peers.up_at(name, port).expect("it goes up");
    assert_eq!(state(&peers).running.as_ref(), Some(&running));
    assert_eq!(peers.up(name).expect("it is up"), running);
    assert!(peers.down(name).expect("it goes down"));
    assert_eq!(state(&peers).running, None);
    assert!(!peers.down(name).expect("it is down"));
}
