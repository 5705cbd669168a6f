//! SHOW and COUNT.

use super::ast::{ShowTarget, TreeStatement};
use super::cursor::SqlCursor;
use crate::path::{PathNode, PathPattern};
use crate::status::IotDbFault;

impl SqlCursor<'_> {
    /// Reads what follows SHOW.
    pub(super) fn show(&mut self) -> Result<TreeStatement, IotDbFault> {
        let is_latest = self.keyword("latest");
        let target = if self.names_shown_databases() {
            ShowTarget::Databases(self.optional_pattern()?)
        } else if self.keyword("devices") {
            let pattern = self.optional_pattern()?;
            let has_database = self.keywords(&["with", "database"])
                || self.keywords(&["with", "storage", "group"]);
            ShowTarget::Devices(pattern, has_database)
        } else if self.keyword("timeseries") {
            ShowTarget::Timeseries(self.optional_pattern()?, None)
        } else if self.keywords(&["child", "paths"]) {
            ShowTarget::Children(self.optional_prefix()?, false)
        } else if self.keywords(&["child", "nodes"]) {
            ShowTarget::Children(self.optional_prefix()?, true)
        } else if self.keyword("version") {
            ShowTarget::Version
        } else if self.keyword("cluster") {
            self.keyword("details");
            ShowTarget::Cluster
        } else if self.keyword("datanodes") {
            ShowTarget::DataNodes
        } else if self.keyword("confignodes") {
            ShowTarget::ConfigNodes
        } else if self.keyword("regions") {
            ShowTarget::Regions
        } else if self.keyword("variables") {
            ShowTarget::Variables
        } else if self.keyword("functions") {
            ShowTarget::Functions
        } else if self.keyword("queries") || self.keywords(&["query", "processlist"]) {
            ShowTarget::Queries
        } else if self.keyword("current_user") {
            ShowTarget::CurrentUser
        } else if self.keyword("current_timestamp") {
            ShowTarget::CurrentTimestamp
        } else if self.keywords(&["all", "ttl"]) {
            ShowTarget::Ttl(everything()?)
        } else if self.keywords(&["ttl", "on"]) {
            ShowTarget::Ttl(self.absolute_pattern()?)
        } else {
            let what = self.peek_word().to_uppercase();
            if what.is_empty() {
                return Err(self.expected("what to show"));
            }
            return Err(IotDbFault::unsupported(format!(
                "SHOW {what} is not supported"
            )));
        };
        if is_latest {
            return Err(IotDbFault::unsupported(
                "SHOW LATEST TIMESERIES is not supported",
            ));
        }
        let (mut offset, mut limit) = (0, None);
        loop {
            if self.keyword("limit") {
                limit = Some(self.unsigned()?);
            } else if self.keyword("offset") {
                offset = self.unsigned()?;
            } else {
                break;
            }
        }
        if self.sees("where") {
            return Err(IotDbFault::unsupported("SHOW with WHERE is not supported"));
        }
        Ok(TreeStatement::Show {
            target,
            offset,
            limit,
        })
    }

    /// Reads what follows COUNT.
    pub(super) fn count(&mut self) -> Result<TreeStatement, IotDbFault> {
        let target = if self.names_shown_databases() {
            ShowTarget::Databases(self.optional_pattern()?)
        } else if self.keyword("devices") {
            ShowTarget::Devices(self.optional_pattern()?, false)
        } else if self.keyword("timeseries") {
            let pattern = self.optional_pattern()?;
            let level = self.keywords(&["group", "by"]);
            ShowTarget::Timeseries(pattern, level.then(|| self.level()).transpose()?)
        } else if self.keyword("nodes") {
            let pattern = self.absolute_pattern()?;
            ShowTarget::Nodes(pattern, self.level()?)
        } else {
            return Err(self.expected("DATABASES, DEVICES, TIMESERIES or NODES"));
        };
        Ok(TreeStatement::Count(target))
    }

    fn names_shown_databases(&mut self) -> bool {
        self.keyword("databases") || self.keywords(&["storage", "group"])
    }

    fn level(&mut self) -> Result<u32, IotDbFault> {
        self.expect_keyword("level")?;
        self.expect_sign("=")?;
        let level = self.unsigned()?;
        u32::try_from(level).map_err(|_| self.expected("a smaller level"))
    }

    /// Reads a pattern, if one follows; one that matches everything if not.
    fn optional_pattern(&mut self) -> Result<PathPattern, IotDbFault> {
        if self.sees("root") {
            return self.absolute_pattern();
        }
        everything()
    }

    /// Reads a pattern, if one follows; the root if not.
    fn optional_prefix(&mut self) -> Result<PathPattern, IotDbFault> {
        if self.sees("root") {
            return self.absolute_pattern();
        }
        PathPattern::from_nodes(vec![PathNode::Name("root".to_owned())])
    }
}

fn everything() -> Result<PathPattern, IotDbFault> {
    PathPattern::from_nodes(vec![PathNode::Name("root".to_owned()), PathNode::AnyDepth])
}
