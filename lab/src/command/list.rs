//! The list of studies and targets.

use crate::study::Study;
use crate::target::Kind;
use std::fmt::Write;

/// Width that texts are broken at.
const WIDTH: usize = 96;

/// What `marigram lab list` prints.
pub fn text(studies: &[Study], kinds: &[Kind]) -> String {
    let mut out = String::from("Studies\n");
    for study in studies {
        entry(&mut out, study.name, study.about);
    }
    out.push_str("\nMarigram's ways in (--target)\n");
    for kind in kinds.iter().filter(|kind| !kind.peer) {
        entry(&mut out, kind.name, kind.about);
    }
    out.push_str("\nPeers (--peer)\n");
    for kind in kinds.iter().filter(|kind| kind.peer) {
        entry(&mut out, kind.name, kind.about);
    }
    out
}

/// Adds a name with a description, wrapped over as many lines as it needs.
pub fn entry(out: &mut String, name: &str, about: &str) {
    const INDENT: usize = 22;
    let mut line = format!("  {name:<width$}", width = INDENT - 2);
    let mut empty = true;
    for word in about.split_whitespace() {
        if !empty && line.len() + word.len() + 1 > WIDTH {
            writeln!(out, "{line}").expect("a string takes every text");
            line = " ".repeat(INDENT);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{}", line.trim_end()).expect("a string takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        let mut out = String::new();
        entry(&mut out, "name", &"word ".repeat(30));
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
        assert!(lines[0].starts_with("  name "));
        assert!(lines[1].starts_with("                      word"));
        assert_eq!(out.matches("word").count(), 30);
    }
}
