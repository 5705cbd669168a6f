//! How speed and size depend on the size of pages.

use super::super::parts::{knobs, latencies, pick, step, tuning, view};
use super::{SOURCE_OF_SETTINGS, ask_usual, data, range_s, stored};
use crate::generate::{IotSpec, SourceSpec};
use crate::study::{Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, Study};

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "iot-page-size",
        title: "Size of pages",
        about: "Writing, size, and questions with pages of 1 KiB to 256 KiB of values as they are \
                before they are encoded. Series are as long as the scale allows: at small scales \
                shorter than the larger pages, which then hold several of them.",
        source: SOURCE_OF_SETTINGS,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let sizes = pick(
        scale,
        [
            &[1, 64][..],
            &[1, 4, 16, 64, 256],
            &[1, 2, 4, 8, 16, 32, 64, 128, 256],
            &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        ],
    );
    Plan {
        setups: sizes.iter().map(|kib| setup(scale, *kib)).collect(),
        views: views(),
        rules: rules(),
        marigram_only: true,
    }
}

fn setup(scale: Scale, kib: u32) -> Setup {
    let spec = IotSpec {
        fresh_values: true,
        ..data(
            pick(scale, [16, 8, 8, 100]),
            pick(scale, [50, 1000, 10_000, 27_000]),
        )
    };
    let varied = |phase: &str| knobs([("phase", phase.to_owned()), ("page_kib", kib.to_string())]);
    let mut steps = stored(varied);
    let asked = ask_usual(scale, &spec, range_s(scale));
    steps.push(step(varied("ask"), asked));
    Setup {
        name: format!("{kib}-kib"),
        source: SourceSpec::Iot(spec),
        tuning: tuning(&[("page_size", &format!("{kib}KiB"))], &[]),
        steps,
    }
}

fn views() -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            only: only("write"),
            ..view("Writing", "points_per_s", "M points/s", "page_kib")
        },
        ReportView {
            only: only("size"),
            ..view("Size", "bytes_per_point", "bytes a point", "page_kib")
        },
        ReportView {
            only: only("ask"),
            ..latencies("Questions", "page_kib")
        },
    ]
}

fn rules() -> Vec<Rule> {
    let default = |phase: &str| knobs([("phase", phase.to_owned()), ("page_kib", "64".to_owned())]);
    let source = "Marigram's design, whose default is 64 KiB";
    vec![
        Rule {
            says: "Pages of 64 KiB take at most 5 % more room than pages of the best size"
                .to_owned(),
            source: source.to_owned(),
            figure: "bytes_per_point".to_owned(),
            of: default("size"),
            with: Comparison::Smallest("page_kib".to_owned()),
            bound: FigureBound::AtMost(1.05),
        },
        Rule {
            says:
                "Questions take at most a quarter longer on pages of 64 KiB than on pages of the \
                   best size"
                    .to_owned(),
            source: source.to_owned(),
            figure: "latency_ms".to_owned(),
            of: default("ask"),
            with: Comparison::Smallest("page_kib".to_owned()),
            bound: FigureBound::AtMost(1.25),
        },
    ]
}
