//! Trigonometric functions of degrees: `sind`, `cosd`, `tand`, `cotd` and their inverses.
//!
//! They are computed as PostgreSQL does (`float.c`): each is scaled so that multiples of 30 and 45 degrees
//! have exact answers, such as `sind(30) = 0.5`.

use crate::refusal::refused;
use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// A function of one argument; `None` if it is out of range.
type AngleFunction = fn(f64) -> Option<f64>;

/// The functions of one argument.
const UNARY: [(&str, AngleFunction); 7] = [
    ("sind", sind),
    ("cosd", cosd),
    ("tand", tand),
    ("cotd", cotd),
    ("asind", asind),
    ("acosd", acosd),
    ("atand", |tangent| Some(atand(tangent))),
];
/// The function of two arguments.
const ATAN2D: &str = "atan2d";

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DegreeFunction {
    name: &'static str,
    signature: Signature,
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let function = |name, arguments| {
        let types = vec![DataType::Float64; arguments];
        ScalarUDF::from(DegreeFunction {
            name,
            signature: Signature::exact(types, Volatility::Immutable),
        })
    };
    let unary = UNARY.iter().map(|(name, _)| function(name, 1));
    unary.chain([function(ATAN2D, 2)]).collect()
}

impl ScalarUDFImpl for DegreeFunction {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_scalar = args.args.iter().all(is_scalar);
        let rows = if all_scalar { 1 } else { args.number_rows };
        let numbers = args.args.iter().map(|arg| {
            let array = arg.to_array(rows)?;
            Ok(cast(&array, &DataType::Float64)?)
        });
        let numbers = numbers.collect::<Result<Vec<ArrayRef>>>()?;
        let found = UNARY.iter().find(|(name, _)| *name == self.name);
        let answers: Float64Array = match (numbers.as_slice(), found) {
            ([numbers], Some((_, compute))) => {
                let numbers = numbers.as_primitive::<Float64Type>().iter();
                let answer = |number: f64| compute(number).ok_or_else(out_of_range);
                let answers = numbers.map(|number| number.map(answer).transpose());
                answers.collect::<Result<_>>()?
            }
            ([ordinates, abscissas], None) => {
                let ordinates = ordinates.as_primitive::<Float64Type>().iter();
                let abscissas = abscissas.as_primitive::<Float64Type>().iter();
                let pairs = ordinates.zip(abscissas);
                pairs.map(|(y, x)| Some(atan2d(y?, x?))).collect()
            }
            _ => return internal_err!("{} has other arguments", self.name),
        };
        Ok(if all_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(answers))
        })
    }
}

fn out_of_range() -> DataFusionError {
    refused("22003", "input is out of range")
}

/// The sine of 0 to 30 degrees.
fn sine_to_30(degrees: f64) -> f64 {
    degrees.to_radians().sin() / 30_f64.to_radians().sin() / 2.0
}

/// The cosine of 0 to 60 degrees.
fn cosine_to_60(degrees: f64) -> f64 {
    let whole = 1.0 - 60_f64.to_radians().cos();
    1.0 - (1.0 - degrees.to_radians().cos()) / whole / 2.0
}

/// The sine of 0 to 90 degrees.
fn sine_to_90(degrees: f64) -> f64 {
    if degrees <= 30.0 {
        sine_to_30(degrees)
    } else {
        cosine_to_60(90.0 - degrees)
    }
}

/// The cosine of 0 to 90 degrees.
fn cosine_to_90(degrees: f64) -> f64 {
    if degrees <= 60.0 {
        cosine_to_60(degrees)
    } else {
        sine_to_30(90.0 - degrees)
    }
}

/// An angle between 0 and 90 degrees, and the signs that the sine and the cosine of the whole angle have
/// beside those of that one; `None` for infinite angles.
fn in_first_quadrant(degrees: f64) -> Option<(f64, f64, f64)> {
    if degrees.is_infinite() {
        return None;
    }
    let (mut angle, mut sine, mut cosine) = (degrees % 360.0, 1.0, 1.0);
    if angle < 0.0 {
        (angle, sine) = (-angle, -sine);
    }
    if angle > 180.0 {
        (angle, sine) = (360.0 - angle, -sine);
    }
    if angle > 90.0 {
        (angle, cosine) = (180.0 - angle, -cosine);
    }
    Some((angle, sine, cosine))
}

fn sind(degrees: f64) -> Option<f64> {
    let (angle, sign, _) = in_first_quadrant(degrees)?;
    Some(sign * sine_to_90(angle))
}

fn cosd(degrees: f64) -> Option<f64> {
    let (angle, _, sign) = in_first_quadrant(degrees)?;
    Some(sign * cosine_to_90(angle))
}

