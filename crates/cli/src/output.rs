//! Where the shell's answers go: to the terminal, through a pager if they do not fit, or to a file.
//!
//! Invariant: at most one screen is held back before a pager starts.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// Options for `less` if the user sets none: colours, no clearing of the screen, sideways scrolling
/// of long lines.
const LESS: &str = "FRSX";

/// The pager that the user wants: `$PAGER`, `less` if it is not set, none if it is empty.
pub(crate) fn pager() -> Option<String> {
    match std::env::var("PAGER") {
        Ok(pager) if pager.trim().is_empty() => None,
        Ok(pager) => Some(pager),
        Err(_) => Some("less".to_owned()),
    }
}

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScreenSize {
    /// Characters in a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// The terminal, which switches to a pager as soon as an answer does not fit.
pub(crate) struct PagedOutput<'a> {
    pager: Option<&'a str>,
    screen: ScreenSize,
    buffered: Vec<u8>,
    lines: usize,
    child: Option<Child>,
    /// Whether the user left the pager and needs no more output.
    is_left: bool,
}

impl<'a> PagedOutput<'a> {
    /// A terminal of this size.
    pub(crate) fn new(pager: Option<&'a str>, screen: ScreenSize) -> Self {
        Self {
            pager,
            screen,
            buffered: Vec::new(),
            lines: 0,
            child: None,
            is_left: false,
        }
    }

    /// Shows what is held back, and waits until the user leaves the pager. Returns whether the user
    /// left before the end.
    pub(crate) fn finish(mut self) -> io::Result<bool> {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            child.wait()?;
            return Ok(self.is_left);
        }
        let mut out = io::stdout().lock();
        out.write_all(&self.buffered)?;
        out.flush()?;
        Ok(false)
    }

    /// Whether the output held back no longer fits the screen; the prompt needs two lines of it.
    fn is_full(&self) -> bool {
        let is_wide = |line: &[u8]| {
            let is_start = |byte: &&u8| **byte & 0xc0 != 0x80;
            line.len() > self.screen.columns
                && line.iter().filter(is_start).count() > self.screen.columns
        };
        self.lines + 2 > self.screen.rows || self.buffered.split(|b| *b == b'\n').any(is_wide)
    }

    fn start_pager(&mut self, pager: &str) -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", pager]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        match command.spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                erroutln!("the pager '{pager}' does not start: {error}");
                self.pager = None;
                return self.put_out();
            }
        }
        let buffered = std::mem::take(&mut self.buffered);
        self.write_all(&buffered)
    }

    fn put_out(&mut self) -> io::Result<()> {
        io::stdout().lock().write_all(&self.buffered)?;
        self.buffered.clear();
        Ok(())
    }
}

impl Write for PagedOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(child) = &mut self.child {
            let Some(stdin) = &mut child.stdin else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let written = stdin.write(bytes);
            if let Err(error) = &written
                && error.kind() == io::ErrorKind::BrokenPipe
            {
                self.is_left = true;
            }
            return written;
        }
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.buffered.extend_from_slice(bytes);
        match self.pager {
            Some(pager) if self.is_full() => self.start_pager(pager)?,
            None if self.buffered.len() > 1 << 16 => self.put_out()?,
            _ => {}
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.child {
            Some(child) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: ScreenSize = ScreenSize {
        columns: 10,
        rows: 5,
    };

    #[test]
    fn only_what_does_not_fit_goes_through_the_pager() {
        let dir = tempfile::tempdir().unwrap();
        let paged = |text: &str| {
            let file = dir.path().join("paged");
            let _ = std::fs::remove_file(&file);
            let pager = format!("cat > {}", file.display());
            let mut out = PagedOutput::new(Some(&pager), SCREEN);
            for part in text.as_bytes().chunks(3) {
                out.write_all(part).unwrap();
            }
            assert!(!out.finish().unwrap());
            std::fs::read_to_string(&file).ok()
        };
        assert_eq!(paged("1\n2\n3\n"), None);
        assert_eq!(paged("äöüäöüäöüä\n"), None);
        let tall = "1\n2\n3\n4\n5\n6\n";
        assert_eq!(paged(tall).as_deref(), Some(tall));
        let wide = "12345678901\n";
        assert_eq!(paged(wide).as_deref(), Some(wide));
    }

    #[test]
    fn a_reader_who_leaves_the_pager_wants_no_more() {
        let mut out = PagedOutput::new(Some("true"), SCREEN);
        let line = [b'x'; 1 << 12];
        let written = (0..1000).try_for_each(|_| out.write_all(&line));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(out.finish().unwrap());
    }
}
