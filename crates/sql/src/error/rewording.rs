//! Rewords the errors of DataFusion and Arrow for users.
//!
//! Every error of theirs passes [`in_our_words`]. Known errors get PostgreSQL's code and a sentence
//! that says what to do. In all others, types and values are written as in SQL, and parts that look
//! like a syntax tree are cut off.

use super::in_sql;
use marigram_service::ServiceError;

/// The replacement of an error.
struct RewordedError {
    sqlstate: &'static str,
    message: String,
    /// The wrong name, which gives the error its position.
    name: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "each rule ends in it")]
fn reworded(sqlstate: &'static str, message: impl Into<String>) -> Option<RewordedError> {
    Some(RewordedError {
        sqlstate,
        message: message.into(),
        name: None,
    })
}

fn reworded_name(
    sqlstate: &'static str,
    name: &str,
    message: impl Into<String>,
) -> Option<RewordedError> {
    let told = reworded(sqlstate, message)?;
    Some(RewordedError {
        name: Some(name.to_owned()),
        ..told
    })
}

/// Rewords an error of DataFusion or Arrow for users.
pub(super) fn in_our_words(error: ServiceError, sql: &str) -> ServiceError {
    let (message, position, sqlstate) = match error {
        ServiceError::Invalid {
            message,
            position,
            sqlstate,
        } => (message, position, sqlstate),
        // DataFusion reports some errors of users as internal errors.
        ServiceError::Internal(message) => match reword(&message) {
            Some(_) => (message, None, "XX000"),
            None => return ServiceError::Internal(message),
        },
        other => return other,
    };
    match reword(&message) {
        Some(told) => ServiceError::Invalid {
            position: position
                .or_else(|| super::position_of(sql, told.name.as_deref()?))
                .or_else(|| position_in_tree(&message, sql)),
            message: told.message,
            sqlstate: told.sqlstate,
        },
        None => ServiceError::Invalid {
            position: position.or_else(|| position_in_tree(&message, sql)),
            message: without_tree(&in_sql(&message)),
            sqlstate,
        },
    }
}

/// The replacement of a known message.
fn reword(message: &str) -> Option<RewordedError> {
    let message = message.strip_prefix("Execution error: ").unwrap_or(message);
    operators(message)
        .or_else(|| integers(message))
        .or_else(|| conversions(message))
        .or_else(|| booleans(message))
        .or_else(|| grouping(message))
        .or_else(|| names(message))
        .or_else(|| shapes(message))
        .or_else(|| bounds(message))
}

/// The text between `before` and the next `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// Errors for results that do not fit an integer type: `Int64Array overflow on abs(…)`.
fn integers(message: &str) -> Option<RewordedError> {
    let (array, _) = message.split_once("Array overflow on ")?;
    let kind = match array.rsplit([' ', ':']).next()? {
        "Int8" | "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        _ => return None,
    };
    reworded("22003", format!("{kind} out of range"))
}

/// Errors for types without a matching operator.
fn operators(message: &str) -> Option<RewordedError> {
    const STARTS: &[&str] = &[
        "Cannot infer common argument type for comparison operation ",
        "Cannot infer common argument type for regex operation ",
        "Cannot infer common type for bitwise operation ",
        "Cannot infer common string type for string concat operation ",
        "Cannot coerce arithmetic expression ",
        "Cannot get result type for arithmetic operation ",
    ];
    if let Some(rest) = STARTS.iter().find_map(|start| message.strip_prefix(start)) {
        let call = rest.split(" to valid types").next().unwrap_or(rest);
        let call = call.split(": Invalid argument").next().unwrap_or(call);
        return no_operator(call);
    }
    if let Some(types) = between(message, "common type to coerce ", " in LIKE") {
        return no_operator(&types.replacen(" and ", " LIKE ", 1));
    }
    if let Some(types) = between(message, "Failed to coerce types ", " in BETWEEN") {
        return no_operator(&types.replacen(" and ", " BETWEEN ", 1));
    }
    let from_to = message.strip_prefix("Cannot automatically convert ")?;
    no_operator(&from_to.replacen(" to ", " with ", 1))
}

