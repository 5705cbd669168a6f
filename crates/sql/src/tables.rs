//! Tables of series as table providers of DataFusion: reading their rows ([`table`], [`series`])
//! and writing them ([`sink`], [`replaced`]), and their settings as text ([`written_settings`]).

pub mod batches;
pub mod notices;
pub mod replaced;
pub mod series;
pub mod sink;
pub mod table;
pub mod written_settings;
