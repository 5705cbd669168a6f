//! Evaluates expressions and statements.
//!
//! Invariant: an evaluation ends. Its depth, its steps and the bytes of the texts that it makes are
//! bounded; each bound has an error that names it.

use crate::access::BucketAccess;
use crate::fault::{fault, unsupported};
use crate::library;
use crate::operators::{binary, truth};
use crate::value::{
    FluxArguments, FluxBucket, FluxCaller, FluxClosure, FluxRecord, FluxScope, FluxStream,
    FluxValue,
};
use marigram_flux::FluxPosition;
use marigram_flux::ast::{
    FluxBody, FluxExpr, FluxExprKind, FluxStatement, FluxTextPart, FluxUnary,
};
use marigram_influx::Budget;
use marigram_sql::SqlResult;
use regex::Regex;
use std::collections::HashMap;
use std::sync::Arc;

/// The levels of expressions and calls within one another.
const DEPTH_MAX: usize = 600;

/// The expressions that a script, or its function for one row, may evaluate.
const STEPS_MAX: u64 = 5_000_000;

/// The bytes of the texts that a script, or its function for one row, may make.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// The results that a script may have.
const RESULTS_MAX: usize = 1000;

/// The name of a result that has none.
pub(crate) const DEFAULT_RESULT: &str = "_result";

/// A result of a script.
#[derive(Clone, Debug)]
pub(crate) struct FluxResult {
    /// Its name.
    pub name: Arc<str>,
    /// Its tables.
    pub stream: Arc<FluxStream>,
}

/// Evaluates a script, or a function of it for one row.
pub(crate) struct FluxEvaluator {
    /// What `now()` is.
    pub now_ns: i64,
    /// The buckets that may be read; `None` for a function of rows, which reads none.
    pub access: Option<Arc<dyn BucketAccess>>,
    /// The results so far.
    pub results: Vec<FluxResult>,
    budget: Budget,
    regexes: HashMap<String, Arc<Regex>>,
    depth: usize,
    steps: u64,
    text_bytes: usize,
}

impl FluxEvaluator {
    /// An evaluator of a script.
    pub(crate) fn new(now_ns: i64, budget: &Budget, access: Arc<dyn BucketAccess>) -> Self {
        Self {
            access: Some(access),
            ..Self::for_rows(now_ns, budget)
        }
    }

    /// An evaluator of functions of rows.
    pub(crate) fn for_rows(now_ns: i64, budget: &Budget) -> Self {
        Self {
            now_ns,
            access: None,
            results: Vec::new(),
            budget: budget.clone(),
            regexes: HashMap::new(),
            depth: 0,
            steps: 0,
            text_bytes: 0,
        }
    }