fn no_operator(call: &str) -> Option<RewordedError> {
    let message = format!("there is no operator for {}; cast one side", in_sql(call));
    reworded("42883", message)
}

/// Errors for values that cannot be converted.
fn conversions(message: &str) -> Option<RewordedError> {
    for (start, middle, end) in [
        ("Cannot cast string '", "' to value of ", " type"),
        ("Cannot cast value '", "' to value of ", " type"),
        ("Can't cast value ", " to type ", ""),
    ] {
        let Some(rest) = message.strip_prefix(start) else {
            continue;
        };
        let (value, arrow) = rest.rsplit_once(middle)?;
        let arrow = arrow.strip_suffix(end).unwrap_or(arrow);
        return Some(no_such_value(value, arrow));
    }
    if let Some(rest) = message.split_once("received data of type ") {
        let (given, wanted) = rest.1.split_once(" for field of type ")?;
        let (given, wanted) = (in_sql(given), in_sql(wanted));
        let message = format!("a column of type {wanted} cannot take {given}; cast it");
        return reworded("42804", message);
    }
    if let Some(name) = message.strip_prefix("Unsupported SQL type ") {
        return reworded_name("42704", name, format!("type {name} is not supported"));
    }
    if message.starts_with("Error parsing timestamp") {
        return reworded("22007", in_sql(message));
    }
    if let Some(at) = message.find("regex parse error") {
        let reason = message[at..].rsplit("error: ").next().unwrap_or_default();
        return reworded(
            "2201B",
            format!("the regular expression is wrong: {}", reason.trim()),
        );
    }
    if message.contains("CompiledTooBig") {
        return reworded(
            "54000",
            "the regular expression is too large when its repetitions are written out",
        );
    }
    if message.starts_with("Invalid escape character in LIKE") {
        return reworded("22025", "ESCAPE takes one character");
    }
    if message.starts_with("There is no built-in encoding")
        || message.starts_with("Failed to decode value")
        || message.starts_with("Invalid timezone")
        || message.starts_with("Date part ")
        || message.starts_with("Unsupported date_trunc granularity")
        || message.starts_with("invalid Unicode scalar value")
    {
        return reworded("22023", in_sql(message));
    }
    if message.contains(" value '") && message.ends_with("is out of range") {
        return reworded("22008", message);
    }
    None
}

fn no_such_value(value: &str, arrow: &str) -> RewordedError {
    let sql = in_sql(arrow);
    let value = value.trim_matches('\'');
    let is_number = value.trim().parse::<f64>().is_ok();
    let is_of_time = matches!(sql.as_str(), "date" | "time" | "timestamp" | "interval");
    let looks_like_time = value.contains(|c: char| c.is_ascii_digit());
    let (sqlstate, message) = if is_of_time && looks_like_time {
        ("22008", format!("'{value}' is out of the range of {sql}"))
    } else if is_of_time {
        ("22007", format!("'{value}' is no {sql}"))
    } else if is_number && sql != "boolean" && !is_fraction_of_integer(value, &sql) {
        ("22003", format!("{value} is out of the range of {sql}"))
    } else {
        ("22P02", format!("'{value}' is no {sql}"))
    };
    RewordedError {
        sqlstate,
        message,
        name: Some(value.to_owned()),
    }
}

/// Whether a text is a number, but not a whole one, although a whole number is required.
fn is_fraction_of_integer(value: &str, sql: &str) -> bool {
    let is_integer = ["smallint", "integer", "bigint"]
        .iter()
        .any(|kind| sql.starts_with(kind));
    is_integer && value.trim().parse::<i128>().is_err() && !value.contains(['e', 'E'])
}

