//! The laboratory: every study runs with one command and appears in the report with a plot.

use std::path::Path;
use std::process::Command;

fn lab(arguments: &[&str], out: &Path) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_marigram"))
        .arg("lab")
        .args(arguments)
        .args(if arguments[0] == "run" {
            &["--out"][..]
        } else {
            &[]
        })
        .args((arguments[0] != "list").then_some(out))
        .output()
        .expect("the binary starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}\n{errors}");
    text
}

/// Names that `lab list` shows under a heading that begins with `heading`.
fn names(list: &str, heading: &str) -> Vec<String> {
    list.lines()
        .skip_while(|line| !line.starts_with(heading))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_study_runs_and_is_in_the_report() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("results");
    let run = ["run", "all", "--scale", "tiny", "--repeat", "1", "--quiet"];
    let printed = lab(&run, &out);
    assert!(printed.contains("index.html"), "{printed}");

    let list = lab(&["list"], &out);
    let studies = names(&list, "Studies");
    assert_eq!(studies.len(), 30, "{studies:?}");
    assert_eq!(
        names(&list, "Marigram's ways in"),
        ["embedded", "null", "http", "postgres"]
    );

    let html = std::fs::read_to_string(out.join("report/index.html")).expect("the page");
    let markdown = std::fs::read_to_string(out.join("report/report.md")).expect("the text");
    for study in &studies {
        let section = html
            .split("id=\"study-")
            .find(|section| section.starts_with(&format!("{study}\"")))
            .unwrap_or_else(|| panic!("{study} is not in the report"));
        assert!(section.contains("<svg"), "{study} has no plot");
        assert!(section.contains("<table"), "{study} has no table");
        assert!(
            markdown.contains(study.as_str()),
            "{study} is not in the text"
        );
    }

    for result in results(&out.join("runs")) {
        let text = std::fs::read_to_string(&result).expect("a result");
        assert!(!text.contains("\"Wrong\""), "{}", result.display());
    }

    // Existing results are not measured again; a lost one is.
    let lost = find_result(&out.join("runs").join(&studies[0]));
    let before = modified(&out);
    std::fs::remove_file(&lost).expect("it can be removed");
    lab(&run, &out);
    assert!(lost.exists());
    let after = modified(&out);
    let repeated = after.iter().filter(|file| !before.contains(file)).count();
    assert_eq!(repeated, 1);
}

/// Some result of a study.
fn find_result(dir: &Path) -> std::path::PathBuf {
    results(dir)
        .into_iter()
        .next()
        .expect("a study has results")
}

fn results(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(results(&path));
        } else if path.ends_with("result.json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every result with its time of modification.
fn modified(out: &Path) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified());
    results(&out.join("runs"))
        .into_iter()
        .map(|path| {
            let changed = changed(&path).expect("a file has a time");
            (path, changed)
        })
        .collect()
}
