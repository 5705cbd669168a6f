//! How deep the trees of a statement will be, told from its tokens before anything recurses.
//!
//! A parser makes a tree as deep as its input is nested (parentheses, CASE), as operators stand in a
//! row (`1 + 1 + …`, `x IS NULL IS NULL …`, `NOT NOT …`), and as queries build on one another (joins,
//! common table expressions, set operations). All of these can be counted from left to right with a
//! stack of ours. The count may be too large, never too small: whatever stands behind an operand
//! counts as an operator.

use crate::error::{SqlError, SqlResult};
use crate::stack::StackNeed;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Levels of expressions and plans that are accepted.
pub const DEPTH_MAX: usize = 4096;
/// Operands of OR, and queries of UNION, that are accepted in a row: they become balanced trees.
const ROW_MAX: usize = 16_384;
/// Joins, subqueries, common table expressions, windows and set operations other than UNION that
/// are accepted: each may make plans deeper.
const QUERIES_MAX: usize = 512;
/// What a query adds to the depth of a plan: its projection, filter, aggregation, sort and limit.
const LEVELS_PER_QUERY: usize = 6;
/// Calls in one another of which each takes twice the time. Words with a grammar of their own: where
/// what is in such a call is wrong, the parser reads it again as a call of a function. COALESCE and
/// its like: they are planned as a CASE in which their arguments stand twice.
const SPECIAL_CALLS_MAX: usize = 12;
/// Those words.
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
/// From how many operands on a row is balanced.
pub const BALANCE_MIN: usize = 16;

/// What the tokens of a statement tell of its trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementNesting {
    /// Levels of the syntax tree as it is parsed.
    parsed: usize,
    /// Levels of the trees once long rows are balanced.
    balanced: usize,
    /// What stands in `UNION` chains.
    unions: usize,
    /// Other queries and joins.
    queries: usize,
    /// Calls of words with a grammar of their own, in one another.
    special_calls: usize,
}

impl StatementNesting {
    /// Of the tokens of one statement.
    pub fn from_tokens(tokens: &[TokenWithSpan]) -> Self {
        let mut scan = NestingScanner::default();
        for token in tokens {
            scan.token(&token.token);
        }
        scan.finish()
    }

    /// Refuses what is too deep.
    ///
    /// # Errors
    /// 54001, with what there is too much of and the limit.
    pub fn check(self) -> SqlResult<()> {
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
                "{} calls of NOT (…), CAST (…), EXTRACT (…) and the like stand in one another, and at \
                 most {SPECIAL_CALLS_MAX} are accepted; write a::type, or name parts in a subquery",
                self.special_calls
            ));
        }
        if self.balanced > DEPTH_MAX {
            return refuse(format!(
                "the statement's expressions are nested {} deep, and at most {DEPTH_MAX} is \
                 accepted; split it, or write IN (…) in the place of many comparisons",
                self.balanced
            ));
        }
        if self.parsed > ROW_MAX + DEPTH_MAX {
            return refuse(format!(
                "the statement has {} operators in a row, and at most {ROW_MAX} are accepted; write \
                 IN (…) in the place of many comparisons",
                self.parsed
            ));
        }
        Ok(())
    }

    /// What parsing takes, and dropping what was parsed.
    pub fn parse_need(self) -> StackNeed {
        // A level of a row takes less to parse than one of anything else to plan.
        let rows = self.parsed + self.unions + self.queries;
        StackNeed::for_depth(rows.min(rows / 4 + DEPTH_MAX))
    }

    /// What planning and execution take.
    pub fn plan_need(self) -> StackNeed {
        let unions = balanced(self.unions);
        StackNeed::for_depth(self.balanced + (self.queries + unions) * LEVELS_PER_QUERY)
    }

    /// Whether there are rows that are worth balancing.
    pub fn has_long_rows(self) -> bool {
        self.unions >= BALANCE_MIN || self.parsed >= BALANCE_MIN
    }
}

/// Levels of a row of operands once it is balanced.
fn balanced(operands: usize) -> usize {
    if operands < BALANCE_MIN {
        operands
    } else {
        operands.ilog2() as usize + 2
    }
}

/// Depths as they are parsed, and once rows are balanced.
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
    /// The statement.
    #[default]
    End,
    Paren,
    Bracket,
    Brace,
    /// END of a CASE.
    Case,
}

/// What is known of what stands between two brackets, or between CASE and END.
#[derive(Debug, Default)]
struct NestingFrame {
    closer: FrameCloser,
    /// Operators since the last AND.
    operators: usize,
    /// Deepest brackets since the last AND.
    inner: TreeDepths,
    /// ANDs since the last OR.
    ands: usize,
    /// Deepest operand of these.
    conjunct: TreeDepths,
    /// ORs since the last comma.
    ors: usize,
    /// Deepest operand of these.
    disjunct: TreeDepths,
    /// Deepest between commas.
    item: TreeDepths,
    /// BETWEENs whose AND is still to come.
    betweens: usize,
    after_operand: bool,
    /// Dots in a row.
    dots: usize,
    /// Calls of words with a grammar of their own around it.
    special_calls: usize,
    in_from: bool,
}

impl NestingFrame {
    fn operator(&mut self) {
        self.operators += 1;
        self.after_operand = false;
    }

    /// Something that is an operand behind an operator, and an operator behind an operand.
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

    /// ANDs are counted one by one: optimizers take them apart and put them in a row again.
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
    /// The most of them in one another.
    special_calls: usize,
    /// The last keyword, in upper case, where nothing stands behind it.
    before: &'static str,
}

/// Words that are no operands.
const KEYWORDS: [&str; 51] = [
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
                // A name has a database, a schema and a table; what follows are fields of fields.
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
        let Some(keyword) = KEYWORDS.iter().find(is_same) else {
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
            // Not that of IS DISTINCT FROM, which is an operator.
            "FROM" if before != "DISTINCT" => self.clause(true),
            "JOIN" | "LATERAL" | "PIVOT" => {
                self.queries += 1;
                self.clause(true);
            }
            "ON" => self.clause(true),
            "WHERE" | "HAVING" | "ORDER" | "LIMIT" | "RETURNING" => self.clause(false),
            // Not that of WITHIN GROUP.
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

    /// A clause begins: nothing before it is an operand of what follows.
    fn clause(&mut self, in_from: bool) {
        self.frame.end_item();
        self.frame.in_from = in_from;
    }

    fn open(&mut self, closer: FrameCloser) {
        // Behind an operand it is a call, a subscript or a list.
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

    /// Ends the innermost frame that ends so, and those in it.
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
