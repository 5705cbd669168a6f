//! Statements. Times are milliseconds since 1970.

use crate::path::{PathPattern, TreePath};
use crate::value::IotDbType;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeStatement {
    /// `CREATE DATABASE`, with its time to live, ms.
    CreateDatabase(TreePath, Option<i64>),
    /// `DROP DATABASE`
    DropDatabases(Vec<PathPattern>),
    /// `CREATE TIMESERIES`
    CreateTimeseries(Vec<NewTimeseries>),
    /// `DROP TIMESERIES`
    DropTimeseries(Vec<PathPattern>),
    /// `DELETE FROM`, with the first time and the last one, included.
    Delete(Vec<PathPattern>, (i64, i64)),
    /// `INSERT`
    Insert(TreeInsert),
    /// `SELECT`
    Select(Box<TreeSelect>),
    /// `SHOW`
    Show {
        /// What is shown.
        target: ShowTarget,
        /// Rows that are left out first.
        offset: u64,
        /// Rows of the answer.
        limit: Option<u64>,
    },
    /// `COUNT`
    Count(ShowTarget),
    /// `SET TTL`, ms; for ever if there is none.
    SetTtl(TreePath, Option<i64>),
}

/// What SHOW and COUNT are about.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowTarget {
    /// Databases.
    Databases(PathPattern),
    /// Devices; whether each with its database.
    Devices(PathPattern, bool),
    /// Timeseries; counted by the beginning of this many nodes below the root.
    Timeseries(PathPattern, Option<u32>),
    /// The paths below one; whether only their last nodes are shown.
    Children(PathPattern, bool),
    /// The paths that begin as one does, up to a level.
    Nodes(PathPattern, u32),
    /// The version.
    Version,
    /// How long databases keep rows.
    Ttl(PathPattern),
    /// The parts of the cluster.
    Cluster,
    /// The servers that keep data.
    DataNodes,
    /// The servers that keep the schema.
    ConfigNodes,
    /// The parts of the data.
    Regions,
    /// Settings of the cluster.
    Variables,
    /// The functions.
    Functions,
    /// The running queries.
    Queries,
    /// The user.
    CurrentUser,
    /// The time of the server.
    CurrentTimestamp,
}

/// A timeseries to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTimeseries {
    /// The device.
    pub device: TreePath,
    /// The measurement.
    pub measurement: String,
    /// Its type.
    pub kind: IotDbType,
    /// Its encoding, if the statement names one.
    pub encoding: Option<String>,
    /// Its compressor, if the statement names one.
    pub compressor: Option<String>,
    /// Another name of the measurement.
    pub alias: Option<String>,
    /// Names and values by which it is found.
    pub tags: Vec<(String, String)>,
    /// Other names and values.
    pub attributes: Vec<(String, String)>,
    /// Whether its device is aligned.
    pub is_aligned: bool,
}

/// Rows to insert.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeInsert {
    /// The device.
    pub device: TreePath,
    /// The measurements.
    pub measurements: Vec<String>,
    /// Whether the device is aligned.
    pub is_aligned: bool,
    /// The rows.
    pub rows: Vec<TreeInsertRow>,
}

/// A row to insert.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeInsertRow {
    /// Its time.
    pub time_ms: i64,
    /// The values, in the order of the measurements.
    pub values: Vec<TreeLiteral>,
}

/// A value in a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeLiteral {
    /// Null.
    Null,
    /// True or false.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes: `X'…'`.
    Bytes(Vec<u8>),
    /// A time, from its text or `now()`.
    Time(i64),
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSelect {
    /// The columns.
    pub columns: Vec<TreeColumn>,
    /// Whether the newest point of each timeseries is asked for.
    pub is_last: bool,
    /// The beginnings of the paths.
    pub from: Vec<PathPattern>,
    /// WHERE.
    pub condition: Option<TreeExpr>,
    /// HAVING.
    pub having: Option<TreeExpr>,
    /// GROUP BY with windows of time.
    pub windows: Option<TreeWindows>,
    /// GROUP BY LEVEL; no levels if there is none.
    pub levels: Vec<u32>,
    /// FILL.
    pub fill: Option<TreeFill>,
    /// ORDER BY, with whether the order descends.
    pub order: Vec<(SortKey, bool)>,
    /// Rows of the answer.
    pub limit: Option<u64>,
    /// Rows that are left out first.
    pub offset: u64,
    /// Columns of the answer.
    pub series_limit: Option<u64>,
    /// Columns that are left out first.
    pub series_offset: u64,
    /// Whether each row belongs to one device.
    pub is_aligned_by_device: bool,
}

