//! The studies of TSBS's trucks: loading them, and the 13 questions of TSBS.
//!
//! Both repeat TDengine's comparison with InfluxDB and TimescaleDB, which has five fleets from 100
//! trucks for a month to ten million trucks for three minutes, each truck sending a reading and a
//! diagnosis every ten seconds.

mod questions;

use crate::generate::SourceSpec;
use crate::study::{
    AskStep, Knobs, Plan, PublishedFigures, ReportView, Scale, Setup, Step, StepAction, Study,
    Write,
};
use crate::target::Tuning;
use questions::{QUESTIONS, Window};
use std::time::Duration;

/// Length of a step of time, seconds.
const STEP_S: u32 = 10;

/// A fleet of the published comparison.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    trucks: usize,
    steps: usize,
    /// Fewest steps of a smaller copy.
    steps_min: usize,
}

const fn scenario(name: &'static str, trucks: usize, steps: usize, steps_min: usize) -> Scenario {
    Scenario {
        name,
        trucks,
        steps,
        steps_min,
    }
}

/// Steps of a day.
const DAY: usize = 86_400 / STEP_S as usize;

const LOADED: [Scenario; 5] = [
    scenario("S1", 100, 31 * DAY, 1),
    scenario("S2", 4_000, 4 * DAY, 1),
    scenario("S3", 100_000, DAY / 8, 9),
    scenario("S4", 1_000_000, 18, 6),
    scenario("S5", 10_000_000, 18, 3),
];

/// Fewest trucks of a smaller copy.
const TRUCKS_MIN: usize = 4;

/// The first scenario is cut to four days for the questions.
const ASKED: [Scenario; 2] = [
    scenario("S1", 100, 4 * DAY, 1),
    scenario("S2", 4_000, 4 * DAY, 1),
];

/// `trucks-load`: writing, and space on disk.
#[must_use]
pub(super) fn load() -> Study {
    Study {
        name: "trucks-load",
        title: "TSBS's trucks: loading",
        about: "How fast five fleets are loaded, from few trucks with many rows to many trucks \
                with few, with rows that are missing, late or incomplete, and the space they take.",
        source: "TDengine's TSBS IoT report (TDengine 3.0, InfluxDB 1.8.10 and TimescaleDB 2.10.1 \
                 on AWS). It gives ratios in its text: TDengine wrote 1.04 (S4) to 3.3 times \
                 (S1) as fast as TimescaleDB and 1.82 (S3) to 16.2 times (S5) as fast as InfluxDB.",
        plan: plan_load,
    }
}

/// `trucks-query`: the 13 questions.
#[must_use]
pub(super) fn query() -> Study {
    Study {
        name: "trucks-query",
        title: "TSBS's trucks: 13 questions",
        about: "Latency of the 13 questions of TSBS's IoT use case on the first two fleets, from \
                where a truck is now to how often models break down.",
        source: "TSBS (timescale/tsbs, use case iot); TDengine's report asks them on the same two \
                 fleets, with four clients.",
        plan: plan_query,
    }
}

impl Scenario {
    /// Trucks and steps: about `2 × cells` rows, with the same ratio of trucks to steps.
    fn source(self, scale: Scale) -> (usize, usize) {
        let cells = match scale {
            Scale::Tiny => 1_000,
            Scale::Small => 30_000,
            Scale::Medium => 500_000,
            Scale::Paper => return (self.trucks, self.steps),
        };
        let ratio = self.trucks as f64 / self.steps as f64;
        // At least one for every client.
        let trucks = (cells as f64 * ratio).sqrt().round() as usize;
        let trucks = trucks.clamp(TRUCKS_MIN, cells / self.steps_min);
        (trucks, (cells / trucks).max(self.steps_min))
    }

    fn setup(self, scale: Scale, acts: Vec<StepAction>) -> Setup {
        let (trucks, steps) = self.source(scale);
        let knobs: Knobs = [
            ("scenario", self.name.to_owned()),
            ("trucks", trucks.to_string()),
        ]
        .map(|(knob, value)| (knob.to_owned(), value))
        .into();
        let step = |act| Step {
            knobs: knobs.clone(),
            act,
        };
        Setup {
            name: self.name.to_lowercase(),
            source: SourceSpec::Trucks {
                trucks,
                steps,
                step_s: STEP_S,
            },
            steps: acts.into_iter().map(step).collect(),
            tuning: Tuning::default(),
        }
    }
}

fn write(scale: Scale) -> StepAction {
    let (clients, batch_rows) = match scale {
        Scale::Tiny => (2, 100),
        Scale::Small => (4, 1_000),
        Scale::Medium => (4, 5_000),
        Scale::Paper => (16, 10_000),
    };
    StepAction::Write(Write {
        clients,
        batch_rows,
        rows_max: None,
        time_max: None,
        rows_per_s: None,
        suffix: String::new(),
    })
}

