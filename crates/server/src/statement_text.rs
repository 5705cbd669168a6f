//! What a log may show of a statement: nothing that could be a password or a token.
//!
//! A statement may be misspelled, so what looks like one about users is cut, whatever it says; only its
//! first words remain, which name what it is about.

use marigram_pgtext::{StatementLexer, Token};
use serde::Serialize;

/// What was done, or should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditedAction {
    /// A client says who it is.
    Login,
    /// A user, a role or a token is made, changed or removed.
    Users,
    /// A privilege or a membership is granted or revoked.
    Grant,
    /// A database, a table, a view or the like is made, changed or removed.
    Definition,
    /// Rows are deleted.
    Delete,
    /// Values of stored rows are replaced by `UPDATE`.
    Update,
    /// A backup is taken.
    Backup,
    /// Something else; only refusals are logged.
    Request,
}

/// Characters of a statement that are logged.
const STATEMENT_CHARS_MAX: usize = 1000;

/// Characters of a name that are logged.
const NAME_CHARS_MAX: usize = 100;

/// Words that are looked at.
const WORDS_MAX: usize = 6;

/// Tokens among which a call is looked for that changes something: it stands among what is selected.
const CALL_TOKENS_MAX: usize = 4096;

/// Words with which statements begin.
const KEYWORDS: [&str; 17] = [
    "select", "insert", "update", "delete", "create", "alter", "drop", "grant", "revoke",
    "explain", "prepare", "execute", "set", "show", "with", "copy", "truncate",
];

/// What makes a statement one that may hold a secret, wherever it stands.
const SUSPECT: [&str; 8] = [
    "passw",
    "token",
    "mgt_",
    "secret",
    "identified",
    "credential",
    "bearer",
    "md5",
];

/// The text of a statement, as logs may show it.
pub(crate) fn loggable(sql: &str) -> String {
    let mut shown = if may_hold_secret(sql) {
        first_words(sql)
    } else {
        start_of(sql)
    };
    in_one_line(&mut shown);
    shown
}

/// The text of a statement that was made of names, and of nothing else that a client said.
pub(crate) fn loggable_names(sql: &str) -> String {
    let mut shown = start_of(sql);
    in_one_line(&mut shown);
    shown
}

fn start_of(sql: &str) -> String {
    let mut chars = sql.chars();
    let mut start: String = chars.by_ref().take(STATEMENT_CHARS_MAX).collect();
    if chars.next().is_some() {
        start.push('…');
    }
    start
}

/// A line is a line, whatever the statement is.
fn in_one_line(shown: &mut String) {
    if shown.contains(char::is_control) {
        *shown = shown.replace(char::is_control, " ");
    }
}

/// Whether a text may be a statement with a password or a token.
fn may_hold_secret(sql: &str) -> bool {
    let lower = sql.to_lowercase();
    if SUSPECT.iter().any(|part| lower.contains(part)) {
        return true;
    }
    let words = leading_words(sql);
    let is_about_users = |word: &String| matches!(word.as_str(), "user" | "role" | "group");
    let is_change = words
        .first()
        .is_some_and(|word| matches!(word.as_str(), "create" | "alter" | "set"));
    // What somebody may have meant by USER and ROLE.
    let second = words.get(1).filter(|_| is_change);
    let is_like_users = second.is_some_and(|word| word.starts_with('u') || word.starts_with("ro"));
    is_like_users || words.iter().any(is_about_users)
}

/// The words with which a statement begins, in lower case, up to anything else.
fn leading_words(sql: &str) -> Vec<String> {
    let tokens = StatementLexer::new(sql).map(|(_, token)| token);
    let begin = tokens.skip_while(|token| matches!(token, Token::Sign(_)));
    let words = begin.map_while(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    });
    words.take(WORDS_MAX).collect()
}

