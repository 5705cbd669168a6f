//! Options and configuration keys: the guides name only existing ones, and name all of them.

use super::{MARIGRAM, pages};
use std::collections::BTreeSet;
use std::process::Command;

/// Options of other programs that the guides name.
const OF_OTHERS: &[&str] = &[
    "--bin",
    "--bucket-id",
    "--cacert",
    "--compress",
    "--data-binary",
    "--data-only",
    "--data-urlencode",
    "--delete",
    "--engine-path",
    "--example",
    "--fail-with-body",
    "--filter",
    "--locked",
    "--output-path",
    "--release",
    "--headless",
    "--command",
    "--version",
    "--help",
];

/// The help text of a command.
fn help(command: &[&str]) -> String {
    let output = Command::new(MARIGRAM)
        .args(command)
        .arg("--help")
        .output()
        .expect("the binary runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Words that begin with two hyphens.
fn options(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let before = rest[..at].chars().next_back();
        let word: String = rest[at + 2..]
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')
            .collect();
        let begins = before.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '|');
        if begins && word.starts_with(|c: char| c.is_ascii_lowercase()) {
            found.insert(format!("--{}", word.trim_end_matches('-')));
        }
        rest = &rest[at + 2 + word.len()..];
    }
    found
}

/// A command and all its subcommands, the command first.
fn commands(command: &[String]) -> Vec<Vec<String>> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let text = help(&words);
    let mut all = vec![command.to_vec()];
    let Some((_, list)) = text.split_once("\nCommands:\n") else {
        return all;
    };
    for line in list.lines().take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap_or("help");
        if name != "help" && line.starts_with("  ") && !line.starts_with("   ") {
            all.extend(commands(&[command, &[name.to_owned()]].concat()));
        }
    }
    all
}

fn all_options() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for command in commands(&[]) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        found.extend(options(&help(&words)));
    }
    found
}

#[test]
fn options_that_the_guides_name_exist_and_those_that_exist_are_named() {
    let exist = all_options();
    assert!(exist.len() > 60, "{exist:?}");
    let mut named = BTreeSet::new();
    for (page, text) in pages() {
        for option in options(&text) {
            let is_known = exist.contains(&option) || OF_OTHERS.contains(&option.as_str());
            assert!(is_known, "{page} names {option}, which does not exist");
            named.insert(option);
        }
        // A configuration key counts as its option.
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            let key = line[3..].split('`').next().unwrap_or("");
            named.insert(format!("--{}", key.replace('_', "-")));
        }
    }
    let missing: Vec<&String> = exist
        .iter()
        .filter(|option| !named.contains(*option) && !OF_OTHERS.contains(&option.as_str()))
        .collect();
    assert!(missing.is_empty(), "no guide names {missing:?}");
}

#[test]
fn the_guide_to_configuration_has_every_key_and_no_other() {
    let text = help(&["serve"]);
    let lines = text.lines().map(str::trim_start);
    let keys: BTreeSet<String> = lines
        .filter(|line| line.starts_with("--") || line.starts_with("-h,"))
        .filter_map(|line| options(line).pop_first())
        .filter(|option| option != "--help" && option != "--config")
        .map(|option| option[2..].replace('-', "_"))
        .collect();
    assert!(keys.contains("memory_limit") && keys.len() > 25, "{keys:?}");
    let pages = pages();
    let page = |name: &str| {
        let found = pages.iter().find(|(page, _)| page.ends_with(name));
        found
            .map(|(_, text)| text.clone())
            .expect("the page is there")
    };
    let rows = |text: &str| -> BTreeSet<String> {
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        rows.map(|line| line[3..].split('`').next().unwrap_or("").to_owned())
            .collect()
    };
    let told = rows(&page("configuration.md"));
    let missing: Vec<_> = keys.difference(&told).collect();
    assert!(missing.is_empty(), "not in configuration.md: {missing:?}");
    let unknown: Vec<_> = told.difference(&keys).collect();
    assert!(unknown.is_empty(), "configuration.md has {unknown:?}");
    // The limits in the HTTP guide are keys, too.
    let http = page("http.md");
    let (_, limits) = http.split_once("## Limits").expect("it has limits");
    for key in rows(limits) {
        assert!(keys.contains(&key), "http.md names {key}");
    }
}

/// Environment variables of ours in a text.
fn variables(text: &str) -> BTreeSet<String> {
    let found = text.match_indices("MARIGRAM_").map(|(at, _)| {
        let rest = text[at..].chars();
        rest.take_while(|c| c.is_ascii_uppercase() || *c == '_')
            .collect()
    });
    found.collect()
}

#[test]
fn environment_variables_that_the_guides_name_exist() {
    let mut exist = BTreeSet::new();
    for command in commands(&[]) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        exist.extend(variables(&help(&words)));
    }
    assert!(exist.contains("MARIGRAM_TOKEN"), "{exist:?}");
    for (page, text) in pages() {
        let unknown: Vec<_> = variables(&text).difference(&exist).cloned().collect();
        assert!(unknown.is_empty(), "{page} names {unknown:?}");
    }
}

#[test]
fn the_example_of_a_configuration_file_has_only_keys_that_exist() {
    let options = options(&help(&["serve"]));
    let mut count = 0;
    for block in pages::page("docs/guides/configuration.md") {
        if !block.is_in("toml") {
            continue;
        }
        for line in block.text.lines() {
            let key = line.split('=').next().unwrap_or("").trim();
            let option = format!("--{}", key.replace('_', "-"));
            assert!(options.contains(&option), "the example has {key}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} keys");
}
