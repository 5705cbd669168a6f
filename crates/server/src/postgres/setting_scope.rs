//! How long a setting of the session lasts: `SET LOCAL` until the transaction ends, and `RESET` gives back
//! what the connection began with.

use marigram_pgtext::{StatementLexer, Token};
use marigram_service::Session;
use std::time::Duration;

/// The settings of a session that a statement can change.
#[derive(Clone, Debug)]
pub(super) struct SessionSettings {
    time_zone: String,
    statement_timeout: Option<Duration>,
}

impl SessionSettings {
    /// Those of a session.
    pub(super) fn of_session(session: &Session) -> Self {
        Self {
            time_zone: session.time_zone.clone(),
            statement_timeout: session.statement_timeout,
        }
    }

    /// Gives them back to a session.
    pub(super) fn restore(&self, session: &mut Session, which: SettingScope) {
        if matches!(
            which,
            SettingScope::Local | SettingScope::ResetZone | SettingScope::ResetAll
        ) {
            session.time_zone.clone_from(&self.time_zone);
        }
        if matches!(
            which,
            SettingScope::Local | SettingScope::ResetTimeout | SettingScope::ResetAll
        ) {
            session.statement_timeout = self.statement_timeout;
        }
    }
}

/// What a statement means for settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingScope {
    /// `SET LOCAL`
    Local,
    /// `RESET TIME ZONE`, `SET timezone TO DEFAULT`
    ResetZone,
    /// `RESET statement_timeout`
    ResetTimeout,
    /// `RESET ALL`
    ResetAll,
    /// Any other statement.
    Other,
}

/// What `sql` means for settings.
pub(super) fn setting_scope(sql: &str) -> SettingScope {
    let mut tokens = StatementLexer::new(sql).map(|(_, token)| token);
    let first = tokens.next();
    let is_setting = |token: &Token| token.is_keyword("set") || token.is_keyword("reset");
    let Some(first) = first.filter(is_setting) else {
        return SettingScope::Other;
    };
    let tokens: Vec<Token> = std::iter::once(first).chain(tokens).take(6).collect();
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.as_str(),
        _ => "",
    };
    let (at, is_reset) = match word(0) {
        "reset" => (1, true),
        "set" if word(1) == "local" => return SettingScope::Local,
        "set" if word(1) == "session" => (2, false),
        "set" => (1, false),
        _ => return SettingScope::Other,
    };
    let (scope, next) = match (word(at), word(at + 1)) {
        ("all", _) if is_reset => return SettingScope::ResetAll,
        ("time", "zone") | ("timezone", _) => (SettingScope::ResetZone, at + 2),
        ("statement_timeout", _) => (SettingScope::ResetTimeout, at + 2),
        _ => return SettingScope::Other,
    };
    let value = word(next);
    if is_reset || value == "default" || value == "local" {
        scope
    } else {
        SettingScope::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read() {
        for (sql, expected) in [
            ("SET LOCAL timezone = 'UTC'", SettingScope::Local),
            ("set timezone to 'UTC'", SettingScope::Other),
            ("SET TimeZone TO DEFAULT", SettingScope::ResetZone),
            ("SET SESSION TIME ZONE LOCAL", SettingScope::ResetZone),
            ("SET TIME ZONE 'Europe/Berlin'", SettingScope::Other),
            ("reset time zone", SettingScope::ResetZone),
            ("RESET timezone;", SettingScope::ResetZone),
            ("RESET ALL", SettingScope::ResetAll),
            ("RESET statement_timeout", SettingScope::ResetTimeout),
            ("RESET search_path", SettingScope::Other),
            ("SELECT 'set local'", SettingScope::Other),
        ] {
            assert_eq!(setting_scope(sql), expected, "{sql}");
        }
    }
}
