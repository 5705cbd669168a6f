//! Users, roles, their grants, and tokens.

use crate::error::AccessError;
use crate::password::PasswordVerifiers;
use crate::privileges::{AccessRights, DatabasePrivileges};
use crate::token::{AccessToken, TokenHash, TokenScope, TokenSecret, hash_of};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

const USERS_MAX: usize = 10_000;
const TOKENS_MAX: usize = 100_000;
/// Most databases in which one user has privileges, or one token.
const GRANTS_MAX: usize = 10_000;
/// Longest name of a user or database, and longest description of a token, bytes.
const NAME_BYTES_MAX: usize = 1024;

/// A user, or a role: a user who cannot log in, and whose rights others can get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessUser {
    /// A random number that tells this user from an earlier one of the same name; 0 for users that
    /// version 0.1 stored. [`AccessCatalog::create_user`] draws it.
    #[serde(default)]
    pub number: u64,
    /// Whether the user can log in. One who can, but has no password, has tokens only.
    pub can_log_in: bool,
    /// Whether the user may do everything.
    pub is_administrator: bool,
    /// What is stored of the password.
    pub password: Option<PasswordVerifiers>,
    /// Privileges by database.
    pub grants: BTreeMap<String, DatabasePrivileges>,
    /// Roles whose rights the user has, too.
    pub roles: BTreeSet<String>,
}

/// Users, roles and tokens. Until it is [closed](AccessCatalog::close), everyone may do everything.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AccessCatalog {
    pub(crate) users: BTreeMap<String, AccessUser>,
    pub(crate) tokens: BTreeMap<u64, AccessToken>,
    /// The number of the token that was made last. Numbers are not used again while there are users.
    pub(crate) last_token: u64,
    /// Whether clients must log in; an administrator can, then.
    pub(crate) is_closed: bool,
    /// From which the salts of users who do not exist come; drawn with the first user.
    pub(crate) decoy_secret: [u8; 32],
    /// Numbers of tokens. The time of a look-up tells nothing: who guesses a token cannot choose
    /// its hash.
    numbers: HashMap<TokenHash, u64>,
}

impl fmt::Debug for AccessCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessCatalog")
            .field("users", &self.users)
            .field("tokens", &self.tokens.len())
            .finish_non_exhaustive()
    }
}

