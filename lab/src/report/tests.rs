//! The whole report, made from a folder of runs.

pub(super) mod fixture;

use super::{WrittenReport, write, write_of};
use crate::record::Verdict;
use fixture::{Fixture, STUDY, answer};
use std::fs;
use std::path::Path;

const TARGETS: [(&str, f64); 6] = [
    ("null", 4.0),
    ("http", 2.0),
    ("embedded", 3.0),
    ("questdb", 1.5),
    ("influxdb", 0.7),
    ("duckdb", 2.9),
];

/// The report of `fixture`: HTML, Markdown, and where they are.
fn report(fixture: &Fixture) -> (tempfile::TempDir, WrittenReport, String, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    fixture.write(folder.path());
    let written = write_of(folder.path(), &[STUDY]).expect("report");
    let html = fs::read_to_string(&written.html).expect("read HTML");
    let markdown = fs::read_to_string(&written.markdown).expect("read Markdown");
    (folder, written, html, markdown)
}

/// Checks that every tag that is opened is closed, in order.
fn assert_balanced(html: &str) {
    let void = ["meta", "br", "hr", "img"];
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().expect("split gives a part");
        assert!(part.contains('>'), "a tag is not ended: <{part}");
        let name = tag
            .trim_start_matches('/')
            .split([' ', '\n', '/'])
            .next()
            .unwrap_or_default();
        if tag.starts_with('!') || tag.ends_with('/') || void.contains(&name) {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order");
        } else {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "never closed");
}

