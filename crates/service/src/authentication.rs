//! Who a client is, and what it may do.
//!
//! A server asks [`Authentication`] who sends a request, and puts the [`Identity`] that it gets into
//! the session. What an identity may do is asked again with each statement, so that a revoked right
//! ends with the statement that runs.
//!
//! Invariant: without users, every client may do everything; with users, only those who proved who
//! they are may do anything.

use crate::error::{Result, ServiceError};
use async_trait::async_trait;
use marigram_access::{AccessRights, PasswordVerifiers};
use std::sync::{Arc, LazyLock};

/// How a client proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityProof {
    /// It is the process itself: a program with an embedded database, or work in the background. It
    /// may do everything.
    Owner,
    /// Not at all. It may do everything if there are no users, and nothing otherwise.
    Nothing,
    /// By the password of the user with this number. A later user of the same name has another one.
    Password(u64),
    /// By the token of this number, which belongs to the user.
    Token(u64),
}

/// Who a client is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The user's name; unless it was proved, what the client says.
    pub user: String,
    /// How the client proved it.
    pub proof: IdentityProof,
}

impl Identity {
    /// The process itself, under a name for logs.
    #[must_use]
    pub fn owner(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            proof: IdentityProof::Owner,
        }
    }

    /// A client that says who it is, and proves nothing.
    #[must_use]
    pub fn unproved(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            proof: IdentityProof::Nothing,
        }
    }

    /// A user whose password was checked, with the user's number from before that check.
    #[must_use]
    pub fn of_password(user: &str, number: u64) -> Self {
        Self {
            user: user.to_owned(),
            proof: IdentityProof::Password(number),
        }
    }
}

/// The rights of the process itself.
pub(crate) fn owners_rights() -> Arc<AccessRights> {
    static OF_OWNER: LazyLock<Arc<AccessRights>> =
        LazyLock::new(|| Arc::new(AccessRights::of_administrator()));
    Arc::clone(&OF_OWNER)
}

/// Tells who clients are, and what they may do.
#[async_trait]
pub trait Authentication: Send + Sync {
    /// Whether everyone may do everything, because there are no users.
    fn is_open(&self) -> bool;

    /// What a client may do now.
    ///
    /// # Errors
    /// [`ServiceError::Unauthenticated`] if there are users, and it has no valid proof of being one.
    fn rights(&self, identity: &Identity) -> Result<Arc<AccessRights>>;

    /// Checks a password, which takes some 30 ms where it was not checked lately.
    ///
    /// # Errors
    /// [`ServiceError::Unauthenticated`] if it is not the password of a user who may log in: one
    /// sentence, whatever is wrong. `Busy` if too many passwords are being checked.
    async fn check_password(&self, user: &str, password: &str) -> Result<Identity>;

    /// Whose token a text is; `None` if it is none, or one that has ended.
    fn check_token(&self, text: &str) -> Option<Identity>;

    /// The number of a user, which a later user of the same name does not get; 0 if there is none.
    fn user_number(&self, user: &str) -> u64;

    /// What a proof by SCRAM is checked against; for a name that cannot log in, something that no
    /// proof fits.
    fn verifiers(&self, user: &str) -> PasswordVerifiers;
}

/// The answer to a login that failed.
#[must_use]
pub fn wrong_password() -> ServiceError {
    ServiceError::Unauthenticated("the user's name or password is wrong".to_owned())
}

/// Every client may do everything: for servers over a database without users.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAccess;

#[async_trait]
impl Authentication for OpenAccess {
    fn is_open(&self) -> bool {
        true
    }

    fn rights(&self, _: &Identity) -> Result<Arc<AccessRights>> {
        Ok(owners_rights())
    }

    async fn check_password(&self, user: &str, _: &str) -> Result<Identity> {
        Ok(Identity::unproved(user))
    }

    fn check_token(&self, _: &str) -> Option<Identity> {
        None
    }

    fn user_number(&self, _: &str) -> u64 {
        0
    }

    fn verifiers(&self, user: &str) -> PasswordVerifiers {
        PasswordVerifiers::decoy(user, &[0; 32])
    }
}
