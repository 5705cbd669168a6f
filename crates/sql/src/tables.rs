//! Tables of series as table providers of DataFusion: reading their rows ([`table`], [`series`])
//! and writing them ([`sink`], [`replaced`]), and their settings as text ([`written_settings`]).

pub(crate) mod batches;
pub(crate) mod notices;
pub(crate) mod replaced;
pub(crate) mod series;
pub(crate) mod sink;
pub(crate) mod table;
pub(crate) mod written_settings;
