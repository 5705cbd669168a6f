//! `tableoid`, which psql joins with descriptions: a number for each table of the catalog.
//!
//! No other table has the column.

use crate::dialect::ast_walk::{walk, walk_mut};
use datafusion::sql::sqlparser::ast::{Expr, Statement, TableFactor, Value, Visitor, VisitorMut};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// PostgreSQL's OIDs of the tables of its catalog.
const TABLES: [(&str, u32); 22] = [
    ("pg_am", 2601),
    ("pg_cast", 2605),
    ("pg_class", 1259),
    ("pg_collation", 3456),
    ("pg_constraint", 2606),
    ("pg_conversion", 2607),
    ("pg_database", 1262),
    ("pg_event_trigger", 3466),
    ("pg_extension", 3079),
    ("pg_foreign_data_wrapper", 2328),
    ("pg_foreign_server", 1417),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_opfamily", 2753),
    ("pg_proc", 1255),
    ("pg_rewrite", 2618),
    ("pg_tablespace", 1213),
    ("pg_trigger", 2620),
    ("pg_ts_config", 3602),
    ("pg_type", 1247),
];

/// Finds the tables of the catalog, by the names that the statement gives them.
#[derive(Default)]
struct CatalogAliases(HashMap<String, u32>);

impl Visitor for CatalogAliases {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = factor
            && let Some(table) = name.0.last().and_then(|part| part.as_ident())
        {
            let table = table.value.to_lowercase();
            let found = TABLES.iter().find(|(known, _)| *known == table);
            let alias = alias.as_ref().map(|alias| alias.name.value.clone());
            if let Some((_, oid)) = found {
                self.0.insert(alias.unwrap_or(table), *oid);
            }
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for CatalogAliases {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, column] = parts.as_slice()
            && column.value.eq_ignore_ascii_case("tableoid")
            && let Some(oid) = self.0.get(&table.value)
        {
            *expr = Expr::value(Value::Number(oid.to_string(), false));
        }
        ControlFlow::Continue(())
    }
}

/// Replaces `alias.tableoid` where the alias stands for a table of the catalog.
pub(crate) fn replace_table_oids(statement: &mut Statement) {
    let mut aliases = CatalogAliases::default();
    // The visitors never break.
    let _ = walk(&*statement, &mut aliases);
    if !aliases.0.is_empty() {
        let _ = walk_mut(statement, &mut aliases);
    }
}
