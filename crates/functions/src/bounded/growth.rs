//! Estimates from its arguments how large the values of a function can become.

use crate::json::{JSON_LISTS, JSON_OBJECT_LISTS, JSON_PARTS, JSON_READERS, TEXT_OBJECTS};
use crate::refusal::refused;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{cast, max};
use arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs};

/// The bytes that a value takes besides its content: an offset, a length, a bit.
const VALUE_BYTES: usize = 16;
/// The length of the longest text of a number or a time.
const NUMBER_BYTES: usize = 48;
/// The largest number of centroids that approximate a distribution; memory is reserved for each.
const CENTROIDS_MAX: i64 = 10_000;
/// The number of bytes that one call pads at most.
const PADDED_BYTES_MAX: usize = 64 << 20;
/// The longest text, in characters, that `levenshtein` takes, as in PostgreSQL: the time grows with
/// the square of the length.
const DISTANCE_CHARACTERS_MAX: usize = 255;
/// Widest type of fixed width, bytes.
const VALUE_WIDTH_MAX: usize = 64 << 10;
/// The length of the longest type name that functions take as text; the parser of type names is
/// recursive.
const TYPE_NAME_BYTES_MAX: usize = 512;

/// A kind of function whose values can be larger than its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueGrowth {
    /// The concatenation of its arguments, any of which may be the same for all rows.
    Sum,
    /// Each byte of its arguments becomes at most this many bytes.
    Times(usize),
    /// The text of argument 0, repeated as often as argument 1 says.
    Repeat,
    /// A list that repeats argument 0 as often as argument 1 says.
    ArrayRepeat,
    /// As many characters as argument 1 says.
    Pad,
    /// Replaces each occurrence of argument 1 with argument 2.
    Replace,
    /// Replaces each match of argument 1 with argument 2.
    RegexpReplace,
    /// One text for each group of a pattern.
    RegexpMatch,
    /// A list of texts for each match of a pattern.
    RegexpMatchList,
    /// A text according to a format.
    Format,
    /// The other arguments, separated by argument 0.
    Join,
    /// The elements of argument 0, separated by argument 1.
    ArrayToString,
    /// All arguments as JSON.
    Json,
    /// Replaces elements of argument 0 with argument 2.
    ArrayReplace,
    /// As many elements as argument 1 says.
    Resize,
    /// As many elements as there are steps.
    Range,
    /// Values of a type that a text names.
    TypeByName,
    /// A number, whose computation takes time for each pair of characters of its arguments.
    Distance,
    /// A number for each argument: it is listed because of its preimage (see
    /// [`super::BoundedFunction`]).
    Number,
}

/// Refuses texts that take long to pad: a call that has begun cannot be stopped.
fn check_padding(bytes: usize) -> Result<()> {
    if bytes <= PADDED_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "lpad and rpad make at most {PADDED_BYTES_MAX} bytes at once, and these rows take {bytes}"
    );
    Err(refused("54000", message))
}

impl ValueGrowth {
    /// The growth of a function by its name; `None` if its arguments bound its values.
    pub(super) fn for_function(name: &str) -> Option<Self> {
        Some(match name {
            "repeat" => Self::Repeat,
            "array_repeat" => Self::ArrayRepeat,
            "lpad" | "rpad" => Self::Pad,
            "replace" => Self::Replace,
            "regexp_replace" => Self::RegexpReplace,
            "regexp_match" => Self::RegexpMatch,
            crate::regexps::REGEXP_MATCH_LIST => Self::RegexpMatchList,
            "to_char" => Self::Format,
            "concat_ws" => Self::Join,
            "array_to_string" => Self::ArrayToString,
            "array_replace" | "array_replace_n" | "array_replace_all" => Self::ArrayReplace,
            "array_resize" => Self::Resize,
            "range" | "generate_series" => Self::Range,
            "arrow_cast" | "arrow_try_cast" => Self::TypeByName,
            "date_part" => Self::Number,
            "levenshtein" => Self::Distance,
            "encode" | "translate" => Self::Times(4),
            "to_json" | "to_jsonb" | "row_to_json" | "array_to_json" | "json_build_object"
            | "jsonb_build_object" | "json_build_array" | "jsonb_build_array" => Self::Json,
            name if JSON_LISTS.contains(&name) || JSON_OBJECT_LISTS.contains(&name) => Self::Json,
            name if TEXT_OBJECTS.contains(&name) => Self::Json,
            // A number in jsonb has no exponent, and up to 310 digits for five characters.
            name if name == JSON_READERS[1] || JSON_PARTS.iter().any(|[_, it]| *it == name) => {
                Self::Times(64)
            }
            name if JSON_PARTS.iter().any(|[it, _]| *it == name) => Self::Times(24),
            "string_to_array" | "regexp_split_to_array" | "parse_ident" => Self::Times(24),
            "concat"
            | "overlay"
            | "make_array"
            | "struct"
            | "named_struct"
            | "map"
            | "nvl"
            | "nvl2"
            | "nullif"
            | "coalesce"
            | "greatest"
            | "least"
            | "array_append"
            | "array_prepend"
            | "array_concat"
            | "array_union"
            | "arrays_zip"
            | "quote_ident"
            | "quote_literal"
            | "quote_nullable"
            | super::concatenation::NAME => Self::Sum,
            _ => return None,
        })
    }

