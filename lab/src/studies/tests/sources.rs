//! The sources and questions of every plan fit together.

use super::{asks, plans};
use crate::data::{SECOND_NS, Source, Table};
use crate::expect::{self, WrittenRows};
use crate::generate::SourceSpec;
use crate::question::{Ask, Devices, Question, Select, Selection};
use crate::studies::parts::{IOT_START_NS, SET_S_START_NS};
use crate::study::{AskStep, Scale};
use std::sync::Arc;

/// Devices, rows per device, first time and distance of rows (ns) of a source of these studies.
fn extent(source: &SourceSpec) -> Option<(usize, usize, i64, i64)> {
    match source {
        SourceSpec::SetS { devices, rows } | SourceSpec::LateSetS { devices, rows, .. } => {
            Some((*devices, *rows, SET_S_START_NS, SECOND_NS))
        }
        SourceSpec::Iot(spec) | SourceSpec::Paths { spec, .. } => {
            let step_ns = i64::from(spec.step_ms) * 1_000_000;
            Some((spec.devices, spec.rows, IOT_START_NS, step_ns))
        }
        SourceSpec::Fleet { devices, rows } => {
            let start_ns = 1_563_249_700 * SECOND_NS;
            Some((*devices, *rows, start_ns, SECOND_NS))
        }
        SourceSpec::Trucks { .. } => None,
    }
}

#[test]
fn sources_are_as_large_as_their_scale_allows() {
    for (study, scale, plan) in plans() {
        let rows_max = match scale {
            Scale::Tiny => 5_000,
            Scale::Small => 110_000,
            Scale::Medium => 1_000_000,
            Scale::Paper => 100_000_000,
        };
        for setup in &plan.setups {
            let Some((devices, rows, _, _)) = extent(&setup.source) else {
                continue;
            };
            assert!(
                devices * rows <= rows_max,
                "{study} {scale:?} {}",
                setup.name
            );
        }
    }
}

#[test]
fn ranges_of_time_lie_within_the_data() {
    for (study, scale, plan) in plans() {
        for setup in &plan.setups {
            let Some((_, rows, start_ns, step_ns)) = extent(&setup.source) else {
                continue;
            };
            let end_ns = start_ns + rows as i64 * step_ns;
            let asked = setup.steps.iter().filter_map(|step| asks(&step.act));
            for question in asked.flat_map(|ask| &ask.questions) {
                let Ask::Select(select) = &question.ask else {
                    continue;
                };
                let (from_ns, to_ns) = (
                    select.from_ns.unwrap_or(start_ns),
                    select.to_ns.unwrap_or(end_ns),
                );
                assert!(
                    start_ns <= from_ns && from_ns < to_ns && to_ns <= end_ns,
                    "{study} {scale:?} {}: {question:?}",
                    setup.name
                );
            }
        }
    }
}

/// The same source with few rows, so that it is built quickly; its tables are the same.
fn short(source: &SourceSpec) -> SourceSpec {
    let mut short = source.clone();
    match &mut short {
        SourceSpec::SetS { rows, .. }
        | SourceSpec::LateSetS { rows, .. }
        | SourceSpec::Fleet { rows, .. } => *rows = 2,
        SourceSpec::Iot(spec) | SourceSpec::Paths { spec, .. } => spec.rows = 2,
        SourceSpec::Trucks { steps, .. } => *steps = 2,
    }
    short
}

fn check(select: &Select, tables: &[Table]) -> Result<(), String> {
    let table = tables.get(select.table).ok_or("no such table")?;
    let mut fields: Vec<usize> = match &select.what {
        Selection::Rows(fields) | Selection::Last(fields) => fields.clone(),
        Selection::Aggregates(aggregates) => aggregates.iter().map(|(_, field)| *field).collect(),
    };
    fields.extend(select.above.iter().map(|(field, _)| *field));
    if fields.is_empty() || fields.iter().any(|field| *field >= table.fields.len()) {
        return Err(format!("fields {fields:?} of {}", table.fields.len()));
    }
    let mut tags = select.by.clone();
    match &select.devices {
        Devices::All => {}
        Devices::In(tag, values) => {
            tags.push(*tag);
            let is_known = |value: &&String| {
                let mut series = table.series.iter();
                series.any(|tags| {
                    tags.get(*tag)
                        .is_some_and(|own| own.as_ref() == Some(value))
                })
            };
            if let Some(unknown) = values.iter().find(|value| !is_known(value)) {
                return Err(format!("no device with {unknown}"));
            }
        }
        Devices::Below(tag, _) => tags.push(*tag),
    }
    match tags.iter().find(|tag| **tag >= table.tags.len()) {
        Some(tag) => Err(format!("no tag {tag}")),
        None => Ok(()),
    }
}

#[test]
fn questions_are_about_what_there_is() {
    let mut last: Option<(SourceSpec, Arc<dyn Source>)> = None;
    for (study, scale, plan) in plans() {
        for setup in &plan.setups {
            let asked: Vec<&AskStep> = setup.steps.iter().filter_map(|s| asks(&s.act)).collect();
            if asked.is_empty() {
                continue;
            }
            // Most setups of a study share their source.
            let spec = short(&setup.source);
            last = last.filter(|(known, _)| *known == spec);
            let (_, source) = last.get_or_insert_with(|| (spec.clone(), spec.build(1)));
            for question in asked.into_iter().flat_map(|ask| &ask.questions) {
                if let Ask::Select(select) = &question.ask {
                    let known = check(select, source.tables());
                    assert_eq!(
                        known,
                        Ok(()),
                        "{study} {scale:?} {}: {question:?}",
                        setup.name
                    );
                }
            }
        }
    }
}

/// An empty answer would be right on a target that lost everything.
#[test]
fn questions_have_answers() {
    for (study, scale, plan) in plans().filter(|(_, scale, _)| *scale == Scale::Tiny) {
        for setup in &plan.setups {
            let source = setup.source.build(1);
            if let Some((_, rows, start_ns, step_ns)) = extent(&setup.source) {
                let (from_ns, to_ns) = source.span_ns();
                assert_eq!(from_ns, start_ns, "{study} {}", setup.name);
                // Rows that repeat earlier ones bring no new time.
                let length_ns = (rows as i64 - 1) * step_ns;
                let reaches = source.repeats() || to_ns >= start_ns + length_ns;
                assert!(reaches, "{study} {}", setup.name);
            }
            let everything = WrittenRows {
                clients: 1,
                batch_rows: 1000,
                batches: vec![source.stream(0, 1, 1000).count()],
            };
            let asked = setup.steps.iter().filter_map(|step| asks(&step.act));
            for questions in asked.map(|ask| &ask.questions) {
                let select = |question: &Question| match &question.ask {
                    Ask::Select(select) => Some(select.clone()),
                    Ask::Sql(_) => None,
                };
                let selects: Vec<Select> = questions.iter().filter_map(select).collect();
                let selects: Vec<&Select> = selects.iter().collect();
                let answers = expect::answers(source.as_ref(), &everything, &selects);
                for (select, answer) in selects.iter().zip(answers) {
                    let name = format!("{study} {scale:?} {}: {select:?}", setup.name);
                    assert!(!answer.rows.is_empty(), "{name}");
                }
            }
        }
    }
}
