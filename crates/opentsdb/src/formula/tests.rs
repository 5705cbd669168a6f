//! Tests of formulas. The values are those of OpenTSDB 2.4.1 with JEXL 2.1.1.

use super::*;
use proptest::prelude::*;

fn computed(text: &str, values: &[(&str, f64)]) -> f64 {
    let formula = Formula::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    let value = |name: &String| {
        let mut known = values.iter();
        known
            .find(|(known, _)| known == name)
            .expect("it is known")
            .1
    };
    let values: Vec<f64> = formula.variables().iter().map(value).collect();
    formula.compute(&values, &mut Vec::new())
}

#[test]
fn arithmetic_is_that_of_jexl() {
    for (text, expected) in [
        ("a + b", 3.75),
        ("a*(b+1)-2", 3.625),
        ("a - 1 - 1", 0.5),
        ("a / 2 / 2", 0.625),
        ("a * 2 % 3", 2.0),
        ("a div b", 2.0),
        ("a mod b", 0.0),
        ("-a * 2", -5.0),
        ("a--b", 3.75),
        ("a - -b", 3.75),
        // Numbers of a formula are integers where they can be.
        ("1/2*a", 0.0),
        ("a*1/2", 1.25),
        ("7 / 2 + a", 5.5),
        ("-7 / 2 + a", -0.5),
        ("-7 % 3 + a", 4.5),
        ("7 % -3 + a", 2.5),
        ("2147483647 + 1 + a", 2_147_483_650.5),
        ("3000000000*3000000000*3000000000+a*0", 2.7e28),
        // A division by zero is zero.
        ("a / 0", 0.0),
        ("a % 0.0", 0.0),
        ("7 / 0 + a", 2.5),
        ("a + 0x10", 18.5),
        ("a + 010", 10.5),
        ("a + 2L", 4.5),
        ("a + 2.5e1", 27.5),
        ("a + 2.5f", 5.0),
        ("a + 1e2 + .5", 103.0),
        ("a\n + b", 3.75),
    ] {
        assert_eq!(
            computed(text, &[("a", 2.5), ("b", 1.25)]),
            expected,
            "{text}"
        );
    }
}

#[test]
fn conditions_are_one_and_zero() {
    let (a, b) = (2.5, 0.0);
    for (text, expected) in [
        ("a > b", 1.0),
        ("a <= 2", 0.0),
        ("a == 2.5", 1.0),
        ("a ne 2.5", 0.0),
        ("!a", 0.0),
        ("!!a", 1.0),
        ("not b", 1.0),
        ("a && b", 0.0),
        ("a and b or a", 1.0),
        ("b == 1 || a == 2.5 && 0 == 1", 0.0),
        ("a > 2 ? a : b", a),
        ("b ? a : 7", 7.0),
        ("b ?: a", a),
        ("b?0?1:2:3", 3.0),
        ("a?0?1:2:3", 2.0),
        ("b == 1 ? 1 : a == 2.5 ? 2 : 3", 2.0),
        ("(a > 2) * a", a),
        ("(a > 2) + 1.0", 2.0),
        ("1 - a > 0", 0.0),
        ("a > 0 == true", 1.0),
        ("a > 0 != a", 0.0),
        ("b > 0 != b", 0.0),
        ("a > 2 && true", 1.0),
    ] {
        assert_eq!(computed(text, &[("a", a), ("b", b)]), expected, "{text}");
    }
}

#[test]
fn missing_values_are_less_than_all_others_and_not_true() {
    for (text, expected) in [
        ("n == n", 1.0),
        ("n != n", 0.0),
        ("n > 1", 0.0),
        ("n < 1", 1.0),
        ("1 < n", 0.0),
        ("1 > n", 1.0),
        ("n >= n", 1.0),
        ("!n", 1.0),
        ("n && 1", 0.0),
        ("n ? 1 : 5", 5.0),
        ("n / 0", 0.0),
    ] {
        assert_eq!(computed(text, &[("n", f64::NAN)]), expected, "{text}");
    }
    assert!(computed("n + 1", &[("n", f64::NAN)]).is_nan());
}

