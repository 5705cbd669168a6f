//! Parses clauses and values that many statements have.

use super::{Parsed, Parser};
use crate::ast::{Dimension, Expr, Literal, SortField, TagKeyFilter};
use crate::duration::parse_duration;
use crate::error::ParseError;
use crate::scanner::Scanned;
use crate::token::{InfluxQlToken, Keyword};
use std::num::IntErrorKind;

/// What ORDER BY cannot do.
const ONLY_TIME: &str = "only ORDER BY time supported at this time";

impl Parser<'_> {
    /// A name.
    pub(super) fn ident(&mut self) -> Parsed<String> {
        let next = self.next();
        if next.token == InfluxQlToken::Ident {
            return Ok(next.text);
        }
        self.unexpected(&next, &["identifier"])
    }

    /// A string.
    pub(super) fn string(&mut self) -> Parsed<String> {
        let next = self.next();
        if next.token == InfluxQlToken::String {
            return Ok(next.text);
        }
        self.unexpected(&next, &["string"])
    }

    /// ON and a database, if that is next.
    pub(super) fn optional_on(&mut self) -> Parsed<String> {
        if self.next_is_keyword(Keyword::On) {
            return self.ident();
        }
        Ok(String::new())
    }

    /// WHERE, if that is next.
    pub(super) fn condition(&mut self) -> Parsed<Option<Expr>> {
        if !self.next_is_keyword(Keyword::Where) {
            return Ok(None);
        }
        self.expr().map(Some)
    }

    /// GROUP BY, if that is next.
    pub(super) fn dimensions(&mut self) -> Parsed<Vec<Dimension>> {
        if !self.next_is_keyword(Keyword::Group) {
            return Ok(Vec::new());
        }
        self.expect_keywords(&[Keyword::By])?;
        let mut dimensions = Vec::new();
        loop {
            if let Some(regex) = self.regex()? {
                dimensions.push(Dimension(Literal::Regex(regex).into()));
            } else {
                dimensions.push(Dimension(self.expr()?));
                self.skip_whitespace();
            }
            if self.scan().token != InfluxQlToken::Comma {
                self.unscan();
                return Ok(dimensions);
            }
        }
    }

    /// ORDER BY, if that is next.
    pub(super) fn order_by(&mut self) -> Parsed<Option<SortField>> {
        if !self.next_is_keyword(Keyword::Order) {
            return Ok(None);
        }
        self.expect_keywords(&[Keyword::By])?;
        let first = self.next();
        let field = match first.token {
            InfluxQlToken::Keyword(direction @ (Keyword::Asc | Keyword::Desc)) => SortField {
                name: String::new(),
                ascending: direction == Keyword::Asc,
            },
            InfluxQlToken::Ident => {
                self.unscan();
                let field = self.sort_field()?;
                if first.text != "time" {
                    return Err(ParseError::plain(ONLY_TIME));
                }
                field
            }
            _ => return self.unexpected(&first, &["identifier", "ASC", "DESC"]),
        };
        let mut more = false;
        while self.next_is(InfluxQlToken::Comma) {
            self.sort_field()?;
            more = true;
        }
        if more {
            return Err(ParseError::plain(ONLY_TIME));
        }
        Ok(Some(field))
    }

    fn sort_field(&mut self) -> Parsed<SortField> {
        let name = self.ident()?;
        let ascending = self.next_is_keyword(Keyword::Asc) || !self.next_is_keyword(Keyword::Desc);
        Ok(SortField { name, ascending })
    }

    /// A keyword and a number, if that is next; otherwise 0.
    pub(super) fn count(&mut self, keyword: Keyword) -> Parsed<u64> {
        if !self.next_is_keyword(keyword) {
            return Ok(0);
        }
        let next = self.next();
        if next.token != InfluxQlToken::Integer {
            return self.unexpected(&next, &["integer"]);
        }
        // A number that does not fit counts as the largest. Only a parameter can be negative.
        let count = next.text.parse().unwrap_or(if next.text.starts_with('-') {
            i64::MIN
        } else {
            i64::MAX
        });
        match u64::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => self.message(format!("{} must be >= 0", keyword.text()), &next),
        }
    }

    /// A duration, or INF as 0.
    pub(super) fn duration(&mut self) -> Parsed<i64> {
        let next = self.next();
        match next.token {
            InfluxQlToken::Keyword(Keyword::Inf) => Ok(0),
            InfluxQlToken::DurationValue => self.duration_of(&next),
            _ => self.unexpected(&next, &["duration"]),
        }
    }

    /// The value of a token that is a duration.
    pub(super) fn duration_of(&self, scanned: &Scanned) -> Parsed<i64> {
        match parse_duration(&scanned.text) {
            Ok(ns) => Ok(ns),
            Err(error) => self.message(error.to_string(), scanned),
        }
    }

    /// A replication factor.
    pub(super) fn replication(&mut self) -> Parsed<u32> {
        let next = self.next();
        if next.token != InfluxQlToken::Integer {
            return self.unexpected(&next, &["integer"]);
        }
        let value: i64 = match next.text.parse() {
            Ok(value) => value,
            Err(error) => return self.bad_number("Atoi", &next, *error.kind()),
        };
        match u32::try_from(value) {
            Ok(value) if (1..=i32::MAX as u32).contains(&value) => Ok(value),
            _ => {
                let message = format!("invalid value {value}: must be 1 <= n <= {}", i32::MAX);
                self.message(message, &next)
            }
        }
    }

    /// A whole number that is not negative.
    pub(super) fn unsigned(&mut self) -> Parsed<u64> {
        let next = self.next();
        if next.token != InfluxQlToken::Integer {
            return self.unexpected(&next, &["integer"]);
        }
        match next.text.parse() {
            Ok(value) => Ok(value),
            Err(error) => self.bad_number("ParseUint", &next, *error.kind()),
        }
    }

    /// The error for a number that Go's function cannot read.
    fn bad_number<T>(&self, function: &str, scanned: &Scanned, kind: IntErrorKind) -> Parsed<T> {
        let why = match kind {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let message = format!("strconv.{function}: parsing \"{}\": {why}", scanned.text);
        self.message(message, scanned)
    }

    /// WITH KEY.
    pub(super) fn tag_key_filter(&mut self) -> Parsed<TagKeyFilter> {
        self.expect_keywords(&[Keyword::With, Keyword::Key])?;
        let next = self.next();
        match next.token {
            InfluxQlToken::Keyword(Keyword::In) => {
                self.expect(InfluxQlToken::LeftParen)?;
                let mut keys = vec![self.ident()?];
                while self.next_is(InfluxQlToken::Comma) {
                    keys.push(self.ident()?);
                }
                self.expect(InfluxQlToken::RightParen)?;
                Ok(TagKeyFilter::In(keys))
            }
            InfluxQlToken::Eq => self.ident().map(TagKeyFilter::Eq),
            InfluxQlToken::Neq => self.ident().map(TagKeyFilter::Neq),
            InfluxQlToken::EqRegex => self.required_regex().map(TagKeyFilter::Matches),
            InfluxQlToken::NeqRegex => self.required_regex().map(TagKeyFilter::MatchesNot),
            _ => self.unexpected(&next, &["IN", "=", "=~"]),
        }
    }
}
