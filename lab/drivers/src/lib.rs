//! Drivers of the laboratory: what all of them share, and those of Marigram itself.
//!
//! A driver speaks to one database: it implements [`marigram_lab::target::Target`]. Code that
//! several databases share is here once; a driver holds only what is particular to its database.
//! From below to above: [`wait`], [`process`] (a server process), [`instance`] (a process or somebody
//! else's instance), [`http`], [`time`], [`sql`] (questions as SQL, by dialect), [`cells`] and [`arrow`]
//! (answers), [`pg`] (PostgreSQL's protocol), [`marigram`] (the drivers of Marigram's server). The other
//! databases are in the crate `marigram-lab-peers`.

#![allow(
    clippy::disallowed_methods,
    reason = "a laboratory reads the machine's clock and disk, as a client of a database does"
)]

pub mod arrow;
pub mod cells;
pub mod http;
pub mod instance;
pub mod marigram;
pub mod pg;
pub mod process;
pub mod sql;
pub mod time;
pub mod wait;

use marigram_lab::target::Kind;

/// The interfaces of Marigram's server.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    vec![marigram::HTTP, marigram::POSTGRES]
}