fn tand(degrees: f64) -> Option<f64> {
    let (angle, sine, cosine) = in_first_quadrant(degrees)?;
    let of_45 = sine_to_90(45.0) / cosine_to_90(45.0);
    let tangent = sine_to_90(angle) / cosine_to_90(angle) / of_45;
    // The sum has no negative zero.
    Some(sine * cosine * tangent + 0.0)
}

fn cotd(degrees: f64) -> Option<f64> {
    let (angle, sine, cosine) = in_first_quadrant(degrees)?;
    let of_45 = cosine_to_90(45.0) / sine_to_90(45.0);
    let cotangent = cosine_to_90(angle) / sine_to_90(angle) / of_45;
    Some(sine * cosine * cotangent + 0.0)
}

/// The arc sine of 0 to 1.
fn arc_sine(sine: f64) -> f64 {
    if sine <= 0.5 {
        sine.asin() / 0.5_f64.asin() * 30.0
    } else {
        90.0 - sine.acos() / 0.5_f64.acos() * 60.0
    }
}

/// The arc cosine of 0 to 1.
fn arc_cosine(cosine: f64) -> f64 {
    if cosine <= 0.5 {
        90.0 - cosine.asin() / 0.5_f64.asin() * 30.0
    } else {
        cosine.acos() / 0.5_f64.acos() * 60.0
    }
}

/// Whether a number is a sine or a cosine.
fn is_ratio(number: f64) -> bool {
    number.is_nan() || (-1.0..=1.0).contains(&number)
}

fn asind(sine: f64) -> Option<f64> {
    let angle = if sine < 0.0 {
        -arc_sine(-sine)
    } else {
        arc_sine(sine)
    };
    is_ratio(sine).then_some(angle)
}

fn acosd(cosine: f64) -> Option<f64> {
    let angle = if cosine < 0.0 {
        90.0 + arc_sine(-cosine)
    } else {
        arc_cosine(cosine)
    };
    is_ratio(cosine).then_some(angle)
}

fn atand(tangent: f64) -> f64 {
    tangent.atan() / 1_f64.atan() * 45.0
}

fn atan2d(ordinate: f64, abscissa: f64) -> f64 {
    ordinate.atan2(abscissa) / 1_f64.atan() * 45.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers of PostgreSQL 15.
    #[test]
    fn multiples_of_30_and_45_degrees_are_exact() {
        for (degrees, sine, cosine, tangent) in [
            (0.0, 0.0, 1.0, 0.0),
            (30.0, 0.5, 0.866_025_403_784_438_7, 0.577_350_269_189_626),
            (45.0, 0.707_106_781_186_547_5, 0.707_106_781_186_547_5, 1.0),
            (60.0, 0.866_025_403_784_438_7, 0.5, 1.732_050_807_568_877),
            (-30.0, -0.5, 0.866_025_403_784_438_7, -0.577_350_269_189_626),
            (
                135.0,
                0.707_106_781_186_547_5,
                -0.707_106_781_186_547_5,
                -1.0,
            ),
            (180.0, 0.0, -1.0, 0.0),
            (750.0, 0.5, 0.866_025_403_784_438_7, 0.577_350_269_189_626),
        ] {
            let near =
                |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 2e-15;
            assert!(near(sind(degrees), sine), "sind({degrees})");
            assert!(near(cosd(degrees), cosine), "cosd({degrees})");
            assert!(near(tand(degrees), tangent), "tand({degrees})");
        }
        let exact = [sind(30.0), cosd(60.0), sind(750.0), cosd(-60.0)];
        assert_eq!(exact, [Some(0.5); 4]);
        assert_eq!([tand(45.0), cotd(45.0)], [Some(1.0); 2]);
        assert_eq!([sind(90.0), cosd(0.0)], [Some(1.0); 2]);
        assert_eq!([cosd(90.0), tand(0.0), tand(180.0)], [Some(0.0); 3]);
        assert_eq!(cotd(180.0), Some(f64::NEG_INFINITY));
        assert_eq!([asind(0.5), acosd(0.5)], [Some(30.0), Some(60.0)]);
        assert_eq!([asind(-1.0), acosd(-1.0)], [Some(-90.0), Some(180.0)]);
        assert_eq!([atand(1.0), atand(f64::INFINITY)], [45.0, 90.0]);
        assert_eq!(atan2d(-1.0, -1.0), -135.0);
    }

    #[test]
    fn angles_without_an_end_and_other_ratios_are_refused() {
        assert_eq!([sind(f64::INFINITY), cosd(f64::NEG_INFINITY)], [None; 2]);
        assert_eq!([asind(2.0), acosd(-1.5)], [None; 2]);
        assert!(sind(f64::NAN).is_some_and(f64::is_nan));
        assert!(asind(f64::NAN).is_some_and(f64::is_nan));
    }
}