    /// The most bytes that a call can produce.
    ///
    /// # Errors
    /// Arrow's errors, for numbers that cannot be read.
    pub(super) fn bound(self, call: &ScalarFunctionArgs) -> Result<usize> {
        let args = GrowthArguments(call);
        let rows = call.number_rows;
        let own = rows.saturating_mul(VALUE_BYTES * args.count().max(1));
        let bytes = match self {
            Self::Sum => args.all_bytes().saturating_mul(2),
            Self::Number => 0,
            Self::Distance => {
                args.check_distance()?;
                0
            }
            Self::Times(times) => args.all_bytes().saturating_mul(times),
            Self::Repeat => args.bytes(0).saturating_mul(args.most(1)?),
            Self::ArrayRepeat => {
                let each = args.bytes(0).saturating_add(own);
                each.saturating_mul(args.most(1)?)
            }
            Self::Pad => {
                let width = if args.is_ascii() { 1 } else { 4 };
                let padded = rows.saturating_mul(args.most(1)?).saturating_mul(width);
                check_padding(padded)?;
                padded.saturating_add(args.bytes(0))
            }
            Self::Replace => {
                let places = match args.shortest_text(1) {
                    0 => args.bytes(0).saturating_add(rows),
                    length => args.bytes(0) / length,
                };
                let added = places.saturating_mul(args.longest(2));
                added.saturating_add(args.bytes(0))
            }
            Self::RegexpReplace => {
                // Each reference to a group inserts that group, and a match contains all its
                // groups.
                let replacement = args.longest(2);
                let places = args.bytes(0).saturating_add(rows);
                let is_global = args.count() > 3;
                let places = if is_global { places } else { rows };
                let groups = args.bytes(0).saturating_mul(1 + replacement / 2);
                places.saturating_mul(replacement).saturating_add(groups)
            }
            Self::RegexpMatch => args.bytes(0).saturating_mul(1 + args.longest(1)),
            // Each group begins with a parenthesis.
            Self::RegexpMatchList => {
                let matches = args.bytes(0).saturating_add(rows);
                let groups = args.longest(1).saturating_mul(VALUE_BYTES);
                matches.saturating_mul(groups.saturating_add(3 * VALUE_BYTES))
            }
            Self::Format => {
                let format = args.longest(1).saturating_mul(NUMBER_BYTES / 2);
                rows.saturating_mul(format.saturating_add(NUMBER_BYTES))
            }
            Self::Join => {
                let separators = args.bytes(0).saturating_mul(args.count());
                separators
                    .saturating_add(args.all_bytes())
                    .saturating_mul(2)
            }
            Self::ArrayToString => {
                let between = args.longest(1).saturating_add(args.longest(2));
                let each = between.saturating_add(NUMBER_BYTES);
                args.elements(0)
                    .saturating_mul(each)
                    .saturating_add(args.bytes(0))
            }
            Self::Json => {
                // A control character becomes six characters.
                let values = args.all_bytes().saturating_mul(8);
                let each = |at| {
                    let number = NUMBER_BYTES + args.get(at).map_or(0, name_bytes);
                    let count = args.elements(at).saturating_add(rows);
                    count.saturating_mul(number)
                };
                let fixed = (0..args.count()).map(each);
                fixed.fold(values, usize::saturating_add)
            }
            Self::ArrayReplace => {
                let new = args.elements(0).saturating_mul(args.longest(2));
                new.saturating_add(args.bytes(0))
            }
            Self::Resize => {
                let each = args.longest(2).saturating_add(VALUE_BYTES);
                let new = rows.saturating_mul(args.most(1)?).saturating_mul(each);
                new.saturating_add(args.bytes(0))
            }
            Self::Range => args.steps()?.saturating_mul(VALUE_BYTES),
            Self::TypeByName => {
                let width = fixed_bytes(call.return_type());
                let fixed = rows.saturating_mul(width);
                fixed.saturating_add(args.all_bytes().saturating_mul(NUMBER_BYTES))
            }
        };
        Ok(bytes.saturating_add(own))
    }

