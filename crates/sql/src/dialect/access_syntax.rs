//! Statements about users, roles, grants and tokens: `CREATE USER`, `ALTER USER`, `DROP USER`,
//! `GRANT`, `REVOKE`, `CREATE TOKEN`, `DROP TOKEN`, `SHOW USERS`, `SHOW GRANTS`, `SHOW TOKENS`.
//!
//! Privileges are for databases. PostgreSQL's privileges are read as far as they can mean that:
//! `SELECT` on all tables is READ, `INSERT`, `UPDATE` and `DELETE` are WRITE.

use crate::dialect::access_statement::{AccessStatement, StatementPassword, TokenEnd, UserOptions};
use crate::dialect::identifiers::{accept_word, accept_words, parse_name};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use marigram_access::DatabasePrivileges;
use marigram_functions::duration::parse_fixed_ns;

/// Reads a statement about access by its first words; `None` if it is none.
///
/// # Errors
/// If it does not follow the grammar, or asks for what Marigram does not have.
pub(crate) fn parse_access(
    parser: &mut Parser<'_>,
    leading: &[&str],
) -> SqlResult<Option<AccessStatement>> {
    let statement = match leading {
        ["CREATE", "USER" | "ROLE", ..] => create_user(parser)?,
        ["ALTER", "USER" | "ROLE", ..] => alter_user(parser)?,
        ["DROP", "USER" | "ROLE", ..] => drop_user(parser)?,
        ["GRANT", ..] => grant(parser, true)?,
        ["REVOKE", ..] => grant(parser, false)?,
        ["CREATE", "TOKEN", ..] => create_token(parser)?,
        ["DROP", "TOKEN", ..] => {
            accept_words(parser, &["DROP", "TOKEN"]);
            AccessStatement::DropToken(parser.parse_literal_uint()?)
        }
        ["SHOW", "USERS" | "ROLES", ..] => {
            parser.next_token();
            parser.next_token();
            AccessStatement::ShowUsers
        }
        ["SHOW", "TOKENS", ..] => {
            accept_words(parser, &["SHOW", "TOKENS"]);
            AccessStatement::ShowTokens
        }
        ["SHOW", "GRANTS", ..] => {
            accept_words(parser, &["SHOW", "GRANTS"]);
            let is_named = accept_word(parser, "FOR");
            let user = is_named.then(|| parse_name(parser)).transpose()?;
            AccessStatement::ShowGrants(user)
        }
        _ => return Ok(None),
    };
    Ok(Some(statement))
}

fn names(parser: &mut Parser<'_>) -> SqlResult<Vec<String>> {
    let mut names = vec![parse_name(parser)?];
    while parser.consume_token(&Token::Comma) {
        names.push(parse_name(parser)?);
    }
    Ok(names)
}

fn create_user(parser: &mut Parser<'_>) -> SqlResult<AccessStatement> {
    parser.next_token();
    // A user can log in, a role cannot, unless it says otherwise.
    let is_user = accept_word(parser, "USER");
    if !is_user {
        parser.next_token();
    }
    let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let name = parse_name(parser)?;
    let mut options = user_options(parser, true)?;
    options.can_log_in.get_or_insert(is_user);
    Ok(AccessStatement::CreateUser {
        name,
        options,
        if_not_exists,
    })
}

fn alter_user(parser: &mut Parser<'_>) -> SqlResult<AccessStatement> {
    parser.next_token();
    parser.next_token();
    let name = parse_name(parser)?;
    let options = user_options(parser, false)?;
    if options == UserOptions::default() {
        let found = parser.peek_token();
        return Ok(parser.expected("PASSWORD, SUPERUSER, NOSUPERUSER, LOGIN or NOLOGIN", found)?);
    }
    Ok(AccessStatement::AlterUser { name, options })
}

/// PostgreSQL's options that say what is so anyway.
const WITHOUT_EFFECT: [&str; 5] = [
    "NOCREATEDB",
    "NOCREATEROLE",
    "INHERIT",
    "NOREPLICATION",
    "NOBYPASSRLS",
];

fn user_options(parser: &mut Parser<'_>, is_new: bool) -> SqlResult<UserOptions> {
    let mut options = UserOptions::default();
    accept_word(parser, "WITH");
    loop {
        if accept_words(parser, &["ENCRYPTED", "PASSWORD"]) || accept_word(parser, "PASSWORD") {
            if accept_word(parser, "NULL") {
                return Err(SqlError::unsupported(
                    "a password cannot be removed; NOLOGIN keeps a user out",
                ));
            }
            options.password = Some(StatementPassword(parser.parse_literal_string()?));
        } else if accept_words(parser, &["ALL", "PRIVILEGES"]) || accept_word(parser, "SUPERUSER") {
            options.is_administrator = Some(true);
        } else if accept_word(parser, "NOSUPERUSER") {
            options.is_administrator = Some(false);
        } else if accept_word(parser, "LOGIN") {
            options.can_log_in = Some(true);
        } else if accept_word(parser, "NOLOGIN") {
            options.can_log_in = Some(false);
        } else if is_new && (accept_words(parser, &["IN", "ROLE"])) {
            options.roles.extend(names(parser)?);
        } else if accept_word(parser, "WITH")
            || WITHOUT_EFFECT.iter().any(|word| accept_word(parser, word))
        {
            // Nothing to do.
        } else if matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
            return Ok(options);
        } else {
            let found = parser.peek_token();
            let known = "PASSWORD '…', SUPERUSER, NOSUPERUSER, LOGIN, NOLOGIN or IN ROLE";
            return Ok(parser.expected(known, found)?);
        }
    }
}

