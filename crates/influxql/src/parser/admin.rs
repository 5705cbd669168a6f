//! Parses statements about databases, retention policies, continuous queries, subscriptions and
//! users.

use super::select::TargetRule;
use super::{Parsed, Parser};
use crate::ast::{
    AlterRetentionPolicy, CreateContinuousQuery, CreateDatabase, CreateRetentionPolicy,
    CreateSubscription, Expr, Literal, Password, Privilege, Select, Statement, SubscriptionMode,
};
use crate::duration::InfluxDuration;
use crate::error::ParseError;
use crate::token::{InfluxQlToken, Keyword};
use std::borrow::Cow;

/// The error for SHARD DURATION INF.
const INF_SHARD: &str = "invalid duration INF for shard duration";

impl Parser<'_> {
    /// A name, ON, and a database.
    pub(super) fn name_on_database(&mut self) -> Parsed<(String, String)> {
        let name = self.ident()?;
        self.expect_keywords(&[Keyword::On])?;
        Ok((name, self.ident()?))
    }

    /// A name, ON, and a database with its retention policy.
    fn name_on_policy(&mut self) -> Parsed<(String, String, String)> {
        let (name, database) = self.name_on_database()?;
        let dot = self.scan();
        if dot.token != InfluxQlToken::Dot {
            return self.unexpected(&dot, &["."]);
        }
        Ok((name, database, self.ident()?))
    }

    pub(super) fn create_database(&mut self) -> Parsed<Statement> {
        let mut create = CreateDatabase {
            name: self.ident()?,
            ..CreateDatabase::default()
        };
        if self.next_is_keyword(Keyword::With) {
            let options = [
                Keyword::Duration,
                Keyword::Name,
                Keyword::Replication,
                Keyword::Shard,
            ];
            let next = self.next();
            if !options.map(InfluxQlToken::Keyword).contains(&next.token) {
                return self.unexpected(&next, &options.map(Keyword::text));
            }
            self.unscan();
            create.with_policy = true;
            if self.next_is_keyword(Keyword::Duration) {
                create.duration_ns = Some(self.duration()?);
            }
            if self.next_is_keyword(Keyword::Replication) {
                create.replication = Some(self.replication()?);
            }
            if self.next_is_keyword(Keyword::Shard) {
                self.expect_keywords(&[Keyword::Duration])?;
                create.shard_duration_ns = self.duration()?;
            }
            if self.next_is_keyword(Keyword::Name) {
                create.policy_name = self.ident()?;
            }
        }
        Ok(Statement::CreateDatabase(create))
    }

    pub(super) fn create_retention_policy(&mut self) -> Parsed<Statement> {
        let (name, database) = self.name_on_database()?;
        self.expect_keywords(&[Keyword::Duration])?;
        let duration_ns = self.duration()?;
        self.expect_keywords(&[Keyword::Replication])?;
        let replication = self.replication()?;
        let shard_duration_ns = if self.next_is_keyword(Keyword::Shard) {
            self.shard_duration()?
        } else {
            0
        };
        let default = self.next_is_keyword(Keyword::Default);
        Ok(Statement::CreateRetentionPolicy(CreateRetentionPolicy {
            name,
            database,
            duration_ns,
            replication,
            shard_duration_ns,
            default,
        }))
    }

    /// Parses the words after SHARD.
    fn shard_duration(&mut self) -> Parsed<i64> {
        self.expect_keywords(&[Keyword::Duration])?;
        let next = self.next();
        if next.token == InfluxQlToken::Keyword(Keyword::Inf) {
            return self.message(INF_SHARD, &next);
        }
        self.unscan();
        self.duration()
    }

    pub(super) fn alter_retention_policy(&mut self) -> Parsed<Statement> {
        let name = self.next();
        let name = match name.token {
            InfluxQlToken::Keyword(Keyword::Default) => "default".to_owned(),
            InfluxQlToken::Ident => name.text,
            _ => return self.unexpected(&name, &["identifier"]),
        };
        self.expect_keywords(&[Keyword::On])?;
        let mut alter = AlterRetentionPolicy {
            name,
            database: self.ident()?,
            ..AlterRetentionPolicy::default()
        };
        let mut found = Vec::new();
        loop {
            let next = self.next();
            if found.contains(&next.token) {
                let message = format!("found duplicate {} option", next.token.name());
                return self.message(message, &next);
            }
            match next.token {
                InfluxQlToken::Keyword(Keyword::Duration) => {
                    alter.duration_ns = Some(self.duration()?)
                }
                InfluxQlToken::Keyword(Keyword::Replication) => {
                    alter.replication = Some(self.replication()?);
                }
                InfluxQlToken::Keyword(Keyword::Shard) => {
                    alter.shard_duration_ns = Some(self.shard_duration()?);
                }
                InfluxQlToken::Keyword(Keyword::Default) => alter.default = true,
                _ if found.is_empty() => {
                    let options = ["DURATION", "REPLICATION", "SHARD", "DEFAULT"];
                    return self.unexpected(&next, &options);
                }
                _ => {
                    self.unscan();
                    return Ok(Statement::AlterRetentionPolicy(alter));
                }
            }
            found.push(next.token);
        }
    }

    pub(super) fn create_continuous_query(&mut self) -> Parsed<Statement> {
        let (name, database) = self.name_on_database()?;
        let (mut resample_every_ns, mut resample_for_ns) = (0, 0);
        if self.next_is_keyword(Keyword::Resample) {
            resample_every_ns = self.resample(Keyword::Every)?;
            resample_for_ns = self.resample(Keyword::For)?;
            if resample_every_ns == 0 && resample_for_ns == 0 {
                let next = self.next();
                return self.unexpected(&next, &["EVERY", "FOR"]);
            }
        }
        self.expect_keywords(&[Keyword::Begin, Keyword::Select])?;
        let select = self.select(TargetRule::Required)?;
        let interval = interval_of(&select);
        if !select.is_raw() && !interval.is_ok_and(|ns| ns != 0) {
            // InfluxDB goes back two tokens to name one.
            self.unscan();
            self.unscan();
            let next = self.next();
            let mut expected = vec![Cow::Borrowed("GROUP BY time(...)")];
            expected.extend(interval.err().map(Cow::Borrowed));
            return self.unexpected_of(&next, expected);
        }
        self.expect_keywords(&[Keyword::End])?;
        let interval_ns = interval.map_err(ParseError::plain)?;
        check_resample(interval_ns, resample_every_ns, resample_for_ns)?;
        Ok(Statement::CreateContinuousQuery(CreateContinuousQuery {
            name,
            database,
            resample_every_ns,
            resample_for_ns,
            select: Box::new(select),
        }))
    }

    /// EVERY or FOR with a duration, if that is next; otherwise 0.
    fn resample(&mut self, keyword: Keyword) -> Parsed<i64> {
        if !self.next_is_keyword(keyword) {
            return Ok(0);
        }
        let next = self.next();
        if next.token != InfluxQlToken::DurationValue {
            return self.unexpected(&next, &["duration"]);
        }
        self.duration_of(&next)
    }

    pub(super) fn create_subscription(&mut self) -> Parsed<Statement> {
        let (name, database, retention_policy) = self.name_on_policy()?;
        self.expect_keywords(&[Keyword::Destinations])?;
        let next = self.next();
        let mode = match next.token {
            InfluxQlToken::Keyword(Keyword::All) => SubscriptionMode::All,
            InfluxQlToken::Keyword(Keyword::Any) => SubscriptionMode::Any,
            _ => return self.unexpected(&next, &["ALL", "ANY"]),
        };
        let mut destinations = vec![self.string()?];
        while self.next_is(InfluxQlToken::Comma) {
            destinations.push(self.string()?);
        }
        Ok(Statement::CreateSubscription(CreateSubscription {
            name,
            database,
            retention_policy,
            mode,
            destinations,
        }))
    }

    pub(super) fn drop_subscription(&mut self) -> Parsed<Statement> {
        let (name, database, retention_policy) = self.name_on_policy()?;
        Ok(Statement::DropSubscription {
            name,
            database,
            retention_policy,
        })
    }

    pub(super) fn create_user(&mut self) -> Parsed<Statement> {
        let name = self.ident()?;
        self.expect_keywords(&[Keyword::With, Keyword::Password])?;
        let password = Password(self.string()?);
        let admin = self.next_is_keyword(Keyword::With);
        if admin {
            self.expect_keywords(&[Keyword::All, Keyword::Privileges])?;
        }
        Ok(Statement::CreateUser {
            name,
            password,
            admin,
        })
    }

    pub(super) fn set_password(&mut self) -> Parsed<Statement> {
        let name = self.ident()?;
        self.expect(InfluxQlToken::Eq)?;
        let password = Password(self.string()?);
        Ok(Statement::SetPassword { name, password })
    }

    pub(super) fn kill_query(&mut self) -> Parsed<Statement> {
        let id = self.unsigned()?;
        let host = self.optional_on()?;
        Ok(Statement::KillQuery { id, host })
    }

    pub(super) fn grant(&mut self) -> Parsed<Statement> {
        let (privilege, database, user) = self.privilege_of_user(Keyword::To)?;
        Ok(Statement::Grant {
            privilege,
            database,
            user,
        })
    }

    pub(super) fn revoke(&mut self) -> Parsed<Statement> {
        let (privilege, database, user) = self.privilege_of_user(Keyword::From)?;
        Ok(Statement::Revoke {
            privilege,
            database,
            user,
        })
    }

    /// A privilege, ON with a database, and TO or FROM with a user. Only all privileges can be
    /// granted without a database.
    fn privilege_of_user(
        &mut self,
        before_user: Keyword,
    ) -> Parsed<(Privilege, Option<String>, String)> {
        let next = self.next();
        let privilege = match next.token {
            InfluxQlToken::Keyword(Keyword::Read) => Privilege::Read,
            InfluxQlToken::Keyword(Keyword::Write) => Privilege::Write,
            InfluxQlToken::Keyword(Keyword::All) => {
                self.next_is_keyword(Keyword::Privileges);
                Privilege::All
            }
            _ => return self.unexpected(&next, &["READ", "WRITE", "ALL [PRIVILEGES]"]),
        };
        let next = self.next();
        if next.token == InfluxQlToken::Keyword(Keyword::On) {
            let database = self.ident()?;
            self.expect_keywords(&[before_user])?;
            return Ok((privilege, Some(database), self.ident()?));
        }
        if privilege != Privilege::All {
            return self.unexpected(&next, &["ON"]);
        }
        if next.token != InfluxQlToken::Keyword(before_user) {
            return self.unexpected(&next, &["ON", before_user.text()]);
        }
        Ok((privilege, None, self.ident()?))
    }
}

/// The first `time(…)` of GROUP BY in nanoseconds; 0 if there is none.
fn interval_of(select: &Select) -> Result<i64, &'static str> {
    for dimension in &select.dimensions {
        let Expr::Call(call) = &dimension.0 else {
            continue;
        };
        if call.name != "time" {
            continue;
        }
        if !(1..=2).contains(&call.args.len()) {
            return Err("time dimension expected 1 or 2 arguments");
        }
        return match call.args[0].as_literal() {
            Some(Literal::Duration(ns)) => Ok(*ns),
            _ => Err("time dimension must have duration argument"),
        };
    }
    Ok(0)
}

fn check_resample(interval_ns: i64, every_ns: i64, for_ns: i64) -> Parsed<()> {
    let interval_ns = interval_ns.max(every_ns);
    if for_ns == 0 || interval_ns <= for_ns {
        return Ok(());
    }
    Err(ParseError::plain(format!(
        "FOR duration must be >= GROUP BY time duration: must be a minimum of {}, got {}",
        InfluxDuration(interval_ns),
        InfluxDuration(for_ns)
    )))
}
