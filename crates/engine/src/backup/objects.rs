//! Objects: files in a folder of backups whose names derive from their content.
//!
//! An object is uploaded under another name and renamed, so that a name stands for whole contents.
//! What is there already is not written again.

use super::folder::{BackupFolder, OBJECTS};
use super::record::{ObjectDigest, ObjectPiece};
use crate::error::{EngineError, Result};
use marigram_env::{ReadAt, UNFINISHED};
use sha2::{Digest as _, Sha256};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// Files other than segments are cut into pieces of this many bytes: when a log has grown, all
/// pieces but the last exist already.
pub(super) const PIECE_BYTES_MAX: u64 = 4 << 20;
/// Bytes read at a time.
const READ_BYTES: u64 = 1 << 20;

/// An open file to read from, and its path for messages.
pub(super) struct ReadableObject<'a> {
    pub file: &'a dyn ReadAt,
    pub path: &'a Path,
}

impl ReadableObject<'_> {
    /// Passes the bytes in `range` to `take`, part by part.
    fn each(&self, range: Range<u64>, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut buffer = Vec::new();
        let mut at = range.start;
        while at < range.end {
            buffer.resize((range.end - at).min(READ_BYTES) as usize, 0);
            self.file
                .read_exact_at(&mut buffer, at)
                .map_err(|error| EngineError::io(self.path, error))?;
            take(&buffer)?;
            at += buffer.len() as u64;
        }
        Ok(())
    }
}

/// A written object that has no name yet.
pub(super) struct UnnamedObject {
    pub name: String,
    pub piece: ObjectPiece,
}

/// Name of an object.
fn object_name(digest: ObjectDigest) -> String {
    format!("{OBJECTS}/{digest}")
}

impl BackupFolder {
    /// Whether the object exists with its full length.
    pub(super) fn has(&self, piece: ObjectPiece) -> Result<bool> {
        let name = object_name(piece.digest);
        let bytes = self.blobs.head(&name);
        Ok(bytes.map_err(|error| self.io(&name, error))? == Some(piece.bytes))
    }

    /// Stores a small range of a file as an object; also returns whether it is new.
    pub(super) fn store(
        &self,
        from: &ReadableObject<'_>,
        range: Range<u64>,
    ) -> Result<(ObjectPiece, bool)> {
        let mut hasher = Sha256::new();
        from.each(range.clone(), |bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        let piece = ObjectPiece {
            digest: ObjectDigest(hasher.finalize().into()),
            bytes: range.end - range.start,
        };
        if self.has(piece)? {
            return Ok((piece, false));
        }
        let unnamed = self.write_object(from, range)?;
        // The file is only appended to, so both passes read the same bytes.
        let (piece, is_new) = self.name(unnamed)?;
        Ok((piece, is_new))
    }

    /// Writes a range of a file under a temporary name; durable when it returns.
    pub(super) fn write_object(
        &self,
        from: &ReadableObject<'_>,
        range: Range<u64>,
    ) -> Result<UnnamedObject> {
        let name = format!("{OBJECTS}/object{UNFINISHED}");
        let io = |error| self.io(&name, error);
        let bytes = range.end - range.start;
        let write = || {
            let mut hasher = Sha256::new();
            let mut upload = self.blobs.upload(&name).map_err(io)?;
            from.each(range, |bytes| {
                hasher.update(bytes);
                upload.write(bytes).map_err(io)
            })?;
            upload.finish().map_err(io)?;
            Ok(ObjectDigest(hasher.finalize().into()))
        };
        match write() {
            Ok(digest) => Ok(UnnamedObject {
                piece: ObjectPiece { digest, bytes },
                name: name.clone(),
            }),
            Err(error) => {
                self.discard(&name);
                Err(error)
            }
        }
    }

    /// Names a written object, or removes it if an object of that name exists; also returns whether
    /// it is new.
    pub(super) fn name(&self, unnamed: UnnamedObject) -> Result<(ObjectPiece, bool)> {
        let piece = unnamed.piece;
        if self.has(piece)? {
            self.discard(&unnamed.name);
            return Ok((piece, false));
        }
        let name = object_name(piece.digest);
        self.blobs
            .rename(&unnamed.name, &name)
            .map_err(|error| self.io(&name, error))?;
        Ok((piece, true))
    }

    /// Removes an unfinished file. One that cannot be removed now is removed by a later backup.
    pub(super) fn discard(&self, name: &str) {
        if let Err(error) = self.blobs.delete(name) {
            tracing::debug!(name, %error, "an unfinished object stays");
        }
    }

    /// Passes an object's bytes to `take`, part by part, and checks them: returns `Corrupt` after
    /// the last part if they are not what was stored.
    pub(super) fn fetch(
        &self,
        piece: ObjectPiece,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let name = object_name(piece.digest);
        let path = self.blobs.location(&name);
        let corrupt = |offset, reason: String| EngineError::Corrupt {
            path: path.clone(),
            offset,
            reason,
        };
        let io = |error| EngineError::io(&path, error);
        let file = match self.blobs.open(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(corrupt(0, "the file is missing".to_owned()));
            }
            file => file.map_err(io)?,
        };
        let len = file.len().map_err(io)?;
        if len != piece.bytes {
            let reason = format!("the file has {len} bytes; it should have {}", piece.bytes);
            return Err(corrupt(len.min(piece.bytes), reason));
        }
        let mut hasher = Sha256::new();
        let readable = ReadableObject {
            file: &*file,
            path: &path,
        };
        readable.each(0..len, |bytes| {
            hasher.update(bytes);
            take(bytes)
        })?;
        if ObjectDigest(hasher.finalize().into()) == piece.digest {
            return Ok(());
        }
        Err(corrupt(0, "its SHA-256 does not match its name".to_owned()))
    }
}
