//! The canvas of a plot: positions, colours, marks.

use super::scale::Scale;
use super::{Axes, Chart};
use crate::report::names::{Colour, PointMark};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Greys of texts, axes and mesh; nothing else has these colours.
pub(crate) const GREYS: [&str; 3] = ["#57606A", "#8C959F", "#D8DEE4"];
pub(super) const TEXT: RGBColor = RGBColor(0x57, 0x60, 0x6a);
pub(super) const AXIS: RGBColor = RGBColor(0x8c, 0x95, 0x9f);
pub(super) const MESH: RGBColor = RGBColor(0xd8, 0xde, 0xe4);

/// Height of a plot, pixels.
pub(super) const HEIGHT: i32 = 360;
/// Width of a plot, pixels; bars may need more.
const WIDTH: i32 = 860;
const WIDTH_MAX: i32 = 2400;
const TOP: i32 = 14;
const BOTTOM: i32 = 52;
const LEFT: i32 = 74;
/// Room for a right axis.
pub(super) const RIGHT: i32 = 66;
/// The font size that `plotters` turns into 12 px in SVG.
const FONT: f64 = 12.0 * 1.24;
/// The largest number of letters of a label.
pub(super) const LABEL_MAX: usize = 30;
/// Estimated width of a letter, pixels.
pub(super) const LETTER: i32 = 7;

/// The area of a plot.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Position of the plot among its labels, pixels.
pub(super) struct Frame {
    pub(super) width: i32,
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

impl Frame {
    /// The frame of `chart`.
    pub(super) fn new(chart: &Chart, axes: &Axes, bars: bool) -> Self {
        let longest = chart
            .series
            .iter()
            .map(|series| cut(&series.label).chars().count())
            .max();
        let legend = 38 + LETTER * longest.unwrap_or(0) as i32;
        let right = legend + if axes.second.is_some() { RIGHT } else { 12 };
        let group = chart.series.len() as i32 * 11 + 14;
        let names = axes
            .x
            .ticks
            .iter()
            .map(|(_, name)| cut(name).chars().count() as i32 * LETTER);
        let group = group.max(names.max().unwrap_or(0) + 10);
        let inner = if bars {
            group * axes.x.ticks.len() as i32
        } else {
            0
        };
        let width = (LEFT + inner + right).clamp(WIDTH, WIDTH_MAX);
        Self {
            width,
            left: LEFT,
            right: width - right,
            top: TOP,
            bottom: HEIGHT - BOTTOM,
        }
    }

    /// The pixel of a value on the x axis.
    pub(super) fn x(&self, scale: &Scale, x: f64) -> Option<i32> {
        let part = scale.part(x)?;
        Some(self.left + (part * f64::from(self.right - self.left)).round() as i32)
    }

    /// The pixel of a value on a y axis.
    pub(super) fn y(&self, scale: &Scale, y: f64) -> Option<i32> {
        let part = scale.part(y)?;
        Some(self.bottom - (part * f64::from(self.bottom - self.top)).round() as i32)
    }
}

/// The result of drawing.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The style of a text with this anchor.
pub(super) fn style(h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", FONT)
        .into_font()
        .color(&TEXT)
        .pos(Pos::new(h, v))
}

/// A colour in `plotters`' type.
pub(super) fn colour(colour: Colour) -> RGBColor {
    RGBColor(colour.0, colour.1, colour.2)
}

/// Draws a mark.
pub(super) fn mark(area: &Area, (x, y): (i32, i32), mark: PointMark, ink: RGBColor) -> Drawn {
    let corners = match mark {
        PointMark::Circle => return area.draw(&Circle::new((x, y), 4, ink.filled())),
        PointMark::Square => vec![
            (x - 4, y - 4),
            (x + 4, y - 4),
            (x + 4, y + 4),
            (x - 4, y + 4),
        ],
        PointMark::Triangle => vec![(x - 5, y + 4), (x, y - 5), (x + 5, y + 4)],
        PointMark::Diamond => vec![(x - 5, y), (x, y - 5), (x + 5, y), (x, y + 5)],
        PointMark::Wedge => vec![(x - 5, y - 4), (x, y + 5), (x + 5, y - 4)],
    };
    area.draw(&Polygon::new(corners, ink.filled()))
}

/// `text`, shortened to the space of a plot.
pub(super) fn cut(text: &str) -> String {
    if text.chars().count() <= LABEL_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LABEL_MAX - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_cut() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"x".repeat(40)).chars().count(), LABEL_MAX);
    }
}
