//! Streams of tables, as a script describes them: nothing is read before a result is.

use super::{FluxTable, FluxValue};
use crate::fault::fault;
use marigram_flux::FluxPosition;
use marigram_influx::Budget;
use marigram_sql::SqlResult;
use regex::Regex;
use std::fmt;
use std::sync::Arc;

/// The functions through which a stream may pass.
const STREAM_DEPTH_MAX: usize = 200;
/// How often a stream may read its sources: one that `union` or `join` takes twice reads them twice.
const STREAM_READS_MAX: usize = 1_024;

/// Evaluates functions for those of this crate.
pub(crate) trait FluxCaller {
    /// What `now()` is.
    fn now_ns(&self) -> i64;

    /// Calls a function.
    ///
    /// # Errors
    /// What is wrong, and where.
    fn call(
        &mut self,
        at: FluxPosition,
        function: &FluxValue,
        given: Vec<(String, FluxValue)>,
        piped: Option<FluxValue>,
    ) -> SqlResult<FluxValue>;

    /// The memory of the statement.
    fn budget(&self) -> &Budget;

    /// Begins to count what an evaluation may use anew, for the next row.
    fn next_row(&mut self);

    /// A regular expression, compiled once.
    ///
    /// # Errors
    /// If it is none.
    fn regex(&mut self, at: FluxPosition, source: &str) -> SqlResult<Arc<Regex>>;

    /// A bucket that the client may read.
    ///
    /// # Errors
    /// If there is no such bucket, or it may not be read.
    fn bucket(&self, at: FluxPosition, name: &str) -> SqlResult<FluxBucket>;

    /// Adds a result.
    ///
    /// # Errors
    /// If there is one with this name, or there are too many.
    fn add_result(
        &mut self,
        at: FluxPosition,
        name: &str,
        stream: Arc<FluxStream>,
    ) -> SqlResult<()>;
}

/// A retention policy of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FluxBucket {
    /// The name in the script.
    pub name: Arc<str>,
    /// The database.
    pub database: String,
    /// The policy.
    pub policy: String,
}

/// What is read of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct BucketRead {
    /// The bucket.
    pub bucket: FluxBucket,
    /// The first time, and the first one behind.
    pub range: Option<(i64, i64)>,
    /// Functions that all rows fulfil that are needed.
    pub predicates: Vec<FluxValue>,
}

/// What is listed without reading rows.
#[derive(Clone, Debug)]
pub(crate) enum FluxListing {
    /// The buckets that the client may read.
    Buckets,
    /// The values of a tag, `_measurement` or `_field`.
    TagValues {
        /// The bucket.
        bucket: FluxBucket,
        /// The tag.
        tag: Arc<str>,
        /// What series fulfil.
        predicate: Option<FluxValue>,
    },
    /// The keys of tags.
    TagKeys {
        /// The bucket.
        bucket: FluxBucket,
        /// What series fulfil.
        predicate: Option<FluxValue>,
    },
}

/// Makes tables of a table.
pub(super) type EachTable =
    dyn Fn(FluxTable, &mut dyn FluxCaller) -> SqlResult<Vec<FluxTable>> + Send + Sync;

/// Makes tables of all tables of the inputs.
pub(super) type GatherTables =
    dyn Fn(Vec<Vec<FluxTable>>, &mut dyn FluxCaller) -> SqlResult<Vec<FluxTable>> + Send + Sync;

/// How the tables of a stream come to be.
pub(crate) enum FluxOperation {
    /// They are read from a bucket.
    Read(BucketRead),
    /// They are listed.
    Listing(FluxListing),
    /// They stand in the script.
    Constant(Vec<FluxTable>),
    /// They are put here when the stream is applied to tables.
    Placeholder,
    /// They are those of the input.
    Yield,
    /// They are the rows of the input that fulfil a function.
    Filter {
        /// The function.
        predicate: FluxValue,
        /// Whether tables without rows stay.
        keeps_empty: bool,
    },
    /// They are made of each table by itself.
    Each(Box<EachTable>),
    /// They are made of each table, and those with equal keys become one.
    Regroup(Box<EachTable>),
    /// They are made of all tables at once.
    Gather(Box<GatherTables>),
}

/// A stream of tables.
pub(crate) struct FluxStream {
    /// How the tables come to be.
    pub operation: FluxOperation,
    /// Of which streams.
    pub inputs: Vec<Arc<FluxStream>>,
    /// Where the script makes the stream.
    pub at: FluxPosition,
    depth: usize,
    reads: usize,
}

impl fmt::Debug for FluxStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream @{}", self.at)
    }
}

impl FluxStream {
    /// A stream that is made of others.
    ///
    /// # Errors
    /// If it would pass through too many functions, or read its sources too often.
    pub(crate) fn new(
        at: FluxPosition,
        operation: FluxOperation,
        inputs: Vec<Arc<FluxStream>>,
    ) -> SqlResult<Arc<Self>> {
        let depth = inputs.iter().map(|input| input.depth).max().unwrap_or(0) + 1;
        if depth > STREAM_DEPTH_MAX {
            let message = format!("a stream passes through more than {STREAM_DEPTH_MAX} functions");
            return Err(fault(at, message));
        }
        let reads = inputs.iter().map(|input| input.reads);
        let reads = reads.fold(0, usize::saturating_add).max(1);
        if reads > STREAM_READS_MAX {
            let message = format!(
                "a stream reads its sources {reads} times, and at most {STREAM_READS_MAX} are accepted: \
                 each function that takes a stream twice doubles them"
            );
            return Err(fault(at, message));
        }
        Ok(Arc::new(Self {
            operation,
            inputs,
            at,
            depth,
            reads,
        }))
    }

    /// The value of a stream that makes tables of each one of another stream.
    ///
    /// # Errors
    /// As [`FluxStream::new`].
    pub(crate) fn each(
        at: FluxPosition,
        input: Arc<Self>,
        function: Box<EachTable>,
    ) -> SqlResult<FluxValue> {
        let operation = FluxOperation::Each(function);
        Ok(FluxValue::Stream(Self::new(at, operation, vec![input])?))
    }

    /// The same, if tables may get equal keys.
    ///
    /// # Errors
    /// As [`FluxStream::new`].
    pub(crate) fn regroup(
        at: FluxPosition,
        input: Arc<Self>,
        function: Box<EachTable>,
    ) -> SqlResult<FluxValue> {
        let operation = FluxOperation::Regroup(function);
        Ok(FluxValue::Stream(Self::new(at, operation, vec![input])?))
    }

    /// Whether it is a result by its own name.
    pub(crate) fn is_yielded(&self) -> bool {
        matches!(self.operation, FluxOperation::Yield)
    }
}
