//! What a study is: data, and the steps of a target with it.
//!
//! A study is only a plan: it decides, [`crate::run`] acts. A *setup* is one run of a target, from
//! an empty folder to its end; its *steps* write, ask, and measure. Every step has *knobs*, the
//! settings that the study varies. A report arranges its tables and plots by knobs.

use crate::generate::SourceSpec;
use crate::question::Question;
use crate::target::Tuning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How large a study is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A rehearsal of seconds; its figures mean nothing.
    Tiny,
    /// Everything within a quarter of an hour on two cores.
    Small,
    /// For a report.
    Medium,
    /// The published size.
    Paper,
}

/// Settings that a study varies, name → value: `clients` → `16`.
pub type Knobs = BTreeMap<String, String>;

/// A study.
#[derive(Clone, Copy)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// A title.
    pub title: &'static str,
    /// What it measures, in a sentence or two.
    pub about: &'static str,
    /// The publication that it repeats, or the reason for it.
    pub source: &'static str,
    /// Its plan at a scale.
    pub plan: fn(Scale) -> Plan,
}

/// What to do, and what to show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The setups, each one run of a target.
    pub setups: Vec<Setup>,
    /// Plots and tables of the report, in order.
    pub views: Vec<ReportView>,
    /// What the figures confirm or refute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// It varies Marigram's own settings, so peers take no part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marigram_only: bool,
}

/// One run of a target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// Unique within the study; letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The data.
    pub source: SourceSpec,
    /// Settings of the target.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One thing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// What the study varies here.
    pub knobs: Knobs,
    /// What is done.
    pub act: StepAction,
}

/// What is done in a step. Durations are wall-clock time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum StepAction {
    /// Clients write as fast as they can. Figures: `rows_per_s`, `points_per_s`, latencies of
    /// requests.
    Write(Write),
    /// Flush and merge. Figure: `settle_s`.
    Settle,
    /// Flush memory to disk, if the target has a command for it. Figure: `flush_s`.
    Flush,
    /// Figures: `bytes_per_row`, `bytes_per_point`, `disk_bytes`.
    Size,
    /// Kill and start. Figure: `restart_ms`.
    Restart,
    /// The target's memory and its own metrics. Figures: those of [`crate::target::Target::tell`];
    /// of a server also `rss_bytes` (resident memory now), `rss_peak_bytes` (its peak since the
    /// process began) and `rss_grown_bytes` (growth since the first such step of this run).
    Observe {
        /// Figures that the study knows in advance, for comparison.
        known: BTreeMap<String, f64>,
    },
    /// Clients ask. Each question has its own figures (`latency_ms` is the median) under the knob
    /// `question`.
    Ask(AskStep),
    /// Clients ask a mixture: each asks all names repeatedly, each time in another order, until
    /// [`AskStep::time_max`]. Figures as for [`StepAction::Ask`] for each name, and for all names together
    /// under `question` = `all`.
    Mix(AskStep),
    /// One client asks the first instance of each name once, with nothing in memory: before each,
    /// the target is restarted (if it is a process of the laboratory's) and its files are dropped
    /// from the page cache. Figures: `latency_ms`, `read_bytes` (bytes that the target read from
    /// disk).
    Cold(AskStep),
    /// Writers and askers together. Figures of both, under the knob `side` = `write` or `ask`.
    Mixed {
        /// The writers, at a given pace.
        write: Write,
        /// The askers, until the writers have ended.
        ask: AskStep,
    },
    /// Devices on the clock: each writes one row per period, and some questions are asked.
    Clock(ClockStep),
}

/// Writing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write {
    /// Clients, each with a connection.
    pub clients: usize,
    /// Rows per request.
    pub batch_rows: usize,
    /// The largest number of rows of all clients together; `None`: the whole source.
    pub rows_max: Option<u64>,
    /// Stop after this time.
    pub time_max: Option<Duration>,
    /// The target rate of all clients together, rows per second; `None`: as fast as they can.
    pub rows_per_s: Option<f64>,
    /// A suffix of the tables' names, so that a setup can write more than once.
    pub suffix: String,
}

