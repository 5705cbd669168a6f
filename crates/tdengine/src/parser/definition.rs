//! CREATE, ALTER and DROP of databases and tables.

use super::cursor::TaosCursor;
use super::insert::using;
use super::values::value;
use crate::ast::{
    TaosAlterTable, TaosColumn, TaosCreateTable, TaosDatabaseOption, TaosDrop, TaosName,
    TaosStatement, TaosSubTable, TaosTableChange,
};
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::lexer::SqlTokenKind;
use crate::types::TaosType;
use crate::value::TaosValue;

/// The length of a text or of bytes, where none is written.
const USUAL_LENGTH: u32 = 64;

fn if_not_exists(cursor: &mut TaosCursor<'_>) -> TaosResult<bool> {
    cursor.eat_words(&["if", "not", "exists"])
}

fn if_exists(cursor: &mut TaosCursor<'_>) -> TaosResult<bool> {
    cursor.eat_words(&["if", "exists"])
}

/// Reads what follows CREATE.
pub(super) fn create(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    if cursor.eat_word("database")? {
        let if_not_exists = if_not_exists(cursor)?;
        return Ok(TaosStatement::CreateDatabase {
            name: cursor.name()?,
            if_not_exists,
            options: options(cursor)?,
        });
    }
    if cursor.eat_word("stable")? {
        return create_table(cursor, true);
    }
    if cursor.eat_word("table")? {
        return create_table(cursor, false);
    }
    Err(unknown(cursor, "CREATE"))
}

/// The error of a statement that begins as a known one, and names something unknown.
fn unknown(cursor: &TaosCursor<'_>, verb: &str) -> TaosError {
    const KNOWN: [&str; 25] = [
        "account",
        "anode",
        "aggregate",
        "dnode",
        "encrypt_key",
        "function",
        "index",
        "local",
        "mnode",
        "mount",
        "or",
        "qnode",
        "recursive",
        "rsma",
        "sma",
        "snode",
        "stream",
        "token",
        "topic",
        "tsma",
        "user",
        "view",
        "virtual",
        "vtable",
        "xnode",
    ];
    if cursor.is_any_word(&KNOWN) || cursor.is_any_word(&["consumer", "cluster", "all", "if"]) {
        let what = cursor.text().to_ascii_uppercase();
        return TaosError::unsupported(&format!("{verb} {what}"));
    }
    cursor.error()
}

fn create_table(cursor: &mut TaosCursor<'_>, is_stable: bool) -> TaosResult<TaosStatement> {
    let if_not_exists = if_not_exists(cursor)?;
    let name = cursor.full_name()?;
    if cursor.is_word("using") && !is_stable {
        let mut tables = vec![sub_table(cursor, name, if_not_exists)?];
        while cursor.is_name() || cursor.is_word("if") {
            let if_not_exists = self::if_not_exists(cursor)?;
            let name = cursor.full_name()?;
            tables.push(sub_table(cursor, name, if_not_exists)?);
        }
        return Ok(TaosStatement::CreateSubTables(tables));
    }
    let columns = column_list(cursor)?;
    let mut tags = Vec::new();
    if cursor.eat_word("tags")? {
        tags = column_list(cursor)?;
    } else if is_stable {
        return Err(cursor.error());
    }
    table_options(cursor)?;
    if columns
        .first()
        .is_none_or(|first| first.kind != TaosType::Timestamp)
    {
        return Err(TaosError::new(TaosCode::InvalidFirstColumn));
    }
    if columns.len() < 2 {
        return Err(TaosError::new(TaosCode::InvalidColumnCount));
    }
    if let Some(column) = columns.iter().find(|column| column.kind == TaosType::Json) {
        let message = format!("Only tag can be json type: {}", column.name);
        return Err(TaosError::with_message(TaosCode::WrongValueType, message));
    }
    if tags.len() > 1 && tags.iter().any(|tag| tag.kind == TaosType::Json) {
        let message = "Only one tag if there is a json tag";
        return Err(TaosError::with_message(TaosCode::TagsNotMatched, message));
    }
    let mut names: Vec<&str> = columns
        .iter()
        .chain(&tags)
        .map(|it| it.name.as_str())
        .collect();
    names.sort_unstable();
    if names.windows(2).any(|two| two[0] == two[1]) {
        return Err(TaosError::new(TaosCode::DuplicatedColumn));
    }
    Ok(TaosStatement::CreateTable(TaosCreateTable {
        name,
        if_not_exists,
        columns,
        tags,
    }))
}

