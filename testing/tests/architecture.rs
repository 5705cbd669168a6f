//! Checks the architecture of the workspace: crates only depend on lower ones, the servers know no
//! engine, the pure crates do no I/O, no crate has a cycle of modules, and every file says what it
//! is.

#[path = "architecture/production_code.rs"]
mod production_code;
#[path = "architecture/references.rs"]
mod references;
#[path = "architecture/shape.rs"]
mod shape;

use marigram_fixtures::root;
use production_code::{SourceFile, rust_files, source_files};
use references::{ModulePath, UsedName, references, used_names};
use shape::CodeShape;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate's layer. A crate may only depend on crates of lower layers.
const LAYERS: &[(&str, u32)] = &[
    ("marigram-access", 0),
    ("marigram-codec", 0),
    ("marigram-env", 0),
    ("marigram-fixtures", 0),
    ("marigram-flux", 0),
    ("marigram-influxql", 0),
    ("marigram-iotdb", 0),
    ("marigram-opentsdb", 0),
    ("marigram-pgtext", 0),
    ("marigram-reference", 0),
    ("marigram-tdengine", 0),
    ("marigram-model", 1),
    ("marigram-tsfile", 1),
    ("marigram-manifest", 2),
    ("marigram-segment", 2),
    ("marigram-series-index", 2),
    ("marigram-wal", 2),
    ("marigram-protocol", 2),
    ("marigram-service", 2),
    ("marigram-tabular", 2),
    ("marigram-engine", 3),
    ("marigram-functions", 3),
    ("marigram-server", 3),
    ("marigram-operators", 4),
    ("marigram-sql", 5),
    ("marigram-influx", 6),
    ("marigram-flux-interpreter", 7),
    ("marigram-iotdb-planner", 7),
    ("marigram-opentsdb-planner", 7),
    ("marigram-tdengine-planner", 7),
    ("marigram", 8),
    ("marigram-lab", 7),
    ("marigram-soak", 7),
    ("marigram-lab-drivers", 8),
    ("marigram-lab-peers", 9),
    ("marigram-cli", 10),
    ("marigram-testing", 10),
];

/// Dependencies that a crate must never have, whatever the layers say.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "marigram-server",
        &["marigram-engine", "marigram-sql", "marigram"],
    ),
    ("marigram-protocol", &["marigram-env", "tokio"]),
    ("marigram-access", &["marigram-env", "tokio"]),
    ("marigram-codec", &["marigram-env", "tokio"]),
    ("marigram-flux", &["marigram-env", "tokio", "datafusion"]),
    (
        "marigram-influxql",
        &["marigram-env", "tokio", "datafusion"],
    ),
    (
        "marigram-opentsdb",
        &["marigram-env", "tokio", "datafusion"],
    ),
    ("marigram-iotdb", &["marigram-env", "tokio", "datafusion"]),
    (
        "marigram-tdengine",
        &["marigram-env", "tokio", "datafusion"],
    ),
    ("marigram-pgtext", &["marigram-env", "tokio"]),
    ("marigram-model", &["marigram-env", "tokio"]),
    ("marigram-tsfile", &["marigram-env", "tokio"]),
    ("marigram-tabular", &["marigram-env", "tokio"]),
    (
        "marigram-engine",
        &["tokio", "datafusion", "async-trait", "futures"],
    ),
    ("marigram-service", &["marigram-engine", "marigram-sql"]),
    ("marigram-functions", &["marigram-engine", "tokio"]),
    // The laboratory is an outside observer.
    ("marigram-lab", DATABASE),
    ("marigram-lab-drivers", DATABASE),
    ("marigram-lab-peers", DATABASE),
];

/// The crates of the database.
const DATABASE: &[&str] = &[
    "marigram",
    "marigram-access",
    "marigram-codec",
    "marigram-engine",
    "marigram-env",
    "marigram-flux",
    "marigram-flux-interpreter",
    "marigram-functions",
    "marigram-influx",
    "marigram-influxql",
    "marigram-iotdb",
    "marigram-iotdb-planner",
    "marigram-manifest",
    "marigram-model",
    "marigram-opentsdb",
    "marigram-opentsdb-planner",
    "marigram-operators",
    "marigram-pgtext",
    "marigram-protocol",
    "marigram-segment",
    "marigram-series-index",
    "marigram-server",
    "marigram-service",
    "marigram-sql",
    "marigram-tabular",
    "marigram-tdengine",
    "marigram-tdengine-planner",
    "marigram-tsfile",
    "marigram-wal",
];

