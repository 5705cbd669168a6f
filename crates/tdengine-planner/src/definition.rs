//! CREATE and DROP of databases, super tables, tables and sub-tables.

use crate::run::catalog::objects::{
    ChildRecord, DatabaseRecord, StableRecord, field_type, tag_type,
};
use crate::run::catalog::{
    KIND_CHILD, KIND_DATABASE, KIND_STABLE, META_TABLE, ROW_FIELD, TBNAME, TaosTable, put, read,
    remove,
};
use crate::run::{SYSTEM_DATABASES, TaosRun, done, fault, fault_about};
use marigram_engine::{Engine, TableChange, TableSpec, TagFilter};
use marigram_model::{FieldType, TableOptions, TableSchema, TagType, TagValue, TimeRange};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::ast::{TaosColumn, TaosCreateTable, TaosDatabaseOption, TaosDrop};
use marigram_tdengine::{TaosCode, TaosDuration, TaosPrecision, TaosType};

/// CREATE DATABASE.
pub(crate) async fn create_database(
    run: &TaosRun<'_>,
    name: &str,
    if_not_exists: bool,
    options: &[TaosDatabaseOption],
) -> SqlResult<StatementRows> {
    run.check_define(name)?;
    let exists = run.engine().databases().iter().any(|known| known == name);
    if exists || SYSTEM_DATABASES.contains(&name) {
        if if_not_exists {
            return Ok(done("CREATE DATABASE", 0));
        }
        return Err(fault(TaosCode::DatabaseExists));
    }
    let mut record = DatabaseRecord::default();
    set_options(&mut record, options)?;
    let created = run.now_ns.to_string();
    record.options.insert("created".to_owned(), created);
    let name = name.to_owned();
    let work = move |engine: &Engine| {
        engine.create_database(&name, true)?;
        put(
            engine,
            &name,
            KIND_DATABASE,
            &[(name.clone(), record.text())],
        )
    };
    run.catalog.change(run, work).await?;
    Ok(done("CREATE DATABASE", 0))
}

fn set_options(record: &mut DatabaseRecord, options: &[TaosDatabaseOption]) -> SqlResult<()> {
    for option in options {
        let value = option.values.join(",");
        let is_wrong = match option.name.as_str() {
            "precision" => TaosPrecision::from_name(&value).is_none(),
            "keep" => keep_ns(&value).is_none(),
            _ => false,
        };
        if is_wrong {
            let subject = format!("{} {value}", option.name);
            return Err(fault_about(TaosCode::InvalidDatabaseOption, &subject));
        }
        record
            .options
            .insert(option.name.clone(), value.to_ascii_lowercase());
    }
    Ok(())
}

/// How long rows are kept: days, or a number with a unit; the longest of several.
fn keep_ns(text: &str) -> Option<i64> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let each = text.split(',').map(|part| {
        let part = part.trim();
        match part.parse::<i64>() {
            Ok(days) => days.checked_mul(DAY_NS),
            Err(_) => {
                let shift = TaosDuration::from_text(part)?.shift().ok()?;
                (shift.months == 0).then_some(shift.ns)
            }
        }
    });
    each.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// How long a database keeps rows, if it says so.
fn time_to_live(record: &DatabaseRecord) -> Option<i64> {
    record.options.get("keep").and_then(|text| keep_ns(text))
}

/// ALTER DATABASE.
pub(crate) async fn alter_database(
    run: &TaosRun<'_>,
    name: &str,
    options: &[TaosDatabaseOption],
) -> SqlResult<StatementRows> {
    run.check_define(name)?;
    run.check_database(name)?;
    let mut record = run.catalog.database(run, name).await?;
    if options.iter().any(|option| option.name == "precision") {
        return Err(fault_about(TaosCode::InvalidDatabaseOption, "precision"));
    }
    set_options(&mut record, options)?;
    let keeps = options.iter().any(|option| option.name == "keep");
    let name = name.to_owned();
    let work = move |engine: &Engine| {
        put(
            engine,
            &name,
            KIND_DATABASE,
            &[(name.clone(), record.text())],
        )?;
        let ttl_ns = time_to_live(&record);
        for table in engine.tables(&name)? {
            let is_stored = table.view.is_none() && table.rollup.is_none();
            if keeps && is_stored && table.name != META_TABLE && table.options.ttl_ns != ttl_ns {
                let options = TableOptions {
                    ttl_ns,
                    ..table.options.clone()
                };
                engine.alter_table(&name, &table.name, &TableChange::SetOptions(options))?;
            }
        }
        Ok(())
    };
    run.catalog.change(run, work).await?;
    Ok(done("ALTER DATABASE", 0))
}

/// DROP DATABASE.
pub(crate) async fn drop_database(
    run: &TaosRun<'_>,
    name: &str,
    if_exists: bool,
) -> SqlResult<StatementRows> {
    run.check_define(name)?;
    if SYSTEM_DATABASES.contains(&name) {
        return Err(fault(TaosCode::NoRights));
    }
    if !run.engine().databases().iter().any(|known| known == name) {
        if if_exists {
            return Ok(done("DROP DATABASE", 0));
        }
        return Err(fault(TaosCode::NoSuchDatabase));
    }
    let name = name.to_owned();
    let work = move |engine: &Engine| Ok(engine.drop_database(&name, true)?);
    run.catalog.change(run, work).await?;
    Ok(done("DROP DATABASE", 0))
}

