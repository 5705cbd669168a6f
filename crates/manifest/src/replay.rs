//! Reading a log: what counts, what was torn, what is damaged.

use crate::bytes::{MalformedRecord, RecordReader};
use crate::error::ManifestError;
use crate::record::{EDIT, LoggedState, PREFIX_BYTES, SEAL, SEAL_BYTES, SNAPSHOT};
use marigram_codec::{ChecksummedPrefix, frame};
use marigram_model::LogOwner;
use std::path::Path;

/// The end of a log that was dropped on opening: an edit whose commit never returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// First byte dropped.
    pub offset: u64,
    /// Why it is not a whole record.
    pub reason: &'static str,
}

/// The extent of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogExtent {
    /// Number of its snapshot.
    pub base: u64,
    /// Number of its last edit; that of the snapshot where there is none.
    pub number: u64,
    /// The file up to the end of that edit.
    pub extent: ChecksummedPrefix,
}

/// The contents of a log.
#[derive(Debug)]
pub(crate) struct ReplayedLog<S> {
    pub(crate) state: S,
    /// Version of the format that the file has.
    pub(crate) version: u32,
    /// The owner that the header names.
    pub(crate) owner: Option<LogOwner>,
    /// What there is of the log: up to its last edit, or its snapshot where there is none.
    pub(crate) extent: LogExtent,
    /// Header and snapshot.
    pub(crate) snapshot: ChecksummedPrefix,
    /// Everything that is valid, seals included.
    pub(crate) whole: ChecksummedPrefix,
    /// Whether the last record is a seal.
    pub(crate) is_sealed: bool,
    pub(crate) torn: Option<TornTail>,
}

/// Reads a log that stands at `path` (for messages).
pub(crate) fn replay<S: LoggedState>(
    path: &Path,
    bytes: &[u8],
) -> Result<ReplayedLog<S>, ManifestError> {
    let corrupt = |offset: usize, reason: String| ManifestError::Corrupt {
        path: path.to_owned(),
        offset: offset as u64,
        reason,
    };
    let header = whole(bytes, 0).map_err(|reason| corrupt(0, reason.to_owned()))?;
    let (version, rest) = header
        .payload
        .strip_prefix(&S::MAGIC)
        .and_then(|rest| rest.split_first_chunk())
        .map(|(version, rest)| (u32::from_le_bytes(*version), rest))
        .ok_or_else(|| corrupt(0, format!("this is no {} of Marigram", S::FILE)))?;
    if version == 0 || version > S::VERSION {
        let (path, found, supported) = (path.to_owned(), version, S::VERSION);
        return Err(ManifestError::Version {
            path,
            found,
            supported,
        });
    }
    let owner = match (S::OWNER_SINCE, rest) {
        (Some(since), rest) if version >= since => rest.try_into().map(LogOwner::from_bytes).ok(),
        (_, []) => Some(None),
        _ => None,
    };
    let owner = owner.ok_or_else(|| corrupt(0, "the header has another length".to_owned()))?;
    let start = header.end;
    let snapshot = whole(bytes, start).map_err(|reason| corrupt(start, reason.to_owned()))?;
    let (mut number, kind, mut reader) =
        prefix(snapshot.payload).map_err(|malformed| corrupt(start, malformed.to_string()))?;
    if kind != SNAPSHOT {
        return Err(corrupt(
            start,
            "the first record is not a snapshot".to_owned(),
        ));
    }
    let state = S::decode(&mut reader, version).and_then(|state| reader.end().map(|()| state));
    let mut state = state.map_err(|malformed| corrupt(start, malformed.to_string()))?;
    let (base, mut at) = (number, snapshot.end);
    let (mut torn, mut is_sealed) = (None, false);
    let snapshot = ChecksummedPrefix::new(&bytes[..at]);
    let (mut whole_log, mut edits) = (snapshot, snapshot);
    while at < bytes.len() {
        let record = match whole(bytes, at) {
            Ok(record) => record,
            Err(_) if is_torn_seal::<S>(bytes, at, number, version, whole_log == edits) => {
                whole_log.grow(&bytes[at..at + SEAL_BYTES]);
                at += SEAL_BYTES;
                continue;
            }
            Err(reason) => {
                if let Some(later) = later_record(bytes, at + 1, number + 1) {
                    let reason = format!("{reason}, though a whole record follows at byte {later}");
                    return Err(corrupt(at, reason));
                }
                torn = Some(TornTail {
                    offset: at as u64,
                    reason,
                });
                is_sealed = false;
                break;
            }
        };
        let before = (version >= S::SEALS_TELL).then_some(whole_log);
        is_sealed = apply(&mut state, &mut number, before, version, record.payload)
            .map_err(|malformed| corrupt(at, malformed.to_string()))?;
        whole_log.grow(&bytes[at..record.end]);
        if !is_sealed {
            edits = whole_log;
        }
        at = record.end;
    }
    Ok(ReplayedLog {
        state,
        version,
        owner,
        extent: LogExtent {
            base,
            number,
            extent: edits,
        },
        snapshot,
        whole: whole_log,
        is_sealed,
        torn,
    })
}

