//! The cost of identities of series: paths of different lengths, stored in full or as digests.

use super::parts::{
    IOT_START_NS, ask, knobs, latencies, pick, question, speed, step, tuning, view, write,
};
use crate::data::{FieldKind, SECOND_NS};
use crate::generate::{IotSpec, Late, Path, SourceSpec};
use crate::question::{Aggregate, Devices, Question, Select, Selection};
use crate::study::{
    Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, StepAction, Study,
};
use std::collections::BTreeMap;

/// Bytes of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;
/// The figure of the theoretical size of an index.
const THEORY: &str = "index_theory_bytes";
/// Rows per request, which are of one device.
const BATCH_ROWS: usize = 10;

const PATHS: [(&str, Path); 3] = [
    ("short", Path::Short),
    ("deep", Path::Deep),
    ("270 bytes", Path::Long),
];

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "identity",
        title: "Identities of series",
        about: "Writing by 20 and by 200 clients to devices that are named by their path in a tree: \
                short, deep, or 270 bytes long; the index of series knows them by the path itself \
                (plain) or by its digest (sha256). The memory of the index stands beside its \
                theoretical size: the bytes of the paths, or 32 bytes a digest.",
        source: "The study of IoTDB's identities of devices, which varies depth and length of \
                 paths, plain and SHA-256, and clients; its figures were not to be had as text.",
        plan,
    }
}

/// What is varied.
#[derive(Clone, Copy)]
struct IdentityCase {
    path: (&'static str, Path),
    identity: &'static str,
    clients: usize,
}

fn plan(scale: Scale) -> Plan {
    let paths = pick(scale, [&PATHS[2..], &PATHS[..], &PATHS[..], &PATHS[..]]);
    let clients = pick(scale, [&[20][..], &[20, 200], &[20, 200], &[20, 200]]);
    let mut setups = Vec::new();
    for path in paths {
        for identity in ["plain", "sha256"] {
            for clients in clients {
                let case = IdentityCase {
                    path: *path,
                    identity,
                    clients: *clients,
                };
                setups.push(setup(scale, case));
            }
        }
    }
    Plan {
        setups,
        views: views(clients),
        rules: rules(),
        marigram_only: true,
    }
}

fn setup(scale: Scale, case: IdentityCase) -> Setup {
    let devices = pick(scale, [200, 2000, 20_000, 100_000]);
    let rows = pick(scale, [10, 20, 20, 100]);
    let spec = IotSpec {
        devices,
        sensors: 1,
        rows,
        step_ms: 1000,
        kind: FieldKind::F64,
        late: Late::Never,
        fresh_values: true,
    };
    let (path_name, path) = case.path;
    let varied = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("path", path_name.to_owned()),
            ("identity", case.identity.to_owned()),
            ("clients", case.clients.to_string()),
        ])
    };
    let theory = match case.identity {
        "sha256" => DIGEST_BYTES,
        _ => path.bytes(),
    } * devices;
    let known = BTreeMap::from([(THEORY.to_owned(), theory as f64)]);
    Setup {
        name: format!(
            "{}-{}-{}",
            path_name.replace(' ', "-"),
            case.identity,
            case.clients
        ),
        source: SourceSpec::Paths { spec, path },
        tuning: tuning(&[("series_identity", case.identity)], &[]),
        steps: vec![
            step(
                varied("write"),
                StepAction::Write(write(case.clients, BATCH_ROWS)),
            ),
            step(varied("settle"), StepAction::Settle),
            step(varied("index"), StepAction::Observe { known }),
            step(varied("size"), StepAction::Size),
            step(
                varied("ask"),
                StepAction::Ask(ask(scale, questions(path, devices, rows))),
            ),
        ],
    }
}

fn questions(path: Path, devices: usize, rows: usize) -> Vec<Question> {
    let of = |instance: usize| {
        let device = instance * devices / 8;
        Devices::In(0, vec![path.name(device)])
    };
    let instance = |instance: usize| {
        let rows = Select {
            devices: of(instance),
            from_ns: Some(IOT_START_NS),
            to_ns: Some(IOT_START_NS + rows as i64 * SECOND_NS),
            ..Select::all(0, Selection::Rows(vec![0]))
        };
        let average = Select {
            devices: of(instance),
            ..Select::all(
                0,
                Selection::Aggregates(vec![(Aggregate::Count, 0), (Aggregate::Avg, 0)]),
            )
        };
        [
            question("one device", rows),
            question("mean of one device", average),
        ]
    };
    (0..8).flat_map(instance).collect()
}

fn views(clients: &[usize]) -> Vec<ReportView> {
    let first = clients.first().copied().unwrap_or_default();
    let only = |phase: &str, clients: usize| {
        knobs([
            ("phase", phase.to_owned()),
            ("clients", clients.to_string()),
        ])
    };
    let mut views = Vec::new();
    for clients in clients {
        let by_path = |shown: ReportView| ReportView {
            split: Some("path".to_owned()),
            only: only("write", *clients),
            ..shown
        };
        let (rate, time) = (
            format!("Writing by {clients} clients"),
            format!("Latency of a write by {clients} clients"),
        );
        views.push(by_path(speed(&rate, "identity")));
        views.push(by_path(view(&time, "latency_ms", "ms", "identity")));
    }
    let memory = ReportView {
        split: Some("path".to_owned()),
        only: only("index", first),
        second: Some((THEORY.to_owned(), "bytes in theory".to_owned())),
        ..view("Memory of the index", "index_bytes", "bytes", "identity")
    };
    let mut longest = only("ask", first);
    longest.insert("path".to_owned(), "270 bytes".to_owned());
    let asked = ReportView {
        only: longest,
        ..latencies("Questions, paths of 270 bytes", "identity")
    };
    views.extend([memory, asked]);
    views
}

fn rules() -> Vec<Rule> {
    let digests = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("identity", "sha256".to_owned()),
        ])
    };
    let mut long = digests("index");
    long.insert("path".to_owned(), "270 bytes".to_owned());
    let plain = || Comparison::Result(knobs([("identity", "plain".to_owned())]));
    vec![
        Rule {
            says:
                "With paths of 270 bytes the index takes less memory when it knows them by their \
                   digests"
                    .to_owned(),
            source: "the theoretical sizes: 270 bytes a path, 32 a digest".to_owned(),
            figure: "index_bytes".to_owned(),
            of: long,
            with: plain(),
            bound: FigureBound::AtMost(1.0),
        },
        Rule {
            says: "Digests cost at most a tenth of the rate of writing".to_owned(),
            source: "Marigram's design, which leaves the cost of the two to this experiment"
                .to_owned(),
            figure: "rows_per_s".to_owned(),
            of: digests("write"),
            with: plain(),
            bound: FigureBound::AtLeast(0.9),
        },
    ]
}
