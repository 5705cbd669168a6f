//! HTTP as drivers use it: persistent connections, whole bodies, errors with their text.

use anyhow::{Context, Result, bail};
use std::time::Duration;

/// The longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_mins(10);

/// The largest answer that is accepted, bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 30;

/// The header of a body in the form of a query string.
pub const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A connection to a server.
pub struct Http {
    agent: ureq::Agent,
    base: String,
}

/// `text`, percent-encoded for a query string.
#[must_use]
pub fn percent(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char);
        } else {
            write!(out, "%{byte:02X}").expect("a string takes every text");
        }
    }
    out
}

impl Http {
    /// A connection to `base` (`http://127.0.0.1:8086`), which the first request opens.
    #[must_use]
    pub fn new(base: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_MAX))
            .build();
        Self {
            agent: config.into(),
            base: base.trim_end_matches('/').to_owned(),
        }
    }

    /// The address of the server.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends `body`, and returns the whole answer. Any status but 2xx is an error with its text.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Vec<u8>> {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send(body);
        take(answer.with_context(|| format!("POST {path}"))?)
    }

    /// Reads `path`, and returns the whole answer. Any status but 2xx is an error with its text.
    pub fn get(&self, path: &str) -> Result<Vec<u8>> {
        let answer = self.agent.get(format!("{}{path}", self.base)).call();
        take(answer.with_context(|| format!("GET {path}"))?)
    }
}

fn take(mut answer: ureq::http::Response<ureq::Body>) -> Result<Vec<u8>> {
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    let body = body.read_to_vec().context("the answer's body")?;
    if !status.is_success() {
        let text = String::from_utf8_lossy(&body);
        bail!(
            "answer {status}: {}",
            text.chars().take(500).collect::<String>()
        );
    }
    Ok(body)
}
