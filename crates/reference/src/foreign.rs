//! Foreign keys: what follows from changes, and whether every child has its parent.
//!
//! As in PostgreSQL, keys are checked when all rows of a call are changed: rows of one call may refer to each other
//! in any order. What follows from a change is a queue, not a recursion, so that the depth of a tree has no limit.

use crate::catalog::ReferenceCatalog;
use crate::context::Context;
use crate::definition::{ForeignKey, ForeignKeyAction, ReferenceTable};
use crate::error::{ReferenceError, Result};
use crate::keys::{find, read_cells};
use crate::schema::{columns_of, comparable};
use crate::text;
use crate::value::Cell;
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows whose foreign keys must still be changed, and keys that must still be checked.
#[derive(Default)]
pub(crate) struct Consequences {
    pub(crate) queue: VecDeque<Consequence>,
    checks: Vec<Check>,
}

/// A change that follows from another.
pub(crate) enum Consequence {
    Delete {
        table: Arc<ReferenceTable>,
        rows: Vec<i64>,
    },
    Change {
        table: Arc<ReferenceTable>,
        rows: Vec<i64>,
        columns: Vec<u32>,
        cells: Vec<Cell<'static>>,
    },
}

/// What must hold in the end; `key` is the position of a foreign key in its table.
enum Check {
    /// No row of `child` has this key, or a parent has it.
    Unreferenced {
        child: Arc<ReferenceTable>,
        key: usize,
        cells: Vec<Cell<'static>>,
    },
    /// The parents of this row exist.
    Parents {
        child: Arc<ReferenceTable>,
        key: usize,
        row: i64,
    },
}

