//! Plots the samples: memory, descriptors, files and disk over time.

use crate::verdict::SoakVerdict;
use anyhow::Result;
use plotters::prelude::{
    BLACK, BLUE, ChartBuilder, Color, GREEN, IntoDrawingArea, LineSeries, RED, RGBColor,
    SVGBackend, WHITE,
};
use std::path::Path;

const MIB: f64 = (1 << 20) as f64;
const GREY: RGBColor = RGBColor(150, 150, 150);

type Line = (&'static str, RGBColor, Vec<(f64, f64)>);

/// Plots a verdict's samples.
pub(crate) fn draw(verdict: &SoakVerdict, path: &Path) -> Result<()> {
    let samples = &verdict.samples;
    let line = |of: &dyn Fn(&crate::ServerSample) -> f64| -> Vec<(f64, f64)> {
        samples.iter().map(|s| (s.seconds, of(s))).collect()
    };
    let limit = verdict.limit_bytes as f64 / MIB;
    let rows: [(&str, Vec<Line>); 4] = [
        (
            "memory, MiB",
            vec![
                ("1.05 × limit", RED, line(&|_| limit * 1.05)),
                ("limit", GREY, line(&|_| limit)),
                ("resident", BLUE, line(&|s| s.resident_bytes as f64 / MIB)),
                ("of files", GREEN, line(&|s| s.file_bytes as f64 / MIB)),
                (
                    "accounted",
                    BLACK,
                    line(&|s| s.accounted_bytes as f64 / MIB),
                ),
            ],
        ),
        (
            "descriptors",
            vec![("descriptors", BLUE, line(&|s| s.descriptors as f64))],
        ),
        ("files", vec![("files", BLUE, line(&|s| s.files as f64))]),
        (
            "disk, MiB",
            vec![("disk", BLUE, line(&|s| s.disk_bytes as f64 / MIB))],
        ),
    ];
    let area = SVGBackend::new(path, (900, 1000)).into_drawing_area();
    area.fill(&WHITE)?;
    let end = samples.last().map_or(1.0, |s| s.seconds);
    for (part, (title, lines)) in area.split_evenly((4, 1)).iter().zip(rows) {
        let values = lines.iter().flat_map(|(_, _, line)| line);
        let most = values.map(|(_, value)| *value).fold(1.0, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(part)
            .margin(8)
            .x_label_area_size(24)
            .y_label_area_size(60)
            .caption(title, ("sans-serif", 16))
            .build_cartesian_2d(0.0..end, 0.0..most)?;
        chart.configure_mesh().light_line_style(WHITE).draw()?;
        for (name, colour, line) in lines {
            let drawn = chart.draw_series(LineSeries::new(line, colour.stroke_width(1)))?;
            drawn.label(name).legend(move |(x, y)| {
                plotters::prelude::PathElement::new([(x, y), (x + 14, y)], colour)
            });
        }
        chart
            .configure_series_labels()
            .border_style(GREY)
            .background_style(WHITE)
            .draw()?;
    }
    area.present()?;
    Ok(())
}
