//! Tables of `information_schema` and `performance_schema`: databases, tables, tags and columns.

use crate::listing::TaosListing;
use crate::relation::Relation;
use crate::run::catalog::objects::{ChildRecord, DatabaseRecord, StableRecord};
use crate::run::catalog::{KIND_CHILD, META_TABLE, read};
use crate::run::{SYSTEM_DATABASES, TaosRun, fault_about};
use crate::system_tables::system_table;
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::{TaosCode, TaosType};
use std::collections::HashMap;
use std::sync::Arc;

/// Names.
pub(crate) const NAME: TaosType = TaosType::VarChar(192);

/// A table of the two databases.
pub(crate) async fn relation(run: &TaosRun<'_>, name: &str) -> SqlResult<Relation> {
    let listing = match name {
        "ins_databases" => databases(run).await?,
        "ins_tables" => tables(run, None).await?,
        "ins_stables" => stables(run, None).await?,
        "ins_tags" => tags(run, None, None).await?,
        "ins_columns" => columns(run).await?,
        other => system_table(run, other)
            .await?
            .ok_or_else(|| fault_about(TaosCode::NoSuchTable, name))?,
    };
    listing.relation()
}

/// The databases that the client sees.
pub(crate) fn seen(run: &TaosRun<'_>, only: Option<&str>) -> Vec<String> {
    let mut names = run.engine().databases();
    let rights = &run.context.session().rights;
    names.retain(|name| rights.see(name) && only.is_none_or(|only| only == name));
    names.sort();
    names
}

/// The super tables and normal tables of a database.
pub(crate) async fn whole_tables(
    run: &TaosRun<'_>,
    database: &str,
) -> SqlResult<Vec<Arc<StableRecord>>> {
    let mut found = Vec::new();
    let Ok(tables) = run.engine().tables(database) else {
        return Ok(found);
    };
    for table in tables {
        if table.name == META_TABLE {
            continue;
        }
        found.extend(run.catalog.stable(run, database, &table.name).await?);
    }
    Ok(found)
}

/// Calls `visit` with each sub-table of a database.
pub(crate) async fn each_child(
    run: &TaosRun<'_>,
    database: &str,
    mut visit: impl FnMut(&str, &ChildRecord, &StableRecord) -> SqlResult<()>,
) -> SqlResult<()> {
    let stables = whole_tables(run, database).await?;
    let by_id: HashMap<u32, &Arc<StableRecord>> = stables
        .iter()
        .map(|stable| (stable.table.id.0, stable))
        .collect();
    read(run, database, (KIND_CHILD, None), |name, text| {
        if let Some(record) = ChildRecord::read(text)
            && let Some(stable) = by_id.get(&record.table_id)
        {
            visit(name, &record, stable)?;
        }
        Ok(())
    })
    .await
}

fn int(value: usize) -> Val {
    i64::try_from(value).map_or(Val::Null, Val::Int)
}

/// When something was created; null if nobody knows.
fn created(ns: i64) -> Val {
    if ns == 0 { Val::Null } else { Val::Time(ns) }
}

/// `ins_databases`.
pub(crate) async fn databases(run: &TaosRun<'_>) -> SqlResult<TaosListing> {
    let mut listing = TaosListing::new(vec![
        ("name", TaosType::VarChar(64)),
        ("create_time", TaosType::Timestamp),
        ("vgroups", TaosType::SmallInt),
        ("ntables", TaosType::BigInt),
        ("replica", TaosType::TinyInt),
        ("strict", TaosType::VarChar(4)),
        ("duration", TaosType::VarChar(10)),
        ("keep", TaosType::VarChar(32)),
        ("buffer", TaosType::Int),
        ("pagesize", TaosType::Int),
        ("pages", TaosType::Int),
        ("minrows", TaosType::Int),
        ("maxrows", TaosType::Int),
        ("comp", TaosType::TinyInt),
        ("precision", TaosType::VarChar(2)),
        ("status", TaosType::VarChar(10)),
        ("retentions", TaosType::VarChar(60)),
        ("single_stable", TaosType::Bool),
        ("cachemodel", TaosType::VarChar(60)),
        ("cachesize", TaosType::Int),
        ("wal_level", TaosType::TinyInt),
        ("wal_fsync_period", TaosType::Int),
        ("wal_retention_period", TaosType::Int),
        ("wal_retention_size", TaosType::BigInt),
        ("stt_trigger", TaosType::SmallInt),
        ("table_prefix", TaosType::SmallInt),
        ("table_suffix", TaosType::SmallInt),
        ("tsdb_pagesize", TaosType::Int),
    ]);
    for name in SYSTEM_DATABASES {
        let mut row = vec![Val::of_text(name)];
        row.resize(28, Val::Null);
        row[15] = Val::of_text("ready");
        listing.push(run, row)?;
    }
    for name in seen(run, None) {
        let record = run.catalog.database(run, &name).await?;
        let stables = whole_tables(run, &name).await?;
        let mut count = stables.iter().filter(|stable| stable.is_normal).count();
        each_child(run, &name, |_, _, _| {
            count += 1;
            Ok(())
        })
        .await?;
        listing.push(run, database_row(&name, &record, count))?;
    }
    Ok(listing)
}

