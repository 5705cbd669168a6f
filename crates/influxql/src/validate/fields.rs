//! The columns of a SELECT: what may stand in one, and which may stand together.

use super::{FunctionUse, Head, distinct_call, folded, functions, is_plain_time};
use crate::ast::{Call, Expr, Fill, Literal, Select};
use crate::select_error::SelectError;

/// What is known of the columns once each was looked at.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) functions: FunctionUse,
    /// Groups before the first that functions look at.
    pub(super) extra_intervals: u64,
    /// Columns but `time`.
    count: usize,
    /// GROUP BY has an interval.
    has_interval: bool,
    /// The interval is that of the query around this one.
    interval_is_inherited: bool,
    /// LIMIT, 0 for none.
    limit: u64,
    /// The answer is written somewhere.
    has_target: bool,
    /// A wildcard may stand here: not behind an operator.
    wildcard_allowed: bool,
}

/// Looks at each column, then at all together.
pub(super) fn check(select: &Select, head: &Head) -> Result<Columns, SelectError> {
    let mut columns = Columns {
        functions: FunctionUse {
            calls: 0,
            only_selectors: true,
            has_distinct: false,
            has_bare_columns: false,
            top_bottom: None,
        },
        extra_intervals: 0,
        count: 0,
        has_interval: head.interval.is_some(),
        interval_is_inherited: head.interval_is_inherited,
        limit: select.limit,
        has_target: select.target.is_some(),
        wildcard_allowed: true,
    };
    for field in &select.fields {
        if is_plain_time(&field.expr) {
            continue;
        }
        columns.count += 1;
        columns.wildcard_allowed = true;
        columns.expr(&folded(field))?;
    }
    columns.together(head.fill)?;
    Ok(columns)
}

impl Columns {
    fn expr(&mut self, expr: &Expr) -> Result<(), SelectError> {
        match expr {
            Expr::VarRef(_) => self.bare_column(),
            Expr::Wildcard(_) if self.wildcard_allowed => self.bare_column(),
            Expr::Wildcard(_) => return Err(SelectError::WildcardInExpression),
            Expr::Literal(Literal::Regex(_)) if self.wildcard_allowed => self.bare_column(),
            Expr::Literal(Literal::Regex(_)) => return Err(SelectError::RegexInExpression),
            Expr::Literal(_) => return Err(SelectError::ConstantField),
            Expr::Call(call) => return functions::check(self, call),
            Expr::Distinct(name) => {
                self.functions.calls += 1;
                return self.distinct(&distinct_call(name), false);
            }
            Expr::Paren(inner) => return self.expr(inner),
            Expr::Binary(binary) => {
                self.wildcard_allowed = false;
                let (first, links) = binary.chain(|_| true);
                // InfluxDB looks at the left side first, and knows a pair of constants when it
                // comes to the operator, that is before it looks at either.
                let is_literal = |expr: &Expr| expr.as_literal().is_some();
                if is_literal(first) && is_literal(links[0].1) {
                    return Err(SelectError::TwoLiterals);
                }
                if !is_literal(first) {
                    self.expr(first)?;
                }
                for (_, rhs) in links {
                    if !is_literal(rhs) {
                        self.expr(rhs)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A call, or an expression in a function that may take `distinct` as its argument.
    pub(super) fn nested(&mut self, call: &Call) -> Result<(), SelectError> {
        if call.name == "distinct" {
            return self.distinct(call, true);
        }
        functions::check(self, call)
    }

    /// An argument of a mathematical function.
    pub(super) fn operand(&mut self, expr: &Expr) -> Result<(), SelectError> {
        match expr {
            Expr::Literal(_) => Ok(()),
            other => self.expr(other),
        }
    }

    /// The argument of an aggregate: a field, or a wildcard for many.
    pub(super) fn field_argument(&mut self, function: &str, arg: &Expr) -> Result<(), SelectError> {
        let name = || function.to_owned();
        match arg {
            Expr::VarRef(_) => return Ok(()),
            Expr::Wildcard(_) if !self.wildcard_allowed => {
                return Err(SelectError::WildcardArgument(name()));
            }
            Expr::Literal(Literal::Regex(_)) if !self.wildcard_allowed => {
                return Err(SelectError::RegexArgument(name()));
            }
            Expr::Wildcard(_) | Expr::Literal(Literal::Regex(_)) => {}
            _ => return Err(SelectError::ExpectedField(name())),
        }
        self.functions.only_selectors = false;
        Ok(())
    }

    /// The argument of a transformation: an aggregate where there are groups of time, else a field.
    pub(super) fn transformed(&mut self, function: &str, arg: &Expr) -> Result<(), SelectError> {
        match arg {
            Expr::Call(_) if !self.has_interval => {
                Err(SelectError::NeedsInterval(function.to_owned()))
            }
            Expr::Call(call) => self.nested(call),
            _ if self.has_interval && !self.interval_is_inherited => {
                Err(SelectError::NeedsAggregate(function.to_owned()))
            }
            other => self.field_argument(function, other),
        }
    }

    /// Whether there are groups of time, own or inherited.
    pub(super) fn has_interval(&self) -> bool {
        self.has_interval
    }

    /// LIMIT, or 0.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts a tag named in `top` or `bottom` as a column, unless the answer is written somewhere.
    pub(super) fn named_in_top_bottom(&mut self) {
        if !self.has_target {
            self.count += 1;
            self.bare_column();
        }
    }

    fn bare_column(&mut self) {
        self.functions.has_bare_columns = true;
    }

    pub(super) fn distinct(&mut self, call: &Call, nested: bool) -> Result<(), SelectError> {
        let refuse = |text: &str| Err(SelectError::Argument(text.to_owned()));
        match call.args.as_slice() {
            [] => return refuse("distinct function requires at least one argument"),
            [Expr::VarRef(_)] => {}
            [_] => return Err(SelectError::ExpectedField("distinct".to_owned())),
            _ => return refuse("distinct function can only have one argument"),
        }
        self.functions.has_distinct |= !nested;
        self.functions.only_selectors = false;
        Ok(())
    }

    /// Whether the columns may stand beside one another.
    fn together(&self, fill: Fill) -> Result<(), SelectError> {
        let FunctionUse {
            calls,
            only_selectors,
            has_distinct,
            has_bare_columns,
            top_bottom,
        } = &self.functions;
        if self.count == 0 {
            return Err(SelectError::NoFields);
        }
        if let Some(name) = top_bottom
            && *calls > 1
        {
            return Err(SelectError::SelectorCombined(name.clone()));
        }
        if *calls == 0 {
            match fill {
                Fill::None => return Err(SelectError::FillNeedsFunction("none")),
                Fill::Linear => return Err(SelectError::FillNeedsFunction("linear")),
                _ => {}
            }
            if self.has_interval && !self.interval_is_inherited {
                return Err(SelectError::GroupByNeedsAggregate);
            }
        }
        if *has_distinct && (*calls != 1 || *has_bare_columns) {
            return Err(SelectError::DistinctCombined);
        }
        if *has_bare_columns && !only_selectors {
            return Err(SelectError::MixedAggregates);
        }
        if *has_bare_columns && *calls > 1 {
            return Err(SelectError::MixedSelectors);
        }
        Ok(())
    }
}
