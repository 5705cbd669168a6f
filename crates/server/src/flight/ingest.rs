//! Rows stored by `DoPut`: Flight SQL's bulk ingestion, and plain uploads to a path.
//!
//! The table's roles say which columns are time, tags and fields. A table that does not exist gets
//! its roles from the rows ([`roles_of`]). Good rows are stored; bad ones are named.

use super::call::FlightCall;
use super::fault::FlightFault;
use super::incoming_rows::IncomingRows;
use arrow::datatypes::{DataType, Schema};
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use marigram_access::DatabasePrivileges;
use marigram_service::{Answer, ArrowRoles, ROLE_KEY, RejectedRow, ServiceError};
use std::collections::HashMap;
use tonic::Code;

/// Refused rows that an error names.
const ROWS_NAMED_MAX: usize = 10;

/// Options that name the roles of a new table's columns.
const TIME_OPTION: &str = "time";
const TAGS_OPTION: &str = "tags";

/// Where rows go.
#[derive(Debug, PartialEq)]
pub(super) struct IngestTarget {
    database: String,
    table: String,
    if_missing: TableNotExistOption,
    if_there: TableExistsOption,
    options: HashMap<String, String>,
}

impl IngestTarget {
    /// The target of a command.
    ///
    /// # Errors
    /// If it asks for something that there is not.
    pub(super) fn from_command(command: CommandStatementIngest) -> Result<Self, FlightFault> {
        if command.temporary {
            return Err(FlightFault::unsupported("there are no temporary tables"));
        }
        if command.transaction_id.is_some_and(|id| !id.is_empty()) {
            return Err(no_transactions());
        }
        check_schema_name(command.schema.as_deref())?;
        let definition = command.table_definition_options.unwrap_or_default();
        let if_missing = match definition.if_not_exist() {
            TableNotExistOption::Unspecified => TableNotExistOption::Create,
            given => given,
        };
        let if_there = match definition.if_exists() {
            TableExistsOption::Unspecified => TableExistsOption::Append,
            given => given,
        };
        Self::new(command.catalog.unwrap_or_default(), command.table).map(|target| Self {
            if_missing,
            if_there,
            options: command.options,
            ..target
        })
    }

    /// The target of a path: `[table]`, `[database, table]` or `[database, "public", table]`.
    ///
    /// # Errors
    /// If it has another form.
    pub(super) fn from_path(mut path: Vec<String>) -> Result<Self, FlightFault> {
        let table = path.pop().unwrap_or_default();
        let mut above = path.into_iter();
        let database = above.next().unwrap_or_default();
        check_schema_name(above.next().as_deref())?;
        if above.next().is_some() {
            return Err(FlightFault::malformed(
                "the path of a table is [table], [database, table] or [database, public, table]",
            ));
        }
        Self::new(database, table)
    }

    fn new(database: String, table: String) -> Result<Self, FlightFault> {
        if table.is_empty() {
            return Err(FlightFault::malformed("DoPut names no table"));
        }
        Ok(Self {
            database,
            table,
            if_missing: TableNotExistOption::Create,
            if_there: TableExistsOption::Append,
            options: HashMap::new(),
        })
    }
}

/// What clients are told who ask for transactions.
pub(super) fn no_transactions() -> FlightFault {
    FlightFault::unsupported(
        "there are no transactions over several statements: each batch is durable when it is \
         acknowledged",
    )
}

fn check_schema_name(name: Option<&str>) -> Result<(), FlightFault> {
    match name {
        None | Some("" | "public") => Ok(()),
        Some(name) => Err(FlightFault::new(
            Code::NotFound,
            "3F000",
            format!("schema '{name}' does not exist; there is public"),
        )),
    }
}

