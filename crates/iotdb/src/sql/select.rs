//! SELECT.

use super::ast::{SortKey, TreeColumn, TreeFill, TreeSelect, TreeSpan, TreeWindows};
use super::cursor::SqlCursor;
use crate::path::PathPattern;
use crate::status::IotDbFault;

impl SqlCursor<'_> {
    /// Reads what follows SELECT.
    ///
    /// # Errors
    /// If it is malformed, or names a clause that is not supported.
    pub(super) fn select(&mut self) -> Result<TreeSelect, IotDbFault> {
        let is_last = self.is_last_query();
        let columns = self.list(Self::column)?;
        if self.sees("into") {
            return Err(IotDbFault::unsupported("SELECT INTO is not supported"));
        }
        self.expect_keyword("from")?;
        let from = self.list(Self::prefix)?;
        let mut select = TreeSelect {
            columns,
            is_last,
            from,
            condition: None,
            having: None,
            windows: None,
            levels: Vec::new(),
            fill: None,
            order: Vec::new(),
            limit: None,
            offset: 0,
            series_limit: None,
            series_offset: 0,
            is_aligned_by_device: false,
        };
        if self.keyword("where") {
            select.condition = Some(self.expression()?);
        }
        while !self.is_at_end() && self.clause(&mut select)? {}
        Ok(select)
    }

    /// Whether `last` begins a query for the newest points, rather than a path.
    fn is_last_query(&mut self) -> bool {
        let begin = self.place();
        if self.keyword("last") {
            let follows = self.rest();
            if !follows.starts_with([',', '.', '(']) && !self.sees("from") && !self.sees("as") {
                return true;
            }
        }
        self.return_to(begin);
        false
    }

    fn prefix(&mut self) -> Result<PathPattern, IotDbFault> {
        let pattern = self.pattern()?;
        if pattern.is_absolute() {
            return Ok(pattern);
        }
        Err(IotDbFault::path(format!("{pattern} must begin with root")))
    }

    fn column(&mut self) -> Result<TreeColumn, IotDbFault> {
        let expr = self.expression()?;
        let alias = self.keyword("as").then(|| self.name()).transpose()?;
        Ok(TreeColumn { expr, alias })
    }

    /// Reads a clause; returns whether there was one.
    fn clause(&mut self, select: &mut TreeSelect) -> Result<bool, IotDbFault> {
        if self.keywords(&["group", "by"]) {
            self.grouping(select)?;
        } else if self.keyword("having") {
            select.having = Some(self.expression()?);
        } else if self.keywords(&["order", "by"]) {
            select.order = self.list(Self::sort_key)?;
        } else if self.keyword("fill") {
            select.fill = Some(self.fill()?);
        } else if self.keyword("limit") {
            select.limit = Some(self.unsigned()?);
        } else if self.keyword("offset") {
            select.offset = self.unsigned()?;
        } else if self.keyword("slimit") {
            select.series_limit = Some(self.unsigned()?);
        } else if self.keyword("soffset") {
            select.series_offset = self.unsigned()?;
        } else if self.keywords(&["align", "by", "device"]) {
            select.is_aligned_by_device = true;
        } else if self.keywords(&["align", "by", "time"]) {
            select.is_aligned_by_device = false;
        } else {
            for clause in ["disable", "without", "with"] {
                if self.sees(clause) {
                    let clause = clause.to_uppercase();
                    return Err(IotDbFault::unsupported(format!(
                        "{clause} is not supported"
                    )));
                }
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn grouping(&mut self, select: &mut TreeSelect) -> Result<(), IotDbFault> {
        loop {
            if self.keyword("level") {
                self.expect_sign("=")?;
                let level = |cursor: &mut Self| {
                    let level = cursor.unsigned()?;
                    u32::try_from(level).map_err(|_| cursor.expected("a smaller level"))
                };
                select.levels = self.list(level)?;
            } else if self.rest().starts_with('(') {
                select.windows = Some(self.windows()?);
            } else {
                return Err(IotDbFault::unsupported(
                    "GROUP BY can have windows of time and LEVEL: others are not supported",
                ));
            }
            if !self.sign(",") {
                return Ok(());
            }
        }
    }

    fn windows(&mut self) -> Result<TreeWindows, IotDbFault> {
        self.expect_sign("(")?;
        let opens_with_begin = self.sign("[");
        if !opens_with_begin {
            self.expect_sign("(")?;
        }
        let start_ms = self.expect_time()?;
        self.expect_sign(",")?;
        let end_ms = self.expect_time()?;
        let has_ends = !opens_with_begin;
        self.expect_sign(if has_ends { "]" } else { ")" })?;
        self.expect_sign(",")?;
        let length = self.expect_span()?;
        let step = if self.sign(",") {
            self.expect_span()?
        } else {
            length
        };
        self.expect_sign(")")?;
        if start_ms >= end_ms {
            return Err(IotDbFault::semantic(
                "the begin of the windows must be before their end",
            ));
        }
        Ok(TreeWindows {
            start_ms,
            end_ms,
            has_ends,
            length,
            step,
        })
    }

    fn expect_time(&mut self) -> Result<i64, IotDbFault> {
        match self.time()? {
            Some(time) => Ok(time),
            None => Err(self.expected("a time")),
        }
    }

    fn expect_span(&mut self) -> Result<TreeSpan, IotDbFault> {
        match self.span()? {
            Some(span) if span.months > 0 || span.ms > 0 => Ok(span),
            Some(_) => Err(IotDbFault::semantic("a window must not be empty")),
            None => Err(self.expected("a length of time")),
        }
    }

    fn sort_key(&mut self) -> Result<(SortKey, bool), IotDbFault> {
        let key = if self.keyword("time") || self.keyword("timestamp") {
            SortKey::Time
        } else if self.keyword("device") {
            SortKey::Device
        } else if self.keyword("timeseries") {
            SortKey::Timeseries
        } else {
            SortKey::Value(self.expression()?)
        };
        let descends = self.keyword("desc");
        if !descends {
            self.keyword("asc");
        }
        Ok((key, descends))
    }

    fn fill(&mut self) -> Result<TreeFill, IotDbFault> {
        self.expect_sign("(")?;
        let fill = if self.keyword("previous") {
            let reach = if self.sign(",") {
                Some(self.expect_span()?.ms)
            } else {
                None
            };
            TreeFill::Previous(reach)
        } else if self.keyword("linear") {
            TreeFill::Linear
        } else {
            match self.literal()? {
                Some(value) => TreeFill::Constant(value),
                None => return Err(self.expected("PREVIOUS, LINEAR or a value")),
            }
        };
        self.expect_sign(")")?;
        Ok(fill)
    }
}
