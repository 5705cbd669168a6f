//! Bound parameters: the `params` of a request, a JSON object with values for `$name`.
//!
//! A plain value is a literal of its type. An object with one entry names the kind:
//! `{"identifier": "cpu"}`, `{"regex": "^a"}`, `{"duration": "1m"}`. A value that cannot be bound
//! is an error only if a statement uses it, except for a plain number that Go cannot read. The
//! caller parses the JSON.

use crate::duration::InfluxDuration;
use crate::token::{InfluxQlToken, Keyword};
use std::collections::HashMap;

/// A JSON value, reduced to what parameters need.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamJson {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number, as it was written.
    Number(String),
    /// Text.
    String(String),
    /// An array, whatever its contents.
    Array,
    /// An object.
    Object(Vec<(String, ParamJson)>),
}

/// Values for the parameters of a query, by name.
#[derive(Debug, Clone, Default)]
pub struct Params(HashMap<String, ParamValue>);

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
enum ParamValue {
    Identifier(String),
    String(String),
    Regex(String),
    Number(f64),
    Integer(i64),
    Boolean(bool),
    Duration(String),
    /// A value that cannot be used, and why.
    Unusable(String),
}

/// A number, read as Go reads it.
enum ReadNumber {
    Float(f64),
    Integer(i64),
}

/// A number that cannot be bound. Prints as `/query` returns it, with status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing json value: {0}")]
pub struct ParamError(String);

impl Params {
    /// Binds `value` to `name`; a later value replaces an earlier one.
    ///
    /// # Errors
    /// If a plain number does not fit, or has an exponent and no point.
    pub fn bind(&mut self, name: impl Into<String>, value: &ParamJson) -> Result<(), ParamError> {
        let bound = match (bind(value), value) {
            (Err(why), ParamJson::Number(_)) => return Err(ParamError(why)),
            (bound, _) => bound.unwrap_or_else(ParamValue::Unusable),
        };
        self.0.insert(name.into(), bound);
        Ok(())
    }

    /// The token that stands for a parameter; nothing if there is no such parameter. What cannot be
    /// used stays a parameter, whose name then says why: so does InfluxDB.
    pub(crate) fn token(&self, name: &str) -> Option<(InfluxQlToken, String)> {
        Some(match self.0.get(name)? {
            ParamValue::Identifier(text) => (InfluxQlToken::Ident, text.clone()),
            ParamValue::String(text) => (InfluxQlToken::String, text.clone()),
            ParamValue::Regex(text) => (InfluxQlToken::Regex, text.clone()),
            ParamValue::Number(value) => (InfluxQlToken::Number, value.to_string()),
            ParamValue::Integer(value) => (InfluxQlToken::Integer, value.to_string()),
            ParamValue::Boolean(true) => (InfluxQlToken::Keyword(Keyword::True), String::new()),
            ParamValue::Boolean(false) => (InfluxQlToken::Keyword(Keyword::False), String::new()),
            ParamValue::Duration(text) => (InfluxQlToken::DurationValue, text.clone()),
            ParamValue::Unusable(why) => (InfluxQlToken::BoundParam, why.clone()),
        })
    }
}

fn bind(value: &ParamJson) -> Result<ParamValue, String> {
    match value {
        ParamJson::Boolean(value) => Ok(ParamValue::Boolean(*value)),
        ParamJson::String(text) => Ok(ParamValue::String(text.clone())),
        ParamJson::Number(text) => Ok(match read_number(text)? {
            ReadNumber::Float(value) => ParamValue::Number(value),
            ReadNumber::Integer(value) => ParamValue::Integer(value),
        }),
        ParamJson::Object(entries) => match entries.as_slice() {
            [(kind, value)] => bind_as(kind, value),
            _ => Err("bound object parameter value must have exactly one entry".to_owned()),
        },
        ParamJson::Null => Err("unable to bind parameter with type <nil>".to_owned()),
        ParamJson::Array => Err("unable to bind parameter with type []interface {}".to_owned()),
    }
}

fn bind_as(kind: &str, value: &ParamJson) -> Result<ParamValue, String> {
    let number = match value {
        ParamJson::Number(text) => Some(read_number(text)?),
        _ => None,
    };
    let text = match value {
        ParamJson::String(text) => Some(text.clone()),
        _ => None,
    };
    let (bound, refusal) = match kind {
        "ident" | "identifier" => (
            text.map(ParamValue::Identifier),
            "identifier must be a string value",
        ),
        "regex" => (
            text.map(ParamValue::Regex),
            "regex literal must be a string value",
        ),
        "string" => (
            text.map(ParamValue::String),
            "string literal must be a string value",
        ),
        "float" | "number" => (
            number.map(|number| {
                ParamValue::Number(match number {
                    ReadNumber::Float(value) => value,
                    ReadNumber::Integer(value) => value as f64,
                })
            }),
            "number literal must be a float value",
        ),
        "int" | "integer" => (
            match number {
                Some(ReadNumber::Integer(value)) => Some(ParamValue::Integer(value)),
                _ => None,
            },
            "integer literal must be an integer value",
        ),
        "duration" => (
            match number {
                Some(ReadNumber::Integer(ns)) => Some(InfluxDuration(ns).to_string()),
                _ => text,
            }
            .map(ParamValue::Duration),
            "duration literal must be a string or integer value",
        ),
        _ => return Err(format!("unknown bind object type: {kind}")),
    };
    bound.ok_or_else(|| refusal.to_owned())
}

/// A number with a point is a float, one without is an integer.
fn read_number(text: &str) -> Result<ReadNumber, String> {
    let syntax = |function: &str| format!("strconv.{function}: parsing \"{text}\": invalid syntax");
    if text.contains('.') {
        let value: f64 = text.parse().map_err(|_| syntax("ParseFloat"))?;
        if value.is_infinite() {
            let range = "value out of range";
            return Err(format!("strconv.ParseFloat: parsing \"{text}\": {range}"));
        }
        return Ok(ReadNumber::Float(value));
    }
    text.parse()
        .map(ReadNumber::Integer)
        .map_err(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            match error.kind() {
                PosOverflow | NegOverflow => {
                    format!("strconv.ParseInt: parsing \"{text}\": value out of range")
                }
                _ => syntax("ParseInt"),
            }
        })
}
