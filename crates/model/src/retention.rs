//! Retention policies: sets of tables of a database that keep their rows equally long.
//!
//! They are InfluxDB's. There a measurement is named by database, policy and name; here a table is
//! named by database and name. One policy of a database is *plain*: its tables carry the names of
//! their measurements. A table of any other policy is called `policy.measurement`.
//!
//! Invariant: two measurements of one database never share a table.

use crate::options::TableOptions;
use crate::schema::{Limits, SchemaError};
use crate::time::DAY_NS;
use std::borrow::Cow;

const HOUR_NS: i64 = 3_600_000_000_000;
const WEEK_NS: i64 = 7 * DAY_NS;

/// A retention policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Its name in its database.
    pub name: String,
    /// How long rows are kept, ns; `None` keeps them for ever.
    pub duration_ns: Option<i64>,
    /// Width of what InfluxDB calls a shard group, ns.
    pub shard_duration_ns: i64,
    /// Copies that a cluster would keep; nothing depends on it.
    pub replicas: u32,
    /// Whether its tables carry the plain names of their measurements.
    pub plain: bool,
}

/// The retention policies of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicies {
    /// The policies, in the order in which they were made.
    pub policies: Vec<RetentionPolicy>,
    /// The name of the one that is meant where none is named; empty if there is none.
    pub default: String,
}

impl RetentionPolicy {
    /// Shortest time for which a policy keeps rows, and shortest shard duration, ns.
    pub const DURATION_NS_MIN: i64 = HOUR_NS;
    /// Name of the policy that a database has from the start.
    pub const AUTOGEN: &str = "autogen";

    /// The shard duration of a policy that names none.
    #[must_use]
    pub fn usual_shard_duration_ns(duration_ns: Option<i64>) -> i64 {
        match duration_ns {
            Some(duration_ns) if duration_ns < 2 * DAY_NS => HOUR_NS,
            Some(duration_ns) if duration_ns < 180 * DAY_NS => DAY_NS,
            _ => WEEK_NS,
        }
    }

    /// `options` as the tables of the policy have them. Tables whose rows stay for ever keep their
    /// partition unless the policy asks for another than InfluxDB's usual one, which is chosen for
    /// InfluxDB's files.
    #[must_use]
    pub fn table_options(&self, options: TableOptions) -> TableOptions {
        let is_usual = self.duration_ns.is_none() && self.shard_duration_ns == WEEK_NS;
        TableOptions {
            ttl_ns: self.duration_ns,
            partition_ns: if is_usual {
                options.partition_ns
            } else {
                self.shard_duration_ns
            },
            ..options
        }
    }

    /// The measurement of which `table` is the table, if it may be one of this policy.
    fn measurement_of<'a>(&self, table: &'a str) -> Option<&'a str> {
        if self.plain {
            return Some(table);
        }
        let measurement = table.strip_prefix(&self.name)?.strip_prefix('.')?;
        (!measurement.is_empty()).then_some(measurement)
    }
}

/// The policies of a database for which nobody made any.
impl Default for RetentionPolicies {
    fn default() -> Self {
        let name = RetentionPolicy::AUTOGEN.to_owned();
        Self {
            policies: vec![RetentionPolicy {
                name: name.clone(),
                duration_ns: None,
                shard_duration_ns: WEEK_NS,
                replicas: 1,
                plain: true,
            }],
            default: name,
        }
    }
}

impl RetentionPolicies {
    /// The policy of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&RetentionPolicy> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    /// The policy that is meant where none is named.
    #[must_use]
    pub fn default_policy(&self) -> Option<&RetentionPolicy> {
        self.find(&self.default)
    }

