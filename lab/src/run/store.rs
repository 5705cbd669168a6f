//! Writes the folder of results, whose layout [`crate::record`] documents.

use super::Order;
use crate::monitor::machine;
use crate::record::{Configuration, RunResult, Verdict};
use crate::study::Plan;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the stored format.
const FORMAT: u32 = 1;

/// An open folder of results.
pub(super) struct Store {
    out: PathBuf,
    data: PathBuf,
    /// Whether `data` belongs to the laboratory and is removed at the end.
    temporary: bool,
    /// Held while the folder is in use.
    _lock: File,
}

impl Store {
    /// Opens or creates the folder of `order`. Fails if it holds runs that are not comparable with
    /// those of `order`.
    pub(super) fn open(order: &Order, plans: &[(&str, Plan)]) -> Result<Self> {
        let out = order.out.clone();
        fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
        let lock = lock(&out)?;
        let data = order.data.clone().unwrap_or(out.join("data"));
        if order.data.is_none() {
            // Left by a killed laboratory.
            remove(&data)?;
        }
        fs::create_dir_all(&data).with_context(|| data.display().to_string())?;
        // Absolute, because servers have their own working folders.
        let data = data.canonicalize()?;
        let store = Self {
            out,
            data,
            temporary: order.data.is_none(),
            _lock: lock,
        };
        let file = store.out.join("lab.json");
        let earlier: Option<Configuration> = load(&file)?;
        if let Some(earlier) = &earlier {
            agree(earlier, order)?;
        }
        for (study, plan) in plans {
            store.plan(study, plan)?;
        }
        save_json(&file, &store.configuration(order, earlier)?)?;
        Ok(store)
    }

    /// Folder of the targets' folders.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// Folder of one run.
    pub(super) fn folder(&self, study: &str, setup: &str, target: &str, repeat: usize) -> PathBuf {
        let runs = self.out.join("runs").join(study);
        runs.join(setup).join(target).join(repeat.to_string())
    }

    /// Removes the temporary folder.
    pub(super) fn close(self) -> Result<()> {
        if self.temporary {
            remove(&self.data)?;
        }
        Ok(())
    }

    /// The configuration of `earlier` and `order` together.
    fn configuration(
        &self,
        order: &Order,
        earlier: Option<Configuration>,
    ) -> Result<Configuration> {
        let mut all = match earlier {
            Some(earlier) => earlier,
            None => Configuration {
                format: FORMAT,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                scale: order.scale,
                seed: order.seed,
                repeat: order.repeat,
                studies: Vec::new(),
                targets: Vec::new(),
                command: order.command.clone(),
                started: utc(SystemTime::now()),
                machine: machine(&self.data).context("describing this machine")?,
            },
        };
        let add = |list: &mut Vec<String>, name: &str| {
            if !list.iter().any(|known| known == name) {
                list.push(name.to_owned());
            }
        };
        for study in &order.studies {
            add(&mut all.studies, study.name);
        }
        for (kind, _) in &order.targets {
            add(&mut all.targets, kind.name);
        }
        all.repeat = all.repeat.max(order.repeat);
        Ok(all)
    }

    /// Stores the plan of `study`. Fails if runs were executed by another plan.
    fn plan(&self, study: &str, plan: &Plan) -> Result<()> {
        let file = self.out.join("plans").join(format!("{study}.json"));
        let earlier: Option<serde_json::Value> = load(&file)?;
        let runs = self.out.join("runs").join(study);
        if let Some(earlier) = earlier.filter(|_| runs.exists()) {
            // Both were serialized, so their numbers are rounded in the same way.
            let ours: serde_json::Value = serde_json::from_str(&serde_json::to_string(plan)?)?;
            ensure!(
                ours.get("setups") == earlier.get("setups"),
                "{} holds runs of another plan of study {study}; choose another --out, or remove \
                 {} to make them again",
                self.out.display(),
                runs.display()
            );
        }
        save_json(&file, plan)
    }
}

/// Locks the folder: of two laboratories, each would remove what the other uses.
fn lock(out: &Path) -> Result<File> {
    let lock = File::create(out.join("lab.lock")).context("the lock of the folder")?;
    lock.try_lock()
        .with_context(|| format!("another laboratory is at work in {}", out.display()))?;
    Ok(lock)
}

/// Fails unless `order` may continue `earlier`.
fn agree(earlier: &Configuration, order: &Order) -> Result<()> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, earlier: String, now: String| {
        if earlier != now {
            differences.push(format!("{what} {earlier}, not {now}"));
        }
    };
    compare("format", earlier.format.to_string(), FORMAT.to_string());
    let scale = |scale| format!("{scale:?}").to_lowercase();
    compare("scale", scale(earlier.scale), scale(order.scale));
    compare("seed", earlier.seed.to_string(), order.seed.to_string());
    ensure!(
        differences.is_empty(),
        "{} holds runs of {}: choose another --out, ask for the same again, or remove the folder",
        order.out.display(),
        differences.join("; ")
    );
    Ok(())
}

/// The result of a completed run; `None`: it must be executed (again).
pub(super) fn finished(folder: &Path) -> Option<RunResult> {
    // A file that cannot be read counts as missing: the run is repeated and replaces it.
    let result: RunResult = load(&folder.join("result.json")).ok()??;
    result.failed.is_none().then_some(result)
}

/// Whether it contains a wrong answer.
pub(super) fn is_wrong(result: &RunResult) -> bool {
    let wrong = |verdict: &Verdict| matches!(verdict, Verdict::Wrong(_));
    result.steps.iter().any(|step| wrong(&step.verdict))
}

/// Stores `result`, which marks the run as executed.
pub(super) fn save(folder: &Path, result: &RunResult) -> Result<()> {
    save_json(&folder.join("result.json"), result)
}

/// Creates an empty `folder`.
pub(super) fn empty(folder: &Path) -> Result<()> {
    remove(folder)?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Removes `folder` if it exists.
pub(super) fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn load<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("reading {}", file.display()))?,
    };
    let value = serde_json::from_slice(&text);
    value.with_context(|| format!("{} is not what the laboratory writes", file.display()))
}

/// Writes a file atomically.
fn save_json(file: &Path, value: &impl Serialize) -> Result<()> {
    let write = || -> Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let part = file.with_extension("json.part");
        fs::write(&part, serde_json::to_vec_pretty(value)?)?;
        fs::rename(&part, file)?;
        Ok(())
    };
    write().with_context(|| format!("writing {}", file.display()))
}

/// `time` as RFC 3339 in UTC, to the second.
pub(super) fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Civil date of a day number, counted from 1 March of year 0, so that leap days come last in
    // their year (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + era * 400 + next;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_in_utc() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
