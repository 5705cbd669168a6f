//! Estimates from its tokens how deep the trees of a statement will be, before anything recurses.
//!
//! A parser makes a tree as deep as its input is nested (parentheses, CASE), as its chains of
//! operators are long (`1 + 1 + …`, `x IS NULL IS NULL …`, `NOT NOT …`), and as queries build on
//! one another (joins, common table expressions, set operations). This module counts all of these
//! from left to right with an explicit stack. The estimate may be too large, but never too small:
//! whatever follows an operand counts as an operator.

use crate::error::{SqlError, SqlResult};
use crate::stack::StackNeed;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The largest accepted number of levels of expressions and plans.
pub(crate) const DEPTH_MAX: usize = 4096;
/// The largest accepted number of operands in a chain of OR, or of queries in a chain of UNION:
/// they become balanced trees.
const ROW_MAX: usize = 16_384;
/// The largest accepted number of joins, subqueries, common table expressions, windows and set
/// operations other than UNION: each may make plans deeper.
const QUERIES_MAX: usize = 512;
/// The levels that a query adds to a plan: its projection, filter, aggregation, sort and limit.
const LEVELS_PER_QUERY: usize = 6;
/// The largest accepted nesting of calls of which each doubles the time. These are words with a
/// grammar of their own: if such a call contains an error, the parser reads it again as a function
/// call. COALESCE and similar functions are planned as a CASE that contains their arguments twice.
const SPECIAL_CALLS_MAX: usize = 12;
/// The levels that `ARRAY (SELECT …)` adds to a syntax tree: it is rewritten as calls around a query of
/// a derived table, which are copied with it.
const LEVELS_PER_ARRAY: usize = 48;
/// The words with a grammar of their own.
const SPECIAL_CALLS: [&str; 18] = [
    "COALESCE",
    "NVL",
    "NVL2",
    "IFNULL",
    "NOT",
    "CAST",
    "TRY_CAST",
    "SAFE_CAST",
    "CONVERT",
    "EXTRACT",
    "CEIL",
    "FLOOR",
    "POSITION",
    "SUBSTR",
    "SUBSTRING",
    "OVERLAY",
    "TRIM",
    "PRIOR",
];
/// Chains with at least this many operands are balanced.
pub(crate) const BALANCE_MIN: usize = 16;

/// What the tokens of a statement say about its trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementNesting {
    /// The levels of the syntax tree as it is parsed.
    parsed: usize,
    /// The levels of the trees after long chains are balanced.
    balanced: usize,
    /// The number of queries in `UNION` chains.
    unions: usize,
    /// The number of other queries and joins.
    queries: usize,
    /// The deepest nesting of calls of words with a grammar of their own.
    special_calls: usize,
    /// The number of `ARRAY (`.
    arrays: usize,
}

impl StatementNesting {
    /// Scans the tokens of one statement.
    pub(crate) fn from_tokens(tokens: &[TokenWithSpan]) -> Self {
        let mut scan = NestingScanner::default();
        for token in tokens {
            scan.token(&token.token);
        }
        scan.finish()
    }

    /// Refuses a statement that is too deep.
    ///
    /// # Errors
    /// 54001, with the excessive number and the limit.
    pub(crate) fn check(self) -> SqlResult<()> {
        let refuse = |message: String| Err(SqlError::invalid("54001", message));
        if self.queries > QUERIES_MAX {
            return refuse(format!(
                "the statement has {} joins, subqueries, windows, EXCEPT and INTERSECT, and at most \
                 {QUERIES_MAX} are accepted; split it",
                self.queries
            ));
        }
        if self.unions > ROW_MAX {
            return refuse(format!(
                "the statement has {} UNIONs, and at most {ROW_MAX} are accepted; split it",
                self.unions
            ));
        }
        if self.special_calls > SPECIAL_CALLS_MAX {
            return refuse(format!(
                "{} calls of NOT (…), CAST (…), EXTRACT (…) and the like are nested, and at \
                 most {SPECIAL_CALLS_MAX} are accepted; write a::type, or name parts in a subquery",
                self.special_calls
            ));
        }
        if self.balanced > DEPTH_MAX {
            return refuse(format!(
                "the statement's expressions are nested {} deep, and at most {DEPTH_MAX} is \
                 accepted; split it, or write IN (…) instead of many comparisons",
                self.balanced
            ));
        }
        if self.parsed > ROW_MAX + DEPTH_MAX {
            return refuse(format!(
                "the statement has {} operators in a row, and at most {ROW_MAX} are accepted; write \
                 IN (…) instead of many comparisons",
                self.parsed
            ));
        }
        Ok(())
    }