    /// Refuses type names that are nested too deeply to be parsed.
    ///
    /// # Errors
    /// 54001.
    pub(super) fn check_types(self, args: &ReturnFieldArgs) -> Result<()> {
        if self != Self::TypeByName {
            return Ok(());
        }
        for value in args.scalar_arguments.iter().flatten() {
            let text = value.try_as_str().flatten().unwrap_or_default();
            let is_name = args
                .scalar_arguments
                .last()
                .is_some_and(|l| *l == Some(*value));
            if is_name && text.len() > TYPE_NAME_BYTES_MAX {
                let message = format!(
                    "the name of a type has at most {TYPE_NAME_BYTES_MAX} bytes, and this one has {}",
                    text.len()
                );
                return Err(refused("54001", message));
            }
        }
        Ok(())
    }
}

/// Refuses types whose every value is large, even NULL.
///
/// # Errors
/// 53200.
pub(super) fn check_width(data_type: &DataType) -> Result<()> {
    if fixed_bytes(data_type) <= VALUE_WIDTH_MAX {
        return Ok(());
    }
    let message = format!(
        "a type may take at most {VALUE_WIDTH_MAX} bytes for a value, however short it is; values of \
         {data_type} take more"
    );
    Err(refused("53200", message))
}

/// Refuses aggregates whose arguments ask them to keep more than memory can hold.
///
/// # Errors
/// 53200.
pub(super) fn check_aggregate(name: &str, args: &[Expr]) -> Result<()> {
    if !name.starts_with("approx_percentile_cont") {
        return Ok(());
    }
    let numbers = args.iter().skip(1).filter_map(|arg| match arg {
        Expr::Literal(value, _) if value.data_type().is_integer() => int(value).ok().flatten(),
        _ => None,
    });
    if numbers.max().is_none_or(|number| number <= CENTROIDS_MAX) {
        return Ok(());
    }
    let message = format!("{name} keeps at most {CENTROIDS_MAX} centroids; ask for fewer");
    Err(refused("22023", message))
}

/// The bytes that every value of a type takes, however short it is.
fn fixed_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0),
        DataType::FixedSizeList(item, length) => {
            let length = usize::try_from(*length).unwrap_or(0);
            length.saturating_mul(fixed_bytes(item.data_type()))
        }
        DataType::Struct(fields) => fields
            .iter()
            .map(|field| fixed_bytes(field.data_type()))
            .fold(0, usize::saturating_add),
        _ => VALUE_BYTES,
    }
}

/// The bytes that the names of an argument's fields take for each of its values.
fn name_bytes(argument: &ColumnarValue) -> usize {
    fn of_type(kind: &DataType) -> usize {
        match kind {
            DataType::Struct(fields) => fields
                .iter()
                .map(|field| {
                    let own = field.name().len().saturating_mul(8) + NUMBER_BYTES;
                    own.saturating_add(of_type(field.data_type()))
                })
                .fold(0, usize::saturating_add),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                of_type(item.data_type())
            }
            _ => 0,
        }
    }
    of_type(&argument.data_type())
}

struct GrowthArguments<'a>(&'a ScalarFunctionArgs);