    /// Runs the statements of a script, and gives the names that it defined.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn run(
        &mut self,
        statements: &[FluxStatement],
        mut scope: FluxScope,
    ) -> SqlResult<FluxScope> {
        for statement in statements {
            match statement {
                FluxStatement::Import { at, name, path } => {
                    let package = library::package(path)
                        .ok_or_else(|| unsupported(*at, &format!("package \"{path}\"")))?;
                    let default = path.rsplit('/').next().unwrap_or(path);
                    let name = name.as_deref().unwrap_or(default);
                    scope = scope.with(name, FluxValue::Package(package));
                }
                FluxStatement::Option {
                    at,
                    package,
                    name,
                    value,
                } => {
                    let value = self.evaluate(value, &scope)?;
                    scope = self.option(*at, (package.as_deref(), name), value, scope)?;
                }
                FluxStatement::Assignment { at, name, value } => {
                    if name == "now" {
                        return Err(fault(*at, "now is an option: write option now = () => …"));
                    }
                    let value = self.evaluate(value, &scope)?;
                    scope = scope.with(name, value);
                }
                FluxStatement::Expression(expr) => {
                    let value = self.evaluate(expr, &scope)?;
                    if let FluxValue::Stream(stream) = value
                        && !stream.is_yielded()
                    {
                        self.add_result(expr.at, DEFAULT_RESULT, stream)?;
                    }
                }
                FluxStatement::Return(expr) => {
                    return Err(fault(expr.at, "return is outside of a function"));
                }
            }
        }
        Ok(scope)
    }

    /// Sets an option: `now` has a meaning of its own, others are names.
    fn option(
        &mut self,
        at: FluxPosition,
        (package, name): (Option<&str>, &str),
        value: FluxValue,
        scope: FluxScope,
    ) -> SqlResult<FluxScope> {
        match (package, name) {
            (None, "now") => {
                let now = self.call(at, &value, Vec::new(), None)?;
                let FluxValue::Time(ns) = now else {
                    return Err(fault(at, "option now is a function that returns a time"));
                };
                self.now_ns = ns;
                Ok(scope)
            }
            (None, "location") => Err(unsupported(at, "option location")),
            (None, name) => Ok(scope.with(name, value)),
            (Some(package), name) => {
                let Some(FluxValue::Record(record)) = scope.get(package) else {
                    return Err(unsupported(at, &format!("option {package}.{name}")));
                };
                let mut record: FluxRecord = (**record).clone();
                put(&mut record, name, value);
                Ok(scope.with(package, FluxValue::Record(Arc::new(record))))
            }
        }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn evaluate(&mut self, expr: &FluxExpr, scope: &FluxScope) -> SqlResult<FluxValue> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            let message = format!("more than {STEPS_MAX} expressions are evaluated");
            return Err(fault(expr.at, message));
        }
        if self.depth >= DEPTH_MAX {
            let message = format!("expressions and calls are nested more than {DEPTH_MAX} levels");
            return Err(fault(expr.at, message));
        }
        self.depth += 1;
        let value = self.evaluate_kind(expr, scope);
        self.depth -= 1;
        value
    }

    fn evaluate_kind(&mut self, expr: &FluxExpr, scope: &FluxScope) -> SqlResult<FluxValue> {
        let at = expr.at;
        Ok(match &expr.kind {
            FluxExprKind::Integer(value) => FluxValue::Int(*value),
            FluxExprKind::Float(value) => FluxValue::Float(*value),
            FluxExprKind::Text(text) => FluxValue::text(text),
            FluxExprKind::Duration(duration) => FluxValue::Duration((*duration).into()),
            FluxExprKind::Time(ns) => FluxValue::Time(*ns),
            FluxExprKind::Regex(source) => FluxValue::Regex(self.regex(at, source)?),
            FluxExprKind::Interpolated(parts) => self.interpolated(at, parts, scope)?,
            FluxExprKind::Name(name) => match scope.get(name) {
                Some(value) => value.clone(),
                None => library::global(name)
                    .ok_or_else(|| fault(at, format!("undefined identifier {name}")))?,
            },
            FluxExprKind::Array(elements) => {
                let elements = elements.iter().map(|element| self.evaluate(element, scope));
                FluxValue::Array(Arc::new(elements.collect::<SqlResult<_>>()?))
            }
            FluxExprKind::Record { base, members } => {
                self.record(at, base.as_deref(), members, scope)?
            }
            FluxExprKind::Function(function) => FluxValue::Function(Arc::new(FluxClosure {
                function: Arc::clone(function),
                scope: scope.clone(),
            })),
            FluxExprKind::Call { callee, arguments } => {
                self.called(at, callee, arguments, None, scope)?
            }
            FluxExprKind::Pipe { head, calls } => {
                let mut value = self.evaluate(head, scope)?;
                for call in calls {
                    let FluxExprKind::Call { callee, arguments } = &call.kind else {
                        return Err(fault(call.at, "|> pipes into the call of a function"));
                    };
                    value = self.called(call.at, callee, arguments, Some(value), scope)?;
                }
                value
            }
            FluxExprKind::Member { object, name } => {
                let object = self.evaluate(object, scope)?;
                member(at, &object, name)?
            }
            FluxExprKind::Index { object, index } => {
                let object = self.evaluate(object, scope)?;
                let index = self.evaluate(index, scope)?;
                indexed(at, &object, &index)?
            }
            FluxExprKind::Unary { operator, operand } => {
                let operand = self.evaluate(operand, scope)?;
                unary(at, *operator, operand)?
            }
            FluxExprKind::Binary {
                operator,
                left,
                right,
            } => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                let value = binary(at, *operator, &left, &right)?;
                self.counted(at, value)?
            }
            FluxExprKind::Logical { is_and, operands } => self.logical(*is_and, operands, scope)?,
            FluxExprKind::Conditional {
                test,
                then,
                otherwise,
            } => {
                let holds = self.evaluate(test, scope)?;
                let chosen = match truth(test.at, &holds)? {
                    Some(true) => then,
                    _ => otherwise,
                };
                self.evaluate(chosen, scope)?
            }
        })
    }

    /// A text, if it does not exceed what may be made.
    fn counted(&mut self, at: FluxPosition, value: FluxValue) -> SqlResult<FluxValue> {
        if let FluxValue::Text(text) = &value {
            self.text_bytes += text.len();
            if self.text_bytes > TEXT_BYTES_MAX {
                let message = format!("the texts take more than {TEXT_BYTES_MAX} bytes");
                return Err(fault(at, message));
            }
        }
        Ok(value)
    }

    fn interpolated(
        &mut self,
        at: FluxPosition,
        parts: &[FluxTextPart],
        scope: &FluxScope,
    ) -> SqlResult<FluxValue> {
        let mut text = String::new();
        for part in parts {
            match part {
                FluxTextPart::Text(part) => text.push_str(part),
                FluxTextPart::Expression(expr) => {
                    let value = self.evaluate(expr, scope)?;
                    let shown = value.shown().ok_or_else(|| {
                        let kind = value.type_name();
                        fault(
                            expr.at,
                            format!("a value of type {kind} is no part of a string"),
                        )
                    })?;
                    text.push_str(&shown);
                }
            }
        }
        self.counted(at, FluxValue::text(&text))
    }

    fn record(
        &mut self,
        at: FluxPosition,
        base: Option<&FluxExpr>,
        members: &[(String, FluxExpr)],
        scope: &FluxScope,
    ) -> SqlResult<FluxValue> {
        let mut record = FluxRecord::new();
        if let Some(base) = base {
            match self.evaluate(base, scope)? {
                FluxValue::Record(base) => record.clone_from(&base),
                FluxValue::Row(table, row) => {
                    let columns = table.columns.iter();
                    record.extend(
                        columns.map(|column| (Arc::clone(&column.name), column.value(row).clone())),
                    );
                }
                other => {
                    let kind = other.type_name();
                    return Err(fault(at, format!("with needs a record, and not a {kind}")));
                }
            }
        }
        for (name, value) in members {
            let value = self.evaluate(value, scope)?;
            put(&mut record, name, value);
        }
        Ok(FluxValue::Record(Arc::new(record)))
    }

    fn logical(
        &mut self,
        is_and: bool,
        operands: &[FluxExpr],
        scope: &FluxScope,
    ) -> SqlResult<FluxValue> {
        let mut is_unknown = false;
        for operand in operands {
            let value = self.evaluate(operand, scope)?;
            match truth(operand.at, &value)? {
                Some(value) if value != is_and => return Ok(FluxValue::Bool(!is_and)),
                Some(_) => {}
                None => is_unknown = true,
            }
        }
        Ok(if is_unknown {
            FluxValue::Null
        } else {
            FluxValue::Bool(is_and)
        })
    }

    fn called(
        &mut self,
        at: FluxPosition,
        callee: &FluxExpr,
        arguments: &[(String, FluxExpr)],
        piped: Option<FluxValue>,
        scope: &FluxScope,
    ) -> SqlResult<FluxValue> {
        let function = self.evaluate(callee, scope)?;
        let mut given = Vec::with_capacity(arguments.len());
        for (name, value) in arguments {
            given.push((name.clone(), self.evaluate(value, scope)?));
        }
        let value = self.call(at, &function, given, piped)?;
        self.counted(at, value)
    }

    fn call_closure(
        &mut self,
        at: FluxPosition,
        closure: &FluxClosure,
        mut given: Vec<(String, FluxValue)>,
        mut piped: Option<FluxValue>,
    ) -> SqlResult<FluxValue> {
        let mut scope = closure.scope.clone();
        for parameter in &closure.function.parameters {
            let place = given.iter().position(|(name, _)| *name == parameter.name);
            let value = match place {
                Some(place) => given.swap_remove(place).1,
                None => match (parameter.is_piped, &parameter.default) {
                    (true, _) if piped.is_some() => piped.take().unwrap_or(FluxValue::Null),
                    (_, Some(default)) => self.evaluate(default, &closure.scope)?,
                    _ => {
                        let name = &parameter.name;
                        return Err(fault(at, format!("missing required argument {name}")));
                    }
                },
            };
            scope = scope.with(&parameter.name, value);
        }
        if let Some((name, _)) = given.first() {
            return Err(fault(at, format!("the function has no argument {name}")));
        }
        if piped.is_some() {
            return Err(fault(at, "the function takes nothing from |>"));
        }
        match &closure.function.body {
            FluxBody::Expression(expr) => self.evaluate(expr, &scope),
            FluxBody::Block(statements) => {
                let Some((FluxStatement::Return(value), before)) = statements.split_last() else {
                    return Err(fault(at, "a block ends with return"));
                };
                let scope = self.run(before, scope)?;
                self.evaluate(value, &scope)
            }
        }
    }
}

