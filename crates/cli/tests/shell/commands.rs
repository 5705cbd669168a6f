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
fn commands_of_psql_work_on_the_statement_that_has_begun() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.ask("\\du", "user");
    // Whoever ends each line with a semicolon is understood.
    shell.ask("\\du;", "user");
    let answer = shell.ask("SELECT 'sent ' || 'by g' AS said\\g", "(1 row");
    assert!(answer.contains("sent by g"), "{answer}");
    let answer = shell.ask("\\gx", "(1 row");
    assert!(
        answer.contains("row 1 ]") && answer.contains("sent by g"),
        "{answer}"
    );
    let answer = shell.ask("\\p", "said\n");
    assert!(
        answer.contains("SELECT 'sent ' || 'by g' AS said"),
        "{answer}"
    );
    // A statement that has begun stays at the prompt, until it is forgotten.
    shell.keys("SELECT 'only ' ||\r\\p\r");
    shell.wait_for("'only ' ||\n");
    shell.wait_for("> ");
    shell.keys("'half' AS said;\r");
    let answer = shell.wait_for("(1 row");
    assert!(answer.contains("only half"), "{answer}");
    shell.wait_for("> ");
    let answer = shell.ask("\\echo 'some text'", "text\n");
    assert!(answer.contains("some text\n"), "{answer}");
    let answer = shell.ask("\\! echo from the $((1 + 1)) system", "2 system\n");
    assert!(answer.contains("from the 2 system"), "{answer}");
    let answer = shell.ask("\\conninfo", "embedded");
    assert!(answer.contains("database main"), "{answer}");
    let answer = shell.ask("\\d weather", "same key");
    assert!(answer.contains("primary key: station, time"), "{answer}");
    let answer = shell.ask("\\h create table", "AS query");
    assert!(answer.contains("CREATE TABLE [IF NOT EXISTS]"), "{answer}");
    let answer = shell.ask("\\set x 5", "no variables");
    assert!(answer.contains("ON_ERROR_STOP only"), "{answer}");
    shell.leave();
}