/// CREATE TABLE and CREATE STABLE with columns.
pub(crate) async fn create_table(
    run: &TaosRun<'_>,
    table: &TaosCreateTable,
) -> SqlResult<StatementRows> {
    let database = run.database_of(&table.name)?.to_owned();
    run.check_define(&database)?;
    let name = table.name.name.clone();
    let is_normal = table.tags.is_empty();
    if run.catalog.find(run, &database, &name).await?.is_some() || name == META_TABLE {
        if table.if_not_exists {
            return Ok(done("CREATE TABLE", 0));
        }
        let code = if is_normal {
            TaosCode::TableExists
        } else {
            TaosCode::StableExists
        };
        return Err(fault(code));
    }
    check_columns(table)?;
    let Some((time, fields)) = table.columns.split_first() else {
        return Err(fault(TaosCode::InvalidColumnCount));
    };
    let named = |column: &TaosColumn| column.name.clone();
    let tags = table.tags.iter();
    let tags = tags.map(|tag| (named(tag), tag_type(tag.kind)));
    let record = run.catalog.database(run, &database).await?;
    let spec = TableSpec {
        name: name.clone(),
        time_name: Some(time.name.clone()),
        tags: std::iter::once((TBNAME.to_owned(), TagType::String))
            .chain(tags)
            .collect(),
        fields: fields
            .iter()
            .map(|field| (named(field), field_type(field.kind)))
            .chain([(ROW_FIELD.to_owned(), FieldType::Bool)])
            .collect(),
        options: TableOptions {
            ttl_ns: time_to_live(&record),
            ..TableOptions::default()
        },
        ..TableSpec::default()
    };
    let (columns, tags) = (table.columns.clone(), table.tags.clone());
    let created_ns = run.now_ns;
    let work = move |engine: &Engine| {
        let table = engine.create_table(&database, &spec, false)?;
        let record = StableRecord {
            table,
            is_normal,
            columns,
            tags,
            dropped: Vec::new(),
            retagged: Vec::new(),
            created_ns,
        };
        put(engine, &database, KIND_STABLE, &[(name, record.text())])
    };
    run.catalog.change(run, work).await?;
    Ok(done("CREATE TABLE", 0))
}

fn check_columns(table: &TaosCreateTable) -> SqlResult<()> {
    let is_time = |column: &TaosColumn| column.kind == TaosType::Timestamp;
    if !table.columns.first().is_some_and(is_time) {
        return Err(fault(TaosCode::InvalidFirstColumn));
    }
    if table.columns.len() < 2 {
        return Err(fault(TaosCode::InvalidColumnCount));
    }
    let mut names: Vec<&str> = Vec::new();
    for column in table.columns.iter().chain(&table.tags) {
        if matches!(column.name.as_str(), TBNAME | ROW_FIELD) {
            return Err(fault_about(TaosCode::InvalidName, &column.name));
        }
        names.push(&column.name);
    }
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(fault(TaosCode::DuplicatedColumn));
    }
    Ok(())
}

/// DROP TABLE and DROP STABLE.
pub(crate) async fn drop_table(
    run: &TaosRun<'_>,
    table: &TaosDrop,
    is_stable: bool,
) -> SqlResult<()> {
    let database = run.database_of(&table.name)?.to_owned();
    run.check_define(&database)?;
    let name = table.name.name.clone();
    let found = run.catalog.find(run, &database, &name).await?;
    let found = found.filter(|found| {
        !is_stable || matches!(found, TaosTable::Whole(stable) if !stable.is_normal)
    });
    let Some(found) = found else {
        if table.if_exists {
            return Ok(());
        }
        return Err(if is_stable {
            fault(TaosCode::NoSuchStable)
        } else {
            fault_about(TaosCode::NoSuchTable, &name)
        });
    };
    let mut children = Vec::new();
    if let TaosTable::Whole(stable) = &found
        && !stable.is_normal
    {
        read(run, &database, (KIND_CHILD, None), |child, text| {
            let record = ChildRecord::read(text);
            if record.is_some_and(|record| record.table_id == stable.table.id.0) {
                run.budget.keep(child.len() + 32)?;
                children.push(child.to_owned());
            }
            Ok(())
        })
        .await?;
    }
    let work = move |engine: &Engine| {
        match found {
            TaosTable::Whole(_) => {
                engine.drop_table(&database, &name, true)?;
                remove(engine, &database, KIND_STABLE, &name)?;
            }
            TaosTable::Child(stable, _) => {
                let filter = child_filter(&stable.table, &name);
                engine.delete(&database, &stable.table.name, &filter, TimeRange::ALL)?;
                remove(engine, &database, KIND_CHILD, &name)?;
            }
        }
        for child in children {
            remove(engine, &database, KIND_CHILD, &child)?;
        }
        Ok(())
    };
    run.catalog.change(run, work).await
}

/// The series of a sub-table.
pub(crate) fn child_filter(table: &TableSchema, name: &str) -> TagFilter {
    match table.tag(TBNAME) {
        Some((ordinal, _)) => TagFilter::In(ordinal, vec![TagValue::String(name.to_owned())]),
        None => TagFilter::None,
    }
}