impl GrowthArguments<'_> {
    fn count(&self) -> usize {
        self.0.args.len()
    }

    fn get(&self, at: usize) -> Option<&ColumnarValue> {
        self.0.args.get(at)
    }

    /// The bytes of an argument in all rows.
    fn bytes(&self, at: usize) -> usize {
        match self.get(at) {
            Some(ColumnarValue::Array(array)) => array_bytes(array),
            Some(ColumnarValue::Scalar(value)) => {
                scalar_bytes(value).saturating_mul(self.0.number_rows)
            }
            None => 0,
        }
    }

    fn all_bytes(&self) -> usize {
        let each = (0..self.count()).map(|at| self.bytes(at));
        each.fold(0, usize::saturating_add)
    }

    /// An upper bound of the bytes of an argument's largest value.
    fn longest(&self, at: usize) -> usize {
        match self.get(at) {
            Some(ColumnarValue::Array(array)) => array_bytes(array),
            Some(ColumnarValue::Scalar(value)) => scalar_bytes(value),
            None => 0,
        }
    }

    /// A lower bound of the bytes of an argument's shortest text.
    fn shortest_text(&self, at: usize) -> usize {
        match self.get(at) {
            Some(ColumnarValue::Scalar(value)) => value.try_as_str().flatten().map_or(0, str::len),
            _ => 0,
        }
    }

    /// The largest number of an argument; 0 if none is positive.
    fn most(&self, at: usize) -> Result<usize> {
        let Some(argument) = self.get(at) else {
            return Ok(0);
        };
        let largest = match argument {
            ColumnarValue::Array(array) => {
                let numbers = cast(array, &DataType::Int64)?;
                max(numbers.as_primitive::<Int64Type>())
            }
            ColumnarValue::Scalar(value) => int(value)?,
        };
        let largest = largest.unwrap_or(0).max(0);
        Ok(usize::try_from(largest).unwrap_or(usize::MAX))
    }

    /// Refuses texts whose distance would take too long to compute.
    fn check_distance(&self) -> Result<()> {
        for argument in &self.0.args {
            let texts = cast(
                &argument.to_array(1.max(self.0.number_rows))?,
                &DataType::LargeUtf8,
            )?;
            let texts = texts.as_string::<i64>();
            let too_long = |text: &str| {
                text.len() > DISTANCE_CHARACTERS_MAX
                    && text.chars().count() > DISTANCE_CHARACTERS_MAX
            };
            if texts.iter().flatten().any(too_long) {
                let message = format!(
                    "levenshtein takes texts of at most {DISTANCE_CHARACTERS_MAX} characters"
                );
                return Err(refused("22023", message));
            }
        }
        Ok(())
    }

    fn is_ascii(&self) -> bool {
        self.0.args.iter().all(|argument| match argument {
            ColumnarValue::Scalar(value) => match value.try_as_str() {
                Some(text) => text.is_none_or(str::is_ascii),
                None => true,
            },
            ColumnarValue::Array(array) => match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().is_ascii(),
                DataType::LargeUtf8 => array.as_string::<i64>().is_ascii(),
                other => !other.is_string(),
            },
        })
    }

    /// The number of elements in the lists of an argument and in the lists within them.
    fn elements(&self, at: usize) -> usize {
        match self.get(at) {
            Some(ColumnarValue::Array(array)) => elements(array),
            Some(ColumnarValue::Scalar(value)) => {
                let array = value.to_array().map_or(0, |array| elements(&array));
                array.saturating_mul(self.0.number_rows)
            }
            None => 0,
        }
    }

    /// The number of elements in the ranges of all rows.
    fn steps(&self) -> Result<usize> {
        let arrays: Vec<ArrayRef> = self
            .0
            .args
            .iter()
            .map(|argument| argument.to_array(self.0.number_rows))
            .collect::<Result<_>>()?;
        if arrays
            .first()
            .is_some_and(|array| *array.data_type() == DataType::Float64)
        {
            return Ok(fraction_steps(&arrays));
        }
        let (starts, stops, steps) = match arrays.as_slice() {
            [stops] => (None, units(stops)?, None),
            [starts, stops] => (Some(units(starts)?), units(stops)?, None),
            [starts, stops, steps, ..] => {
                (Some(units(starts)?), units(stops)?, Some(units(steps)?))
            }
            [] => return Ok(0),
        };
        let value = |column: &Option<Vec<Option<i128>>>, row: usize, missing: i128| match column {
            Some(values) => values[row],
            None => Some(missing),
        };
        let mut total = 0_usize;
        for (row, stop) in stops.iter().enumerate() {
            let (Some(start), Some(stop), Some(step)) =
                (value(&starts, row, 0), *stop, value(&steps, row, 1))
            else {
                continue;
            };
            // The function itself refuses a step of zero.
            let count = match step.unsigned_abs() {
                0 => 0,
                step => (stop - start).unsigned_abs() / step + 2,
            };
            total = total.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok(total)
    }
}

