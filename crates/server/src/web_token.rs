//! JSON Web Tokens as InfluxDB 1.x takes them: signed with a secret that server and issuer share
//! (HS256; RFC 7515, RFC 7518, RFC 7519), with the claims `username` and `exp`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;
use std::fmt;

/// Longest token, bytes.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// Shortest secret, bytes. Who has seen one token can try secrets at home.
const SECRET_BYTES_MIN: usize = 16;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebTokenRefusal {
    /// It is none, or not one with HS256.
    #[error("the token is not a JSON Web Token with HS256")]
    Malformed,
    /// Somebody else signed it.
    #[error("the signature of the token is wrong")]
    Signature,
    /// It has no `username`, or no `exp`.
    #[error("the token needs the claims username and exp")]
    Claims,
    /// Its time has not come, or is over.
    #[error("the token has expired, or is not valid yet")]
    Ended,
}

/// The secret with which tokens are signed.
#[derive(Clone, PartialEq, Eq)]
pub struct WebTokenKey(Vec<u8>);

impl fmt::Debug for WebTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebTokenKey")
    }
}

#[derive(Deserialize)]
struct WebTokenHeader {
    alg: String,
    /// Extensions that a reader must understand; this one understands none.
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct WebTokenClaims {
    username: Option<String>,
    exp: Option<f64>,
    nbf: Option<f64>,
}

fn decoded<T: for<'a> Deserialize<'a>>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

impl WebTokenKey {
    /// A key from a secret; `None` if the secret is too short.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        (secret.len() >= SECRET_BYTES_MIN).then(|| Self(secret.as_bytes().to_vec()))
    }

    /// The user that a token names, if it is valid at `now_s`, seconds since the epoch.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn verify(&self, token: &str, now_s: f64) -> Result<String, WebTokenRefusal> {
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(WebTokenRefusal::Malformed);
        };
        if token.len() > TOKEN_BYTES_MAX {
            return Err(WebTokenRefusal::Malformed);
        }
        let read: WebTokenHeader = decoded(header).ok_or(WebTokenRefusal::Malformed)?;
        // Only this algorithm, whatever the token says.
        if read.alg != "HS256" || read.crit.is_some() {
            return Err(WebTokenRefusal::Malformed);
        }
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| WebTokenRefusal::Malformed)?;
        let signed = &token[..header.len() + 1 + claims.len()];
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).map_err(|_| WebTokenRefusal::Signature)?;
        mac.update(signed.as_bytes());
        mac.verify_slice(&signature)
            .map_err(|_| WebTokenRefusal::Signature)?;
        let claims: WebTokenClaims = decoded(claims).ok_or(WebTokenRefusal::Claims)?;
        let username = claims.username.filter(|name| !name.is_empty());
        let (Some(username), Some(end)) = (username, claims.exp) else {
            return Err(WebTokenRefusal::Claims);
        };
        // NaN is no time, and JSON has none.
        let is_valid = now_s < end && claims.nbf.is_none_or(|begin| begin <= now_s);
        is_valid.then_some(username).ok_or(WebTokenRefusal::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "a secret of the fleet";

    fn signed(header: &str, claims: &str, secret: &str) -> String {
        let text = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
        mac.update(text.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        format!("{text}.{signature}")
    }

    #[test]
    fn only_whole_valid_tokens_are_taken() {
        use WebTokenRefusal::{Claims, Ended, Malformed, Signature};
        let key = WebTokenKey::new(SECRET).expect("long enough");
        let verify = |token: &str| key.verify(token, 1000.0);
        let header = r#"{"alg":"HS256","typ":"JWT"}"#;
        let good = signed(header, r#"{"username":"ann","exp":1001}"#, SECRET);
        assert_eq!(verify(&good), Ok("ann".to_owned()));
        for (claims, refusal) in [
            (r#"{"username":"ann","exp":1000}"#, Ended),
            (r#"{"username":"ann","exp":2000,"nbf":1500}"#, Ended),
            (r#"{"username":"ann"}"#, Claims),
            (r#"{"exp":2000}"#, Claims),
            (r#"{"username":"","exp":2000}"#, Claims),
            (r#"{"username":7,"exp":2000}"#, Claims),
            (r#"{"username":"ann","exp":"soon"}"#, Claims),
            ("[]", Claims),
        ] {
            assert_eq!(
                verify(&signed(header, claims, SECRET)),
                Err(refusal),
                "{claims}"
            );
        }
        let claims = r#"{"username":"ann","exp":2000}"#;
        for (header, refusal) in [
            (r#"{"alg":"none"}"#, Malformed),
            (r#"{"alg":"HS512"}"#, Malformed),
            (r#"{"alg":"RS256"}"#, Malformed),
            (r#"{"alg":"HS256","crit":["x"]}"#, Malformed),
            (r#"{"typ":"JWT"}"#, Malformed),
            ("nonsense", Malformed),
        ] {
            assert_eq!(
                verify(&signed(header, claims, SECRET)),
                Err(refusal),
                "{header}"
            );
        }
        let foreign = signed(header, claims, "another secret of it");
        assert_eq!(verify(&foreign), Err(Signature));
        let (text, _) = good.rsplit_once('.').expect("three parts");
        assert_eq!(verify(text), Err(Malformed));
        assert_eq!(verify(&format!("{text}.")), Err(Signature));
        assert_eq!(verify(&format!("{good}.x")), Err(Malformed));
        assert_eq!(verify(&"x".repeat(100_000)), Err(Malformed));
        assert!(WebTokenKey::new("short").is_none());
        assert_eq!(format!("{key:?}"), "WebTokenKey");
    }

    proptest! {
        #[test]
        fn a_changed_token_is_refused(at in 0_usize..100, byte in any::<u8>()) {
            let key = WebTokenKey::new(SECRET).expect("long enough");
            let good = signed(r#"{"alg":"HS256"}"#, r#"{"username":"ann","exp":1001}"#, SECRET);
            let mut changed = good.clone().into_bytes();
            let at = at % changed.len();
            changed[at] = byte;
            if let Ok(changed) = String::from_utf8(changed)
                && changed != good
            {
                prop_assert!(key.verify(&changed, 1000.0).is_err());
            }
        }

        #[test]
        fn no_text_is_taken(text in "[A-Za-z0-9_.-]{0,200}") {
            let key = WebTokenKey::new(SECRET).expect("long enough");
            prop_assert!(key.verify(&text, 0.0).is_err());
        }
    }
}
