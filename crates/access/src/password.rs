//! Passwords, as what is stored of them: argon2id for clients that send their password, a SCRAM
//! verifier (RFC 5802, RFC 7677) for those that prove that they know it.

use crate::error::AccessError;
use crate::scram_verifier::ScramVerifier;
use argon2::{Algorithm, Argon2, Params, Version};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use subtle::ConstantTimeEq;

/// Longest password, in bytes. Longer ones are refused before they are hashed.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// Memory of argon2id, KiB; with the passes, the least that OWASP's Password Storage Cheat Sheet
/// recommends, because a server may check many passwords at once.
const MEMORY_KIB: u32 = 19 * 1024;
/// Most memory that a stored verifier may ask for, KiB.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const PASSES: u32 = 2;
const PASSES_MAX: u32 = 64;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// What is stored of a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordVerifiers {
    argon2id: Argon2Hash,
    scram: ScramVerifier,
}

/// A hash, and what it was made with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Argon2Hash {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    #[serde(with = "crate::base64_bytes")]
    salt: Vec<u8>,
    #[serde(with = "crate::base64_bytes")]
    hash: Vec<u8>,
}

impl PasswordVerifiers {
    /// The verifiers of a new password. It takes some 30 ms and 19 MiB.
    ///
    /// # Errors
    /// `Unusable` if the password is empty, too long, or has a NUL, which PostgreSQL's clients
    /// cannot send.
    pub fn from_password(password: &str) -> Result<Self, AccessError> {
        let refused = |why: String| Err(AccessError::Unusable(why));
        if password.is_empty() {
            return refused("a password must not be empty".to_owned());
        }
        if password.len() > PASSWORD_BYTES_MAX {
            let message = format!("a password has at most {PASSWORD_BYTES_MAX} bytes");
            return refused(message);
        }
        if password.contains('\0') {
            return refused("a password must not contain the character NUL".to_owned());
        }
        let mut argon2id = Argon2Hash {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: vec![0; SALT_BYTES],
            hash: Vec::new(),
        };
        rand::rng().fill_bytes(&mut argon2id.salt);
        let Some(hash) = argon2id.hash_of(password) else {
            return refused("argon2id refused the password".to_owned());
        };
        argon2id.hash = hash;
        Ok(Self {
            argon2id,
            scram: ScramVerifier::from_password(password),
        })
    }

    /// Verifiers that no password has, for a user who does not exist: a check of them takes as long
    /// as a check of a user's. `secret` is the server's own; the same name always gets the same salt,
    /// so that a client cannot tell by asking twice.
    #[must_use]
    pub fn decoy(name: &str, secret: &[u8; 32]) -> Self {
        let scram = ScramVerifier::decoy(name, secret);
        let argon2id = Argon2Hash {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: vec![0; SALT_BYTES],
            // No hash is as short.
            hash: Vec::new(),
        };
        Self { argon2id, scram }
    }

    /// Whether it is the password. It takes as long as [`PasswordVerifiers::from_password`].
    #[must_use]
    pub fn verify(&self, password: &str) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let hash = self.argon2id.hash_of(password);
        hash.is_some_and(|hash| bool::from(hash.ct_eq(&self.argon2id.hash)))
    }

    pub(crate) fn scram(&self) -> &ScramVerifier {
        &self.scram
    }

    /// Whether every part has a size and a cost that a check can afford.
    pub(crate) fn is_sound(&self) -> bool {
        let own = &self.argon2id;
        (8 * own.lanes.max(1)..=MEMORY_KIB_MAX).contains(&own.memory_kib)
            && (1..=PASSES_MAX).contains(&own.passes)
            && (1..=16).contains(&own.lanes)
            && (8..=64).contains(&own.salt.len())
            && own.hash.len() == HASH_BYTES
            && self.scram.is_sound()
    }
}

impl Argon2Hash {
    fn hash_of(&self, password: &str) -> Option<Vec<u8>> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(HASH_BYTES));
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.ok()?);
        let mut hash = vec![0; HASH_BYTES];
        let done = argon2.hash_password_into(password.as_bytes(), &self.salt, &mut hash);
        done.is_ok().then_some(hash)
    }
}

impl fmt::Debug for PasswordVerifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordVerifiers")
    }
}
