//! Prepared statements: a text with `?` in the places of values, and the text that it is with values.
//!
//! Invariant: a value becomes a literal and a name a name in backquotes, so that nothing that a client binds
//! changes the statement.

mod reader;

use crate::bound_value::{BoundValue, push_quoted_name};
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::lexer::SqlTokenKind;
use reader::PreparedTextReader;

/// Most values of a statement.
const HOLES_MAX: usize = 4096;

/// A prepared statement.
#[derive(Clone, Debug, PartialEq)]
pub enum PreparedSql {
    /// INSERT, whose values may be bound in many rows.
    Insert(PreparedInsert),
    /// Another statement: the texts before, between and behind its values.
    Other(Vec<String>),
}

/// A prepared INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedInsert {
    /// The table, as it is written; `None` if it is bound.
    pub table: Option<String>,
    /// The super table and the tags of the table.
    pub using: Option<PreparedUsing>,
    /// The columns; `None` for all, in order.
    pub columns: Option<Vec<String>>,
    /// The values of a row.
    pub values: Vec<PreparedItem>,
}

/// USING of a prepared INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedUsing {
    /// The super table, as it is written.
    pub stable: String,
    /// The tags that have values; `None` for all, in order.
    pub tag_names: Option<Vec<String>>,
    /// Their values.
    pub tags: Vec<PreparedItem>,
}

/// A value of a prepared INSERT.
#[derive(Clone, Debug, PartialEq)]
pub enum PreparedItem {
    /// It is bound.
    Bound,
    /// It is written in the statement.
    Written(String),
}

/// What a place of a prepared INSERT is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedPlace {
    /// The name of the table.
    TableName,
    /// The tag with this number among those that have values.
    Tag(usize),
    /// The column with this number among those that have values.
    Column(usize),
}

impl PreparedSql {
    /// Reads a statement.
    ///
    /// # Errors
    /// If its quotes have no end, or an INSERT has another form than one row of values for one table.
    pub fn parse(sql: &str) -> TaosResult<Self> {
        let mut reader = PreparedTextReader { sql, at: 0 };
        let first = reader.peek()?;
        if reader.is_word(first, "insert") || reader.is_word(first, "import") {
            return reader.insert().map(Self::Insert);
        }
        let (mut pieces, mut from) = (Vec::new(), 0);
        loop {
            let token = reader.next()?;
            match token.kind {
                SqlTokenKind::End => break,
                SqlTokenKind::Symbol if reader.text(token) == "?" => {
                    pieces.push(sql.get(from..token.start).unwrap_or_default().to_owned());
                    from = token.end;
                }
                _ => {}
            }
            if pieces.len() > HOLES_MAX {
                return Err(too_many());
            }
        }
        pieces.push(sql.get(from..).unwrap_or_default().to_owned());
        Ok(Self::Other(pieces))
    }

    /// The number of values that are bound.
    #[must_use]
    pub fn places(&self) -> usize {
        match self {
            Self::Insert(insert) => insert.places().len(),
            Self::Other(pieces) => pieces.len().saturating_sub(1),
        }
    }
}

