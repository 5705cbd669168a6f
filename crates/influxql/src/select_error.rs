//! The errors of a SELECT that was parsed successfully, in InfluxDB's words. `/query` returns these
//! with status 200, as the `error` of the statement's result.

/// Why a SELECT cannot run, independent of the stored data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is described by its text")]
pub enum SelectError {
    // The time in WHERE.
    #[error("invalid timestamp string")]
    InvalidTime,
    #[error("time {0} overflows time literal")]
    TimeOverflows(String),
    #[error("time {0} underflows time literal")]
    TimeUnderflows(String),
    #[error("invalid operation: time and {0} are not compatible")]
    TimeNotCompatible(&'static str),
    #[error("invalid time comparison operator: {0}")]
    TimeOperator(&'static str),

    // WHERE.
    #[error("invalid condition expression: {0}")]
    InvalidCondition(String),
    #[error("invalid function call in condition: {0}")]
    CallInCondition(String),

    // GROUP BY.
    #[error("time() is a function and expects at least one argument")]
    TimeIsFunction,
    #[error("only time() calls allowed in dimensions")]
    OnlyTimeCalls,
    #[error("time dimension expected 1 or 2 arguments")]
    TimeArguments,
    #[error("time dimension must have duration argument")]
    TimeDuration,
    #[error("multiple time dimensions not allowed")]
    MultipleTimes,
    #[error("time dimension offset function must be now()")]
    OffsetFunction,
    #[error("time dimension offset now() function requires no arguments")]
    OffsetArguments,
    #[error("time dimension offset must be duration or now()")]
    Offset,
    #[error("only time and tag dimensions allowed")]
    OnlyTimeAndTags,
    #[error("GROUP BY requires at least one aggregate function")]
    GroupByNeedsAggregate,

    // Columns.
    #[error("the wildcards of the statement stand for more than {0} columns")]
    TooManyColumns(usize),
    #[error("at least 1 non-time field must be queried")]
    NoFields,
    #[error("field must contain at least one variable")]
    ConstantField,
    #[error("cannot perform a binary expression on two literals")]
    TwoLiterals,
    #[error("unable to use wildcard in a binary expression")]
    WildcardInExpression,
    #[error("unable to use regex in a binary expression")]
    RegexInExpression,
    #[error("fill({0}) must be used with a function")]
    FillNeedsFunction(&'static str),
    #[error("selector function {0}() cannot be combined with other functions")]
    SelectorCombined(String),
    #[error("aggregate function distinct() cannot be combined with other functions or fields")]
    DistinctCombined,
    #[error("mixing aggregate and non-aggregate queries is not supported")]
    MixedAggregates,
    #[error("mixing multiple selector functions with tags or fields is not supported")]
    MixedSelectors,

    // Functions.
    #[error("undefined function {0}()")]
    UndefinedFunction(String),
    #[error("invalid number of arguments for {function}, expected {expected}, got {got}")]
    ArgumentCount {
        function: String,
        expected: Arity,
        got: usize,
    },
    #[error("expected field argument in {0}()")]
    ExpectedField(String),
    #[error("unsupported expression with wildcard: {0}()")]
    WildcardArgument(String),
    #[error("unsupported expression with regex field: {0}()")]
    RegexArgument(String),
    #[error("{0} aggregate requires a GROUP BY interval")]
    NeedsInterval(String),
    #[error("aggregate function required inside the call to {0}")]
    NeedsAggregate(String),
    /// An argument of a kind or value that its function does not accept. Each function has its own
    /// message.
    #[error("{0}")]
    Argument(String),

    // Subqueries.
    #[error("subqueries must be ordered in the same direction as the query itself")]
    SubqueryOrder,

    // Statements as a whole.
    #[error("{0} doesn't support time in WHERE clause")]
    TimeInWhere(&'static str),
    #[error("unable to use system source '{system}': use {instead} instead")]
    SystemSource {
        system: String,
        instead: &'static str,
    },

    // Wildcards, when the stored data is known.
    #[error("unable to use tag wildcard in {0}()")]
    TagWildcard(String),
}

/// How many arguments a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// This many.
    Exactly(usize),
    /// This many or more.
    AtLeast(usize),
    /// From this many to that many.
    Between(usize, usize),
}

impl Arity {
    /// Whether a function may have this many arguments.
    pub fn allows(self, count: usize) -> bool {
        match self {
            Self::Exactly(expected) => count == expected,
            Self::AtLeast(least) => count >= least,
            Self::Between(least, most) => (least..=most).contains(&count),
        }
    }
}

impl std::fmt::Display for Arity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "{count}"),
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::Between(least, most) => write!(f, "at least {least} but no more than {most}"),
        }
    }
}
