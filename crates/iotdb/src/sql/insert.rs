//! INSERT.

use super::ast::{TreeInsert, TreeInsertRow, TreeLiteral};
use super::cursor::SqlCursor;
use crate::status::IotDbFault;

/// Names of the column of times.
const TIME_NAMES: [&str; 2] = ["time", "timestamp"];

impl SqlCursor<'_> {
    /// Reads what follows INSERT INTO.
    pub(super) fn insert(&mut self) -> Result<TreeInsert, IotDbFault> {
        let device = self.absolute_path()?;
        self.expect_sign("(")?;
        let mut measurements = self.list(Self::name)?;
        self.expect_sign(")")?;
        let has_time = measurements.first().is_some_and(|first| {
            let mut names = TIME_NAMES.iter();
            names.any(|name| name.eq_ignore_ascii_case(first))
        });
        if has_time {
            measurements.remove(0);
        }
        if measurements.is_empty() {
            return Err(IotDbFault::semantic("INSERT needs a measurement"));
        }
        let is_aligned = self.keyword("aligned");
        if !self.keyword("values") {
            self.expect_keyword("value")?;
        }
        let count = measurements.len();
        let rows = self.list(|cursor| cursor.row(has_time, count))?;
        if !has_time && rows.len() > 1 {
            return Err(IotDbFault::semantic(
                "INSERT of several rows needs their times",
            ));
        }
        Ok(TreeInsert {
            device,
            measurements,
            is_aligned,
            rows,
        })
    }

    fn row(&mut self, has_time: bool, count: usize) -> Result<TreeInsertRow, IotDbFault> {
        self.expect_sign("(")?;
        let time_ms = if has_time {
            let Some(time) = self.time()? else {
                return Err(self.expected("a time"));
            };
            self.expect_sign(",")?;
            time
        } else {
            self.context.now_ms
        };
        let values = self.list(|cursor| match cursor.literal()? {
            Some(value) => Ok(value),
            None => Err(cursor.expected("a value")),
        })?;
        self.expect_sign(")")?;
        if values.len() != count {
            return Err(IotDbFault::semantic(format!(
                "a row has {} values for {count} measurements",
                values.len()
            )));
        }
        Ok(TreeInsertRow { time_ms, values })
    }
}

impl TreeLiteral {
    /// The value as a text that a client sends outside of SQL means it.
    pub fn from_text(text: &str) -> Self {
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if is("true") || is("false") {
            return Self::Boolean(is("true"));
        }
        if is("null") {
            return Self::Null;
        }
        if let Ok(number) = text.parse() {
            return Self::Integer(number);
        }
        let is_number =
            text.starts_with(|char: char| char.is_ascii_digit() || "+-.".contains(char));
        match text.parse() {
            Ok(number) if is_number || is("nan") => Self::Float(number),
            _ => {
                let quote = text.chars().next().filter(|char| "'\"".contains(*char));
                let inner = quote.and_then(|quote| {
                    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
                    Some(inner.to_owned())
                });
                Self::Text(inner.unwrap_or_else(|| text.to_owned()))
            }
        }
    }
}