/// What `marigram sql` says of a script: stdout, stderr, and its exit status.
fn script(dir: &std::path::Path, arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(MARIGRAM)
        .args(["sql", "--data", "data"])
        .args(arguments)
        .current_dir(dir)
        .env_remove("MARIGRAM_DATA")
        .output()
        .expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn scripts_run_the_commands_that_make_sense_there() {
    let dir = weather();
    let folder = dir.path().join("scripts");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("inner.sql"),
        "SELECT 'inner' AS said;\nDELETE FROM weather\n\\q\nSELECT 'never' AS said;\n",
    )
    .unwrap();
    let text = "\\format csv\n\\timing off\nSELECT 1 AS one\n\\g\nSELECT 2 AS two \\gx\n\
                \\echo between; them\n\\ir inner.sql\nSELECT 'a' ||\n\\r\n\
                \\o out.csv\nSELECT 3 AS three;\n\\o\nSELECT count(*) AS rows FROM weather\n";
    std::fs::write(folder.join("outer.sql"), text).unwrap();
    let (out, err, code) = script(dir.path(), &["-f", "scripts/outer.sql"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(
        out, "one\n1\ntwo\n2\nbetween; them\nsaid\ninner\nrows\n3\n",
        "{err}"
    );
    assert!(err.contains("timing is off"), "{err}");
    let file = std::fs::read_to_string(dir.path().join("out.csv")).unwrap();
    assert_eq!(file, "three\n3\n");
    let (out, err, code) = script(dir.path(), &["-c", "\\dt"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("weather"), "{out}");
}

#[test]
fn scripts_refuse_other_commands_by_name_and_line() {
    let dir = weather();
    let text = "SELECT 1 AS one;\n\n\\e\nSELECT 2 AS two;\n";
    std::fs::write(dir.path().join("a.sql"), text).unwrap();
    let (out, err, code) = script(dir.path(), &["--format", "csv", "-f", "a.sql"]);
    assert_eq!((out.as_str(), code), ("one\n1\n", Some(1)), "{err}");
    assert!(
        err.contains("a.sql:3: \\e is for the shell at a terminal"),
        "{err}"
    );
    let (out, err, code) = script(
        dir.path(),
        &["--format", "csv", "--keep-going", "-f", "a.sql"],
    );
    assert_eq!((out.as_str(), code), ("one\n1\ntwo\n2\n", Some(1)), "{err}");
    let text = "\\set ON_ERROR_STOP off\n\\nonsense\nSELECT nothing;\nSELECT 2 AS two;\n";
    std::fs::write(dir.path().join("b.sql"), text).unwrap();
    let (out, err, code) = script(dir.path(), &["--format", "csv", "-f", "b.sql"]);
    assert_eq!((out.as_str(), code), ("two\n2\n", Some(1)), "{err}");
    assert!(err.contains("b.sql:2: \\nonsense is unknown"), "{err}");
    // Scripts that include each other end.
    std::fs::write(dir.path().join("c.sql"), "\\i c.sql\n").unwrap();
    let (_, err, code) = script(dir.path(), &["-f", "c.sql"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("scripts run each other"), "{err}");
}

#[test]
fn arrays_are_texts_in_csv() {
    let dir = weather();
    let query = "SELECT ARRAY[1, 2] AS a, ARRAY['x', 'y z'] AS t, 1 AS n";
    let (out, err, code) = script(dir.path(), &["--format", "csv", "-c", query]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "a,t,n\n\"[1, 2]\",\"[x, y z]\",1\n");
    let copy = "\\copy (SELECT ARRAY[1, 2] AS a) to 'x.csv' (delimiter ';')";
    let (_, err, code) = script(dir.path(), &["-c", copy]);
    assert_eq!(code, Some(0), "{err}");
    let file = std::fs::read_to_string(dir.path().join("x.csv")).unwrap();
    assert_eq!(file, "a\n[1, 2]\n");
}

#[test]
fn a_copy_with_refused_rows_stops_a_script() {
    let dir = weather();
    let rows = "time,station,temp\n2030-01-01,x,1\n2030-01-02,x,warm\n";
    std::fs::write(dir.path().join("in.csv"), rows).unwrap();
    let text = "\\copy weather from 'in.csv'\nSELECT 'went on' AS said;\n";
    std::fs::write(dir.path().join("a.sql"), text).unwrap();
    let (out, err, code) = script(dir.path(), &["-f", "a.sql"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("COPY 1, 1 refused"), "{err}");
    assert!(!out.contains("went on"), "{out}");
}

#[test]
fn a_file_gets_all_rows() {
    let dir = weather();
    let text = "\\o out.txt\nSELECT generate_series(1, 250) AS n;\n\\o\n";
    std::fs::write(dir.path().join("a.sql"), text).unwrap();
    let (_, err, code) = script(
        dir.path(),
        &["--limit", "100", "--format", "table", "-f", "a.sql"],
    );
    assert_eq!(code, Some(0), "{err}");
    let file = std::fs::read_to_string(dir.path().join("out.txt")).unwrap();
    assert!(file.lines().count() >= 250, "{file}");
}

#[test]
fn copied_lines_and_tsfiles_come_back() {
    let dir = weather();
    for file in ["w.lp", "w.tsfile"] {
        let text = format!(
            "\\copy weather to '{file}'\nDELETE FROM weather;\n\\copy weather from '{file}'\n\
             SELECT count(*) AS rows FROM weather;\n"
        );
        std::fs::write(dir.path().join("a.sql"), text).unwrap();
        let (out, err, code) = script(dir.path(), &["--format", "csv", "-f", "a.sql"]);
        assert_eq!(code, Some(0), "{file}: {err}");
        assert!(out.ends_with("rows\n3\n"), "{file}: {out}{err}");
    }
    let text = "\\copy other from 'w.lp'\n";
    std::fs::write(dir.path().join("a.sql"), text).unwrap();
    let (_, err, code) = script(dir.path(), &["-f", "a.sql"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("the file has lines of table 'weather'"),
        "{err}"
    );
}
