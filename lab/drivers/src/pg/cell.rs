//! A value in PostgreSQL's binary form as a cell of an answer.
//!
//! Source: the functions `…_send` of PostgreSQL's `src/backend/utils/adt`.

use crate::arrow::MONTH_DAYS;
use marigram_lab::question::Cell;
use std::error::Error;
use tokio_postgres::types::{FromSql, Type};

/// Microseconds from the Unix epoch to PostgreSQL's, 2000-01-01.
pub(super) const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// A value of any type that an answer may have.
#[derive(Debug, PartialEq)]
pub(super) struct AnyCell(pub Cell);

type Failure = Box<dyn Error + Sync + Send>;

impl<'a> FromSql<'a> for AnyCell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        let cell = match *kind {
            Type::BOOL => Cell::Number(f64::from(u8::from(bool::from_sql(kind, raw)?))),
            Type::INT2 => Cell::Number(f64::from(i16::from_sql(kind, raw)?)),
            Type::INT4 => Cell::Number(f64::from(i32::from_sql(kind, raw)?)),
            Type::INT8 => Cell::Number(i64::from_sql(kind, raw)? as f64),
            Type::FLOAT4 => Cell::Number(f64::from(f32::from_sql(kind, raw)?)),
            Type::FLOAT8 => Cell::Number(f64::from_sql(kind, raw)?),
            Type::NUMERIC => Cell::Number(numeric(raw)?),
            Type::TIMESTAMP | Type::TIMESTAMPTZ => {
                let us = i64::from_be_bytes(raw.try_into()?);
                let ns = us
                    .checked_add(POSTGRES_EPOCH_US)
                    .and_then(|us| us.checked_mul(1_000));
                Cell::Time(ns.ok_or("a time outside of the years 1677 to 2262")?)
            }
            Type::INTERVAL => Cell::Number(interval_s(raw)?),
            _ => Cell::Text(String::from_sql(kind, raw)?),
        };
        Ok(Self(cell))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self(Cell::Null))
    }

    fn accepts(kind: &Type) -> bool {
        let known = [
            Type::BOOL,
            Type::INT2,
            Type::INT4,
            Type::INT8,
            Type::FLOAT4,
            Type::FLOAT8,
            Type::NUMERIC,
            Type::TIMESTAMP,
            Type::TIMESTAMPTZ,
            Type::INTERVAL,
        ];
        known.contains(kind) || <String as FromSql>::accepts(kind)
    }
}

/// Digits in base 10,000; the first one counts 10,000^weight.
fn numeric(raw: &[u8]) -> Result<f64, Failure> {
    let words: Vec<i16> = raw
        .chunks_exact(2)
        .map(|word| i16::from_be_bytes([word[0], word[1]]))
        .collect();
    let [count, weight, sign, _scale, digits @ ..] = words.as_slice() else {
        return Err("a numeric of less than eight bytes".into());
    };
    if digits.len() != *count as usize {
        return Err("a numeric with digits missing".into());
    }
    let first = i32::from(*weight);
    let sum: f64 = (0..)
        .zip(digits)
        .map(|(at, digit)| f64::from(*digit) * 10_000f64.powi(first - at))
        .sum();
    match *sign as u16 {
        0x0000 => Ok(sum),
        0x4000 => Ok(-sum),
        0xD000 => Ok(f64::INFINITY),
        0xF000 => Ok(f64::NEG_INFINITY),
        _ => Ok(f64::NAN),
    }
}

/// Microseconds, days, months.
fn interval_s(raw: &[u8]) -> Result<f64, Failure> {
    let (us, rest) = raw
        .split_first_chunk::<8>()
        .ok_or("an interval that is cut")?;
    let (days, rest) = rest
        .split_first_chunk::<4>()
        .ok_or("an interval that is cut")?;
    let months = i32::from_be_bytes(rest.try_into()?);
    let days = f64::from(i32::from_be_bytes(*days)) + f64::from(months) * MONTH_DAYS;
    Ok(days * 86_400.0 + i64::from_be_bytes(*us) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn read(kind: Type, raw: &[u8]) -> Cell {
        AnyCell::from_sql(&kind, raw).expect("a whole value").0
    }

    #[test]
    fn numerics_have_digits_to_the_base_of_ten_thousand() {
        // 12345.6789, -0.0005 and 0
        let number = |raw: &[u16]| read(Type::NUMERIC, &words(raw));
        let close = |cell, expected: f64| match cell {
            Cell::Number(number) => (number - expected).abs() < 1e-9,
            _ => false,
        };
        assert!(close(number(&[3, 1, 0, 4, 1, 2345, 6789]), 12_345.678_9));
        assert!(close(number(&[1, 0xFFFF, 0x4000, 4, 5]), -0.0005));
        assert!(close(number(&[0, 0, 0, 0]), 0.0));
        let cut = words(&[2, 0, 0, 0, 7]);
        assert!(AnyCell::from_sql(&Type::NUMERIC, &cut).is_err());
    }

    #[test]
    fn times_and_intervals() {
        let second = 1_000_000i64.to_be_bytes();
        let expected = Cell::Time(946_684_801_000_000_000);
        assert_eq!(read(Type::TIMESTAMPTZ, &second), expected);
        assert!(AnyCell::from_sql(&Type::TIMESTAMP, &i64::MAX.to_be_bytes()).is_err());
        let interval = [&second[..], &[0, 0, 0, 2], &[0, 0, 0, 1]].concat();
        assert_eq!(
            read(Type::INTERVAL, &interval),
            Cell::Number(32.0 * 86_400.0 + 1.0)
        );
        assert!(AnyCell::from_sql(&Type::INTERVAL, &interval[..14]).is_err());
    }
}
