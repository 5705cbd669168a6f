//! Timeseries that GROUP BY LEVEL aggregates together.

use crate::expand::grouped_path;
use crate::series::TreeSeries;
use crate::statement::{fault, semantic};
use marigram_iotdb::{PathNode, PathPattern, TreeExpr};
use marigram_sql::SqlResult;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Timeseries that are aggregated together.
#[derive(Default)]
pub(super) struct GroupedSeries<'a> {
    /// By the text of the path with wildcards: what stands for its devices, and one of the timeseries.
    pub(super) by_path: BTreeMap<String, (Arc<str>, &'a TreeSeries)>,
    /// What stands for each device.
    pub(super) devices: HashMap<Arc<str>, Arc<str>>,
}

impl<'a> GroupedSeries<'a> {
    /// The paths of groups of timeseries, each once.
    ///
    /// # Errors
    /// If timeseries of one group have other types.
    pub(super) fn add(
        &mut self,
        series: Vec<&'a TreeSeries>,
        levels: &[u32],
    ) -> SqlResult<Vec<TreeExpr>> {
        let mut paths = Vec::new();
        for one in series {
            let group = grouped_path(&one.device.path, levels);
            let name = PathNode::Name(one.measurement.to_string());
            let measurement = PathPattern::from_nodes(vec![name]).map_err(fault)?;
            let path = group.join(&measurement).map_err(fault)?;
            let group: Arc<str> = group.to_string().into();
            self.devices
                .insert(Arc::clone(&one.device.text), Arc::clone(&group));
            let known = self.by_path.entry(path.to_string()).or_insert((group, one));
            if known.1.kind.stored() != one.kind.stored() {
                return Err(semantic(format!(
                    "GROUP BY LEVEL: the data types of the same output column[{path}] should be the same."
                )));
            }
            let path = TreeExpr::Path(path);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}