/// The usual values of options, by their names.
pub(crate) const OPTIONS: [(&str, &str); 18] = [
    ("vgroups", "2"),
    ("replica", "1"),
    ("duration", "10d"),
    ("keep", "3650d,3650d,3650d"),
    ("buffer", "256"),
    ("pagesize", "4"),
    ("pages", "256"),
    ("minrows", "100"),
    ("maxrows", "4096"),
    ("comp", "2"),
    ("precision", "ms"),
    ("cachemodel", "none"),
    ("cachesize", "1"),
    ("wal_level", "1"),
    ("wal_fsync_period", "3000"),
    ("wal_retention_period", "3600"),
    ("wal_retention_size", "0"),
    ("stt_trigger", "2"),
];

/// An option of a database as it is shown.
pub(crate) fn option(record: &DatabaseRecord, name: &str) -> String {
    let usual = OPTIONS.iter().find(|(option, _)| *option == name);
    record.option(name, usual.map_or("", |(_, value)| *value))
}

fn database_row(name: &str, record: &DatabaseRecord, tables: usize) -> Vec<Val> {
    let text = |name: &str| Val::of_text(option(record, name));
    let number = |name: &str| option(record, name).parse().map_or(Val::Null, Val::Int);
    let since = record.option("created", "0").parse().unwrap_or(0);
    vec![
        Val::of_text(name),
        created(since),
        number("vgroups"),
        int(tables),
        number("replica"),
        Val::of_text("on"),
        text("duration"),
        text("keep"),
        number("buffer"),
        number("pagesize"),
        number("pages"),
        number("minrows"),
        number("maxrows"),
        number("comp"),
        text("precision"),
        Val::of_text("ready"),
        Val::Null,
        Val::Bool(false),
        text("cachemodel"),
        number("cachesize"),
        number("wal_level"),
        number("wal_fsync_period"),
        number("wal_retention_period"),
        number("wal_retention_size"),
        number("stt_trigger"),
        Val::Int(0),
        Val::Int(0),
        Val::Int(4),
    ]
}

/// `ins_stables`.
pub(crate) async fn stables(run: &TaosRun<'_>, only: Option<&str>) -> SqlResult<TaosListing> {
    let mut listing = TaosListing::new(vec![
        ("stable_name", NAME),
        ("db_name", TaosType::VarChar(64)),
        ("create_time", TaosType::Timestamp),
        ("columns", TaosType::Int),
        ("tags", TaosType::Int),
        ("last_update", TaosType::Timestamp),
        ("table_comment", TaosType::VarChar(1024)),
    ]);
    for database in seen(run, only) {
        for stable in whole_tables(run, &database).await? {
            if stable.is_normal {
                continue;
            }
            listing.push(
                run,
                vec![
                    Val::of_text(&stable.table.name),
                    Val::of_text(&database),
                    created(stable.created_ns),
                    int(stable.columns.len()),
                    int(stable.tags.len()),
                    created(stable.created_ns),
                    Val::Null,
                ],
            )?;
        }
    }
    Ok(listing)
}

