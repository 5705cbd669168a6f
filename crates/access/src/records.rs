//! The catalog as records: a key and JSON for each user and token, so that a change writes only what
//! changed. Whoever stores them answers for checksums; a catalog that contradicts itself is refused.
//!
//! | key | what |
//! |---|---|
//! | `state` | whether clients must log in, the last token's number, and the secret behind decoys |
//! | `user:NAME` | a user or role |
//! | `token:NUMBER` | a token, without its text |

use crate::catalog::AccessCatalog;
use crate::error::AccessError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Records by key.
pub type AccessRecords = BTreeMap<String, Arc<[u8]>>;

const STATE: &str = "state";
const USER: &str = "user:";
const TOKEN: &str = "token:";

/// What belongs to no user and no token.
#[derive(Serialize, Deserialize)]
struct CatalogHead {
    is_closed: bool,
    last_token: u64,
    #[serde(with = "crate::base64_bytes")]
    decoy_secret: [u8; 32],
}

fn record(value: &impl Serialize) -> Result<Arc<[u8]>, AccessError> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes.map_err(|error| AccessError::Unusable(error.to_string()))?;
    Ok(bytes.into())
}

fn read<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, AccessError> {
    serde_json::from_slice(bytes).map_err(|error| {
        AccessError::Damaged(format!("its record '{key}' is not readable: {error}"))
    })
}

/// The records of a catalog; none of an empty one.
///
/// # Errors
/// `Unusable` if the catalog cannot be written as JSON.
pub fn to_records(catalog: &AccessCatalog) -> Result<AccessRecords, AccessError> {
    let mut records = AccessRecords::new();
    if catalog.users.is_empty() {
        return Ok(records);
    }
    let head = CatalogHead {
        is_closed: catalog.is_closed,
        last_token: catalog.last_token,
        decoy_secret: catalog.decoy_secret,
    };
    records.insert(STATE.to_owned(), record(&head)?);
    for (name, user) in &catalog.users {
        records.insert(format!("{USER}{name}"), record(user)?);
    }
    for (number, token) in &catalog.tokens {
        records.insert(format!("{TOKEN}{number}"), record(token)?);
    }
    Ok(records)
}

/// The catalog that records hold.
///
/// # Errors
/// `Damaged`: a record is not readable or missing, a later version wrote it, or the records
/// contradict each other.
pub fn from_records(records: &AccessRecords) -> Result<AccessCatalog, AccessError> {
    let mut catalog = AccessCatalog::default();
    let mut has_head = false;
    for (key, bytes) in records {
        if let Some(name) = key.strip_prefix(USER) {
            catalog.users.insert(name.to_owned(), read(key, bytes)?);
        } else if let Some(number) = key.strip_prefix(TOKEN) {
            let number = number.parse().map_err(|_| unknown(key))?;
            catalog.tokens.insert(number, read(key, bytes)?);
        } else if key == STATE {
            let head: CatalogHead = read(key, bytes)?;
            (catalog.last_token, catalog.decoy_secret) = (head.last_token, head.decoy_secret);
            catalog.is_closed = head.is_closed;
            has_head = true;
        } else {
            return Err(unknown(key));
        }
    }
    // A catalog that lost its users would let everyone in.
    if has_head == catalog.users.is_empty() {
        let message = "its users and its state do not belong together";
        return Err(AccessError::Damaged(message.to_owned()));
    }
    catalog.checked()
}

fn unknown(key: &str) -> AccessError {
    AccessError::Damaged(format!("this program does not know its record '{key}'"))
}

/// What turns the records `before` into `after`: keys with their new record, `None` where it goes.
#[must_use]
pub fn changed_records(
    before: &AccessRecords,
    after: &AccessRecords,
) -> Vec<(String, Option<Arc<[u8]>>)> {
    let put = after
        .iter()
        .filter(|(key, bytes)| before.get(*key) != Some(*bytes))
        .map(|(key, bytes)| (key.clone(), Some(Arc::clone(bytes))));
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    put.chain(removed.map(|key| (key.clone(), None))).collect()
}
