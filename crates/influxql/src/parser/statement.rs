//! Parses the words that begin statements.

use super::select::TargetRule;
use super::{Parsed, Parser};
use crate::ast::{Cardinality, Expr, Source, Statement};
use crate::error::ParseError;
use crate::token::{InfluxQlToken, Keyword};

/// The function that parses a statement known by its first words.
type Reading<'a> = fn(&mut Parser<'a>) -> Parsed<Statement>;

impl<'a> Parser<'a> {
    /// One statement.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        self.branch(&[
            (Keyword::Select, |p| {
                let select = p.select(TargetRule::Optional)?;
                Ok(Statement::Select(Box::new(select)))
            }),
            (Keyword::Delete, |p| {
                let (sources, condition) = p.removal()?;
                Ok(Statement::Delete { sources, condition })
            }),
            (Keyword::Show, Self::show),
            (Keyword::Create, Self::create),
            (Keyword::Drop, Self::drop_statement),
            (Keyword::Explain, |p| {
                let analyze = p.next_is_keyword(Keyword::Analyze);
                p.expect_keywords(&[Keyword::Select])?;
                let select = Box::new(p.select(TargetRule::Optional)?);
                Ok(Statement::Explain { analyze, select })
            }),
            (Keyword::Grant, Self::grant),
            (Keyword::Revoke, Self::revoke),
            (Keyword::Alter, |p| {
                p.expect_keywords(&[Keyword::Retention, Keyword::Policy])?;
                p.alter_retention_policy()
            }),
            (Keyword::Set, |p| {
                p.expect_keywords(&[Keyword::Password, Keyword::For])?;
                p.set_password()
            }),
            (Keyword::Kill, |p| {
                p.expect_keywords(&[Keyword::Query])?;
                p.kill_query()
            }),
        ])
    }

    /// Reads one of the keywords, which errors list as expected, and continues with its function.
    fn branch(&mut self, branches: &[(Keyword, Reading<'a>)]) -> Parsed<Statement> {
        let next = self.next();
        if let InfluxQlToken::Keyword(keyword) = next.token
            && let Some((_, go_on)) = branches.iter().find(|(branch, _)| *branch == keyword)
        {
            return go_on(self);
        }
        let expected: Vec<_> = branches.iter().map(|(branch, _)| branch.text()).collect();
        self.unexpected(&next, &expected)
    }

    fn show(&mut self) -> Parsed<Statement> {
        self.branch(&[
            (Keyword::Continuous, |p| {
                p.expect_keywords(&[Keyword::Queries])?;
                Ok(Statement::ShowContinuousQueries)
            }),
            (Keyword::Databases, |_| Ok(Statement::ShowDatabases)),
            (Keyword::Diagnostics, |p| {
                p.optional_module().map(Statement::ShowDiagnostics)
            }),
            (Keyword::Field, |p| {
                p.branch(&[
                    (Keyword::Key, |p| {
                        p.show_key_cardinality(Cardinality::FieldKey)
                    }),
                    (Keyword::Keys, Self::show_field_keys),
                ])
            }),
            (Keyword::Grants, |p| {
                p.expect_keywords(&[Keyword::For])?;
                p.ident().map(Statement::ShowGrants)
            }),
            (Keyword::Measurement, |p| {
                p.branch(&[
                    (Keyword::Exact, |p| {
                        p.expect_keywords(&[Keyword::Cardinality])?;
                        p.show_cardinality(Cardinality::Measurement, true)
                    }),
                    (Keyword::Cardinality, |p| {
                        p.show_cardinality(Cardinality::Measurement, false)
                    }),
                ])
            }),
            (Keyword::Measurements, Self::show_measurements),
            (Keyword::Queries, |_| Ok(Statement::ShowQueries)),
            (Keyword::Retention, |p| {
                p.expect_keywords(&[Keyword::Policies])?;
                p.optional_on().map(Statement::ShowRetentionPolicies)
            }),
            (Keyword::Series, Self::show_series),
            (Keyword::Shard, |p| {
                p.expect_keywords(&[Keyword::Groups])?;
                Ok(Statement::ShowShardGroups)
            }),
            (Keyword::Shards, |_| Ok(Statement::ShowShards)),
            (Keyword::Stats, |p| {
                p.optional_module().map(Statement::ShowStats)
            }),
            (Keyword::Subscriptions, |_| Ok(Statement::ShowSubscriptions)),
            (Keyword::Tag, |p| {
                p.branch(&[
                    (Keyword::Key, |p| {
                        p.show_key_cardinality(Cardinality::TagKey)
                    }),
                    (Keyword::Keys, Self::show_tag_keys),
                    (Keyword::Values, Self::show_tag_values),
                ])
            }),
            (Keyword::Users, |_| Ok(Statement::ShowUsers)),
        ])
    }

    fn create(&mut self) -> Parsed<Statement> {
        self.branch(&[
            (Keyword::Continuous, |p| {
                p.expect_keywords(&[Keyword::Query])?;
                p.create_continuous_query()
            }),
            (Keyword::Database, Self::create_database),
            (Keyword::User, Self::create_user),
            (Keyword::Retention, |p| {
                p.expect_keywords(&[Keyword::Policy])?;
                p.create_retention_policy()
            }),
            (Keyword::Subscription, Self::create_subscription),
        ])
    }

    fn drop_statement(&mut self) -> Parsed<Statement> {
        self.branch(&[
            (Keyword::Continuous, |p| {
                p.expect_keywords(&[Keyword::Query])?;
                let (name, database) = p.name_on_database()?;
                Ok(Statement::DropContinuousQuery { name, database })
            }),
            (Keyword::Database, |p| {
                p.ident().map(Statement::DropDatabase)
            }),
            (Keyword::Measurement, |p| {
                p.ident().map(Statement::DropMeasurement)
            }),
            (Keyword::Retention, |p| {
                p.expect_keywords(&[Keyword::Policy])?;
                let (name, database) = p.name_on_database()?;
                Ok(Statement::DropRetentionPolicy { name, database })
            }),
            (Keyword::Series, |p| {
                let (sources, condition) = p.removal()?;
                Ok(Statement::DropSeries { sources, condition })
            }),
            (Keyword::Shard, |p| p.unsigned().map(Statement::DropShard)),
            (Keyword::Subscription, Self::drop_subscription),
            (Keyword::User, |p| p.ident().map(Statement::DropUser)),
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
            return Err(ParseError::with_position(refusal, self.reader.position(0)));
        }
        let condition = self.condition()?;
        if condition.is_none() && sources.is_empty() {
            return self.unexpected(&first, &["FROM", "WHERE"]);
        }
        Ok((sources, condition))
    }
}
