//! The texts of INSERT that bound rows become, none of them very long.

use crate::admission::MemoryPermit;
use crate::http::tdengine::error::TaosFailure;
use marigram_tdengine::{
    BoundColumn, BoundValue, PreparedInsert, Stmt2Bind, TaosCode, TaosError, TaosResult,
};
use serde_json::Value;

/// Bytes after which a text ends, and another one begins.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// The texts, and the memory that they take.
pub(super) struct InsertTexts {
    whole: Vec<String>,
    text: String,
    permit: MemoryPermit,
}

impl InsertTexts {
    /// No texts, whose memory `permit` will hold.
    pub(super) fn new(permit: MemoryPermit) -> Self {
        Self {
            whole: Vec::new(),
            text: String::new(),
            permit,
        }
    }

    /// Whether there are none.
    pub(super) fn are_empty(&self) -> bool {
        self.whole.is_empty() && self.text.is_empty()
    }

    /// No texts, whose memory counts as that of these.
    pub(super) fn renewed(&self) -> Self {
        Self::new(self.permit.renewed())
    }

    /// The texts, and what holds their memory.
    pub(super) fn into_parts(mut self) -> (Vec<String>, MemoryPermit) {
        if !self.text.is_empty() {
            self.whole.push(self.text);
        }
        (self.whole, self.permit)
    }

