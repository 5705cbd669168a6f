//! The columns of a table, as DESCRIBE tells them.

use crate::http::tdengine::asked::{TaosAnswer, run};
use crate::http::tdengine::columns::{precision_number, values_of};
use crate::http::tdengine::error::TaosFailure;
use crate::listener::ServerState;
use marigram_service::Session;
use marigram_tdengine::{TaosPrecision, TaosType, type_code};
use serde_json::{Value, json};

/// Most columns of a table that are looked at.
const COLUMNS_MAX: usize = 8192;

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct DescribedColumn {
    pub(super) name: String,
    pub(super) kind: TaosType,
    pub(super) is_tag: bool,
}

/// The columns of a table.
#[derive(Clone, Debug)]
pub(super) struct TableColumns {
    pub(super) columns: Vec<DescribedColumn>,
    /// The precision of its times.
    pub(super) precision: TaosPrecision,
}

impl TableColumns {
    /// Asks for the columns of a table, whose name is written as in SQL.
    ///
    /// # Errors
    /// If there is no such table.
    pub(super) async fn read(
        server: &ServerState,
        session: &Session,
        table: &str,
    ) -> Result<Self, TaosFailure> {
        let answer = run(server, session, &format!("DESCRIBE {table}")).await?;
        let TaosAnswer::Rows(mut rows) = answer else {
            return Err(TaosFailure::other("DESCRIBE answers no rows"));
        };
        let mut columns = Vec::new();
        while let Some(batch) = rows.next().await? {
            let values = values_of(&rows.columns, &batch)?;
            let [name, kind, length, note, ..] = &values[..] else {
                return Err(TaosFailure::other("DESCRIBE answers other columns"));
            };
            for row in 0..batch.num_rows() {
                let (Some(name), Some(word)) = (name.text(row), kind.text(row)) else {
                    continue;
                };
                let length = length.integer(row).unwrap_or_default();
                let sized = TaosType::from_text(&format!("{word}({length})"));
                columns.push(DescribedColumn {
                    name: name.to_owned(),
                    kind: TaosType::from_text(word)
                        .or(sized)
                        .unwrap_or(TaosType::Null),
                    is_tag: note.text(row).is_some_and(|note| note.starts_with("TAG")),
                });
            }
            if columns.len() > COLUMNS_MAX {
                break;
            }
        }
        Ok(Self {
            columns,
            precision: rows.columns.precision,
        })
    }

    /// The tags, or the other columns.
    pub(super) fn only(&self, tags: bool) -> impl Iterator<Item = &DescribedColumn> {
        self.columns
            .iter()
            .filter(move |column| column.is_tag == tags)
    }

    /// A column by its name.
    pub(super) fn named(&self, name: &str) -> Option<&DescribedColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// What clients are told of a column.
    pub(super) fn field(&self, column: &DescribedColumn) -> Value {
        json!({
            "name": column.name,
            "field_type": type_code(column.kind),
            "precision": match column.kind {
                TaosType::Timestamp => precision_number(self.precision),
                _ => 0,
            },
            "scale": 0,
            "bytes": stored_bytes(column.kind),
        })
    }
}

/// The bytes that a value of a type takes, with its length.
fn stored_bytes(kind: TaosType) -> u32 {
    match kind {
        TaosType::NChar(chars) => chars.saturating_mul(4).saturating_add(2),
        TaosType::VarChar(bytes) | TaosType::VarBinary(bytes) | TaosType::Geometry(bytes) => {
            bytes.saturating_add(2)
        }
        kind => kind.length(),
    }
}
