//! Size on disk, for long series and for short ones.

use super::super::parts::{knobs, pick, size, speed, step, view, write};
use super::SOURCE;
use crate::generate::SourceSpec;
use crate::study::{Plan, PublishedFigures, ReportView, Scale, Setup, StepAction, Study};
use crate::target::Tuning;

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "fleet-compression",
        title: "Size on disk",
        about: "Bytes a row once everything is flushed and merged, beside the text files that the \
                publication loaded; with few rows a device and with many.",
        source: SOURCE,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let fleets = pick(
        scale,
        [
            &[(100, 20), (200, 10)][..],
            &[(50, 1000), (500, 100), (5000, 10)],
            &[(100, 5000), (1000, 500), (10_000, 50)],
            &[(10_000, 10_000), (100_000, 1000)],
        ],
    );
    let setup = |&(devices, rows): &(usize, usize)| {
        let varied = |phase: &str| {
            knobs([
                ("phase", phase.to_owned()),
                ("rows_per_device", rows.to_string()),
                ("set", size(devices, rows)),
            ])
        };
        Setup {
            name: format!("{devices}x{rows}"),
            source: SourceSpec::Fleet { devices, rows },
            steps: vec![
                step(varied("load"), StepAction::Write(write(2, 1000))),
                step(varied("settle"), StepAction::Settle),
                step(varied("size"), StepAction::Size),
            ],
            tuning: Tuning::default(),
        }
    };
    let text = PublishedFigures {
        system: "text file".to_owned(),
        source: "worked out from the format of TDengine's DataGenerator, to about a byte"
            .to_owned(),
        split: None,
        points: fleets
            .iter()
            .map(|&(devices, rows)| (rows.to_string(), text_bytes(devices)))
            .collect(),
    };
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    Plan {
        setups: fleets.iter().map(setup).collect(),
        views: vec![
            ReportView {
                only: only("size"),
                log: true,
                published: vec![text],
                ..view("Size", "bytes_per_row", "bytes a row", "rows_per_device")
            },
            ReportView {
                only: only("load"),
                ..speed("Writing", "set")
            },
        ],
        ..Plan::default()
    }
}

/// Mean length of a line `devid dev_<id> group ms humidity temperature`, bytes. Identifiers are
/// counted exactly, a time has 13 digits, and the two values have 2 digits on average.
fn text_bytes(devices: usize) -> f64 {
    let digits = |number: usize| number.to_string().len();
    let identifiers = (1..=devices).map(|id| 2 * digits(id) + digits(id % 100));
    let identifiers = identifiers.sum::<usize>() as f64 / devices as f64;
    let (prefix, time, values, separators) = (4.0, 13.0, 4.0, 6.0);
    identifiers + prefix + time + values + separators
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_are_as_long_as_the_publications() {
        // Devices 1 to 9: `7 dev_7 7 1563249700000 51 12` and an end of line.
        assert_eq!(text_bytes(9), 30.0);
    }
}
