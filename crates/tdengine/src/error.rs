//! TDengine's error numbers and messages, in one place.
//!
//! A client sees the lower 16 bits of a number. Inside the service an error travels as a SQLSTATE of
//! the implementation-defined class `T`: `T2603` is number 0x2603.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $state:literal, $message:literal;)+) => {
        /// An error number of TDengine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum TaosCode {
            $($(#[$doc])* $name = $number,)+
        }

        impl TaosCode {
            /// All numbers that this server answers.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The message where there is nothing more to say.
            #[must_use]
            pub fn message(self) -> &'static str {
                match self {
                    $(Self::$name => $message,)+
                }
            }

            /// The number as a SQLSTATE.
            #[must_use]
            pub fn sqlstate(self) -> &'static str {
                match self {
                    $(Self::$name => $state,)+
                }
            }
        }
    };
}

codes! {
    /// The statement is known, and this server does not have it.
    NotSupported = 0x0100, "T0100", "Operation not supported";
    /// The server has too little memory for the request.
    OutOfMemory = 0x0102, "T0102", "Out of Memory";
    /// A parameter of the request is wrong.
    InvalidParameter = 0x0118, "T0118", "Invalid parameters";
    /// A time is none.
    InvalidTimestamp = 0x0127, "T0127", "Invalid timestamp format";
    /// The statement took too long.
    Timeout = 0x012C, "T012C", "Operation timeout";
    /// The statement was stopped.
    QueryCancelled = 0x020F, "T020F", "Query terminated";
    /// Writing is refused.
    NoWriteAccess = 0x0214, "T0214", "No permission to write";
    /// A value does not fit its column.
    ValueOutOfRange = 0x0224, "T0224", "Value out of range";
    /// The name is no super table.
    NotStable = 0x022F, "T022F", "Table is not a super table";
    /// The server is at fault.
    Internal = 0x02FF, "T02FF", "Internal error";
    /// The user may not do so.
    NoRights = 0x0303, "T0303", "Insufficient privilege for operation";
    /// The name or the password of the user is wrong.
    AuthenticationFailure = 0x0357, "T0357", "Authentication failure";
    /// The super table exists.
    StableExists = 0x0360, "T0360", "STable already exists";
    /// There is no such super table.
    NoSuchStable = 0x0362, "T0362", "STable not exist";
    /// There is such a tag.
    TagExists = 0x0369, "T0369", "Tag already exists";
    /// There is no such tag.
    NoSuchTag = 0x036A, "T036A", "Tag does not exist";
    /// There is such a column.
    ColumnExists = 0x036B, "T036B", "Column already exists";
    /// There is no such column in the table that changes.
    NoSuchColumn = 0x036C, "T036C", "Column does not exist";
    /// The database exists.
    DatabaseExists = 0x0381, "T0381", "Database already exists";
    /// A database cannot have this name.
    InvalidDatabaseName = 0x0383, "T0383", "Invalid database name";
    /// There is no such database.
    NoSuchDatabase = 0x0388, "T0388", "Database not exist";
    /// The table exists.
    TableExists = 0x0603, "T0603", "Table already exists";
    /// The text is no statement.
    SyntaxError = 0x2600, "T2600", "syntax error near";
    /// The text ends too early.
    IncompleteSql = 0x2601, "T2601", "Incomplete SQL statement";
    /// There is no such column.
    InvalidColumn = 0x2602, "T2602", "Invalid column name";
    /// There is no such table.
    NoSuchTable = 0x2603, "T2603", "Table does not exist";
    /// More than one table has the column.
    AmbiguousColumn = 0x2604, "T2604", "Column ambiguously defined";
    /// A value has the wrong type.
    WrongValueType = 0x2605, "T2605", "Invalid value type";
    /// An aggregate function where none may be.
    IllegalAggregate = 0x2608, "T2608", "There mustn't be aggregation";
    /// A column that is neither grouped by nor aggregated.
    NotSingleGroup = 0x260C, "T260C", "Not a single-group group function";
    /// The number of tags is wrong.
    TagsNotMatched = 0x260D, "T260D", "Tags number not matched";
    /// There is no such tag in a list of tags.
    InvalidTagName = 0x260E, "T260E", "Invalid tag name";
    /// The interval is too small.
    IntervalTooSmall = 0x2615, "T2615", "Interval cannot be less than 1 us";
    /// A statement about tables, without a database.
    DatabaseNotSpecified = 0x2616, "T2616", "Database not specified";
    /// Nothing can have this name.
    InvalidName = 0x2617, "T2617", "Invalid identifier name";
    /// An option of a database is wrong.
    InvalidDatabaseOption = 0x2619, "T2619", "Invalid database option";
    /// An option of a table is wrong.
    InvalidTableOption = 0x261A, "T261A", "Invalid table option";
    /// A window and GROUP BY.
    GroupByWithWindow = 0x2624, "T2624", "GROUP BY and WINDOW-clause can't be used together";
    /// An aggregate of an aggregate.
    NestedAggregate = 0x2627, "T2627", "Aggregate functions do not support nesting";
    /// A state that can be none.
    InvalidState = 0x2628, "T2628", "Only support STATE_WINDOW on integer/bool/varchar column";
    /// A session over something else than the time.
    SessionColumn = 0x262C, "T262C", "Only support SESSION on primary timestamp column";
    /// An offset that is not shorter than its interval.
    OffsetTooBig = 0x262F, "T262F", "Interval offset should be shorter than interval";
    /// A slide that is longer than its interval.
    SlidingTooBig = 0x2631, "T2631", "sliding value no larger than the interval value";
    /// Queries of a union that do not fit.
    UnionColumns = 0x2634, "T2634", "Query block has incorrect number of result columns";
    /// A text that is no time.
    IncorrectTimestamp = 0x2635, "T2635", "Incorrect TIMESTAMP value";
    /// SLIMIT without PARTITION BY.
    SlimitWithoutPartition = 0x2638, "T2638", "slimit/soffset only available for PARTITION/GROUP BY query";
    /// FILL without times, or with too many windows.
    FillTimeRange = 0x263B, "T263B", "Start(end) time of query range required or time range too large";
    /// A column twice.
    DuplicatedColumn = 0x263C, "T263C", "Duplicated column names";
    /// Too few columns, or too many.
    InvalidColumnCount = 0x263F, "T263F", "Illegal number of columns";
    /// A table whose first column is no time.
    InvalidFirstColumn = 0x2641, "T2641", "First column must be timestamp";
    /// A length that a type cannot have.
    InvalidLength = 0x2642, "T2642", "Invalid varbinary/binary/nchar column/tag length";
    /// The user may not do so, or there is no such thing.
    PermissionDenied = 0x2644, "T2644", "Permission denied or target object not exist";
    /// A change that a table cannot have.
    InvalidAlterTable = 0x2649, "T2649", "Invalid alter table statement";
    /// The time cannot be dropped.
    DropTime = 0x264A, "T264A", "Primary timestamp column cannot be dropped";
    /// A change of a type other than a longer text.
    InvalidModify = 0x264B, "T264B", "Only varbinary/binary/nchar/geometry column length could be modified, and the length can only be increased, not decreased";
    /// `tbname` of something without one.
    InvalidTbname = 0x264C, "T264C", "Invalid tbname pseudo column";
    /// There is no such function.
    InvalidFunction = 0x264D, "T264D", "Invalid function name";
    /// A function where it cannot be.
    FunctionNotAllowed = 0x264F, "T264F", "Some functions are allowed only in the SELECT list of a query. And, cannot be mixed with other non scalar functions or columns.";
    /// A text that is longer than its column.
    ValueTooLong = 0x2653, "T2653", "Value too long for column/tag";
    /// A DELETE with conditions on something else than the time.
    InvalidDelete = 0x2655, "T2655", "The DELETE statement must only have a definite time window range";
    /// FILL where there are no windows to fill.
    FillNotAllowed = 0x2657, "T2657", "Fill not allowed";
    /// A pseudo column of windows without a window.
    InvalidWindowColumn = 0x2658, "T2658", "Invalid windows pc";
    /// INTERP with clauses that do not fit.
    InvalidInterp = 0x265D, "T265D", "Invalid interp clause";
    /// Two tables of one name.
    NotUniqueAlias = 0x2663, "T2663", "Not unique table/alias";
    /// A join that cannot be.
    JoinNotSupported = 0x2664, "T2664", "Not supported join since unsupported condition";
    /// ORDER BY something that is not selected.
    InvalidOrderBy = 0x2675, "T2675", "Invalid expr in order by clause";
    /// A wrong number of arguments.
    ParameterCount = 0x2801, "T2801", "Invalid number of parameters";
    /// An argument of a wrong type.
    ParameterType = 0x2802, "T2802", "Invalid parameter data type";
    /// An argument of a wrong value.
    ParameterValue = 0x2803, "T2803", "Invalid parameter value";
}

