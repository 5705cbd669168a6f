//! The forms of an answer: what they have in common.
//!
//! An answer is a document of results, one for each statement; a result holds series. A chunked answer
//! is many such documents, each with a piece of one series. An [`AnswerEncoder`] is told what comes
//! next and writes bytes; it decides where chunks end.

use super::columns::InfluxColumn;
use super::csv_form::CsvForm;
use super::json_form::JsonForm;
use super::msgpack_form::MsgpackForm;
use super::series::{SeriesHeader, SeriesLayout};
use super::series_form::{SeriesForm, StatementEnd, TimeForm};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use axum::http::{HeaderMap, header};
use std::ops::Range;

/// Rows of a chunk where the request does not say how many.
pub(super) const CHUNK_ROWS: usize = 10_000;

/// The media type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InfluxFormat {
    /// JSON.
    Json,
    /// CSV, announced as `application/csv` or `text/csv`.
    Csv,
    /// MessagePack.
    Msgpack,
}

impl InfluxFormat {
    /// The first type of `Accept` that is known; JSON if none is.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        for list in headers.get_all(header::ACCEPT) {
            for item in list.to_str().unwrap_or("").split(',') {
                match item.split(';').next().unwrap_or("").trim() {
                    "application/csv" | "text/csv" => return Self::Csv,
                    "application/x-msgpack" => return Self::Msgpack,
                    "application/json" => return Self::Json,
                    _ => {}
                }
            }
        }
        Self::Json
    }

    /// What `Content-Type` says.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv",
            Self::Msgpack => "application/x-msgpack",
        }
    }
}

/// The form that writes a media type.
pub(super) fn form(format: InfluxFormat, pretty: bool, times: TimeForm) -> Box<dyn SeriesForm> {
    match format {
        InfluxFormat::Json => Box::new(JsonForm::new(pretty, times)),
        InfluxFormat::Csv => Box::new(CsvForm::new(times)),
        InfluxFormat::Msgpack => Box::new(MsgpackForm::new(times)),
    }
}

/// Writes an answer.
pub(super) struct AnswerEncoder {
    form: Box<dyn SeriesForm>,
    /// Rows of a chunk, if the answer is chunked.
    chunk_rows: Option<usize>,
    statement: usize,
    /// Whether the result of the statement is open.
    is_open: bool,
    /// The series that is open.
    series: Option<SeriesHeader>,
    /// Rows of it in this document.
    rows: usize,
}

impl AnswerEncoder {
    /// An encoder; chunks of so many rows if the answer is chunked.
    pub(super) fn new(form: Box<dyn SeriesForm>, chunk_rows: Option<usize>) -> Self {
        let mut encoder = Self {
            form,
            chunk_rows,
            statement: 0,
            is_open: false,
            series: None,
            rows: 0,
        };
        if chunk_rows.is_none() {
            encoder.form.begin_document();
        }
        encoder
    }

    /// Whether the answer is chunked.
    pub(super) fn is_chunked(&self) -> bool {
        self.chunk_rows.is_some()
    }

    /// How many bytes are ready.
    pub(super) fn ready_bytes(&self) -> usize {
        self.form.ready_bytes()
    }

    /// The bytes that are ready.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.form.take()
    }

    /// Bytes that are held until more is known.
    pub(super) fn held_bytes(&self) -> usize {
        self.form.held_bytes()
    }

    /// The answer to a statement begins.
    pub(super) fn begin_statement(&mut self, id: usize) {
        self.statement = id;
        self.open();
    }

    fn open(&mut self) {
        if self.is_chunked() {
            self.form.begin_document();
        }
        self.form.begin_statement(self.statement);
        self.is_open = true;
    }

    /// Rows of the statement.
    ///
    /// # Errors
    /// If a value cannot be shown.
    pub(super) fn rows(
        &mut self,
        layout: &SeriesLayout,
        batch: &RecordBatch,
    ) -> Result<(), ArrowError> {
        let columns = layout.columns(batch)?;
        for series in layout.series(batch, &columns)? {
            if self.series.as_ref() != Some(&series.header) {
                self.next_series(series.header);
            }
            self.series_rows(&columns, &series.columns, series.rows);
        }
        Ok(())
    }

    /// Whether the series is one that InfluxDB joins of several chunks where the answer is not
    /// chunked. The first of them says that more follows, and the whole then says so too.
    fn was_joined(&self) -> bool {
        !self.is_chunked() && self.rows > CHUNK_ROWS
    }

    fn next_series(&mut self, header: SeriesHeader) {
        if self.series.is_some() {
            self.form.end_series(self.was_joined());
            self.cut();
        }
        self.form.begin_series(&header);
        self.series = Some(header);
        self.rows = 0;
    }

    /// Ends the document and begins the next, where the answer is chunked.
    fn cut(&mut self) {
        if self.is_chunked() {
            let end = StatementEnd {
                partial: true,
                ..StatementEnd::default()
            };
            self.form.end_statement(&end);
            self.form.end_document();
            self.open();
        }
    }

    fn series_rows(&mut self, columns: &[InfluxColumn], of_series: &[usize], rows: Range<usize>) {
        for row in rows {
            if Some(self.rows) == self.chunk_rows {
                self.form.end_series(true);
                self.cut();
                if let Some(series) = &self.series {
                    self.form.begin_series(series);
                }
                self.rows = 0;
            }
            let mut values = of_series
                .iter()
                .map(|at| (columns[*at].value(row), columns[*at].zone));
            self.form.row(&mut values);
            self.rows += 1;
        }
    }

    /// The answer to the statement ends.
    pub(super) fn end_statement(&mut self, messages: &[String], error: Option<&str>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        if self.series.take().is_some() {
            self.form.end_series(self.was_joined());
        }
        self.form.end_statement(&StatementEnd {
            messages,
            partial: false,
            error,
        });
        if self.is_chunked() {
            self.form.end_document();
        }
    }

    /// The answer ends.
    pub(super) fn finish(&mut self) {
        if !self.is_chunked() {
            self.form.end_document();
        }
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
