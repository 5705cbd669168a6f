//! The privileges that a user needs to run a statement.

use crate::ast::{Privilege, Select, Source, Statement};

/// A privilege that a user needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Required {
    /// Administer everything.
    Admin,
    /// Read or write a database.
    Database {
        /// The database; empty for that of the request.
        name: String,
        /// How the statement uses it.
        privilege: Privilege,
    },
}

impl Required {
    fn read(name: &str) -> Self {
        let (name, privilege) = (name.to_owned(), Privilege::Read);
        Self::Database { name, privilege }
    }

    fn all(name: &str) -> Self {
        let (name, privilege) = (name.to_owned(), Privilege::All);
        Self::Database { name, privilege }
    }

    fn write(name: &str) -> Self {
        let (name, privilege) = (name.to_owned(), Privilege::Write);
        Self::Database { name, privilege }
    }
}

/// All privileges that a user needs to run `statement`; none for SHOW DATABASES, whose answer
/// depends on the user. If InfluxDB requires less than the statement uses (cardinalities, WITH
/// MEASUREMENT, the target of a continuous query), this function requires what the statement uses.
/// A continuous query is a view, for which SQL requires all privileges, too.
pub fn required_privileges(statement: &Statement) -> Vec<Required> {
    match statement {
        Statement::Select(select) | Statement::Explain { select, .. } => of_select(select),
        Statement::ShowDatabases => Vec::new(),
        Statement::Delete { sources, .. } | Statement::DropSeries { sources, .. } => {
            let mut required = vec![Required::write("")];
            for source in sources {
                if let Source::Measurement(measurement) = source {
                    required.push(Required::write(&measurement.database));
                }
            }
            required.dedup();
            required
        }
        Statement::ShowContinuousQueries | Statement::ShowQueries => vec![Required::read("")],
        Statement::ShowSeries(show) => of_show(&show.database, &show.sources),
        Statement::ShowMeasurements(show) => {
            let measurement = show.measurement.iter().cloned();
            let sources: Vec<Source> = measurement.map(Source::Measurement).collect();
            of_show(&show.database, &sources)
        }
        Statement::ShowTagKeys(show) => of_show(&show.database, &show.sources),
        Statement::ShowTagValues(show) => of_show(&show.database, &show.sources),
        Statement::ShowFieldKeys(show) => of_show(&show.database, &show.sources),
        Statement::ShowRetentionPolicies(database) => vec![Required::read(database)],
        Statement::ShowCardinality(show) => of_show(&show.database, &show.sources),
        Statement::DropRetentionPolicy { database, .. } => vec![Required::write(database)],
        Statement::DropContinuousQuery { database, .. } => vec![Required::all(database)],
        Statement::CreateContinuousQuery(create) => {
            let mut required = of_select(&create.select);
            required.push(Required::all(&create.database));
            required
        }
        _ => vec![Required::Admin],
    }
}

/// READ of the database that SHOW names, and of those in its FROM.
fn of_show(database: &str, sources: &[Source]) -> Vec<Required> {
    let mut required = vec![Required::read(database)];
    for source in sources {
        if let Source::Measurement(measurement) = source
            && !measurement.database.is_empty()
        {
            required.push(Required::read(&measurement.database));
        }
    }
    required
}

fn of_select(select: &Select) -> Vec<Required> {
    let mut required = Vec::new();
    of_each_source(&select.sources, &mut required);
    if let Some(target) = &select.target {
        required.push(Required::write(&target.database));
    }
    required
}