/// The keys that other rows may refer to, of a row before it is changed.
pub(crate) struct OldKeys(Vec<(Arc<ReferenceTable>, usize, Vec<Cell<'static>>)>);

impl Consequences {
    /// Reads the keys of a row; with `changed`, only those with one of these columns.
    pub(crate) fn old_keys(
        context: &Context<'_>,
        table: &ReferenceTable,
        changed: Option<&[u32]>,
        row: i64,
    ) -> Result<OldKeys> {
        let mut keys = Vec::new();
        for (child, position) in context.catalog.referring(table.id) {
            let Some(key) = child.foreign_keys.get(position) else {
                continue;
            };
            let is_changed = changed
                .is_none_or(|changed| changed.iter().any(|id| key.parent_columns.contains(id)));
            if !is_changed {
                continue;
            }
            let columns = columns_of(table, &key.parent_columns)?;
            if let Some(cells) = read_cells(context.connection, table, &columns, row)?
                && !cells.iter().any(Cell::is_null)
            {
                keys.push((child.clone(), position, cells));
            }
        }
        Ok(OldKeys(keys))
    }

    /// Notes what follows from the deletion of a row.
    pub(crate) fn deleted(&mut self, connection: &Connection, old: OldKeys) -> Result<()> {
        for (child, position, cells) in old.0 {
            let Some(key) = child.foreign_keys.get(position) else {
                continue;
            };
            match key.on_delete {
                ForeignKeyAction::Refuse => {
                    self.checks.push(Check::Unreferenced {
                        child,
                        key: position,
                        cells,
                    });
                }
                ForeignKeyAction::Cascade => {
                    let rows = children(connection, &child, key, &cells)?;
                    if !rows.is_empty() {
                        self.queue
                            .push_back(Consequence::Delete { table: child, rows });
                    }
                }
                ForeignKeyAction::SetNull => self.set_null(connection, &child, key, &cells)?,
            }
        }
        Ok(())
    }

    /// Notes what follows from a change of a row.
    pub(crate) fn changed(
        &mut self,
        connection: &Connection,
        table: &ReferenceTable,
        row: i64,
        old: OldKeys,
    ) -> Result<()> {
        for (child, position, cells) in old.0 {
            let Some(key) = child.foreign_keys.get(position) else {
                continue;
            };
            let columns = columns_of(table, &key.parent_columns)?;
            let new = read_cells(connection, table, &columns, row)?.unwrap_or_default();
            if new == cells {
                continue;
            }
            match key.on_update {
                ForeignKeyAction::Refuse => {
                    self.checks.push(Check::Unreferenced {
                        child,
                        key: position,
                        cells,
                    });
                }
                ForeignKeyAction::Cascade => {
                    let rows = children(connection, &child, key, &cells)?;
                    if !rows.is_empty() {
                        let (columns, cells) = (key.columns.clone(), new);
                        let table = child;
                        self.queue.push_back(Consequence::Change {
                            table,
                            rows,
                            columns,
                            cells,
                        });
                    }
                }
                ForeignKeyAction::SetNull => self.set_null(connection, &child, key, &cells)?,
            }
        }
        Ok(())
    }

    fn set_null(
        &mut self,
        connection: &Connection,
        child: &Arc<ReferenceTable>,
        key: &ForeignKey,
        cells: &[Cell<'static>],
    ) -> Result<()> {
        let rows = children(connection, child, key, cells)?;
        if !rows.is_empty() {
            let cells = vec![Cell::Null; key.columns.len()];
            let (table, columns) = (child.clone(), key.columns.clone());
            self.queue.push_back(Consequence::Change {
                table,
                rows,
                columns,
                cells,
            });
        }
        Ok(())
    }

    /// Notes that a row's foreign keys with one of these columns must have parents.
    pub(crate) fn check_parents(&mut self, child: &Arc<ReferenceTable>, changed: &[u32], row: i64) {
        for (position, key) in child.foreign_keys.iter().enumerate() {
            if key.columns.iter().any(|id| changed.contains(id)) {
                let (child, key) = (child.clone(), position);
                self.checks.push(Check::Parents { child, key, row });
            }
        }
    }

    /// Checks what was noted.
    pub(crate) fn check(self, context: &Context<'_>) -> Result<()> {
        let Context {
            connection,
            catalog,
            ..
        } = *context;
        for check in self.checks {
            match check {
                Check::Unreferenced { child, key, cells } => {
                    if let Some(key) = child.foreign_keys.get(key) {
                        check_unreferenced(connection, catalog, &child, key, &cells)?;
                    }
                }
                Check::Parents { child, key, row } => {
                    if let Some(key) = child.foreign_keys.get(key) {
                        check_orphans(connection, catalog, &child, key, Some((row, row)))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The rows of a child with a key.
fn children(
    connection: &Connection,
    child: &ReferenceTable,
    key: &ForeignKey,
    cells: &[Cell<'_>],
) -> Result<Vec<i64>> {
    let columns = columns_of(child, &key.columns)?;
    let sql = format!(
        "SELECT r FROM t{} WHERE {}",
        child.id,
        crate::keys::equals(&columns, "")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for (number, (column, cell)) in columns.iter().zip(cells).enumerate() {
        statement.raw_bind_parameter(number + 1, cell.clone().comparable(column.kind))?;
    }
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row.get(0)?);
    }
    Ok(found)
}

fn parent<'a>(catalog: &'a ReferenceCatalog, key: &ForeignKey) -> Result<&'a Arc<ReferenceTable>> {
    catalog.by_id(key.parent).ok_or_else(|| {
        ReferenceError::damaged(format!("foreign key \"{}\" has no parent", key.name))
    })
}

fn check_unreferenced(
    connection: &Connection,
    catalog: &ReferenceCatalog,
    child: &ReferenceTable,
    key: &ForeignKey,
    cells: &[Cell<'_>],
) -> Result<()> {
    if find(connection, child, &columns_of(child, &key.columns)?, cells)?.is_none() {
        return Ok(());
    }
    let parent = parent(catalog, key)?;
    let columns = columns_of(parent, &key.parent_columns)?;
    if find(connection, parent, &columns, cells)?.is_some() {
        return Ok(());
    }
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        parent.name, key.name, child.name
    );
    let detail = format!(
        "Key {} is still referenced from table \"{}\".",
        text::key(&columns, cells),
        child.name
    );
    Err(ReferenceError::new("23503", message)
        .with_detail(detail)
        .with_constraint(&child.name, &key.name))
}

/// Checks that every row of a child, or every one with an id in a range, has its parent.
pub(crate) fn check_orphans(
    connection: &Connection,
    catalog: &ReferenceCatalog,
    child: &ReferenceTable,
    key: &ForeignKey,
    range: Option<(i64, i64)>,
) -> Result<()> {
    let parent = parent(catalog, key)?;
    let columns = columns_of(child, &key.columns)?;
    let parents = columns_of(parent, &key.parent_columns)?;
    let listed: Vec<_> = columns
        .iter()
        .map(|column| format!("a.c{}", column.id))
        .collect();
    let mut conditions: Vec<_> = listed
        .iter()
        .map(|column| format!("{column} IS NOT NULL"))
        .collect();
    if range.is_some() {
        conditions.push("a.r BETWEEN ?1 AND ?2".to_owned());
    }
    let joined = columns.iter().zip(&parents).map(|(column, parent)| {
        format!(
            "{} = {}",
            comparable(parent, "b."),
            comparable(column, "a.")
        )
    });
    let sql = format!(
        "SELECT {} FROM t{} a WHERE {} AND NOT EXISTS (SELECT 1 FROM t{} b WHERE {}) LIMIT 1",
        listed.join(", "),
        child.id,
        conditions.join(" AND "),
        parent.id,
        joined.collect::<Vec<_>>().join(" AND ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    if let Some((first, last)) = range {
        statement.raw_bind_parameter(1, first)?;
        statement.raw_bind_parameter(2, last)?;
    }
    let mut rows = statement.raw_query();
    let Some(row) = rows.next()? else {
        return Ok(());
    };
    let mut cells = Vec::with_capacity(columns.len());
    for position in 0..columns.len() {
        cells.push(Cell::stored(row.get_ref(position)?));
    }
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        child.name, key.name
    );
    let key_text = text::key(&columns, &cells);
    let detail = format!(
        "Key {key_text} is not present in table \"{}\".",
        parent.name
    );
    Err(ReferenceError::new("23503", message)
        .with_detail(detail)
        .with_constraint(&child.name, &key.name))
}
