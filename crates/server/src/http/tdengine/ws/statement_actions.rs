//! What messages about prepared statements ask for.

use super::actions::{TaosActions, number, text};
use super::reply::{Reply, ReplyHead};
use super::statements::HeldStatement;
use crate::http::tdengine::error::TaosFailure;
use serde_json::{Value, json};

/// The actions, but for `init`; those of the second kind have `stmt2_` before them.
const ACTIONS: [&str; 13] = [
    "prepare",
    "set_table_name",
    "set_tags",
    "bind",
    "add_batch",
    "exec",
    "close",
    "get_tag_fields",
    "get_col_fields",
    "use_result",
    "result",
    "stmt_num_params",
    "stmt_get_param",
];

impl TaosActions {
    /// The actions of prepared statements.
    pub(super) async fn statement(
        &mut self,
        head: &ReplyHead,
        args: &Value,
    ) -> Result<Reply, TaosFailure> {
        let (action, is_second) = match head.action.strip_prefix("stmt2_") {
            Some(action) => (action, true),
            None => (head.action.as_str(), false),
        };
        if action == "init" {
            let id = self.statements.init(is_second)?;
            return Ok(head.done(json!({"stmt_id": id})));
        }
        if !ACTIONS.contains(&action) {
            return Err(TaosFailure::other(format!(
                "unknown action {}",
                head.action
            )));
        }
        let id = number(args, "stmt_id")?;
        if action == "close" {
            self.statements.close(id, is_second)?;
            return Ok(if is_second {
                head.done(Value::Null)
            } else {
                Reply::None
            });
        }
        let _ticket = self.enter()?;
        let (Some(session), server) = (&self.session, &self.shared.server) else {
            return Err(TaosFailure::other("server not connected"));
        };
        let statement = self.statements.get(id, is_second)?;
        match action {
            "exec" => {
                let rows = statement.exec(server, session).await?;
                Ok(head.done(json!({"affected": rows})))
            }
            "use_result" | "result" => {
                let rows = statement.take_rows()?;
                let id_name = if is_second { "id" } else { "result_id" };
                self.keep(head, rows, id_name)
            }
            "prepare" => {
                let sql = text(args, "sql")?;
                let asks = args.get("get_fields").and_then(Value::as_bool);
                let asks = asks.unwrap_or(false);
                let (fields, count) = statement.prepare((server, session), sql, asks).await?;
                let is_insert = statement.is_insert();
                Ok(head.done(if is_second {
                    json!({"is_insert": is_insert, "fields": fields, "fields_count": count})
                } else {
                    json!({"is_insert": is_insert})
                }))
            }
            "get_tag_fields" | "get_col_fields" => {
                let tags = action == "get_tag_fields";
                let fields = statement.fields((server, session), tags).await?;
                Ok(head.done(json!({"fields": fields})))
            }
            "stmt_get_param" => {
                let index = number(args, "index")?;
                let fields = statement.fields((server, session), false).await?;
                let field = usize::try_from(index).ok().and_then(|at| fields.get(at));
                let field = field.ok_or_else(|| TaosFailure::other("Invalid parameters"))?;
                Ok(head.done(json!({
                    "index": index, "data_type": field["field_type"], "length": field["bytes"],
                })))
            }
            _ => bind_text(statement, (action, args)).map(|fields| head.done(fields)),
        }
    }
}

/// The actions that bind values, and ask about them.
fn bind_text(
    statement: &mut HeldStatement,
    (action, args): (&str, &Value),
) -> Result<Value, TaosFailure> {
    let array = |name: &str| {
        let array = args.get(name).and_then(Value::as_array);
        array.ok_or_else(|| TaosFailure::other(format!("{name} are no array")))
    };
    match action {
        "set_table_name" => statement.set_table(text(args, "name")?),
        "set_tags" => statement.set_json_tags(array("tags")?)?,
        "bind" => statement.bind_json(array("columns")?)?,
        "stmt_num_params" => return Ok(json!({"num_params": statement.places()?})),
        // Rows are added when they are bound.
        _ => {}
    }
    Ok(Value::Null)
}
