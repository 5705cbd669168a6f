//! Loops over whole numbers that detect results that do not fit.
//!
//! A loop computes all results and, with them, whether any result may be wrong. Only in that case
//! does a second pass check the results one by one, without the nulls. So the usual case has no
//! branch per row.
#![expect(
    clippy::inline_always,
    reason = "a call that remains in a loop prevents vectorization"
)]

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Operator;
use std::ops::{BitOr, BitXor};
use std::sync::Arc;

/// The operation to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ArithmeticOp {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`, of floats
    Divide,
    /// `a # b`, of whole numbers
    BitwiseXor,
}

impl ArithmeticOp {
    /// The operator in an expression.
    pub(super) fn operator(self) -> Operator {
        match self {
            Self::Add => Operator::Plus,
            Self::Subtract => Operator::Minus,
            Self::Multiply => Operator::Multiply,
            Self::Divide => Operator::Divide,
            Self::BitwiseXor => Operator::BitwiseXor,
        }
    }
}

/// Whole numbers of one width. Each result has *flags*; their union over all rows says whether any
/// result may be wrong. Flags are words and not truth values, so that the loops become vector
/// instructions.
pub(super) trait KernelInteger:
    Copy + Default + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// SQL's name of the type.
    const NAME: &'static str;
    /// `a + b`, and its flags.
    fn add(self, other: Self) -> (Self, Self);
    /// `a - b`, and its flags.
    fn subtract(self, other: Self) -> (Self, Self);
    /// `a * b`, and its flags, which may report a correct result as doubtful.
    fn multiply(self, other: Self) -> (Self, Self);
    /// Whether any result may be wrong, according to the union of the flags.
    fn is_doubtful(op: ArithmeticOp, flags: Self) -> bool;
    /// The result, if it fits.
    fn exact(op: ArithmeticOp, left: Self, right: Self) -> Option<Self>;
}

macro_rules! exact {
    () => {
        fn exact(op: ArithmeticOp, left: Self, right: Self) -> Option<Self> {
            match op {
                ArithmeticOp::Add => left.checked_add(right),
                ArithmeticOp::Subtract => left.checked_sub(right),
                ArithmeticOp::Multiply => left.checked_mul(right),
                ArithmeticOp::Divide => left.checked_div(right),
                ArithmeticOp::BitwiseXor => Some(left ^ right),
            }
        }
    };
}

