//! The catalog as bytes: magic, version, length, JSON, checksum. Numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `MGACCESS` |
//! | 4 | version, 1 |
//! | 8 | length of the JSON |
//! | length | the catalog as JSON |
//! | 8 | XXH3 of everything before |

use crate::catalog::AccessCatalog;
use crate::error::AccessError;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"MGACCESS";
const VERSION: u32 = 1;
const HEAD: usize = 20;
const CHECKSUM: usize = 8;

/// The bytes of a catalog.
///
/// # Errors
/// `Unusable` if the catalog cannot be written as JSON.
pub fn encode(catalog: &AccessCatalog) -> Result<Vec<u8>, AccessError> {
    let body = serde_json::to_vec(catalog);
    let body = body.map_err(|error| AccessError::Unusable(error.to_string()))?;
    let mut bytes = Vec::with_capacity(HEAD + body.len() + CHECKSUM);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&body);
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Reads what [`encode`] wrote.
///
/// # Errors
/// `Damaged`: bytes are missing, added or changed, a later version wrote them, or the catalog
/// contradicts itself.
pub fn decode(bytes: &[u8]) -> Result<AccessCatalog, AccessError> {
    let damaged = |why: &str| AccessError::Damaged(why.to_owned());
    let rest = bytes.strip_prefix(MAGIC);
    let rest = rest.ok_or_else(|| damaged("it does not begin as one"))?;
    let (version, rest) = rest
        .split_first_chunk()
        .ok_or_else(|| damaged("it ends within its head"))?;
    let (length, rest) = rest
        .split_first_chunk()
        .ok_or_else(|| damaged("it ends within its head"))?;
    let (body, checksum) = rest
        .split_last_chunk()
        .ok_or_else(|| damaged("it has no checksum"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let message = format!("it has version {version}, and this program reads version {VERSION}");
        return Err(AccessError::Damaged(message));
    }
    if u64::from_le_bytes(*length) != body.len() as u64 {
        return Err(damaged("its length is not the one it states"));
    }
    if u64::from_le_bytes(*checksum) != xxh3_64(&bytes[..bytes.len() - CHECKSUM]) {
        return Err(damaged("its checksum is wrong"));
    }
    let catalog: AccessCatalog =
        serde_json::from_slice(body).map_err(|error| AccessError::Damaged(error.to_string()))?;
    catalog.checked()
}
