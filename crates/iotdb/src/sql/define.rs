//! CREATE, DROP, DELETE and SET.

use super::ast::{
    NewTimeseries, TreeComparison, TreeCondition, TreeLiteral, TreeOperand, TreeStatement,
};
use super::cursor::SqlCursor;
use crate::path::PathPattern;
use crate::status::IotDbFault;
use crate::value::IotDbType;

impl SqlCursor<'_> {
    /// Reads what follows CREATE.
    pub(super) fn create(&mut self) -> Result<TreeStatement, IotDbFault> {
        if self.names_database() {
            let path = self.absolute_path()?;
            self.database_settings()?;
            return Ok(TreeStatement::CreateDatabase(path));
        }
        if self.keyword("timeseries") {
            let path = self.absolute_path()?;
            let (device, measurement) = path
                .split_last()
                .ok_or_else(|| IotDbFault::path(format!("{path} is no timeseries")))?;
            let kind = self.timeseries_type()?;
            let series = NewTimeseries {
                measurement: measurement.to_owned(),
                device,
                kind,
            };
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

    /// Settings of a database: they are read, but data is laid out in another way here.
    fn database_settings(&mut self) -> Result<(), IotDbFault> {
        if !self.keyword("with") {
            return Ok(());
        }
        loop {
            let name = self.peek_word();
            if name.is_empty() {
                return Ok(());
            }
            if name.eq_ignore_ascii_case("ttl") {
                return Err(IotDbFault::unsupported(
                    "set the time to live with SET TTL TO after the database was created",
                ));
            }
            self.advance(name.len());
            self.expect_sign("=")?;
            self.unsigned()?;
            self.sign(",");
        }
    }

    /// Reads the type of a timeseries, and its encoding and compressor, which do not matter here.
    fn timeseries_type(&mut self) -> Result<IotDbType, IotDbFault> {
        self.keyword("with");
        if self.keyword("datatype") {
            self.expect_sign("=")?;
        }
        let name = self.peek_word();
        let kind = IotDbType::from_name(name).ok_or_else(|| self.expected("a data type"))?;
        self.advance(name.len());
        loop {
            let place = self.place();
            let has_comma = self.sign(",");
            let known = ["encoding", "compressor", "compression"];
            if !known.iter().any(|name| self.keyword(name)) {
                self.return_to(place);
                for setting in ["tags", "attributes"] {
                    if self.sees(setting) {
                        return Err(IotDbFault::unsupported(format!(
                            "{setting} of timeseries are not supported"
                        )));
                    }
                }
                return Ok(kind);
            }
            self.expect_sign("=")?;
            let value = self.peek_word();
            if value.is_empty() || (has_comma && value == "with") {
                return Err(self.expected("a name"));
            }
            self.advance(value.len());
        }
    }

    fn aligned_timeseries(&mut self) -> Result<TreeStatement, IotDbFault> {
        let device = self.absolute_path()?;
        self.expect_sign("(")?;
        let series = self.list(|cursor| {
            let measurement = cursor.name()?;
            let kind = cursor.timeseries_type()?;
            Ok(NewTimeseries {
                device: device.clone(),
                measurement,
                kind,
            })
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
                time_range(&self.condition()?)?
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
            return Ok(TreeStatement::CreateDatabase(self.absolute_path()?));
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
    fn database_path(&mut self) -> Result<crate::path::TreePath, IotDbFault> {
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
fn time_range(condition: &TreeCondition) -> Result<(i64, i64), IotDbFault> {
    use TreeComparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let wrong =
        || IotDbFault::semantic("DELETE can only have comparisons of the time, joined by AND");
    match condition {
        TreeCondition::And(parts) => {
            let mut range = (i64::MIN, i64::MAX);
            for part in parts {
                let (from, to) = time_range(part)?;
                range = (range.0.max(from), range.1.min(to));
            }
            Ok(range)
        }
        TreeCondition::Compare(left, comparison, right) => {
            let (value, comparison) = match (left, right) {
                (TreeOperand::Time, TreeOperand::Literal(value)) => (value, *comparison),
                (TreeOperand::Literal(value), TreeOperand::Time) => (value, comparison.mirrored()),
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
