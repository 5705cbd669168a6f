//! The words that begin statements.

use super::select::TargetRule;
use super::{Parsed, Parser};
use crate::ast::{Cardinality, Expr, Source, Statement};
use crate::error::ParseError;
use crate::token::Keyword;
use crate::token::Token;

/// What is read once a statement is known by its first words.
type Reading<'a> = fn(&mut Parser<'a>) -> Parsed<Statement>;

impl<'a> Parser<'a> {
    /// One statement.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        self.branch(&[
            ("SELECT", |p| {
                let select = p.select(TargetRule::Optional)?;
                Ok(Statement::Select(Box::new(select)))
            }),
            ("DELETE", |p| {
                let (sources, condition) = p.removal()?;
                Ok(Statement::Delete { sources, condition })
            }),
            ("SHOW", Self::show),
            ("CREATE", Self::create),
            ("DROP", Self::drop_statement),
            ("EXPLAIN", |p| {
                let analyze = p.next_is_keyword(Keyword::Analyze);
                p.expect_keywords(&[Keyword::Select])?;
                let select = Box::new(p.select(TargetRule::Optional)?);
                Ok(Statement::Explain { analyze, select })
            }),
            ("GRANT", Self::grant),
            ("REVOKE", Self::revoke),
            ("ALTER", |p| {
                p.expect_keywords(&[Keyword::Retention, Keyword::Policy])?;
                p.alter_retention_policy()
            }),
            ("SET", |p| {
                p.expect_keywords(&[Keyword::Password, Keyword::For])?;
                p.set_password()
            }),
            ("KILL", |p| {
                p.expect_keywords(&[Keyword::Query])?;
                p.kill_query()
            }),
        ])
    }

    /// Reads one of the keywords, which are what an error says was expected, and goes on as it says.
    fn branch(&mut self, branches: &[(&'static str, Reading<'a>)]) -> Parsed<Statement> {
        let next = self.next();
        if let Token::Keyword(keyword) = next.token
            && let Some((_, go_on)) = branches.iter().find(|(text, _)| *text == keyword.text())
        {
            return go_on(self);
        }
        let expected: Vec<_> = branches.iter().map(|(text, _)| *text).collect();
        self.unexpected(&next, &expected)
    }

    fn show(&mut self) -> Parsed<Statement> {
        self.branch(&[
            ("CONTINUOUS", |p| {
                p.expect_keywords(&[Keyword::Queries])?;
                Ok(Statement::ShowContinuousQueries)
            }),
            ("DATABASES", |_| Ok(Statement::ShowDatabases)),
            ("DIAGNOSTICS", |p| {
                p.optional_module().map(Statement::ShowDiagnostics)
            }),
            ("FIELD", |p| {
                p.branch(&[
                    ("KEY", |p| p.show_key_cardinality(Cardinality::FieldKey)),
                    ("KEYS", Self::show_field_keys),
                ])
            }),
            ("GRANTS", |p| {
                p.expect_keywords(&[Keyword::For])?;
                p.ident().map(Statement::ShowGrants)
            }),
            ("MEASUREMENT", |p| {
                p.branch(&[
                    ("EXACT", |p| {
                        p.expect_keywords(&[Keyword::Cardinality])?;
                        p.show_cardinality(Cardinality::Measurement, true)
                    }),
                    ("CARDINALITY", |p| {
                        p.show_cardinality(Cardinality::Measurement, false)
                    }),
                ])
            }),
            ("MEASUREMENTS", Self::show_measurements),
            ("QUERIES", |_| Ok(Statement::ShowQueries)),
            ("RETENTION", |p| {
                p.expect_keywords(&[Keyword::Policies])?;
                p.optional_on().map(Statement::ShowRetentionPolicies)
            }),
            ("SERIES", Self::show_series),
            ("SHARD", |p| {
                p.expect_keywords(&[Keyword::Groups])?;
                Ok(Statement::ShowShardGroups)
            }),
            ("SHARDS", |_| Ok(Statement::ShowShards)),
            ("STATS", |p| p.optional_module().map(Statement::ShowStats)),
            ("SUBSCRIPTIONS", |_| Ok(Statement::ShowSubscriptions)),
            ("TAG", |p| {
                p.branch(&[
                    ("KEY", |p| p.show_key_cardinality(Cardinality::TagKey)),
                    ("KEYS", Self::show_tag_keys),
                    ("VALUES", Self::show_tag_values),
                ])
            }),
            ("USERS", |_| Ok(Statement::ShowUsers)),
        ])
    }

    fn create(&mut self) -> Parsed<Statement> {
        self.branch(&[
            ("CONTINUOUS", |p| {
                p.expect_keywords(&[Keyword::Query])?;
                p.create_continuous_query()
            }),
            ("DATABASE", Self::create_database),
            ("USER", Self::create_user),
            ("RETENTION", |p| {
                p.expect_keywords(&[Keyword::Policy])?;
                p.create_retention_policy()
            }),
            ("SUBSCRIPTION", Self::create_subscription),
        ])
    }

    fn drop_statement(&mut self) -> Parsed<Statement> {
        self.branch(&[
            ("CONTINUOUS", |p| {
                p.expect_keywords(&[Keyword::Query])?;
                let (name, database) = p.name_on_database()?;
                Ok(Statement::DropContinuousQuery { name, database })
            }),
            ("DATABASE", |p| p.ident().map(Statement::DropDatabase)),
            ("MEASUREMENT", |p| p.ident().map(Statement::DropMeasurement)),
            ("RETENTION", |p| {
                p.expect_keywords(&[Keyword::Policy])?;
                let (name, database) = p.name_on_database()?;
                Ok(Statement::DropRetentionPolicy { name, database })
            }),
            ("SERIES", |p| {
                let (sources, condition) = p.removal()?;
                Ok(Statement::DropSeries { sources, condition })
            }),
            ("SHARD", |p| p.unsigned().map(Statement::DropShard)),
            ("SUBSCRIPTION", Self::drop_subscription),
            ("USER", |p| p.ident().map(Statement::DropUser)),
        ])
    }

    /// FOR and a module, if that is next.
    fn optional_module(&mut self) -> Parsed<String> {
        if self.next_is_keyword(Keyword::For) {
            return self.string();
        }
        Ok(String::new())
    }

    /// FROM and WHERE of a statement that removes something; at least one of them.
    fn removal(&mut self) -> Parsed<(Vec<Source>, Option<Expr>)> {
        let first = self.next();
        self.unscan();
        let sources = self.optional_sources()?;
        let mut refusal = None;
        for source in &sources {
            if let Source::Measurement(measurement) = source {
                if !measurement.database.is_empty() {
                    refusal = Some("database not supported");
                }
                if !measurement.retention_policy.is_empty() {
                    refusal = Some("retention policy not supported");
                }
            }
        }
        if let Some(refusal) = refusal {
            return Err(ParseError::at(refusal, self.reader.position(0)));
        }
        let condition = self.condition()?;
        if condition.is_none() && sources.is_empty() {
            return self.unexpected(&first, &["FROM", "WHERE"]);
        }
        Ok((sources, condition))
    }
}
