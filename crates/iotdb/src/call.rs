//! The methods that are served, by their names.

use crate::requests::{
    AggregationQueryRequest, CloseOperationRequest, CloseSessionRequest,
    CreateAlignedTimeseriesRequest, CreateMultiTimeseriesRequest, CreateTimeseriesRequest,
    DeleteDataRequest, ExecuteBatchRequest, ExecuteStatementRequest, FastLastDataQueryRequest,
    FetchMetadataRequest, FetchResultsRequest, InsertRecordRequest,
    InsertRecordsOfOneDeviceRequest, InsertRecordsRequest, InsertStringRecordRequest,
    InsertStringRecordsOfOneDeviceRequest, InsertStringRecordsRequest, InsertTabletRequest,
    InsertTabletsRequest, LastDataQueryRequest, OpenSessionRequest, RawDataQueryRequest,
    SetTimeZoneRequest,
};
use crate::wire::{WireFault, WireRead, WireReader, WireType};

/// How rows are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// As `TSQueryDataSet`: the methods without a version.
    DataSet,
    /// As blocks: the methods of version 2.
    Blocks,
}

/// Whether the rows of a request are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPurpose {
    /// They are.
    Store,
    /// The request only measures the way to the server.
    Test,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientCall<'a> {
    /// `openSession`
    OpenSession(OpenSessionRequest<'a>),
    /// `closeSession`
    CloseSession(CloseSessionRequest),
    /// `requestStatementId`
    RequestStatementId,
    /// `closeOperation` and `cancelOperation`
    CloseOperation(CloseOperationRequest),
    /// `getTimeZone`
    GetTimeZone,
    /// `setTimeZone`
    SetTimeZone(SetTimeZoneRequest<'a>),
    /// `getProperties`
    GetProperties,
    /// `fetchAllConnectionsInfo`
    FetchConnections,
    /// `getBackupConfiguration`
    BackupConfiguration,
    /// `testConnectionEmptyRPC`
    TestConnection,
    /// `executeStatement`, `executeQueryStatement`, `executeUpdateStatement`, and their version 2
    ExecuteStatement(ExecuteStatementRequest<'a>, RowForm),
    /// `executeBatchStatement`
    ExecuteBatch(ExecuteBatchRequest<'a>),
    /// `executeRawDataQuery`
    RawDataQuery(RawDataQueryRequest<'a>, RowForm),
    /// `executeLastDataQuery`
    LastDataQuery(LastDataQueryRequest<'a>, RowForm),
    /// `executeFastLastDataQueryForOneDevice`
    FastLastDataQuery(FastLastDataQueryRequest<'a>, RowForm),
    /// `executeAggregationQuery`
    AggregationQuery(AggregationQueryRequest<'a>, RowForm),
    /// `fetchResults`
    FetchResults(FetchResultsRequest<'a>, RowForm),
    /// `fetchMetadata`
    FetchMetadata(FetchMetadataRequest<'a>),
    /// `setStorageGroup`
    SetStorageGroup(&'a str),
    /// `deleteStorageGroups`
    DeleteStorageGroups(Vec<&'a str>),
    /// `createTimeseries`
    CreateTimeseries(CreateTimeseriesRequest<'a>),
    /// `createAlignedTimeseries`
    CreateAlignedTimeseries(CreateAlignedTimeseriesRequest<'a>),
    /// `createMultiTimeseries`
    CreateMultiTimeseries(CreateMultiTimeseriesRequest<'a>),
    /// `deleteTimeseries`
    DeleteTimeseries(Vec<&'a str>),
    /// `deleteData`
    DeleteData(DeleteDataRequest<'a>),
    /// `insertRecord`
    InsertRecord(InsertRecordRequest<'a>, InsertPurpose),
    /// `insertStringRecord`
    InsertStringRecord(InsertStringRecordRequest<'a>, InsertPurpose),
    /// `insertTablet`
    InsertTablet(InsertTabletRequest<'a>, InsertPurpose),
    /// `insertTablets`
    InsertTablets(InsertTabletsRequest<'a>, InsertPurpose),
    /// `insertRecords`
    InsertRecords(InsertRecordsRequest<'a>, InsertPurpose),
    /// `insertRecordsOfOneDevice`
    InsertRecordsOfOneDevice(InsertRecordsOfOneDeviceRequest<'a>, InsertPurpose),
    /// `insertStringRecords`
    InsertStringRecords(InsertStringRecordsRequest<'a>, InsertPurpose),
    /// `insertStringRecordsOfOneDevice`
    InsertStringRecordsOfOneDevice(InsertStringRecordsOfOneDeviceRequest<'a>, InsertPurpose),
}

impl<'a> ClientCall<'a> {
    /// Reads the arguments of a method; `None` if the server does not have it.
    ///
    /// # Errors
    /// If the arguments are malformed.
    pub fn read(method: &str, reader: &mut WireReader<'a>) -> Result<Option<Self>, WireFault> {
        use InsertPurpose::{Store, Test};
        use RowForm::{Blocks, DataSet};
        Ok(Some(match method {
            "openSession" => Self::OpenSession(argument(reader)?),
            "closeSession" => Self::CloseSession(argument(reader)?),
            "requestStatementId" => without_arguments(reader, Self::RequestStatementId)?,
            "closeOperation" | "cancelOperation" => Self::CloseOperation(argument(reader)?),
            "getTimeZone" => without_arguments(reader, Self::GetTimeZone)?,
            "setTimeZone" => Self::SetTimeZone(argument(reader)?),
            "getProperties" => without_arguments(reader, Self::GetProperties)?,
            "testConnectionEmptyRPC" => without_arguments(reader, Self::TestConnection)?,
            "fetchAllConnectionsInfo" => without_arguments(reader, Self::FetchConnections)?,
            "getBackupConfiguration" => without_arguments(reader, Self::BackupConfiguration)?,
            "executeStatement" | "executeQueryStatement" | "executeUpdateStatement" => {
                Self::ExecuteStatement(argument(reader)?, DataSet)
            }
            "executeStatementV2" | "executeQueryStatementV2" | "executeUpdateStatementV2" => {
                Self::ExecuteStatement(argument(reader)?, Blocks)
            }
            "executeBatchStatement" => Self::ExecuteBatch(argument(reader)?),
            "executeRawDataQuery" => Self::RawDataQuery(argument(reader)?, DataSet),
            "executeRawDataQueryV2" => Self::RawDataQuery(argument(reader)?, Blocks),
            "executeLastDataQuery" => Self::LastDataQuery(argument(reader)?, DataSet),
            "executeLastDataQueryV2" => Self::LastDataQuery(argument(reader)?, Blocks),
            "executeFastLastDataQueryForOneDeviceV2" => {
                Self::FastLastDataQuery(argument(reader)?, Blocks)
            }
            "executeAggregationQuery" => Self::AggregationQuery(argument(reader)?, DataSet),
            "executeAggregationQueryV2" => Self::AggregationQuery(argument(reader)?, Blocks),
            "fetchResults" => Self::FetchResults(argument(reader)?, DataSet),
            "fetchResultsV2" => Self::FetchResults(argument(reader)?, Blocks),
            "fetchMetadata" => Self::FetchMetadata(argument(reader)?),
            "setStorageGroup" => Self::SetStorageGroup(second_argument(reader)?),
            "deleteStorageGroups" => Self::DeleteStorageGroups(second_argument(reader)?),
            "createTimeseries" => Self::CreateTimeseries(argument(reader)?),
            "createAlignedTimeseries" => Self::CreateAlignedTimeseries(argument(reader)?),
            "createMultiTimeseries" => Self::CreateMultiTimeseries(argument(reader)?),
            "deleteTimeseries" => Self::DeleteTimeseries(second_argument(reader)?),
            "deleteData" => Self::DeleteData(argument(reader)?),
            "insertRecord" => Self::InsertRecord(argument(reader)?, Store),
            "testInsertRecord" => Self::InsertRecord(argument(reader)?, Test),
            "insertStringRecord" => Self::InsertStringRecord(argument(reader)?, Store),
            "testInsertStringRecord" => Self::InsertStringRecord(argument(reader)?, Test),
            "insertTablet" => Self::InsertTablet(argument(reader)?, Store),
            "testInsertTablet" => Self::InsertTablet(argument(reader)?, Test),
            "insertTablets" => Self::InsertTablets(argument(reader)?, Store),
            "testInsertTablets" => Self::InsertTablets(argument(reader)?, Test),
            "insertRecords" => Self::InsertRecords(argument(reader)?, Store),
            "testInsertRecords" => Self::InsertRecords(argument(reader)?, Test),
            "insertRecordsOfOneDevice" => Self::InsertRecordsOfOneDevice(argument(reader)?, Store),
            "testInsertRecordsOfOneDevice" => {
                Self::InsertRecordsOfOneDevice(argument(reader)?, Test)
            }
            "insertStringRecords" => Self::InsertStringRecords(argument(reader)?, Store),
            "testInsertStringRecords" => Self::InsertStringRecords(argument(reader)?, Test),
            "insertStringRecordsOfOneDevice" => {
                Self::InsertStringRecordsOfOneDevice(argument(reader)?, Store)
            }
            "testInsertStringRecordsOfOneDevice" => {
                Self::InsertStringRecordsOfOneDevice(argument(reader)?, Test)
            }
            _ => return Ok(None),
        }))
    }
}

fn argument<'a, T: WireRead<'a>>(reader: &mut WireReader<'a>) -> Result<T, WireFault> {
    argument_with_id(reader, 1, "req")
}

/// The argument after the number of the session.
fn second_argument<'a, T: WireRead<'a>>(reader: &mut WireReader<'a>) -> Result<T, WireFault> {
    argument_with_id(reader, 2, "path")
}

fn argument_with_id<'a, T: WireRead<'a>>(
    reader: &mut WireReader<'a>,
    wanted: i16,
    field: &'static str,
) -> Result<T, WireFault> {
    let mut found = None;
    reader.fields(|reader, id, kind: WireType| {
        if id != wanted || kind != T::TYPE {
            return Ok(false);
        }
        found = Some(T::read(reader)?);
        Ok(true)
    })?;
    found.ok_or(WireFault::MissingField {
        structure: "the arguments",
        field,
    })
}

fn without_arguments<'a>(
    reader: &mut WireReader<'a>,
    call: ClientCall<'a>,
) -> Result<ClientCall<'a>, WireFault> {
    reader.fields(|_, _, _| Ok(false))?;
    Ok(call)
}