/// `ins_tables`.
pub(crate) async fn tables(run: &TaosRun<'_>, only: Option<&str>) -> SqlResult<TaosListing> {
    let mut listing = TaosListing::new(vec![
        ("table_name", NAME),
        ("db_name", TaosType::VarChar(64)),
        ("create_time", TaosType::Timestamp),
        ("columns", TaosType::Int),
        ("stable_name", NAME),
        ("uid", TaosType::BigInt),
        ("vgroup_id", TaosType::Int),
        ("ttl", TaosType::Int),
        ("table_comment", TaosType::VarChar(1024)),
        ("type", TaosType::VarChar(21)),
    ]);
    let row = |name: &str, database: &str, of: (&StableRecord, Option<&ChildRecord>)| {
        let (stable, child) = of;
        let since = child.map_or(stable.created_ns, |child| child.created_ns);
        vec![
            Val::of_text(name),
            Val::of_text(database),
            created(since),
            int(stable.columns.len()),
            child.map_or(Val::Null, |child| Val::of_text(&child.stable)),
            Val::Int(i64::from(stable.table.id.0)),
            Val::Int(1),
            Val::Int(0),
            Val::Null,
            Val::of_text(if child.is_some() {
                "CHILD_TABLE"
            } else {
                "NORMAL_TABLE"
            }),
        ]
    };
    for database in seen(run, only) {
        for stable in whole_tables(run, &database).await? {
            if stable.is_normal {
                let name = stable.table.name.clone();
                listing.push(run, row(&name, &database, (&stable, None)))?;
            }
        }
        each_child(run, &database, |name, child, stable| {
            listing.push(run, row(name, &database, (stable, Some(child))))
        })
        .await?;
    }
    Ok(listing)
}

/// `ins_tags`, of one sub-table or of all.
pub(crate) async fn tags(
    run: &TaosRun<'_>,
    only: Option<&str>,
    table: Option<&str>,
) -> SqlResult<TaosListing> {
    let mut listing = TaosListing::new(vec![
        ("table_name", NAME),
        ("db_name", TaosType::VarChar(64)),
        ("stable_name", NAME),
        ("tag_name", TaosType::VarChar(64)),
        ("tag_type", TaosType::VarChar(32)),
        ("tag_value", TaosType::VarChar(16_382)),
    ]);
    for database in seen(run, only) {
        each_child(run, &database, |name, child, stable| {
            if table.is_some_and(|table| table != name) {
                return Ok(());
            }
            for tag in &stable.tags {
                let ordinal = stable.ordinal(&tag.name).unwrap_or(0);
                let value = child.tag(ordinal, tag.kind).shown();
                listing.push(
                    run,
                    vec![
                        Val::of_text(name),
                        Val::of_text(&database),
                        Val::of_text(&child.stable),
                        Val::of_text(&tag.name),
                        Val::of_text(tag.kind.to_string()),
                        value.map_or(Val::Null, Val::of_text),
                    ],
                )?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(listing)
}

/// `ins_columns`.
async fn columns(run: &TaosRun<'_>) -> SqlResult<TaosListing> {
    let mut listing = TaosListing::new(vec![
        ("table_name", NAME),
        ("db_name", TaosType::VarChar(64)),
        ("table_type", TaosType::VarChar(21)),
        ("col_name", TaosType::VarChar(64)),
        ("col_type", TaosType::VarChar(32)),
        ("col_length", TaosType::Int),
        ("col_precision", TaosType::Int),
        ("col_scale", TaosType::Int),
        ("col_nullable", TaosType::Int),
    ]);
    let rows = |name: &str, database: &str, kind: &str, stable: &StableRecord| {
        let columns = stable.columns.iter();
        let rows: Vec<Vec<Val>> = columns
            .map(|column| {
                vec![
                    Val::of_text(name),
                    Val::of_text(database),
                    Val::of_text(kind),
                    Val::of_text(&column.name),
                    Val::of_text(column.kind.to_string()),
                    Val::Int(i64::from(column.kind.length())),
                    Val::Null,
                    Val::Null,
                    Val::Null,
                ]
            })
            .collect();
        rows
    };
    for database in seen(run, None) {
        for stable in whole_tables(run, &database).await? {
            let kind = if stable.is_normal {
                "NORMAL_TABLE"
            } else {
                "SUPER_TABLE"
            };
            for row in rows(&stable.table.name, &database, kind, &stable) {
                listing.push(run, row)?;
            }
        }
        each_child(run, &database, |name, _, stable| {
            for row in rows(name, &database, "CHILD_TABLE", stable) {
                listing.push(run, row)?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(listing)
}
