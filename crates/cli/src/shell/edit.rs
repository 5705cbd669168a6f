//! `\e`: opens a statement in the user's own editor.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::Command;

/// The text after the user has edited it in `$VISUAL` or `$EDITOR` (`vi` if neither is set).
///
/// # Errors
/// If the editor does not start or fails, or leaves no text.
pub(super) fn edit(text: &str) -> Result<String> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.is_empty());
    let editor = set("VISUAL")
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned());
    let mut file = tempfile::Builder::new()
        .prefix("marigram-")
        .suffix(".sql")
        .tempfile()?;
    writeln!(file, "{text}")?;
    file.flush()?;
    // The editor may be a command with arguments.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$0\"")])
        .arg(file.path())
        .status()
        .with_context(|| format!("the editor '{editor}' does not start"))?;
    if !status.success() {
        bail!("the editor '{editor}' failed ({status}); nothing was run");
    }
    let edited = std::fs::read_to_string(file.path()).context("cannot read the edited text")?;
    Ok(edited.trim_end().to_owned())
}