impl TaosCode {
    /// The number, as clients get it.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The number that a SQLSTATE of class `T` stands for.
    #[must_use]
    pub fn number_of_sqlstate(sqlstate: &str) -> Option<u16> {
        u16::from_str_radix(sqlstate.strip_prefix('T')?, 16).ok()
    }
}

/// Why a statement failed: a number, and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TaosError {
    /// The number.
    pub code: TaosCode,
    /// The message.
    pub message: String,
}

impl TaosError {
    /// An error with the usual message of its number.
    #[must_use]
    pub fn new(code: TaosCode) -> Self {
        Self {
            code,
            message: code.message().to_owned(),
        }
    }

    /// An error whose message names what is wrong, after the usual one and a colon.
    #[must_use]
    pub fn about(code: TaosCode, subject: &str) -> Self {
        Self {
            code,
            message: format!("{}: {subject}", code.message()),
        }
    }

    /// An error with a message of its own.
    #[must_use]
    pub fn with_message(code: TaosCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A statement, clause or function that this server does not have.
    #[must_use]
    pub fn unsupported(what: &str) -> Self {
        Self::about(TaosCode::NotSupported, what)
    }
}

/// The result of something that can fail as TDengine does.
pub type TaosResult<T> = Result<T, TaosError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sqlstates_agree() {
        for code in TaosCode::ALL {
            let number = TaosCode::number_of_sqlstate(code.sqlstate());
            assert_eq!(number, Some(code.number()), "{code:?}");
            assert_eq!(code.sqlstate().len(), 5);
        }
        assert_eq!(TaosCode::NoSuchTable.number(), 9731);
        assert_eq!(TaosCode::number_of_sqlstate("42P01"), None);
        let error = TaosError::about(TaosCode::NoSuchTable, "d1");
        assert_eq!(error.to_string(), "Table does not exist: d1");
    }
}
