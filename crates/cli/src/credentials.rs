//! With which credentials the command line asks a server.

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// The header `Authorization` of each request; none without credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerCredentials(Option<String>);

impl fmt::Debug for ServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerCredentials")
    }
}

impl ServerCredentials {
    /// Takes `user:password@` out of a URL; without it, asks `from_env` for MARIGRAM_TOKEN, then
    /// MARIGRAM_USER and MARIGRAM_PASSWORD. Also returns the URL without it.
    pub(crate) fn split(
        url: &str,
        from_env: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, String)> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok((Self::default(), url.to_owned()));
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if let Some((pair, host)) = authority.rsplit_once('@') {
            let Some((user, password)) = pair.split_once(':') else {
                bail!("the URL has a user without a password: write user:password@");
            };
            let (user, password) = (percent_decoded(user), percent_decoded(password));
            let own = Self::of_password(&user, &password);
            return Ok((own, format!("{scheme}://{host}{path}")));
        }
        let own = match (from_env("MARIGRAM_TOKEN"), from_env("MARIGRAM_USER")) {
            (Some(token), _) => Self(Some(format!("Bearer {token}"))),
            (None, Some(user)) => {
                let password = from_env("MARIGRAM_PASSWORD").unwrap_or_default();
                Self::of_password(&user, &password)
            }
            (None, None) => Self::default(),
        };
        Ok((own, url.to_owned()))
    }

    fn of_password(user: &str, password: &str) -> Self {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        Self(Some(format!("Basic {pair}")))
    }

    /// The value of the header.
    pub(crate) fn header(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// A part of a URL in which `%` and two digits stand for a byte.
fn percent_decoded(text: &str) -> String {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_from_the_url_or_the_environment() {
        let split = |url: &str, known: &[(&str, &str)]| {
            let from_env = |name: &str| {
                let found = known.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let (own, url) = ServerCredentials::split(url, from_env).expect("a URL");
            (own.header().map(str::to_owned), url)
        };
        let ann = [("MARIGRAM_USER", "ann"), ("MARIGRAM_PASSWORD", "x")];
        assert_eq!(split("http://h:1", &[]), (None, "http://h:1".to_owned()));
        assert_eq!(
            split("http://b%6Fb:y%3A@h:1/p", &ann),
            (Some("Basic Ym9iOnk6".into()), "http://h:1/p".into())
        );
        assert_eq!(split("http://h", &ann).0.as_deref(), Some("Basic YW5uOng="));
        let token = [("MARIGRAM_TOKEN", "mgt_1"), ("MARIGRAM_USER", "ann")];
        assert_eq!(split("http://h", &token).0.as_deref(), Some("Bearer mgt_1"));
        let wrong = ServerCredentials::split("http://ann@h", |_| None);
        assert!(wrong.is_err());
    }
}