/// Errors for conditions that are not boolean.
fn booleans(message: &str) -> Option<RewordedError> {
    if let Some(rest) = message.strip_prefix("Cannot create filter with non-boolean predicate ") {
        let (_, arrow) = rest.rsplit_once(" returning ")?;
        return reworded(
            "42804",
            format!("WHERE takes a boolean, not {}", in_sql(arrow)),
        );
    }
    if let Some(arrow) = between(message, "Join condition must be boolean type, but got ", "") {
        return reworded(
            "42804",
            format!("ON takes a boolean, not {}", in_sql(arrow)),
        );
    }
    if let Some(arrow) =
        message.strip_prefix("Unary operator 'NOT' requires a boolean expression, got ")
    {
        return reworded(
            "42804",
            format!("NOT takes a boolean, not {}", in_sql(arrow)),
        );
    }
    let types =
        message.strip_prefix("Cannot infer common argument type for logical boolean operation ")?;
    reworded(
        "42804",
        format!("AND and OR take booleans, not {}", in_sql(types)),
    )
}

/// Errors for expressions that may not be beside or inside aggregates.
fn grouping(message: &str) -> Option<RewordedError> {
    if message.contains("must appear in the GROUP BY clause") {
        let column = between(message, "column \"", "\"")
            .or_else(|| between(message, "clause references: ", " must appear"))?;
        let shown = in_sql(column);
        let message = format!("{shown} must be in GROUP BY or in an aggregate");
        return reworded_name("42803", column, message);
    }
    if message.starts_with("Aggregate function calls cannot be nested") {
        let inner = in_sql(between(message, "'", "'")?);
        return reworded("42803", format!("aggregates cannot be nested: {inner}"));
    }
    if message.starts_with("Aggregate functions are not allowed in the WHERE clause") {
        return reworded(
            "42803",
            "an aggregate is not allowed in WHERE; write HAVING",
        );
    }
    if message.ends_with("to grouping function is not in grouping columns ") {
        return reworded("42803", "grouping takes columns of GROUP BY");
    }
    if message.starts_with("For SELECT DISTINCT, ORDER BY expressions ") {
        return reworded(
            "42P10",
            "with DISTINCT, ORDER BY takes columns of the SELECT list",
        );
    }
    let position = between(message, "Cannot find column with position ", " in")
        .or_else(|| between(message, "Order by column out of bounds, specified: ", ","))
        .or_else(|| {
            message
                .starts_with("Order by index starts at 1")
                .then_some("0")
        })?;
    reworded("42P10", format!("the SELECT list has no column {position}"))
}

/// Errors for names that do not exist, or are ambiguous.
fn names(message: &str) -> Option<RewordedError> {
    if let Some(column) = message.strip_prefix("Schema contains duplicate qualified field name ") {
        let (table, _) = column.rsplit_once('.')?;
        let table = table.trim_matches('"');
        let message = format!("table '{table}' appears twice in FROM; give one of them an alias");
        return reworded_name("42712", table, message);
    }
    if let Some(column) = message.strip_prefix("Schema contains duplicate unqualified field name ")
    {
        return reworded_name("42701", column, format!("column '{column}' is named twice"));
    }
    if message.starts_with("Projections require unique expression names") {
        let twice = message.split("the expression \"").nth(1)?;
        let twice = twice.split("\" at position").next()?;
        let name = in_sql(twice.rsplit(" AS ").next()?);
        return reworded(
            "42701",
            format!("column '{name}' is named twice; rename one of them"),
        );
    }
    if let Some(table) = message.strip_prefix("Invalid qualifier ") {
        return reworded_name(
            "42P01",
            table,
            format!("there is no table '{table}' in FROM"),
        );
    }
    if let Some(name) = between(message, "The window ", " is not defined") {
        return reworded_name("42704", name, format!("there is no window '{name}'"));
    }
    if let Some(name) = between(message, "WITH query name \"", "\" specified more") {
        return reworded_name("42712", name, format!("WITH names '{name}' twice"));
    }
    if let Some(name) = between(message, "table function '", "' not found") {
        return reworded_name(
            "42883",
            name,
            format!("there is no function '{name}' that returns rows"),
        );
    }
    if let Some(name) = between(message, "Placeholder '", "' was not provided") {
        return reworded("42P02", format!("there is no parameter {name}"));
    }
    if message.starts_with("Unsupported compound identifier") {
        let name = between(message, "identifier '", "'")?;
        return reworded(
            "42601",
            format!("'{name}' has too many parts: write table or database.table"),
        );
    }
    message
        .contains("support logical expression Wildcard")
        .then(|| reworded("42883", "only count takes '*' as an argument"))?
}

