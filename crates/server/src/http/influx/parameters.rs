//! Parameters of a request to `/query`: from the URL and from the body, as Go's `FormValue` finds them.

use super::encoder::{CHUNK_ROWS, InfluxFormat};
use super::multipart;
use super::series_form::TimeForm;
use crate::http::error::HttpError;
use axum::http::{HeaderMap, Uri, header};
use marigram_service::ParameterValue;
use serde_json::Value;

/// Names and values; of several by one name the first counts.
#[derive(Debug, Default)]
pub(crate) struct FormValues(Vec<(String, String)>);

impl FormValues {
    /// Those of the query string.
    ///
    /// # Errors
    /// 400 if the query string is malformed.
    pub(crate) fn from_url(uri: &Uri) -> Result<Self, HttpError> {
        urlencoded(uri.query().unwrap_or("")).map(Self)
    }

    /// Adds those of a body: a form, whose values go before those of the URL, or the fields of
    /// `multipart/form-data`, or InfluxQL itself.
    ///
    /// # Errors
    /// 400 if the body is malformed.
    pub(crate) fn add_body(&mut self, headers: &HeaderMap, body: Vec<u8>) -> Result<(), HttpError> {
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or("");
        let media_type = kind.split(';').next().unwrap_or("").trim();
        let is_form = media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        let is_query = media_type.eq_ignore_ascii_case("application/vnd.influxql");
        let boundary = multipart::boundary(kind);
        if !is_form && !is_query && boundary.is_none() {
            return Ok(());
        }
        let body = String::from_utf8(body)
            .map_err(|error| HttpError::bad_request(format!("the body is not UTF-8: {error}")))?;
        if is_query {
            self.0.push(("q".to_owned(), body));
        } else if let Some(boundary) = boundary {
            let fields = multipart::fields(&body, &boundary);
            let broken = || HttpError::bad_request("multipart: NextPart: EOF");
            self.0.extend(fields.ok_or_else(broken)?);
        } else {
            let mut of_body = urlencoded(&body)?;
            of_body.append(&mut self.0);
            self.0 = of_body;
        }
        Ok(())
    }

    /// The first value by this name, unless it is empty: as Go's `FormValue`, it hides those behind it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.0.iter().filter(|(key, _)| key == name);
        named
            .next()
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// Reads `name=value&…` with `+` for a space and `%` before two hexadecimal digits.
fn urlencoded(text: &str) -> Result<Vec<(String, String)>, HttpError> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    };
    pairs
        .map(|pair| {
            let malformed = || HttpError::bad_request(format!("malformed parameter {pair:?}"));
            read(pair).ok_or_else(malformed)
        })
        .collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// What a request asks for.
#[derive(Debug)]
pub(super) struct QueryParameters {
    /// The statements.
    pub text: String,
    /// The database of names without one.
    pub database: String,
    /// The retention policy of names without one.
    pub retention_policy: Option<String>,
    /// Values of bound parameters.
    pub parameters: Vec<(String, ParameterValue)>,
    /// The form of the answer.
    pub format: InfluxFormat,
    /// Whether JSON has a line for each value.
    pub pretty: bool,
    /// How times are shown.
    pub times: TimeForm,
    /// Rows of a chunk, if the answer is to be chunked.
    pub chunk_rows: Option<usize>,
}

impl QueryParameters {
    /// What the values ask for.
    ///
    /// # Errors
    /// 400 if `q` is missing, or `params` is no JSON object.
    pub(super) fn new(values: &FormValues, headers: &HeaderMap) -> Result<Self, HttpError> {
        let text = values.get("q").map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Err(HttpError::bad_request("missing required parameter \"q\""));
        }
        let format = InfluxFormat::from_headers(headers);
        let chunk_rows = (values.get("chunked") == Some("true")).then(|| {
            let rows = values.get("chunk_size").and_then(|size| size.parse().ok());
            let rows = rows.filter(|rows| *rows > 0).unwrap_or(CHUNK_ROWS);
            match format {
                // Of a chunk all is held until it ends.
                InfluxFormat::Msgpack => rows.min(CHUNK_ROWS),
                InfluxFormat::Json | InfluxFormat::Csv => rows,
            }
        });
        Ok(Self {
            text: text.to_owned(),
            database: values.get("db").unwrap_or_default().to_owned(),
            retention_policy: values.get("rp").map(str::to_owned),
            parameters: parameters(values.get("params").unwrap_or_default())?,
            format,
            pretty: values.get("pretty") == Some("true"),
            times: TimeForm::from_parameter(values.get("epoch").map_or("", str::trim)),
            chunk_rows,
        })
    }
}

