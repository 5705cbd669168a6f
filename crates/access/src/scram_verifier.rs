//! What is stored of a password for SCRAM-SHA-256 (RFC 5802, RFC 7677).

use hmac::{Hmac, KeyInit, Mac};
use rand::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Rounds of PBKDF2 for new passwords: four times PostgreSQL's default, and below the 100,000 above
/// which clients refuse (`postgres-protocol`, the JDBC driver).
const ITERATIONS: u32 = 16_384;
const ITERATIONS_MAX: u32 = 100_000;
const SALT_BYTES: usize = 16;

/// A key of SCRAM, or a signature.
pub(crate) type Key = [u8; 32];

/// What proves that a client knows a password, without being enough to log in with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScramVerifier {
    pub(crate) iterations: u32,
    #[serde(with = "crate::base64_bytes")]
    pub(crate) salt: Vec<u8>,
    #[serde(with = "crate::base64_bytes")]
    pub(crate) stored_key: Vec<u8>,
    #[serde(with = "crate::base64_bytes")]
    pub(crate) server_key: Vec<u8>,
}

/// HMAC-SHA-256.
pub(crate) fn hmac(key: &[u8], text: &[u8]) -> Key {
    // HMAC takes keys of every length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return Key::default();
    };
    mac.update(text);
    mac.finalize().into_bytes().into()
}

impl ScramVerifier {
    pub(crate) fn from_password(password: &str) -> Self {
        let mut salt = vec![0; SALT_BYTES];
        rand::rng().fill_bytes(&mut salt);
        Self::with_salt(password, salt, ITERATIONS)
    }

    pub(crate) fn with_salt(password: &str, salt: Vec<u8>, iterations: u32) -> Self {
        // As PostgreSQL does: a password with characters that SASLprep prohibits is used as it is.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(prepared.as_bytes(), &salt, iterations, &mut salted);
        let client_key = hmac(&salted, b"Client Key");
        Self {
            iterations,
            salt,
            stored_key: Sha256::digest(client_key).to_vec(),
            server_key: hmac(&salted, b"Server Key").to_vec(),
        }
    }

    /// A verifier that no password has.
    pub(crate) fn decoy(name: &str, secret: &Key) -> Self {
        let salt = hmac(secret, name.as_bytes());
        Self {
            iterations: ITERATIONS,
            salt: salt[..SALT_BYTES].to_vec(),
            stored_key: Vec::new(),
            server_key: Vec::new(),
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        (1..=ITERATIONS_MAX).contains(&self.iterations)
            && (8..=64).contains(&self.salt.len())
            && self.stored_key.len() == 32
            && self.server_key.len() == 32
    }
}