/// The first words of a statement that may hold a secret: those that are known, and the user's name
/// where a statement has it.
fn first_words(sql: &str) -> String {
    let words = leading_words(sql);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (known, has_name): (&[&str], bool) = match words[..] {
        ["create" | "alter" | "drop", "user" | "role" | "group", ..] => (&words[..2], true),
        ["create" | "alter" | "drop", "token", ..] | ["set", "password"] => (&words[..2], false),
        ["set", "password", "for", ..] => (&words[..3], true),
        [first, ..] if KEYWORDS.contains(&first) => (&words[..1], false),
        _ => (&[], false),
    };
    let mut shown: Vec<String> = known.iter().map(|word| word.to_uppercase()).collect();
    if has_name {
        let tokens = StatementLexer::new(sql).map(|(_, token)| token);
        let mut after = tokens
            .filter(|token| !matches!(token, Token::Sign('(')))
            .skip(known.len())
            .skip_while(|token| {
                let names = ["if", "not", "exists"];
                names.iter().any(|word| token.is_keyword(word))
            });
        if let Some(Token::Word(name) | Token::Quoted(name)) = after.next() {
            shown.push(name.chars().take(NAME_CHARS_MAX).collect());
        }
    }
    shown.push("…".to_owned());
    shown.join(" ")
}

/// What a statement does that the audit log tells of, even if it is allowed.
pub(crate) fn action_of(sql: &str) -> Option<AuditedAction> {
    let words = leading_words(sql);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [
            "create" | "alter" | "drop",
            "user" | "role" | "token" | "group",
            ..,
        ]
        | ["set", "password", ..] => Some(AuditedAction::Users),
        ["grant" | "revoke", ..] => Some(AuditedAction::Grant),
        ["delete" | "truncate", ..] | ["drop", "series" | "measurement" | "shard", ..] => {
            Some(AuditedAction::Delete)
        }
        ["update", ..] => Some(AuditedAction::Update),
        ["create" | "alter" | "drop", ..] => Some(AuditedAction::Definition),
        ["select" | "call", ..] => action_of_call(sql),
        _ => None,
    }
}

