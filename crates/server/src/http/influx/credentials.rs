//! Who sends a request, as far as the request says it.
//!
//! Nobody checks passwords or signatures yet: the name is for SHOW QUERIES and logs. InfluxDB takes
//! credentials from the parameters `u` and `p`, then from the header `Authorization`: a JSON Web Token
//! behind `Bearer`, `Token user:password`, or Basic.

use axum::http::{HeaderMap, header};
use serde::Deserialize;

/// Name of a user who does not say who they are.
pub const NOBODY: &str = "http";

/// The name that a request gives; [`NOBODY`] if it gives none.
pub fn user_of(u: Option<&str>, p: Option<&str>, headers: &HeaderMap) -> String {
    if let (Some(user), Some(password)) = (u, p)
        && !user.is_empty()
        && !password.is_empty()
    {
        return user.to_owned();
    }
    let header = headers.get(header::AUTHORIZATION);
    let header = header.and_then(|value| value.to_str().ok());
    header
        .and_then(|text| text.split_once(' '))
        .and_then(|(scheme, value)| named(scheme, value.trim()))
        .filter(|user| !user.is_empty())
        .unwrap_or_else(|| NOBODY.to_owned())
}

fn named(scheme: &str, value: &str) -> Option<String> {
    let user = |text: &str| text.split_once(':').map(|(user, _)| user.to_owned());
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => token_user(value),
        "token" => user(value),
        "basic" => user(&String::from_utf8(base64(value)?).ok()?),
        _ => None,
    }
}

/// The `username` that a JSON Web Token claims.
fn token_user(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        username: String,
    }

    let claims = base64(token.split('.').nth(1)?)?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    Some(claims.username)
}

/// Reads base64 in either alphabet, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut have) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push((bits >> have) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn names_come_from_parameters_and_headers() {
        let user = |u, p, header: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            user_of(u, p, &headers)
        };
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
    }
}