    /// The stack for parsing, and for dropping the parsed tree.
    pub(crate) fn parse_need(self) -> StackNeed {
        // Parsing a level of a chain takes less stack than planning a level of anything else.
        let rows = self.parsed + self.unions + self.queries;
        StackNeed::for_depth(rows.min(rows / 4 + DEPTH_MAX) + self.arrays * LEVELS_PER_ARRAY)
    }

    /// The stack for planning and execution.
    pub(crate) fn plan_need(self) -> StackNeed {
        let unions = balanced(self.unions);
        let of_queries = (self.queries + unions) * LEVELS_PER_QUERY;
        StackNeed::for_depth(self.balanced + of_queries + self.arrays * LEVELS_PER_ARRAY)
    }

    /// Whether there are chains that are worth balancing.
    pub(crate) fn has_long_rows(self) -> bool {
        self.unions >= BALANCE_MIN || self.parsed >= BALANCE_MIN
    }
}

/// The levels of a chain of operands after it is balanced.
fn balanced(operands: usize) -> usize {
    if operands < BALANCE_MIN {
        operands
    } else {
        operands.ilog2() as usize + 2
    }
}

/// Depths as parsed, and after chains are balanced.
#[derive(Clone, Copy, Debug, Default)]
struct TreeDepths {
    parsed: usize,
    balanced: usize,
}

impl TreeDepths {
    fn max(self, other: Self) -> Self {
        Self {
            parsed: self.parsed.max(other.parsed),
            balanced: self.balanced.max(other.balanced),
        }
    }

    fn plus(self, levels: usize) -> Self {
        Self {
            parsed: self.parsed + levels,
            balanced: self.balanced + levels,
        }
    }
}

/// What ends a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FrameCloser {
    /// The end of the statement.
    #[default]
    End,
    Paren,
    Bracket,
    Brace,
    /// END of a CASE.
    Case,
}

/// The counts between two brackets, or between CASE and END.
#[derive(Debug, Default)]
struct NestingFrame {
    closer: FrameCloser,
    /// Operators since the last AND.
    operators: usize,
    /// The deepest brackets since the last AND.
    inner: TreeDepths,
    /// ANDs since the last OR.
    ands: usize,
    /// The deepest of these operands.
    conjunct: TreeDepths,
    /// ORs since the last comma.
    ors: usize,
    /// The deepest of these operands.
    disjunct: TreeDepths,
    /// The deepest item between commas.
    item: TreeDepths,
    /// The number of BETWEENs whose AND has not appeared yet.
    betweens: usize,
    after_operand: bool,
    /// Consecutive dots.
    dots: usize,
    /// The enclosing calls of words with a grammar of their own.
    special_calls: usize,
    in_from: bool,
}

impl NestingFrame {
    fn operator(&mut self) {
        self.operators += 1;
        self.after_operand = false;
    }

    /// A token that is an operand after an operator, and an operator after an operand.
    fn operand(&mut self) {
        if self.after_operand {
            self.operators += 1;
        }
        self.after_operand = true;
    }

    fn end_conjunct(&mut self) {
        let depths = self.inner.plus(self.operators);
        self.conjunct = self.conjunct.max(depths);
        (self.operators, self.inner) = (0, TreeDepths::default());
        self.after_operand = false;
    }

    /// ANDs are counted one by one: optimizers split them and join them again.
    fn end_disjunct(&mut self) {
        self.end_conjunct();
        self.disjunct = self.disjunct.max(self.conjunct.plus(self.ands));
        (self.ands, self.conjunct) = (0, TreeDepths::default());
        self.betweens = 0;
    }

    fn end_item(&mut self) {
        self.end_disjunct();
        let depths = TreeDepths {
            parsed: self.disjunct.parsed + self.ors,
            balanced: self.disjunct.balanced + balanced(self.ors),
        };
        self.item = self.item.max(depths);
        (self.ors, self.disjunct) = (0, TreeDepths::default());
    }
}

#[derive(Debug, Default)]
struct NestingScanner {
    /// The innermost frame.
    frame: NestingFrame,
    outer: Vec<NestingFrame>,
    unions: usize,
    queries: usize,
    /// Their deepest nesting.
    special_calls: usize,
    arrays: usize,
    /// The last keyword, in upper case, if nothing follows it.
    before: &'static str,
}

/// Words that are not operands, besides [`SPECIAL_CALLS`].
const KEYWORDS: [&str; 34] = [
    "ARRAY",
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "ON",
    "JOIN",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "VALUES",
    "OVER",
    "WITH",
    "LATERAL",
    "OR",
    "AND",
    "BETWEEN",
    "CASE",
    "END",
    "WHEN",
    "THEN",
    "ELSE",
    "DISTINCT",
    "WITHIN",
    "ALL",
    "TABLE",
    "MINUS",
    "UNNEST",
    "USING",
    "LIMIT",
    "RETURNING",
    "PIVOT",
];