/// What the call of a function does that the audit log tells of: functions of TimescaleDB change tables.
fn action_of_call(sql: &str) -> Option<AuditedAction> {
    let tokens = StatementLexer::new(sql).map(|(_, token)| token);
    let mut tokens = tokens.take(CALL_TOKENS_MAX).peekable();
    while let Some(token) = tokens.next() {
        let (Some(name), Some(Token::Sign('('))) = (token.name(), tokens.peek()) else {
            continue;
        };
        let is_policy =
            name.ends_with("_policy") && (name.starts_with("add_") || name.starts_with("remove_"));
        match name {
            "drop_chunks" => return Some(AuditedAction::Delete),
            "create_hypertable"
            | "add_dimension"
            | "set_chunk_time_interval"
            | "set_partitioning_interval"
            | "alter_job"
            | "delete_job" => return Some(AuditedAction::Definition),
            _ if is_policy => return Some(AuditedAction::Definition),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_shown_of_statements() {
        for (sql, shown) in [
            ("DROP TABLE plant.m", "DROP TABLE plant.m"),
            (
                "DELETE FROM m\nWHERE host = 'a'",
                "DELETE FROM m WHERE host = 'a'",
            ),
            ("CREATE USER ann WITH PASSWORD 'x'", "CREATE USER ann …"),
            (
                "create user \"ann b\" with password 'x'",
                "CREATE USER ann b …",
            ),
            ("ALTER USER ann WITH PASWORD 'x'", "ALTER USER ann …"),
            ("ALTER ROLE ann IDENTIFIED BY x", "ALTER ROLE ann …"),
            (
                "CREATE USER IF NOT EXISTS ann PASSWORD 'x'",
                "CREATE USER ann …",
            ),
            ("CREATE UESR ann x", "CREATE …"),
            ("CREAT USER ann PASWORD x", "…"),
            ("SET PASSWORD FOR \"ann\" = 'x'", "SET PASSWORD FOR ann …"),
            ("SET PASSWORD 'x'", "SET PASSWORD …"),
            ("SET PASSWORD x", "SET …"),
            ("SELECT 'mgt_abc'", "SELECT …"),
            ("CREATE TOKEN READ ON plant", "CREATE TOKEN …"),
            ("GRANT READ ON plant TO ann", "GRANT READ ON plant TO ann"),
            ("password hunter2", "…"),
            ("", ""),
        ] {
            assert_eq!(loggable(sql), shown, "{sql}");
        }
        assert_eq!(loggable(&"x".repeat(5000)).chars().count(), 1001);
    }

    #[test]
    fn what_is_audited() {
        use AuditedAction::{Definition, Delete, Grant, Update, Users};
        for (sql, action) in [
            ("/* why */ CREATE TABLE t (v INT)", Some(Definition)),
            ("-- a\nDROP DATABASE d", Some(Definition)),
            ("SELECT create_hypertable('t', 'time')", Some(Definition)),
            (
                "select * from public.add_retention_policy('t', interval '1 day')",
                Some(Definition),
            ),
            ("CALL add_columnstore_policy('t')", Some(Definition)),
            ("SELECT drop_chunks('t', now())", Some(Delete)),
            ("SELECT \"drop_chunks\"('t', now())", Some(Delete)),
            (
                "SELECT enable_chunk_skipping('t', 'a'), enable_chunk_skipping('t', 'b'), \
                 add_retention_policy('t', INTERVAL '1 day')",
                Some(Definition),
            ),
            ("SELECT show_chunks('t')", None),
            ("CREATE USER a WITH PASSWORD 'x'", Some(Users)),
            ("DROP TOKEN 3", Some(Users)),
            ("SET PASSWORD FOR a = 'x'", Some(Users)),
            ("GRANT READ ON a TO b", Some(Grant)),
            ("revoke crew from ann", Some(Grant)),
            ("DELETE FROM \"m\" WHERE time < 0", Some(Delete)),
            ("DROP SERIES FROM m", Some(Delete)),
            ("TRUNCATE t", Some(Delete)),
            ("UPDATE \"t\" SET v = 1", Some(Update)),
            ("SELECT 1", None),
            ("INSERT INTO t VALUES (1)", None),
            ("", None),
        ] {
            assert_eq!(action_of(sql), action, "{sql}");
        }
    }

    /// A secret that no statement has by itself.
    const SECRET: &str = "Zq9vXw7k";

    fn quoted() -> impl Strategy<Value = String> {
        let forms = [
            "'{}'", "\"{}\"", "{}", "E'{}'", "$${}$$", "$t${}$t$", "= '{}'", "'x''{}'",
        ];
        proptest::sample::select(forms.to_vec()).prop_map(|form| form.replace("{}", SECRET))
    }

    fn gap() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![" ", "\n", "\t", " /* why */ ", " -- c\n"])
    }

    proptest! {
        #[test]
        fn no_password_is_ever_shown(
            verb in proptest::sample::select(vec!["CREATE", "alter", "Create", "ALTER"]),
            kind in proptest::sample::select(vec!["USER", "role", "User"]),
            name in "[a-z]{1,8}|\"[a-z ]{1,8}\"",
            with in proptest::sample::select(vec![
                "WITH PASSWORD", "PASSWORD", "with pasword", "WITH ENCRYPTED PASSWORD",
                "IDENTIFIED BY", "LOGIN PASSWORD", "SUPERUSER PASSWORD", "WITH PASS", "WITH",
            ]),
            gap in gap(),
            secret in quoted(),
            tail in proptest::sample::select(vec!["", ";", " WITH ALL PRIVILEGES", " SUPERUSER", " ("]),
        ) {
            let sql = format!("{verb}{gap}{kind}{gap}{name}{gap}{with}{gap}{secret}{tail}");
            prop_assert!(!loggable(&sql).contains(SECRET), "{sql}: {}", loggable(&sql));
        }

        #[test]
        fn no_password_is_shown_of_other_statements(
            before in proptest::sample::select(vec![
                "SET PASSWORD FOR ann =", "SET PASSWORD", "SET PASSWORD FOR \"ann\" =",
                "EXPLAIN CREATE USER ann PASSWORD", "(CREATE USER ann PASSWORD",
                "PREPARE p AS CREATE USER ann PASSWORD", "CREAT USER ann PASSWORD",
                "SELECT 1; CREATE USER ann PASSWORD", "-- password", "PASSWORD", "password for ann",
            ]),
            secret in quoted(),
        ) {
            let sql = format!("{before} {secret}");
            prop_assert!(!loggable(&sql).contains(SECRET), "{sql}: {}", loggable(&sql));
        }

        #[test]
        fn any_text_is_one_bounded_line(sql in "\\PC{0,300}|[\\x00-\\x7f]{0,2000}") {
            let shown = loggable(&sql);
            prop_assert!(!shown.contains('\n') && shown.chars().count() <= 1001);
        }
    }
}
