//! The section of one study.

use super::document::{Block, slug};
use super::load::{Lab, StudyRuns};
use super::series::ArrangedView;
use super::{latencies, picture, problems, resources, rules, sentences, table};
use anyhow::Result;

/// Name of the files of view number `index` of `study`, without extension.
#[must_use]
pub(super) fn view_name(study: &StudyRuns, index: usize) -> String {
    let title = slug(&study.plan.views[index].title);
    format!("{}-{}-{title}", slug(&study.name), index + 1)
}

/// The blocks of `study`, whose views are `views`.
pub(super) fn blocks(lab: &Lab, study: &StudyRuns, views: &[ArrangedView]) -> Result<Vec<Block>> {
    let prefix = slug(&study.name);
    let mut blocks = vec![Block::heading(
        2,
        &study.title,
        &format!("study-{}", study.name),
    )];
    if !study.about.is_empty() {
        blocks.push(Block::Text(study.about.clone()));
    }
    if !study.source.is_empty() {
        blocks.push(Block::Text(format!("Source: {}", study.source)));
    }
    let rules = rules::sentences(&lab.configuration, study);
    blocks.extend(rules.into_iter().map(Block::Finding));
    blocks.extend(problems::unfinished(study).map(Block::Note));
    for (index, arranged) in views.iter().enumerate() {
        let name = view_name(study, index);
        blocks.push(Block::heading(3, &arranged.view.title, &name));
        if arranged.panels.is_empty() {
            blocks.push(Block::Text(
                "Nothing was measured for this view.".to_owned(),
            ));
        }
        for (number, panel) in arranged.panels.iter().enumerate() {
            let mut name = name.clone();
            if let (Some(split), Some(knob)) = (&panel.split, &arranged.view.split) {
                // The number distinguishes names that differ only in characters that file names
                // cannot have.
                name = format!("{name}-{}-{}", number + 1, slug(split));
                let heading = format!("{}: {split}", knob.replace('_', " "));
                blocks.push(Block::heading(4, heading, &name));
            }
            for sentence in sentences::sentences(arranged.view, panel) {
                blocks.push(Block::Finding(sentence));
            }
            let plot = picture::picture(&name, arranged, panel, &lab.configuration.targets)?;
            blocks.extend(plot.map(Block::Plot));
            blocks.push(Block::Table(table::table(&name, arranged, panel)));
        }
    }
    blocks.extend(latencies::blocks(&prefix, &lab.configuration, study)?);
    blocks.extend(resources::blocks(&prefix, &lab.configuration, study)?);
    Ok(blocks)
}
