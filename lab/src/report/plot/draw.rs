//! Draws a chart with the elements of `plotters` at pixel positions, so that labels do not overlap
//! and all charts share one kind of axis.

use super::canvas::{
    AXIS, Area, Drawn, Frame, HEIGHT, LETTER, MESH, RIGHT, TEXT, colour, cut, mark, style,
};
use super::legend::labels;
use super::scale::Scale;
use super::{Axes, Chart};
use anyhow::{Result, anyhow};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// The drawing.
pub(super) fn draw(chart: &Chart, axes: &Axes, bars: bool) -> Result<String> {
    let frame = Frame::new(chart, axes, bars);
    let mut svg = String::new();
    {
        let size = (frame.width as u32, HEIGHT as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        // An error of the backend contains nothing that a reader could act on.
        let failed = |error: DrawingAreaErrorKind<_>| anyhow!("draw a plot: {error:?}");
        mesh(&area, chart, axes, &frame).map_err(failed)?;
        if bars {
            draw_bars(&area, chart, axes, &frame).map_err(failed)?;
        } else {
            draw_lines(&area, chart, axes, &frame).map_err(failed)?;
        }
        labels(&area, chart, axes, &frame, bars).map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn mesh(area: &Area, chart: &Chart, axes: &Axes, frame: &Frame) -> Drawn {
    for (place, text) in &axes.y.ticks {
        let y = pixel(*place, &axes.y, frame.bottom, frame.top);
        let line = [(frame.left, y), (frame.right, y)];
        area.draw(&PathElement::new(line, MESH))?;
        area.draw_text(text, &style(HPos::Right, VPos::Center), (frame.left - 8, y))?;
    }
    let bottom = [(frame.left, frame.bottom), (frame.right, frame.bottom)];
    area.draw(&PathElement::new(bottom, AXIS))?;
    let mut free = i32::MIN;
    for (place, text) in &axes.x.ticks {
        let x = pixel(*place, &axes.x, frame.left, frame.right);
        let text = cut(text);
        let half = text.chars().count() as i32 * LETTER / 2;
        area.draw(&PathElement::new(
            [(x, frame.bottom), (x, frame.bottom + 4)],
            AXIS,
        ))?;
        if x - half < free {
            continue;
        }
        free = x + half + 6;
        area.draw_text(
            &text,
            &style(HPos::Center, VPos::Top),
            (x, frame.bottom + 9),
        )?;
    }
    let middle = i32::midpoint(frame.left, frame.right);
    let text = style(HPos::Center, VPos::Bottom);
    area.draw_text(&chart.x_label, &text, (middle, HEIGHT - 4))?;
    let upright = style(HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
    let centre = i32::midpoint(frame.top, frame.bottom);
    area.draw_text(&chart.y_label, &upright, (4, centre))?;
    if let (Some(second), Some(label)) = (&axes.second, &chart.second_label) {
        for (place, text) in &second.ticks {
            let y = pixel(*place, second, frame.bottom, frame.top);
            let text_style = style(HPos::Left, VPos::Center);
            area.draw_text(text, &text_style, (frame.right + 8, y))?;
        }
        let upright = style(HPos::Center, VPos::Bottom).transform(FontTransform::Rotate270);
        area.draw_text(
            &format!("{label} (dashed)"),
            &upright,
            (frame.right + RIGHT - 8, centre),
        )?;
    }
    Ok(())
}

/// The pixel of a tick.
fn pixel(place: f64, scale: &Scale, from: i32, to: i32) -> i32 {
    let part = (place - scale.low) / (scale.high - scale.low);
    from + (part * f64::from(to - from)).round() as i32
}

fn draw_lines(area: &Area, chart: &Chart, axes: &Axes, frame: &Frame) -> Drawn {
    for series in &chart.series {
        let ink = colour(series.look.colour);
        let mut path = Vec::new();
        for point in &series.points {
            let (Some(x), Some(y)) = (frame.x(&axes.x, point.x), frame.y(&axes.y, point.y)) else {
                continue;
            };
            path.push((x, y));
            if point.low < point.high {
                interval(area, frame, &axes.y, (x, point.low, point.high), ink)?;
            }
            if chart.marks {
                mark(area, (x, y), series.look.mark, ink)?;
            }
        }
        area.draw(&PathElement::new(path, ink.stroke_width(2)))?;
        let Some(second) = &axes.second else { continue };
        let placed = |(x, y): &(f64, f64)| Some((frame.x(&axes.x, *x)?, frame.y(second, *y)?));
        let path: Vec<(i32, i32)> = series.second.iter().filter_map(placed).collect();
        for place in &path {
            area.draw(&Circle::new(*place, 3, ink))?;
        }
        area.draw(&DashedPathElement::new(path, 5, 4, ink.stroke_width(1)))?;
    }
    Ok(())
}

/// The interval from `low` to `high` at pixel `x`.
fn interval(
    area: &Area,
    frame: &Frame,
    scale: &Scale,
    (x, low, high): (i32, f64, f64),
    ink: RGBColor,
) -> Drawn {
    // An interval that extends below a logarithmic axis ends at its lower end.
    let bottom = frame.y(scale, low).unwrap_or(frame.bottom);
    let Some(top) = frame.y(scale, high) else {
        return Ok(());
    };
    area.draw(&PathElement::new([(x, bottom), (x, top)], ink))?;
    for y in [bottom, top] {
        area.draw(&PathElement::new([(x - 3, y), (x + 3, y)], ink))?;
    }
    Ok(())
}

fn draw_bars(area: &Area, chart: &Chart, axes: &Axes, frame: &Frame) -> Drawn {
    let group = f64::from(frame.right - frame.left) / axes.x.ticks.len().max(1) as f64;
    // A single bar as wide as its group would look like a wall.
    let width = ((group - 12.0) / chart.series.len().max(1) as f64).clamp(3.0, 46.0);
    let offset = |at: usize| (at as f64 - chart.series.len() as f64 / 2.0) * width;
    for (at, series) in chart.series.iter().enumerate() {
        let ink = colour(series.look.colour);
        for point in &series.points {
            let (Some(x), Some(y)) = (frame.x(&axes.x, point.x), frame.y(&axes.y, point.y)) else {
                continue;
            };
            let left = x + offset(at).round() as i32;
            let right = x + offset(at + 1).round() as i32 - 1;
            area.draw(&Rectangle::new(
                [(left, y), (right, frame.bottom)],
                ink.filled(),
            ))?;
            if point.low < point.high {
                let middle = i32::midpoint(left, right);
                interval(area, frame, &axes.y, (middle, point.low, point.high), TEXT)?;
            }
        }
        for x in series.wrong.iter().filter_map(|x| frame.x(&axes.x, *x)) {
            let middle = x + (offset(at) + width / 2.0).round() as i32;
            let cross = style(HPos::Center, VPos::Bottom).color(&ink);
            area.draw_text("✗", &cross, (middle, frame.bottom - 2))?;
        }
    }
    Ok(())
}