#[test]
fn variables_are_named_once() {
    let formula = Formula::parse("a + b * a - c1").unwrap();
    assert_eq!(formula.variables(), ["a", "b", "c1"]);
}

#[test]
fn what_is_no_formula_is_told() {
    for (text, what) in [
        ("", "column 1: a number or a variable is missing"),
        ("a +", "column 4: a number or a variable is missing"),
        ("a b", "column 3: an operator is missing"),
        ("(a", "column 3: ')' is missing"),
        ("a)", "column 2: an operator is missing"),
        ("a ** 2", "column 4: a number or a variable is missing"),
        ("a ? 1", "column 6: ':' is missing"),
        ("a < 2 < 3", "column 7: an operator is missing"),
        ("a.b", "column 2: '.' is not supported"),
        ("a & 1", "column 3: '&' is not supported"),
        ("math:abs(a)", "column 5: an operator is missing"),
        ("abs(a)", "column 4: there are no functions"),
        ("a + 'x'", "column 5: ''' is not supported"),
        ("+a", "column 1: a number or a variable is missing"),
        ("a + 2.", "column 5: it is no number"),
        ("a + 1a", "column 5: it is no number"),
        ("ä + ß ß", "column 7: an operator is missing"),
    ] {
        let fault = Formula::parse(text).unwrap_err().message;
        assert!(fault.ends_with(what), "{text}: {fault}");
    }
    assert_eq!(
        Formula::parse("1 + 2").unwrap_err().message,
        "The expression didn't appear to have any variables"
    );
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Formula::parse(&nested(64)).is_ok());
    for text in [
        nested(65),
        format!("{}a", "-".repeat(2000)),
        format!("{}a", "!".repeat(2000)),
        "a?".repeat(1000),
        "a?:".repeat(1000),
        format!("{}a", "a?1:".repeat(500)),
        "(".repeat(4000),
        "a+".repeat(5000),
    ] {
        assert!(Formula::parse(&text).is_err());
    }
    // A long chain does not nest.
    let chain = format!("{}a", "a+".repeat(2000));
    assert_eq!(computed(&chain, &[("a", 1.0)]), 2001.0);
}

/// A formula with its value, computed while it is written.
fn written() -> impl Strategy<Value = (String, f64)> {
    let leaf = prop_oneof![
        Just(("a".to_owned(), 2.5)),
        Just(("b".to_owned(), -0.75)),
        (1_u8..100).prop_map(|number| (format!("{number}.0"), f64::from(number))),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        (inner.clone(), inner.clone(), inner, 0..6).prop_map(|(x, y, z, operator)| match operator {
            0 => (format!("({} + {})", x.0, y.0), x.1 + y.1),
            1 => (format!("({} - {})", x.0, y.0), x.1 - y.1),
            2 => (format!("({} * {})", x.0, y.0), x.1 * y.1),
            3 => {
                let value = if y.1 == 0.0 { 0.0 } else { x.1 / y.1 };
                (format!("({} / {})", x.0, y.0), value)
            }
            4 => {
                let value = if x.1 < y.1 { y.1 } else { z.1 };
                (format!("({} < {} ? {} : {})", x.0, y.0, y.0, z.0), value)
            }
            _ => (format!("-{}", x.0), -x.1),
        })
    })
}

proptest! {
    #[test]
    fn formulas_are_computed_as_they_are_written((text, expected) in written()) {
        let text = format!("{text} + a * 0.0 + b * 0.0");
        let value = computed(&text, &[("a", 2.5), ("b", -0.75)]);
        prop_assert!(value == expected || value.is_nan() && !expected.is_finite(), "{} {}", text, value);
    }

    #[test]
    fn any_text_is_a_formula_or_none(text in ".{0,60}", signs in "[ab0-9.()?:<>=!&|+*/% -]{0,60}") {
        for text in [text, signs] {
            if let Ok(formula) = Formula::parse(&text) {
                let values = vec![1.0; formula.variables().len()];
                formula.compute(&values, &mut Vec::new());
            }
        }
    }
}
