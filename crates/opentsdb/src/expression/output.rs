//! A part of the answer as JSON, piece by piece.

use super::check::ExpressionOutput;
use super::table::JoinedSeries;
use crate::java_number::push_double;
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;

/// Writes a part of the answer.
#[derive(Debug)]
pub struct OutputWriter {
    table: Arc<JoinedSeries>,
    next: OutputPiece,
}

/// What comes next.
#[derive(Debug)]
enum OutputPiece {
    /// The name of the part.
    Begin(ExpressionOutput),
    /// The values of a time.
    Row(usize),
    /// What is known of a series.
    Series(usize),
    /// Nothing.
    End,
}

impl OutputWriter {
    /// The writer of a part with these values.
    pub fn new(output: ExpressionOutput, table: Arc<JoinedSeries>) -> Self {
        let next = OutputPiece::Begin(output);
        Self { table, next }
    }

    /// Adds text until it has this many bytes, or the part is complete; returns whether there is more.
    pub fn write(&mut self, bytes: usize, text: &mut String) -> bool {
        while text.len() < bytes {
            let next = match &self.next {
                OutputPiece::Begin(output) => {
                    let _ = write!(text, "{{\"id\":{}", json!(output.id));
                    if let Some(alias) = &output.alias {
                        let _ = write!(text, ",\"alias\":{}", json!(alias));
                    }
                    text.push_str(",\"dps\":[");
                    OutputPiece::Row(0)
                }
                OutputPiece::Row(number) if *number < self.table.times.len() => {
                    self.write_row(*number, text);
                    OutputPiece::Row(number + 1)
                }
                OutputPiece::Row(_) => {
                    self.write_summary(text);
                    OutputPiece::Series(0)
                }
                OutputPiece::Series(number) if *number < self.table.heads.len() => {
                    self.write_series(*number, text);
                    OutputPiece::Series(number + 1)
                }
                OutputPiece::Series(number) => {
                    text.push_str(if *number > 0 { "]}" } else { "}" });
                    OutputPiece::End
                }
                OutputPiece::End => return false,
            };
            self.next = next;
        }
        !matches!(self.next, OutputPiece::End)
    }

    fn write_row(&self, number: usize, text: &mut String) {
        if number > 0 {
            text.push(',');
        }
        let time = self.table.times.get(number).copied().unwrap_or_default();
        let _ = write!(text, "[{time}");
        for value in self.table.row(number) {
            text.push(',');
            if value.is_finite() {
                push_double(*value, text);
            } else {
                // As Jackson writes them: JSON has no such numbers.
                text.push('"');
                push_double(*value, text);
                text.push('"');
            }
        }
        text.push(']');
    }

    fn write_summary(&self, text: &mut String) {
        let times = &self.table.times;
        let (first, last) = (times.first().unwrap_or(&0), times.last().unwrap_or(&0));
        let (count, series) = (times.len(), self.table.heads.len());
        let _ = write!(
            text,
            "],\"dpsMeta\":{{\"firstTimestamp\":{first},\"lastTimestamp\":{last},\
             \"setCount\":{count},\"series\":{series}}}"
        );
        if series > 0 {
            text.push_str(",\"meta\":[{\"index\":0,\"metrics\":[\"timestamp\"]}");
        }
    }

    fn write_series(&self, number: usize, text: &mut String) {
        let Some(head) = self.table.heads.get(number) else {
            return;
        };
        let _ = write!(
            text,
            ",{{\"index\":{},\"metrics\":{},\"commonTags\":{},\"aggregatedTags\":{}}}",
            number + 1,
            json!(head.metrics),
            json!(head.tags),
            json!(head.aggregate_tags)
        );
    }
}
