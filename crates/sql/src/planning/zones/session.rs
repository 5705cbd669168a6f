//! The zone of a session, in the form in which a plan's rules receive it.

use datafusion::common::Result;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::config_err;
use marigram_functions::zoned::UTC;
use marigram_service::Session;
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Write;

/// A session's zone that is not UTC.
#[derive(Clone, Debug)]
pub(crate) struct SessionZone(pub String);

impl SessionZone {
    /// The zone of a session.
    pub(crate) fn from_session(session: &Session) -> Option<Self> {
        (session.time_zone != UTC).then(|| Self(session.time_zone.clone()))
    }

    /// The name of the zone in which a statement is planned.
    pub(crate) fn name(config: &ConfigOptions) -> &str {
        match config.extensions.get::<Self>() {
            Some(zone) => &zone.0,
            None => UTC,
        }
    }
}

impl ConfigExtension for SessionZone {
    const PREFIX: &'static str = "session_zone";
}

impl ExtensionOptions for SessionZone {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, _: &str, _: &str) -> Result<()> {
        config_err!("the session's zone is set by SET TIME ZONE")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// The scope under which the plans of a session are cached: its database, its zone unless that is
/// UTC, and its client's rights unless it is an administrator: who may do less has plans of its own,
/// which were checked for it. Names of databases have no control characters.
pub(crate) fn plan_scope(session: &Session) -> Cow<'_, str> {
    let rights = &session.rights;
    if session.time_zone == UTC && rights.is_administrator {
        return Cow::Borrowed(&session.database);
    }
    let mut scope = format!("{}\u{1f}{}", session.database, session.time_zone);
    if !rights.is_administrator {
        let _ = write!(scope, "\u{1f}{:?}", rights.databases);
    }
    Cow::Owned(scope)
}
