//! A file that is replaced when it is full, with the last few kept.

use super::AuditSettings;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that is being written, and those before it.
#[derive(Debug)]
pub(super) struct RotatedFile {
    settings: AuditSettings,
    file: File,
    bytes: u64,
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

impl RotatedFile {
    /// Opens the newest file, and continues it.
    pub(super) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let (file, bytes) = open(&settings.path)?;
        Ok(Self {
            settings: settings.clone(),
            file,
            bytes,
        })
    }

    /// The name of the file that is `age` files old.
    fn older(&self, age: usize) -> PathBuf {
        if age == 0 {
            return self.settings.path.clone();
        }
        let mut name = self.settings.path.clone().into_os_string();
        name.push(format!(".{age}"));
        PathBuf::from(name)
    }

    /// Adds a line. Begins a new file first if this one would become too large, or was taken away.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        let is_full = self.bytes + line.len() as u64 > self.settings.file_bytes_max;
        if is_full && self.bytes > 0 {
            self.rotate()?;
        } else if !self.settings.path.exists() {
            (self.file, self.bytes) = open(&self.settings.path)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let oldest = self.settings.files_max.saturating_sub(1);
        if oldest == 0 {
            self.file.set_len(0)?;
            self.bytes = 0;
            return Ok(());
        }
        for age in (0..oldest).rev() {
            match std::fs::rename(self.older(age), self.older(age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        (self.file, self.bytes) = open(&self.settings.path)?;
        Ok(())
    }
}
