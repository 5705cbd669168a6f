//! SHOW and COUNT of nodes of the tree.

use crate::listing::{ListingPage, TreeListing};
use crate::series::find_series;
use crate::statement::{TreeRun, fault};
use crate::trees::all_databases;
use marigram_iotdb::{PathNode, PathPattern, TreePath, node_text};
use marigram_sql::SqlResult;
use std::collections::{BTreeMap, BTreeSet};

/// What a node of the tree is, as `SHOW CHILD PATHS` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TreeNodeKind {
    Internal,
    Database,
    Device,
    Timeseries,
}

impl TreeNodeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Internal => "SG INTERNAL",
            Self::Database => "DATABASE",
            Self::Device => "DEVICE",
            Self::Timeseries => "TIMESERIES",
        }
    }
}

/// The nodes of the tree, with as many nodes as wanted at most, with their kinds.
async fn tree_nodes(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
) -> SqlResult<BTreeMap<Vec<String>, TreeNodeKind>> {
    let mut all: BTreeMap<Vec<String>, TreeNodeKind> = BTreeMap::new();
    let mut add = |path: &[String], last: TreeNodeKind, inner: TreeNodeKind| -> SqlResult<()> {
        for count in 1..=path.len() {
            let kind = if count == path.len() { last } else { inner };
            let nodes = path[..count].to_vec();
            let bytes: usize = nodes.iter().map(|node| node.len() + 32).sum();
            match all.get_mut(&nodes) {
                Some(known) => *known = (*known).max(kind),
                None => {
                    run.budget.keep(bytes)?;
                    all.insert(nodes, kind);
                }
            }
        }
        Ok(())
    };
    for database in all_databases(run.engine()) {
        if run.session().rights.see(&database.name) {
            add(
                database.path.nodes(),
                TreeNodeKind::Database,
                TreeNodeKind::Internal,
            )?;
        }
    }
    // Whatever is above, at, or below what the pattern matches.
    let below = pattern.join(&PathPattern::from_nodes(vec![PathNode::AnyDepth]).map_err(fault)?);
    let patterns: Vec<PathPattern> = below.into_iter().chain([pattern.clone()]).collect();
    let found = find_series(run, &patterns).await?;
    for series in &found.series {
        let device = series.device.path.nodes();
        add(device, TreeNodeKind::Device, TreeNodeKind::Internal)?;
        let path = series.device.path.child(&series.measurement);
        add(
            path.nodes(),
            TreeNodeKind::Timeseries,
            TreeNodeKind::Internal,
        )?;
    }
    Ok(all)
}

/// Lists the children of the paths that a pattern matches.
///
/// # Errors
/// If there is no memory for them.
pub(super) async fn children(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
    only_nodes: bool,
    page: ListingPage,
) -> SqlResult<TreeListing> {
    let columns: &[&str] = if only_nodes {
        &["ChildNodes"]
    } else {
        &["ChildPaths", "NodeTypes"]
    };
    let mut listing = TreeListing::of_texts(columns, page);
    let mut shown = BTreeSet::new();
    for (nodes, kind) in tree_nodes(run, pattern).await? {
        let Some((last, parent)) = nodes.split_last() else {
            continue;
        };
        if parent.is_empty() || !pattern.matches(parent) {
            continue;
        }
        if only_nodes {
            if shown.insert(last.clone()) {
                listing.push(run, vec![node_text(last).into()])?;
            }
        } else {
            let path = TreePath::from_nodes(nodes).to_string();
            listing.push(run, vec![path.into(), kind.name().into()])?;
        }
    }
    Ok(listing)
}

/// Lists the paths of a level.
///
/// # Errors
/// If there is no memory for them.
pub(super) async fn nodes(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
    level: u32,
    page: ListingPage,
) -> SqlResult<TreeListing> {
    let mut listing = TreeListing::of_texts(&["Nodes"], page);
    for path in nodes_at(run, pattern, level).await? {
        listing.push(run, vec![path.into()])?;
    }
    Ok(listing)
}

/// The paths of a level that a pattern matches or has timeseries below.
///
/// # Errors
/// If there is no memory for them.
pub(super) async fn nodes_at(
    run: &TreeRun<'_>,
    pattern: &PathPattern,
    level: u32,
) -> SqlResult<BTreeSet<String>> {
    let wanted = level as usize + 1;
    let all = tree_nodes(run, pattern).await?;
    let mut paths = BTreeSet::new();
    for nodes in all.into_keys() {
        if nodes.len() >= wanted && pattern.matches(&nodes) {
            let prefix = nodes[..wanted].to_vec();
            paths.insert(TreePath::from_nodes(prefix).to_string());
        }
    }
    Ok(paths)
}