fn drop_user(parser: &mut Parser<'_>) -> SqlResult<AccessStatement> {
    parser.next_token();
    parser.next_token();
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    let names = names(parser)?;
    Ok(AccessStatement::DropUser { names, if_exists })
}

/// A list of privileges, in PostgreSQL's words or Marigram's; `None` if the next word is another.
fn privileges(parser: &mut Parser<'_>) -> SqlResult<Option<DatabasePrivileges>> {
    let mut all = DatabasePrivileges::NONE;
    let mut is_privilege = false;
    loop {
        let one = if accept_word(parser, "ALL") {
            accept_word(parser, "PRIVILEGES");
            DatabasePrivileges::ALL
        } else if accept_word(parser, "READ") || accept_word(parser, "SELECT") {
            DatabasePrivileges::READ
        } else if ["WRITE", "INSERT", "UPDATE", "DELETE", "TRUNCATE"]
            .iter()
            .any(|word| accept_word(parser, word))
        {
            DatabasePrivileges::WRITE
        } else if accept_word(parser, "CREATE") {
            DatabasePrivileges::ALL
        } else if is_privilege {
            let found = parser.peek_token();
            return Ok(parser.expected("READ, WRITE or ALL", found)?);
        } else {
            return Ok(None);
        };
        is_privilege = true;
        all = all | one;
        if !parser.consume_token(&Token::Comma) {
            return Ok(Some(all));
        }
    }
}

fn grant(parser: &mut Parser<'_>, is_grant: bool) -> SqlResult<AccessStatement> {
    parser.next_token();
    let direction = if is_grant { "TO" } else { "FROM" };
    let Some(privileges) = privileges(parser)? else {
        let roles = names(parser)?;
        let users = users(parser, direction)?;
        return Ok(AccessStatement::Membership {
            is_grant,
            roles,
            users,
        });
    };
    let databases = granted_databases(parser)?;
    let users = users(parser, direction)?;
    if accept_words(parser, &["WITH", "GRANT", "OPTION"]) {
        return Err(SqlError::unsupported(
            "WITH GRANT OPTION is not supported: only administrators grant",
        ));
    }
    Ok(AccessStatement::Privileges {
        is_grant,
        privileges,
        databases,
        users,
    })
}

/// `ON [DATABASE] a, b`, or `ON ALL TABLES IN SCHEMA public` for the session's database.
fn granted_databases(parser: &mut Parser<'_>) -> SqlResult<Vec<String>> {
    if !accept_word(parser, "ON") {
        let found = parser.peek_token();
        return Ok(parser.expected("ON and a database", found)?);
    }
    if accept_words(parser, &["ALL", "TABLES", "IN", "SCHEMA"]) || accept_word(parser, "SCHEMA") {
        let schema = parse_name(parser)?;
        // A database is a schema to clients.
        return Ok(if schema == "public" {
            Vec::new()
        } else {
            vec![schema]
        });
    }
    if accept_word(parser, "TABLE") {
        return Err(SqlError::unsupported(
            "privileges are for databases, not for tables: GRANT … ON DATABASE …",
        ));
    }
    accept_word(parser, "DATABASE");
    let databases = names(parser)?;
    if parser.peek_token().token == Token::Period {
        return Err(SqlError::unsupported(
            "privileges are for databases, not for tables: GRANT … ON DATABASE …",
        ));
    }
    Ok(databases)
}

fn users(parser: &mut Parser<'_>, direction: &str) -> SqlResult<Vec<String>> {
    if !accept_word(parser, direction) {
        let found = parser.peek_token();
        return Ok(parser.expected(&format!("{direction} and a user"), found)?);
    }
    names(parser)
}