/// Errors for parts of a statement that do not match.
fn shapes(message: &str) -> Option<RewordedError> {
    if message.starts_with("Too many columns! The subquery should only return one") {
        return reworded("42601", "a subquery used as a value must have one column");
    }
    if message.contains("support logical expression ScalarSubquery") {
        let message = "a subquery used as a value can only refer to columns of the enclosing query by \
                       '='; write a join";
        return reworded("0A000", message);
    }
    if message.starts_with("Scalar subquery returned more than one row") {
        return reworded(
            "21000",
            "a subquery used as a value returned more than one row",
        );
    }
    if let Some(kind) = message.strip_suffix(" queries have different number of columns") {
        return reworded(
            "42601",
            format!("both sides of {kind} need the same number of columns"),
        );
    }
    if let Some(rest) = message.strip_prefix("Inconsistent data length across values list: got ") {
        let (got, rest) = rest.split_once(" values in row ")?;
        let (row, wanted) = rest.split_once(" but expected ")?;
        let row = row.parse::<u64>().ok()? + 1;
        return reworded("42601", format!("row {row} has {got} values, not {wanted}"));
    }
    if message.starts_with("Column count doesn't match insert query") {
        return reworded(
            "42601",
            "INSERT names a different number of columns than the query returns",
        );
    }
    if let Some(rest) = message.strip_prefix("Source table contains ") {
        let (has, rest) = rest
            .split_once(" columns but only ")
            .or_else(|| rest.split_once(" columns but "))?;
        let named = rest.split(' ').next()?;
        return reworded(
            "42P10",
            format!("{named} names are given for {has} columns"),
        );
    }
    if message == "join condition should not be empty" {
        return reworded(
            "42601",
            "a join needs ON … or USING (…); to join all pairs, write CROSS JOIN",
        );
    }
    if message.starts_with("Nested EXPLAINs") {
        return reworded("42601", "EXPLAIN does not explain EXPLAIN");
    }
    if let Some(clause) = between(message, "Insert-", " clause not supported") {
        let clause = if clause == "on" {
            "ON CONFLICT"
        } else {
            "RETURNING"
        };
        return reworded(
            "0A000",
            format!(
                "INSERT … {clause} is not supported; a row of the same tags and time replaces the other"
            ),
        );
    }
    if message.starts_with("Inserts without a source") {
        return reworded("0A000", "INSERT takes VALUES or a query");
    }
    forms(message)
}

/// Errors for clauses of UPDATE and DELETE, and for changes inside a query.
fn changes(message: &str) -> Option<RewordedError> {
    if message.starts_with("UPDATE ...") {
        let message = "UPDATE … FROM is not supported; take the values from a subquery";
        return reworded("0A000", message);
    }
    if message.starts_with("Tuples are not supported") {
        let message = "UPDATE … SET (a, b) = … is not supported; write SET a = …, b = …";
        return reworded("0A000", message);
    }
    if let Some(clause) = between(message, "Update-", " clause") {
        let clause = clause.to_uppercase();
        let message = format!("UPDATE … {clause} is not supported; SELECT the rows first");
        return reworded("0A000", message);
    }
    if message.starts_with("Using clause not supported") {
        let message = "DELETE … USING is not supported; write WHERE tag IN (SELECT …)";
        return reworded("0A000", message);
    }
    if message.starts_with("Delete-") {
        let clause = between(message, "Delete-", " clause")?.to_uppercase();
        let message = format!("DELETE … {clause} is not supported; SELECT the rows first");
        return reworded("0A000", message);
    }
    let query = between(message, "Query ", " not implemented yet")?;
    let verb = query.split(' ').next()?;
    let message = format!("{verb} inside a query is not supported; send it as its own statement");
    reworded("0A000", message)
}

