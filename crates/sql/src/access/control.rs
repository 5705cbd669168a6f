//! The live catalog of users, roles and tokens.

use super::checked_passwords::CheckedPasswords;
use super::refusals::refused;
use marigram_access::{
    AccessCatalog, AccessError, AccessRecords, AccessRights, PasswordVerifiers, changed_records,
    from_records, to_records,
};
use marigram_engine::{Engine, EngineError};
use marigram_service::{Identity, IdentityProof, Result, ServiceError, wrong_password};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;

/// Most clients whose rights are kept at once; they are computed again when needed.
const RIGHTS_KEPT_MAX: usize = 10_000;

/// Users, roles and tokens of one database.
#[derive(Debug)]
pub struct AccessControl {
    engine: Engine,
    state: RwLock<Arc<AccessState>>,
    /// Orders the changes.
    changing: Mutex<()>,
    checked: CheckedPasswords,
}

/// The catalog at one moment, with what was computed from it.
#[derive(Debug, Default)]
struct AccessState {
    catalog: AccessCatalog,
    records: AccessRecords,
    rights: Mutex<HashMap<Identity, Arc<AccessRights>>>,
}

impl AccessControl {
    /// Reads the catalog of an open engine.
    ///
    /// # Errors
    /// If the catalog contradicts itself: the database must not open then.
    pub fn open(engine: Engine) -> Result<Self> {
        let records = engine.access_records().map_err(internal)?;
        let catalog = from_records(&records).map_err(refused)?;
        let state = AccessState {
            catalog,
            records,
            rights: Mutex::default(),
        };
        Ok(Self {
            engine,
            state: RwLock::new(Arc::new(state)),
            changing: Mutex::default(),
            checked: CheckedPasswords::new(),
        })
    }

    fn state(&self) -> Arc<AccessState> {
        Arc::clone(&self.state.read())
    }

    /// Whether everyone may do everything, because there are no users.
    pub fn is_open(&self) -> bool {
        self.state.read().catalog.is_open()
    }

    /// Looks into the catalog.
    pub fn read<T>(&self, look: impl FnOnce(&AccessCatalog) -> T) -> T {
        look(&self.state().catalog)
    }

    /// What a client may do now.
    ///
    /// # Errors
    /// [`ServiceError::Unauthenticated`] if it has no valid proof of who it is: it gave none, its
    /// user cannot log in any more, or its token has ended.
    pub fn rights(&self, identity: &Identity) -> Result<Arc<AccessRights>> {
        let state = self.state();
        if identity.proof == IdentityProof::Owner || state.catalog.is_open() {
            let owner = Identity::owner("");
            return Ok(state.kept(&owner, AccessRights::of_administrator));
        }
        let ended = |what: &str| {
            let message = format!("{what}; log in again");
            Err(ServiceError::Unauthenticated(message))
        };
        match identity.proof {
            IdentityProof::Password(number) => {
                let user = state.catalog.user(&identity.user);
                if !user.is_some_and(|user| user.can_log_in && user.number == number) {
                    return ended("the user cannot log in any more");
                }
                let catalog = &state.catalog;
                Ok(state.kept(identity, || catalog.rights_of(&identity.user)))
            }
            IdentityProof::Token(number) => {
                let now_ns = self.engine.now_ns();
                match state.catalog.rights_of_token(number, now_ns) {
                    Some(rights) => Ok(Arc::new(rights)),
                    None => ended("the token has expired"),
                }
            }
            _ => Err(ServiceError::Unauthenticated(
                "this server has users: log in with a name and a password, or with a token"
                    .to_owned(),
            )),
        }
    }

    /// What a login of this name is checked against.
    pub fn verifiers(&self, user: &str) -> PasswordVerifiers {
        self.state().catalog.verifiers_of(user)
    }

    /// The number of a user; 0 if there is none.
    pub fn user_number(&self, user: &str) -> u64 {
        self.read(|catalog| catalog.user(user).map_or(0, |user| user.number))
    }

    /// The user, if its password was checked lately and is still right.
    pub fn known_password(&self, user: &str, password: &str) -> Option<Identity> {
        let number = self.user_number(user);
        let is_known = self.checked.knows(user, password, &self.verifiers(user));
        is_known.then(|| Identity::of_password(user, number))
    }

    /// Checks a password. Takes some 30 ms, and 19 MiB meanwhile.
    ///
    /// # Errors
    /// [`ServiceError::Unauthenticated`] if it is not the password of a user who may log in.
    pub fn check_password(&self, user: &str, password: &str) -> Result<Identity> {
        let number = self.user_number(user);
        let verifiers = self.verifiers(user);
        if !verifiers.verify(password) {
            return Err(wrong_password());
        }
        self.checked.learn(user, password, &verifiers);
        Ok(Identity::of_password(user, number))
    }

    /// Whose token a text is.
    pub fn check_token(&self, text: &str) -> Option<Identity> {
        let state = self.state();
        let (number, token, _) = state.catalog.token_of(text, self.engine.now_ns())?;
        Some(Identity {
            user: token.owner.clone(),
            proof: IdentityProof::Token(number),
        })
    }

    /// Changes the catalog: durably, and then for everyone. Blocks.
    ///
    /// # Errors
    /// Those of `change`, and of the disk; nothing changes then.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut AccessCatalog) -> std::result::Result<T, AccessError>,
    ) -> Result<T> {
        let _one_at_a_time = self.changing.lock();
        let state = self.state();
        let mut catalog = state.catalog.clone();
        let done = change(&mut catalog).map_err(refused)?;
        let records = to_records(&catalog).map_err(refused)?;
        let changed = changed_records(&state.records, &records);
        if changed.is_empty() {
            return Ok(done);
        }
        self.engine.put_access(changed).map_err(internal)?;
        *self.state.write() = Arc::new(AccessState {
            catalog,
            records,
            rights: Mutex::default(),
        });
        Ok(done)
    }
}

impl AccessState {
    /// The rights of a client, computed when they are first asked for.
    fn kept(
        &self,
        identity: &Identity,
        compute: impl FnOnce() -> AccessRights,
    ) -> Arc<AccessRights> {
        let mut kept = self.rights.lock();
        if let Some(known) = kept.get(identity) {
            return Arc::clone(known);
        }
        if kept.len() >= RIGHTS_KEPT_MAX {
            kept.clear();
        }
        let rights = Arc::new(compute());
        kept.insert(identity.clone(), Arc::clone(&rights));
        rights
    }
}

fn internal(error: EngineError) -> ServiceError {
    match error {
        EngineError::ReadOnly(_) => ServiceError::ReadOnly(error.to_string()),
        error => ServiceError::Internal(error.to_string()),
    }
}