/// Asking.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskStep {
    /// Clients, each with a connection.
    pub clients: usize,
    /// The questions; those of the same name are instances of one question, asked in turn.
    pub questions: Vec<Question>,
    /// How often each client asks each name (round robin over its instances), after one warm-up.
    pub times: usize,
    /// Stop asking one name after this time; it is asked at least once.
    pub time_max: Option<Duration>,
    /// As in [`Write::suffix`].
    pub suffix: String,
}

/// Devices on the clock: a search for the largest number of series for which a target keeps up.
///
/// The step generates its own data: `devices` × `fields` series. Each device writes one row every
/// `period`, devices are spread evenly over it, and `ask_share` of all requests are questions. The
/// target *keeps* the clock if the last row of every period is acknowledged before the next period
/// ends, and neither limit is exceeded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClockStep {
    /// The first number of devices; doubled while the target keeps the clock, then narrowed down.
    pub devices_min: u64,
    /// The largest number of devices.
    pub devices_max: u64,
    /// Fields of a device: series are devices × fields.
    pub fields: usize,
    /// The interval at which every device writes.
    pub period: Duration,
    /// Periods of a trial.
    pub periods: u32,
    /// Rows per request.
    pub batch_rows: usize,
    /// Clients.
    pub clients: usize,
    /// Fraction of the requests that are questions.
    pub ask_share: f64,
    /// Cores that the target may use.
    pub cores: Option<usize>,
    /// Resident memory that the target may use, bytes.
    pub memory_bytes: Option<u64>,
    /// A rehearsal: periods follow each other without waiting, and the clock counts as kept if the
    /// work of a period took less time than the period.
    pub virtual_time: bool,
}

/// A table or plot of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReportView {
    /// Its heading.
    pub title: String,
    /// What is shown.
    pub figure: String,
    /// Its unit, `ms`, `M rows/s`, `bytes`; the report scales by [`ReportView::scale`].
    pub unit: String,
    /// The report shows measured value × scale.
    pub scale: f64,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Knob on the x axis (bars if it is not a number).
    pub x: String,
    /// Knob that splits the view into several plots, one per value (`question`, `batch_rows`).
    pub split: Option<String>,
    /// Only steps whose knobs have these values.
    pub only: Knobs,
    /// A second figure (and its unit) on the right axis.
    pub second: Option<(String, String)>,
    /// Logarithmic y axis.
    pub log: bool,
    /// Figures that others published for this view, from other hardware.
    pub published: Vec<PublishedFigures>,
}

/// A series of published figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishedFigures {
    /// The system, `TDengine 1.6`.
    pub system: String,
    /// Where it was published, and on what hardware.
    pub source: String,
    /// Value of the split knob that it belongs to.
    pub split: Option<String>,
    /// Value of the x knob, and the figure in the view's unit.
    pub points: Vec<(String, f64)>,
}

/// A claim about figures, which a report confirms or refutes for each of Marigram's interfaces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The claim, a sentence without its full stop.
    pub says: String,
    /// Whose claim it is.
    pub source: String,
    /// The figure that it is about.
    pub figure: String,
    /// The results that it is about: those with these knobs.
    pub of: Knobs,
    /// What each of them is compared with.
    pub with: Comparison,
    /// The bound of the figure, or of its ratio to what it is compared with.
    pub bound: FigureBound,
}

/// What a result is compared with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Comparison {
    /// With nothing: the bound applies to the figure × this number.
    Itself(f64),
    /// With the result that differs from it in these knobs, and in no other.
    Result(Knobs),
    /// With the smallest figure among the results that differ from it in this knob, and in no other.
    Smallest(String),
}

/// An upper or lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FigureBound {
    /// Not above it.
    AtMost(f64),
    /// Not below it.
    AtLeast(f64),
}