/// Errors for forms of expressions and statements that are not supported.
fn forms(message: &str) -> Option<RewordedError> {
    if let Some(error) = changes(message) {
        return Some(error);
    }
    if let Some(operator) = message.split(" operator '").nth(1)
        && let Some(operator) = operator.strip_suffix("' is not supported in the physical expr")
    {
        let sign = BINARY_OPERATORS.iter().find(|(name, _)| *name == operator);
        let sign = sign.map_or("of this kind", |(_, sign)| *sign);
        return reworded("42883", format!("there is no operator {sign}"));
    }
    if message.starts_with("Substring without for/from") {
        return reworded(
            "42883",
            "substr takes a text, where it begins, and a length",
        );
    }
    if message.starts_with("Dot access not supported") {
        return reworded("42601", "only a column's name can have a '.' before it");
    }
    if let Some(name) = message.strip_suffix(" is not supported here")
        && !name.contains(' ')
    {
        return reworded(
            "0A000",
            format!("{} is not supported", statement_words(name)),
        );
    }
    if let Some(operator) = message.strip_prefix("Unsupported SQL unary operator ") {
        let sign = UNARY_OPERATORS.iter().find(|(name, _)| *name == operator);
        let sign = sign.map_or("of this kind", |(_, sign)| *sign);
        return reworded(
            "42883",
            format!("there is no operator {sign} before a value"),
        );
    }
    if message.starts_with("Unsupported Value ") {
        return reworded(
            "0A000",
            "a literal of this form is not supported; write '…'",
        );
    }
    if message.starts_with("Unsupported Interval Expression")
        || message.starts_with("Unsupported interval argument")
    {
        return reworded(
            "0A000",
            "fields of an interval are not supported; write the unit in the text: INTERVAL '5 minutes'",
        );
    }
    if message.contains("not supported for unknown") {
        return reworded("42883", "an aggregate takes values; only count takes *");
    }
    if let Some(statement) = message.strip_prefix("Unsupported SQL statement: ") {
        let words: Vec<&str> = statement.split(' ').take(2).collect();
        let is_keyword = |word: &&&str| word.chars().all(|c| c.is_ascii_uppercase());
        let words: Vec<&str> = words.iter().take_while(is_keyword).copied().collect();
        return reworded("0A000", format!("{} is not supported", words.join(" ")));
    }
    unsupported_statements(message)
}

/// Errors for statements, and options of EXPLAIN, that are not supported.
fn unsupported_statements(message: &str) -> Option<RewordedError> {
    if message.starts_with("Invalid explain format") {
        let message = "EXPLAIN has no such format; it has indent, tree, pgjson and graphviz";
        return reworded("22023", message);
    }
    if let Some(option) = between(message, "EXPLAIN option ", " is not supported") {
        return reworded("0A000", format!("EXPLAIN has no option {option}"));
    }
    if message.starts_with("unknown EXPLAIN option") {
        return reworded("22023", message);
    }
    if message.starts_with("Temporary tables not supported") {
        let message = "temporary tables are not supported; CREATE TABLE … and DROP TABLE, or WITH";
        return reworded("0A000", message);
    }
    let operator = message.strip_prefix("Unsupported binary operator: ")?;
    let sign = BINARY_OPERATORS.iter().find(|(name, _)| *name == operator);
    let sign = sign.map_or("of this kind", |(_, sign)| *sign);
    reworded("42883", format!("there is no operator {sign}"))
}

