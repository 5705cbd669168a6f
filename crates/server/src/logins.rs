//! Slows failed logins down, for each address by itself; knows which logins are the same again.
//!
//! Invariant: a failed login is answered late, the later the more of them came from its address
//! lately. What is remembered has a bound.

use marigram_service::Identity;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;
/// After this time without a failure, an address is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);
/// The pause after the first failure; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Failed logins by address.
#[derive(Debug, Default)]
pub(crate) struct FailedLogins {
    known: Mutex<HashMap<IpAddr, AddressFailures>>,
}

#[derive(Clone, Copy, Debug)]
struct AddressFailures {
    count: u32,
    last: Instant,
}

impl FailedLogins {
    /// Notes a failed login, and waits before it is answered.
    pub(crate) async fn slow_down(&self, address: IpAddr) {
        let pause = self.note(address, Instant::now());
        tokio::time::sleep(pause).await;
    }

    fn note(&self, address: IpAddr, now: Instant) -> Duration {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |failures: &AddressFailures| {
            now.saturating_duration_since(failures.last) > FORGOTTEN_AFTER
        };
        if known.len() >= ADDRESSES_MAX && !known.contains_key(&address) {
            known.retain(|_, failures| !is_old(failures));
            if known.len() >= ADDRESSES_MAX {
                // An attack from everywhere: the newest address takes the place of any other.
                let any = known.keys().next().copied();
                any.and_then(|any| known.remove(&any));
            }
        }
        let failures = known.entry(address).or_insert(AddressFailures {
            count: 0,
            last: now,
        });
        if is_old(failures) {
            failures.count = 0;
        }
        let pause = PAUSE.saturating_mul(1 << failures.count.min(16));
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        pause.min(PAUSE_MAX)
    }
}

/// Logins that repeat within this time are one.
const SAME_LOGIN: Duration = Duration::from_hours(1);

/// Logins by address and user, of protocols that repeat them with each request.
#[derive(Debug, Default)]
pub(crate) struct RecentLogins {
    known: Mutex<HashMap<(IpAddr, Identity), Instant>>,
}

impl RecentLogins {
    /// Whether this login was not seen within the last hour, as far as it is remembered.
    pub(crate) fn is_first(&self, address: IpAddr, identity: &Identity, now: Instant) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (address, identity.clone());
        let is_new = |since: &Instant| now.saturating_duration_since(*since) >= SAME_LOGIN;
        if known.get(&key).is_some_and(|since| !is_new(since)) {
            return false;
        }
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, since| !is_new(since));
            if known.len() >= ADDRESSES_MAX {
                known.clear();
            }
        }
        known.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_for_each_address_and_are_forgotten() {
        let logins = FailedLogins::default();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let begin = Instant::now();
        let pauses: Vec<_> = (0..8)
            .map(|_| logins.note(one, begin).as_millis())
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(logins.note(other, begin), PAUSE);
        let later = begin + FORGOTTEN_AFTER + Duration::from_secs(1);
        assert_eq!(logins.note(one, later), PAUSE);
        for number in 0..2 * ADDRESSES_MAX as u32 {
            logins.note(IpAddr::from(number.to_be_bytes()), later);
        }
        let known = logins.known.lock().expect("no panic").len();
        assert!(known <= ADDRESSES_MAX, "{known}");
    }

    #[test]
    fn a_login_is_told_once_an_hour() {
        let logins = RecentLogins::default();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let (ann, begin) = (Identity::of_password("ann", 1), Instant::now());
        assert!(logins.is_first(one, &ann, begin));
        assert!(!logins.is_first(one, &ann, begin + SAME_LOGIN / 2));
        assert!(logins.is_first(other, &ann, begin));
        assert!(logins.is_first(one, &Identity::of_password("bob", 1), begin));
        assert!(logins.is_first(one, &ann, begin + SAME_LOGIN));
        for number in 0..3 * ADDRESSES_MAX {
            let user = Identity::of_password(&number.to_string(), 1);
            assert!(logins.is_first(one, &user, begin));
        }
        assert!(logins.known.lock().expect("no panic").len() <= ADDRESSES_MAX);
    }
}
