//! One part of a query, as it comes.

use crate::filter::{FilterSpec, TagValueFilter};
use crate::scalar::{Flag, Scalar};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Options of a rate as JSON has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RateSpec {
    pub counter: Flag,
    pub counter_max: Option<f64>,
    pub reset_value: Option<f64>,
    pub drop_resets: Flag,
}

/// One part of a query.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubQuery {
    pub(crate) aggregator: Option<String>,
    pub(crate) metric: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tsuids: Option<Vec<String>>,
    pub(crate) downsample: Option<String>,
    pub(crate) rate: Flag,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_options: Option<RateSpec>,
    pub(crate) tags: Option<BTreeMap<String, Scalar>>,
    pub(crate) filters: Option<Vec<FilterSpec>>,
    pub(crate) explicit_tags: Flag,
    /// Those of an `m`, which have no other form.
    #[serde(skip)]
    pub(crate) parsed: Vec<TagValueFilter>,
}