/// The text of a statement that is no INSERT.
///
/// # Errors
/// If the number of values is another.
pub fn filled_text(pieces: &[String], values: &[BoundValue<'_>]) -> TaosResult<String> {
    if values.len() + 1 != pieces.len() {
        let message = "stmt bind param does not match the number of parameters";
        return Err(TaosError::with_message(TaosCode::InvalidParameter, message));
    }
    let mut out = String::new();
    let mut values = values.iter();
    for piece in pieces {
        out.push_str(piece);
        if let Some(value) = values.next() {
            value.push_literal(&mut out)?;
        }
    }
    Ok(out)
}

fn too_many() -> TaosError {
    TaosError::about(TaosCode::InvalidParameter, "too many parameters")
}

impl PreparedInsert {
    /// What is bound, in the order of the text.
    #[must_use]
    pub fn places(&self) -> Vec<PreparedPlace> {
        let bound = |items: &[PreparedItem]| {
            let items = items.iter().enumerate();
            let bound = items.filter(|(_, item)| **item == PreparedItem::Bound);
            bound.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let mut places = Vec::new();
        if self.table.is_none() {
            places.push(PreparedPlace::TableName);
        }
        let tags = self.using.as_ref().map(|using| bound(&using.tags));
        places.extend(tags.into_iter().flatten().map(PreparedPlace::Tag));
        let columns = bound(&self.values);
        places.extend(columns.into_iter().map(PreparedPlace::Column));
        places
    }

    /// The table whose columns the statement is about, as SQL: the super table, or the table.
    #[must_use]
    pub fn described(&self) -> Option<&str> {
        let stable = self.using.as_ref().map(|using| using.stable.as_str());
        stable.or(self.table.as_deref())
    }

    /// The same statement, if it names `tbname` among the columns of a super table, as one that creates
    /// tables. `is_tag` tells which columns are tags.
    #[must_use]
    pub fn with_using(self, is_tag: &dyn Fn(&str) -> bool) -> Self {
        let is_tbname = |name: &String| name.eq_ignore_ascii_case("tbname");
        let names = self.columns.iter().flatten();
        let (Some(stable), None, true) = (&self.table, &self.using, names.clone().any(is_tbname))
        else {
            return self;
        };
        let (mut tag_names, mut tags) = (Vec::new(), Vec::new());
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        let mut table = None;
        for (name, item) in names.zip(&self.values) {
            if is_tbname(name) {
                if let PreparedItem::Written(text) = item {
                    table = Some(name_of(text));
                }
            } else if is_tag(name) {
                tag_names.push(name.clone());
                tags.push(item.clone());
            } else {
                columns.push(name.clone());
                values.push(item.clone());
            }
        }
        Self {
            table,
            using: Some(PreparedUsing {
                stable: stable.clone(),
                tag_names: Some(tag_names),
                tags,
            }),
            columns: Some(columns),
            values,
        }
    }

    /// Writes the begin of the rows for a table. `tags` are bound values.
    ///
    /// # Errors
    /// If there are too few values, or there is no name.
    pub fn begin_table(
        &self,
        name: Option<&str>,
        tags: &[BoundValue<'_>],
        out: &mut String,
    ) -> TaosResult<()> {
        match (&self.table, name) {
            (Some(table), _) => out.push_str(table),
            (None, Some(name)) => push_table_name(name, out)?,
            (None, None) => {
                let message = "Table name not set";
                return Err(TaosError::with_message(TaosCode::InvalidParameter, message));
            }
        }
        if let Some(using) = &self.using {
            out.push_str(" USING ");
            out.push_str(&using.stable);
            push_names(using.tag_names.as_deref(), out);
            out.push_str(" TAGS ");
            let mut tags = tags.iter();
            push_items(
                &using.tags,
                &mut || tags.next().cloned().ok_or_else(tags_not_matched),
                out,
            )?;
            if tags.next().is_some() {
                return Err(tags_not_matched());
            }
        }
        push_names(self.columns.as_deref(), out);
        out.push_str(" VALUES ");
        Ok(())
    }

    /// Writes a row, whose bound values `next` gives.
    ///
    /// # Errors
    /// Those of `next`, and if a value has no literal.
    pub fn row<'v>(
        &self,
        next: &mut dyn FnMut() -> TaosResult<BoundValue<'v>>,
        out: &mut String,
    ) -> TaosResult<()> {
        push_items(&self.values, next, out)
    }
}

fn tags_not_matched() -> TaosError {
    TaosError::new(TaosCode::TagsNotMatched)
}

fn push_names(names: Option<&[String]>, out: &mut String) {
    let Some(names) = names else {
        return;
    };
    out.push_str(" (");
    for (place, name) in names.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_quoted_name(name, out);
    }
    out.push(')');
}

fn push_items<'v>(
    items: &[PreparedItem],
    next: &mut dyn FnMut() -> TaosResult<BoundValue<'v>>,
    out: &mut String,
) -> TaosResult<()> {
    out.push('(');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        match item {
            PreparedItem::Bound => next()?.push_literal(out)?,
            PreparedItem::Written(text) => out.push_str(text),
        }
    }
    out.push(')');
    Ok(())
}

/// Writes the name of a table as a client binds it: with or without its database, in backquotes or not.
fn push_table_name(name: &str, out: &mut String) -> TaosResult<()> {
    let wrong = || TaosError::about(TaosCode::InvalidName, name);
    if !name.contains('`') {
        let (database, name) = match name.split_once('.') {
            Some((database, name)) => (Some(database), name),
            None => (None, name),
        };
        if name.is_empty() || database.is_some_and(str::is_empty) {
            return Err(wrong());
        }
        if let Some(database) = database {
            push_quoted_name(database, out);
            out.push('.');
        }
        push_quoted_name(name, out);
        return Ok(());
    }
    let mut reader = PreparedTextReader { sql: name, at: 0 };
    let written = reader.name().map_err(|_| wrong())?;
    if reader.peek()?.kind != SqlTokenKind::End {
        return Err(wrong());
    }
    out.push_str(&written);
    Ok(())
}

/// The name that a text literal stands for, in backquotes.
fn name_of(literal: &str) -> String {
    let mut out = String::new();
    push_quoted_name(&crate::lexer::unquoted(literal), &mut out);
    out
}

#[cfg(test)]
mod tests;