fn plan_load(scale: Scale) -> Plan {
    let setup = |scenario: Scenario| {
        let acts = vec![write(scale), StepAction::Settle, StepAction::Size];
        scenario.setup(scale, acts)
    };
    let view = |title: &str, figure: &str, unit: &str, scale: f64, more_is_better| ReportView {
        title: title.to_owned(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        scale,
        more_is_better,
        x: "scenario".to_owned(),
        split: None,
        only: Knobs::new(),
        second: None,
        log: false,
        published: Vec::new(),
    };
    Plan {
        setups: LOADED.map(setup).into(),
        views: vec![
            view("Rows loaded", "rows_per_s", "M rows/s", 1e-6, true),
            view("Values loaded", "points_per_s", "M points/s", 1e-6, true),
            view("Space of a row", "bytes_per_row", "bytes", 1.0, false),
        ],
        ..Plan::default()
    }
}

fn plan_query(scale: Scale) -> Plan {
    let (clients, times, seconds_max) = match scale {
        Scale::Tiny => (1, 1, 2),
        Scale::Small => (1, 5, 5),
        Scale::Medium => (1, 20, 20),
        Scale::Paper => (4, 500, 120),
    };
    let setup = |scenario: Scenario| {
        let (trucks, steps) = scenario.source(scale);
        let ask = StepAction::Ask(AskStep {
            clients,
            questions: questions::questions(trucks, Window::whole(steps, STEP_S)),
            times,
            time_max: Some(Duration::from_secs(seconds_max)),
            suffix: String::new(),
        });
        scenario.setup(scale, vec![write(scale), StepAction::Settle, ask])
    };
    Plan {
        setups: ASKED.map(setup).into(),
        views: vec![ReportView {
            title: "Latency of TSBS's questions".to_owned(),
            figure: "latency_ms".to_owned(),
            unit: "ms".to_owned(),
            scale: 1.0,
            more_is_better: false,
            x: "question".to_owned(),
            split: Some("scenario".to_owned()),
            only: Knobs::new(),
            second: None,
            log: true,
            published: published_latencies(),
        }],
        ..Plan::default()
    }
}

/// Figures of TDengine's report for 4,000 trucks, as far as its text has them: the means of 500
/// questions by four clients, in TSBS's unit, milliseconds.
fn published_latencies() -> Vec<PublishedFigures> {
    let published = |system: &str, points: &[(&str, f64)]| PublishedFigures {
        system: system.to_owned(),
        source: "TDengine's TSBS IoT report, copy at coloradmin.cn/o/765312.html; on AWS, \
                 the kind of instance is not in that text"
            .to_owned(),
        split: Some("S2".to_owned()),
        points: points
            .iter()
            .map(|(question, ms)| ((*question).to_owned(), *ms))
            .collect(),
    };
    let [last_loc, _, low_fuel, ..] = QUESTIONS.map(|question| question.name);
    vec![
        published("TDengine 3.0", &[(last_loc, 11.52), (low_fuel, 30.72)]),
        published("InfluxDB 1.8.10", &[(last_loc, 562.86)]),
        published("TimescaleDB 2.10.1", &[(last_loc, 11.77)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(setup: &Setup) -> usize {
        match setup.source {
            SourceSpec::Trucks { trucks, steps, .. } => 2 * trucks * steps,
            ref other => panic!("{other:?} are no trucks"),
        }
    }

    #[test]
    fn scenarios_keep_their_size_and_shape() {
        for (scale, about) in [
            (Scale::Tiny, 2_000),
            (Scale::Small, 60_000),
            (Scale::Medium, 1_000_000),
        ] {
            let setups = [plan_load(scale).setups, plan_query(scale).setups].concat();
            assert_eq!(setups.len(), 7);
            for setup in &setups {
                let rows = rows(setup);
                assert!(
                    rows.abs_diff(about) * 10 < about,
                    "{}: {rows} rows",
                    setup.name
                );
            }
            let trucks = |scenario: &Scenario| scenario.source(scale).0;
            assert!(LOADED.iter().map(trucks).is_sorted_by(|a, b| a < b));
        }
        let published = [
            53_568_000,
            276_480_000,
            216_000_000,
            36_000_000,
            360_000_000,
        ];
        let setups = plan_load(Scale::Paper).setups;
        assert_eq!(setups.iter().map(rows).collect::<Vec<_>>(), published);
    }

    #[test]
    fn views_show_what_the_steps_measure() {
        for plan in [plan_load(Scale::Small), plan_query(Scale::Small)] {
            for view in &plan.views {
                for setup in &plan.setups {
                    for step in &setup.steps {
                        let known =
                            |knob: &str| knob == "question" || step.knobs.contains_key(knob);
                        assert!(known(&view.x));
                        assert!(view.split.as_deref().is_none_or(known));
                    }
                }
            }
        }
        let names = QUESTIONS.map(|question| question.name);
        for published in published_latencies() {
            assert!(
                published
                    .points
                    .iter()
                    .all(|(name, _)| names.contains(&name.as_str()))
            );
        }
    }
}
