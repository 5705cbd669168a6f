//! A quick digest of a password, to recognize within one process what the slow check found right.

use crate::scram_verifier::{Key, hmac};
use rand::Rng;
use std::fmt;
use subtle::ConstantTimeEq;

/// HMAC-SHA-256 of a user's name and password, with a key that never leaves the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordDigest(Key);

impl PasswordDigest {
    /// A new random key.
    #[must_use]
    pub fn new_key() -> [u8; 32] {
        let mut key = Key::default();
        rand::rng().fill_bytes(&mut key);
        key
    }

    /// The digest of a user's password.
    #[must_use]
    pub fn new(key: &[u8; 32], user: &str, password: &str) -> Self {
        let mut text = (user.len() as u64).to_le_bytes().to_vec();
        text.extend_from_slice(user.as_bytes());
        text.extend_from_slice(password.as_bytes());
        Self(hmac(key, &text))
    }

    /// Whether two digests are the same; the comparison takes the same time wherever they differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        bool::from(self.0.ct_eq(&other.0))
    }
}

impl fmt::Debug for PasswordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordDigest")
    }
}
