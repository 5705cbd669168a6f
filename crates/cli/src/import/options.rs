//! The options that control how files are read.

use super::ImportFormat;
use clap::{Args, ValueEnum};
use marigram_tabular::cell::DecimalMark;
use marigram_tabular::time::{self, Precision};
use std::str::FromStr;

/// How files are read.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a command-line switch"
)]
#[derive(Args, Clone, Debug, Default)]
pub struct ReadOptions {
    /// Format of the files, if their extension does not tell
    #[arg(long, value_enum)]
    pub format: Option<ImportFormat>,
    /// Table [default: the file's name without its extension; for TsFile the file's own tables]
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// The time column, or all columns that make up the time, such as date,hour,tz; no other column
    /// is part of it [default: the table's, or detected from names and values]
    #[arg(long, value_name = "COLUMNS")]
    pub time_column: Option<String>,
    /// Column of the date, if the time of day has a column of its own (--time-column) [default:
    /// detected]
    #[arg(long, value_name = "COLUMN")]
    pub date_column: Option<String>,
    /// Format of times, in the notation of strftime, such as "%d.%m.%Y %H:%M:%S"; or excel for the day
    /// numbers of spreadsheets, ticks for .NET's, filetime for those of Windows, labview for seconds
    /// since 1904 [default: detected from the whole file]
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// Order of day, month and year in dates, if no row decides it
    #[arg(long, value_enum, value_name = "ORDER")]
    pub date_order: Option<DateOrder>,
    /// Unit of times that are numbers: s, ms, us, ns; line protocol without it is in ns, TsFile in
    /// ms [default: detected]
    #[arg(long, value_name = "UNIT")]
    pub precision: Option<Precision>,
    /// Time zone of times that name none, such as Europe/Berlin or +01:00 [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
    /// Which hour is meant by times that clocks show twice in autumn [default: such rows are
    /// refused]
    #[arg(long, value_enum, value_name = "HOUR")]
    pub repeated_hour: Option<RepeatedHour>,
    /// Columns that are tags, such as site,device [default: the table's, or detected]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// No column is a tag
    #[arg(long, conflicts_with = "tags")]
    pub no_tags: bool,
    /// A tag with the same value in every row, such as site=north
    #[arg(long, value_name = "NAME=VALUE")]
    pub tag: Vec<String>,
    /// A tag from the name of each file: what REGEX, or its first group, finds in it, such as
    /// 'device=pump-([0-9]+)'
    #[arg(long, value_name = "NAME=REGEX")]
    pub file_tag: Vec<String>,
    /// Types of columns, such as count=bigint,label=string [default: detected from the whole file]
    #[arg(long, value_name = "NAME=TYPE", value_delimiter = ',')]
    pub types: Vec<String>,
    /// Separator of cells: a character, or tab [default: detected]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<CellDelimiter>,
    /// Decimal mark: . or , [default: detected]
    #[arg(long, value_name = "MARK", value_parser = decimal)]
    pub decimal: Option<DecimalMark>,
    /// Character encoding, such as utf-8, latin1, windows-1252, utf-16le [default: detected]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// The first line (after --skip) is the header [default: detected]
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,
    /// The file has no header: columns are column1, column2, …
    #[arg(long)]
    pub no_header: bool,
    /// Lines before the header, or before the rows if there is none [default: detected]
    #[arg(long, value_name = "LINES")]
    pub skip: Option<u64>,
    /// Further texts that mean "no value", in any column, such as --null x,missing
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    pub null: Vec<String>,
    /// Refuse files with columns that an existing table does not have
    #[arg(long)]
    pub strict: bool,
    /// Whether NaN and the infinities are values, as COPY writes and reads them
    #[arg(skip)]
    pub keeps_nan: bool,
    /// Number of refused lines to name one by one
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub show_refused: usize,
}

fn decimal(text: &str) -> Result<DecimalMark, String> {
    match text {
        "." | "point" => Ok(DecimalMark::Point),
        "," | "comma" => Ok(DecimalMark::Comma),
        _ => Err("give . or ,".to_owned()),
    }
}

/// The separator of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellDelimiter(pub u8);

impl FromStr for CellDelimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(Self(*byte)),
            _ => Err("give one character, or tab".to_owned()),
        }
    }
}

/// Order of the parts of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DateOrder {
    /// Year, month, day
    Ymd,
    /// Day, month, year
    Dmy,
    /// Month, day, year
    Mdy,
}

impl From<DateOrder> for time::DateOrder {
    fn from(order: DateOrder) -> Self {
        match order {
            DateOrder::Ymd => Self::Ymd,
            DateOrder::Dmy => Self::Dmy,
            DateOrder::Mdy => Self::Mdy,
        }
    }
}

/// One of two hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RepeatedHour {
    /// The first one
    First,
    /// The second one
    Second,
    /// The order of the rows decides: the first one until the time goes back, then the second
    Order,
}

impl From<RepeatedHour> for time::RepeatedHour {
    fn from(hour: RepeatedHour) -> Self {
        match hour {
            // Where the order decides, the second pass is told apart row by row.
            RepeatedHour::First | RepeatedHour::Order => Self::First,
            RepeatedHour::Second => Self::Second,
        }
    }
}
