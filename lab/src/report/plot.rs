//! Plots as SVG: lines over numbers, bars over names, with error bars, a right axis, and labels
//! next to the lines instead of a legend.
//!
//! The drawing has no background and few greys, so that a page can apply its own colours
//! ([`GREYS`]); [`standalone`] makes a file of it.

mod canvas;
mod draw;
mod legend;
mod scale;

use super::names::TargetStyle;
use anyhow::Result;
pub(super) use canvas::GREYS;
use scale::Scale;

/// What is plotted.
pub(super) struct Chart {
    /// Below the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// Beside the right axis, for [`Series::second`].
    pub second_label: Option<String>,
    /// Logarithmic y axis.
    pub log: bool,
    /// The x axis.
    pub x: X,
    /// What is shown.
    pub series: Vec<Series>,
    /// Whether points have marks; without marks, a line has only its colour.
    pub marks: bool,
}

/// The x axis.
pub(super) enum X {
    /// Settings that are numbers, with their names.
    Settings(Vec<(f64, String)>),
    /// A quantity.
    Quantity,
    /// Names; points are at 0, 1, 2 ….
    Names(Vec<String>),
}

/// A line, or one bar of each group.
pub(super) struct Series {
    /// Its name.
    pub label: String,
    /// Its appearance.
    pub look: TargetStyle,
    /// Its points.
    pub points: Vec<Point>,
    /// Points against the right axis.
    pub second: Vec<(f64, f64)>,
    /// Positions on the x axis without a figure, because something is wrong.
    pub wrong: Vec<f64>,
}

/// A point with its interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Its position on the x axis.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// Lower end of its interval; equal to the figure if there is none.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Lines.
pub(super) fn lines(chart: &Chart) -> Result<String> {
    draw::draw(chart, &axes(chart, chart.log), false)
}

/// Groups of bars.
pub(super) fn bars(chart: &Chart) -> Result<String> {
    draw::draw(chart, &axes(chart, chart.log), true)
}

/// The axes of a chart.
struct Axes {
    x: Scale,
    y: Scale,
    second: Option<Scale>,
}

fn axes(chart: &Chart, log: bool) -> Axes {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let second = || chart.series.iter().flat_map(|series| &series.second);
    let x = match &chart.x {
        X::Settings(settings) => Scale::settings(settings),
        X::Quantity => Scale::time(points().map(|point| point.x)),
        X::Names(names) => Scale::names(names),
    };
    let values = points().flat_map(|point| [point.low, point.y, point.high]);
    let any_second = chart.second_label.is_some() && second().next().is_some();
    Axes {
        x,
        y: Scale::quantity(values, log),
        second: any_second.then(|| Scale::quantity(second().map(|(_, y)| *y), false)),
    }
}

/// `svg` as a file of its own, on white.
#[must_use]
pub(super) fn standalone(svg: &str) -> String {
    let background = "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>";
    match svg.split_once('>') {
        Some((opening, rest)) => format!("{opening}>\n{background}{rest}"),
        None => svg.to_owned(),
    }
}
