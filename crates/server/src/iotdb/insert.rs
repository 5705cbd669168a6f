//! Reads the arguments of an insert into batches.

use super::catalog::TreeCatalog;
use super::insert_rows::{InsertRows, RowPreparation};
use bytes::Bytes;
use marigram_iotdb::wire::message_head;
use marigram_iotdb::{
    ClientCall, InsertPurpose, InsertTabletRequest, IotDbFault, Tablet, record_values,
};
use std::time::Instant;

/// Memory that the lists of a frame may take, beside its own bytes.
const LISTS_FREE: usize = 64 << 10;
const LISTS_PER_BYTE: usize = 8;

/// How the client is told what became of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsertShape {
    /// There is one.
    One,
    /// Each has a status.
    Many(usize),
}

/// An insert that was read.
pub(super) struct ReadInsert {
    pub(super) shape: InsertShape,
    pub(super) rows: RowPreparation,
}

/// Why an insert could not be read.
pub(super) enum InsertFault {
    /// The server does not have the method.
    UnknownMethod,
    /// The message is malformed.
    Wire(String),
    /// Nothing of it can be stored.
    Request(IotDbFault),
}

impl From<IotDbFault> for InsertFault {
    fn from(fault: IotDbFault) -> Self {
        Self::Request(fault)
    }
}

/// The memory that the lists of a frame may take.
pub(super) fn lists_bytes_max(frame: &[u8]) -> usize {
    frame.len().saturating_mul(LISTS_PER_BYTE) + LISTS_FREE
}

/// Whether a method stores rows, or would.
pub(super) fn is_insert(method: &str) -> bool {
    method.starts_with("insert") || method.starts_with("testInsert")
}

/// Reads an insert that came at `begin`.
///
/// # Errors
/// Why nothing of it can be stored.
pub(super) fn read_insert(
    frame: &Bytes,
    catalog: &TreeCatalog,
    begin: Instant,
) -> Result<ReadInsert, InsertFault> {
    let wire = |fault: marigram_iotdb::wire::WireFault| InsertFault::Wire(fault.to_string());
    let (head, mut reader) = message_head(frame, lists_bytes_max(frame)).map_err(wire)?;
    let call = ClientCall::read(head.method, &mut reader).map_err(wire)?;
    let call = call.ok_or(InsertFault::UnknownMethod)?;
    let mut rows = InsertRows::new(catalog, begin);
    let (shape, purpose) = add_call(&call, &mut rows)?;
    if purpose == InsertPurpose::Test {
        rows = InsertRows::new(catalog, begin);
    }
    Ok(ReadInsert {
        shape,
        rows: rows.finish(),
    })
}

fn add_call<'a>(
    call: &ClientCall<'a>,
    rows: &mut InsertRows<'a>,
) -> Result<(InsertShape, InsertPurpose), IotDbFault> {
    use InsertShape::{Many, One};
    Ok(match call {
        ClientCall::InsertRecord(it, purpose) => {
            refuse_tables(it.writes_to_table)?;
            let values = record_values(it.values, it.measurements.len())?;
            rows.add_record(0, (it.device, it.time), &it.measurements, &values)?;
            (One, *purpose)
        }
        ClientCall::InsertStringRecord(it, purpose) => {
            rows.add_texts(0, (it.device, it.time), &it.measurements, &it.values)?;
            (One, *purpose)
        }
        ClientCall::InsertTablet(it, purpose) => {
            add_tablet(it, rows)?;
            (One, *purpose)
        }
        ClientCall::InsertTablets(it, purpose) => {
            let count = it.devices.len();
            let (measurements, values) = (it.measurements.len(), it.values.len());
            check_lists(count, &[measurements, values])?;
            check_lists(count, &[it.times.len(), it.types.len(), it.rows.len()])?;
            for (part, device) in it.devices.iter().copied().enumerate() {
                let tablet = Tablet::new(
                    it.times[part],
                    it.values[part],
                    &it.types[part],
                    it.rows[part],
                )?;
                rows.add_tablet(part, device, &it.measurements[part], &tablet)?;
            }
            (Many(count), *purpose)
        }
        ClientCall::InsertRecords(it, purpose) => {
            let count = it.devices.len();
            let (measurements, values) = (it.measurements.len(), it.values.len());
            check_lists(count, &[measurements, values, it.times.len()])?;
            for (part, device) in it.devices.iter().copied().enumerate() {
                let measurements = &it.measurements[part];
                let values = record_values(it.values[part], measurements.len())?;
                rows.add_record(part, (device, it.times[part]), measurements, &values)?;
            }
            (Many(count), *purpose)
        }
        ClientCall::InsertRecordsOfOneDevice(it, purpose) => {
            let count = it.times.len();
            check_lists(count, &[it.measurements.len(), it.values.len()])?;
            for (part, time) in it.times.iter().enumerate() {
                let measurements = &it.measurements[part];
                let values = record_values(it.values[part], measurements.len())?;
                rows.add_record(part, (it.device, *time), measurements, &values)?;
            }
            (Many(count), *purpose)
        }
        ClientCall::InsertStringRecords(it, purpose) => {
            let count = it.devices.len();
            let (measurements, values) = (it.measurements.len(), it.values.len());
            check_lists(count, &[measurements, values, it.times.len()])?;
            for (part, device) in it.devices.iter().copied().enumerate() {
                let (measurements, values) = (&it.measurements[part], &it.values[part]);
                rows.add_texts(part, (device, it.times[part]), measurements, values)?;
            }
            (Many(count), *purpose)
        }
        ClientCall::InsertStringRecordsOfOneDevice(it, purpose) => {
            let count = it.times.len();
            check_lists(count, &[it.measurements.len(), it.values.len()])?;
            for (part, time) in it.times.iter().enumerate() {
                let (measurements, values) = (&it.measurements[part], &it.values[part]);
                rows.add_texts(part, (it.device, *time), measurements, values)?;
            }
            (Many(count), *purpose)
        }
        _ => return Err(IotDbFault::unsupported("the method is no insert")),
    })
}

fn add_tablet<'a>(
    request: &InsertTabletRequest<'a>,
    rows: &mut InsertRows<'a>,
) -> Result<(), IotDbFault> {
    refuse_tables(request.writes_to_table)?;
    if request.is_compressed == Some(true) {
        return Err(IotDbFault::unsupported(
            "compressed tablets are not supported: leave enableIoTDBRpcCompression and the encodings of \
             tablets off",
        ));
    }
    let (times, values) = (request.times, request.values);
    let tablet = Tablet::new(times, values, &request.types, request.rows)?;
    rows.add_tablet(0, request.device, &request.measurements, &tablet)
}

fn refuse_tables(writes_to_table: Option<bool>) -> Result<(), IotDbFault> {
    if writes_to_table != Some(true) {
        return Ok(());
    }
    Err(IotDbFault::unsupported(
        "IoTDB's table model is not supported: write to paths, or use SQL over PostgreSQL's protocol",
    ))
}

/// Checks that lists have a length.
fn check_lists(expected: usize, lens: &[usize]) -> Result<(), IotDbFault> {
    match lens.iter().find(|len| **len != expected) {
        None => Ok(()),
        Some(len) => Err(IotDbFault::parameter(format!(
            "the lists of the request have {expected} and {len} elements; they must have the same number"
        ))),
    }
}