/// The roles of a new table's columns: what the option or the column's metadata says; otherwise the
/// column `time` or the only timestamp is the time, and text and dictionaries are tags.
///
/// # Errors
/// If no column can be the time, or an option names a column that is not there.
fn roles_of(schema: &Schema, options: &HashMap<String, String>) -> Result<ArrowRoles, FlightFault> {
    let wrong = |message: String| FlightFault::new(Code::InvalidArgument, "42P16", message);
    let has_role = |field: &arrow::datatypes::Field, role: &str| {
        field
            .metadata()
            .get(ROLE_KEY)
            .is_some_and(|found| found == role)
    };
    let fields = schema.fields();
    let known = |name: &str| {
        let found = fields.iter().any(|field| field.name() == name);
        let missing = || wrong(format!("the rows have no column '{name}'"));
        found.then(|| name.to_owned()).ok_or_else(missing)
    };
    let time = if let Some(name) = options.get(TIME_OPTION) {
        known(name)?
    } else {
        let mut times = fields
            .iter()
            .filter(|field| matches!(field.data_type(), DataType::Timestamp(..)));
        let by_role = fields.iter().find(|field| has_role(field, "time"));
        let by_name = || fields.iter().find(|field| field.name() == "time");
        let only = || times.next().filter(|_| times.next().is_none());
        let found = by_role.or_else(by_name).or_else(only);
        let missing = || {
            wrong("a new table needs a time: name a column 'time', or give the option time".into())
        };
        found.ok_or_else(missing)?.name().clone()
    };
    let tags = if let Some(names) = options.get(TAGS_OPTION) {
        let names = names.split(',').map(str::trim);
        names
            .filter(|name| !name.is_empty())
            .map(known)
            .collect::<Result<_, _>>()?
    } else {
        let some_have_roles = fields
            .iter()
            .any(|field| field.metadata().contains_key(ROLE_KEY));
        let is_tag = |field: &&std::sync::Arc<arrow::datatypes::Field>| {
            if some_have_roles {
                return has_role(field, "tag");
            }
            matches!(
                field.data_type(),
                DataType::Dictionary(..)
                    | DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
            )
        };
        let tags = fields.iter().filter(|field| *field.name() != time);
        tags.filter(is_tag)
            .map(|field| field.name().clone())
            .collect()
    };
    Ok(ArrowRoles { time, tags })
}

/// The refused rows, as far as an error names them.
#[derive(Default)]
struct IngestRefusals {
    count: usize,
    named: Vec<String>,
}

impl IngestRefusals {
    fn add(&mut self, rows_before: usize, rejected: Vec<RejectedRow>) {
        self.count += rejected.len();
        let room = ROWS_NAMED_MAX - self.named.len();
        let named = rejected.into_iter().take(room);
        self.named.extend(
            named.map(|RejectedRow { row, reason }| format!("row {}: {reason}", rows_before + row)),
        );
    }
}

/// Stores the rows of a stream and returns their number.
///
/// # Errors
/// If the table cannot take them, or if rows were refused: the error says how many are stored.
pub(super) async fn store(
    call: &FlightCall,
    target: IngestTarget,
    mut incoming: IncomingRows,
) -> Result<usize, FlightFault> {
    let database = call.database_name(&target.database).to_owned();
    call.check_database(&database, DatabasePrivileges::WRITE)?;
    let mut creates = None;
    let (mut stored, mut rows_before, mut batches) = (0, 0, 0);
    let mut refused = IngestRefusals::default();
    loop {
        let batch = match incoming.next(call).await {
            Ok(batch) => batch,
            Err(fault) => return Err(with_stored(fault, stored, batches)),
        };
        // The roles come from the schema, which is there before the first rows or the end.
        if creates.is_none() {
            let schema = incoming.schema().cloned();
            let schema = schema
                .ok_or_else(|| FlightFault::malformed("the stream of DoPut has no schema"))?;
            creates = Some(make_ready(call, &target, &database, &schema).await?);
        }
        let Some(batch) = batch else { break };
        let _permit = call
            .enter()
            .map_err(|fault| with_stored(fault, stored, batches))?;
        let rows = batch.num_rows();
        let ingest = &call.shared.server.services.ingest;
        let roles = creates.as_ref().and_then(Option::as_ref);
        let report = ingest
            .write_arrow(&database, &target.table, batch, roles)
            .await;
        let report = report.map_err(|error| with_stored(error.into(), stored, batches))?;
        let audit = &call.shared.server.audit;
        audit.note_created("flight", &call.identity.user, &database, &report.created);
        stored += report.stored;
        batches += 1;
        refused.add(rows_before, report.rejected);
        rows_before += rows;
        call.stored(report.stored);
    }
    if refused.count == 0 {
        return Ok(stored);
    }
    let more = refused.count - refused.named.len();
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    let message = format!(
        "{stored} rows stored, {} refused: {}{more}",
        refused.count,
        refused.named.join("; ")
    );
    Err(FlightFault::new(Code::InvalidArgument, "22000", message))
}

/// An error that ended a stream says what is stored.
fn with_stored(mut fault: FlightFault, stored: usize, batches: usize) -> FlightFault {
    if stored > 0 {
        fault.message = format!(
            "{}; {stored} rows of the first {batches} batches are stored",
            fault.message
        );
    }
    fault
}

