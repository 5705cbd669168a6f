//! One idea has one name that grep can find: abandoned words must not come back.
//!
//! The glossary of CONTRIBUTING.md defines the terms.

use marigram_fixtures::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Identifiers that must not occur anywhere in the code, and their replacements.
const ANYWHERE: &[(&str, &str)] = &[
    ("other_way", "`fallback`"),
    ("is_read_here_and_there", "`advise_random_access`"),
    ("begins_here", "`may_run_inline`"),
    ("begin_here", "`run_inline`"),
    ("done_here", "`inline_statements`"),
    ("body_bytes_max", "`body_limit`, as the setting is called"),
    ("with_holes", "`with_scan_placeholders`"),
    ("KeptGroups", "`GroupCache`"),
    ("UseRollups", "`RollupRewriteRule`"),
    ("Partials", "`RollupTableProvider`"),
];

/// Names of types and modules that do not say what the thing is.
const VAGUE: &[(&str, &str)] = &[
    ("Act", "`StepAction`"),
    ("Apart", "say which rows are apart: `DisjointSources`"),
    ("Around", "`EnclosingScope`"),
    ("Arranged", "`ArrangedView`"),
    ("Asked", "name the request: `GroupCacheKey`"),
    ("Behind", "name what is behind: `ClockLag`"),
    ("Bound", "name what is bound: `ParamValue`, `FigureBound`"),
    ("Case", "name what it is a case of: `RuleCase`"),
    ("Converted", "name what was converted: `ConvertedRows`"),
    ("Duel", "`PeerComparison`"),
    ("Facts", "name what they are about: `TargetFacts`"),
    ("Found", "name what was found: `AsOfMatch`"),
    ("Given", "name the input: `RefreshInput`"),
    ("Held", "name what is held: `MemoryReservation`"),
    ("Hole", "`ScanPlaceholder`"),
    ("Kept", "`PlanCacheEntry`, `GroupCacheEntry`"),
    ("Known", "`CachedPlan`"),
    ("Lacking", "`GroupRowCounter`"),
    ("Left", "`RemainingTime`"),
    ("Life", "`RunningTarget`"),
    ("Look", "`TargetStyle`"),
    ("Lost", "name what was lost: `LostTag`"),
    ("Made", "name what was made: `CachedSessionState`"),
    ("Mapped", "`SubqueryColumn`"),
    ("Many", "`MinMaxGroupsAccumulator`"),
    ("Offer", "`MessageSender`"),
    ("One", "`MinMaxAccumulator`"),
    ("Part", "name the whole, too: `RollupPart`, `ChunkPart`"),
    (
        "Place",
        "name what is there: `BlockLocation`, `ConnectionSlot`",
    ),
    ("Planned", "`ReducedPlan`"),
    ("Published", "`PublishedFigures`"),
    ("Purpose", "`RandomPurpose`"),
    ("Ready", "`PhysicalPlanTemplate`"),
    ("Seen", "name what was seen: `WrittenTimes`"),
    ("Shared", "name who shares it: `HttpShared`"),
    ("Taken", "name what was measured: `RequestLatencies`"),
    ("Told", "name what was said: `RewordedError`"),
    ("Wanted", "name the request: `RestoreSelection`"),
    ("What", "name what it selects: `Selection`"),
    ("Whole", "name the whole: `WholeTable`"),
    ("Witnessed", "`WitnessedState`"),
    ("Words", "name what they are read from: `SessionTokens`"),
    ("Written", "name what was written: `WrittenRows`"),
];

/// Single-word modules that no longer exist, and where their code is now.
const MODULES: &[(&str, &str)] = &[
    ("dependence", "`plan_dependencies`"),
    ("hole", "`placeholder`"),
    ("kept", "name the cache: `group_cache`"),
    ("known", "`cached_plan`"),
    ("ready", "`plan_template`"),
    ("short", "`inline`"),
    ("words", "`identifiers`, `rewording`"),
];

/// Functions whose name is a bare particle; constructors are `new`, `from_x`, `for_x`.
const PARTICLES: &[&str] = &["are", "at", "is", "of", "told"];

/// Public names of the embedded library, which users' programs depend on.
const PUBLIC: &[(&str, &str)] = &[("crates/marigram/src/arrow_rows.rs", "of")];

/// Names that several crates use for the same idea, or that a test's own types share.
const SHARED_NAMES: &[&str] = &[
    // The engine's types, and the service traits' types for the same thing.
    "BackupReport",
    "Durability",
    "RejectedRow",
    "WriteReport",
    // The command line's types, and those of the crates that it uses.
    "Backup",
    "Command",
    "DateOrder",
    "RepeatedHour",
    // Two codecs that do not depend on each other.
    "Precision",
];