/// Operators that are not supported: the parser's names, and the way they are written.
const BINARY_OPERATORS: [(&str, &str); 12] = [
    ("PGOverlap", "&&"),
    ("PGRegexNotMatch", "!~"),
    ("PGExp", "^"),
    ("Arrow", "->"),
    ("LongArrow", "->>"),
    ("HashArrow", "#>"),
    ("HashLongArrow", "#>>"),
    ("AtAt", "@@"),
    ("AtArrow", "@>"),
    ("ArrowAt", "<@"),
    ("Question", "?"),
    ("Overlaps", "OVERLAPS between other than two pairs of times"),
];

/// Prefix operators: the parser's names, and the way they are written.
const UNARY_OPERATORS: [(&str, &str); 8] = [
    ("PGBitwiseNot", "~"),
    ("BitwiseNot", "~"),
    ("PGSquareRoot", "|/"),
    ("PGCubeRoot", "||/"),
    ("PGPostfixFactorial", "!"),
    ("PGPrefixFactorial", "!!"),
    ("PGAbs", "@"),
    ("DoubleAt", "@@"),
];

/// The keywords of a kind of statement: `CreateView` becomes `CREATE VIEW`.
fn statement_words(kind: &str) -> String {
    let mut words = String::new();
    for sign in kind.chars() {
        let begins = sign.is_uppercase() && words.ends_with(char::is_lowercase);
        if begins {
            words = words.to_uppercase();
            words.push(' ');
        }
        words.push(sign);
    }
    words.to_uppercase()
}

/// Errors for numbers out of bounds.
fn bounds(message: &str) -> Option<RewordedError> {
    if message.starts_with("LIMIT must be >= 0") {
        return reworded("2201W", "LIMIT cannot be negative");
    }
    if message.starts_with("OFFSET must be >=") {
        return reworded("2201X", "OFFSET cannot be negative");
    }
    for clause in ["LIMIT", "OFFSET"] {
        if let Some(rest) = message.strip_prefix(&format!("Expected {clause} to be an integer")) {
            let arrow = rest.rsplit("got ").next()?;
            return reworded(
                "42804",
                format!("{clause} takes a whole number, not {}", in_sql(arrow)),
            );
        }
    }
    if message.starts_with("Invalid window frame") {
        return reworded("42P20", in_sql(message));
    }
    let sqlstate = [
        ("cannot take square root of a negative", "2201F"),
        ("zero raised to a negative power", "2201F"),
        ("factorial of a negative number", "22003"),
        ("negative count not allowed", "22011"),
        ("NTILE requires a positive integer", "22014"),
        ("Percentile value must be between", "22003"),
        ("step can't be 0", "22023"),
        ("DATE_BIN stride must be", "22023"),
    ]
    .into_iter()
    .find_map(|(start, sqlstate)| message.starts_with(start).then_some(sqlstate))?;
    reworded(sqlstate, in_sql(message))
}

/// A message up to the start of a syntax tree.
fn without_tree(message: &str) -> String {
    let Some((before, _)) = message.split_once(" { ") else {
        return message.to_owned();
    };
    match before.rsplit_once(": ") {
        Some((said, _)) if !said.contains("ast node") => said.to_owned(),
        _ => "this expression is not supported".to_owned(),
    }
}

/// The position that a syntax tree in a message contains.
fn position_in_tree(message: &str, sql: &str) -> Option<usize> {
    let place = between(message, "Span(Location(", ")")?;
    let (line, column) = place.split_once(',')?;
    super::character(
        sql,
        datafusion::sql::sqlparser::tokenizer::Location {
            line: line.parse().ok()?,
            column: column.parse().ok()?,
        },
    )
}