    /// Adds the rows of a table. `row` writes a row. If that fails, the texts are what they were.
    ///
    /// # Errors
    /// Those of `row`, if there is a value without a literal, and if there is no memory.
    pub(super) fn table(
        &mut self,
        insert: &PreparedInsert,
        table: (Option<&str>, &[BoundValue<'_>]),
        rows: usize,
        row: &mut dyn FnMut(&mut String) -> TaosResult<()>,
    ) -> Result<(), TaosFailure> {
        let (whole, length) = (self.whole.len(), self.text.len());
        let added = self.add_table(insert, table, rows, row);
        if added.is_err() {
            // The text before may have become a whole one meanwhile.
            if whole < self.whole.len() {
                self.text = self.whole.swap_remove(whole);
                self.whole.truncate(whole);
            }
            self.text.truncate(length);
        }
        added
    }

    fn add_table(
        &mut self,
        insert: &PreparedInsert,
        (name, tags): (Option<&str>, &[BoundValue<'_>]),
        rows: usize,
        row: &mut dyn FnMut(&mut String) -> TaosResult<()>,
    ) -> Result<(), TaosFailure> {
        let mut has_begun = false;
        for _ in 0..rows {
            if !has_begun {
                let begin = if self.text.is_empty() {
                    "INSERT INTO "
                } else {
                    " "
                };
                self.text.push_str(begin);
                insert.begin_table(name, tags, &mut self.text)?;
                has_begun = true;
            }
            row(&mut self.text)?;
            if self.text.len() >= TEXT_BYTES_MAX {
                let text = std::mem::take(&mut self.text);
                let has_room = self.permit.grow(text.len());
                self.whole.push(text);
                if !has_room {
                    return Err(TaosFailure::no_memory());
                }
                has_begun = false;
            }
        }
        Ok(())
    }

    /// Adds the rows of columns.
    ///
    /// # Errors
    /// If the columns are malformed, and as [`InsertTexts::table`].
    pub(super) fn columns(
        &mut self,
        insert: &PreparedInsert,
        table: (Option<&str>, &[BoundValue<'_>]),
        mut columns: Vec<BoundColumn<'_>>,
    ) -> Result<(), TaosFailure> {
        let rows = columns.first().map_or(1, BoundColumn::rows);
        if columns.iter().any(|column| column.rows() != rows) {
            return Err(wrong("columns of different lengths").into());
        }
        let count = columns.len();
        self.table(insert, table, rows, &mut |out| {
            let mut next = columns.iter_mut();
            let mut taken = 0;
            insert.row(
                &mut || {
                    taken += 1;
                    next.next().ok_or_else(too_few)?.next_value()
                },
                out,
            )?;
            if taken == count {
                Ok(())
            } else {
                Err(too_few())
            }
        })
    }

    /// Adds the tables of a message.
    ///
    /// # Errors
    /// If it is malformed, and as [`InsertTexts::table`].
    pub(super) fn tables(
        &mut self,
        insert: &PreparedInsert,
        mut bind: Stmt2Bind<'_>,
    ) -> Result<(), TaosFailure> {
        while let Some(mut table) = bind.next_table()? {
            let tags = table.tags.iter_mut().map(BoundColumn::next_value);
            let tags = tags.collect::<TaosResult<Vec<_>>>()?;
            self.columns(insert, (table.name, &tags), table.columns)?;
        }
        Ok(())
    }

    /// Adds the rows of columns of JSON.
    ///
    /// # Errors
    /// If they are no columns, and as [`InsertTexts::table`].
    pub(super) fn json_columns(
        &mut self,
        insert: &PreparedInsert,
        table: (Option<&str>, &[BoundValue<'_>]),
        columns: &[Value],
    ) -> Result<(), TaosFailure> {
        let columns = columns.iter().map(|column| {
            let values = column.as_array();
            values.ok_or_else(|| wrong("columns that are no arrays"))
        });
        let columns = columns.collect::<TaosResult<Vec<_>>>()?;
        let rows = columns.first().map_or(1, |column| column.len());
        if columns.iter().any(|column| column.len() != rows) {
            return Err(wrong("columns of different lengths").into());
        }
        let mut row = 0;
        self.table(insert, table, rows, &mut |out| {
            let mut next = columns.iter();
            let mut taken = 0;
            insert.row(
                &mut || {
                    taken += 1;
                    let column = next.next().ok_or_else(too_few)?;
                    column.get(row).map_or_else(|| Err(too_few()), json_value)
                },
                out,
            )?;
            row += 1;
            if taken == columns.len() {
                Ok(())
            } else {
                Err(too_few())
            }
        })
    }
}

/// A value of JSON.
///
/// # Errors
/// If it is an array or an object.
pub(super) fn json_value(value: &Value) -> TaosResult<BoundValue<'_>> {
    Ok(match value {
        Value::Null => BoundValue::Null,
        Value::Bool(value) => BoundValue::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => BoundValue::Integer(number.into()),
            (_, Some(number)) => BoundValue::Integer(number.into()),
            _ => BoundValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => BoundValue::Text(text.as_str().into()),
        Value::Array(_) | Value::Object(_) => return Err(wrong("values that are none")),
    })
}

fn too_few() -> TaosError {
    wrong("stmt column count not match")
}

fn wrong(what: &str) -> TaosError {
    TaosError::about(TaosCode::InvalidParameter, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::gate;
    use marigram_tdengine::PreparedSql;
    use serde_json::json;

    fn insert(sql: &str) -> PreparedInsert {
        match PreparedSql::parse(sql) {
            Ok(PreparedSql::Insert(insert)) => insert,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn columns_of_json_become_rows() {
        let insert = insert("insert into ? values (?, ?)");
        let mut texts = InsertTexts::new(gate(1 << 30).lease());
        let columns = [json!([1, 2]), json!(["a", null])];
        let done = texts.json_columns(&insert, (Some("d"), &[]), &columns);
        assert!(done.is_ok());
        let done = texts.json_columns(&insert, (Some("e"), &[]), &columns);
        assert!(done.is_ok());
        for wrong in [json!([[1, 2], [1]]), json!([[1]]), json!([1, 2])] {
            let columns = wrong.as_array().expect("an array");
            let done = texts.json_columns(&insert, (Some("d"), &[]), columns);
            assert!(done.is_err(), "{wrong}");
        }
        // What failed left nothing.
        let (texts, _) = texts.into_parts();
        assert_eq!(
            texts,
            ["INSERT INTO `d` VALUES (1,'a')(2,NULL) `e` VALUES (1,'a')(2,NULL)"]
        );
    }

    #[test]
    fn long_texts_are_divided_and_counted() {
        let insert = insert("insert into d values (?, ?)");
        let rows = 20_000;
        let columns = [
            json!((0..rows).collect::<Vec<_>>()),
            json!(vec!["x".repeat(50); rows]),
        ];
        let mut texts = InsertTexts::new(gate(1 << 30).lease());
        assert!(texts.json_columns(&insert, (None, &[]), &columns).is_ok());
        let (whole, permit) = texts.into_parts();
        assert!(whole.len() > 2 && permit.held() > 1 << 20);
        let begun = whole
            .iter()
            .all(|text| text.starts_with("INSERT INTO d VALUES ("));
        assert!(begun);
        let found: usize = whole
            .iter()
            .map(|text| text.matches(")(").count() + 1)
            .sum();
        assert_eq!(found, rows);
        let mut texts = InsertTexts::new(gate(1 << 20).lease());
        assert!(texts.json_columns(&insert, (None, &[]), &columns).is_err());
    }
}
