//! Reading rows, aggregates, groups by tag, groups by time.

use super::super::parts::{
    MINUTE_NS, aggregates as of_field, ask, knobs, latencies, pick, question, step,
};
use super::{DEVGROUP, HUMIDITY, SOURCE, TEMPERATURE, fleet, loaded, over_parts, parts};
use crate::question::{Aggregate, Devices, Select, Selection};
use crate::study::{AskStep, Plan, ReportView, Scale, StepAction, Study};

const COUNT_SUM_AVG: [Aggregate; 3] = [Aggregate::Count, Aggregate::Sum, Aggregate::Avg];

/// The study of reading rows.
pub(super) fn rows() -> Study {
    Study {
        name: "fleet-read",
        title: "Reading rows",
        about: "All rows of one group out of a hundred, by one and by several clients; and all rows \
                of 10 % to 100 % of the groups.",
        source: SOURCE,
        plan: read,
    }
}

fn read(scale: Scale) -> Plan {
    let all = || Selection::Rows(vec![TEMPERATURE, HUMIDITY]);
    let groups = (0..10).map(|tenth| {
        let one = Select {
            devices: Devices::In(DEVGROUP, vec![(tenth * 10).to_string()]),
            ..Select::all(0, all())
        };
        question("q1 one group", one)
    });
    let groups: Vec<_> = groups.collect();
    let by_clients = [1, 2, 4].map(|clients: usize| {
        let varied = knobs([
            ("phase", "one-group".to_owned()),
            ("clients", clients.to_string()),
        ]);
        let asked = AskStep {
            clients,
            times: pick(scale, [1, 3, 10, 50]),
            ..ask(scale, groups.clone())
        };
        step(varied, StepAction::Ask(asked))
    });
    let by_part = parts().map(|(percent, devices)| {
        let part = Select {
            devices,
            ..Select::all(0, all())
        };
        let varied = knobs([
            ("phase", "part".to_owned()),
            ("groups_pct", percent.to_string()),
        ]);
        let asked = AskStep {
            times: pick(scale, [1, 2, 2, 5]),
            ..ask(scale, vec![question("rows", part)])
        };
        step(varied, StepAction::Ask(asked))
    });
    // The client receives every row several times, so there are fewer rows.
    let fleet = pick(
        scale,
        [(100, 20), (100, 200), (200, 1000), (10_000, 10_000)],
    );
    let phase = |phase: &str| knobs([("phase", phase.to_owned())]);
    Plan {
        setups: vec![loaded(
            "read",
            fleet,
            by_clients.into_iter().chain(by_part).collect(),
        )],
        views: vec![
            ReportView {
                only: phase("part"),
                ..latencies("Response time by part of the groups", "groups_pct")
            },
            ReportView {
                only: phase("one-group"),
                ..latencies("Response time by clients", "clients")
            },
        ],
        ..Plan::default()
    }
}

/// The study of aggregates.
pub(super) fn aggregates() -> Study {
    Study {
        name: "fleet-aggregate",
        title: "Aggregates",
        about: "Count, mean, sum, greatest, least, and spread of the temperature, over 10 % to \
                100 % of the groups.",
        source: SOURCE,
        plan: |scale| {
            let functions = [
                ("count", Aggregate::Count),
                ("avg", Aggregate::Avg),
                ("sum", Aggregate::Sum),
                ("max", Aggregate::Max),
                ("min", Aggregate::Min),
                ("spread", Aggregate::Spread),
            ];
            over_parts(scale, "aggregate", fleet(scale), |devices| {
                let one = |(name, function): (&str, Aggregate)| {
                    let select = Select {
                        devices: devices.clone(),
                        ..Select::all(0, of_field(&[function], TEMPERATURE))
                    };
                    question(name, select)
                };
                functions.map(one).to_vec()
            })
        },
    }
}

/// The study of groups by tag.
pub(super) fn by_tag() -> Study {
    Study {
        name: "fleet-group-by-tag",
        title: "Groups by tag",
        about: "Count, sum, and mean of the temperature by group, over 10 % to 100 % of the groups.",
        source: SOURCE,
        plan: |scale| {
            over_parts(scale, "group-by-tag", fleet(scale), |devices| {
                let select = Select {
                    devices: devices.clone(),
                    by: vec![DEVGROUP],
                    ..Select::all(0, of_field(&COUNT_SUM_AVG, TEMPERATURE))
                };
                vec![question("q3 by group", select)]
            })
        },
    }
}

/// The study of groups by time.
pub(super) fn by_time() -> Study {
    Study {
        name: "fleet-group-by-time",
        title: "Groups by time",
        about: "Count, sum, and mean of the temperature by minute, over 10 % to 100 % of the \
                groups; and by group and minute, which the publication did not ask.",
        source: SOURCE,
        plan: |scale| {
            over_parts(scale, "group-by-time", fleet(scale), |devices| {
                let by_minute = Select {
                    devices: devices.clone(),
                    bucket_ns: Some(MINUTE_NS),
                    ..Select::all(0, of_field(&COUNT_SUM_AVG, TEMPERATURE))
                };
                let by_both = Select {
                    by: vec![DEVGROUP],
                    ..by_minute.clone()
                };
                vec![
                    question("q4 by minute", by_minute),
                    question("by group, minute", by_both),
                ]
            })
        },
    }
}