/// Whether the damage at `at` is a seal that power loss tore together with what follows it: the next edit,
/// which was appended before a sync made the seal durable. The edit may be whole; its commit did not return,
/// or else its own seal would follow. `is_after_edit`: the record before is an edit.
fn is_torn_seal<S: LoggedState>(
    bytes: &[u8],
    at: usize,
    number: u64,
    version: u32,
    is_after_edit: bool,
) -> bool {
    if !is_after_edit || version < S::SEALS_TELL || at + SEAL_BYTES > bytes.len() {
        return false;
    }
    let Ok(next) = whole(bytes, at + SEAL_BYTES) else {
        return false;
    };
    let is_edit = prefix(next.payload)
        .is_ok_and(|(found, kind, _)| kind == EDIT && Some(found) == number.checked_add(1));
    is_edit && later_record(bytes, next.end, number + 1).is_none()
}

/// Applies an edit or seal to the state after edit `number`; returns whether it was a seal.
/// `before`: what a seal must say of the bytes before it, if seals of the version say anything.
fn apply<S: LoggedState>(
    state: &mut S,
    number: &mut u64,
    before: Option<ChecksummedPrefix>,
    version: u32,
    payload: &[u8],
) -> Result<bool, MalformedRecord> {
    let (found, kind, mut reader) = prefix(payload)?;
    match kind {
        SEAL if found == *number => {
            if let Some(before) = before {
                let (bytes, checksum) = (reader.u64()?, reader.u32()?);
                if (ChecksummedPrefix { bytes, checksum }) != before {
                    let reason = "length and checksum are not those of the file up to here";
                    return Err(MalformedRecord(reason.to_owned()));
                }
            }
            reader.end().map(|()| true)
        }
        EDIT if Some(found) == number.checked_add(1) => {
            let edit = S::decode_edit(&mut reader, version)?;
            reader.end()?;
            state.check(&edit).map_err(MalformedRecord)?;
            state.apply_checked(&edit);
            *number = found;
            Ok(false)
        }
        _ => Err(MalformedRecord(format!(
            "a record of kind {kind} and number {found} cannot follow edit {number}"
        ))),
    }
}

struct WholeRecords<'a> {
    payload: &'a [u8],
    end: usize,
}

fn whole(bytes: &[u8], at: usize) -> Result<WholeRecords<'_>, &'static str> {
    match frame::read(&bytes[at..]) {
        frame::FrameRead::Frame { payload, len } => Ok(WholeRecords {
            payload,
            end: at + len,
        }),
        frame::FrameRead::End => Err("the file ends early"),
        frame::FrameRead::Damaged(reason) => Err(reason),
    }
}

fn prefix(payload: &[u8]) -> Result<(u64, u8, RecordReader<'_>), MalformedRecord> {
    let mut reader = RecordReader::new(payload);
    Ok((reader.u64()?, reader.byte()?, reader))
}

/// Where the first whole record at or after byte `from` stands whose number is `number` or soon
/// after. What only looks like one by chance is told apart before its checksum is computed, so
/// that a long damaged stretch costs one pass.
fn later_record(bytes: &[u8], from: usize, number: u64) -> Option<usize> {
    let head_bytes = frame::HEADER_BYTES + PREFIX_BYTES;
    (from..bytes.len().saturating_sub(head_bytes - 1)).find(|at| {
        let Ok((found, kind, _)) = prefix(&bytes[at + frame::HEADER_BYTES..]) else {
            return false;
        };
        let soon = number.saturating_add((bytes.len() / head_bytes) as u64);
        (number..=soon).contains(&found)
            && (kind == EDIT || kind == SEAL)
            && matches!(frame::read(&bytes[*at..]), frame::FrameRead::Frame { .. })
    })
}
