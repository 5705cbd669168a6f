//! Query languages other than SQL: one request of several statements, answered in order.
//!
//! Answers are Arrow rows, as SQL's are. A language whose answers are series (InfluxQL, `PromQL`)
//! gives them as plain batches: the columns are the measurement, the tags that the statement groups
//! by, the time, and what was selected, each with its role under [`ROLE_KEY`]. The rows of one series
//! stand together, and series in the order of the language; so a server that answers series cuts them
//! where measurement or tags change, and other servers pass the batches on whole.
//!
//! Invariant: answers come in the order of the statements; who drops the stream stops the rest.

use crate::error::Result;
use crate::query::{Answer, Session};
use async_trait::async_trait;
use futures::stream::BoxStream;

/// Key of a field's metadata that says what a column is: `measurement`, `tag`, `time` or `field`.
pub const ROLE_KEY: &str = "marigram.role";

/// Key of a schema's metadata that names the result to which a table of Flux belongs. Each batch of
/// Flux has the schema of its own table, so that of the stream has no columns: a batch with the
/// number of another table than the one before begins that table. A batch without columns and
/// without a number ends its result.
pub const FLUX_RESULT_KEY: &str = "marigram.flux.result";

/// Key of a schema's metadata with the number of the table in its result, from 0.
pub const FLUX_TABLE_KEY: &str = "marigram.flux.table";

/// Key of a field's metadata that is there if the column belongs to the group key.
pub const FLUX_GROUP_KEY: &str = "marigram.flux.group";

/// Key of a field's metadata with the text of its value in the group key, where a table has no rows.
pub const FLUX_DEFAULT_KEY: &str = "marigram.flux.default";

/// A query language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// InfluxQL, as InfluxDB 1.8 has it.
    InfluxQl,
    /// Flux, as InfluxDB 2 has it.
    Flux,
    /// Requests of OpenTSDB 2.4, as `marigram_opentsdb::ReadRequest` writes them.
    OpenTsdb,
    /// The tree dialect of Apache IoTDB's SQL.
    IotDb,
    /// SQL as TDengine has it.
    TDengine,
}

/// The value of a bound parameter, as JSON has it.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number, as it is written.
    Number(String),
    /// Text.
    String(String),
    /// An array, whatever is in it.
    Array,
    /// An object.
    Object(Vec<(String, ParameterValue)>),
}

/// One request in a language.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageRequest {
    /// The language of the text.
    pub language: Language,
    /// The statements.
    pub text: String,
    /// Statements in the same language that run before them and have positions of their own.
    pub prelude: String,
    /// The retention policy of names without one; the database's default where `None`.
    pub retention_policy: Option<String>,
    /// Values by name, for a language that has bound parameters.
    pub parameters: Vec<(String, ParameterValue)>,
}

impl LanguageRequest {
    /// A request without parameters.
    #[must_use]
    pub fn new(language: Language, text: &str) -> Self {
        Self {
            language,
            text: text.to_owned(),
            prelude: String::new(),
            retention_policy: None,
            parameters: Vec::new(),
        }
    }
}

/// What one statement of a request gives.
pub struct StatementAnswer {
    /// The statement's index in the request, from 0.
    pub statement_id: usize,
    /// What it answers, or why it was not done. Rows can still fail while they are read.
    pub answer: Result<Answer>,
    /// What the client should know beside, each a sentence.
    pub messages: Vec<String>,
}

/// The answers of a request's statements, in order. A statement begins when its answer is asked for,
/// after the rows of the one before were read.
pub type StatementAnswers = BoxStream<'static, StatementAnswer>;

/// Answers requests in languages other than SQL.
#[async_trait]
pub trait LanguageQuery: Send + Sync {
    /// Reads a request and answers its statements. The database of `session` may be empty, where a
    /// language allows statements without one; it need not exist.
    ///
    /// # Errors
    /// If the request cannot be read as a whole, and nothing of it was done: `Invalid`, in the words
    /// of the language. What is wrong with a statement is told with its answer.
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers>;
}
