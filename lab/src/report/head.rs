//! The head of the report: what was run, where and on what machine, and how to read it.

use super::document::{Block, Line, Table, TableCell, Tone};
use super::load::Lab;
use super::names::{is_null, label};
use super::number::{bytes, plain};
use super::standing::Count;
use super::statistics::JUDGED_MIN;
use crate::study::Scale;

/// Title of the report.
pub(super) const TITLE: &str = "Marigram laboratory: report";

fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Tiny => "tiny",
        Scale::Small => "small",
        Scale::Medium => "medium",
        Scale::Paper => "paper",
    }
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// The title, what was run, and what a reader must know before any figure.
#[must_use]
pub(super) fn opening(lab: &Lab) -> Vec<Block> {
    let configuration = &lab.configuration;
    let scale_name = scale(configuration.scale);
    let targets = configuration
        .targets
        .iter()
        .filter(|target| !is_null(target))
        .count();
    let mut blocks = vec![
        Block::heading(1, TITLE, "top"),
        Block::Text(format!(
            "{} at scale {scale_name}, on {}, {}, seed {}. Begun {} with: {}",
            counted(configuration.studies.len(), "study", "studies"),
            counted(targets, "target", "targets"),
            counted(configuration.repeat, "repetition", "repetitions"),
            configuration.seed,
            configuration.started,
            configuration.command,
        )),
    ];
    if matches!(configuration.scale, Scale::Tiny | Scale::Small) {
        blocks.push(Block::Note(format!(
            "This is a rehearsal at scale {scale_name}: figures mean little. It shows that every \
             study runs and every answer is checked, not how fast a database is."
        )));
    }
    if configuration.repeat < JUDGED_MIN {
        blocks.push(Block::Note(format!(
            "With {} nothing can be told from noise; from {JUDGED_MIN} on, differences are judged.",
            counted(configuration.repeat, "repetition", "repetitions")
        )));
    }
    blocks.push(Block::Note(
        "Client and server share one machine: they compete for its cores, its memory and its \
         disk, so a figure is less than the server could reach with a client elsewhere. The null \
         target, where it was run, shows what the client costs."
            .to_owned(),
    ));
    let missing: usize = lab.studies.iter().map(|study| study.missing.len()).sum();
    if missing > 0 {
        blocks.push(Block::Note(format!(
            "{} missing: this report is of an unfinished series.",
            counted(missing, "run is", "runs are")
        )));
    }
    blocks
}

/// The outcome of all comparisons, in a sentence.
#[must_use]
pub(super) fn tally(count: Count) -> String {
    let all = count.ahead + count.behind + count.noise + count.untold;
    if all == 0 {
        return "Nothing to compare: Marigram and a peer were not both measured.".to_owned();
    }
    let untold = match count.untold {
        0 => String::new(),
        untold => format!(", and {untold} with too few repetitions to tell"),
    };
    format!(
        "Of {}, Marigram is ahead beyond noise in {}, behind in {}, not different in {}{untold}. \
         Each is one setting against one peer: with a server, the better of Marigram’s server’s two \
         ways in (http, postgres), with a library the best of all three (and embedded).",
        counted(all, "comparison", "comparisons"),
        count.ahead,
        count.behind,
        count.noise
    )
}

/// Targets and machine.
#[must_use]
pub(super) fn setting(lab: &Lab) -> Vec<Block> {
    let mut targets = Table {
        name: "targets".to_owned(),
        caption: "What each target said that it is.".to_owned(),
        prose: true,
        ..Table::default()
    };
    targets.head = ["target", "version", "path", "durability", "notes"]
        .map(str::to_owned)
        .to_vec();
    for target in &lab.configuration.targets {
        let cells = match lab.facts(target) {
            Some(facts) => [&facts.version, &facts.path, &facts.durability, &facts.notes]
                .map(|text| TableCell::plain(if text.is_empty() { "–" } else { text }))
                .to_vec(),
            None => {
                let mut cells = vec![TableCell::plain("–"); 4];
                cells[0] = TableCell::plain("did not start in any run");
                cells
            }
        };
        targets.push(label(target), cells);
    }
    let machine = &lab.configuration.machine;
    let mut rows = Table {
        name: "machine".to_owned(),
        caption: "The machine, shared by client and server.".to_owned(),
        prose: true,
        head: vec!["what".to_owned(), "value".to_owned()],
        ..Table::default()
    };
    let facts = [
        ("processor", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("memory", bytes(machine.memory_bytes as f64)),
        ("system", machine.system.clone()),
        (
            "4 KiB append with fsync, median",
            format!("{} µs", plain(machine.fsync_us)),
        ),
        ("laboratory", lab.configuration.version.clone()),
        ("command", lab.configuration.command.clone()),
        ("begun", lab.configuration.started.clone()),
        ("seed", lab.configuration.seed.to_string()),
    ];
    for (what, value) in facts {
        rows.push(what, vec![TableCell::plain(value)]);
    }
    vec![
        Block::heading(2, "Targets and machine", "targets-and-machine"),
        Block::Table(targets),
        Block::Table(rows),
    ]
}

/// How to read the figures.
#[must_use]
pub(super) fn reading() -> Block {
    let line = |lead: &str, text: &str| Line {
        lead: lead.to_owned(),
        phrases: vec![(Tone::Plain, text.to_owned())],
    };
    Block::Folded {
        summary: "How to read the figures".to_owned(),
        blocks: vec![Block::List(vec![
            line(
                "Figures",
                "are medians over repetitions, each from an empty folder; in brackets an interval \
                 for the median from order statistics, which assumes no distribution.",
            ),
            line(
                "Bold",
                "is the best median, and what noise would explain the distance of.",
            ),
            line(
                "More than noise",
                "means that the intervals do not overlap and, from four repetitions on, that an \
                 exact two-sided Mann–Whitney test gives p < 0.05. With three, disjoint intervals \
                 decide alone: one in ten of such claims would come from noise. No correction is \
                 made for the number of comparisons.",
            ),
            line(
                "Wrong",
                "is an answer that differs, by more than rounding, from the one that the data \
                 give or, for SQL, from the one that most products agree on. It is never ranked.",
            ),
            line(
                "Published figures",
                "are from other hardware, mostly other versions: compare shapes, not heights.",
            ),
            line(
                "Client’s own cost",
                "is what the null target reaches, which takes requests and does nothing. A rate \
                 beyond 70 % of it, or a time of which it is more than 70 %, says more about the \
                 client than about the target.",
            ),
        ])],
    }
}