/// Numbers unchanged, and times and intervals in nanoseconds, where a month has its shortest
/// length.
fn units(array: &ArrayRef) -> Result<Vec<Option<i128>>> {
    const DAY_NS: i128 = 86_400_000_000_000;
    let unit_ns = |array: &ArrayRef, ns: i128| -> Result<Vec<Option<i128>>> {
        let numbers = cast(array, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        Ok(numbers
            .iter()
            .map(|n| n.map(|n| i128::from(n) * ns))
            .collect())
    };
    match array.data_type() {
        DataType::Date32 => {
            let days = cast(array, &DataType::Int32)?;
            unit_ns(&days, DAY_NS)
        }
        DataType::Timestamp(unit, _) => {
            use arrow::datatypes::TimeUnit;
            let ns = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1000,
                TimeUnit::Nanosecond => 1,
            };
            unit_ns(array, ns)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            use arrow::datatypes::IntervalMonthDayNanoType;
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            let ns = |interval: IntervalMonthDayNano| {
                i128::from(interval.months) * 28 * DAY_NS
                    + i128::from(interval.days) * DAY_NS
                    + i128::from(interval.nanoseconds)
            };
            Ok(intervals.iter().map(|interval| interval.map(ns)).collect())
        }
        _ => unit_ns(array, 1),
    }
}

fn int(value: &ScalarValue) -> Result<Option<i64>> {
    match value.cast_to(&DataType::Int64)? {
        ScalarValue::Int64(number) => Ok(number),
        _ => Ok(None),
    }
}

fn scalar_bytes(value: &ScalarValue) -> usize {
    match value.try_as_str() {
        Some(text) => text.map_or(0, str::len),
        None => value.size(),
    }
}

/// The bytes of the rows of an array.
fn array_bytes(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8 => {
            // Only the text: the offset of every value is counted elsewhere.
            span(array.as_string::<i32>().value_offsets())
        }
        // Every row may be the longest value of the dictionary.
        DataType::Dictionary(_, _) => match array.as_any_dictionary_opt() {
            Some(dictionary) => {
                let values = dictionary.values().get_array_memory_size();
                values.saturating_mul(array.len())
            }
            None => array.get_array_memory_size(),
        },
        DataType::Utf8View => {
            let texts = array.as_string_view();
            texts.iter().map(|text| text.map_or(0, str::len)).sum()
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter().map(array_bytes);
            columns.fold(array.len(), usize::saturating_add)
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            let first = offsets.first().map_or(0, |first| *first as usize);
            let inner = list.values().slice(first, span(offsets));
            array_bytes(&inner).saturating_add(size_of_val(offsets))
        }
        _ => {
            let data = array.to_data();
            data.get_slice_memory_size()
                .unwrap_or_else(|_| array.get_array_memory_size())
        }
    }
}

/// The number of elements in series of numbers with a fraction.
fn fraction_steps(arrays: &[ArrayRef]) -> usize {
    let numbers = |at: usize| arrays.get(at)?.as_primitive_opt::<Float64Type>();
    let (Some(starts), Some(stops)) = (numbers(0), numbers(1)) else {
        return 0;
    };
    let steps = numbers(2);
    (0..starts.len()).fold(0, |total: usize, row| {
        let step = steps.map_or(1.0, |steps| steps.value(row));
        // The cast saturates; NaN becomes 0.
        let count = ((stops.value(row) - starts.value(row)) / step).max(0.0) as usize;
        total.saturating_add(count).saturating_add(2)
    })
}

fn span(offsets: &[i32]) -> usize {
    let (first, last) = (offsets.first(), offsets.last());
    let bytes = last.zip(first).map_or(0, |(last, first)| last - first);
    usize::try_from(bytes).unwrap_or(0)
}

fn elements(array: &ArrayRef) -> usize {
    let inner = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            let first = offsets.first().map_or(0, |first| *first as usize);
            list.values().slice(first, span(offsets))
        }
        DataType::LargeList(_) => ArrayRef::clone(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => ArrayRef::clone(array.as_fixed_size_list().values()),
        _ => return 0,
    };
    inner.len().saturating_add(elements(&inner))
}
