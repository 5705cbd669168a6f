//! Tables of series as table providers of DataFusion: reading their rows ([`table`], [`series`])
//! and writing them ([`sink`], [`replaced`], [`changed_rows`]), their settings as text ([`written_settings`]),
//! the partitions in which their rows are ([`table_partitions`]), and what works on them in the background
//! ([`hypertable_jobs`]).

pub(crate) mod batches;
pub(crate) mod changed_rows;
pub(crate) mod hypertable_jobs;
pub(crate) mod notices;
pub(crate) mod reference;
pub(crate) mod replaced;
pub(crate) mod series;
pub(crate) mod sink;
pub(crate) mod table;
pub(crate) mod table_partitions;
pub(crate) mod written_settings;
