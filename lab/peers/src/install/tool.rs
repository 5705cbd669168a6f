//! Runs tools of the system: package managers, and programs that set a peer up.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Runs `command` to its end, and returns what it printed. Says on stderr what it runs.
pub fn run(command: &mut Command) -> Result<String> {
    let line = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<_> = line.map(|part| part.to_string_lossy()).collect();
    let line = line.join(" ");
    eprintln!("{line}");
    let output = command
        .output()
        .with_context(|| format!("running {line}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{line} ended with {}: {text}{errors}", output.status);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_says_what_it_was() {
        let error = run(Command::new("sh").args(["-c", "echo no >&2; exit 3"]));
        let error = error.expect_err("it fails").to_string();
        assert!(
            error.starts_with("sh -c") && error.ends_with("no\n"),
            "{error}"
        );
        let text = run(Command::new("sh").args(["-c", "echo yes"])).expect("it works");
        assert_eq!(text, "yes\n");
    }
}
