//! Which passwords were found right, so that a client that sends its password with each request
//! waits for the slow check once.
//!
//! Invariant: a password is only known for the verifiers against which it was checked, so a change of
//! the password forgets it.

use marigram_access::{PasswordDigest, PasswordVerifiers};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Most users whose password is remembered.
const USERS_MAX: usize = 10_000;

/// The last right password of each user, as a digest with a key of this process.
#[derive(Debug)]
pub(super) struct CheckedPasswords {
    key: [u8; 32],
    known: Mutex<HashMap<String, (PasswordDigest, PasswordVerifiers)>>,
}

impl CheckedPasswords {
    pub(super) fn new() -> Self {
        Self {
            key: PasswordDigest::new_key(),
            known: Mutex::default(),
        }
    }

    /// Whether the password was checked against these verifiers, and was right.
    pub(super) fn knows(&self, user: &str, password: &str, verifiers: &PasswordVerifiers) -> bool {
        let digest = PasswordDigest::new(&self.key, user, password);
        let known = self.known.lock();
        let found = known.get(user);
        found.is_some_and(|(right, of)| right.is_same(&digest) && of == verifiers)
    }

    /// Remembers a right password.
    pub(super) fn learn(&self, user: &str, password: &str, verifiers: &PasswordVerifiers) {
        let digest = PasswordDigest::new(&self.key, user, password);
        let mut known = self.known.lock();
        if known.len() >= USERS_MAX && !known.contains_key(user) {
            known.clear();
        }
        known.insert(user.to_owned(), (digest, verifiers.clone()));
    }
}
