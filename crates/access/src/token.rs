//! Tokens: secrets of programs, with fewer rights than their owner if wanted, and with an end.

use crate::privileges::{AccessRights, DatabasePrivileges};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// What a token's text begins with, so that searches for leaked secrets find it.
const PREFIX: &str = "mgt_";
const SECRET_BYTES: usize = 32;

/// The text of a token, which is shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// A new secret of 256 random bits.
    pub(crate) fn new() -> Self {
        let mut bytes = [0; SECRET_BYTES];
        rand::rng().fill_bytes(&mut bytes);
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text, to show it to its owner.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> TokenHash {
        hash_of(&self.0)
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret")
    }
}

/// SHA-256 of a token's text.
pub(crate) type TokenHash = [u8; 32];

/// What is stored of a token's text. A plain hash suffices: 256 random bits cannot be guessed.
pub(crate) fn hash_of(secret: &str) -> TokenHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// What a token may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenScope {
    /// Whatever its owner may do.
    Owner,
    /// What is named, as far as its owner may do it; never what only administrators may.
    Databases(BTreeMap<String, DatabasePrivileges>),
}

impl TokenScope {
    /// The rights of the token of an owner with `rights`.
    pub(crate) fn limit(&self, rights: AccessRights) -> AccessRights {
        let Self::Databases(named) = self else {
            return rights;
        };
        let databases = named.iter().filter_map(|(database, privileges)| {
            let held = rights.within(database) & *privileges;
            (!held.is_empty()).then(|| (database.clone(), held))
        });
        AccessRights {
            is_administrator: false,
            databases: databases.collect(),
        }
    }
}

/// A token, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// Whose rights it has.
    pub owner: String,
    /// What its owner wrote of it.
    pub description: String,
    /// What it may do.
    pub scope: TokenScope,
    /// When it was made, ns since the Unix epoch.
    pub created_ns: i64,
    /// From when it is refused, ns since the Unix epoch; never if absent.
    pub expires_ns: Option<i64>,
    /// SHA-256 of its text.
    #[serde(with = "crate::base64_bytes")]
    pub(crate) hash: TokenHash,
}

impl AccessToken {
    /// Whether it is refused at a time, because it has expired.
    #[must_use]
    pub fn has_expired(&self, now_ns: i64) -> bool {
        self.expires_ns.is_some_and(|end| now_ns >= end)
    }
}