    /// The policy to which a table belongs, and its measurement there; `None` for a table that has
    /// a plain name while no policy is plain.
    #[must_use]
    pub fn locate<'a>(&self, table: &'a str) -> Option<(&RetentionPolicy, &'a str)> {
        let owner = |plain: bool| {
            let mut policies = self.policies.iter().filter(move |p| p.plain == plain);
            policies.find_map(|policy| Some((policy, policy.measurement_of(table)?)))
        };
        owner(false).or_else(|| owner(true))
    }

    /// The name of a measurement's table in `policy`; `None` where it would be the table of another
    /// policy's measurement.
    #[must_use]
    pub fn table_name<'a>(
        &self,
        policy: &RetentionPolicy,
        measurement: &'a str,
    ) -> Option<Cow<'a, str>> {
        if !policy.plain {
            return Some(Cow::Owned(format!("{}.{measurement}", policy.name)));
        }
        let owner = self.locate(measurement);
        let is_own = owner.is_none_or(|(owner, _)| owner.plain);
        is_own.then_some(Cow::Borrowed(measurement))
    }

    /// Whether these can be a database's policies.
    ///
    /// # Errors
    /// A name that is none, or the contradiction.
    pub fn check(&self) -> Result<(), SchemaError> {
        let invalid = |reason: String| Err(SchemaError::RetentionPolicies { reason });
        for (at, policy) in self.policies.iter().enumerate() {
            let name = &policy.name;
            Limits::check_name("retention policy", name)?;
            let shortest = policy.duration_ns.unwrap_or(i64::MAX);
            if policy.shard_duration_ns < Limits::PARTITION_NS_MIN || shortest <= 0 {
                return invalid(format!("a duration of '{name}' is too short"));
            }
            for other in &self.policies[..at] {
                if begins_with_policy(name, &other.name) || begins_with_policy(&other.name, name) {
                    let other = &other.name;
                    return invalid(format!("'{name}' and '{other}' could not be told apart"));
                }
                if policy.plain && other.plain {
                    return invalid("two have tables with plain names".to_owned());
                }
            }
        }
        if !self.default.is_empty() && self.default_policy().is_none() {
            return invalid(format!("the default '{}' is not there", self.default));
        }
        Ok(())
    }
}

/// Whether a policy's name is another one's, alone or before a `.`: their tables would have the same
/// names.
fn begins_with_policy(name: &str, other: &str) -> bool {
    let rest = name.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str) -> RetentionPolicy {
        RetentionPolicy {
            name: name.to_owned(),
            duration_ns: Some(DAY_NS),
            shard_duration_ns: HOUR_NS,
            replicas: 1,
            plain: false,
        }
    }

    fn with_week() -> RetentionPolicies {
        let mut policies = RetentionPolicies::default();
        policies.policies.push(policy("week"));
        policies
    }

    #[test]
    fn each_measurement_has_a_table_of_its_own() {
        let policies = with_week();
        policies.check().unwrap();
        let [autogen, week] = &policies.policies[..] else {
            panic!("two policies");
        };
        let table = |policy, name| policies.table_name(policy, name).map(Cow::into_owned);
        assert_eq!(table(autogen, "cpu").as_deref(), Some("cpu"));
        assert_eq!(table(autogen, "a.b").as_deref(), Some("a.b"));
        assert_eq!(table(week, "cpu").as_deref(), Some("week.cpu"));
        assert_eq!(table(week, "week.cpu").as_deref(), Some("week.week.cpu"));
        assert_eq!(table(autogen, "week.cpu"), None, "it is the one of week");
        assert_eq!(table(autogen, "week.").as_deref(), Some("week."));
        assert_eq!(policies.locate("cpu"), Some((autogen, "cpu")));
        assert_eq!(policies.locate("week.cpu"), Some((week, "cpu")));
        assert_eq!(policies.locate("week."), Some((autogen, "week.")));
        let without = RetentionPolicies {
            policies: vec![policy("week")],
            default: String::new(),
        };
        assert_eq!(without.locate("cpu"), None);
        without.check().unwrap();
    }

    #[test]
    fn policies_that_contradict_one_another_are_refused() {
        let refused = |change: fn(&mut RetentionPolicies)| {
            let mut policies = with_week();
            change(&mut policies);
            policies.check().unwrap_err().to_string()
        };
        refused(|policies| policies.policies.push(policy("week")));
        refused(|policies| policies.policies.push(policy("week.end")));
        refused(|policies| policies.policies.push(policy("")));
        refused(|policies| policies.policies[1].plain = true);
        refused(|policies| policies.policies[1].duration_ns = Some(0));
        refused(|policies| policies.policies[1].shard_duration_ns = 0);
        refused(|policies| "month".clone_into(&mut policies.default));
        let mut weekend = with_week();
        weekend.policies.push(policy("weekend"));
        weekend.check().unwrap();
    }

    #[test]
    fn a_policy_sets_the_ttl_and_the_partition_of_its_tables() {
        let policies = with_week();
        let options = |at: usize| policies.policies[at].table_options(TableOptions::default());
        assert_eq!(options(0), TableOptions::default());
        assert_eq!(options(1).ttl_ns, Some(DAY_NS));
        assert_eq!(options(1).partition_ns, HOUR_NS);
        let usual = RetentionPolicy::usual_shard_duration_ns;
        assert_eq!(usual(None), WEEK_NS);
        assert_eq!(usual(Some(180 * DAY_NS)), WEEK_NS);
        assert_eq!(usual(Some(2 * DAY_NS)), DAY_NS);
        assert_eq!(usual(Some(DAY_NS)), HOUR_NS);
    }
}
