//! Backup: copies the database, as it is at one moment, into a folder that keeps many such moments.
//!
//! `take` captures the moment (`capture`), stores what the folder lacks (`objects`) and then writes
//! the backup's record (`record`); only the record makes the backup exist (`folder`). [`restore`]
//! turns a backup into a data directory. `docs/formats/backup.md` describes the layout of the
//! folder; `docs/decisions/0013-backup.md` gives the reasons.
//!
//! Invariants: a record only names objects that are durable and complete; what a record names is
//! only removed after the record; a directory that is being restored is never mistaken for a
//! database.

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
pub use restore::{RestoreReport, RestoreSelection, restore, restore_part, schemas};
pub use take::{BackupOptions, BackupReport};
pub(crate) use take::{BackupOrigin, take};
