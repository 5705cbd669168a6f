//! Parses sources and targets of rows: measurements and subqueries.

use super::select::TargetRule;
use super::{Parsed, Parser};
use crate::ast::{Measurement, MeasurementName, Select, Source, Target};
use crate::token::{InfluxQlToken, Keyword};

impl Parser<'_> {
    /// FROM with measurements, if that is next.
    pub(super) fn optional_sources(&mut self) -> Parsed<Vec<Source>> {
        if !self.next_is_keyword(Keyword::From) {
            return Ok(Vec::new());
        }
        let measurements = self.comma_separated(Self::measurement)?;
        Ok(measurements.into_iter().map(Source::Measurement).collect())
    }

    /// Measurements and subqueries.
    pub(super) fn sources(&mut self) -> Parsed<Vec<Source>> {
        self.comma_separated(Self::source)
    }

    /// One or more of something.
    fn comma_separated<T>(&mut self, read: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![read(self)?];
        while self.next_is(InfluxQlToken::Comma) {
            items.push(read(self)?);
        }
        Ok(items)
    }

    fn source(&mut self) -> Parsed<Source> {
        if let Some(regex) = self.regex()? {
            return Ok(Source::Measurement(Measurement {
                database: String::new(),
                retention_policy: String::new(),
                name: MeasurementName::Regex(regex),
            }));
        }
        if self.next_is(InfluxQlToken::LeftParen) {
            let select = self.nested(Self::subquery)?;
            return Ok(Source::Subquery(Box::new(select)));
        }
        self.named_measurement().map(Source::Measurement)
    }

    fn subquery(&mut self) -> Parsed<Select> {
        self.expect_keywords(&[Keyword::Select])?;
        let select = self.select(TargetRule::Optional)?;
        self.expect(InfluxQlToken::RightParen)?;
        Ok(select)
    }

    /// A measurement, or a regular expression that matches several.
    pub(super) fn measurement(&mut self) -> Parsed<Measurement> {
        match self.regex()? {
            Some(regex) => Ok(Measurement {
                database: String::new(),
                retention_policy: String::new(),
                name: MeasurementName::Regex(regex),
            }),
            None => self.named_measurement(),
        }
    }

    /// `m`, `rp.m`, `db.rp.m`, `db..m`, with a name or a regular expression at the end.
    fn named_measurement(&mut self) -> Parsed<Measurement> {
        let mut segments = self.segments()?;
        let regex = if segments.len() < 3 {
            self.regex()?
        } else {
            None
        };
        let name = match regex {
            Some(regex) => MeasurementName::Regex(regex),
            None => MeasurementName::Name(segments.pop().unwrap_or_default()),
        };
        let retention_policy = segments.pop().unwrap_or_default();
        let database = segments.pop().unwrap_or_default();
        Ok(Measurement {
            database,
            retention_policy,
            name,
        })
    }

    /// What follows INTO.
    pub(super) fn target(&mut self) -> Parsed<Target> {
        let mut segments = self.segments()?;
        if segments.len() < 3 && self.reader.peek() == ':' {
            self.expect(InfluxQlToken::Colon)?;
            self.expect_keywords(&[Keyword::Measurement])?;
            segments.push(String::new());
        }
        let measurement = segments.pop().filter(|name| !name.is_empty());
        let retention_policy = segments.pop().unwrap_or_default();
        let database = segments.pop().unwrap_or_default();
        Ok(Target {
            database,
            retention_policy,
            measurement,
        })
    }
}
