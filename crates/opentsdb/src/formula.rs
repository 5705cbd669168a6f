//! Formulas over variables: `a + b`, `(a - b) / a * 100`, `a > 10 && b < 5 ? a : b`.
//!
//! They are those of JEXL 2.1, which OpenTSDB uses: arithmetic, comparisons, `&&`, `||`, `!`, their
//! words (`and`, `or`, `not`, `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `div`, `mod`) and `?:`. A formula
//! becomes a list of steps over a stack, so computing a value recurses into nothing.

mod parser;
mod tokens;
mod value;

use crate::error::QueryFault;
use parser::FormulaParser;
pub use value::FormulaValue;

/// A formula that can be computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    steps: Vec<Step>,
    variables: Vec<String>,
}

/// What is done with the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Adds a value.
    Constant(FormulaValue),
    /// Adds the value of a variable.
    Variable(usize),
    /// Replaces the last value.
    Unary(UnaryOperator),
    /// Replaces the last two values.
    Binary(BinaryOperator),
    /// Replaces a condition and two values by one of these.
    Choose,
    /// Replaces two values by the first one that is true.
    FirstTrue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnaryOperator {
    Negate,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// Where it cannot be read, or if it has no variables.
    pub fn parse(text: &str) -> Result<Self, QueryFault> {
        let (steps, variables) = FormulaParser::new(text)?.formula()?;
        if variables.is_empty() {
            return Err(QueryFault::new(
                "The expression didn't appear to have any variables",
            ));
        }
        Ok(Self { steps, variables })
    }

    /// The names of its variables, each once.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The result for these values of the variables, in their order. The stack is only a buffer.
    pub fn compute(&self, values: &[f64], stack: &mut Vec<FormulaValue>) -> f64 {
        stack.clear();
        for step in &self.steps {
            let result = match *step {
                Step::Constant(value) => value,
                Step::Variable(place) => {
                    FormulaValue::Float(values.get(place).copied().unwrap_or(f64::NAN))
                }
                Step::Unary(operator) => popped(stack).unary(operator),
                Step::Binary(operator) => {
                    let right = popped(stack);
                    popped(stack).binary(operator, right)
                }
                Step::Choose => {
                    let (otherwise, then) = (popped(stack), popped(stack));
                    if popped(stack).is_true() {
                        then
                    } else {
                        otherwise
                    }
                }
                Step::FirstTrue => {
                    let (otherwise, first) = (popped(stack), popped(stack));
                    if first.is_true() { first } else { otherwise }
                }
            };
            stack.push(result);
        }
        popped(stack).as_float()
    }
}

/// The last value. A formula that was read never takes more than there are.
fn popped(stack: &mut Vec<FormulaValue>) -> FormulaValue {
    stack.pop().unwrap_or(FormulaValue::Float(f64::NAN))
}

#[cfg(test)]
mod tests;
