//! Conditions.

use super::ast::{TreeComparison, TreeCondition, TreeLiteral, TreeOperand};
use super::cursor::SqlCursor;
use crate::path::PathNode;
use crate::status::IotDbFault;

/// The signs of comparisons. The longer ones come first.
const COMPARISONS: [(&str, TreeComparison); 9] = [
    ("==", TreeComparison::Equal),
    ("!=", TreeComparison::NotEqual),
    ("<>", TreeComparison::NotEqual),
    ("<=", TreeComparison::LessOrEqual),
    (">=", TreeComparison::GreaterOrEqual),
    ("=", TreeComparison::Equal),
    ("<", TreeComparison::Less),
    (">", TreeComparison::Greater),
    ("≠", TreeComparison::NotEqual),
];

impl SqlCursor<'_> {
    /// Reads a condition.
    ///
    /// # Errors
    /// If it is malformed.
    pub(super) fn condition(&mut self) -> Result<TreeCondition, IotDbFault> {
        self.nested(|cursor| {
            let mut parts = vec![cursor.conjunction()?];
            while cursor.keyword("or") || cursor.sign("||") || cursor.sign("|") {
                parts.push(cursor.conjunction()?);
            }
            Ok(single_or(parts, TreeCondition::Or))
        })
    }

    fn conjunction(&mut self) -> Result<TreeCondition, IotDbFault> {
        let mut parts = vec![self.negation()?];
        while self.keyword("and") || self.sign("&&") || self.sign("&") {
            parts.push(self.negation()?);
        }
        Ok(single_or(parts, TreeCondition::And))
    }

    fn negation(&mut self) -> Result<TreeCondition, IotDbFault> {
        if self.keyword("not") || (!self.rest().starts_with("!=") && self.sign("!")) {
            let inner = self.nested(Self::negation)?;
            return Ok(TreeCondition::Not(Box::new(inner)));
        }
        if self.sign("(") {
            let inner = self.condition()?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<TreeCondition, IotDbFault> {
        let operand = self.operand()?;
        if self.keyword("is") {
            let is_negated = self.keyword("not");
            self.expect_keyword("null")?;
            return Ok(negated_if(is_negated, TreeCondition::IsNull(operand)));
        }
        let is_negated = self.keyword("not");
        if self.keyword("between") {
            let low = self.operand()?;
            self.expect_keyword("and")?;
            let high = self.operand()?;
            let (from, to) = (TreeComparison::GreaterOrEqual, TreeComparison::LessOrEqual);
            let parts = vec![
                TreeCondition::Compare(operand.clone(), from, low),
                TreeCondition::Compare(operand, to, high),
            ];
            return Ok(negated_if(is_negated, TreeCondition::And(parts)));
        }
        if self.keyword("in") || self.keyword("contains") {
            self.expect_sign("(")?;
            let values = self.list(|cursor| match cursor.literal()? {
                Some(value) => Ok(value),
                None => Err(cursor.expected("a value")),
            })?;
            self.expect_sign(")")?;
            return Ok(negated_if(is_negated, TreeCondition::In(operand, values)));
        }
        if self.keyword("like") {
            let pattern = self.expect_string()?;
            return Ok(negated_if(
                is_negated,
                TreeCondition::Like(operand, pattern),
            ));
        }
        if self.keyword("regexp") {
            let pattern = self.expect_string()?;
            return Ok(negated_if(
                is_negated,
                TreeCondition::Regexp(operand, pattern),
            ));
        }
        let found = COMPARISONS.iter().find(|(sign, _)| self.sign(sign));
        let Some((_, comparison)) = found.filter(|_| !is_negated) else {
            return Err(self.expected("a comparison"));
        };
        let right = self.operand()?;
        Ok(TreeCondition::Compare(operand, *comparison, right))
    }

    fn expect_string(&mut self) -> Result<String, IotDbFault> {
        match self.string()? {
            Some(text) => Ok(text),
            None => Err(self.expected("a text")),
        }
    }

    fn operand(&mut self) -> Result<TreeOperand, IotDbFault> {
        let begin = self.place();
        if let Some(value) = self.literal()? {
            // `true.s1` and `1a` are paths.
            let is_cut = self.rest_follows(|char| char == '.' || char.is_alphanumeric());
            if !is_cut || matches!(value, TreeLiteral::Text(_)) {
                return Ok(TreeOperand::Literal(value));
            }
            self.return_to(begin);
        }
        let path = self.pattern()?;
        if let [PathNode::Name(name)] = path.nodes()
            && (name.eq_ignore_ascii_case("time") || name.eq_ignore_ascii_case("timestamp"))
        {
            return Ok(TreeOperand::Time);
        }
        Ok(TreeOperand::Path(path))
    }

    /// Whether such a character follows at once.
    fn rest_follows(&mut self, is_such: impl Fn(char) -> bool) -> bool {
        let place = self.place();
        let rest = self.rest();
        self.place() == place && rest.chars().next().is_some_and(is_such)
    }
}

fn single_or(
    mut parts: Vec<TreeCondition>,
    join: impl FnOnce(Vec<TreeCondition>) -> TreeCondition,
) -> TreeCondition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn negated_if(is_negated: bool, condition: TreeCondition) -> TreeCondition {
    if is_negated {
        return TreeCondition::Not(Box::new(condition));
    }
    condition
}
