//! Backup: what the database is at one moment, copied into a folder that keeps many such moments.
//!
//! `take` captures the moment (`capture`), stores what the folder lacks (`objects`) and
//! then writes the backup's record (`record`), by which alone it exists (`folder`). [`restore`]
//! makes a data directory of one. Layout of the folder: `docs/formats/backup.md`; why it is as it
//! is: `docs/decisions/0013-backup.md`.
//!
//! Invariants: a record names only objects that are durable and whole; what a record names is
//! removed only after the record; a directory that is being restored is never taken for a database.

mod capture;
mod check;
mod folder;
mod objects;
mod record;
mod restore;
mod take;

pub(crate) use check::verify;
pub use folder::{is_backup, list};
pub use record::BackupInfo;
pub use restore::{RestoreReport, Wanted, restore, restore_part, schemas};
pub use take::{BackupOptions, BackupReport};
pub(crate) use take::{BackupOrigin, take};
