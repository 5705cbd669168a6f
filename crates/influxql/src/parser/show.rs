//! Parses the SHOW statements that have clauses.

use super::{Parsed, Parser};
use crate::ast::{
    Cardinality, ShowCardinality, ShowFieldKeys, ShowMeasurements, ShowSeries, ShowTagKeys,
    ShowTagValues, Statement,
};
use crate::token::{InfluxQlToken, Keyword};

impl Parser<'_> {
    /// What follows SHOW SERIES.
    pub(super) fn show_series(&mut self) -> Parsed<Statement> {
        // InfluxDB ignores EXACT unless CARDINALITY follows.
        let exact = self.next_is_keyword(Keyword::Exact);
        if self.next_is_keyword(Keyword::Cardinality) {
            return self.show_cardinality(Cardinality::Series, exact);
        }
        Ok(Statement::ShowSeries(ShowSeries {
            database: self.optional_on()?,
            sources: self.optional_sources()?,
            condition: self.condition()?,
            order_by: self.order_by()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
        }))
    }

    /// What follows SHOW MEASUREMENTS.
    pub(super) fn show_measurements(&mut self) -> Parsed<Statement> {
        let database = self.optional_on()?;
        let mut measurement = None;
        if self.next_is_keyword(Keyword::With) {
            self.expect_keywords(&[Keyword::Measurement])?;
            let next = self.next();
            if !matches!(next.token, InfluxQlToken::Eq | InfluxQlToken::EqRegex) {
                return self.unexpected(&next, &["=", "=~"]);
            }
            measurement = Some(self.measurement()?);
        }
        Ok(Statement::ShowMeasurements(ShowMeasurements {
            database,
            measurement,
            condition: self.condition()?,
            order_by: self.order_by()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
        }))
    }

    /// What follows SHOW TAG KEYS.
    pub(super) fn show_tag_keys(&mut self) -> Parsed<Statement> {
        Ok(Statement::ShowTagKeys(ShowTagKeys {
            database: self.optional_on()?,
            sources: self.optional_sources()?,
            with_key: if self.next_is_keyword(Keyword::With) {
                self.unscan();
                Some(self.tag_key_filter()?)
            } else {
                None
            },
            condition: self.condition()?,
            order_by: self.order_by()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
            slimit: self.count(Keyword::Slimit)?,
            soffset: self.count(Keyword::Soffset)?,
        }))
    }

    /// What follows SHOW TAG VALUES.
    pub(super) fn show_tag_values(&mut self) -> Parsed<Statement> {
        let exact = self.next_is_keyword(Keyword::Exact);
        if exact {
            self.expect_keywords(&[Keyword::Cardinality])?;
        }
        if exact || self.next_is_keyword(Keyword::Cardinality) {
            return self.show_tag_values_cardinality(exact);
        }
        Ok(Statement::ShowTagValues(ShowTagValues {
            database: self.optional_on()?,
            sources: self.optional_sources()?,
            with_key: self.tag_key_filter()?,
            condition: self.condition()?,
            order_by: self.order_by()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
        }))
    }

    fn show_tag_values_cardinality(&mut self, exact: bool) -> Parsed<Statement> {
        Ok(Statement::ShowCardinality(ShowCardinality {
            exact,
            database: self.optional_on()?,
            sources: self.optional_sources()?,
            of: Cardinality::TagValues(self.tag_key_filter()?),
            condition: self.condition()?,
            dimensions: self.dimensions()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
        }))
    }

    /// What follows SHOW FIELD KEYS.
    pub(super) fn show_field_keys(&mut self) -> Parsed<Statement> {
        Ok(Statement::ShowFieldKeys(ShowFieldKeys {
            database: self.optional_on()?,
            sources: self.optional_sources()?,
            order_by: self.order_by()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
        }))
    }

    /// What follows SHOW TAG KEY or SHOW FIELD KEY: [EXACT] CARDINALITY.
    pub(super) fn show_key_cardinality(&mut self, of: Cardinality) -> Parsed<Statement> {
        let exact = self.next_is_keyword(Keyword::Exact);
        let next = self.next();
        if next.token != InfluxQlToken::Keyword(Keyword::Cardinality) {
            let expected = ["EXACT", "CARDINALITY"];
            return self.unexpected(&next, &expected[usize::from(exact)..]);
        }
        self.show_cardinality(of, exact)
    }

    /// What follows SHOW MEASUREMENT [EXACT] CARDINALITY and its like.
    pub(super) fn show_cardinality(&mut self, of: Cardinality, exact: bool) -> Parsed<Statement> {
        Ok(Statement::ShowCardinality(ShowCardinality {
            of,
            exact,
            database: self.optional_on()?,
            sources: self.optional_sources()?,
            condition: self.condition()?,
            dimensions: self.dimensions()?,
            limit: self.count(Keyword::Limit)?,
            offset: self.count(Keyword::Offset)?,
        }))
    }
}