/// The values of `params`, a JSON object.
fn parameters(json: &str) -> Result<Vec<(String, ParameterValue)>, HttpError> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    let refused =
        |why: String| HttpError::bad_request(format!("error parsing query parameters: {why}"));
    let value: Value = serde_json::from_str(json).map_err(|error| {
        refused(if error.is_eof() {
            "unexpected EOF".to_owned()
        } else {
            error.to_string()
        })
    })?;
    let found = match value {
        Value::Object(entries) => {
            let bind = |(name, value)| (name, bound(value));
            return Ok(entries.into_iter().map(bind).collect());
        }
        Value::Null => return Ok(Vec::new()),
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
    };
    Err(refused(format!(
        "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    )))
}

/// A value of JSON as the value of a parameter.
pub(crate) fn bound(value: Value) -> ParameterValue {
    match value {
        Value::Null => ParameterValue::Null,
        Value::Bool(value) => ParameterValue::Boolean(value),
        Value::Number(number) => ParameterValue::Number(number.to_string()),
        Value::String(text) => ParameterValue::String(text),
        Value::Array(_) => ParameterValue::Array,
        Value::Object(entries) => {
            let entries = entries.into_iter();
            ParameterValue::Object(entries.map(|(name, value)| (name, bound(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(kind: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers
    }

    fn values(uri: &str, kind: &'static str, body: &str) -> FormValues {
        let mut values = FormValues::from_url(&uri.parse().unwrap()).unwrap();
        values
            .add_body(&headers(kind), body.as_bytes().to_vec())
            .unwrap();
        values
    }

    #[test]
    fn a_form_goes_before_the_url_and_other_bodies_do_not() {
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let both = values("/query?q=one&db=d+b", form, "q=two%3B&epoch=s");
        assert_eq!(both.get("q"), Some("two;"));
        assert_eq!(both.get("db"), Some("d b"));
        assert_eq!(both.get("epoch"), Some("s"));
        assert_eq!(values("/query", "text/plain", "q=two").get("q"), None);
        let raw = values("/query", "application/vnd.influxql", "SHOW USERS");
        assert_eq!(raw.get("q"), Some("SHOW USERS"));
        let mut broken = FormValues::default();
        let kind = headers("multipart/form-data; boundary=x");
        assert!(broken.add_body(&kind, b"--x\r\n".to_vec()).is_err());
        assert!(broken.add_body(&headers(form), vec![0xff]).is_err());
        for malformed in ["/query?q=%", "/query?q=%g0", "/query?q=%ff"] {
            assert!(FormValues::from_url(&malformed.parse().unwrap()).is_err());
        }
    }

    #[test]
    fn parameters_have_their_defaults() {
        let ask = |uri: &str| {
            let values = FormValues::from_url(&uri.parse().unwrap()).unwrap();
            QueryParameters::new(&values, &HeaderMap::new())
        };
        let plain = ask("/query?q=%20SHOW%20USERS%20").unwrap();
        assert_eq!(
            (plain.text.as_str(), plain.chunk_rows),
            ("SHOW USERS", None)
        );
        assert_eq!((plain.times, plain.pretty), (TimeForm::Default, false));
        let chunk = |uri: &str| ask(uri).unwrap().chunk_rows;
        assert_eq!(chunk("/query?q=x&chunked=true"), Some(10_000));
        assert_eq!(chunk("/query?q=x&chunked=true&chunk_size=7"), Some(7));
        assert_eq!(chunk("/query?q=x&chunked=true&chunk_size=-7"), Some(10_000));
        assert_eq!(chunk("/query?q=x&chunked=1&chunk_size=7"), None);
        let times = |uri: &str| ask(uri).unwrap().times;
        assert_eq!(times("/query?q=x&epoch=ms"), TimeForm::Epoch(1_000_000));
        assert_eq!(times("/query?q=x&epoch=%C2%B5"), TimeForm::Epoch(1));
        let error = |uri: &str| ask(uri).unwrap_err().message;
        assert_eq!(error("/query?q=+"), "missing required parameter \"q\"");
        assert_eq!(
            error("/query?q=x&params={"),
            "error parsing query parameters: unexpected EOF"
        );
        assert_eq!(
            error("/query?q=x&params=[1]"),
            "error parsing query parameters: json: cannot unmarshal array into Go value of type \
             map[string]interface {}"
        );
    }

    #[test]
    fn parameters_keep_their_types() {
        let bound = r#"{"a":9007199254740993,"b":{"regex":"x"},"c":[1],"d":1.5}"#;
        let bound = parameters(bound).unwrap();
        let number = |text: &str| ParameterValue::Number(text.to_owned());
        let value = |name| &bound.iter().find(|(key, _)| key == name).unwrap().1;
        assert_eq!(value("a"), &number("9007199254740993"));
        assert_eq!(value("d"), &number("1.5"));
        assert_eq!(value("c"), &ParameterValue::Array);
        let regex = ("regex".to_owned(), ParameterValue::String("x".to_owned()));
        assert_eq!(value("b"), &ParameterValue::Object(vec![regex]));
    }
}
