//! The credentials of a request, as InfluxDB's clients and others send them.
//!
//! InfluxDB takes them from the parameters `u` and `p`, then from the header `Authorization`: Basic, a
//! token behind `Token` or `Bearer`, `Token user:password`, or a JSON Web Token behind `Bearer`; on the
//! paths of API 2, without any of these, from the cookie of a sign-in.

use super::web_sessions::cookie_of;
use axum::extract::Query;
use axum::http::{HeaderMap, Uri, header};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use std::fmt;

/// Name of a client that does not say who it is.
pub(super) const NOBODY: &str = "http";

/// Parameters of the query string.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UrlCredentials {
    u: String,
    p: String,
}

/// What a request proves who it is with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Nothing.
    None,
    /// A user and a password.
    Password(String, String),
    /// A token.
    Token(String),
    /// A JSON Web Token, and the user that it claims to be of.
    WebToken {
        /// The user.
        user: String,
        /// The token.
        text: String,
    },
    /// The cookie of a sign-in.
    Cookie(String),
    /// Something that cannot be read.
    Unreadable,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials of {}", self.user())
    }
}

impl Credentials {
    /// The credentials of a request.
    pub(crate) fn new(uri: &Uri, headers: &HeaderMap) -> Self {
        if let Ok(Query(parameters)) = Query::<UrlCredentials>::try_from_uri(uri)
            && !parameters.u.is_empty()
            && !parameters.p.is_empty()
        {
            return Self::Password(parameters.u, parameters.p);
        }
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return cookie_of(uri.path(), headers).map_or(Self::None, Self::Cookie);
        };
        let Some((scheme, value)) = value.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return Self::Unreadable;
        };
        let value = value.trim();
        let pair = |text: &str| {
            let (user, password) = text.split_once(':')?;
            (!user.is_empty()).then(|| Self::Password(user.to_owned(), password.to_owned()))
        };
        let read = match scheme.to_ascii_lowercase().as_str() {
            "bearer" if value.contains('.') => web_token_user(value).map(|user| Self::WebToken {
                user,
                text: value.to_owned(),
            }),
            "bearer" => Some(Self::Token(value.to_owned())),
            "token" => pair(value).or_else(|| Some(Self::Token(value.to_owned()))),
            "basic" => decoded(value)
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .and_then(|text| pair(&text)),
            _ => None,
        };
        read.unwrap_or(Self::Unreadable)
    }

    /// The name that the client gives; [`NOBODY`] if it gives none.
    pub(crate) fn user(&self) -> &str {
        match self {
            Self::Password(user, _) | Self::WebToken { user, .. } => user,
            Self::None | Self::Token(_) | Self::Cookie(_) | Self::Unreadable => NOBODY,
        }
    }
}

/// The `username` that a JSON Web Token claims.
fn web_token_user(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        username: String,
    }

    let claims = decoded(token.split('.').nth(1)?)?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    (!claims.username.is_empty()).then_some(claims.username)
}

/// Reads base64 in either alphabet, with or without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    const ANY_PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = if text.contains(['-', '_']) {
        &alphabet::URL_SAFE
    } else {
        &alphabet::STANDARD
    };
    GeneralPurpose::new(alphabet, ANY_PADDING).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn names_come_from_parameters_and_headers() {
        let credentials = |u: Option<&str>, p: Option<&str>, header: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            let parameters = [("u", u), ("p", p)].into_iter();
            let parameters =
                parameters.filter_map(|(key, value)| Some(format!("{key}={}", value?)));
            let uri = format!("/query?{}", parameters.collect::<Vec<_>>().join("&"));
            Credentials::new(&uri.parse().expect("a URI"), &headers)
        };
        let user = |u, p, header| credentials(u, p, header).user().to_owned();
        // {"alg":"HS256","typ":"JWT"} . {"username":"jürgen","exp":2000000000} . no signature
        let token = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
                     eyJ1c2VybmFtZSI6ImrDvHJnZW4iLCJleHAiOjIwMDAwMDAwMDB9.c2lnbmF0dXJl";
        for (u, p, header, expected) in [
            (None, None, None, "http"),
            (Some("ann"), Some("x"), Some("Basic Ym9iOng="), "ann"),
            (Some("ann"), None, Some("Basic Ym9iOng="), "bob"),
            (Some(""), Some(""), None, "http"),
            (None, None, Some("basic Ym9iOng="), "bob"),
            (None, None, Some("Basic Ym9i"), "http"),
            (None, None, Some("Basic *"), "http"),
            (None, None, Some("Token carl:secret"), "carl"),
            (None, None, Some("Token abcdef"), "http"),
            (None, None, Some("Bearer nonsense"), "http"),
            (None, None, Some(token), "jürgen"),
            (None, None, Some("Digest x"), "http"),
        ] {
            assert_eq!(user(u, p, header), expected, "{u:?} {p:?} {header:?}");
        }
        let of = |header| credentials(None, None, Some(header));
        assert_eq!(of("Token mgt_x"), Credentials::Token("mgt_x".to_owned()));
        assert_eq!(of("Bearer mgt_x"), Credentials::Token("mgt_x".to_owned()));
        assert_eq!(of("Digest x"), Credentials::Unreadable);
        let basic = of("Basic Ym9iOng6eQ==");
        assert_eq!(basic, Credentials::Password("bob".into(), "x:y".into()));
        assert!(!format!("{basic:?}").contains("x:y"));
    }
}
