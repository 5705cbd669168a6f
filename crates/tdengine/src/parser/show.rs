//! SHOW and DESCRIBE.

use super::cursor::TaosCursor;
use crate::ast::{TaosName, TaosShow, TaosStatement, TaosTableKind};
use crate::error::TaosResult;
use crate::lexer::SqlTokenKind;

/// Reads what follows SHOW.
pub(super) fn show(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    Ok(TaosStatement::Show(shown(cursor)?))
}

fn shown(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosShow> {
    if cursor.eat_word("user")? || cursor.eat_word("system")? {
        if cursor.eat_word("databases")? {
            return Ok(TaosShow::Databases);
        }
        return Err(cursor.error());
    }
    if cursor.eat_word("databases")? {
        return Ok(TaosShow::Databases);
    }
    if cursor.eat_word("create")? {
        return create(cursor);
    }
    if cursor.eat_word("table")? {
        if cursor.eat_word("distributed")? {
            cursor.full_name()?;
            return Ok(TaosShow::System("table distributed".to_owned()));
        }
        return table_tags(cursor);
    }
    if cursor.eat_word("tags")? {
        cursor.expect_word("from")?;
        return Ok(TaosShow::Tags(name_and_database(cursor)?));
    }
    if cursor.eat_word("local")? {
        cursor.expect_word("variables")?;
        let pattern = pattern(cursor)?;
        return Ok(TaosShow::Variables { pattern });
    }
    if cursor.eat_word("variables")? {
        let pattern = pattern(cursor)?;
        return Ok(TaosShow::Variables { pattern });
    }
    let mut kind = TaosTableKind::All;
    if cursor.eat_word("normal")? {
        kind = TaosTableKind::Normal;
    } else if cursor.eat_word("child")? {
        kind = TaosTableKind::Child;
    }
    let mut database = None;
    if cursor.text_after() == "." {
        database = Some(cursor.name()?);
        cursor.expect_symbol(".")?;
    }
    if cursor.eat_word("tables")? {
        database = from(cursor)?.or(database);
        let pattern = pattern(cursor)?;
        return Ok(TaosShow::Tables {
            database,
            kind,
            pattern,
        });
    }
    if cursor.eat_word("stables")? {
        database = from(cursor)?.or(database);
        let pattern = pattern(cursor)?;
        return Ok(TaosShow::Stables { database, pattern });
    }
    system(cursor)
}

fn from(cursor: &mut TaosCursor<'_>) -> TaosResult<Option<String>> {
    if !cursor.eat_word("from")? {
        return Ok(None);
    }
    cursor.name().map(Some)
}

fn pattern(cursor: &mut TaosCursor<'_>) -> TaosResult<Option<String>> {
    if !cursor.eat_word("like")? {
        return Ok(None);
    }
    Ok(Some(cursor.quoted()?.into_owned()))
}

/// `table FROM database` or `database.table`.
fn name_and_database(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosName> {
    let name = cursor.full_name()?;
    match from(cursor)? {
        None => Ok(name),
        database => Ok(TaosName {
            database,
            name: name.name,
        }),
    }
}

fn create(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosShow> {
    if cursor.eat_word("database")? {
        return Ok(TaosShow::CreateDatabase(cursor.name()?));
    }
    if cursor.eat_word("table")? || cursor.eat_word("stable")? {
        return Ok(TaosShow::CreateTable(cursor.full_name()?));
    }
    Err(cursor.error())
}

fn table_tags(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosShow> {
    cursor.expect_word("tags")?;
    let mut tags = Vec::new();
    while !cursor.is_word("from") {
        if !tags.is_empty() {
            cursor.expect_symbol(",")?;
        }
        tags.push(cursor.name()?);
        cursor.eat_word("as")?;
    }
    cursor.expect_word("from")?;
    let stable = name_and_database(cursor)?;
    Ok(TaosShow::TableTags { stable, tags })
}

/// What else a cluster has to show; everything up to the end belongs to it.
fn system(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosShow> {
    const KNOWN: [&str; 32] = [
        "accounts",
        "anodes",
        "apps",
        "arbgroups",
        "bnodes",
        "cluster",
        "compact",
        "compacts",
        "connections",
        "consumers",
        "dnode",
        "dnodes",
        "encryptions",
        "functions",
        "grants",
        "indexes",
        "licences",
        "mnodes",
        "qnodes",
        "queries",
        "scores",
        "snodes",
        "streams",
        "subscriptions",
        "topics",
        "transactions",
        "tsmas",
        "users",
        "vgroups",
        "views",
        "vnodes",
        "users",
    ];
    if !cursor.is_any_word(&KNOWN) {
        return Err(cursor.error());
    }
    let mut words = Vec::new();
    while cursor.kind() != SqlTokenKind::End && !cursor.is_symbol(";") {
        if words.len() < 2 && cursor.kind() == SqlTokenKind::Word && !cursor.is_word("from") {
            words.push(cursor.text().to_ascii_lowercase());
        }
        cursor.advance()?;
    }
    Ok(TaosShow::System(words.join(" ")))
}