fn of_each_source(sources: &[Source], required: &mut Vec<Required>) {
    for source in sources {
        match source {
            Source::Measurement(measurement) => {
                required.push(Required::read(&measurement.database));
            }
            Source::Subquery(select) => required.extend(of_select(select)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Required, required_privileges};
    use crate::parse_query;

    fn required(text: &str) -> Vec<Required> {
        required_privileges(&parse_query(text).expect(text).statements[0])
    }

    /// A statement that reads another database without asking for it leaks what is there.
    #[test]
    fn every_form_that_names_another_database_asks_for_it() {
        for text in [
            "SELECT v FROM other..m",
            "SELECT v FROM (SELECT v FROM (SELECT v FROM other..m))",
            "SELECT v FROM m, other../.*/",
            "EXPLAIN SELECT v FROM other..m",
            "SHOW SERIES FROM other..m",
            "SHOW SERIES FROM other../.*/ WHERE k = 'a'",
            "SHOW MEASUREMENTS WITH MEASUREMENT = other..m",
            "SHOW MEASUREMENTS WITH MEASUREMENT =~ other../.*/",
            "SHOW TAG KEYS FROM other..m",
            "SHOW TAG VALUES FROM other..m WITH KEY = k",
            "SHOW FIELD KEYS FROM other..m",
            "SHOW SERIES CARDINALITY FROM other..m",
            "SHOW SERIES EXACT CARDINALITY FROM other..m",
            "SHOW MEASUREMENT CARDINALITY FROM other..m",
            "SHOW MEASUREMENT EXACT CARDINALITY FROM other..m",
            "SHOW TAG KEY CARDINALITY FROM other..m",
            "SHOW TAG KEY EXACT CARDINALITY FROM other..m",
            "SHOW TAG VALUES CARDINALITY FROM other..m WITH KEY = k",
            "SHOW TAG VALUES EXACT CARDINALITY FROM other..m WITH KEY = k",
            "SHOW FIELD KEY CARDINALITY FROM other..m",
            "SHOW FIELD KEY EXACT CARDINALITY FROM other..m",
            "SHOW RETENTION POLICIES ON other",
            "CREATE CONTINUOUS QUERY q ON d BEGIN SELECT v INTO w FROM other..m END",
        ] {
            let all = required(text);
            assert!(all.contains(&Required::read("other")), "{text}: {all:?}");
        }
        for text in [
            "SELECT v INTO other..w FROM m",
            "DROP RETENTION POLICY p ON other",
        ] {
            let all = required(text);
            assert!(all.contains(&Required::write("other")), "{text}: {all:?}");
        }
        for text in [
            "DROP CONTINUOUS QUERY q ON other",
            "CREATE CONTINUOUS QUERY q ON other BEGIN SELECT v INTO w FROM m END",
        ] {
            let all = required(text);
            assert!(all.contains(&Required::all("other")), "{text}: {all:?}");
        }
    }

    #[test]
    fn statements_ask_for_what_they_touch() {
        let (read, write) = (Required::read, Required::write);
        for (text, expected) in [
            ("SELECT v FROM m", vec![read("")]),
            (
                "SELECT v FROM a..m, (SELECT w FROM b.c.n)",
                vec![read("a"), read("b")],
            ),
            ("SELECT v INTO d..w FROM m", vec![read(""), write("d")]),
            (
                "EXPLAIN ANALYZE SELECT v INTO w FROM m",
                vec![read(""), write("")],
            ),
            ("SHOW DATABASES", vec![]),
            ("SHOW SERIES ON d", vec![read("d")]),
            ("SHOW SERIES ON d FROM e..m", vec![read("d"), read("e")]),
            (
                "SHOW TAG VALUES FROM m, e..n WITH KEY = k",
                vec![read(""), read("e")],
            ),
            (
                "SHOW SERIES EXACT CARDINALITY ON d FROM e..m",
                vec![read("d"), read("e")],
            ),
            (
                "SHOW SERIES CARDINALITY ON d FROM e..m WHERE k =~ /^a/",
                vec![read("d"), read("e")],
            ),
            (
                "SHOW MEASUREMENTS ON d WITH MEASUREMENT = e..m",
                vec![read("d"), read("e")],
            ),
            (
                "SHOW MEASUREMENTS WITH MEASUREMENT =~ e../.*/ WHERE k =~ /^a/",
                vec![read(""), read("e")],
            ),
            ("DELETE FROM m", vec![write("")]),
            ("DROP RETENTION POLICY r ON d", vec![write("d")]),
            ("CREATE DATABASE d", vec![Required::Admin]),
            ("DROP MEASUREMENT m", vec![Required::Admin]),
            ("GRANT ALL TO u", vec![Required::Admin]),
            ("SHOW USERS", vec![Required::Admin]),
            ("KILL QUERY 1", vec![Required::Admin]),
            (
                "CREATE CONTINUOUS QUERY q ON d BEGIN SELECT v INTO e..w FROM m END",
                vec![read(""), write("e"), Required::all("d")],
            ),
        ] {
            assert_eq!(required(text), expected, "{text}");
        }
    }
}
