//! Checks the architecture of the workspace: crates only depend on lower ones, the servers know no
//! engine, the pure crates do no I/O, no crate has a cycle of modules, and every file says what it
//! is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate's layer. A crate may only depend on crates of lower layers.
const LAYERS: &[(&str, u32)] = &[
    ("marigram-access", 0),
    ("marigram-codec", 0),
    ("marigram-env", 0),
    ("marigram-flux", 0),
    ("marigram-influxql", 0),
    ("marigram-pgtext", 0),
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
    "marigram-manifest",
    "marigram-model",
    "marigram-operators",
    "marigram-pgtext",
    "marigram-protocol",
    "marigram-segment",
    "marigram-series-index",
    "marigram-server",
    "marigram-service",
    "marigram-sql",
    "marigram-tabular",
    "marigram-tsfile",
    "marigram-wal",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("testing is in the root")
        .to_owned()
}

/// Every crate of the workspace: its name, its folder, and its dependencies outside of tests.
fn crates() -> Vec<(String, PathBuf, BTreeSet<String>)> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root().join("crates"))
        .expect("the crates folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.join("Cargo.toml").exists())
        .collect();
    let others = ["lab", "lab/drivers", "lab/peers", "testing", "testing/soak"];
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

/// Every Rust file under `folder`, sorted.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn every_file_says_what_it_is() {
    let mut silent = Vec::new();
    for (_, folder, _) in crates() {
        for file in sources(&folder) {
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

/// The text of a file without its test modules and comments.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a source file is text");
    let code = text.split("#[cfg(test)]").next().unwrap_or("").to_owned();
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path that follows `prefix` in `code`, with groups in braces expanded.
fn paths_after(code: &str, prefix: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        expand(&code[at + prefix.len()..], &mut Vec::new(), &mut found);
    }
    found
}

/// Parses one path or group at the start of `text`; returns its length in bytes.
fn expand(text: &str, head: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 0;
    let depth = head.len();
    loop {
        let rest = &text[at..];
        if let Some(group) = rest.strip_prefix('{') {
            at += 1;
            let mut inner = group;
            loop {
                let skipped = inner.len() - inner.trim_start().len();
                at += skipped;
                inner = inner.trim_start();
                if inner.is_empty() || inner.starts_with('}') {
                    at += usize::from(!inner.is_empty());
                    break;
                }
                let used = expand(inner, head, found).max(1);
                let after = &inner[used..];
                let until = after.find([',', '}']).unwrap_or(after.len());
                let comma = usize::from(after[until..].starts_with(','));
                at += used + until + comma;
                inner = &after[until + comma..];
            }
            break;
        }
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        head.push(rest[..end].to_owned());
        at += end;
        if text[at..].starts_with("::") {
            at += 2;
        } else {
            found.push(head.clone());
            break;
        }
    }
    head.truncate(depth);
    at
}

/// Edges between the modules of a crate, at the level at which two paths diverge: siblings.
fn module_edges(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = sources(src);
    let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module_of(src, file)).collect();
    let exports = re_exports(src, &files);
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let module = module_of(src, file);
        if module.is_empty() || module.last().is_some_and(|name| name == "tests") {
            continue;
        }
        let code = code_of(file);
        let mut targets = paths_after(&code, "crate::");
        let parent = module[..module.len() - 1].to_vec();
        for path in paths_after(&code, "super::") {
            targets.push([parent.clone(), path].concat());
        }
        for target in targets {
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
fn re_exports(src: &Path, files: &[PathBuf]) -> BTreeMap<(Vec<String>, String), Vec<String>> {
    let mut exports = BTreeMap::new();
    for file in files {
        let module = module_of(src, file);
        let code = code_of(file);
        for keyword in ["pub use ", "pub(crate) use ", "use "] {
            for path in paths_after(&code, keyword) {
                let path = path.strip_prefix(&["self".to_owned()][..]).unwrap_or(&path);
                if let [child, .., name] = path {
                    let target = [module.clone(), vec![child.clone()]].concat();
                    exports
                        .entry((module.clone(), name.clone()))
                        .or_insert(target);
                }
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
fn the_checker_sees_a_cycle_and_reads_groups() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    let code = "use crate::{scan::{Scan, rows::Rows}, merge};\nlet x = crate::view::View::new();";
    let found = paths_after(code, "crate::");
    let expected = ["scan::Scan", "scan::rows::Rows", "merge", "view::View::new"]
        .map(path)
        .to_vec();
    assert_eq!(found, expected);

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
    "rollup",
    "catalog",
    "planning",
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
    for file in sources(&src) {
        let module = module_of(&src, &file);
        let Some(room) = module.first() else {
            continue;
        };
        let Some(own) = level(room) else {
            wrong.push(format!(
                "{room} is no room: add it to SQL_ROOMS and to lib.rs"
            ));
            continue;
        };
        for path in paths_after(&code_of(&file), "crate::") {
            let above = path.first().and_then(|name| level(name));
            if above.is_some_and(|above| above > own) {
                wrong.push(format!("{} uses {}", module.join("::"), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
