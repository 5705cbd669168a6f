//! Answering SQL.
//!
//! Invariant: a statement sees one version of the data; its rows stream, and dropping the stream
//! stops the query.

use crate::authentication::{Identity, IdentityProof, owners_rights};
use crate::error::Result;
use crate::transaction::{SessionTransaction, TransactionStep};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use futures::stream::BoxStream;
use marigram_access::AccessRights;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Key of a field's metadata with the name of PostgreSQL's type of a text that is none: `uuid`, `json`
/// or `jsonb`.
pub const PG_TYPE_KEY: &str = "pg.type";

/// The database of a session that names none. It always exists.
pub const DEFAULT_DATABASE: &str = "main";

/// After which time an idle transaction block ends for which others wait, unless the session sets another.
pub const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_mins(1);

/// The result of a statement.
pub enum Answer {
    /// Rows.
    Rows(RowStream),
    /// No rows.
    Done {
        /// The command tag in PostgreSQL's format (`INSERT 0 5`, `CREATE TABLE`).
        tag: String,
        /// Rows changed.
        rows: u64,
        /// Notices for the client, one sentence each.
        notices: Vec<String>,
    },
}

/// Rows that stream in. Dropping it stops the query.
pub struct RowStream {
    /// Columns of every batch.
    pub schema: SchemaRef,
    /// The rows. After an error nothing follows.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
    /// Notices for the client, one sentence each.
    pub notices: Vec<String>,
}

impl RowStream {
    /// Rows without notices.
    pub fn new(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch>>) -> Self {
        Self {
            schema,
            batches,
            notices: Vec::new(),
        }
    }
}

/// The settings of one session. A connection owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The database in which names without one are looked up.
    pub database: String,
    /// IANA name; `UTC` unless set.
    pub time_zone: String,
    /// Time after which the server stops a statement.
    pub statement_timeout: Option<Duration>,
    /// Whether statements may only read. Those that would change anything, including the session
    /// itself, are refused with [`ServiceError::ChangesRefused`](crate::ServiceError) before they
    /// have any effect.
    pub read_only: bool,
    /// Whether the statements of a transaction may only read, unless it says otherwise.
    pub default_transaction_read_only: bool,
    /// The same for the current transaction block; `None` outside a block.
    pub transaction_read_only: Option<bool>,
    /// Whether transaction blocks that do not say otherwise see one snapshot.
    pub default_serializable: bool,
    /// After which time the server ends an idle transaction block for which others wait.
    pub idle_in_transaction_timeout: Option<Duration>,
    /// The current transaction block, after [`Query::transaction`] began it.
    pub transaction: Option<SessionTransaction>,
    /// How many statements changed something that no rollback takes back.
    pub kept_changes: u64,
    /// Who is connected.
    pub identity: Identity,
    /// What the identity may do. The implementation of [`Query`] sets it anew with each statement;
    /// what a server puts here has no effect.
    pub rights: Arc<AccessRights>,
}

impl Session {
    /// A session in `database` with default settings.
    #[must_use]
    pub fn new(database: &str, identity: Identity) -> Self {
        let rights = match identity.proof {
            IdentityProof::Owner => owners_rights(),
            _ => Arc::default(),
        };
        Self {
            database: database.to_owned(),
            time_zone: "UTC".to_owned(),
            statement_timeout: None,
            read_only: false,
            default_transaction_read_only: false,
            transaction_read_only: None,
            default_serializable: false,
            idle_in_transaction_timeout: Some(IDLE_IN_TRANSACTION_TIMEOUT),
            transaction: None,
            kept_changes: 0,
            identity,
            rights,
        }
    }

    /// Whether the next statement may change no data.
    #[must_use]
    pub fn is_transaction_read_only(&self) -> bool {
        self.transaction_read_only
            .unwrap_or(self.default_transaction_read_only)
    }
}

/// A statement that was parsed and planned once.
pub trait Prepared: Send + Sync {
    /// Arrow types of `$1…$n`.
    fn parameters(&self) -> &[DataType];
    /// The type of PostgreSQL ([`PG_TYPE_KEY`]) that the parameter at a position, from 0, has where its
    /// Arrow type is a text.
    fn parameter_pg_type(&self, position: usize) -> Option<&str> {
        let _ = position;
        None
    }
    /// Columns of the answer; `None` for statements without rows.
    fn schema(&self) -> Option<SchemaRef>;
    /// The original text of the statement.
    fn sql(&self) -> &str;
    /// Whether its rows are those that it changes.
    fn changes_rows(&self) -> bool {
        false
    }
    /// Lets the implementation of [`Query`] recover its own type.
    fn as_any(&self) -> &dyn Any;
}

/// Answers SQL.
#[async_trait]
pub trait Query: Send + Sync {
    /// The `Query` around which this one is, if it is around one: that one makes the sessions.
    fn wrapped(&self) -> Option<&dyn Query> {
        None
    }

    /// A session in `database`, or if `None`, in [`DEFAULT_DATABASE`] or the first one in which the
    /// client may do anything.
    ///
    /// # Errors
    /// `NotFound` with SQLSTATE `3D000` if there is no such database; `Forbidden` if the client may
    /// do nothing there, whether it exists or not.
    async fn session(&self, database: Option<&str>, identity: &Identity) -> Result<Session> {
        if let Some(wrapped) = self.wrapped() {
            return wrapped.session(database, identity).await;
        }
        let database = database.unwrap_or(DEFAULT_DATABASE);
        Ok(Session::new(database, identity.clone()))
    }

    /// The same, for statements that [only read](Session::read_only). Creating it changes nothing,
    /// either.
    ///
    /// # Errors
    /// As [`Query::session`].
    async fn read_only_session(
        &self,
        database: Option<&str>,
        identity: &Identity,
    ) -> Result<Session> {
        if let Some(wrapped) = self.wrapped() {
            return wrapped.read_only_session(database, identity).await;
        }
        let session = self.session(database, identity).await?;
        Ok(Session {
            read_only: true,
            ..session
        })
    }

    /// Begins, ends or divides the transaction block of a session. What has no transactions does nothing.
    ///
    /// # Errors
    /// Why a commit failed; its changes are then gone.
    async fn transaction(&self, session: &mut Session, step: TransactionStep) -> Result<()> {
        match self.wrapped() {
            Some(wrapped) => wrapped.transaction(session, step).await,
            None => Ok(()),
        }
    }

    /// Runs one statement. `SET` changes the session.
    ///
    /// # Errors
    /// Why it failed; positions count characters of `statement`.
    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer>;

    /// Parses and plans one statement with parameters `$1…$n`, whose types the statement determines.
    ///
    /// # Errors
    /// As [`Query::execute`].
    async fn prepare(&self, session: &Session, statement: &str) -> Result<Arc<dyn Prepared>> {
        self.prepare_typed(session, statement, &[]).await
    }

    /// The same with the types that the client named for `$1…$n`, Null for those that it left open.
    /// A parameter gets the named type if the statement does not determine another one.
    ///
    /// # Errors
    /// As [`Query::prepare`].
    async fn prepare_typed(
        &self,
        session: &Session,
        statement: &str,
        types: &[DataType],
    ) -> Result<Arc<dyn Prepared>>;

    /// Runs a prepared statement. `parameters` are one-row arrays in order, with the types of
    /// [`Prepared::parameters`] (null for NULL).
    ///
    /// # Errors
    /// As [`Query::execute`].
    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer>;
}
