//! The arguments of a call to a function of this crate: taken one by one by name, and refused if
//! one is left.

use super::{FluxSpan, FluxStream, FluxValue};
use crate::fault::fault;
use marigram_flux::FluxPosition;
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// The arguments of a call.
#[derive(Debug)]
pub(crate) struct FluxArguments {
    /// Where the call stands.
    pub at: FluxPosition,
    /// The name of the function.
    pub function: &'static str,
    given: Vec<(String, FluxValue)>,
}

impl FluxArguments {
    /// The arguments of a call.
    pub(crate) fn new(
        at: FluxPosition,
        function: &'static str,
        given: Vec<(String, FluxValue)>,
    ) -> Self {
        Self {
            at,
            function,
            given,
        }
    }

    /// An error of the call.
    pub(crate) fn fault(&self, message: impl AsRef<str>) -> SqlError {
        let message = format!("{}: {}", self.function, message.as_ref());
        fault(self.at, message)
    }

    fn mistyped(&self, name: &str, wanted: &str, found: &FluxValue) -> SqlError {
        let found = found.type_name();
        self.fault(format!("argument {name} is {found}, and not {wanted}"))
    }

    /// Takes an argument, if it is given.
    pub(crate) fn take(&mut self, name: &str) -> Option<FluxValue> {
        let place = self.given.iter().position(|(known, _)| known == name)?;
        Some(self.given.swap_remove(place).1)
    }

    /// Takes an argument that must be given.
    pub(crate) fn need(&mut self, name: &str) -> SqlResult<FluxValue> {
        let value = self.take(name);
        value.ok_or_else(|| self.fault(format!("missing required argument {name}")))
    }

    /// Refuses arguments that nobody took.
    pub(crate) fn finish(&self) -> SqlResult<()> {
        match self.given.first() {
            Some((name, _)) if name == "tables" => {
                Err(self.fault("the function takes nothing from |>"))
            }
            Some((name, _)) => Err(self.fault(format!("there is no argument {name}"))),
            None => Ok(()),
        }
    }

    /// The stream that is piped in.
    pub(crate) fn stream(&mut self) -> SqlResult<Arc<FluxStream>> {
        match self.need("tables")? {
            FluxValue::Stream(stream) => Ok(stream),
            other => Err(self.mistyped("tables", "a stream", &other)),
        }
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> SqlResult<Arc<str>> {
        match self.need(name)? {
            FluxValue::Text(text) => Ok(text),
            other => Err(self.mistyped(name, "string", &other)),
        }
    }

    /// A text, or its default.
    pub(crate) fn text_or(&mut self, name: &str, default: &str) -> SqlResult<Arc<str>> {
        match self.take(name) {
            None => Ok(default.into()),
            Some(FluxValue::Text(text)) => Ok(text),
            Some(other) => Err(self.mistyped(name, "string", &other)),
        }
    }

    /// Texts, if they are given.
    pub(crate) fn texts(&mut self, name: &str) -> SqlResult<Option<Vec<Arc<str>>>> {
        let elements = match self.take(name) {
            None => return Ok(None),
            Some(FluxValue::Array(elements)) => elements,
            Some(other) => return Err(self.mistyped(name, "[string]", &other)),
        };
        let texts = elements.iter().map(|element| match element {
            FluxValue::Text(text) => Ok(Arc::clone(text)),
            other => Err(self.mistyped(name, "[string]", other)),
        });
        texts.collect::<SqlResult<_>>().map(Some)
    }

    /// Texts, or their default.
    pub(crate) fn texts_or(&mut self, name: &str, default: &[&str]) -> SqlResult<Vec<Arc<str>>> {
        let given = self.texts(name)?;
        Ok(given.unwrap_or_else(|| default.iter().map(|text| (*text).into()).collect()))
    }

    /// A number of rows, or its default.
    pub(crate) fn count_or(&mut self, name: &str, default: usize) -> SqlResult<usize> {
        match self.take(name) {
            None => Ok(default),
            Some(FluxValue::Int(value)) => usize::try_from(value)
                .map_err(|_| self.fault(format!("argument {name} is negative"))),
            Some(other) => Err(self.mistyped(name, "int", &other)),
        }
    }

    /// A number of rows.
    pub(crate) fn count(&mut self, name: &str) -> SqlResult<usize> {
        let value = self.need(name)?;
        self.given.push((name.to_owned(), value));
        self.count_or(name, 0)
    }

    /// A float.
    pub(crate) fn float(&mut self, name: &str) -> SqlResult<f64> {
        let value = self.need(name)?;
        match value.as_float() {
            Some(value) => Ok(value),
            None => Err(self.mistyped(name, "float", &value)),
        }
    }

    /// A boolean, or its default.
    pub(crate) fn bool_or(&mut self, name: &str, default: bool) -> SqlResult<bool> {
        match self.take(name) {
            None => Ok(default),
            Some(FluxValue::Bool(value)) => Ok(value),
            Some(other) => Err(self.mistyped(name, "bool", &other)),
        }
    }

    /// A duration, or its default.
    pub(crate) fn span_or(&mut self, name: &str, default: FluxSpan) -> SqlResult<FluxSpan> {
        match self.take(name) {
            None => Ok(default),
            Some(FluxValue::Duration(span)) => Ok(span),
            Some(other) => Err(self.mistyped(name, "duration", &other)),
        }
    }

    /// A function.
    pub(crate) fn function(&mut self, name: &str) -> SqlResult<FluxValue> {
        match self.need(name)? {
            value @ (FluxValue::Function(_) | FluxValue::Builtin(_)) => Ok(value),
            other => Err(self.mistyped(name, "function", &other)),
        }
    }

    /// A time: one that is given, a duration from `now_ns`, or seconds since the Unix epoch; the
    /// default if there is none.
    pub(crate) fn time_or(&mut self, name: &str, now_ns: i64, default: i64) -> SqlResult<i64> {
        match self.take(name) {
            None => Ok(default),
            Some(FluxValue::Time(ns)) => Ok(ns),
            Some(FluxValue::Duration(span)) => Ok(span.after(now_ns)),
            Some(FluxValue::Int(seconds)) => Ok(seconds.saturating_mul(1_000_000_000)),
            Some(other) => Err(self.mistyped(name, "time", &other)),
        }
    }
}
