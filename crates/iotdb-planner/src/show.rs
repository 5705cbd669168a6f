//! SHOW and COUNT.

mod nodes;
mod server;

use crate::define::{DEFAULT_COMPRESSION, default_encoding};
use crate::listing::{ListedValue, ListingPage, TreeListing};
use crate::series::{TreeSeries, find_series};
use crate::statement::TreeRun;
use crate::trees::{TreeDatabase, all_databases};
use marigram_iotdb::{IotDbType, PathNode, PathPattern, ShowTarget, ns_to_ms};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use nodes::{children, nodes, nodes_at};
use server::server;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a column shows where there is nothing.
const NOTHING: &str = "null";

/// Answers SHOW.
///
/// # Errors
/// If there is no memory for the answer.
pub(crate) async fn answer(
    run: &TreeRun<'_>,
    target: &ShowTarget,
    page: ListingPage,
) -> SqlResult<StatementRows> {
    let listing = match target {
        ShowTarget::Databases(pattern) => databases(run, pattern, page)?,
        ShowTarget::Devices(pattern, has_database) => {
            devices(run, pattern, *has_database, page).await?
        }
        ShowTarget::Timeseries(pattern, _) => timeseries(run, pattern, page).await?,
        ShowTarget::Children(pattern, only_nodes) => {
            children(run, pattern, *only_nodes, page).await?
        }
        ShowTarget::Nodes(pattern, level) => nodes(run, pattern, *level, page).await?,
        ShowTarget::Ttl(pattern) => ttl(run, pattern, page)?,
        other => server(run, other, page)?,
    };
    Ok(listing.answer())
}

/// The databases that a pattern matches, and that the client may see.
fn shown_databases(run: &TreeRun<'_>, pattern: &PathPattern) -> Vec<TreeDatabase> {
    let mut all = all_databases(run.engine());
    all.retain(|database| {
        let is_seen = run.session().rights.see(&database.name);
        is_seen && pattern.matches(database.path.nodes())
    });
    all
}

fn databases(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
    page: ListingPage,
) -> SqlResult<TreeListing> {
    let columns = [
        ("Database", IotDbType::Text),
        ("SchemaReplicationFactor", IotDbType::Int32),
        ("DataReplicationFactor", IotDbType::Int32),
        ("TimePartitionOrigin", IotDbType::Int64),
        ("TimePartitionInterval", IotDbType::Int64),
    ];
    let mut listing = TreeListing::new(&columns, page);
    for database in shown_databases(run, pattern) {
        let partition = database.devices.as_ref();
        let partition_ms = partition.map_or(0, |table| ns_to_ms(table.options.partition_ns));
        let row = vec![
            database.name.into(),
            1.into(),
            1.into(),
            0.into(),
            partition_ms.into(),
        ];
        listing.push(run, row)?;
    }
    Ok(listing)
}

/// The patterns of the timeseries of the devices that a pattern matches.
fn of_devices(pattern: &PathPattern) -> Vec<PathPattern> {
    let any = PathPattern::from_nodes(vec![PathNode::Glob("*".to_owned())]);
    let joined = any.and_then(|any| pattern.join(&any));
    joined.into_iter().collect()
}

/// The time to live that a listing shows for a database.
fn shown_ttl(database: &TreeDatabase) -> String {
    let table = database.devices.as_ref();
    match table.and_then(|table| table.options.ttl_ns) {
        Some(ttl_ns) => ns_to_ms(ttl_ns).to_string(),
        None => "INF".to_owned(),
    }
}

async fn devices(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
    has_database: bool,
    page: ListingPage,
) -> SqlResult<TreeListing> {
    let mut columns = vec!["Device", "IsAligned", "Template", "TTL(ms)"];
    if has_database {
        columns.insert(1, "Database");
    }
    let mut listing = TreeListing::of_texts(&columns, page);
    let found = find_series(run, &of_devices(pattern)).await?;
    let mut rows = found.series.iter().peekable();
    while let Some(series) = rows.next() {
        let mut is_aligned = is_aligned(series);
        while let Some(next) = rows.next_if(|next| next.device.text == series.device.text) {
            is_aligned |= self::is_aligned(next);
        }
        if listing.is_full() {
            break;
        }
        let database = &found.databases[series.device.database];
        let mut row: Vec<ListedValue> = vec![
            ListedValue::Text(Arc::clone(&series.device.text)),
            is_aligned.to_string().into(),
            NOTHING.into(),
            shown_ttl(database).into(),
        ];
        if has_database {
            row.insert(1, database.name.as_str().into());
        }
        listing.push(run, row)?;
    }
    Ok(listing)
}