macro_rules! signed {
    ($native:ty, $name:literal, $multiply:expr, $flag_bits:literal) => {
        impl KernelInteger for $native {
            const NAME: &'static str = $name;

            #[inline(always)]
            fn add(self, other: Self) -> (Self, Self) {
                let sum = self.wrapping_add(other);
                (sum, (self ^ sum) & (other ^ sum))
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> (Self, Self) {
                let difference = self.wrapping_sub(other);
                (difference, (self ^ other) & (self ^ difference))
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> (Self, Self) {
                $multiply(self, other)
            }

            fn is_doubtful(op: ArithmeticOp, flags: Self) -> bool {
                match op {
                    // Two operands of one sign gave a result of the other sign.
                    ArithmeticOp::Add | ArithmeticOp::Subtract => flags < 0,
                    ArithmeticOp::Multiply | ArithmeticOp::Divide => flags >> $flag_bits != 0,
                    ArithmeticOp::BitwiseXor => false,
                }
            }

            exact!();
        }
    };
}

macro_rules! unsigned {
    ($native:ty, $name:literal, $multiply:expr, $flag_bits:literal) => {
        impl KernelInteger for $native {
            const NAME: &'static str = $name;

            #[inline(always)]
            fn add(self, other: Self) -> (Self, Self) {
                let sum = self.wrapping_add(other);
                (sum, Self::from(sum < self))
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> (Self, Self) {
                (self.wrapping_sub(other), Self::from(self < other))
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> (Self, Self) {
                $multiply(self, other)
            }

            fn is_doubtful(op: ArithmeticOp, flags: Self) -> bool {
                match op {
                    ArithmeticOp::Add | ArithmeticOp::Subtract => flags != 0,
                    ArithmeticOp::Multiply | ArithmeticOp::Divide => flags >> $flag_bits != 0,
                    ArithmeticOp::BitwiseXor => false,
                }
            }

            exact!();
        }
    };
}

/// Products of 32-bit numbers always fit; others are checked one by one. The flags are the union of
/// the operands, shifted so that those of 32 bits are not negative.
#[inline(always)]
fn multiply_i64(a: i64, b: i64) -> (i64, i64) {
    let shifted = |x: i64| x.wrapping_add(1 << 31);
    (a.wrapping_mul(b), shifted(a) | shifted(b))
}

#[inline(always)]
fn multiply_u64(a: u64, b: u64) -> (u64, u64) {
    (a.wrapping_mul(b), a | b)
}

#[inline(always)]
fn multiply_i32(a: i32, b: i32) -> (i32, i32) {
    let product = i64::from(a) * i64::from(b);
    (product as i32, ((product + (1 << 31)) >> 32) as i32)
}

#[inline(always)]
fn multiply_u32(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    (product as u32, (product >> 32) as u32)
}

macro_rules! multiply_narrow {
    ($native:ty) => {
        |a: $native, b: $native| {
            let (product, wrong) = a.overflowing_mul(b);
            (product, <$native>::from(wrong))
        }
    };
}

// The last number: how many bits of the flags of a product mean nothing.
signed!(i8, "TINYINT", multiply_narrow!(i8), 0);
signed!(i16, "SMALLINT", multiply_narrow!(i16), 0);
signed!(i32, "INT", multiply_i32, 0);
signed!(i64, "BIGINT", multiply_i64, 32);
unsigned!(u8, "TINYINT UNSIGNED", multiply_narrow!(u8), 0);
unsigned!(u16, "SMALLINT UNSIGNED", multiply_narrow!(u16), 0);
unsigned!(u32, "INT UNSIGNED", multiply_u32, 0);
unsigned!(u64, "BIGINT UNSIGNED", multiply_u64, 32);

/// A column, or one value for all rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelOperand<'a> {
    /// The column; it has one row if it is a single value.
    pub array: &'a ArrayRef,
    /// Whether it is a single value.
    pub is_scalar: bool,
}

/// Computes each of `rows` rows; both sides have the same type of whole numbers.
///
/// # Errors
/// If a result does not fit (22003).
pub(super) fn compute(
    op: ArithmeticOp,
    left: KernelOperand<'_>,
    right: KernelOperand<'_>,
    rows: usize,
) -> Result<ArrayRef> {
    macro_rules! of {
        ($kind:ty) => {
            match op {
                ArithmeticOp::Add => typed::<$kind>(op, left, right, rows, KernelInteger::add),
                ArithmeticOp::Subtract => {
                    typed::<$kind>(op, left, right, rows, KernelInteger::subtract)
                }
                ArithmeticOp::Multiply => {
                    typed::<$kind>(op, left, right, rows, KernelInteger::multiply)
                }
                ArithmeticOp::BitwiseXor => {
                    typed::<$kind>(op, left, right, rows, |a, b| (a ^ b, Default::default()))
                }
                ArithmeticOp::Divide => internal_err!("whole numbers divide elsewhere"),
            }
        };
    }
    match left.array.data_type() {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        other => internal_err!("checked arithmetic of {other}"),
    }
}

/// Rows that are computed at once: their operands and results fit in the first cache.
const BLOCK_ROWS: usize = 512;

/// The results of blocks of rows, and the union of their flags. Two loops read each block: one that
/// stores results and unites flags is not vectorized reliably, and takes twice as long then.
#[inline(always)]
fn in_blocks<N, B>(rows: usize, blocks: impl Iterator<Item = B>) -> (Vec<N>, N)
where
    N: KernelInteger,
    B: ExactSizeIterator<Item = (N, N)> + Clone,
{
    let mut results = Vec::with_capacity(rows);
    let mut flags = N::default();
    for block in blocks {
        results.extend(block.clone().map(|(result, _)| result));
        flags = block.fold(flags, |flags, (_, more)| flags | more);
    }
    (results, flags)
}

fn typed<T>(
    op: ArithmeticOp,
    left: KernelOperand<'_>,
    right: KernelOperand<'_>,
    rows: usize,
    quick: impl Fn(T::Native, T::Native) -> (T::Native, T::Native),
) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: KernelInteger,
{
    let (Some(a), Some(b)) = (
        left.array.as_primitive_opt::<T>(),
        right.array.as_primitive_opt::<T>(),
    ) else {
        return internal_err!("checked arithmetic of two types");
    };
    let is_null = |side: &PrimitiveArray<T>, operand: KernelOperand<'_>| {
        operand.is_scalar && side.null_count() > 0
    };
    if is_null(a, left) || is_null(b, right) {
        return Ok(Arc::new(PrimitiveArray::<T>::new_null(rows)));
    }
    let nulls = |side: &PrimitiveArray<T>, operand: KernelOperand<'_>| {
        (!operand.is_scalar)
            .then(|| side.nulls().cloned())
            .flatten()
    };
    let nulls = NullBuffer::union(nulls(a, left).as_ref(), nulls(b, right).as_ref());
    let (a, b) = (a.values(), b.values());
    let (results, flags) = match (left.is_scalar, right.is_scalar) {
        (true, true) => {
            let (result, flags) = quick(a[0], b[0]);
            (vec![result; rows], flags)
        }
        (true, false) => {
            let one = a[0];
            let blocks = b.chunks(BLOCK_ROWS);
            in_blocks(rows, blocks.map(|b| b.iter().map(|b| quick(one, *b))))
        }
        (false, true) => {
            let one = b[0];
            let blocks = a.chunks(BLOCK_ROWS);
            in_blocks(rows, blocks.map(|a| a.iter().map(|a| quick(*a, one))))
        }
        (false, false) => {
            let blocks = a.chunks(BLOCK_ROWS).zip(b.chunks(BLOCK_ROWS));
            in_blocks(
                rows,
                blocks.map(|(a, b)| a.iter().zip(b).map(|(a, b)| quick(*a, *b))),
            )
        }
    };
    if T::Native::is_doubtful(op, flags) {
        let at =
            |values: &[T::Native], scalar: bool, row: usize| values[if scalar { 0 } else { row }];
        for row in 0..results.len() {
            let is_there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let (a, b) = (at(a, left.is_scalar, row), at(b, right.is_scalar, row));
            if is_there && T::Native::exact(op, a, b).is_none() {
                return Err(super::out_of_range(format!(
                    "the result of {a:?} {op} {b:?} is out of the range of {}",
                    T::Native::NAME
                )));
            }
        }
    }
    Ok(Arc::new(PrimitiveArray::<T>::new(results.into(), nulls)))
}

impl std::fmt::Display for ArithmeticOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::BitwiseXor => "#",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;

    const OPS: [ArithmeticOp; 4] = [
        ArithmeticOp::Add,
        ArithmeticOp::Subtract,
        ArithmeticOp::Multiply,
        ArithmeticOp::BitwiseXor,
    ];

    /// Tests every pair of numbers, as columns and as single values, against the standard library.
    fn pairs<T>(values: &[T::Native])
    where
        T: ArrowPrimitiveType,
        T::Native: KernelInteger + PartialEq,
    {
        let column = |values: &[T::Native]| {
            Arc::new(PrimitiveArray::<T>::from_iter_values(
                values.iter().copied(),
            )) as ArrayRef
        };
        for op in OPS {
            for a in values {
                for b in values {
                    let expected = T::Native::exact(op, *a, *b);
                    for (left, right) in
                        [(false, false), (true, false), (false, true), (true, true)]
                    {
                        let zero = <T::Native as Default>::default();
                        let side = |value: T::Native, scalar: bool| {
                            // Add rows that fit.
                            column(&if scalar {
                                vec![value]
                            } else {
                                vec![zero, value, zero]
                            })
                        };
                        if expected.is_none() || (!left && !right) {
                            let (l, r) = (side(*a, left), side(*b, right));
                            let operand = |array, is_scalar| KernelOperand { array, is_scalar };
                            let made = compute(op, operand(&l, left), operand(&r, right), 3);
                            match expected {
                                Some(expected) => {
                                    let made = made.unwrap();
                                    assert!(made.as_primitive::<T>().value(1) == expected);
                                }
                                None => assert!(made.is_err(), "{a:?} {op} {b:?}"),
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn results_are_exact_or_errors() {
        let i64s = [
            i64::MIN,
            i64::MIN + 1,
            -(1 << 32),
            -(1 << 31),
            -3_037_000_500,
            -1,
            0,
            1,
            2,
            (1 << 31) - 1,
            1 << 31,
            3_037_000_499,
            3_037_000_500,
            i64::MAX - 1,
            i64::MAX,
        ];
        pairs::<Int64Type>(&i64s);
        pairs::<Int32Type>(&[
            i32::MIN,
            -65_536,
            -46_341,
            -1,
            0,
            1,
            46_340,
            65_536,
            i32::MAX,
        ]);
        pairs::<Int16Type>(&[i16::MIN, -182, -1, 0, 1, 181, 182, i16::MAX]);
        let i8s: Vec<i8> = (i8::MIN..=i8::MAX).collect();
        pairs::<Int8Type>(&i8s);
        pairs::<UInt64Type>(&[0, 1, 2, 1 << 32, u64::MAX / 2, u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn nulls_are_null_whatever_stands_behind_them() {
        let values = Int64Array::new(
            vec![i64::MAX, 1, i64::MAX].into(),
            Some(NullBuffer::from(vec![false, true, false])),
        );
        let (values, one): (ArrayRef, ArrayRef) =
            (Arc::new(values), Arc::new(Int64Array::from(vec![2])));
        let left = KernelOperand {
            array: &values,
            is_scalar: false,
        };
        let right = KernelOperand {
            array: &one,
            is_scalar: true,
        };
        for (op, expected) in [
            (ArithmeticOp::Add, 3),
            (ArithmeticOp::Multiply, 2),
            (ArithmeticOp::Subtract, -1),
        ] {
            let made = compute(op, left, right, 3).unwrap();
            let expected = Int64Array::from(vec![None, Some(expected), None]);
            assert_eq!(made.as_primitive::<Int64Type>(), &expected);
        }
        let null: ArrayRef = Arc::new(Int64Array::from(vec![None::<i64>]));
        let made = compute(
            ArithmeticOp::Add,
            left,
            KernelOperand {
                array: &null,
                is_scalar: true,
            },
            3,
        )
        .unwrap();
        assert_eq!(made.null_count(), 3);
    }
}