/// `CREATE TOKEN [FOR user] [READ | WRITE | ALL ON database [, …]] [EXPIRES 'time' | EXPIRES IN
/// '30d'] [COMMENT 'text']`
fn create_token(parser: &mut Parser<'_>) -> SqlResult<AccessStatement> {
    accept_words(parser, &["CREATE", "TOKEN"]);
    let (mut owner, mut scope, mut end, mut comment) = (None, Vec::new(), None, String::new());
    loop {
        if accept_word(parser, "FOR") {
            owner = Some(parse_name(parser)?);
        } else if accept_words(parser, &["EXPIRES", "IN"]) {
            let text = parser.parse_literal_string()?;
            let ns = parse_fixed_ns(&text).map_err(|why| SqlError::invalid("22007", why))?;
            end = Some(TokenEnd::After(ns));
        } else if accept_word(parser, "EXPIRES") {
            end = Some(TokenEnd::At(parser.parse_literal_string()?));
        } else if accept_word(parser, "COMMENT") {
            comment = parser.parse_literal_string()?;
        } else if let Some(privileges) = privileges(parser)? {
            if !accept_word(parser, "ON") {
                let found = parser.peek_token();
                return Ok(parser.expected("ON and a database", found)?);
            }
            accept_word(parser, "DATABASE");
            scope.push((parse_name(parser)?, privileges));
            while parser.consume_token(&Token::Comma) {
                // A further database, or further privileges on one.
                match self::privileges(parser)? {
                    Some(privileges) if accept_word(parser, "ON") => {
                        accept_word(parser, "DATABASE");
                        scope.push((parse_name(parser)?, privileges));
                    }
                    Some(_) => {
                        let found = parser.peek_token();
                        return Ok(parser.expected("ON and a database", found)?);
                    }
                    None => scope.push((parse_name(parser)?, privileges)),
                }
            }
        } else if matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
            return Ok(AccessStatement::CreateToken {
                owner,
                scope,
                end,
                comment,
            });
        } else {
            let found = parser.peek_token();
            let known = "FOR user, READ, WRITE or ALL ON database, EXPIRES or COMMENT";
            return Ok(parser.expected(known, found)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;
    use crate::dialect::statement::Command;

    fn access(sql: &str) -> AccessStatement {
        match parse(sql).expect(sql) {
            Command::Access(statement) => statement,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn users_are_created_in_both_dialects() {
        let AccessStatement::CreateUser { name, options, .. } =
            access("create user \"Ann\" with password 'it''s' superuser;")
        else {
            panic!("no user");
        };
        assert_eq!(name, "Ann");
        assert_eq!(options.password, Some(StatementPassword("it's".into())));
        assert_eq!(options.is_administrator, Some(true));
        assert_eq!(options.can_log_in, Some(true));
        let createuser = "CREATE ROLE bob NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT LOGIN \
                          NOREPLICATION NOBYPASSRLS IN ROLE crew, lab";
        let AccessStatement::CreateUser { options, .. } = access(createuser) else {
            panic!("no role");
        };
        assert_eq!(options.roles, ["crew", "lab"]);
        assert_eq!(options.can_log_in, Some(true));
        let AccessStatement::CreateUser { options, .. } = access("create role crew") else {
            panic!("no role");
        };
        assert_eq!(options.can_log_in, Some(false));
        let shown = format!("{:?}", access("alter user ann password 'hidden'"));
        assert!(!shown.contains("hidden"), "{shown}");
        for wrong in [
            "create user",
            "create user ann createdb",
            "alter user ann",
            "alter user ann password null",
            "create user ann password secret",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn grants_are_for_databases() {
        let privileges = |sql: &str| match access(sql) {
            AccessStatement::Privileges {
                privileges,
                databases,
                ..
            } => (privileges, databases),
            other => panic!("{sql}: {other:?}"),
        };
        let (read, write) = (DatabasePrivileges::READ, DatabasePrivileges::WRITE);
        let plant = || vec!["plant".to_owned()];
        assert_eq!(privileges("grant read on plant to ann"), (read, plant()));
        assert_eq!(
            privileges("grant select, insert on database plant to ann, bob"),
            (read | write, plant())
        );
        assert_eq!(
            privileges("revoke all privileges on plant from ann").0,
            DatabasePrivileges::ALL
        );
        assert_eq!(
            privileges("grant select on all tables in schema public to ann"),
            (read, Vec::new())
        );
        assert!(matches!(
            access("grant crew to ann"),
            AccessStatement::Membership { is_grant: true, .. }
        ));
        for wrong in [
            "grant select on table t to ann",
            "grant select on plant.t to ann",
            "grant read on plant to ann with grant option",
            "grant read to ann",
            "grant read on plant from ann",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_have_scope_and_end() {
        let sql = "create token for ann read on plant, lab, write on lab \
                   expires in '30d' comment 'dashboard'";
        let AccessStatement::CreateToken {
            owner, scope, end, ..
        } = access(sql)
        else {
            panic!("no token");
        };
        assert_eq!(owner.as_deref(), Some("ann"));
        let scope: Vec<_> = scope.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(scope, ["plant", "lab", "lab"]);
        assert_eq!(end, Some(TokenEnd::After(30 * 86_400_000_000_000)));
        assert!(matches!(
            access("create token"),
            AccessStatement::CreateToken { .. }
        ));
        assert_eq!(access("drop token 7"), AccessStatement::DropToken(7));
        assert_eq!(
            access("show grants for ann"),
            AccessStatement::ShowGrants(Some("ann".into()))
        );
    }
}
