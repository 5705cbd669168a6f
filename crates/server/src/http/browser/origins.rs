//! Origins of pages that may use the server.

use super::hosts::{Authority, HostRule};

/// An entry of `allowed_origins`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OriginRule {
    /// `*`: every page.
    Any,
    /// `null`: pages without an origin (from a file, in a sandbox).
    Null,
    /// A scheme and a host. Without a port, the scheme's default port; `*` for any.
    At {
        scheme: String,
        host: HostRule,
        any_port: bool,
    },
}

/// The default port of a scheme, which browsers omit.
fn port_of(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// Splits a text such as `https://example.com` into scheme and host; adds the scheme's port if none
/// is named.
fn split(text: &str) -> Option<(&str, Authority)> {
    let (scheme, rest) = text.split_once("://")?;
    let mut authority = Authority::parse(rest)?;
    authority.port = authority.port.or(port_of(scheme));
    Some((scheme, authority))
}

/// Whether `origin` is that of the server that is asked as `host`: of a page that the server
/// itself, or a proxy in front of it, served.
pub(super) fn is_of(origin: &str, host: &Authority) -> bool {
    let Some((scheme, authority)) = split(origin) else {
        return false;
    };
    let port = host.port.or(port_of(scheme));
    matches!(scheme, "http" | "https") && authority.host == host.host && authority.port == port
}

impl OriginRule {
    /// Parses an entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        match text {
            "*" => return Ok(Self::Any),
            "null" => return Ok(Self::Null),
            _ => {}
        }
        let wrong = || {
            format!(
                "'{}' is not an origin; write https://example.com, http://localhost:3000, \
                 https://*.example.com, http://localhost:* for any port, or * for all",
                text.escape_debug()
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let scheme = scheme.to_ascii_lowercase();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_word) {
            return Err(wrong());
        }
        let (rest, any_port) = match rest.strip_suffix(":*") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let mut host = HostRule::new(rest).map_err(|_| wrong())?;
        let default = port_of(&scheme).filter(|_| !any_port);
        match &mut host {
            // Most readers would take `https://*` for `*`, but it would mean something else.
            HostRule::Any => return Err(wrong()),
            HostRule::Below(_, port) => *port = port.or(default),
            HostRule::Exactly(authority) => authority.port = authority.port.or(default),
        }
        Ok(Self::At {
            scheme,
            host,
            any_port,
        })
    }

    /// Whether the rule allows pages of `origin`.
    pub(super) fn allows(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Null => origin == "null",
            Self::At {
                scheme,
                host,
                any_port,
            } => split(origin).is_some_and(|(its_scheme, mut authority)| {
                if *any_port {
                    authority.port = None;
                }
                its_scheme.eq_ignore_ascii_case(scheme) && host.allows(&authority)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_allow_what_they_say() {
        let allows = |rule: &str, origin: &str| OriginRule::new(rule).unwrap().allows(origin);
        assert!(allows("*", "null") && allows("*", "https://evil.example"));
        assert!(allows("null", "null") && !allows("null", "http://null"));
        assert!(allows("https://example.com", "https://example.com"));
        assert!(allows("https://example.com:443", "https://example.com"));
        assert!(!allows("https://example.com", "http://example.com"));
        assert!(!allows("https://example.com", "https://example.com:8443"));
        assert!(!allows(
            "https://example.com",
            "https://example.com.evil.example"
        ));
        assert!(!allows("https://example.com", "null"));
        assert!(allows("http://localhost:3000", "http://localhost:3000"));
        assert!(!allows("http://localhost:3000", "http://localhost:3001"));
        assert!(!allows("http://localhost", "http://localhost:3001"));
        assert!(allows("http://localhost:*", "http://localhost:3001"));
        assert!(allows("http://localhost:*", "http://localhost"));
        assert!(allows("https://*.example.com", "https://a.b.example.com"));
        assert!(!allows("https://*.example.com", "https://example.com"));
        assert!(!allows("https://*.example.com", "https://a.example.com:1"));
        assert!(allows("https://*.example.com:*", "https://a.example.com:1"));
        assert!(allows("chrome-extension://abc", "chrome-extension://abc"));
        for wrong in [
            "",
            "example.com",
            "https://",
            "https://*",
            "https://a/b",
            "://a",
            "a b://c",
        ] {
            assert!(OriginRule::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pages_of_the_server_itself_are_no_strangers() {
        let is_of = |origin: &str, host: &str| is_of(origin, &Authority::parse(host).unwrap());
        assert!(is_of("http://localhost:8086", "localhost:8086"));
        assert!(is_of("http://[::1]:8086", "[::1]:8086"));
        // A proxy that terminates TLS.
        assert!(is_of("https://db.example.com", "db.example.com"));
        assert!(!is_of("http://localhost:3000", "localhost:8086"));
        assert!(!is_of("http://127.0.0.1:8086", "localhost:8086"));
        assert!(!is_of("http://localhost", "localhost:8086"));
        assert!(!is_of("ftp://localhost:8086", "localhost:8086"));
        assert!(!is_of("null", "localhost:8086"));
    }
}
