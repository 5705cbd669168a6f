//! Every driver against its database, where the machine has it.
//!
//! Nothing runs unless `MARIGRAM_LAB_DRIVERS` names kinds of targets (`http,postgres`, or `all`).
//! `MARIGRAM_LAB_BIN` is Marigram's binary, `MARIGRAM_LAB_PEERS` the folder of installed peers.

use marigram_lab::conformance;
use marigram_lab::target::Settings;
use std::env::var;

#[test]
fn every_available_driver_answers_rightly() {
    let Ok(wanted) = var("MARIGRAM_LAB_DRIVERS") else {
        eprintln!("passed over: MARIGRAM_LAB_DRIVERS names no drivers");
        return;
    };
    let settings = Settings {
        marigram: var("MARIGRAM_LAB_BIN").unwrap_or_default().into(),
        peers: var("MARIGRAM_LAB_PEERS").unwrap_or_default().into(),
        ..Settings::default()
    };
    let (mut checked_kinds, mut wrong) = (0, Vec::new());
    let kinds = [marigram_lab_drivers::kinds(), marigram_lab_peers::kinds()];
    for kind in kinds.concat() {
        if wanted != "all" && !wanted.split(',').any(|name| name == kind.name) {
            continue;
        }
        eprintln!("== {}", kind.name);
        checked_kinds += 1;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let checked = (kind.make)(&settings)
            .and_then(|mut target| conformance::check(target.as_mut(), folder.path()));
        if let Err(error) = checked {
            wrong.push(format!("{}: {error:#}", kind.name));
        }
    }
    assert!(
        checked_kinds > 0,
        "there is no kind of target in {wanted:?}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
