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
    default_transaction_read_only: bool,
}

impl SessionSettings {
    /// Those of a session.
    pub(super) fn of_session(session: &Session) -> Self {
        Self {
            time_zone: session.time_zone.clone(),
            statement_timeout: session.statement_timeout,
            default_transaction_read_only: session.default_transaction_read_only,
        }
    }

    /// Gives them back to a session, as far as `scope` means them.
    pub(super) fn restore(&self, session: &mut Session, scope: SettingScope) {
        let is_meant = |setting| match scope {
            SettingScope::Local | SettingScope::ResetAll => true,
            SettingScope::Reset(one) => one == setting,
            SettingScope::Other => false,
        };
        if is_meant(SessionSetting::TimeZone) {
            session.time_zone.clone_from(&self.time_zone);
        }
        if is_meant(SessionSetting::StatementTimeout) {
            session.statement_timeout = self.statement_timeout;
        }
        if is_meant(SessionSetting::DefaultReadOnly) {
            session.default_transaction_read_only = self.default_transaction_read_only;
        }
    }
}

/// One of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionSetting {
    /// `timezone`
    TimeZone,
    /// `statement_timeout`
    StatementTimeout,
    /// `default_transaction_read_only`
    DefaultReadOnly,
}

/// What a statement means for settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingScope {
    /// `SET LOCAL`
    Local,
    /// `RESET timezone`, `SET timezone TO DEFAULT`
    Reset(SessionSetting),
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
    let setting = match (word(at), word(at + 1)) {
        ("all", _) if is_reset => return SettingScope::ResetAll,
        ("time", "zone") | ("timezone", _) => SessionSetting::TimeZone,
        ("statement_timeout", _) => SessionSetting::StatementTimeout,
        ("default_transaction_read_only", _) => SessionSetting::DefaultReadOnly,
        _ => return SettingScope::Other,
    };
    let value = word(at + 2);
    if is_reset || value == "default" || value == "local" {
        SettingScope::Reset(setting)
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
            (
                "SET TimeZone TO DEFAULT",
                SettingScope::Reset(SessionSetting::TimeZone),
            ),
            (
                "SET SESSION TIME ZONE LOCAL",
                SettingScope::Reset(SessionSetting::TimeZone),
            ),
            ("SET TIME ZONE 'Europe/Berlin'", SettingScope::Other),
            (
                "reset time zone",
                SettingScope::Reset(SessionSetting::TimeZone),
            ),
            (
                "RESET timezone;",
                SettingScope::Reset(SessionSetting::TimeZone),
            ),
            ("RESET ALL", SettingScope::ResetAll),
            (
                "RESET statement_timeout",
                SettingScope::Reset(SessionSetting::StatementTimeout),
            ),
            (
                "set default_transaction_read_only to default",
                SettingScope::Reset(SessionSetting::DefaultReadOnly),
            ),
            ("RESET search_path", SettingScope::Other),
            ("SELECT 'set local'", SettingScope::Other),
        ] {
            assert_eq!(setting_scope(sql), expected, "{sql}");
        }
    }
}
