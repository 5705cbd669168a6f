//! How speed and size depend on the encoding, by type of values and by model of values.

use super::super::parts::{knobs, latencies, pick, step, tuning, view};
use super::{SOURCE_OF_SETTINGS, ask_usual, data, stored};
use crate::data::FieldKind;
use crate::generate::{IotSpec, SourceSpec};
use crate::study::{Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, Study};

const BOOLEAN: (&str, FieldKind) = ("BOOLEAN", FieldKind::Bool);
const INT32: (&str, FieldKind) = ("INT32", FieldKind::I32);
const INT64: (&str, FieldKind) = ("INT64", FieldKind::I64);
const FLOAT: (&str, FieldKind) = ("FLOAT", FieldKind::F32);
const DOUBLE: (&str, FieldKind) = ("DOUBLE", FieldKind::F64);
const TEXT: (&str, FieldKind) = ("TEXT", FieldKind::Text);

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "iot-encoding",
        title: "Encodings",
        about: "Writing, size, and questions with every encoding that suits a type, and with the \
                one that Marigram chooses itself (auto), on values that cycle as IoT-Benchmark's do \
                and on values that do not repeat. Pages are not compressed, so that sizes are those \
                of the encodings. RLE and TS_2DIFF hold floats of few decimals only: pages that \
                they cannot hold exactly are stored as they are.",
        source: SOURCE_OF_SETTINGS,
        plan,
    }
}

/// Encodings that suit values of `kind`.
fn encodings(kind: FieldKind) -> &'static [&'static str] {
    match kind {
        FieldKind::Bool => &["plain", "rle", "auto"],
        FieldKind::I32 | FieldKind::I64 => &[
            "plain", "rle", "ts_2diff", "gorilla", "for", "delta", "pco", "auto",
        ],
        FieldKind::F32 | FieldKind::F64 => &[
            "plain",
            "rle",
            "ts_2diff",
            "gorilla",
            "alp",
            "alp_delta",
            "pco",
            "auto",
        ],
        FieldKind::Text => &["plain", "dictionary", "fsst", "auto"],
    }
}

fn plan(scale: Scale) -> Plan {
    let types = pick(
        scale,
        [
            &[DOUBLE][..],
            &[INT64, DOUBLE, TEXT],
            &[BOOLEAN, INT32, INT64, FLOAT, DOUBLE, TEXT],
            &[BOOLEAN, INT32, INT64, FLOAT, DOUBLE, TEXT],
        ],
    );
    let models = pick(
        scale,
        [
            &["fresh"][..],
            &["cycling", "fresh"],
            &["cycling", "fresh"],
            &["cycling", "fresh"],
        ],
    );
    let mut setups = Vec::new();
    for (name, kind) in types {
        for values in models {
            for encoding in encodings(*kind) {
                // A rehearsal compares three.
                if scale != Scale::Tiny || ["plain", "gorilla", "auto"].contains(encoding) {
                    setups.push(setup(scale, (name, *kind), values, encoding));
                }
            }
        }
    }
    Plan {
        setups,
        views: models.iter().flat_map(|values| views(values)).collect(),
        rules: rules(models),
        marigram_only: true,
    }
}

fn setup(scale: Scale, (name, kind): (&str, FieldKind), values: &str, encoding: &str) -> Setup {
    let spec = IotSpec {
        kind,
        fresh_values: values == "fresh",
        ..data(
            pick(scale, [16, 16, 16, 100]),
            pick(scale, [50, 500, 2500, 27_000]),
        )
    };
    let varied = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("type", name.to_owned()),
            ("values", values.to_owned()),
            ("encoding", encoding.to_owned()),
        ])
    };
    let mut steps = stored(varied);
    let asked = ask_usual(scale, &spec, pick(scale, [8, 180, 900, 1800]));
    steps.push(step(varied("ask"), asked));
    Setup {
        name: format!("{}-{values}-{encoding}", name.to_lowercase()),
        source: SourceSpec::Iot(spec),
        tuning: tuning(
            &[("encoding", encoding), ("compression", "uncompressed")],
            &[],
        ),
        steps,
    }
}

fn views(values: &str) -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned()), ("values", values.to_owned())]);
    let by_type = Some("type".to_owned());
    let mut doubles = only("ask");
    doubles.insert("type".to_owned(), DOUBLE.0.to_owned());
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            split: by_type.clone(),
            only: only("write"),
            ..view(
                &format!("Writing, {values} values"),
                "points_per_s",
                "M points/s",
                "encoding",
            )
        },
        ReportView {
            split: by_type,
            only: only("size"),
            ..view(
                &format!("Size, {values} values"),
                "bytes_per_point",
                "bytes a point",
                "encoding",
            )
        },
        ReportView {
            only: doubles,
            ..latencies(
                &format!("Questions about DOUBLE, {values} values"),
                "encoding",
            )
        },
    ]
}

fn rules(models: &[&str]) -> Vec<Rule> {
    let auto = |values: Option<&str>| {
        let mut of = knobs([
            ("phase", "size".to_owned()),
            ("encoding", "auto".to_owned()),
        ]);
        of.extend(values.map(|values| ("values".to_owned(), values.to_owned())));
        of
    };
    let mut rules = vec![Rule {
        says: "What Marigram chooses itself is never more than 3 % larger than the best single \
               encoding"
            .to_owned(),
        source: "the aim of Marigram's storage engine, set for real floats".to_owned(),
        figure: "bytes_per_point".to_owned(),
        of: auto(None),
        with: Comparison::Smallest("encoding".to_owned()),
        bound: FigureBound::AtMost(1.03),
    }];
    if models.contains(&"cycling") {
        rules.push(Rule {
            says: "Values that cycle as IoT-Benchmark's do take less room than any that do not \
                   repeat, so sizes on them flatter"
                .to_owned(),
            source: "IoT-Benchmark, whose generator cycles through 100 values a sensor".to_owned(),
            figure: "bytes_per_point".to_owned(),
            of: auto(Some("cycling")),
            with: Comparison::Result(knobs([("values", "fresh".to_owned())])),
            bound: FigureBound::AtMost(1.0),
        });
    }
    rules
}
