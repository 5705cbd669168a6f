//! The names of series, next to the ends of their lines.

use super::canvas::{Area, Drawn, Frame, HEIGHT, RIGHT, colour, cut, mark, style};
use super::{Axes, Chart, Series};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Distance of labels, pixels.
const LINE_HEIGHT: i32 = 17;

/// The names of the series: next to the ends of lines if there is space, otherwise below each
/// other.
pub(super) fn labels(area: &Area, chart: &Chart, axes: &Axes, frame: &Frame, bars: bool) -> Drawn {
    let gap = if axes.second.is_some() { RIGHT } else { 12 };
    let left = frame.right + gap;
    let wanted = |(at, series): (usize, &Series)| {
        let last = series
            .points
            .last()
            .and_then(|point| frame.y(&axes.y, point.y));
        match last {
            Some(y) if !bars => y,
            _ => frame.top + 8 + at as i32 * LINE_HEIGHT,
        }
    };
    let mut places: Vec<(i32, &Series)> = chart
        .series
        .iter()
        .enumerate()
        .map(|series| (wanted(series), series.1))
        .collect();
    places.sort_by_key(|(y, _)| *y);
    spread(&mut places, frame.top + 6, HEIGHT - 10);
    for (y, series) in places {
        let ink = colour(series.look.colour);
        if bars {
            area.draw(&Rectangle::new(
                [(left, y - 5), (left + 12, y + 5)],
                ink.filled(),
            ))?;
        } else {
            let line = [(left, y), (left + 20, y)];
            area.draw(&PathElement::new(line, ink.stroke_width(2)))?;
            if chart.marks {
                mark(area, (left + 10, y), series.look.mark, ink)?;
            }
        }
        let text = style(HPos::Left, VPos::Center);
        area.draw_text(&cut(&series.label), &text, (left + 26, y))?;
    }
    Ok(())
}

/// Moves labels apart by the least distances, within `top` and `bottom`, in their order.
fn spread<T>(places: &mut [(i32, T)], top: i32, bottom: i32) {
    let mut free = top;
    for (y, _) in places.iter_mut() {
        *y = (*y).max(free);
        free = *y + LINE_HEIGHT;
    }
    let mut free = bottom;
    for (y, _) in places.iter_mut().rev() {
        *y = (*y).min(free);
        free = *y - LINE_HEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_and_stay_inside() {
        let mut places = vec![(10, 'a'), (12, 'b'), (14, 'c'), (300, 'd')];
        spread(&mut places, 10, 305);
        let ys: Vec<i32> = places.iter().map(|(y, _)| *y).collect();
        assert_eq!(ys, [10, 27, 44, 300]);
        let mut low = vec![(300, 'a'), (304, 'b')];
        spread(&mut low, 10, 305);
        assert_eq!((low[0].0, low[1].0), (288, 305));
    }
}
