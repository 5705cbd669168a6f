//! TSBS's 13 questions in Marigram's SQL.
//!
//! TSBS stores the tags of a truck in a table of their own, or groups by them. Here, tags are
//! columns of each row, and a row may have lost one. So the name identifies a truck, and its other
//! tags come from its rows: `max(driver)` ignores rows without one. Conditions on a tag (`fleet =
//! …`) exclude rows that lost it.
//!
//! The statements also run on PostgreSQL with TimescaleDB. They differ from TSBS's in two points:
//! the length of a driving session is in seconds, not an interval, and the daily activity is a
//! fraction. A breakdown is defined as in TSBS's statement for TimescaleDB, ten minutes in which no
//! status is missing: that statement counts `status = 0`, true or false, and divides integers.

use crate::question::{Ask, Question};

/// First time of the data, seconds since the Unix epoch: 2016-01-01T00:00:00Z.
const START_S: i64 = 1_451_606_400;

/// Instances of a question that has parameters.
const INSTANCES: usize = 3;

const FLEETS: [&str; 4] = ["East", "West", "North", "South"];

const TEN_MINUTES_S: i64 = 600;

/// A question of TSBS's, with its parameters in braces.
#[derive(Clone, Copy)]
pub(super) struct Template {
    /// TSBS's name.
    pub(super) name: &'static str,
    sql: &'static str,
    /// Length of the window that it looks at, seconds, if it has one.
    window_s: Option<i64>,
    /// A truck counts if its windows of ten minutes are more than this fraction of all.
    sessions: f64,
}

macro_rules! template {
    ($name:literal) => {
        template!($name, None, 0.0)
    };
    ($name:literal, $window_s:expr, $sessions:expr) => {
        Template {
            name: $name,
            sql: include_str!(concat!($name, ".sql")),
            window_s: $window_s,
            sessions: $sessions,
        }
    };
}

/// The questions, in TSBS's order.
pub(super) const QUESTIONS: [Template; 13] = [
    template!("last-loc"),
    template!("single-last-loc"),
    template!("low-fuel"),
    template!("high-load"),
    template!("stationary-trucks", Some(TEN_MINUTES_S), 0.0),
    // TSBS says: more than 22 windows of four hours, five minutes of rest an hour.
    template!("long-driving-sessions", Some(4 * 3600), 22.0 / 24.0),
    // More than 60 windows of a day, ten hours.
    template!("long-daily-sessions", Some(24 * 3600), 60.0 / 144.0),
    template!("avg-vs-projected-fuel-consumption"),
    template!("avg-daily-driving-duration"),
    template!("avg-daily-driving-session"),
    template!("avg-load"),
    template!("daily-activity"),
    template!("breakdown-frequency"),
];

/// A range of times, seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    from_s: i64,
    to_s: i64,
}

impl Window {
    /// All of the data: `steps` of `step_s` seconds.
    pub(super) fn whole(steps: usize, step_s: u32) -> Self {
        Self {
            from_s: START_S,
            to_s: START_S + steps as i64 * i64::from(step_s),
        }
    }

    /// Range number `instance` of `length_s`: it begins after one quarter, one half or three
    /// quarters of the data. At most half of all data, if they cover less than a day.
    fn part(self, length_s: i64, instance: usize) -> Self {
        let all_s = self.to_s - self.from_s;
        let length_s = length_s.min(all_s / 2);
        let room_s = all_s - length_s;
        let from_s = self.from_s + room_s * (instance as i64 + 1) / (INSTANCES as i64 + 1);
        Self {
            from_s,
            to_s: from_s + length_s,
        }
    }
}

/// All questions about `trucks` trucks in `whole`, each with parameters in several instances.
pub(super) fn questions(trucks: usize, whole: Window) -> Vec<Question> {
    let instances = |template: Template| {
        let with_parameters = template.sql.contains('{');
        let count = if with_parameters { INSTANCES } else { 1 };
        (0..count).map(move |instance| Question {
            name: template.name.to_owned(),
            ask: Ask::Sql(template.fill(trucks, whole, instance)),
        })
    };
    QUESTIONS.into_iter().flat_map(instances).collect()
}

