//! Queries of tags alone: the list of sub-tables answers them, also for those without rows.

use crate::information::{NAME, each_child};
use crate::listing::TaosListing;
use crate::relation::{Relation, RelationColumnRole};
use crate::run::catalog::{TBNAME, TaosTable};
use crate::run::{SYSTEM_DATABASES, TaosRun};
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosExpr, TaosFrom, TaosSelect};

/// The sub-tables of FROM with their tags, if the SELECT wants nothing else.
pub(crate) async fn child_list(
    run: &TaosRun<'_>,
    select: &TaosSelect,
    source: &Relation,
) -> SqlResult<Option<Relation>> {
    let Some(TaosFrom::Table { name, alias }) = &select.from else {
        return Ok(None);
    };
    let wants_tables = select.tags_only || select.distinct;
    let is_plain = select.window.is_none() && select.group_by.is_empty();
    let exprs = select.items.iter().map(|item| &item.expr);
    let mut all = exprs.chain(&select.condition);
    if !wants_tables || !is_plain || !all.all(|expr| names_tags(source, expr)) {
        return Ok(None);
    }
    let database = run.database_of(name)?.to_owned();
    if SYSTEM_DATABASES.contains(&database.as_str()) {
        return Ok(None);
    }
    let found = run.catalog.table(run, &database, &name.name).await?;
    let stable = found.stable();
    if stable.is_normal || !stable.has_tbname() {
        return Ok(None);
    }
    let only = matches!(found, TaosTable::Child(..)).then_some(name.name.as_str());
    let mut rows = Vec::new();
    each_child(run, &database, |own, child, of| {
        if of.table.id != stable.table.id || only.is_some_and(|only| only != own) {
            return Ok(());
        }
        let tags = stable.tags.iter().map(|tag| {
            let ordinal = stable.ordinal(&tag.name).unwrap_or(0);
            child.tag(ordinal, tag.kind)
        });
        let row: Vec<Val> = tags.chain([Val::of_text(own)]).collect();
        run.budget
            .keep(row.iter().map(|value| value.held_bytes() + 48).sum())?;
        rows.push(row);
        Ok(())
    })
    .await?;
    let kinds = stable.tags.iter().map(|tag| ("", tag.kind));
    let mut listing = TaosListing::new(kinds.chain([(TBNAME, NAME)]).collect());
    for row in rows {
        listing.push(run, row)?;
    }
    let mut relation = listing.relation()?;
    relation.precision = source.precision;
    let shown = alias.as_ref().unwrap_or(&name.name);
    for (place, column) in relation.columns.iter_mut().enumerate() {
        column.table = Some(shown.clone());
        match stable.tags.get(place) {
            Some(tag) => {
                column.name.clone_from(&tag.name);
                column.role = RelationColumnRole::Tag;
            }
            None => column.role = RelationColumnRole::Hidden,
        }
    }
    Ok(Some(relation))
}

/// Whether an expression names tags and no columns.
fn names_tags(source: &Relation, expr: &TaosExpr) -> bool {
    match expr {
        TaosExpr::Star(_) => false,
        TaosExpr::Column { table, name } => {
            source.column(table.as_deref(), name).is_ok_and(|column| {
                matches!(
                    column.role,
                    RelationColumnRole::Tag | RelationColumnRole::Hidden
                )
            })
        }
        TaosExpr::Call(call) if crate::call_class::is_known(&call.name) => false,
        _ => expr
            .children()
            .into_iter()
            .all(|child| names_tags(source, child)),
    }
}
