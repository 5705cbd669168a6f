//! Studies and targets by the names that a person types.

use crate::study::Study;
use crate::target::{Kind, Settings};
use anyhow::{Result, bail, ensure};

/// The studies called `names`, in the order of `all`; `all` means all, `iot-*` those that begin so.
pub(super) fn studies(all: &[Study], names: &[String]) -> Result<Vec<Study>> {
    let matches = |study: &Study, name: &str| match name.strip_suffix('*') {
        Some(beginning) => study.name.starts_with(beginning),
        None => name == "all" || study.name == name,
    };
    for name in names {
        if !all.iter().any(|study| matches(study, name)) {
            let known: Vec<&str> = all.iter().map(|study| study.name).collect();
            bail!("there is no study '{name}': {}", known.join(", "));
        }
    }
    let chosen = |study: &&Study| names.iter().any(|name| matches(study, name));
    Ok(all.iter().filter(chosen).copied().collect())
}

/// The targets and peers of these names, each once, with their settings.
pub(super) fn targets(
    kinds: &[Kind],
    targets: &[String],
    peers: &[String],
    settings: &Settings,
) -> Result<Vec<(Kind, Settings)>> {
    let mut chosen: Vec<(Kind, Settings)> = Vec::new();
    let named = targets.iter().map(|name| (name, false));
    for (text, peer) in named.chain(peers.iter().map(|name| (name, true))) {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) => (name, Some(url.to_owned())),
            None => (text.as_str(), None),
        };
        let Some(kind) = kinds.iter().find(|kind| kind.name == name) else {
            let known = kinds.iter().filter(|kind| kind.peer == peer);
            let known: Vec<&str> = known.map(|kind| kind.name).collect();
            let what = if peer { "peer" } else { "target" };
            bail!("there is no {what} '{name}': {}", known.join(", "));
        };
        ensure!(
            chosen.iter().all(|(other, _)| other.name != name),
            "{name} is named twice"
        );
        let settings = Settings {
            url,
            ..settings.clone()
        };
        chosen.push((*kind, settings));
    }
    ensure!(
        !chosen.is_empty(),
        "no target: name one with --target or --peer"
    );
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Plan;

    fn study(name: &'static str) -> Study {
        Study {
            name,
            title: "",
            about: "",
            source: "",
            plan: |_| Plan::default(),
        }
    }

    fn kind(name: &'static str, peer: bool) -> Kind {
        Kind {
            name,
            about: "",
            peer,
            make: |_| bail!("not made in this test"),
        }
    }

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn studies_go_by_name_beginning_or_all() {
        let all = [study("a-one"), study("a-two"), study("b")];
        let names = |chosen: &[&str]| -> Vec<&str> {
            let chosen = studies(&all, &texts(chosen)).expect("they are there");
            chosen.iter().map(|study| study.name).collect()
        };
        assert_eq!(names(&["b", "a-one"]), ["a-one", "b"]);
        assert_eq!(names(&["a-*"]), ["a-one", "a-two"]);
        assert_eq!(names(&["all", "b"]), ["a-one", "a-two", "b"]);
        let error = studies(&all, &texts(&["c"])).err().expect("there is no c");
        assert_eq!(error.to_string(), "there is no study 'c': a-one, a-two, b");
    }

    #[test]
    fn a_peer_may_carry_its_address() {
        let kinds = [kind("http", false), kind("click", true)];
        let chosen = targets(
            &kinds,
            &texts(&["http"]),
            &texts(&["click=http://host:1"]),
            &Settings::default(),
        );
        let chosen = chosen.expect("both are there");
        assert_eq!(chosen[0].1.url, None);
        assert_eq!(chosen[1].1.url.as_deref(), Some("http://host:1"));
    }

    #[test]
    fn unknown_and_repeated_names_are_refused() {
        let kinds = [kind("http", false), kind("click", true)];
        let choose = |target: &[&str], peer: &[&str]| {
            targets(&kinds, &texts(target), &texts(peer), &Settings::default())
                .err()
                .expect("it is refused")
                .to_string()
        };
        assert_eq!(choose(&["x"], &[]), "there is no target 'x': http");
        assert_eq!(choose(&[], &["x"]), "there is no peer 'x': click");
        assert_eq!(choose(&["http", "http"], &[]), "http is named twice");
        assert!(choose(&[], &[]).starts_with("no target"));
    }
}
