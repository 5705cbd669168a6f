//! CREATE, DROP, DELETE and SET.

use super::ast::{NewTimeseries, TreeComparison, TreeExpr, TreeLiteral, TreeStatement};
use super::cursor::SqlCursor;
use crate::path::{PathPattern, TreePath};
use crate::status::IotDbFault;
use crate::value::IotDbType;

impl SqlCursor<'_> {
    /// Reads what follows CREATE.
    pub(super) fn create(&mut self) -> Result<TreeStatement, IotDbFault> {
        if self.names_database() {
            let path = self.absolute_path()?;
            let ttl = self.database_settings()?;
            return Ok(TreeStatement::CreateDatabase(path, ttl));
        }
        if self.keyword("timeseries") {
            let path = self.absolute_path()?;
            let (device, measurement) = path
                .split_last()
                .ok_or_else(|| IotDbFault::path(format!("{path} is no timeseries")))?;
            let series = self.timeseries_settings(device, measurement, false)?;
            return Ok(TreeStatement::CreateTimeseries(vec![series]));
        }
        if self.keywords(&["aligned", "timeseries"]) {
            return self.aligned_timeseries();
        }
        Err(self.unsupported_kind("CREATE"))
    }

    fn names_database(&mut self) -> bool {
        self.keyword("database") || self.keywords(&["storage", "group"])
    }

    fn names_databases(&mut self) -> bool {
        self.names_database() || self.keyword("databases")
    }

    /// The fault that a statement about that kind of thing is not there.
    fn unsupported_kind(&mut self, verb: &str) -> IotDbFault {
        let kind = self.peek_word();
        if kind.is_empty() {
            return self.expected("DATABASE or TIMESERIES");
        }
        let kind = kind.to_uppercase();
        IotDbFault::unsupported(format!("{verb} {kind} is not supported"))
    }

    /// Settings of a database: its time to live. The others are read, but data is laid out in another
    /// way here.
    fn database_settings(&mut self) -> Result<Option<i64>, IotDbFault> {
        let mut ttl = None;
        if !self.keyword("with") {
            return Ok(ttl);
        }
        loop {
            let name = self.peek_word();
            if name.is_empty() {
                return Ok(ttl);
            }
            self.advance(name.len());
            self.expect_sign("=")?;
            let value = self.unsigned()?;
            if name.eq_ignore_ascii_case("ttl") {
                ttl = i64::try_from(value).ok().filter(|ms| *ms > 0);
            }
            self.sign(",");
        }
    }

    /// Reads what follows the name of a timeseries: its alias, type, encoding, compressor, tags and
    /// attributes.
    fn timeseries_settings(
        &mut self,
        device: TreePath,
        measurement: &str,
        is_aligned: bool,
    ) -> Result<NewTimeseries, IotDbFault> {
        let mut series = NewTimeseries {
            device,
            measurement: measurement.to_owned(),
            kind: IotDbType::Text,
            encoding: None,
            compressor: None,
            alias: None,
            tags: Vec::new(),
            attributes: Vec::new(),
            is_aligned,
        };
        if self.sign("(") {
            series.alias = Some(self.name()?);
            self.expect_sign(")")?;
        }
        self.keyword("with");
        if self.keyword("datatype") {
            self.expect_sign("=")?;
        }
        let name = self.peek_word();
        series.kind = IotDbType::from_name(name).ok_or_else(|| self.expected("a data type"))?;
        self.advance(name.len());
        while self.timeseries_setting(&mut series)? {}
        Ok(series)
    }

    /// Reads a setting of a timeseries; returns whether there was one.
    fn timeseries_setting(&mut self, series: &mut NewTimeseries) -> Result<bool, IotDbFault> {
        let place = self.place();
        self.sign(",");
        let known = ["encoding", "compressor", "compression"];
        let found = known.iter().position(|name| {
            let begin = self.place();
            if self.keyword(name) && self.sign("=") {
                return true;
            }
            self.return_to(begin);
            false
        });
        if let Some(found) = found {
            let value = self.peek_word();
            if value.is_empty() {
                return Err(self.expected("a name"));
            }
            self.advance(value.len());
            let setting = if found == 0 {
                &mut series.encoding
            } else {
                &mut series.compressor
            };
            *setting = Some(value.to_uppercase());
            return Ok(true);
        }
        for name in ["tags", "attributes"] {
            let begin = self.place();
            if self.keyword(name) && self.sign("(") {
                let pairs = self.list(Self::pair)?;
                self.expect_sign(")")?;
                if name == "tags" {
                    series.tags = pairs;
                } else {
                    series.attributes = pairs;
                }
                return Ok(true);
            }
            self.return_to(begin);
        }
        self.return_to(place);
        Ok(false)
    }

    /// Reads `name=value`, each with or without quotes.
    fn pair(&mut self) -> Result<(String, String), IotDbFault> {
        let side = |cursor: &mut Self| match cursor.string()? {
            Some(text) => Ok(text),
            None => cursor.name(),
        };
        let name = side(self)?;
        self.expect_sign("=")?;
        Ok((name, side(self)?))
    }

    fn aligned_timeseries(&mut self) -> Result<TreeStatement, IotDbFault> {
        let device = self.absolute_path()?;
        self.expect_sign("(")?;
        let series = self.list(|cursor| {
            let measurement = cursor.name()?;
            cursor.timeseries_settings(device.clone(), &measurement, true)
        })?;
        self.expect_sign(")")?;
        Ok(TreeStatement::CreateTimeseries(series))
    }

    /// Reads what follows DROP or DELETE.
    pub(super) fn drop_or_delete(&mut self) -> Result<TreeStatement, IotDbFault> {
        if self.names_databases() {
            let patterns = self.list(Self::absolute_pattern)?;
            return Ok(TreeStatement::DropDatabases(patterns));
        }
        if self.keyword("timeseries") {
            let patterns = self.list(Self::absolute_pattern)?;
            return Ok(TreeStatement::DropTimeseries(patterns));
        }
        if self.keyword("from") {
            let patterns = self.list(Self::absolute_pattern)?;
            let range = if self.keyword("where") {
                time_range(&self.expression()?)?
            } else {
                (i64::MIN, i64::MAX)
            };
            return Ok(TreeStatement::Delete(patterns, range));
        }
        Err(self.unsupported_kind("DROP"))
    }

    /// Reads a pattern that begins at the root.
    pub(super) fn absolute_pattern(&mut self) -> Result<PathPattern, IotDbFault> {
        let pattern = self.pattern()?;
        if pattern.is_absolute() {
            return Ok(pattern);
        }
        Err(IotDbFault::path(format!("{pattern} must begin with root")))
    }

    /// Reads what follows SET.
    pub(super) fn set(&mut self) -> Result<TreeStatement, IotDbFault> {
        if self.names_database() {
            // The form before version 0.14.
            self.expect_keyword("to")?;
            return Ok(TreeStatement::CreateDatabase(self.absolute_path()?, None));
        }
        if !self.keyword("ttl") {
            return Err(self.unsupported_kind("SET"));
        }
        self.expect_keyword("to")?;
        let path = self.database_path()?;
        if self.keyword("inf") {
            return Ok(TreeStatement::SetTtl(path, None));
        }
        let ms = match self.span()? {
            Some(span) if span.months == 0 => Some(span.ms),
            Some(_) => {
                return Err(IotDbFault::unsupported(
                    "a time to live cannot have months or years",
                ));
            }
            None => i64::try_from(self.unsigned()?).ok(),
        };
        match ms.filter(|ms| *ms > 0) {
            Some(ms) => Ok(TreeStatement::SetTtl(path, Some(ms))),
            None => Err(IotDbFault::semantic("a time to live must be positive")),
        }
    }

    /// Reads what follows UNSET.
    pub(super) fn unset(&mut self) -> Result<TreeStatement, IotDbFault> {
        if !self.keyword("ttl") {
            return Err(self.unsupported_kind("UNSET"));
        }
        if !self.keyword("to") {
            self.expect_keyword("from")?;
        }
        Ok(TreeStatement::SetTtl(self.database_path()?, None))
    }

    /// Reads the path of a database, also with `.**` behind it.
    fn database_path(&mut self) -> Result<TreePath, IotDbFault> {
        let pattern = self.absolute_pattern()?;
        let whole = pattern.as_path();
        let below = || {
            let last = pattern.nodes().last()?;
            last.is_any().then(|| pattern.parent().as_path()).flatten()
        };
        whole.or_else(below).ok_or_else(|| {
            IotDbFault::unsupported(format!(
                "{pattern}: a time to live belongs to a database, without wildcards"
            ))
        })
    }
}