impl AccessCatalog {
    /// Whether everyone may do everything.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.is_closed
    }

    /// Makes clients log in from now on, if there is an administrator who can; returns whether they
    /// must. Only the removal of the last user opens the catalog again.
    pub fn close(&mut self) -> bool {
        self.is_closed |= self.has_other_administrator("");
        self.is_closed
    }

    /// Users and roles by name.
    pub fn users(&self) -> impl Iterator<Item = (&str, &AccessUser)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// A user or role.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&AccessUser> {
        self.users.get(name)
    }

    /// Tokens by number.
    pub fn tokens(&self) -> impl Iterator<Item = (u64, &AccessToken)> {
        self.tokens.iter().map(|(number, token)| (*number, token))
    }

    /// Creates a user or role.
    ///
    /// # Errors
    /// `Exists`, `Unusable` for the name, `NoUser` for a role that does not exist, `Full`.
    pub fn create_user(&mut self, name: &str, mut user: AccessUser) -> Result<(), AccessError> {
        check_name("the name of a user", name)?;
        if self.users.contains_key(name) {
            return Err(AccessError::Exists(name.to_owned()));
        }
        if self.users.len() >= USERS_MAX {
            return Err(full("users and roles", USERS_MAX));
        }
        for role in &user.roles {
            self.held(role)?;
        }
        if self.users.is_empty() {
            rand::rng().fill_bytes(&mut self.decoy_secret);
        }
        user.number = rand::rng().next_u64().max(1);
        self.users.insert(name.to_owned(), user);
        Ok(())
    }

    /// What a login of this name is checked against: for a name that cannot log in with a password,
    /// something that no password fits, and that looks the same from outside.
    #[must_use]
    pub fn verifiers_of(&self, name: &str) -> PasswordVerifiers {
        let user = self.users.get(name).filter(|user| user.can_log_in);
        match user.and_then(|user| user.password.clone()) {
            Some(verifiers) => verifiers,
            None => PasswordVerifiers::decoy(name, &self.decoy_secret),
        }
    }

    /// Lets a user log in, or makes it a role.
    ///
    /// # Errors
    /// `NoUser`, `LastAdministrator`.
    pub fn set_login(&mut self, name: &str, can_log_in: bool) -> Result<(), AccessError> {
        self.held(name)?;
        if self.is_closed && !can_log_in && !self.has_other_administrator(name) {
            return Err(AccessError::LastAdministrator(name.to_owned()));
        }
        self.held_mut(name)?.can_log_in = can_log_in;
        Ok(())
    }

    /// Sets a password. Tokens stay valid.
    ///
    /// # Errors
    /// `NoUser`.
    pub fn set_password(
        &mut self,
        name: &str,
        password: PasswordVerifiers,
    ) -> Result<(), AccessError> {
        self.held_mut(name)?.password = Some(password);
        Ok(())
    }

    /// Makes a user an administrator, or one no longer.
    ///
    /// # Errors
    /// `NoUser`, `LastAdministrator`.
    pub fn set_administrator(&mut self, name: &str, is: bool) -> Result<(), AccessError> {
        self.held(name)?;
        if self.is_closed && !is && !self.has_other_administrator(name) {
            return Err(AccessError::LastAdministrator(name.to_owned()));
        }
        self.held_mut(name)?.is_administrator = is;
        Ok(())
    }

    /// Removes a user or role, its tokens, and its membership everywhere.
    ///
    /// # Errors
    /// `NoUser`, and `LastAdministrator` if others remain: the last one of all can go, and leaves
    /// the server open.
    pub fn remove_user(&mut self, name: &str) -> Result<(), AccessError> {
        self.held(name)?;
        if self.is_closed && self.users.len() > 1 && !self.has_other_administrator(name) {
            return Err(AccessError::LastAdministrator(name.to_owned()));
        }
        self.users.remove(name);
        self.tokens.retain(|_, token| token.owner != name);
        self.index_tokens();
        if self.users.is_empty() {
            *self = Self::default();
        }
        for user in self.users.values_mut() {
            user.roles.remove(name);
        }
        Ok(())
    }

    /// Adds privileges in a database, which need not exist.
    ///
    /// # Errors
    /// `NoUser`, `Unusable` for the database's name, `Full`.
    pub fn grant(
        &mut self,
        name: &str,
        database: &str,
        privileges: DatabasePrivileges,
    ) -> Result<(), AccessError> {
        check_name("the name of a database", database)?;
        let grants = &mut self.held_mut(name)?.grants;
        if grants.len() >= GRANTS_MAX && !grants.contains_key(database) {
            return Err(full("databases with privileges of one user", GRANTS_MAX));
        }
        let held = grants.entry(database.to_owned()).or_default();
        *held = *held | privileges;
        Ok(())
    }

    /// Takes privileges in a database away. Those that come from roles stay.
    ///
    /// # Errors
    /// `NoUser`.
    pub fn revoke(
        &mut self,
        name: &str,
        database: &str,
        privileges: DatabasePrivileges,
    ) -> Result<(), AccessError> {
        let grants = &mut self.held_mut(name)?.grants;
        if let Some(held) = grants.get_mut(database) {
            *held = held.without(privileges);
            if held.is_empty() {
                grants.remove(database);
            }
        }
        Ok(())
    }

    /// Gives a user or role the rights of a role.
    ///
    /// # Errors
    /// `NoUser` for either, `Circle`.
    pub fn grant_role(&mut self, role: &str, member: &str) -> Result<(), AccessError> {
        self.held(role)?;
        self.held(member)?;
        if self.with_roles(role).contains(member) {
            return Err(AccessError::Circle {
                role: role.to_owned(),
                member: member.to_owned(),
            });
        }
        self.held_mut(member)?.roles.insert(role.to_owned());
        Ok(())
    }

    /// Takes the rights of a role from a user or role.
    ///
    /// # Errors
    /// `NoUser` for either.
    pub fn revoke_role(&mut self, role: &str, member: &str) -> Result<(), AccessError> {
        self.held(role)?;
        self.held_mut(member)?.roles.remove(role);
        Ok(())
    }

    /// Removes every privilege in a database that was dropped, so that a later one of the same name
    /// does not get them.
    pub fn forget_database(&mut self, database: &str) {
        for user in self.users.values_mut() {
            user.grants.remove(database);
        }
        for token in self.tokens.values_mut() {
            if let TokenScope::Databases(databases) = &mut token.scope {
                databases.remove(database);
            }
        }
    }

    /// What a user may do, with the rights of its roles; nothing if there is no such user.
    #[must_use]
    pub fn rights_of(&self, name: &str) -> AccessRights {
        let mut rights = AccessRights::default();
        let names = self.with_roles(name);
        for user in names.iter().filter_map(|name| self.users.get(*name)) {
            rights.is_administrator |= user.is_administrator;
            for (database, privileges) in &user.grants {
                rights.add(database, *privileges);
            }
        }
        rights
    }

    /// Makes a token, and gives its number and its text, which is not stored.
    ///
    /// # Errors
    /// `NoUser`, `Unusable` if the owner is a role, the token has expired already or its description
    /// is too long, `Full`.
    pub fn make_token(
        &mut self,
        owner: &str,
        description: &str,
        scope: TokenScope,
        (now_ns, expires_ns): (i64, Option<i64>),
    ) -> Result<(u64, TokenSecret), AccessError> {
        let unusable = |message: String| Err(AccessError::Unusable(message));
        if !self.held(owner)?.can_log_in {
            return unusable(format!("'{owner}' is a role, and roles have no tokens"));
        }
        if expires_ns.is_some_and(|end| end <= now_ns) {
            return unusable("the token would have expired already".to_owned());
        }
        if description.len() > NAME_BYTES_MAX {
            let message = format!("the description of a token has at most {NAME_BYTES_MAX} bytes");
            return unusable(message);
        }
        if let TokenScope::Databases(databases) = &scope {
            if databases.len() > GRANTS_MAX {
                return Err(full("databases of one token", GRANTS_MAX));
            }
            for database in databases.keys() {
                check_name("the name of a database", database)?;
            }
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(full("tokens", TOKENS_MAX));
        }
        let secret = TokenSecret::new();
        self.last_token += 1;
        let token = AccessToken {
            owner: owner.to_owned(),
            description: description.to_owned(),
            scope,
            created_ns: now_ns,
            expires_ns,
            hash: secret.hash(),
        };
        self.numbers.insert(token.hash, self.last_token);
        self.tokens.insert(self.last_token, token);
        Ok((self.last_token, secret))
    }

    /// Removes a token.
    ///
    /// # Errors
    /// `NoToken`.
    pub fn remove_token(&mut self, number: u64) -> Result<AccessToken, AccessError> {
        let removed = self.tokens.remove(&number);
        let removed = removed.ok_or(AccessError::NoToken(number))?;
        self.numbers.remove(&removed.hash);
        Ok(removed)
    }

    /// What a token may do; `None` if there is none of this number, it has
    /// expired, or its owner may not log in.
    #[must_use]
    pub fn rights_of_token(&self, number: u64, now_ns: i64) -> Option<AccessRights> {
        let token = self.tokens.get(&number)?;
        let is_valid = !token.has_expired(now_ns) && self.can_log_in(&token.owner);
        is_valid.then(|| token.scope.limit(self.rights_of(&token.owner)))
    }

    /// The token with a text, and what it may do; `None` if there is none, if it has expired, or
    /// if its owner may not log in.
    #[must_use]
    pub fn token_of(&self, text: &str, now_ns: i64) -> Option<(u64, &AccessToken, AccessRights)> {
        let number = *self.numbers.get(&hash_of(text))?;
        let token = self.tokens.get(&number)?;
        if token.has_expired(now_ns) || !self.can_log_in(&token.owner) {
            return None;
        }
        let rights = token.scope.limit(self.rights_of(&token.owner));
        Some((number, token, rights))
    }

    fn can_log_in(&self, name: &str) -> bool {
        self.users.get(name).is_some_and(|user| user.can_log_in)
    }

    /// A name, and the roles whose rights it has.
    fn with_roles<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let (mut names, mut open) = (BTreeSet::new(), vec![name]);
        while let Some(name) = open.pop() {
            if names.insert(name)
                && let Some(user) = self.users.get(name)
            {
                open.extend(user.roles.iter().map(String::as_str));
            }
        }
        names
    }

    /// Whether an administrator other than `name` can log in with a password.
    fn has_other_administrator(&self, name: &str) -> bool {
        let mut others = self.users.iter().filter(|(other, _)| *other != name);
        others.any(|(_, user)| is_way_in(user))
    }

    fn held(&self, name: &str) -> Result<&AccessUser, AccessError> {
        let user = self.users.get(name);
        user.ok_or_else(|| AccessError::NoUser(name.to_owned()))
    }

    fn held_mut(&mut self, name: &str) -> Result<&mut AccessUser, AccessError> {
        let user = self.users.get_mut(name);
        user.ok_or_else(|| AccessError::NoUser(name.to_owned()))
    }

    fn index_tokens(&mut self) {
        let numbers = self.tokens.iter();
        self.numbers = numbers
            .map(|(number, token)| (token.hash, *number))
            .collect();
    }

    /// Makes a catalog that was read usable.
    ///
    /// # Errors
    /// `Damaged` if it contradicts itself.
    pub(crate) fn checked(mut self) -> Result<Self, AccessError> {
        self.check()?;
        self.index_tokens();
        // A catalog that could be closed is closed with the next start.
        self.close();
        Ok(self)
    }

    fn check(&self) -> Result<(), AccessError> {
        let damaged = |why: String| Err(AccessError::Damaged(why));
        for (name, user) in &self.users {
            let is_sound = |verifiers: &PasswordVerifiers| verifiers.is_sound();
            if !user.password.as_ref().is_none_or(is_sound) {
                return damaged(format!("the password of '{name}' is not usable"));
            }
            if !user.grants.values().all(|held| held.is_known()) {
                return damaged(format!("'{name}' has privileges of a later version"));
            }
            if let Some(role) = user
                .roles
                .iter()
                .find(|role| !self.users.contains_key(*role))
            {
                return damaged(format!(
                    "'{name}' has the role '{role}', which does not exist"
                ));
            }
            let mut roles = user.roles.iter();
            if roles.any(|role| self.with_roles(role).contains(name.as_str())) {
                return damaged(format!("the roles of '{name}' contain each other"));
            }
        }
        if self.is_closed && !self.has_other_administrator("") {
            return damaged("it is closed, and has no administrator".to_owned());
        }
        for (number, token) in &self.tokens {
            if *number > self.last_token || !self.users.contains_key(&token.owner) {
                return damaged(format!("token {number} belongs to no user"));
            }
        }
        Ok(())
    }
}

/// Whether a user keeps the server from being locked for ever.
fn is_way_in(user: &AccessUser) -> bool {
    user.is_administrator && user.can_log_in && user.password.is_some()
}

fn full(what: &'static str, max: usize) -> AccessError {
    AccessError::Full { what, max }
}

fn check_name(what: &str, name: &str) -> Result<(), AccessError> {
    let message = if name.is_empty() {
        format!("{what} must not be empty")
    } else if name.len() > NAME_BYTES_MAX {
        format!("{what} has at most {NAME_BYTES_MAX} bytes")
    } else if name.chars().any(char::is_control) {
        format!("{what} must not contain control characters")
    } else {
        return Ok(());
    };
    Err(AccessError::Unusable(message))
}