impl FluxCaller for FluxEvaluator {
    fn now_ns(&self) -> i64 {
        self.now_ns
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn bucket(&self, at: FluxPosition, name: &str) -> SqlResult<FluxBucket> {
        match &self.access {
            Some(access) => access.bucket(at, name),
            None => Err(fault(at, "the function of rows reads no buckets")),
        }
    }

    fn next_row(&mut self) {
        (self.steps, self.text_bytes) = (0, 0);
    }

    fn add_result(
        &mut self,
        at: FluxPosition,
        name: &str,
        stream: Arc<FluxStream>,
    ) -> SqlResult<()> {
        if self.access.is_none() {
            return Err(fault(at, "the function of rows has no results of its own"));
        }
        if self.results.iter().any(|result| *result.name == *name) {
            let message = format!("found more than one call to yield() with the name {name:?}");
            return Err(fault(at, message));
        }
        if self.results.len() >= RESULTS_MAX {
            return Err(fault(
                at,
                format!("a script has at most {RESULTS_MAX} results"),
            ));
        }
        let name = name.into();
        self.results.push(FluxResult { name, stream });
        Ok(())
    }

    fn regex(&mut self, at: FluxPosition, source: &str) -> SqlResult<Arc<Regex>> {
        if let Some(regex) = self.regexes.get(source) {
            return Ok(Arc::clone(regex));
        }
        let wrong = |why: String| fault(at, format!("error parsing regexp: {why}"));
        let translated = marigram_influxql::go_regex::translate(source)
            .map_err(|error| wrong(error.to_string()))?;
        let regex = Regex::new(&translated).map_err(|error| wrong(error.to_string()))?;
        let regex = Arc::new(regex);
        self.regexes.insert(source.to_owned(), Arc::clone(&regex));
        Ok(regex)
    }

    fn call(
        &mut self,
        at: FluxPosition,
        function: &FluxValue,
        mut given: Vec<(String, FluxValue)>,
        piped: Option<FluxValue>,
    ) -> SqlResult<FluxValue> {
        match function {
            FluxValue::Builtin(builtin) => {
                if let Some(piped) = piped {
                    given.push(("tables".to_owned(), piped));
                }
                let mut arguments = FluxArguments::new(at, builtin.name, given);
                let value = (builtin.call)(self, &mut arguments)?;
                arguments.finish()?;
                Ok(value)
            }
            FluxValue::Function(closure) => self.call_closure(at, closure, given, piped),
            other => {
                let kind = other.type_name();
                Err(fault(at, format!("a value of type {kind} is no function")))
            }
        }
    }
}

/// Sets a member of a record.
pub(crate) fn put(record: &mut FluxRecord, name: &str, value: FluxValue) {
    match record.iter_mut().find(|(known, _)| **known == *name) {
        Some((_, old)) => *old = value,
        None => record.push((name.into(), value)),
    }
}

/// A member of a record; null where a row has no such column.
fn member(at: FluxPosition, object: &FluxValue, name: &str) -> SqlResult<FluxValue> {
    Ok(match object {
        FluxValue::Row(table, row) => table
            .column(name)
            .map_or(FluxValue::Null, |column| column.value(*row).clone()),
        FluxValue::Record(record) => {
            let found = record.iter().find(|(known, _)| **known == *name);
            let found =
                found.ok_or_else(|| fault(at, format!("record is missing label {name}")))?;
            found.1.clone()
        }
        FluxValue::Package(path) => library::member(path, name).ok_or_else(|| {
            let what = format!("function {name} of package \"{path}\"");
            unsupported(at, &what)
        })?,
        FluxValue::Null => FluxValue::Null,
        other => {
            let kind = other.type_name();
            return Err(fault(
                at,
                format!("a value of type {kind} has no member {name}"),
            ));
        }
    })
}

fn indexed(at: FluxPosition, object: &FluxValue, index: &FluxValue) -> SqlResult<FluxValue> {
    match (object, index) {
        (FluxValue::Array(elements), FluxValue::Int(index)) => {
            let place = usize::try_from(*index).ok();
            let element = place.and_then(|place| elements.get(place));
            element
                .cloned()
                .ok_or_else(|| fault(at, format!("cannot access element {index} of array")))
        }
        (object, FluxValue::Text(name)) => member(at, object, name),
        (object, _) => {
            let kind = object.type_name();
            Err(fault(
                at,
                format!("a value of type {kind} has no such element"),
            ))
        }
    }
}

fn unary(at: FluxPosition, operator: FluxUnary, operand: FluxValue) -> SqlResult<FluxValue> {
    Ok(match (operator, operand) {
        (FluxUnary::Exists, operand) => FluxValue::Bool(!operand.is_null()),
        (_, FluxValue::Null) => FluxValue::Null,
        (FluxUnary::Not, FluxValue::Bool(value)) => FluxValue::Bool(!value),
        (FluxUnary::Minus, FluxValue::Int(value)) => FluxValue::Int(value.wrapping_neg()),
        (FluxUnary::Minus, FluxValue::Float(value)) => FluxValue::Float(-value),
        (FluxUnary::Minus, FluxValue::Duration(span)) => FluxValue::Duration(span.negated()),
        (
            FluxUnary::Plus,
            value @ (FluxValue::Int(_) | FluxValue::Float(_) | FluxValue::Duration(_)),
        ) => value,
        (_, operand) => {
            let kind = operand.type_name();
            return Err(fault(at, format!("the operator does not take a {kind}")));
        }
    })
}
