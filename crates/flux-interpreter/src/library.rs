//! The functions of Flux: those of every script, and those of the packages that it imports.

mod aggregates;
mod columns;
mod conversions;
mod dates;
mod grouping;
mod joins;
mod numbers;
mod record_columns;
mod selectors;
mod sequences;
mod sources;
mod texts;
mod windowing;

use crate::value::{ENDLESS, FluxBuiltin, FluxValue};

/// A package: its path, its functions, and its constants.
struct FluxPackage {
    path: &'static str,
    functions: &'static [&'static [FluxBuiltin]],
    constants: &'static [(&'static str, f64)],
}

/// The functions that need no import.
const UNIVERSE: [&[FluxBuiltin]; 9] = [
    sources::FUNCTIONS,
    aggregates::FUNCTIONS,
    selectors::FUNCTIONS,
    columns::FUNCTIONS,
    grouping::FUNCTIONS,
    windowing::FUNCTIONS,
    joins::FUNCTIONS,
    sequences::FUNCTIONS,
    conversions::FUNCTIONS,
];

const PACKAGES: [FluxPackage; 6] = [
    FluxPackage {
        path: "influxdata/influxdb/schema",
        functions: &[sources::SCHEMA],
        constants: &[],
    },
    FluxPackage {
        path: "influxdata/influxdb/v1",
        functions: &[sources::SCHEMA],
        constants: &[],
    },
    FluxPackage {
        path: "array",
        functions: &[sources::ARRAY],
        constants: &[],
    },
    FluxPackage {
        path: "math",
        functions: &[numbers::FUNCTIONS],
        constants: &[
            ("pi", std::f64::consts::PI),
            ("e", std::f64::consts::E),
            ("sqrt2", std::f64::consts::SQRT_2),
            ("ln2", std::f64::consts::LN_2),
            ("ln10", std::f64::consts::LN_10),
            ("maxfloat", f64::MAX),
        ],
    },
    FluxPackage {
        path: "strings",
        functions: &[texts::FUNCTIONS],
        constants: &[],
    },
    FluxPackage {
        path: "date",
        functions: &[dates::FUNCTIONS],
        constants: &[],
    },
];

fn find(functions: &'static [&'static [FluxBuiltin]], name: &str) -> Option<FluxValue> {
    let mut functions = functions.iter().flat_map(|functions| functions.iter());
    let found = functions.find(|function| function.name == name)?;
    Some(FluxValue::Builtin(found))
}

/// What a name without an import stands for.
pub(crate) fn global(name: &str) -> Option<FluxValue> {
    static ALL: &[&[FluxBuiltin]] = &UNIVERSE;
    match name {
        "true" => Some(FluxValue::Bool(true)),
        "false" => Some(FluxValue::Bool(false)),
        "inf" => Some(FluxValue::Duration(ENDLESS)),
        name => find(ALL, name),
    }
}

/// The path of a package that there is.
pub(crate) fn package(path: &str) -> Option<&'static str> {
    let mut paths = PACKAGES.iter().map(|package| package.path);
    paths.find(|known| *known == path)
}

/// A function or a constant of a package.
pub(crate) fn member(path: &str, name: &str) -> Option<FluxValue> {
    static ALL: &[FluxPackage] = &PACKAGES;
    let package = ALL.iter().find(|package| package.path == path)?;
    let constant = package.constants.iter().find(|(known, _)| *known == name);
    match constant {
        Some((_, value)) => Some(FluxValue::Float(*value)),
        None => find(package.functions, name),
    }
}