/// The first time and the last one that a condition on the time allows.
fn time_range(condition: &TreeExpr) -> Result<(i64, i64), IotDbFault> {
    use TreeComparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let wrong =
        || IotDbFault::semantic("DELETE can only have comparisons of the time, joined by AND");
    match condition {
        TreeExpr::And(parts) => {
            let mut range = (i64::MIN, i64::MAX);
            for part in parts {
                let (from, to) = time_range(part)?;
                range = (range.0.max(from), range.1.min(to));
            }
            Ok(range)
        }
        TreeExpr::Between(time, low, high) if **time == TreeExpr::Time => {
            let bound = |side: &TreeExpr| match side {
                TreeExpr::Literal(TreeLiteral::Integer(time) | TreeLiteral::Time(time)) => {
                    Ok(*time)
                }
                _ => Err(wrong()),
            };
            Ok((bound(low)?, bound(high)?))
        }
        TreeExpr::Compare(left, comparison, right) => {
            let (value, comparison) = match (&**left, &**right) {
                (TreeExpr::Time, TreeExpr::Literal(value)) => (value, *comparison),
                (TreeExpr::Literal(value), TreeExpr::Time) => (value, comparison.mirrored()),
                _ => return Err(wrong()),
            };
            let (TreeLiteral::Integer(time) | TreeLiteral::Time(time)) = *value else {
                return Err(wrong());
            };
            Ok(match comparison {
                Equal => (time, time),
                Greater => (time.saturating_add(1), i64::MAX),
                GreaterOrEqual => (time, i64::MAX),
                Less => (i64::MIN, time.saturating_sub(1)),
                LessOrEqual => (i64::MIN, time),
                TreeComparison::NotEqual => return Err(wrong()),
            })
        }
        _ => Err(wrong()),
    }
}
