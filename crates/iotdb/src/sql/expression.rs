//! Expressions: columns, conditions, and what rows are sorted by.

use super::ast::{TreeArithmetic, TreeCall, TreeComparison, TreeExpr};
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

/// Operators of sums and of products.
const SUMS: [TreeArithmetic; 2] = [TreeArithmetic::Plus, TreeArithmetic::Minus];
const PRODUCTS: [TreeArithmetic; 3] = [
    TreeArithmetic::Times,
    TreeArithmetic::Divide,
    TreeArithmetic::Modulo,
];

/// Operators of arithmetic in a statement: a tree may be as deep as their number.
const OPERATORS_MAX: u32 = 128;

impl SqlCursor<'_> {
    /// Reads an expression.
    ///
    /// # Errors
    /// If it is malformed.
    pub(super) fn expression(&mut self) -> Result<TreeExpr, IotDbFault> {
        self.nested(|cursor| {
            let mut parts = vec![cursor.conjunction()?];
            while cursor.keyword("or") || cursor.sign("||") || cursor.sign("|") {
                parts.push(cursor.conjunction()?);
            }
            Ok(single_or(parts, TreeExpr::Or))
        })
    }

    fn conjunction(&mut self) -> Result<TreeExpr, IotDbFault> {
        let mut parts = vec![self.negation()?];
        while self.keyword("and") || self.sign("&&") || self.sign("&") {
            parts.push(self.negation()?);
        }
        Ok(single_or(parts, TreeExpr::And))
    }

    fn negation(&mut self) -> Result<TreeExpr, IotDbFault> {
        if self.keyword("not") || (!self.rest().starts_with("!=") && self.sign("!")) {
            let inner = self.nested(Self::negation)?;
            return Ok(TreeExpr::Not(Box::new(inner)));
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<TreeExpr, IotDbFault> {
        let operand = self.sum()?;
        if self.keyword("is") {
            let is_negated = self.keyword("not");
            self.expect_keyword("null")?;
            return Ok(negated_if(is_negated, TreeExpr::IsNull(Box::new(operand))));
        }
        let is_negated = self.keyword("not");
        if self.keyword("between") {
            let low = self.sum()?;
            self.expect_keyword("and")?;
            let high = self.sum()?;
            let between = TreeExpr::Between(Box::new(operand), Box::new(low), Box::new(high));
            return Ok(negated_if(is_negated, between));
        }
        if self.keyword("in") || self.keyword("contains") {
            self.expect_sign("(")?;
            let values = self.list(|cursor| match cursor.literal()? {
                Some(value) => Ok(value),
                None => Err(cursor.expected("a value")),
            })?;
            self.expect_sign(")")?;
            let found = TreeExpr::In(Box::new(operand), values);
            return Ok(negated_if(is_negated, found));
        }
        if self.keyword("like") {
            let pattern = self.expect_string()?;
            let matches = TreeExpr::Like(Box::new(operand), pattern);
            return Ok(negated_if(is_negated, matches));
        }
        if self.keyword("regexp") {
            let pattern = self.expect_string()?;
            let matches = TreeExpr::Regexp(Box::new(operand), pattern);
            return Ok(negated_if(is_negated, matches));
        }
        if is_negated {
            return Err(self.expected("BETWEEN, IN, LIKE or REGEXP"));
        }
        let Some((_, comparison)) = COMPARISONS.iter().find(|(sign, _)| self.sign(sign)) else {
            return Ok(operand);
        };
        let right = self.sum()?;
        Ok(TreeExpr::Compare(
            Box::new(operand),
            *comparison,
            Box::new(right),
        ))
    }

    pub(super) fn expect_string(&mut self) -> Result<String, IotDbFault> {
        match self.string()? {
            Some(text) => Ok(text),
            None => Err(self.expected("a text")),
        }
    }

    fn sum(&mut self) -> Result<TreeExpr, IotDbFault> {
        self.chain(&SUMS, |cursor| cursor.chain(&PRODUCTS, Self::factor))
    }

    /// Reads operands that operators of one level join.
    fn chain(
        &mut self,
        operators: &[TreeArithmetic],
        mut read: impl FnMut(&mut Self) -> Result<TreeExpr, IotDbFault>,
    ) -> Result<TreeExpr, IotDbFault> {
        let mut left = read(self)?;
        while let Some(operator) = operators.iter().find(|one| self.sign(one.sign())) {
            self.operators += 1;
            if self.operators > OPERATORS_MAX {
                return Err(self.expected("fewer operators"));
            }
            let right = read(self)?;
            left = TreeExpr::Arithmetic(Box::new(left), *operator, Box::new(right));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<TreeExpr, IotDbFault> {
        let begin = self.place();
        if let Some(value) = self.literal()? {
            // `true.s1` and `1a` are paths.
            let is_cut =
                self.rest_follows(|char| char == '.' || char == '_' || char.is_alphanumeric());
            if !is_cut || self.text_before(begin).ends_with(['\'', '"']) {
                return Ok(TreeExpr::Literal(value));
            }
            self.return_to(begin);
        }
        if self.sign("-") {
            let inner = self.nested(Self::factor)?;
            return Ok(TreeExpr::Negate(Box::new(inner)));
        }
        if self.sign("+") {
            return self.nested(Self::factor);
        }
        if self.sign("(") {
            let inner = self.expression()?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        if let Some(call) = self.call()? {
            return Ok(TreeExpr::Call(call));
        }
        let path = self.pattern()?;
        if let [PathNode::Name(name)] = path.nodes()
            && (name.eq_ignore_ascii_case("time") || name.eq_ignore_ascii_case("timestamp"))
        {
            return Ok(TreeExpr::Time);
        }
        Ok(TreeExpr::Path(path))
    }

    /// Reads a function; `None` if none follows.
    fn call(&mut self) -> Result<Option<TreeCall>, IotDbFault> {
        let begin = self.place();
        let name = self.peek_word();
        if name.is_empty() {
            return Ok(None);
        }
        self.advance(name.len());
        if !self.sign("(") {
            self.return_to(begin);
            return Ok(None);
        }
        let mut call = TreeCall {
            name: name.to_owned(),
            arguments: Vec::new(),
            attributes: Vec::new(),
        };
        if self.sign(")") {
            return Ok(Some(call));
        }
        loop {
            match self.attribute()? {
                Some(attribute) => call.attributes.push(attribute),
                None => call.arguments.push(self.expression()?),
            }
            if !self.sign(",") {
                break;
            }
        }
        if call.name.eq_ignore_ascii_case("cast") && self.keyword("as") {
            let kind = self.peek_word();
            call.attributes
                .push(("type".to_owned(), kind.to_uppercase()));
            self.advance(kind.len());
        }
        self.expect_sign(")")?;
        Ok(Some(call))
    }

    /// Reads `'name'='value'`, if it follows.
    fn attribute(&mut self) -> Result<Option<(String, String)>, IotDbFault> {
        let begin = self.place();
        if let Some(name) = self.string()?
            && self.sign("=")
            && let Some(value) = self.string()?
        {
            return Ok(Some((name, value)));
        }
        self.return_to(begin);
        Ok(None)
    }

    /// Whether such a character follows at once.
    fn rest_follows(&mut self, is_such: impl Fn(char) -> bool) -> bool {
        let place = self.place();
        let rest = self.rest();
        self.place() == place && rest.chars().next().is_some_and(is_such)
    }
}

fn single_or(mut parts: Vec<TreeExpr>, join: impl FnOnce(Vec<TreeExpr>) -> TreeExpr) -> TreeExpr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn negated_if(is_negated: bool, condition: TreeExpr) -> TreeExpr {
    if is_negated {
        return TreeExpr::Not(Box::new(condition));
    }
    condition
}
