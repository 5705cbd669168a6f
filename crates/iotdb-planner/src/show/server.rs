//! SHOW of what is known about the server.

use crate::compile::scalar_names;
use crate::listing::{ListingPage, TreeListing};
use crate::statement::TreeRun;
use marigram_iotdb::{IotDbType, ShowTarget, TreeAggregate};
use marigram_sql::SqlResult;

/// The version of IoTDB whose protocol and answers these are.
const VERSION: &str = "2.0.1";

/// Lists what is known about the server.
///
/// # Errors
/// If there is no memory for the answer.
pub(super) fn server(
    run: &TreeRun<'_>,
    target: &ShowTarget,
    page: ListingPage,
) -> SqlResult<TreeListing> {
    let texts = |columns: &[&str]| TreeListing::of_texts(columns, page);
    let mut listing;
    match target {
        ShowTarget::Version => {
            listing = texts(&["Version", "BuildInfo"]);
            let own = concat!("Marigram ", env!("CARGO_PKG_VERSION"));
            listing.push(run, vec![VERSION.into(), own.into()])?;
        }
        ShowTarget::Cluster | ShowTarget::DataNodes | ShowTarget::ConfigNodes => {
            listing = cluster(run, target, page)?;
        }
        ShowTarget::Regions => {
            listing = texts(&[
                "RegionId",
                "Type",
                "Status",
                "Database",
                "DataNodeId",
                "Role",
            ]);
        }
        ShowTarget::Variables => {
            listing = texts(&["Variable", "Value"]);
            for (name, value) in [
                ("ClusterName", "marigram"),
                ("DataReplicationFactor", "1"),
                ("SchemaReplicationFactor", "1"),
                ("DefaultTTL(ms)", "9223372036854775807"),
                ("ReadConsistencyLevel", "strong"),
                ("TimestampPrecision", "ms"),
                ("TimePartitionInterval", "86400000"),
            ] {
                listing.push(run, vec![name.into(), value.into()])?;
            }
        }
        ShowTarget::Functions => {
            listing = texts(&["FunctionName", "FunctionType", "ClassName(UDF)", "State"]);
            let aggregates = TreeAggregate::names().map(|name| (name, "built-in aggregation"));
            let scalars = scalar_names().map(|name| (name, "built-in scalar"));
            for (name, kind) in aggregates.chain(scalars) {
                let row = vec![
                    name.to_uppercase().into(),
                    kind.into(),
                    "".into(),
                    "".into(),
                ];
                listing.push(run, row)?;
            }
        }
        ShowTarget::CurrentUser => {
            listing = texts(&["CurrentUser"]);
            listing.push(run, vec![run.session().identity.user.as_str().into()])?;
        }
        ShowTarget::CurrentTimestamp => {
            listing = TreeListing::new(&[("CurrentTimestamp", IotDbType::Timestamp)], page);
            listing.push(run, vec![run.times.now_ms.into()])?;
        }
        _ => {
            listing = texts(&["QueryId", "DataNodeId", "ElapsedTime", "Statement"]);
        }
    }
    Ok(listing)
}

/// Lists the parts of the cluster: this server is all of them.
fn cluster(run: &TreeRun<'_>, target: &ShowTarget, page: ListingPage) -> SqlResult<TreeListing> {
    let mut listing;
    match target {
        ShowTarget::Cluster => {
            let columns = [
                ("NodeID", IotDbType::Int32),
                ("NodeType", IotDbType::Text),
                ("Status", IotDbType::Text),
                ("InternalAddress", IotDbType::Text),
                ("InternalPort", IotDbType::Int32),
                ("Version", IotDbType::Text),
                ("BuildInfo", IotDbType::Text),
            ];
            listing = TreeListing::new(&columns, page);
            for (id, kind, port) in [(0, "ConfigNode", 10_710), (1, "DataNode", 10_730)] {
                let row = vec![
                    id.into(),
                    kind.into(),
                    "Running".into(),
                    "127.0.0.1".into(),
                    port.into(),
                    VERSION.into(),
                    "".into(),
                ];
                listing.push(run, row)?;
            }
        }
        ShowTarget::DataNodes => {
            let columns = [
                ("NodeID", IotDbType::Int32),
                ("Status", IotDbType::Text),
                ("RpcAddress", IotDbType::Text),
                ("RpcPort", IotDbType::Int32),
                ("DataRegionNum", IotDbType::Int32),
                ("SchemaRegionNum", IotDbType::Int32),
            ];
            listing = TreeListing::new(&columns, page);
            let row = vec![
                1.into(),
                "Running".into(),
                "127.0.0.1".into(),
                6667.into(),
                1.into(),
                1.into(),
            ];
            listing.push(run, row)?;
        }
        _ => {
            let columns = [
                ("NodeID", IotDbType::Int32),
                ("Status", IotDbType::Text),
                ("InternalAddress", IotDbType::Text),
                ("InternalPort", IotDbType::Int32),
                ("Role", IotDbType::Text),
            ];
            listing = TreeListing::new(&columns, page);
            let row = vec![
                0.into(),
                "Running".into(),
                "127.0.0.1".into(),
                10_710.into(),
                "Leader".into(),
            ];
            listing.push(run, row)?;
        }
    }
    Ok(listing)
}