#[test]
fn a_page_is_whole_self_contained_and_escaped() {
    let (_folder, _, html, markdown) = report(&Fixture::new(&TARGETS, 5));
    assert_balanced(&html);
    for outside in ["src=", "<script", "<link", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    let links = html.split("href=\"").skip(1);
    for link in links {
        assert!(link.starts_with('#'), "{link:.40}");
        let id = link[1..].split('"').next().expect("split gives a part");
        assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(html.contains("Writing &amp; asking &lt;b&gt;| *first*"));
    assert!(!html.contains("<b>"));
    assert!(markdown.contains("## Writing & asking \\<b\\>\\| \\*first\\*"));
    assert!(html.contains("<svg role=\"img\""));
}

#[test]
fn markdown_links_plots_that_exist_and_tables_have_equal_columns() {
    let (folder, _, _, markdown) = report(&Fixture::new(&TARGETS, 5));
    let mut plots = 0;
    for link in markdown.split("](svg/").skip(1) {
        let name = link.split(')').next().expect("split gives a part");
        let svg = fs::read_to_string(folder.path().join("report/svg").join(name)).expect(name);
        assert!(svg.contains("xmlns") && svg.contains("fill=\"#FFFFFF\""));
        assert_balanced(&svg);
        plots += 1;
    }
    assert!(plots >= 6, "{plots} plots");
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = markdown.lines().collect();
    for pair in lines
        .windows(2)
        .filter(|pair| pair.iter().all(|line| line.starts_with('|')))
    {
        assert_eq!(bars(pair[0]), bars(pair[1]), "{pair:?}");
    }
}

#[test]
fn published_figures_are_marked_as_from_other_hardware() {
    let (_folder, written, html, markdown) = report(&Fixture::new(&TARGETS, 5));
    assert!(html.contains("<tr class=\"published\"><th scope=\"row\">TDengine 1.6 (published)"));
    assert!(
        html.contains(
            "Published, other hardware: a comparison of 2019, 24 cores &amp; &lt;SSD&gt;."
        )
    );
    assert_eq!(
        html.matches("TDengine 1.6 (published)").count(),
        1,
        "one panel has them"
    );
    assert!(markdown.contains("*TDengine 1.6 (published)<sup>"));
    let csv = fs::read_to_string(written.csv.join("rehearsal-1-ingest-rate.csv")).expect("CSV");
    assert!(
        csv.contains("2000,7,TDengine 1.6,2300,,,,,\"published, other hardware\""),
        "{csv}"
    );
}

#[test]
fn clear_differences_are_claimed_and_noise_is_not() {
    let (_folder, written, html, _) = report(&Fixture::new(&TARGETS, 5));
    let said = written.sentences.join("\n");
    assert!(
        said.contains("Ingest rate — Marigram (http, embedded) is"),
        "{said}"
    );
    assert!(
        said.contains("is 1.33× faster than questdb (geometric mean of 8, all beyond noise)"),
        "{said}"
    );
    assert!(said.contains("2.86× faster than influxdb"), "{said}");
    assert!(html.contains("class=\"good\">is 1.33× faster than questdb"));
    assert!(html.contains(
        "2\u{202f}303 × 1000 rows/s, 3.4 % faster than duckdb; \
         the difference is more than noise (p = 0.008, 5 repetitions each)"
    ));

    let mut even = Fixture::new(&[("http", 1.0), ("questdb", 1.0)], 5);
    for (index, result) in even.results.iter_mut().enumerate() {
        for step in &mut result.steps {
            let wobble = 1.0 + (index * 3 % 5) as f64 / 10.0;
            step.figures.values_mut().for_each(|value| *value *= wobble);
        }
    }
    let (_folder, written, html, _) = report(&even);
    let said = written.sentences.join("\n");
    assert!(
        said.contains("Marigram is ahead beyond noise in 0, behind in 0"),
        "{said}"
    );
    assert!(
        said.contains("Ingest rate — Marigram (http) is not different from questdb beyond noise")
    );
    assert!(html.contains("noise would explain that"));
    assert!(!html.contains("class=\"good\"") && !html.contains("class=\"bad\""));
}

#[test]
fn a_slower_marigram_is_said_so() {
    let (_folder, written, html, _) = report(&Fixture::new(&[("http", 1.0), ("questdb", 3.0)], 4));
    let said = written.sentences.join("\n");
    assert!(said.contains("2.99× slower than questdb"), "{said}");
    assert!(
        said.contains("Size on disk — Marigram (http) is 1.73× larger than questdb"),
        "{said}"
    );
    assert!(html.contains("class=\"bad\">is 2.99× slower"));
}

#[test]
fn one_repetition_claims_nothing() {
    let (_folder, written, html, _) = report(&Fixture::new(&[("http", 2.0), ("questdb", 1.0)], 1));
    let said = written.sentences.join("\n");
    assert!(said.contains("(too few repetitions to tell)"), "{said}");
    assert!(html.contains("Measured once, so there is no interval."));
    assert!(html.contains("nothing can be told from noise"));
}

#[test]
fn differing_answers_become_wrong_and_are_not_ranked() {
    let mut fixture = Fixture::new(&TARGETS, 3);
    // By far the fastest, but wrong.
    fixture.question("duckdb", "top", |step| {
        step.figures.insert("latency_ms".to_owned(), 0.001);
        step.answers[1] = answer(&[4.0]);
    });
    // Neither the order of rows nor rounding makes an answer wrong.
    fixture.question("http", "top", |step| {
        step.answers[0] = answer(&[2.000_000_1, 1.0]);
    });
    fixture.question("influxdb", "last", |step| {
        step.verdict = Verdict::Wrong("1 rows instead of 2".to_owned());
    });
    let (_folder, written, html, markdown) = report(&fixture);
    let note = "Wrong answer: instance 1: row 0, cell 0: 4 instead of 3, the answer of Marigram http, \
                Marigram embedded, questdb, influxdb.";
    assert!(html.contains(note), "no note on the difference");
    assert!(html.contains("<td class=\"wrong\">wrong<sup>"));
    assert!(markdown.contains("**wrong**<sup>"));

    assert!(
        html.contains("Not ranked — wrong answers: influxdb (at last), duckdb (at top)."),
        "words"
    );
    let csv = fs::read_to_string(written.csv.join("results.csv")).expect("CSV");
    let wrong = "rehearsal,all,duckdb,0,9,question=top,latency_ms,0.001,wrong";
    assert!(csv.contains(wrong), "not in results.csv");
    let problems = fs::read_to_string(written.csv.join("problems.csv")).expect("CSV");
    assert!(problems.contains("duckdb,4,1,0,0,0"), "{problems}");
}

#[test]
fn marigram_has_one_voice_about_right_answers() {
    let mut fixture = Fixture::new(
        &[
            ("questdb", 1.0),
            ("http", 1.0),
            ("embedded", 1.0),
            ("duckdb", 1.0),
        ],
        1,
    );
    for way in ["http", "embedded"] {
        fixture.question(way, "top", |step| step.answers[0] = answer(&[9.0, 9.0]));
    }
    let (_folder, written, _, _) = report(&fixture);
    let problems = fs::read_to_string(written.csv.join("problems.csv")).expect("CSV");
    assert!(problems.contains("questdb,4,0,0,0,0"), "{problems}");
    assert!(problems.contains("Marigram http,4,1,0,0,0"), "{problems}");
}

#[test]
fn failures_gaps_and_missing_runs_are_said() {
    let mut fixture = Fixture::new(&TARGETS, 3);
    fixture
        .results
        .retain(|result| result.target != "questdb" || result.repeat == 0);
    for result in fixture
        .results
        .iter_mut()
        .filter(|result| result.target == "influxdb")
    {
        result.failed = Some("killed by <signal> 9".to_owned());
        result.steps.truncate(8);
    }
    fixture.question("duckdb", "top", |step| {
        step.verdict = Verdict::Cannot("its SQL has no such window".to_owned());
        step.figures.clear();
    });
    let (_folder, _, html, _) = report(&fixture);
    assert!(html.contains("2 runs are missing: this report is of an unfinished series."));
    assert!(html.contains("Unfinished: 2 of 18 runs are missing (questdb 2)."));
    assert!(html.contains("2 of 3 repetitions failed or were not made."));
    assert!(html.contains("Failed: killed by &lt;signal&gt; 9."));
    assert!(html.contains("Cannot: its SQL has no such window."));
    assert!(html.contains("<td class=\"absent\">cannot<sup>"));
}

#[test]
fn the_null_target_is_shown_but_not_ranked() {
    let (_folder, _, html, _) = report(&Fixture::new(&TARGETS, 5));
    assert!(html.contains("<tr class=\"client\"><th scope=\"row\">client’s own cost"));
    assert!(html.contains("µs)</small>"));
    assert!(html.contains("The client limits this figure"));
    let ranked = html.split("<p class=\"finding\">").skip(1);
    let mut findings = ranked.map(|part| part.split("</p>").next().expect("split gives a part"));
    assert!(findings.all(|finding| !finding.contains("null")));
}

#[test]
fn folders_without_runs_say_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let said = write(folder.path()).expect_err("no runs").to_string();
    assert!(
        said.contains("holds no runs") && said.contains("lab run --out"),
        "{said}"
    );

    let mut fixture = Fixture::new(&TARGETS, 1);
    fixture.results.clear();
    fixture.write(folder.path());
    let said = write(folder.path())
        .expect_err("no finished run")
        .to_string();
    assert!(said.contains("no finished run yet"), "{said}");

    let damaged = folder.path().join("runs/rehearsal/all/http/0/result.json");
    fs::create_dir_all(damaged.parent().expect("has a folder")).expect("create folder");
    fs::write(&damaged, "{").expect("write file");
    let said = write(folder.path()).expect_err("damaged").to_string();
    assert!(said.contains("result.json is damaged"), "{said}");

    fixture.configuration.format = 2;
    fixture.write(folder.path());
    let said = write(folder.path()).expect_err("other format").to_string();
    assert!(said.contains("has format 2"), "{said}");
}

#[test]
fn an_older_report_is_replaced() {
    let (folder, written, ..) = report(&Fixture::new(&TARGETS[1..3], 3));
    let stale = written.csv.join("stale.csv");
    fs::write(&stale, "old").expect("write file");
    write_of(folder.path(), &[STUDY]).expect("report again");
    assert!(!Path::new(&stale).exists());
}

/// Not a check: stores a report where a person can look at it.
#[test]
fn a_report_to_look_at_is_kept_on_demand() {
    let Ok(folder) = std::env::var("MARIGRAM_REPORT_SAMPLE") else {
        eprintln!("set MARIGRAM_REPORT_SAMPLE to a folder to keep a sample report in");
        return;
    };
    let mut fixture = Fixture::new(&TARGETS, 5);
    fixture.question("duckdb", "top", |step| step.answers[1] = answer(&[4.0]));
    fixture.question("influxdb", "top", |step| {
        step.verdict = Verdict::Cannot("InfluxQL cannot say it".to_owned());
    });
    fixture
        .results
        .retain(|result| result.target != "questdb" || result.repeat != 4);
    fixture.write(Path::new(&folder));
    write_of(Path::new(&folder), &[STUDY]).expect("report");
}