/// A column of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeColumn {
    /// What it shows; its paths are ends of paths.
    pub expr: TreeExpr,
    /// Its name in the answer.
    pub alias: Option<String>,
}

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeAggregate {
    /// The number of values.
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Avg,
    /// The least one.
    MinValue,
    /// The greatest one.
    MaxValue,
    /// The first one.
    FirstValue,
    /// The last one.
    LastValue,
    /// The time of the first one.
    MinTime,
    /// The time of the last one.
    MaxTime,
    /// The one with the greatest absolute value.
    Extreme,
    /// The time from the first to the last one.
    TimeDuration,
    /// The one that occurs most often.
    Mode,
    /// The standard deviation of a sample.
    StdDevSample,
    /// The standard deviation of a population.
    StdDevPopulation,
    /// The variance of a sample.
    VarianceSample,
    /// The variance of a population.
    VariancePopulation,
}

impl TreeAggregate {
    /// Every function, by its name.
    const NAMES: [(&'static str, Self); 18] = [
        ("count", Self::Count),
        ("sum", Self::Sum),
        ("avg", Self::Avg),
        ("min_value", Self::MinValue),
        ("max_value", Self::MaxValue),
        ("first_value", Self::FirstValue),
        ("last_value", Self::LastValue),
        ("min_time", Self::MinTime),
        ("max_time", Self::MaxTime),
        ("extreme", Self::Extreme),
        ("time_duration", Self::TimeDuration),
        ("mode", Self::Mode),
        ("stddev", Self::StdDevSample),
        ("stddev_samp", Self::StdDevSample),
        ("stddev_pop", Self::StdDevPopulation),
        ("variance", Self::VarianceSample),
        ("var_samp", Self::VarianceSample),
        ("var_pop", Self::VariancePopulation),
    ];

    /// Functions by the numbers that requests outside of SQL have.
    const NUMBERS: [Self; 10] = [
        Self::Count,
        Self::Avg,
        Self::Sum,
        Self::FirstValue,
        Self::LastValue,
        Self::MaxTime,
        Self::MinTime,
        Self::MaxValue,
        Self::MinValue,
        Self::Extreme,
    ];

    /// The function with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        let found = names.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, function)| *function)
    }

    /// The names of all functions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    /// The function with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        let place = usize::try_from(number).ok()?;
        Self::NUMBERS.get(place).copied()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, function)| *function == self)
            .map_or("", |(name, _)| name)
    }
}

/// An expression: of a column, a condition, or what rows are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeExpr {
    /// The time.
    Time,
    /// A timeseries.
    Path(PathPattern),
    /// A value.
    Literal(TreeLiteral),
    /// A number with the opposite sign.
    Negate(Box<TreeExpr>),
    /// Arithmetic.
    Arithmetic(Box<TreeExpr>, TreeArithmetic, Box<TreeExpr>),
    /// All of them hold.
    And(Vec<TreeExpr>),
    /// One of them holds.
    Or(Vec<TreeExpr>),
    /// It does not hold.
    Not(Box<TreeExpr>),
    /// A comparison.
    Compare(Box<TreeExpr>, TreeComparison, Box<TreeExpr>),
    /// Whether the first one is between the others, or one of them.
    Between(Box<TreeExpr>, Box<TreeExpr>, Box<TreeExpr>),
    /// Whether the operand is one of these.
    In(Box<TreeExpr>, Vec<TreeLiteral>),
    /// Whether the operand is null.
    IsNull(Box<TreeExpr>),
    /// Whether a text matches a pattern with `%` and `_`.
    Like(Box<TreeExpr>, String),
    /// Whether a text matches a regular expression.
    Regexp(Box<TreeExpr>, String),
    /// A function.
    Call(TreeCall),
}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeCall {
    /// Its name as the statement has it.
    pub name: String,
    /// What it is computed from.
    pub arguments: Vec<TreeExpr>,
    /// Its settings: `"ignoreNull"="false"`.
    pub attributes: Vec<(String, String)>,
}

impl TreeCall {
    /// The aggregate function of this name, if it is one.
    pub fn aggregate(&self) -> Option<TreeAggregate> {
        TreeAggregate::from_name(&self.name)
    }

    /// The value of a setting, whose name may have any case.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// An operator of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeArithmetic {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl TreeArithmetic {
    /// Its sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeComparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl TreeComparison {
    /// The comparison with its sides exchanged.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Its sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSpan {
    /// Months.
    pub months: i64,
    /// Milliseconds beside them.
    pub ms: i64,
}

/// Windows of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeWindows {
    /// The begin of the first window.
    pub start_ms: i64,
    /// The end of the last one.
    pub end_ms: i64,
    /// Whether a window has its end instead of its begin.
    pub has_ends: bool,
    /// Their length.
    pub length: TreeSpan,
    /// The distance of their begins.
    pub step: TreeSpan,
}

/// What stands for missing values.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeFill {
    /// The value before, if it is not older than this many milliseconds.
    Previous(Option<i64>),
    /// A value on the line between the values around.
    Linear,
    /// This value.
    Constant(TreeLiteral),
}

/// What rows are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    /// The time.
    Time,
    /// The device.
    Device,
    /// The timeseries.
    Timeseries,
    /// A value.
    Value(TreeExpr),
}
