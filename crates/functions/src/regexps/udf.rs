//! The functions: their types, their arguments and their answers.

use super::matcher::{GroupSpans, Matcher};
use super::replacement::Replacement;
use crate::interrupt;
use crate::refusal::refused;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Int32Builder, Int64Array, ListBuilder, StringArray,
    StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function to which `regexp_matches` is rewritten: the array of all rows that it returns.
pub const REGEXP_MATCH_LIST: &str = "regexp_match_list";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RegexpFunction {
    Count,
    Instr,
    Like,
    Match,
    MatchList,
    Replace,
    SplitToArray,
    Substr,
}

use RegexpFunction::{Count, Instr, Like, Match, MatchList, Replace, SplitToArray, Substr};

/// The kind of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentKind {
    Text,
    Number,
}

impl RegexpFunction {
    const ALL: [Self; 8] = [
        Count,
        Instr,
        Like,
        Match,
        MatchList,
        Replace,
        SplitToArray,
        Substr,
    ];

    fn name(self) -> &'static str {
        match self {
            Count => "regexp_count",
            Instr => "regexp_instr",
            Like => "regexp_like",
            Match => "regexp_match",
            MatchList => REGEXP_MATCH_LIST,
            Replace => "regexp_replace",
            SplitToArray => "regexp_split_to_array",
            Substr => "regexp_substr",
        }
    }

    /// The name that users write.
    fn shown_name(self) -> &'static str {
        match self {
            MatchList => "regexp_matches",
            other => other.name(),
        }
    }

    /// The number of arguments that must be there, and the kinds of all.
    fn kinds(self, types: &[DataType]) -> (usize, &'static [ArgumentKind]) {
        use ArgumentKind::{Number, Text};
        match self {
            Count => (2, &[Text, Text, Number, Text]),
            Instr => (2, &[Text, Text, Number, Number, Number, Text, Number]),
            Substr => (2, &[Text, Text, Number, Number, Text, Number]),
            Replace if types.get(3).is_some_and(DataType::is_numeric) => {
                (3, &[Text, Text, Text, Number, Number, Text])
            }
            Replace => (3, &[Text, Text, Text, Text]),
            Like | Match | MatchList | SplitToArray => (2, &[Text, Text, Text]),
        }
    }
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpUdf {
    function: RegexpFunction,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let udf = |function| {
        ScalarUDF::from(RegexpUdf {
            function,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    RegexpFunction::ALL.into_iter().map(udf).collect()
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

impl ScalarUDFImpl for RegexpUdf {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (least, kinds) = self.function.kinds(types);
        let fits = |(kind, given): (&ArgumentKind, &DataType)| match kind {
            ArgumentKind::Text => match given {
                DataType::Dictionary(_, value) => value.is_string(),
                other => other.is_string() || other.is_null(),
            },
            ArgumentKind::Number => given.is_integer() || given.is_null(),
        };
        let is_known =
            types.len() >= least && types.len() <= kinds.len() && kinds.iter().zip(types).all(fits);
        if !is_known {
            let name = self.function.shown_name();
            let message = format!("{name} takes texts, and numbers where PostgreSQL has them");
            return Err(refused("42883", message));
        }
        let wanted = kinds.iter().take(types.len()).map(|kind| match kind {
            ArgumentKind::Text => DataType::Utf8,
            ArgumentKind::Number => DataType::Int64,
        });
        Ok(wanted.collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.function {
            Count | Instr => DataType::Int32,
            Like => DataType::Boolean,
            Match | SplitToArray => list(DataType::Utf8),
            MatchList => list(list(DataType::Utf8)),
            Replace | Substr => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let rows = if all_one { 1 } else { args.number_rows };
        let columns = RegexpColumns::new(self.function, &args.args, rows)?;
        let out = self.answer(&columns, rows)?;
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
        } else {
            ColumnarValue::Array(out)
        })
    }
}

/// The arguments of all rows.
struct RegexpColumns {
    texts: Vec<StringArray>,
    numbers: Vec<Int64Array>,
}

impl RegexpColumns {
    fn new(function: RegexpFunction, args: &[ColumnarValue], rows: usize) -> Result<Self> {
        let types: Vec<DataType> = args.iter().map(ColumnarValue::data_type).collect();
        let (_, kinds) = function.kinds(&types);
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        for (arg, kind) in args.iter().zip(kinds) {
            let array = arg.to_array(rows)?;
            match kind {
                ArgumentKind::Text => {
                    let array = cast(&array, &DataType::Utf8)?;
                    texts.push(array.as_string::<i32>().clone());
                }
                ArgumentKind::Number => {
                    let array = cast(&array, &DataType::Int64)?;
                    numbers.push(array.as_primitive::<Int64Type>().clone());
                }
            }
        }
        Ok(Self { texts, numbers })
    }

    /// Whether an argument is null, and with it the answer.
    fn is_null(&self, row: usize) -> bool {
        self.texts.iter().any(|column| column.is_null(row))
            || self.numbers.iter().any(|column| column.is_null(row))
    }

    fn text(&self, at: usize, row: usize) -> Option<&str> {
        self.texts.get(at).map(|column| column.value(row))
    }

    /// A number from `least` on; that is also the number if the argument is missing, unless there is a
    /// default.
    fn number(&self, at: usize, row: usize, name: &str, least: i64, default: i64) -> Result<usize> {
        let number = self
            .numbers
            .get(at)
            .map_or(default, |column| column.value(row));
        if number < least {
            return Err(wrong_parameter(name, number));
        }
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The place where the search begins, bytes; `None` if that is behind the text.
    fn start(&self, row: usize, text: &str) -> Result<Option<usize>> {
        let start = self.number(0, row, "start", 1, 1)?;
        let mut places = text.char_indices().map(|(place, _)| place);
        Ok(match places.by_ref().nth(start - 1) {
            Some(place) => Some(place),
            None => (text.chars().count() == start - 1).then_some(text.len()),
        })
    }
}

fn wrong_parameter(name: &str, number: i64) -> DataFusionError {
    let message = format!("invalid value for parameter \"{name}\": {number}");
    refused("22023", message)
}

/// Compiled expressions; rows mostly have the same one.
#[derive(Default)]
struct LastMatcher {
    known: Option<(String, String, Matcher)>,
}

impl LastMatcher {
    fn get(
        &mut self,
        function: RegexpFunction,
        pattern: &str,
        options: &str,
    ) -> Result<&mut Matcher> {
        let is_known = self
            .known
            .as_ref()
            .is_some_and(|(known, with, _)| known == pattern && with == options);
        if !is_known {
            self.known = None;
            let matcher = Matcher::new(pattern, options)?;
            if matcher.is_global && !matches!(function, MatchList | Replace) {
                let name = function.shown_name();
                let message = format!("{name}() does not support the \"global\" option");
                return Err(refused("22023", message));
            }
            self.known = Some((pattern.to_owned(), options.to_owned(), matcher));
        }
        match &mut self.known {
            Some((_, _, matcher)) => Ok(matcher),
            None => Err(refused("XX000", "no expression was compiled")),
        }
    }
}

impl RegexpUdf {
    /// Calls `visit` with each row, or `None` for one with a null.
    fn visit_rows(
        &self,
        columns: &RegexpColumns,
        rows: usize,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let mut last = LastMatcher::default();
        let options_at = if self.function == Replace { 3 } else { 2 };
        for row in 0..rows {
            interrupt::check()?;
            if columns.is_null(row) {
                visit(None)?;
                continue;
            }
            let text = columns.text(0, row).unwrap_or_default();
            let pattern = columns.text(1, row).unwrap_or_default();
            let options = columns.text(options_at, row).unwrap_or_default();
            if self.function == Replace && options.starts_with(|c: char| c.is_ascii_digit()) {
                let message = format!(
                    "invalid regular expression option: \"{}\"; cast the fourth argument to \
                     integer if it is a start",
                    &options[..1]
                );
                return Err(refused("22023", message));
            }
            let matcher = last.get(self.function, pattern, options)?;
            visit(Some((matcher, text, row)))?;
        }
        interrupt::check()
    }

    /// The values of all rows.
    fn answer(&self, columns: &RegexpColumns, rows: usize) -> Result<ArrayRef> {
        let each = |visit: &mut RowVisitor<'_>| self.visit_rows(columns, rows, visit);
        match self.function {
            Count | Instr => {
                let mut out = Int32Builder::with_capacity(rows);
                each(&mut |row| {
                    let number = row.map(|row| match self.function {
                        Count => count(columns, row),
                        _ => instr(columns, row),
                    });
                    out.append_option(number.transpose()?);
                    Ok(())
                })?;
                Ok(Arc::new(out.finish()))
            }
            Like => {
                let mut out = BooleanBuilder::with_capacity(rows);
                each(&mut |row| {
                    out.append_option(
                        row.map(|(matcher, text, _)| matcher.find(text, 0).is_some()),
                    );
                    Ok(())
                })?;
                Ok(Arc::new(out.finish()))
            }
            Replace | Substr => {
                let mut out = StringBuilder::new();
                each(&mut |row| {
                    let text = match row {
                        Some(row) if self.function == Replace => Some(replace(columns, row)?),
                        Some(row) => substr(columns, row)?.map(str::to_owned),
                        None => None,
                    };
                    out.append_option(text);
                    Ok(())
                })?;
                Ok(Arc::new(out.finish()))
            }
            Match | SplitToArray => {
                let mut out = ListBuilder::new(StringBuilder::new());
                each(&mut |row| {
                    match row {
                        None => out.append_null(),
                        Some((matcher, text, _)) if self.function == Match => {
                            match matcher.find(text, 0) {
                                Some(spans) => {
                                    append_groups(out.values(), text, &spans);
                                    out.append(true);
                                }
                                None => out.append_null(),
                            }
                        }
                        Some((matcher, text, _)) => {
                            split(matcher, text, out.values());
                            out.append(true);
                        }
                    }
                    Ok(())
                })?;
                Ok(Arc::new(out.finish()))
            }
            MatchList => {
                let mut out = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
                each(&mut |row| {
                    let Some((matcher, text, _)) = row else {
                        out.append_null();
                        return Ok(());
                    };
                    let most = if matcher.is_global { usize::MAX } else { 1 };
                    for spans in matcher.matches(text, 0).take(most) {
                        append_groups(out.values().values(), text, &spans);
                        out.values().append(true);
                    }
                    out.append(true);
                    Ok(())
                })?;
                Ok(Arc::new(out.finish()))
            }
        }
    }
}

type MatchedRow<'a> = (&'a mut Matcher, &'a str, usize);
type RowVisitor<'v> = dyn FnMut(Option<MatchedRow<'_>>) -> Result<()> + 'v;

/// The groups of a match, or the match itself if the expression has no groups.
fn append_groups(out: &mut StringBuilder, text: &str, spans: &GroupSpans) {
    let groups = if spans.len() > 1 { &spans[1..] } else { spans };
    for group in groups {
        out.append_option(group.map(|(start, end)| &text[start..end]));
    }
}

/// The pieces between matches. As in PostgreSQL, empty matches at the ends and right after another match
/// do not count.
fn split(matcher: &mut Matcher, text: &str, out: &mut StringBuilder) {
    let (mut piece, mut last_end) = (0, 0);
    for spans in matcher.matches(text, 0) {
        let Some(Some((start, end))) = spans.first().copied() else {
            continue;
        };
        if start < text.len() && end > last_end {
            out.append_value(&text[piece..start]);
            piece = end;
        }
        last_end = end;
    }
    out.append_value(&text[piece..]);
}

fn count(columns: &RegexpColumns, (matcher, text, row): MatchedRow) -> Result<i32> {
    let Some(start) = columns.start(row, text)? else {
        return Ok(0);
    };
    let count = matcher.matches(text, start).count();
    Ok(i32::try_from(count).unwrap_or(i32::MAX))
}

/// The match that the arguments `start`, `N` and `subexpr` choose: its span or that of a group.
fn chosen(
    columns: &RegexpColumns,
    (matcher, text, row): MatchedRow,
    group_at: usize,
) -> Result<Option<(usize, usize)>> {
    let start = columns.start(row, text)?;
    let nth = columns.number(1, row, "n", 1, 1)?;
    let group = columns.number(group_at, row, "subexpr", 0, 0)?;
    if group > matcher.groups() {
        return Ok(None);
    }
    let found = start.and_then(|start| matcher.matches(text, start).nth(nth - 1));
    Ok(found.and_then(|spans| spans.get(group).copied().flatten()))
}

fn substr<'a>(
    columns: &RegexpColumns,
    row: (&mut Matcher, &'a str, usize),
) -> Result<Option<&'a str>> {
    let text = row.1;
    let found = chosen(columns, row, 2)?;
    Ok(found.map(|(start, end)| &text[start..end]))
}

fn instr(columns: &RegexpColumns, row: MatchedRow) -> Result<i32> {
    let (text, end_option) = (row.1, columns.number(2, row.2, "endoption", 0, 0)?);
    if end_option > 1 {
        return Err(wrong_parameter("endoption", end_option as i64));
    }
    let found = chosen(columns, row, 3)?;
    let place = found.map(|(start, end)| if end_option == 1 { end } else { start });
    let position = place.map_or(0, |place| text[..place].chars().count() + 1);
    Ok(i32::try_from(position).unwrap_or(i32::MAX))
}

fn replace(columns: &RegexpColumns, (matcher, text, row): MatchedRow) -> Result<String> {
    let start = columns.start(row, text)?;
    let default = i64::from(!matcher.is_global);
    let nth = columns.number(1, row, "n", 0, default)?;
    let replacement = Replacement::parse(columns.text(2, row).unwrap_or_default());
    Ok(match start {
        Some(start) => replacement.replace(matcher, text, start, nth),
        None => text.to_owned(),
    })
}