/// Every crate of the workspace: its name, its folder, and its dependencies outside of tests.
fn crates() -> Vec<(String, PathBuf, BTreeSet<String>)> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root().join("crates"))
        .expect("the crates folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.join("Cargo.toml").exists())
        .collect();
    let others = [
        "lab",
        "lab/drivers",
        "lab/peers",
        "testing",
        "testing/fixtures",
        "testing/soak",
    ];
    folders.extend(others.map(|name| root().join(name)));
    folders.sort();
    folders.into_iter().map(read_crate).collect()
}

fn read_crate(folder: PathBuf) -> (String, PathBuf, BTreeSet<String>) {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a Cargo.toml");
    let (mut section, mut name, mut dependencies) = ("", String::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix('[') {
            section = title.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().trim_end_matches(".workspace");
            if section == "package" && key == "name" {
                value.trim().trim_matches('"').clone_into(&mut name);
            } else if section == "dependencies" {
                dependencies.insert(key.to_owned());
            }
        }
    }
    (name, folder, dependencies)
}

#[test]
fn edges_between_crates_go_down() {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, _, dependencies) in crates() {
        let Some(layer) = layers.get(name.as_str()) else {
            wrong.push(format!("{name} has no layer: add it to LAYERS"));
            continue;
        };
        for dependency in &dependencies {
            if layers
                .get(dependency.as_str())
                .is_some_and(|below| below >= layer)
            {
                wrong.push(format!(
                    "{name} depends on {dependency}, which is not below it"
                ));
            }
        }
        let forbidden = FORBIDDEN
            .iter()
            .filter(|(of, _)| *of == name)
            .flat_map(|(_, list)| *list);
        for dependency in forbidden.filter(|dependency| dependencies.contains(**dependency)) {
            wrong.push(format!("{name} must not know {dependency}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let mut silent = Vec::new();
    for (_, folder, _) in crates() {
        for file in rust_files(&folder) {
            let text = fs::read_to_string(&file).expect("a source file is text");
            if !text.starts_with("//!") {
                silent.push(file.display().to_string());
            }
        }
    }
    assert!(
        silent.is_empty(),
        "files that do not begin with //!:\n{}",
        silent.join("\n")
    );
}

/// The module of a file, as its path in the crate: `["compaction", "pick"]`; empty for the crate's
/// root.
fn module_of(src: &Path, file: &Path) -> Vec<String> {
    let relative = file
        .strip_prefix(src)
        .expect("the file is in src")
        .with_extension("");
    let mut parts: Vec<String> = relative
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if matches!(
        parts.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        parts.pop();
    }
    parts
}

/// Edges between the modules of a crate, at the level at which two paths diverge: siblings.
fn module_edges(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let (files, _) = source_files(src);
    let modules: BTreeSet<ModulePath> = files
        .iter()
        .map(|file| module_of(src, &file.path))
        .collect();
    let exports = re_exports(src, &files);
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let module = module_of(src, &file.path);
        for target in references(&file.production, &module) {
            let target = resolve(&target, &modules, &exports);
            let common = module
                .iter()
                .zip(&target)
                .take_while(|(a, b)| a == b)
                .count();
            if common < module.len() && common < target.len() {
                let from = module[..=common].join("::");
                edges
                    .entry(from)
                    .or_default()
                    .insert(target[..=common].join("::"));
            }
        }
    }
    edges
}

/// What each module re-exports from its children: (module, name) → the child.
fn re_exports(src: &Path, files: &[SourceFile]) -> BTreeMap<(ModulePath, String), ModulePath> {
    let mut exports = BTreeMap::new();
    for file in files {
        let module = module_of(src, &file.path);
        for UsedName { path, name } in used_names(&file.production) {
            if let [child, _, ..] = path.as_slice() {
                let target = [module.clone(), vec![child.clone()]].concat();
                exports.entry((module.clone(), name)).or_insert(target);
            }
        }
    }
    exports
}

/// The deepest module that a path leads to, resolving re-exports.
fn resolve(
    path: &[String],
    modules: &BTreeSet<Vec<String>>,
    exports: &BTreeMap<(Vec<String>, String), Vec<String>>,
) -> Vec<String> {
    let depth = (0..=path.len())
        .rev()
        .find(|len| modules.contains(&path[..*len]))
        .unwrap_or(0);
    let module = path[..depth].to_vec();
    let Some(name) = path.get(depth) else {
        return module;
    };
    match exports.get(&(module.clone(), name.clone())) {
        Some(target) if modules.contains(target) => target.clone(),
        _ => module,
    }
}

/// A path from a module back to itself, if there is one.
fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit<'a>(
        module: &'a str,
        edges: &'a BTreeMap<String, BTreeSet<String>>,
        done: &mut BTreeSet<&'a str>,
        way: &mut Vec<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|step| *step == module) {
            let round = way[start..].iter().copied().chain([module]);
            return Some(round.map(str::to_owned).collect());
        }
        if !done.insert(module) {
            return None;
        }
        way.push(module);
        let next = edges.get(module).into_iter().flatten();
        let found = next
            .into_iter()
            .find_map(|next| visit(next, edges, done, way));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    edges
        .keys()
        .find_map(|module| visit(module, edges, &mut done, &mut Vec::new()))
}

