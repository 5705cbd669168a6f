//! Function literals, and expressions in parentheses, which begin alike.

use super::FluxParser;
use crate::ast::{FluxBody, FluxExpr, FluxExprKind, FluxFunction, FluxParameter, FluxStatement};
use crate::error::{FluxError, FluxPosition};
use crate::scanner::FluxToken;
use std::sync::Arc;

impl FluxParser<'_> {
    /// What begins with `(`.
    pub(super) fn parenthesis(&mut self) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        self.advance()?;
        let begins_parameters = self.is_symbol(")")
            || matches!(self.token, FluxToken::Word(_))
                && matches!(self.peek()?, FluxToken::Symbol("," | "="));
        if begins_parameters {
            let parameters = self.parameters()?;
            return self.function(at, parameters);
        }
        let inner = self.expression()?;
        self.expect_symbol(")")?;
        match inner.kind {
            FluxExprKind::Name(name) if self.is_symbol("=>") => {
                let parameter = FluxParameter {
                    name,
                    default: None,
                    is_piped: false,
                };
                self.function(at, vec![parameter])
            }
            kind => Ok(FluxExpr { kind, ..inner }),
        }
    }

    /// The parameters up to `)`.
    fn parameters(&mut self) -> Result<Vec<FluxParameter>, FluxError> {
        let mut parameters: Vec<FluxParameter> = Vec::new();
        while !self.take_symbol(")")? {
            let at = self.at;
            let name = self.name()?;
            if parameters.iter().any(|known| known.name == name) {
                return Err(FluxError::new(at, format!("{name} is a parameter twice")));
            }
            let (mut default, mut is_piped) = (None, false);
            if self.take_symbol("=")? {
                is_piped = self.take_symbol("<-")?;
                if !is_piped {
                    default = Some(self.expression()?);
                }
            }
            parameters.push(FluxParameter {
                name,
                default,
                is_piped,
            });
            if !self.is_symbol(")") {
                self.expect_symbol(",")?;
            }
        }
        Ok(parameters)
    }

    fn function(
        &mut self,
        at: FluxPosition,
        parameters: Vec<FluxParameter>,
    ) -> Result<FluxExpr, FluxError> {
        self.expect_symbol("=>")?;
        let (body, below) = if self.is_symbol("{") {
            self.block()?
        } else {
            let body = self.expression()?;
            let below = body.depth;
            (FluxBody::Expression(body), below)
        };
        let defaults = parameters.iter().filter_map(|one| one.default.as_ref());
        let below = defaults.map(|value| value.depth).fold(below, u16::max);
        let function = Arc::new(FluxFunction { parameters, body });
        Self::node(at, below, FluxExprKind::Function(function))
    }

    fn block(&mut self) -> Result<(FluxBody, u16), FluxError> {
        self.advance()?;
        let statements = self.statements(&FluxToken::Symbol("}"))?;
        if !matches!(statements.last(), Some(FluxStatement::Return(_))) {
            return Err(FluxError::new(self.at, "a block ends with return"));
        }
        self.advance()?;
        let depth = |statement: &FluxStatement| match statement {
            FluxStatement::Import { .. } => 0,
            FluxStatement::Option { value, .. }
            | FluxStatement::Assignment { value, .. }
            | FluxStatement::Expression(value)
            | FluxStatement::Return(value) => value.depth,
        };
        let below = statements.iter().map(depth).max().unwrap_or(0);
        Ok((FluxBody::Block(statements), below))
    }
}
