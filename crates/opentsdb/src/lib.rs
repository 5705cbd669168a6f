//! OpenTSDB 2.4: points and queries, between text and values.
//!
//! Points come as lines of the telnet protocol ([`TelnetCommand`]) or as JSON ([`parse_put`]). A
//! query comes as parameters of a URL or as JSON ([`TsQuery`]); [`TsQuery::check`] gives the
//! [`CheckedQuery`] of each part, with its times, intervals and filters. What OpenTSDB computes from
//! the points of series is here as well: [`SeriesReducer`] downsamples a series and takes its rate,
//! [`GroupMerge`] aggregates the series of a group, [`GroupTags`] names what they share. An
//! [`ExpressionQuery`] computes with the results of several queries. An [`Annotation`] is a note about a
//! time.
//!
//! `docs/guides/opentsdb.md` names what differs from OpenTSDB on purpose.
//!
//! Invariants: no I/O, no clock, no panic on any input; memory grows with the input only.

mod aggregator;
mod annotation;
mod answer;
mod checked_query;
mod downsample;
mod error;
mod expression;
mod filter;
mod formula;
mod group;
mod interval;
mod java_number;
mod m_parameter;
mod point;
mod put;
mod query;
mod reducer;
mod request;
mod scalar;
mod sub_query;
mod telnet;
mod time_text;
mod uid;

pub use aggregator::{Aggregator, AggregatorState, Interpolation, PercentileEstimate};
pub use annotation::{
    ANNOTATION_FIELDS, ANNOTATION_TABLE, ANNOTATION_TAG, Annotation, AnnotationChange,
    AnnotationDeletion, AnnotationQuery, AnnotationRange, annotation_tag, annotation_tsuid,
};
pub use answer::{SERIES_KEY, SeriesHead, SeriesWriter};
pub use checked_query::{CheckedQuery, RateOptions};
pub use downsample::{Downsample, DownsampleInterval, FillPolicy};
pub use error::{PutFault, QueryFault};
pub use expression::{
    CheckedExpressions, ExpressionHead, ExpressionJoin, ExpressionMetric, ExpressionOutput,
    ExpressionQuery, ExpressionStep, JoinKind, JoinVariables, JoinedSeries, OutputWriter,
    SeriesSet,
};
pub use filter::{FILTERS, FilterDescription, TagTest, TagValueFilter};
pub use formula::{Formula, FormulaValue};
pub use group::{GroupMerge, GroupTags};
pub use interval::IntervalUnit;
pub use java_number::push_double;
pub use m_parameter::parse_m;
pub use point::{DataPoint, STORED_FIELD, TIME_COLUMN};
pub use put::{ParsedPut, PutBodyFault, RefusedPoint, parse_put};
pub use query::TsQuery;
pub use reducer::{SeriesPoint, SeriesReducer};
pub use request::{LastQuery, LookupQuery, NamedSeries, ReadRequest, SuggestQuery, SuggestedNames};
pub use sub_query::SubQuery;
pub use telnet::{TELNET_COMMANDS, TelnetCommand, is_http};
pub use uid::{series_uid, uid};