/// Makes the table ready as the command asks; returns the roles for a table that the rows create.
async fn make_ready(
    call: &FlightCall,
    target: &IngestTarget,
    database: &str,
    schema: &Schema,
) -> Result<Option<ArrowRoles>, FlightFault> {
    let IngestTarget { table, .. } = target;
    let found = call
        .shared
        .server
        .services
        .ingest
        .table_schema(database, table)
        .await;
    match found {
        Ok(_) => match target.if_there {
            TableExistsOption::Fail => {
                let message = format!("table '{table}' exists already");
                Err(FlightFault::new(Code::AlreadyExists, "42P07", message))
            }
            TableExistsOption::Replace => {
                let roles = roles_of(schema, &target.options)?;
                drop_table(call, database, table).await?;
                Ok(Some(roles))
            }
            TableExistsOption::Unspecified | TableExistsOption::Append => Ok(None),
        },
        Err(ServiceError::NotFound(message, sqlstate)) if sqlstate != "3D000" => {
            if target.if_missing == TableNotExistOption::Fail {
                return Err(ServiceError::NotFound(message, sqlstate).into());
            }
            Ok(Some(roles_of(schema, &target.options)?))
        }
        Err(error) => Err(error.into()),
    }
}

async fn drop_table(call: &FlightCall, database: &str, table: &str) -> Result<(), FlightFault> {
    let mut session = call.session(database).await?;
    let statement = format!("DROP TABLE \"{}\"", table.replace('"', "\"\""));
    let query = &call.shared.server.services.query;
    match query.execute(&mut session, &statement).await? {
        Answer::Done { .. } | Answer::Rows(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, TimeUnit};

    fn schema(fields: &[(&str, DataType, Option<&str>)]) -> Schema {
        let fields = fields.iter().map(|(name, kind, role)| {
            let role = role.map(|role| (ROLE_KEY.to_owned(), role.to_owned()));
            Field::new(*name, kind.clone(), true).with_metadata(role.into_iter().collect())
        });
        Schema::new(fields.collect::<Vec<_>>())
    }

    fn roles(schema: &Schema, options: &[(&str, &str)]) -> Result<(String, Vec<String>), String> {
        let options = options
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        let roles = roles_of(schema, &options.collect()).map_err(|fault| fault.message)?;
        Ok((roles.time, roles.tags))
    }

    #[test]
    fn the_roles_of_a_new_table_come_from_options_metadata_and_types() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let tag = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let plain = schema(&[
            ("at", time.clone(), None),
            ("device", tag, None),
            ("note", DataType::Utf8, None),
            ("v", DataType::Float64, None),
        ]);
        let of = |time: &str, tags: &[&str]| {
            Ok((
                time.to_owned(),
                tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ))
        };
        assert_eq!(roles(&plain, &[]), of("at", &["device", "note"]));
        assert_eq!(
            roles(&plain, &[("tags", "device, ")]),
            of("at", &["device"])
        );
        assert_eq!(roles(&plain, &[("tags", "")]), of("at", &[]));
        let error = roles(&plain, &[("tags", "x")]).unwrap_err();
        assert_eq!(error, "the rows have no column 'x'");
        let told = schema(&[
            ("t1", time.clone(), Some("time")),
            ("t2", time.clone(), Some("field")),
            ("a", DataType::Utf8, Some("tag")),
            ("b", DataType::Utf8, Some("field")),
        ]);
        assert_eq!(roles(&told, &[]), of("t1", &["a"]));
        let two = schema(&[("t1", time.clone(), None), ("t2", time, None)]);
        assert!(
            roles(&two, &[])
                .unwrap_err()
                .starts_with("a new table needs a time")
        );
        assert_eq!(roles(&two, &[("time", "t2")]), of("t2", &[]));
    }

    #[test]
    fn paths_name_tables() {
        let path = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            IngestTarget::from_path(names).map(|target| (target.database, target.table))
        };
        let of = |database: &str, table: &str| (database.to_owned(), table.to_owned());
        assert_eq!(path(&["t"]).unwrap(), of("", "t"));
        assert_eq!(path(&["d", "t"]).unwrap(), of("d", "t"));
        assert_eq!(path(&["d", "public", "t"]).unwrap(), of("d", "t"));
        assert!(path(&["d", "private", "t"]).is_err());
        assert!(path(&["d", "public", "x", "t"]).is_err());
        assert!(path(&[]).is_err());
    }

    #[test]
    fn refused_rows_are_named_up_to_a_number() {
        let mut refused = IngestRefusals::default();
        let reject = |row| RejectedRow {
            row,
            reason: "bad".to_owned(),
        };
        refused.add(100, vec![reject(3)]);
        refused.add(200, (0..50).map(reject).collect());
        assert_eq!((refused.count, refused.named.len()), (51, ROWS_NAMED_MAX));
        assert_eq!(&refused.named[..2], ["row 103: bad", "row 200: bad"]);
    }
}
