//! Hosts under which the server accepts requests.
//!
//! The server always accepts `localhost`, loopback addresses, and the address that a connection
//! came to. A page can make a browser send one of these in `Host` only if it was itself loaded from
//! there, whatever its own name is rebound to. The operator [allows](HostRule) every other name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host and an optional port, as in `Host`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

/// A name in lower case or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Authority {
    /// Parses `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                let address = IpAddr::V6(address).to_canonical();
                let port = match port.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if port.is_empty() => None,
                    None => return None,
                };
                (Host::Address(address), port)
            }
            None => {
                let (name, port) = match text.split_once(':') {
                    Some((name, port)) => (name, Some(port)),
                    None => (text, None),
                };
                (Host::parse(name)?, port)
            }
        };
        let port = match port {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
            None => None,
        };
        Some(Self { host, port })
    }

    /// Whether this is an address of the machine itself: loopback, or the address `local` that the
    /// connection came to.
    pub(super) fn is_own(&self, local: IpAddr) -> bool {
        match &self.host {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => address.is_loopback() || *address == local.to_canonical(),
        }
    }
}

impl Host {
    /// Parses a name or an IPv4 address.
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        // A name may end in the dot of the DNS root.
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = !name.is_empty() && name.len() <= 255 && name.bytes().all(is_plain);
        is_name.then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// An entry of `allowed_hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostRule {
    /// `*`: every host.
    Any,
    /// `*.example.com`: every name below it, but not the name itself; stored as `.example.com`,
    /// with its port if it has one.
    Below(String, Option<u16>),
    /// This host; on any port if the entry has none.
    Exactly(Authority),
}

impl HostRule {
    /// Parses an entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (is_below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        match Authority::parse(rest) {
            Some(Authority {
                host: Host::Name(name),
                port,
            }) if is_below => Ok(Self::Below(format!(".{name}"), port)),
            Some(authority) if !is_below => Ok(Self::Exactly(authority)),
            _ => Err(format!(
                "'{}' is not a host; write example.com, example.com:8086, *.example.com, an address, \
                 or * for all",
                text.escape_debug()
            )),
        }
    }

    /// Whether the rule allows `authority`.
    pub(super) fn allows(&self, authority: &Authority) -> bool {
        let fits = |port: Option<u16>| port.is_none() || port == authority.port;
        match (self, &authority.host) {
            (Self::Any, _) => true,
            (Self::Below(end, port), Host::Name(name)) => name.ends_with(end) && fits(*port),
            (Self::Below(..), Host::Address(_)) => false,
            (Self::Exactly(rule), host) => rule.host == *host && fits(rule.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_itself_is_known_under_few_names() {
        let local = "192.168.7.5".parse().unwrap();
        let own = |text: &str| Authority::parse(text).is_some_and(|found| found.is_own(local));
        for text in [
            "localhost",
            "LocalHost:8086",
            "localhost.",
            "127.0.0.1",
            "127.8.9.1:1",
            "[::1]:8086",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "192.168.7.5:8086",
            "[::ffff:192.168.7.5]:80",
        ] {
            assert!(own(text), "{text}");
        }
        for text in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:8086",
            "127.0.0.1.evil.example",
            "127.1",
            "0x7f.1",
            "2130706433",
            "0.0.0.0",
            "[::]",
            "[::1",
            "::1",
            "[::1]x",
            "localhost:",
            "localhost:+80",
            "localhost:99999",
            "localhost:80:80",
            "user@localhost",
            "local host",
            "192.168.7.6",
            "löcalhost",
        ] {
            assert!(!own(text), "{text}");
        }
    }

    #[test]
    fn rules_allow_what_they_say() {
        let allows = |rule: &str, text: &str| {
            HostRule::new(rule)
                .unwrap()
                .allows(&Authority::parse(text).unwrap())
        };
        assert!(allows("*", "evil.example"));
        assert!(allows("Db.Example.com", "db.example.COM:8086"));
        assert!(allows("db.example.com:8086", "db.example.com:8086"));
        assert!(!allows("db.example.com:8086", "db.example.com"));
        assert!(!allows("db.example.com", "x.db.example.com"));
        assert!(allows("*.example.com", "a.b.example.com:1"));
        assert!(!allows("*.example.com", "example.com"));
        assert!(!allows("*.example.com", "evilexample.com"));
        assert!(!allows("*.example.com:80", "a.example.com:81"));
        assert!(allows("10.0.0.7", "10.0.0.7:8086"));
        assert!(allows("[fe80::7]", "[fe80::7]:8086"));
        for wrong in [
            "",
            "http://a",
            "a/b",
            "*.",
            "**",
            "a*b",
            "*.10.0.0.1",
            "a:b",
        ] {
            assert!(HostRule::new(wrong).is_err(), "{wrong}");
        }
    }
}
