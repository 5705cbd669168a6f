//! Figures that others published, read from `lab/published/*.toml`.
//!
//! They contain only figures that were found in text, each with its source and hardware; none was
//! read from a picture.

use crate::study::PublishedFigures;
use serde::Deserialize;
use std::sync::OnceLock;

const FILES: [&str; 3] = [
    include_str!("../../published/iot-benchmark.toml"),
    include_str!("../../published/tdengine.toml"),
    include_str!("../../published/ticktock.toml"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The source of all series of the file that name no other.
    source: String,
    series: Vec<Series>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    /// Study and figure of the view: `fleet-write/rows_per_s`.
    view: String,
    system: String,
    source: Option<String>,
    split: Option<String>,
    points: Vec<(String, f64)>,
}

fn parse(text: &str) -> Result<Vec<Series>, toml::de::Error> {
    let file: File = toml::from_str(text)?;
    let with_source = |series: Series| Series {
        source: series.source.or_else(|| Some(file.source.clone())),
        ..series
    };
    Ok(file.series.into_iter().map(with_source).collect())
}

fn all() -> &'static [Series] {
    static ALL: OnceLock<Vec<Series>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |text: &&str| parse(text).expect("published figures are part of the program");
        FILES.iter().flat_map(read).collect()
    })
}

/// Published figures for the view of `figure` in `study`, in the view's unit.
pub(super) fn points(study: &str, figure: &str) -> Vec<PublishedFigures> {
    let name = format!("{study}/{figure}");
    let series = all().iter().filter(|series| series.view == name);
    let published = |series: &Series| PublishedFigures {
        system: series.system.clone(),
        source: series.source.clone().unwrap_or_default(),
        split: series.split.clone(),
        points: series.points.clone(),
    };
    series.map(published).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Scale;

    #[test]
    fn every_file_parses_and_says_where_its_figures_are_from() {
        for text in FILES {
            for series in parse(text).expect("parses") {
                assert!(series.source.is_some_and(|source| source.len() > 20));
                assert!(!series.points.is_empty(), "{}", series.view);
                assert!(series.points.iter().all(|(_, figure)| *figure > 0.0));
            }
        }
    }

    #[test]
    fn every_series_belongs_to_a_view() {
        let studies = crate::studies::all();
        for series in all() {
            let (study, figure) = series.view.split_once('/').expect("study/figure");
            let study = studies.iter().find(|known| known.name == study);
            let plan = (study.expect("a study of that name").plan)(Scale::Paper);
            let mut views = plan.views.iter().filter(|view| view.figure == figure);
            assert!(
                views.any(|view| !view.published.is_empty()),
                "{}",
                series.view
            );
        }
    }
}
