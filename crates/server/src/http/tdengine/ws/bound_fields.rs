//! What is bound to an INSERT, as clients are told it.

use crate::http::tdengine::describe::TableColumns;
use crate::http::tdengine::error::TaosFailure;
use crate::listener::ServerState;
use marigram_service::Session;
use marigram_tdengine::{
    PreparedInsert, PreparedItem, TaosCode, TaosError, TaosResult, TaosType, type_code,
};
use serde_json::{Value, json};

/// How clients tell what a value is bound to.
pub(super) const BIND_COLUMN: u8 = 1;
pub(super) const BIND_TAG: u8 = 2;
const BIND_TABLE_NAME: u8 = 4;

/// The length that clients are told of the name of a table.
const NAME_BYTES: u32 = 271;

/// Whether the columns of an INSERT include the name of the table.
pub(super) fn has_tbname(insert: &PreparedInsert) -> bool {
    let mut names = insert.columns.iter().flatten();
    names.any(|name| name.eq_ignore_ascii_case("tbname"))
}

/// The columns of the table that an INSERT is about.
pub(super) async fn described(
    insert: &PreparedInsert,
    (server, session): (&ServerState, &Session),
) -> Result<TableColumns, TaosFailure> {
    let Some(table) = insert.described() else {
        let message = "the table is not known before its name is bound; use INSERT INTO ? USING";
        return Err(TaosError::with_message(TaosCode::InvalidParameter, message).into());
    };
    TableColumns::read(server, session, table).await
}

/// What is bound in an INSERT, in the order of its text.
pub(super) fn fields_of(
    insert: &PreparedInsert,
    table: &TableColumns,
) -> Result<Vec<Value>, TaosFailure> {
    let mut fields = Vec::new();
    let bound = |item: &PreparedItem| *item == PreparedItem::Bound;
    let field = |name: &str| {
        if name.eq_ignore_ascii_case("tbname") {
            return Ok(name_field());
        }
        let column = table.named(name);
        let column = column.ok_or_else(|| TaosError::about(TaosCode::InvalidColumn, name))?;
        let mut field = table.field(column);
        let kind = if column.is_tag { BIND_TAG } else { BIND_COLUMN };
        if let Some(field) = field.as_object_mut() {
            field.insert("bind_type".to_owned(), kind.into());
        }
        TaosResult::Ok(field)
    };
    let names_of = |given: Option<&Vec<String>>, tags: bool| -> Vec<String> {
        let all = || table.only(tags).map(|column| column.name.clone()).collect();
        given.cloned().unwrap_or_else(all)
    };
    if insert.table.is_none() {
        fields.push(name_field());
    }
    if let Some(using) = &insert.using {
        let names = names_of(using.tag_names.as_ref(), true);
        if names.len() != using.tags.len() {
            return Err(TaosError::new(TaosCode::TagsNotMatched).into());
        }
        for (name, item) in names.iter().zip(&using.tags) {
            if bound(item) {
                fields.push(field(name)?);
            }
        }
    }
    let names = names_of(insert.columns.as_ref(), false);
    if names.len() != insert.values.len() {
        return Err(TaosError::new(TaosCode::InvalidColumnCount).into());
    }
    for (name, item) in names.iter().zip(&insert.values) {
        if bound(item) {
            fields.push(field(name)?);
        }
    }
    Ok(fields)
}

/// What clients are told of the name of a table.
fn name_field() -> Value {
    let kind = TaosType::VarChar(NAME_BYTES);
    json!({
        "name": "tbname", "field_type": type_code(kind), "precision": 0, "scale": 0,
        "bytes": NAME_BYTES, "bind_type": BIND_TABLE_NAME,
    })
}
