//! Backslash commands, completion, history, and the notes about cut values.

use super::terminal::Terminal;
use super::{MARIGRAM, run, weather};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn what_is_cut_is_said_and_x_shows_it_whole() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    let query = "SELECT station, note FROM weather;";
    let answer = shell.ask(query, "shows values whole)");
    assert!(
        answer.contains("1 value is cut at 60 characters"),
        "{answer}"
    );
    shell.ask("\\x", "one value per line");
    let answer = shell.ask(query, "(3 rows");
    assert!(answer.contains("─[ row 3 ]"), "{answer}");
    assert!(answer.contains("characters of a table"), "{answer}");
    shell.ask("\\x auto", "fits the terminal");
    let answer = shell.ask("SELECT * FROM weather;", "(3 rows");
    assert!(answer.contains("─[ row 1 ]"), "wider than 80: {answer}");
    let answer = shell.ask("SELECT station FROM weather;", "(3 rows");
    assert!(!answer.contains("row 1"), "{answer}");
    let answer = shell.ask("SHOW CREATE TABLE weather;", "partition = '1d');");
    assert!(
        answer.contains("CREATE TABLE weather (\n  time TIMESTAMP,"),
        "{answer}"
    );
    shell.leave();
    // Output to a program is never cut.
    let whole = run(dir.path(), &["sql", "--data", "data", "-c", query]);
    assert!(whole.contains("characters of a table"), "{whole}");
}

#[test]
fn lost_segments_are_told_when_a_directory_is_opened() {
    let dir = weather();
    run(dir.path(), &["sql", "--data", "data", "-c", "FLUSH"]);
    let ask = || {
        let args = ["sql", "--data", "data", "-c", "SELECT 1"];
        let output = Command::new(MARIGRAM)
            .args(args)
            .current_dir(dir.path())
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(ask(), "");
    let listed = |dir: std::path::PathBuf| {
        let entries = std::fs::read_dir(dir).expect("it can be listed");
        entries.map(|entry| entry.expect("an entry").path())
    };
    let mut segments =
        listed(dir.path().join("data/shards")).flat_map(|shard| listed(shard.join("segments")));
    std::fs::remove_file(segments.next().expect("a segment")).expect("it is removed");
    let told = ask();
    assert!(told.contains("warning: 1 segment in data"), "{told}");
    assert!(told.contains("marigram verify data"), "{told}");
}

#[test]
fn answers_that_do_not_fit_go_through_the_pager() {
    let dir = weather();
    let pager = [("PAGER", "sed 's/^/paged:/'")];
    let mut shell = Terminal::start(dir.path(), "--data data", &pager);
    let long = "SELECT * FROM generate_series(1, 60);";
    let answer = shell.ask(long, "(60 rows");
    assert!(answer.contains("paged:"), "{answer}");
    let answer = shell.ask("SELECT 1 AS one;", "(1 row");
    assert!(!answer.contains("paged:"), "{answer}");
    shell.ask("\\pager off", "without a pager");
    let answer = shell.ask(long, "(60 rows");
    assert!(!answer.contains("paged:"), "{answer}");
    shell.leave();
    let mut shell = Terminal::start(dir.path(), "--data data --no-pager", &pager);
    let answer = shell.ask(long, "(60 rows");
    assert!(!answer.contains("paged:"), "{answer}");
    shell.leave();
}

#[test]
fn plot_draws_a_line_for_each_tag() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    let said = shell.ask("\\plot", "draws one");
    assert!(said.contains("no query yet"), "{said}");
    shell.ask("SELECT time, station, temp FROM weather;", "(3 rows");
    let drawn = shell.ask("\\plot", "hours since 2026-01-01 00:00:00");
    assert!(
        drawn.contains("  north\n") && drawn.contains("  south\n"),
        "{drawn}"
    );
    let said = shell.ask("\\plot SELECT station FROM weather", "is a time");
    assert!(said.contains("error"), "{said}");
    shell.leave();
}

#[test]
fn copies_go_out_and_come_back() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.ask("\\copy weather to 'out.csv'", "COPY 3");
    let query = "\\copy (SELECT station, temp FROM weather WHERE temp > 5) to 'part.csv' \
                 with (format csv, delimiter ';', header)";
    shell.ask(query, "COPY 2");
    let text = std::fs::read_to_string(dir.path().join("part.csv")).unwrap();
    assert!(text.starts_with("station;temp\n"), "{text}");
    shell.ask("DELETE FROM weather;", "DELETE");
    shell.ask(
        "\\copy weather from 'out.csv' (format csv, header)",
        "COPY 3",
    );
    let answer = shell.ask("SELECT count(*) AS rows FROM weather;", "(1 row");
    assert!(answer.contains("3\n"), "{answer}");
    let said = shell.ask("\\copy nowhere from 'out.csv'", "no table 'nowhere'");
    assert!(said.contains("error"), "{said}");
    shell.leave();
}

#[test]
fn output_goes_to_a_file_until_it_is_taken_back() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.ask("\\o 'out.txt'", "\n");
    shell.ask("SELECT 'in the ' || 'file' AS said;", "\n");
    shell.ask("\\o", "\n");
    let answer = shell.ask("SELECT 'on the ' || 'screen' AS said;", "(1 row");
    assert!(answer.contains("on the screen"), "{answer}");
    let shown = shell.leave();
    assert!(!shown.contains("in the file"), "{shown}");
    let text = std::fs::read_to_string(dir.path().join("out.txt")).unwrap();
    assert!(
        text.contains("in the file") && !text.contains("screen"),
        "{text}"
    );
}

#[test]
fn the_editor_gets_the_last_statement_and_what_it_leaves_is_run() {
    let dir = weather();
    let editor = dir.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nsed -i 's/first/second/' \"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let editor = editor.display().to_string();
    let mut shell = Terminal::start(dir.path(), "--data data", &[("EDITOR", &editor)]);
    shell.ask("\\e", "no statement yet");
    shell.ask("SELECT 'the ' || 'first' AS said;", "(1 row");
    let answer = shell.ask("\\e", "(1 row");
    assert!(answer.contains("the second"), "{answer}");
    shell.leave();
}

#[test]
fn names_and_values_of_tags_are_completed() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.keys("SELECT tem\tFROM wea\t");
    let line = "SELECT tem";
    shell.wait_for(line);
    shell.keys(" WHERE station = 'no\t");
    shell.wait_for("'north'");
    let answer = shell.ask(";", "\n");
    drop(answer);
    shell.leave();
}

#[test]
fn the_history_is_kept_and_recalled() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.ask("SELECT 'kept ' || 'line' AS said;", "(1 row");
    // The file exists before the shell ends.
    let history = dir.path().join("state/marigram/history");
    let text = std::fs::read_to_string(history).unwrap();
    assert!(text.contains("kept "), "{text}");
    shell.leave();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    // The line before the last one: the last one is \q.
    shell.keys("\u{1b}[A\u{1b}[A\r");
    let answer = shell.wait_for("(1 row");
    assert!(answer.contains("kept line"), "{answer}");
    shell.wait_for("> ");
    shell.leave();
}

#[test]
fn scripts_are_told_that_commands_are_of_the_shell() {
    let dir = weather();
    let output = Command::new(MARIGRAM)
        .args(["sql", "--data", "data", "-c", "\\dt"])
        .current_dir(dir.path())
        .output()
        .expect("the binary runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("SHOW TABLES"), "{said}");
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.ask("\\du", "user");
    // Whoever ends each line with a semicolon is understood.
    shell.ask("\\du;", "user");
    shell.leave();
}