impl NestingScanner {
    fn token(&mut self, token: &Token) {
        let before = std::mem::take(&mut self.before);
        let dots = std::mem::take(&mut self.frame.dots);
        match token {
            Token::Whitespace(_) => (self.before, self.frame.dots) = (before, dots),
            Token::EOF => {}
            Token::Comma => {
                if self.frame.in_from {
                    self.queries += 1;
                }
                self.frame.end_item();
            }
            Token::SemiColon => self.frame.end_item(),
            Token::LParen => {
                self.open(FrameCloser::Paren);
                if before == "ARRAY" {
                    self.arrays += 1;
                }
                if SPECIAL_CALLS.contains(&before) {
                    self.frame.special_calls += 1;
                    self.special_calls = self.special_calls.max(self.frame.special_calls);
                }
            }
            Token::LBracket => self.open(FrameCloser::Bracket),
            Token::LBrace => self.open(FrameCloser::Brace),
            Token::RParen => self.close(FrameCloser::Paren),
            Token::RBracket => self.close(FrameCloser::Bracket),
            Token::RBrace => self.close(FrameCloser::Brace),
            Token::Period => {
                // A name has a database, a schema and a table; further parts are nested fields.
                self.frame.dots = dots + 1;
                if dots >= 3 {
                    self.frame.operators += 1;
                }
                self.frame.after_operand = false;
            }
            Token::Word(word) if word.quote_style.is_none() => {
                self.frame.dots = dots;
                self.word(&word.value, before);
            }
            Token::Word(_) => {
                self.frame.dots = dots;
                self.frame.operand();
            }
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_) => self.frame.operand(),
            _ => self.frame.operator(),
        }
    }

    fn word(&mut self, text: &str, before: &'static str) {
        let is_same = |keyword: &&&str| keyword.eq_ignore_ascii_case(text);
        let mut keywords = KEYWORDS.iter().chain(&SPECIAL_CALLS);
        let Some(keyword) = keywords.find(is_same) else {
            self.frame.operand();
            return;
        };
        self.before = keyword;
        match *keyword {
            "SELECT" | "VALUES" | "TABLE" => {
                if !matches!(before, "UNION" | "ALL" | "DISTINCT") {
                    self.queries += 1;
                }
                self.clause(false);
            }
            "UNION" => {
                self.unions += 1;
                self.clause(false);
            }
            "EXCEPT" | "INTERSECT" | "MINUS" | "WITH" => {
                self.queries += 1;
                self.clause(false);
            }
            // Not the FROM of IS DISTINCT FROM, which is an operator.
            "FROM" if before != "DISTINCT" => self.clause(true),
            "JOIN" | "LATERAL" | "PIVOT" => {
                self.queries += 1;
                self.clause(true);
            }
            "ON" => self.clause(true),
            "WHERE" | "HAVING" | "ORDER" | "LIMIT" | "RETURNING" => self.clause(false),
            // Not the GROUP of WITHIN GROUP.
            "GROUP" if before != "WITHIN" => self.clause(false),
            "OVER" | "UNNEST" => {
                self.queries += 1;
                self.frame.operand();
            }
            "BETWEEN" => {
                self.frame.betweens += 1;
                self.frame.operator();
            }
            "AND" if self.frame.betweens > 0 => {
                self.frame.betweens -= 1;
                self.frame.operator();
            }
            "AND" => {
                self.frame.end_conjunct();
                self.frame.ands += 1;
            }
            "OR" => {
                self.frame.end_disjunct();
                self.frame.ors += 1;
            }
            "CASE" => self.open(FrameCloser::Case),
            "END" => self.close(FrameCloser::Case),
            "WHEN" | "THEN" | "ELSE" if self.frame.closer == FrameCloser::Case => {
                self.frame.end_item();
            }
            _ => self.frame.operand(),
        }
    }

    /// Begins a clause: nothing before it is an operand of what follows.
    fn clause(&mut self, in_from: bool) {
        self.frame.end_item();
        self.frame.in_from = in_from;
    }

    fn open(&mut self, closer: FrameCloser) {
        // After an operand, it is a call, a subscript or a list.
        if self.frame.after_operand {
            self.frame.operators += 1;
        }
        let inner = NestingFrame {
            closer,
            special_calls: self.frame.special_calls,
            ..NestingFrame::default()
        };
        self.outer.push(std::mem::replace(&mut self.frame, inner));
    }

    /// Ends the innermost frame with this closer, and the frames in it.
    fn close(&mut self, closer: FrameCloser) {
        let ends = self.frame.closer == closer || self.outer.iter().any(|f| f.closer == closer);
        if !ends {
            self.frame.operand();
            return;
        }
        loop {
            let closed = self.frame.closer;
            self.pop();
            if closed == closer {
                break;
            }
        }
        self.frame.after_operand = true;
    }

    fn pop(&mut self) {
        let Some(outer) = self.outer.pop() else {
            return;
        };
        let mut closed = std::mem::replace(&mut self.frame, outer);
        closed.end_item();
        self.frame.inner = self.frame.inner.max(closed.item.plus(1));
    }

    fn finish(mut self) -> StatementNesting {
        while !self.outer.is_empty() {
            self.pop();
        }
        self.frame.end_item();
        StatementNesting {
            parsed: self.frame.item.parsed,
            balanced: self.frame.item.balanced,
            unions: self.unions,
            queries: self.queries,
            special_calls: self.special_calls,
            arrays: self.arrays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use marigram_functions::Refusal;

    fn nesting(sql: &str) -> StatementNesting {
        let mut tokenizer = Tokenizer::new(&PostgreSqlDialect {}, sql);
        StatementNesting::from_tokens(&tokenizer.tokenize_with_location().unwrap())
    }

    fn row(first: &str, rest: &str, times: usize) -> String {
        format!("select {first}{} from t", rest.repeat(times))
    }

    #[test]
    fn every_row_of_operators_counts() {
        for (first, rest) in [
            ("1", "+1"),
            ("a", "||b"),
            ("a", " and b"),
            ("a", " is null"),
            ("a", " is distinct from b"),
            ("a", " is not distinct from b"),
            ("a", " between 1 and 2"),
            ("a", " like 'b'"),
            ("a", " in (1)"),
            ("a", " at time zone 'UTC'"),
            ("a", " collate \"C\""),
            ("a", "::int"),
            ("a", "[1]"),
            ("a", "(1)"),
            ("(a)", ".b.c.d.e"),
            ("a", "->'b'"),
            ("a", " = 1"),
        ] {
            let found = nesting(&row(first, rest, 500));
            assert!(found.balanced >= 500, "{rest}: {found:?}");
            assert!(found.balanced <= 2500, "{rest}: {found:?}");
            assert!(found.plan_need().is_deep());
        }
        for prefix in [
            "not ",
            "- ",
            "+ ",
            "~ ",
            "( ",
            "case when ",
            "f(",
            "[",
            "explain ",
        ] {
            let found = nesting(&format!("select {}1", prefix.repeat(500)));
            assert!(found.parsed >= 499, "{prefix}: {found:?}");
        }
    }

    #[test]
    fn rows_of_or_and_union_are_balanced() {
        let found = nesting(&row("a = 1", " or a = 2 and b = 3", 5000));
        assert!(found.parsed >= 5000 && found.balanced < 40, "{found:?}");
        assert!(!found.plan_need().is_deep() && found.parse_need().is_deep());
        found.check().unwrap();
        let found = nesting(&format!("select 1{}", " union all select 1".repeat(500)));
        assert_eq!((found.unions, found.queries), (500, 1));
        found.check().unwrap();
    }

    #[test]
    fn what_is_long_and_flat_is_shallow() {
        let list = vec!["1"; 50_000].join(", ");
        for sql in [
            format!("select * from t where a in ({list})"),
            format!("insert into t values {}", vec!["(1, 'a', -2)"; 10_000].join(", ")),
            format!("select case{} end", " when a = 1 then 2".repeat(5000)),
            format!("select f({list}), {list} from t group by {list}"),
            "select a, sum(b) over (partition by c order by d rows between 1 preceding and current \
             row) from t join u on t.a = u.b where x > now() - interval '1 hour' order by 1"
                .to_owned(),
        ] {
            let found = nesting(&sql);
            assert!(found.balanced < 30, "{found:?}");
            assert!(!found.parse_need().is_deep() && !found.plan_need().is_deep());
        }
    }

    #[test]
    fn what_is_too_deep_is_refused_with_the_limit() {
        let joins = format!("select * from t{}", " join t on true".repeat(600));
        let commas = format!("select * from t{}", ", t".repeat(600));
        let windows = format!("select 1{}", ", sum(a) over (order by b)".repeat(600));
        let unions = format!("select 1{}", " union select 1".repeat(20_000));
        let ors = format!("select a{}", " or a".repeat(30_000));
        let casts = format!("select {}1", "cast((".repeat(20));
        for sql in [
            row("1", "+1", 5000),
            joins,
            commas,
            windows,
            unions,
            ors,
            casts,
        ] {
            let Err(SqlError::Refused(Refusal {
                sqlstate, message, ..
            })) = nesting(&sql).check()
            else {
                panic!("{} bytes were accepted", sql.len());
            };
            assert_eq!(sqlstate, "54001");
            assert!(message.contains("at most"), "{message}");
        }
    }
}
