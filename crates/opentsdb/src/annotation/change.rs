//! What a client says of an annotation.

use super::{Annotation, checked_tsuid, milliseconds};
use crate::checked_query::TIME_MAX_MS;
use crate::error::{QueryFault, missing_content};
use crate::scalar::Scalar;
use crate::time_text::{parse_time, zone};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Annotations of one request.
const CHANGES_MAX: usize = 1000;

/// What a client says of an annotation. What is empty or not there leaves what is stored as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationChange {
    tsuid: String,
    start_time: i64,
    end_time: i64,
    description: String,
    notes: String,
    custom: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ChangeBody {
    tsuid: Option<String>,
    start_time: Option<Scalar>,
    end_time: Option<Scalar>,
    description: Option<String>,
    notes: Option<String>,
    custom: Option<BTreeMap<String, Scalar>>,
}

impl AnnotationChange {
    /// Reads the parameters of a URL.
    ///
    /// # Errors
    /// If a time or the series is wrong.
    pub fn from_parameters(
        parameters: &[(String, String)],
        now_ms: i64,
    ) -> Result<Self, QueryFault> {
        let mut change = Self::default();
        for (name, value) in parameters {
            // As in OpenTSDB, the times of a URL are whole seconds.
            let seconds = || Ok(parse_time(value, now_ms, &zone(None)?)? / 1000);
            match name.as_str() {
                "tsuid" => change.tsuid = checked_tsuid(value)?,
                "start_time" if !value.is_empty() => change.start_time = seconds()?,
                "end_time" if !value.is_empty() => change.end_time = seconds()?,
                "description" => change.description.clone_from(value),
                "notes" => change.notes.clone_from(value),
                _ => {}
            }
        }
        if change.start_time < 1 {
            return Err(QueryFault::new("Missing start time"));
        }
        Ok(change)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// If it is no annotation.
    pub fn from_json(body: &[u8]) -> Result<Self, QueryFault> {
        Self::from_body(serde_json::from_slice(body).map_err(|error| unreadable(&error))?)
    }

    /// Reads a body with several annotations.
    ///
    /// # Errors
    /// If it is no array of annotations that can be stored, or a very long one.
    pub fn list_from_json(body: &[u8]) -> Result<Vec<Self>, QueryFault> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(missing_content());
        }
        let bodies: Vec<ChangeBody> =
            serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        if bodies.len() > CHANGES_MAX {
            return Err(QueryFault::new(format!(
                "There are more than {CHANGES_MAX} annotations"
            )));
        }
        let changes = bodies.into_iter().enumerate().map(|(place, body)| {
            let change = Self::from_body(body)?;
            let number = place + 1;
            change.check_start().map_err(|fault| {
                fault.with_details(format!("Annotation error: number {number} of the list"))
            })?;
            Ok(change)
        });
        changes.collect()
    }

    fn from_body(body: ChangeBody) -> Result<Self, QueryFault> {
        let number = |time: Option<Scalar>| match time {
            None => Ok(0),
            Some(Scalar::Integer(number)) => Ok(number),
            Some(Scalar::Float(number)) => Ok(number as i64),
            Some(Scalar::Text(text)) => text.trim().parse().map_err(|_| {
                QueryFault::new("Unable to parse the given JSON")
                    .with_details(format!("'{text:.50}' is no number of seconds"))
            }),
        };
        let custom = body.custom.map(|custom| {
            let pairs = custom.into_iter();
            pairs.map(|(key, value)| (key, value.to_string())).collect()
        });
        Ok(Self {
            tsuid: checked_tsuid(&body.tsuid.unwrap_or_default())?,
            start_time: number(body.start_time)?,
            end_time: number(body.end_time)?,
            description: body.description.unwrap_or_default(),
            notes: body.notes.unwrap_or_default(),
            custom,
        })
    }

    /// Refuses an annotation without a time.
    ///
    /// # Errors
    /// In OpenTSDB's words.
    pub fn check_start(&self) -> Result<(), QueryFault> {
        if self.start_time < 1 {
            return Err(QueryFault::new("The start timestamp has not been set"));
        }
        if milliseconds(self.start_time) > TIME_MAX_MS {
            return Err(QueryFault::new(format!(
                "The start timestamp is after {TIME_MAX_MS}"
            )));
        }
        Ok(())
    }

    /// Its series, `""` for all, and when it begins, ms.
    pub fn place(&self) -> (String, i64) {
        (self.tsuid.clone(), milliseconds(self.start_time))
    }

    /// Whether it says anything.
    pub fn has_changes(&self) -> bool {
        self.end_time != 0
            || !self.description.is_empty()
            || !self.notes.is_empty()
            || self.custom.is_some()
    }

    /// The annotation that is to be stored where `stored` is, or instead of all that is there.
    pub fn applied(&self, stored: Option<&Annotation>, replaces: bool) -> Annotation {
        let stored = stored.filter(|_| !replaces).cloned().unwrap_or_default();
        let changed = |new: &String, old: String| if new.is_empty() { old } else { new.clone() };
        Annotation {
            tsuid: self.tsuid.clone(),
            start_time: self.start_time,
            end_time: if self.end_time == 0 {
                stored.end_time
            } else {
                self.end_time
            },
            description: changed(&self.description, stored.description),
            notes: changed(&self.notes, stored.notes),
            custom: self.custom.clone().or(stored.custom),
        }
    }
}

fn unreadable(error: &serde_json::Error) -> QueryFault {
    QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
}