fn sub_table(
    cursor: &mut TaosCursor<'_>,
    name: TaosName,
    if_not_exists: bool,
) -> TaosResult<TaosSubTable> {
    cursor.expect_word("using")?;
    let using = using(cursor)?;
    table_options(cursor)?;
    Ok(TaosSubTable {
        name,
        if_not_exists,
        stable: using.stable,
        tag_names: using.tag_names,
        tags: using.tags,
    })
}

fn column_list(cursor: &mut TaosCursor<'_>) -> TaosResult<Vec<TaosColumn>> {
    cursor.expect_symbol("(")?;
    let mut columns = vec![column(cursor)?];
    while cursor.eat_symbol(",")? {
        columns.push(column(cursor)?);
    }
    cursor.expect_symbol(")")?;
    Ok(columns)
}

fn column(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosColumn> {
    let name = cursor.name()?;
    let kind = column_type(cursor)?;
    // How values are stored is decided here, not by the client.
    loop {
        if cursor.is_any_word(&["encode", "compress", "level", "comment"]) {
            cursor.advance()?;
            cursor.quoted()?;
        } else if cursor.is_word("primary") || cursor.is_word("composite") {
            return Err(TaosError::unsupported("a second column as PRIMARY KEY"));
        } else {
            return Ok(TaosColumn { name, kind });
        }
    }
}

/// Reads a type.
pub(super) fn column_type(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosType> {
    if cursor.kind() != SqlTokenKind::Word {
        return Err(cursor.error());
    }
    let error = cursor.error();
    let word = cursor.text().to_ascii_lowercase();
    cursor.advance()?;
    if ["decimal", "numeric", "blob", "mediumblob"].contains(&word.as_str()) {
        return Err(TaosError::unsupported(&format!(
            "the type {}",
            word.to_uppercase()
        )));
    }
    let is_unsigned = cursor.eat_word("unsigned")?;
    let mut length = None;
    if cursor.eat_symbol("(")? {
        let wrong = TaosError::new(TaosCode::InvalidLength);
        length = Some(u32::try_from(cursor.integer()?).map_err(|_| wrong)?);
        cursor.expect_symbol(")")?;
    } else if ["varchar", "binary", "nchar", "varbinary"].contains(&word.as_str()) {
        length = Some(USUAL_LENGTH);
    }
    match TaosType::from_word(&word, is_unsigned, length) {
        Some(kind) => Ok(kind),
        None if TaosType::from_word(&word, is_unsigned, Some(1)).is_some() => {
            Err(TaosError::new(TaosCode::InvalidLength))
        }
        None => Err(error),
    }
}

/// Skips options of a table, which set how TDengine stores it.
fn table_options(cursor: &mut TaosCursor<'_>) -> TaosResult<()> {
    while cursor.is_any_word(&[
        "comment",
        "watermark",
        "max_delay",
        "rollup",
        "ttl",
        "sma",
        "delete_mark",
        "keep",
        "virtual",
    ]) {
        if cursor.is_any_word(&["rollup", "virtual"]) {
            let what = cursor.text().to_ascii_uppercase();
            return Err(TaosError::unsupported(&format!(
                "the option {what} of a table"
            )));
        }
        cursor.advance()?;
        if cursor.is_symbol("(") {
            cursor.name_list()?;
        } else {
            option_values(cursor)?;
        }
    }
    Ok(())
}

fn options(cursor: &mut TaosCursor<'_>) -> TaosResult<Vec<TaosDatabaseOption>> {
    let mut options = Vec::new();
    while cursor.kind() == SqlTokenKind::Word {
        let name = cursor.text().to_ascii_lowercase();
        cursor.advance()?;
        let values = option_values(cursor)?;
        options.push(TaosDatabaseOption { name, values });
    }
    Ok(options)
}

fn option_values(cursor: &mut TaosCursor<'_>) -> TaosResult<Vec<String>> {
    let mut values = vec![option_value(cursor)?];
    while cursor.eat_symbol(",")? {
        values.push(option_value(cursor)?);
    }
    Ok(values)
}

fn option_value(cursor: &mut TaosCursor<'_>) -> TaosResult<String> {
    let sign = if cursor.eat_symbol("-")? { "-" } else { "" };
    match cursor.kind() {
        SqlTokenKind::Text => Ok(cursor.quoted()?.into_owned()),
        SqlTokenKind::Integer | SqlTokenKind::Float | SqlTokenKind::Duration => {
            let mut value = format!("{sign}{}", cursor.text());
            cursor.advance()?;
            // RETENTIONS has pairs.
            while cursor.eat_symbol(":")? {
                value.push(':');
                value.push_str(cursor.text());
                cursor.advance()?;
            }
            Ok(value)
        }
        _ => Err(cursor.error()),
    }
}

/// Reads what follows DROP.
pub(super) fn drop_statement(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    if cursor.eat_word("database")? {
        let if_exists = if_exists(cursor)?;
        let name = cursor.name()?;
        return Ok(TaosStatement::DropDatabase { name, if_exists });
    }
    if cursor.eat_word("stable")? {
        cursor.eat_word("with")?;
        return Ok(TaosStatement::DropStable(dropped(cursor)?));
    }
    if cursor.eat_word("table")? {
        cursor.eat_word("with")?;
        let mut tables = vec![dropped(cursor)?];
        while cursor.eat_symbol(",")? {
            tables.push(dropped(cursor)?);
        }
        return Ok(TaosStatement::DropTables(tables));
    }
    Err(unknown(cursor, "DROP"))
}

fn dropped(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosDrop> {
    let if_exists = if_exists(cursor)?;
    let name = cursor.full_name()?;
    Ok(TaosDrop { name, if_exists })
}

/// Reads what follows ALTER.
pub(super) fn alter(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    if cursor.eat_word("database")? {
        let name = cursor.name()?;
        let options = options(cursor)?;
        if options.is_empty() {
            return Err(cursor.error());
        }
        return Ok(TaosStatement::AlterDatabase { name, options });
    }
    if !cursor.eat_word("table")? && !cursor.eat_word("stable")? {
        return Err(unknown(cursor, "ALTER"));
    }
    let name = cursor.full_name()?;
    let change = change(cursor)?;
    Ok(TaosStatement::AlterTable(TaosAlterTable { name, change }))
}

fn change(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosTableChange> {
    if cursor.eat_word("set")? {
        cursor.expect_word("tag")?;
        let mut tags = Vec::new();
        loop {
            let name = cursor.name()?;
            cursor.expect_symbol("=")?;
            tags.push((name, value(cursor).map(TaosValue::into_owned)?));
            if !cursor.eat_symbol(",")? {
                return Ok(TaosTableChange::SetTags(tags));
            }
            cursor.eat_word("tag")?;
        }
    }
    if !cursor.is_any_word(&["add", "drop", "modify", "rename"]) {
        let before = cursor.start();
        table_options(cursor)?;
        if cursor.start() == before {
            return Err(cursor.error());
        }
        return Ok(TaosTableChange::Options);
    }
    let verb = cursor.text().to_ascii_lowercase();
    cursor.advance()?;
    let is_tag = cursor.eat_word("tag")?;
    if !is_tag {
        cursor.expect_word("column")?;
    }
    Ok(match (verb.as_str(), is_tag) {
        ("add", false) => TaosTableChange::AddColumn(column(cursor)?),
        ("add", true) => TaosTableChange::AddTag(column(cursor)?),
        ("drop", false) => TaosTableChange::DropColumn(cursor.name()?),
        ("drop", true) => TaosTableChange::DropTag(cursor.name()?),
        ("modify", false) => TaosTableChange::ModifyColumn(column(cursor)?),
        ("modify", true) => TaosTableChange::ModifyTag(column(cursor)?),
        (_, false) => TaosTableChange::RenameColumn(cursor.name()?, cursor.name()?),
        (_, true) => TaosTableChange::RenameTag(cursor.name()?, cursor.name()?),
    })
}