impl Template {
    fn fill(self, trucks: usize, whole: Window, instance: usize) -> String {
        let window = whole.part(self.window_s.unwrap_or(0), instance);
        let windows = (window.to_s - window.from_s) / TEN_MINUTES_S;
        let truck = trucks * (instance + 1) / (INSTANCES + 1);
        let parameters = [
            ("{fleet}", FLEETS[instance % FLEETS.len()].to_owned()),
            ("{truck}", format!("truck_{truck}")),
            ("{from}", written(window.from_s)),
            ("{to}", written(window.to_s)),
            (
                "{sessions}",
                ((windows as f64 * self.sessions) as i64).to_string(),
            ),
        ];
        let filled = parameters
            .iter()
            .fold(self.sql.to_owned(), |sql, (name, value)| {
                sql.replace(name, value)
            });
        filled.trim_end().to_owned()
    }
}

/// A time in RFC 3339, UTC. Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>), for times after 1970.
fn written(time_s: i64) -> String {
    let (days, second) = (time_s / 86_400 + 719_468, time_s % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SECOND_NS;
    use std::collections::BTreeMap;

    fn texts(trucks: usize, steps: usize) -> BTreeMap<String, Vec<String>> {
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for question in questions(trucks, Window::whole(steps, 10)) {
            let Ask::Sql(sql) = question.ask else {
                panic!("{} is not SQL", question.name);
            };
            texts.entry(question.name).or_default().push(sql);
        }
        texts
    }

    #[test]
    fn all_questions_are_there_with_their_parameters() {
        let texts = texts(4000, 34_560);
        assert_eq!(texts.len(), 13);
        for (name, instances) in &texts {
            let count = if instances[0].contains("= '") || name.starts_with("single") {
                3
            } else {
                1
            };
            assert_eq!(instances.len(), count, "{name}");
            assert!(
                instances.iter().all(|sql| !sql.contains(['{', '}', ';'])),
                "{name}"
            );
        }
        assert_eq!(
            texts["stationary-trucks"][1],
            "SELECT name, max(driver) AS driver\n\
             FROM readings\n\
             WHERE time >= '2016-01-02T23:55:00Z' AND time < '2016-01-03T00:05:00Z' \
             AND name IS NOT NULL AND fleet = 'West'\n\
             GROUP BY name\n\
             HAVING avg(velocity) < 1"
        );
        assert!(texts["long-driving-sessions"][0].ends_with("HAVING count(*) > 22"));
        assert!(texts["long-daily-sessions"][2].ends_with("HAVING count(*) > 60"));
        assert!(texts["single-last-loc"][2].contains("name IN ('truck_3000')"));
    }

    #[test]
    fn windows_lie_within_the_data() {
        for steps in [60, 91, 3_000, 34_560] {
            let whole = Window::whole(steps, 10);
            for length_s in [600, 4 * 3600, 24 * 3600] {
                let parts = [0, 1, 2].map(|instance| whole.part(length_s, instance));
                for part in parts {
                    assert!(whole.from_s <= part.from_s && part.to_s <= whole.to_s);
                    assert!(part.from_s < part.to_s);
                }
                assert!(parts[0] != parts[1] && parts[1] != parts[2]);
            }
        }
        for sql in &texts(2, 60)["single-last-loc"] {
            assert!(sql.contains("truck_0") || sql.contains("truck_1"), "{sql}");
        }
    }

    #[test]
    fn times_are_written_as_people_write_them() {
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
        assert_eq!(written(START_S), "2016-01-01T00:00:00Z");
        assert_eq!(written(1_456_790_399), "2016-02-29T23:59:59Z");
        assert_eq!(written(1_483_228_800), "2017-01-01T00:00:00Z");
        let start_ns = crate::generate::SourceSpec::Trucks {
            trucks: 1,
            steps: 1,
            step_s: 10,
        };
        assert_eq!(start_ns.build(1).span_ns().0, START_S * SECOND_NS);
    }
}
