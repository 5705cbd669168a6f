//! Parses SELECT.

use super::{Parsed, Parser};
use crate::ast::{BinaryOp, Expr, Field, Fill, Literal, Select, Walk};
use crate::error::ParseError;
use crate::token::{InfluxQlToken, Keyword};

/// Whether a SELECT must have INTO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetRule {
    Required,
    Optional,
}

impl Parser<'_> {
    /// A SELECT whose first word has been read.
    pub(super) fn select(&mut self, target: TargetRule) -> Parsed<Select> {
        let mut select = Select {
            fields: self.fields()?,
            ..Select::default()
        };
        if self.next_is_keyword(Keyword::Into) {
            select.target = Some(self.target()?);
        } else if target == TargetRule::Required {
            self.expect_keywords(&[Keyword::Into])?;
        }
        self.expect_keywords(&[Keyword::From])?;
        select.sources = self.sources()?;
        select.condition = self.condition()?;
        select.dimensions = self.dimensions()?;
        select.fill = self.fill()?;
        select.order_by = self.order_by()?;
        select.limit = self.count(Keyword::Limit)?;
        select.offset = self.count(Keyword::Offset)?;
        select.slimit = self.count(Keyword::Slimit)?;
        select.soffset = self.count(Keyword::Soffset)?;
        select.time_zone = self.time_zone()?;
        Ok(select)
    }

    fn fields(&mut self) -> Parsed<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            let start = self.reader.cursor();
            let mut field = self.field()?;
            let behind = self.scan();
            field.span = self.trimmed(start.min(self.reader.text().len()), behind.at);
            fields.push(field);
            if behind.token != InfluxQlToken::Comma {
                self.unscan();
                return Ok(fields);
            }
        }
    }

    fn field(&mut self) -> Parsed<Field> {
        let expr = match self.regex()? {
            Some(regex) => Literal::Regex(regex).into(),
            None => {
                let first = self.next();
                self.unscan();
                let expr = self.expr()?;
                if let Some(op) = first_predicate(&expr) {
                    let at = self.reader.position(first.at);
                    return Err(ParseError::plain(format!(
                        "invalid operator {} in SELECT clause at line {}, char {}; \
                         operator is intended for WHERE clause",
                        op.sign(),
                        at.line,
                        at.char
                    )));
                }
                expr
            }
        };
        let alias = if self.next_is_keyword(Keyword::As) {
            self.ident()?
        } else {
            String::new()
        };
        self.skip_whitespace();
        let span = crate::ast::SourceSpan::default();
        Ok(Field { expr, alias, span })
    }

    fn fill(&mut self) -> Parsed<Fill> {
        if !self.word_is_next("fill") {
            return Ok(Fill::Null);
        }
        let Expr::Call(call) = self.expr()? else {
            return Err(ParseError::plain("fill must be a function call"));
        };
        let [option] = call.args.as_slice() else {
            let message = "fill requires an argument, e.g.: 0, null, none, previous, linear";
            return Err(ParseError::plain(message));
        };
        match option.to_string().as_str() {
            "null" => return Ok(Fill::Null),
            "none" => return Ok(Fill::None),
            "previous" => return Ok(Fill::Previous),
            "linear" => return Ok(Fill::Linear),
            _ => {}
        }
        match option.as_literal() {
            Some(Literal::Integer(value)) => Ok(Fill::Integer(*value)),
            Some(Literal::Number(value)) => Ok(Fill::Float(*value)),
            _ => Err(ParseError::plain("expected number argument in fill()")),
        }
    }

    fn time_zone(&mut self) -> Parsed<Option<String>> {
        if !self.word_is_next("tz") {
            return Ok(None);
        }
        let Expr::Call(call) = self.expr()? else {
            return Err(ParseError::plain("tz must be a function call"));
        };
        let [name] = call.args.as_slice() else {
            return Err(ParseError::plain("tz requires exactly one argument"));
        };
        let Some(Literal::String(name)) = name.as_literal() else {
            return Err(ParseError::plain("expected string argument in tz()"));
        };
        // Go knows these names without looking them up.
        let name = if name.is_empty() { "UTC" } else { name };
        let known = match self.options.time_zones {
            Some(zones) => name == "UTC" || zones.offset_seconds(name, 0).is_some(),
            None => true,
        };
        if !known {
            let message = format!("unable to find time zone {name}");
            return Err(ParseError::plain(message));
        }
        Ok(Some(name.to_owned()))
    }

    /// Whether a word that is not a keyword is next; does not consume it.
    fn word_is_next(&mut self, word: &str) -> bool {
        let next = self.next();
        self.unscan();
        next.token == InfluxQlToken::Ident && next.text.eq_ignore_ascii_case(word)
    }
}

/// The first operator in the expression whose result is a boolean, in InfluxDB's search order: from
/// the outside in, from left to right.
fn first_predicate(expr: &Expr) -> Option<BinaryOp> {
    let mut found = None;
    expr.walk(|expr| {
        if let Expr::Binary(binary) = expr
            && binary.op.is_predicate()
        {
            // A later one is not inside an earlier one: the last one found is reported.
            found = Some(binary.op);
            return Walk::Over;
        }
        Walk::Into
    });
    found
}
