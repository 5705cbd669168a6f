//! SHOW, DESCRIBE and EXPLAIN.

use crate::information::{
    self, NAME, OPTIONS, databases, each_child, option, stables, tables, tags,
};
use crate::listing::TaosListing;
use crate::relation::Relation;
use crate::run::catalog::TaosTable;
use crate::run::catalog::objects::StableRecord;
use crate::run::{TaosRun, fault, fault_about, unsupported};
use crate::system_tables::system_table;
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::ast::{TaosColumn, TaosName, TaosShow, TaosTableKind};
use marigram_tdengine::{TaosCode, TaosType};
use std::fmt::Write as _;

/// The type of statements in an answer.
const STATEMENT: TaosType = TaosType::VarChar(16_382);

/// SHOW.
pub(crate) async fn show(run: &TaosRun<'_>, show: &TaosShow) -> SqlResult<StatementRows> {
    match show {
        TaosShow::Databases => databases(run).await?.only("name").answer(run).await,
        TaosShow::Tables {
            database,
            kind,
            pattern,
        } => {
            let database = run.database_or_current(database.as_deref())?;
            run.check_read(database)?;
            let wanted = match kind {
                TaosTableKind::All => None,
                TaosTableKind::Normal => Some("NORMAL_TABLE"),
                TaosTableKind::Child => Some("CHILD_TABLE"),
            };
            let listing = tables(run, Some(database)).await?;
            let listing = listing.like("type", wanted).only("table_name");
            listing
                .like("table_name", pattern.as_deref())
                .answer(run)
                .await
        }
        TaosShow::Stables { database, pattern } => {
            let database = run.database_or_current(database.as_deref())?;
            run.check_read(database)?;
            let listing = stables(run, Some(database)).await?.only("stable_name");
            listing
                .like("stable_name", pattern.as_deref())
                .answer(run)
                .await
        }
        TaosShow::Tags(name) => {
            let database = run.database_of(name)?;
            run.check_read(database)?;
            match run.catalog.table(run, database, &name.name).await? {
                TaosTable::Child(..) => {
                    let listing = tags(run, Some(database), Some(&name.name)).await?;
                    listing.answer(run).await
                }
                TaosTable::Whole(_) => Err(fault(TaosCode::NoSuchTable)),
            }
        }
        TaosShow::TableTags { stable, tags } => table_tags(run, stable, tags).await,
        TaosShow::CreateDatabase(name) => create_database(run, name).await,
        TaosShow::CreateTable(name) => create_table(run, name).await,
        TaosShow::Variables { pattern } => {
            let listing = system_table(run, "ins_configs").await?;
            let listing = listing.ok_or_else(|| fault(TaosCode::Internal))?;
            listing.like("name", pattern.as_deref()).answer(run).await
        }
        TaosShow::System(words) => system(run, words).await,
    }
}

async fn system(run: &TaosRun<'_>, words: &str) -> SqlResult<StatementRows> {
    let word = words.split(' ').next().unwrap_or_default();
    let table = match word {
        "connections" | "queries" | "consumers" | "apps" => format!("perf_{word}"),
        "transactions" => "perf_trans".to_owned(),
        "licences" => "ins_grants".to_owned(),
        "dnode" => "ins_configs".to_owned(),
        "compact" => "ins_compacts".to_owned(),
        other => format!("ins_{other}"),
    };
    match system_table(run, &table).await? {
        Some(listing) => listing.answer(run).await,
        None => Err(unsupported(&format!("SHOW {}", words.to_ascii_uppercase()))),
    }
}

async fn table_tags(
    run: &TaosRun<'_>,
    name: &TaosName,
    wanted: &[String],
) -> SqlResult<StatementRows> {
    let database = run.database_of(name)?.to_owned();
    run.check_read(&database)?;
    let found = run.catalog.table(run, &database, &name.name).await?;
    let stable = match &found {
        TaosTable::Whole(stable) if !stable.is_normal => stable,
        _ => return Err(fault(TaosCode::NotStable)),
    };
    let mut shown: Vec<&TaosColumn> = Vec::new();
    for tag in wanted.iter().filter(|tag| *tag != "tbname") {
        let found = stable.tags.iter().find(|own| own.name == *tag);
        shown.push(found.ok_or_else(|| fault_about(TaosCode::InvalidColumn, tag))?);
    }
    let has_name = wanted.is_empty() || wanted.iter().any(|tag| tag == "tbname");
    if wanted.is_empty() {
        shown.extend(&stable.tags);
    }
    let mut rows = Vec::new();
    each_child(run, &database, |own, child, of| {
        if of.table.id != stable.table.id {
            return Ok(());
        }
        let mut row = Vec::new();
        if has_name {
            row.push(Val::of_text(own));
        }
        for tag in &shown {
            let ordinal = stable.ordinal(&tag.name).unwrap_or(0);
            row.push(child.tag(ordinal, tag.kind));
        }
        run.budget
            .keep(row.iter().map(|value| value.held_bytes() + 48).sum())?;
        rows.push(row);
        Ok(())
    })
    .await?;
    let mut columns = Vec::new();
    if has_name {
        columns.push(("tbname", NAME));
    }
    columns.extend(shown.iter().map(|tag| ("", tag.kind)));
    let mut listing = TaosListing::new(columns);
    for row in rows {
        listing.push(run, row)?;
    }
    let mut relation = listing.relation()?;
    let first = usize::from(has_name);
    for (column, tag) in relation.columns.iter_mut().skip(first).zip(&shown) {
        column.name.clone_from(&tag.name);
    }
    crate::answer::answer(run, relation).await
}