#[test]
fn no_crate_has_a_cycle_of_modules() {
    let mut wrong = Vec::new();
    for (name, folder, _) in crates() {
        if let Some(way) = cycle(&module_edges(&folder.join("src"))) {
            wrong.push(format!("{name}: {}", way.join(" → ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_checker_sees_a_cycle_and_reads_paths() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    let code = "use crate::{scan::{Scan, rows::Rows}, merge, view as seen};
        fn f<A, B>() { assert!(crate::view::View::new() == super::super::top::<u8>()); }
        mod inner { use super::beside; #[cfg(test)] fn t() { crate::only_tests::x() } }
        #[cfg(test)]
        mod tests { use crate::only_tests; }
        impl X { #[cfg(test)] fn t() { crate::only_tests::x() } }
        fn after() -> self::child::Thing { crate::after_tests::x() }";
    let mut file = syn::parse_file(code).expect("it is Rust");
    let found = references(&file, &path("a::b"));
    assert!(found.contains(&path("only_tests")) && found.contains(&path("only_tests::x")));
    production_code::remove_tests(&mut file);
    let expected = [
        "scan::Scan",
        "scan::rows::Rows",
        "merge",
        "view",
        "view::View::new",
        "top",
        "a::b::beside",
        "a::b::child::Thing",
        "after_tests::x",
    ];
    let expected = expected.map(path).to_vec();
    assert_eq!(references(&file, &path("a::b")), expected);
    let names: Vec<String> = used_names(&file)
        .into_iter()
        .map(|used| used.name)
        .collect();
    assert_eq!(names, ["Scan", "Rows", "merge", "seen"]);

    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    edges.entry("a".into()).or_default().insert("b".into());
    edges.entry("b".into()).or_default().insert("c".into());
    assert_eq!(cycle(&edges), None);
    edges.entry("c".into()).or_default().insert("a".into());
    assert_eq!(
        cycle(&edges),
        Some(["a", "b", "c", "a"].map(str::to_owned).to_vec())
    );
}

/// The rooms of `sql`, from below to above.
const SQL_ROOMS: &[&str] = &[
    "stack",
    "name_forms",
    "error",
    "access",
    "dialect",
    "tables",
    "planning",
    "rollup",
    "catalog",
    "plan_cache",
    "statements",
    "execution",
    "service",
];

#[test]
fn rooms_of_sql_know_only_those_below() {
    let src = root().join("crates/sql/src");
    let level = |name: &str| SQL_ROOMS.iter().position(|room| *room == name);
    let mut wrong = Vec::new();
    for file in source_files(&src).0 {
        let module = module_of(&src, &file.path);
        let Some(room) = module.first() else {
            continue;
        };
        let Some(own) = level(room) else {
            wrong.push(format!(
                "{room} is no room: add it to SQL_ROOMS and to lib.rs"
            ));
            continue;
        };
        for path in references(&file.production, &module) {
            let above = path.first().and_then(|name| level(name));
            if above.is_some_and(|above| above > own) {
                wrong.push(format!("{} uses {}", module.join("::"), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The folders whose code is the product or its laboratory.
const SHAPED: &[(&str, &[&str])] = &[
    ("the database", &["crates"]),
    ("the laboratory", &["lab", "testing/soak"]),
];

#[test]
fn files_and_functions_stay_short() {
    for (name, folders) in SHAPED {
        let (mut files, mut of_tests) = (Vec::new(), Vec::new());
        for (_, folder, _) in crates() {
            if !folders
                .iter()
                .any(|part| folder.starts_with(root().join(part)))
            {
                continue;
            }
            let (production, tests) = source_files(&folder.join("src"));
            files.extend(production);
            of_tests.extend(tests);
            let outside = rust_files(&folder.join("tests"));
            of_tests.extend(outside.into_iter().map(SourceFile::read));
        }
        let shape = CodeShape::measure(&root(), &files, &of_tests);
        println!("{name}: {}", shape.report());
        assert!(shape.median_file_lines() <= 200, "{name}: files grow");
        assert!(
            shape.long_functions_per_mille() <= 7,
            "{name}: functions grow"
        );
    }
}
