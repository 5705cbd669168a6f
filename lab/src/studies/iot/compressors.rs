//! How speed and size depend on the compressor.

use super::super::parts::{knobs, latencies, pick, step, tuning, view};
use super::{SOURCE_OF_SETTINGS, ask_usual, data, stored};
use crate::generate::{IotSpec, SourceSpec};
use crate::study::{Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, Study};

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "iot-compressor",
        title: "Compressors",
        about: "Writing, size, and questions with every compressor, and with the one that Marigram \
                chooses itself (auto). Values are DOUBLE and not encoded (PLAIN), so that \
                compressors have everything to do; from medium scale on also encoded as Marigram \
                chooses.",
        source: SOURCE_OF_SETTINGS,
        plan,
    }
}

/// What is varied.
#[derive(Clone, Copy)]
struct CompressorCase {
    values: &'static str,
    encoding: &'static str,
    compressor: &'static str,
}

fn plan(scale: Scale) -> Plan {
    let compressors: &[&str] = match scale {
        Scale::Tiny => &["uncompressed", "lz4", "auto"],
        _ => &["uncompressed", "snappy", "lz4", "gzip", "zstd", "auto"],
    };
    let encodings: &[&str] = match scale {
        Scale::Tiny | Scale::Small => &["plain"],
        _ => &["plain", "auto"],
    };
    let models: &[&str] = match scale {
        Scale::Tiny => &["cycling"],
        _ => &["cycling", "fresh"],
    };
    let mut setups = Vec::new();
    for values in models {
        for encoding in encodings {
            for compressor in compressors {
                let case = CompressorCase {
                    values,
                    encoding,
                    compressor,
                };
                setups.push(setup(scale, case));
            }
        }
    }
    let views_of = |encoding: &&'static str| views(encoding);
    Plan {
        setups,
        views: encodings.iter().flat_map(views_of).collect(),
        rules: rules(),
        marigram_only: true,
    }
}

fn setup(scale: Scale, case: CompressorCase) -> Setup {
    let spec = IotSpec {
        fresh_values: case.values == "fresh",
        ..data(
            pick(scale, [16, 16, 16, 100]),
            pick(scale, [50, 500, 2500, 27_000]),
        )
    };
    let varied = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("values", case.values.to_owned()),
            ("encoding", case.encoding.to_owned()),
            ("compressor", case.compressor.to_owned()),
        ])
    };
    let mut steps = stored(varied);
    let asked = ask_usual(scale, &spec, pick(scale, [8, 180, 900, 1800]));
    steps.push(step(varied("ask"), asked));
    Setup {
        name: format!("{}-{}-{}", case.values, case.encoding, case.compressor),
        source: SourceSpec::Iot(spec),
        tuning: tuning(
            &[
                ("encoding", case.encoding),
                ("compression", case.compressor),
            ],
            &[],
        ),
        steps,
    }
}

fn views(encoding: &str) -> Vec<ReportView> {
    let only = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("encoding", encoding.to_owned()),
        ])
    };
    let mut asked = only("ask");
    asked.insert("values".to_owned(), "cycling".to_owned());
    let by_values = Some("values".to_owned());
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            split: by_values.clone(),
            only: only("write"),
            ..view(
                &format!("Writing, encoding {encoding}"),
                "points_per_s",
                "M points/s",
                "compressor",
            )
        },
        ReportView {
            split: by_values,
            only: only("size"),
            ..view(
                &format!("Size, encoding {encoding}"),
                "bytes_per_point",
                "bytes a point",
                "compressor",
            )
        },
        ReportView {
            only: asked,
            ..latencies(&format!("Questions, encoding {encoding}"), "compressor")
        },
    ]
}

fn rules() -> Vec<Rule> {
    let auto = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("compressor", "auto".to_owned()),
        ])
    };
    let uncompressed = knobs([("compressor", "uncompressed".to_owned())]);
    vec![
        Rule {
            says:
                "The compressor that Marigram chooses itself costs at most a tenth of the rate of \
                   writing"
                    .to_owned(),
            source: "Marigram's design: fast codecs by default".to_owned(),
            figure: "points_per_s".to_owned(),
            of: auto("write"),
            with: Comparison::Result(uncompressed.clone()),
            bound: FigureBound::AtLeast(0.9),
        },
        Rule {
            says:
                "What Marigram chooses itself takes no more room than pages that are not compressed"
                    .to_owned(),
            source: "Marigram's design: auto decides by measured size".to_owned(),
            figure: "bytes_per_point".to_owned(),
            of: auto("size"),
            with: Comparison::Result(uncompressed),
            bound: FigureBound::AtMost(1.0),
        },
    ]
}
