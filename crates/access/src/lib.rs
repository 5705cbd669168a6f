//! Who may come in, and what they may do: users, roles, grants and tokens. No I/O, and no knowledge
//! of protocols other than SCRAM's messages.
//!
//! [`AccessCatalog`] is the state; [`to_records`] turns it into bytes, and [`from_records`] reads them. A
//! server looks up a client there, checks its [`PasswordVerifiers`] or its token, and asks the [`AccessRights`] that
//! result from it.
//!
//! # Invariants
//! - Neither a password nor the secret of a token is in the catalog, in its bytes, or in the `Debug`
//!   text of any type.
//! - The comparison of secrets takes the same time wherever they differ, and a check of a user who
//!   does not exist takes as long as one of a user who does ([`PasswordVerifiers::decoy`]).
//! - Roles do not contain each other, so following memberships always ends.

mod base64_bytes;
mod catalog;
mod digest;
mod error;
mod password;
mod privileges;
mod records;
mod scram;
mod scram_verifier;
mod token;

pub use catalog::{AccessCatalog, AccessUser};
pub use digest::PasswordDigest;
pub use error::AccessError;
pub use password::{PASSWORD_BYTES_MAX, PasswordVerifiers};
pub use privileges::{AccessRights, DatabasePrivileges};
pub use records::{AccessRecords, changed_records, from_records, to_records};
pub use scram::{ChannelBinding, ScramExchange, ScramRefusal};
pub use token::{AccessToken, TokenScope, TokenSecret};