/// Every Rust file of these folders except this one, by its path in the tree.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders: Vec<_> = folders.iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("words.rs") {
                let text = fs::read_to_string(&path).expect("a source is text");
                let within = path.strip_prefix(root()).expect("it is in the tree");
                files.push((within.to_string_lossy().replace('\\', "/"), code(&text)));
            }
        }
    }
    assert!(files.len() > 500, "only {} files were found", files.len());
    files
}

/// The source without comments and string contents.
fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).position(|two| two == b"*/");
            at += end.map_or(rest.len(), |end| end + 2);
        } else if let Some(len) = raw_string(rest, out.last().copied()) {
            at += len;
            out.extend(b"\"\"");
        } else if rest[0] == b'"' {
            at += string(rest);
            out.extend(b"\"\"");
        } else if rest.starts_with(b"'\"'") || rest.starts_with(b"'\\") {
            let end = rest.iter().skip(2).position(|&b| b == b'\'');
            at += end.map_or(rest.len(), |end| end + 3);
        } else {
            out.push(rest[0]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Length of the string that begins here.
fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Length of the raw string that begins here.
fn raw_string(rest: &[u8], before: Option<u8>) -> Option<usize> {
    let is_start = before.is_none_or(|b| b == b'b' || !(b.is_ascii_alphanumeric() || b == b'_'));
    let hashes = rest.iter().skip(1).take_while(|&&b| b == b'#').count();
    if !is_start || rest[0] != b'r' || rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let body = &rest[hashes + 2..];
    let len = body.windows(end.len()).position(|it| it == end)?;
    Some(hashes + 2 + len + end.len())
}

/// The identifiers of a source, in their order.
fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

/// The definitions in a source: keyword and name. Associated types are not included.
fn definitions(code: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for line in code.lines() {
        let mut words = identifiers(line);
        while let Some(word) = words.next() {
            match word {
                "pub" | "crate" | "super" | "unsafe" | "async" | "const" => {}
                "type" if line.starts_with(' ') => break,
                "struct" | "enum" | "trait" | "union" | "type" | "mod" | "fn" => {
                    found.extend(words.next().map(|name| (word, name)));
                    break;
                }
                _ => break,
            }
        }
    }
    found
}

#[test]
fn words_that_were_given_up_do_not_come_back() {
    let mut faults = Vec::new();
    for (path, code) in sources(&["crates", "lab", "testing"]) {
        let used: BTreeSet<&str> = identifiers(&code).collect();
        for (word, instead) in ANYWHERE.iter().filter(|(word, _)| used.contains(word)) {
            faults.push(format!("{path}: {word}; write {instead}"));
        }
        for (kind, name) in definitions(&code) {
            let banned = match kind {
                "fn" if PARTICLES.contains(&name) && !PUBLIC.contains(&(path.as_str(), name)) => {
                    Some("say what it is made from: `new`, `from_x`, `for_x`, or what it tests")
                }
                "fn" => None,
                "mod" => MODULES
                    .iter()
                    .find(|(word, _)| *word == name)
                    .map(|it| it.1),
                _ => VAGUE.iter().find(|(word, _)| *word == name).map(|it| it.1),
            };
            faults.extend(banned.map(|instead| format!("{path}: {kind} {name}; {instead}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in sources(&["crates", "testing"]) {
        let is_test = ["/tests/", "/examples/", "/benches/", "testing/"];
        if is_test.iter().any(|folder| path.contains(folder)) || path.ends_with("tests.rs") {
            continue;
        }
        for (kind, name) in definitions(&code) {
            if matches!(kind, "struct" | "enum" | "trait" | "union") {
                files
                    .entry(name.to_owned())
                    .or_default()
                    .insert(path.clone());
            }
        }
    }
    let shared = files
        .iter()
        .filter(|(name, files)| files.len() > 1 && !SHARED_NAMES.contains(&name.as_str()));
    let faults: Vec<String> = shared
        .map(|(name, files)| format!("{name}: {files:?}"))
        .collect();
    assert!(
        faults.is_empty(),
        "names of several types:\n{}",
        faults.join("\n")
    );
    for name in SHARED_NAMES {
        assert!(
            files.get(*name).is_some_and(|it| it.len() > 1),
            "{name} is not shared any more"
        );
    }
}

#[test]
fn definitions_are_found_and_quotes_are_not() {
    let text = "/// struct Kept\npub(crate) struct Part;\nlet x = \"enum Place {\";\n    type Held = u8;\n\
                r#\"fn of(\"#;\n    pub const fn are() {}\n'\"'; mod short;";
    let code = code(text);
    assert_eq!(
        definitions(&code),
        [("struct", "Part"), ("fn", "are"), ("mod", "short")],
        "{code}"
    );
    assert_eq!(definitions("mod known;"), [("mod", "known")]);
}