fn is_aligned(series: &TreeSeries) -> bool {
    series.declared.as_ref().is_some_and(|it| it.is_aligned)
}

async fn timeseries(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
    page: ListingPage,
) -> SqlResult<TreeListing> {
    let columns = [
        "Timeseries",
        "Alias",
        "Database",
        "DataType",
        "Encoding",
        "Compression",
        "Tags",
        "Attributes",
        "Deadband",
        "DeadbandParameters",
        "ViewType",
    ];
    let mut listing = TreeListing::of_texts(&columns, page);
    let found = find_series(run, std::slice::from_ref(pattern)).await?;
    for series in &found.series {
        if listing.is_full() {
            break;
        }
        let declared = series.declared.as_deref();
        let text = |value: Option<&String>, absent: ListedValue| match value {
            Some(value) => value.as_str().into(),
            None => absent,
        };
        let encoding = declared.and_then(|it| it.encoding.as_ref());
        let compression = declared.and_then(|it| it.compression.as_ref());
        let row = vec![
            series.path().into(),
            text(
                declared.and_then(|it| it.alias.as_ref()),
                ListedValue::Missing,
            ),
            found.databases[series.device.database].name.as_str().into(),
            series.kind.name().into(),
            text(encoding, default_encoding(series.kind).into()),
            text(compression, DEFAULT_COMPRESSION.into()),
            text(
                declared.and_then(|it| it.tags.as_ref()),
                ListedValue::Missing,
            ),
            text(
                declared.and_then(|it| it.attributes.as_ref()),
                ListedValue::Missing,
            ),
            ListedValue::Missing,
            ListedValue::Missing,
            "BASE".into(),
        ];
        listing.push(run, row)?;
    }
    Ok(listing)
}

fn ttl(run: &TreeRun<'_>, pattern: &PathPattern, page: ListingPage) -> SqlResult<TreeListing> {
    let mut listing = TreeListing::of_texts(&["Device", "TTL(ms)"], page);
    for database in all_databases(run.engine()) {
        let nodes = database.path.nodes();
        let is_seen = run.session().rights.see(&database.name);
        if is_seen && pattern.touches(nodes) {
            let ttl = shown_ttl(&database);
            listing.push(
                run,
                vec![format!("{}.**", database.path).into(), ttl.into()],
            )?;
        }
    }
    Ok(listing)
}

/// Answers COUNT.
///
/// # Errors
/// If there is no memory for the answer.
pub(crate) async fn count(run: &TreeRun<'_>, target: &ShowTarget) -> SqlResult<StatementRows> {
    let page = ListingPage::default();
    let one = |name: &str, kind: IotDbType, count: usize| {
        let mut listing = TreeListing::new(&[(name, kind)], page);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        listing.push(run, vec![count.into()])?;
        Ok(listing.answer())
    };
    match target {
        ShowTarget::Databases(pattern) => {
            let count = shown_databases(run, pattern).len();
            one("count", IotDbType::Int32, count)
        }
        ShowTarget::Devices(pattern, _) => {
            let found = find_series(run, &of_devices(pattern)).await?;
            let mut devices: Vec<_> = found.series.iter().map(|it| &it.device.text).collect();
            devices.dedup();
            one("count(devices)", IotDbType::Int64, devices.len())
        }
        ShowTarget::Timeseries(pattern, None) => {
            let found = find_series(run, std::slice::from_ref(pattern)).await?;
            one("count(timeseries)", IotDbType::Int64, found.series.len())
        }
        ShowTarget::Timeseries(pattern, Some(level)) => {
            let found = find_series(run, std::slice::from_ref(pattern)).await?;
            let mut counts: BTreeMap<String, i64> = BTreeMap::new();
            let wanted = *level as usize + 1;
            for series in &found.series {
                let path = series.device.path.child(&series.measurement);
                if path.nodes().len() >= wanted {
                    *counts.entry(path.prefix(wanted).to_string()).or_default() += 1;
                }
            }
            let columns = [
                ("Column", IotDbType::Text),
                ("count(timeseries)", IotDbType::Int64),
            ];
            let mut listing = TreeListing::new(&columns, page);
            for (path, count) in counts {
                listing.push(run, vec![path.into(), count.into()])?;
            }
            Ok(listing.answer())
        }
        ShowTarget::Nodes(pattern, level) => {
            let nodes = nodes_at(run, pattern, *level).await?;
            one("count(nodes)", IotDbType::Int64, nodes.len())
        }
        other => answer(run, other, page).await,
    }
}