async fn create_database(run: &TaosRun<'_>, name: &str) -> SqlResult<StatementRows> {
    run.check_database(name)?;
    run.check_read(name)?;
    let record = run.catalog.database(run, name).await?;
    let mut text = format!("CREATE DATABASE `{name}`");
    for (own, _) in OPTIONS {
        let value = option(&record, own);
        let quote = if matches!(own, "precision" | "cachemodel") {
            "'"
        } else {
            ""
        };
        let _ = write!(text, " {} {quote}{value}{quote}", own.to_ascii_uppercase());
    }
    let mut listing = TaosListing::new(vec![
        ("Database", TaosType::VarChar(64)),
        ("Create Database", STATEMENT),
    ]);
    listing.push(run, vec![Val::of_text(name), Val::of_text(text)])?;
    listing.answer(run).await
}

fn columns_text(columns: &[TaosColumn]) -> String {
    let columns = columns.iter();
    let columns: Vec<String> = columns
        .map(|column| format!("`{}` {}", column.name, column.kind))
        .collect();
    columns.join(", ")
}

fn stable_text(stable: &StableRecord) -> String {
    let (name, columns) = (&stable.table.name, columns_text(&stable.columns));
    if stable.is_normal {
        return format!("CREATE TABLE `{name}` ({columns})");
    }
    let tags = columns_text(&stable.tags);
    format!("CREATE STABLE `{name}` ({columns}) TAGS ({tags})")
}

async fn create_table(run: &TaosRun<'_>, name: &TaosName) -> SqlResult<StatementRows> {
    let database = run.database_of(name)?;
    run.check_read(database)?;
    let own = &name.name;
    let text = match run.catalog.table(run, database, own).await? {
        TaosTable::Whole(stable) => stable_text(&stable),
        TaosTable::Child(stable, child) => {
            let names: Vec<String> = stable
                .tags
                .iter()
                .map(|tag| format!("`{}`", tag.name))
                .collect();
            let values = stable.tags.iter().map(|tag| {
                let ordinal = stable.ordinal(&tag.name).unwrap_or(0);
                match child.tag(ordinal, tag.kind) {
                    Val::Null => "NULL".to_owned(),
                    Val::Text(text) => format!("\"{}\"", text.replace('"', "\\\"")),
                    other => other.shown().unwrap_or_default(),
                }
            });
            let values: Vec<String> = values.collect();
            format!(
                "CREATE TABLE `{own}` USING `{}` ({}) TAGS ({})",
                child.stable,
                names.join(", "),
                values.join(", ")
            )
        }
    };
    let mut listing = TaosListing::new(vec![("Table", NAME), ("Create Table", STATEMENT)]);
    listing.push(run, vec![Val::of_text(own), Val::of_text(text)])?;
    listing.answer(run).await
}

/// DESCRIBE.
pub(crate) async fn describe(run: &TaosRun<'_>, name: &TaosName) -> SqlResult<StatementRows> {
    let database = run.database_of(name)?.to_owned();
    let mut listing = TaosListing::new(vec![
        ("field", TaosType::VarChar(64)),
        ("type", TaosType::VarChar(20)),
        ("length", TaosType::Int),
        ("note", TaosType::VarChar(12)),
    ]);
    let mut add = |column: &str, kind: TaosType, note: &str| {
        listing.push(
            run,
            vec![
                Val::of_text(column),
                Val::of_text(kind.name()),
                Val::Int(i64::from(kind.length())),
                Val::of_text(note),
            ],
        )
    };
    if crate::run::SYSTEM_DATABASES.contains(&database.as_str()) {
        for column in information::relation(run, &name.name).await?.columns {
            add(&column.name, column.kind, "")?;
        }
        return listing.answer(run).await;
    }
    run.check_read(&database)?;
    let found = run.catalog.table(run, &database, &name.name).await?;
    let stable = found.stable();
    for column in &stable.columns {
        add(&column.name, column.kind, "")?;
    }
    for tag in &stable.tags {
        add(&tag.name, tag.kind, "TAG")?;
    }
    let mut relation = listing.relation()?;
    relation.precision = run.catalog.precision(run, &database).await?;
    crate::answer::answer(run, relation).await
}

/// EXPLAIN: the plan, line by line.
pub(crate) async fn explain(run: &TaosRun<'_>, relation: Relation) -> SqlResult<StatementRows> {
    let state = run.state(run.current_database())?;
    let plan = state.optimize(&relation.plan)?;
    let text = plan.display_indent().to_string();
    let mut listing = TaosListing::new(vec![("QUERY_PLAN", STATEMENT)]);
    for line in text.lines() {
        listing.push(run, vec![Val::of_text(line)])?;
    }
    listing.answer(run).await
}
