//! How long the server works on logins that fail: of a user with another password, and of a name that
//! is no user's. `cargo run --release -p marigram-access --example login_times`

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and prints"
)]

use marigram_access::{AccessCatalog, ChannelBinding, PasswordVerifiers, ScramExchange};
use std::time::{Duration, Instant};

const ROUNDS: usize = 100;

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{what}: median {:.3} ms, 5 % {:.3}, 95 % {:.3}",
        at(0.5),
        at(0.05),
        at(0.95)
    );
}

fn scram(verifiers: &PasswordVerifiers) {
    let first = b"n,,n=,r=abcdefghijklmnopqr";
    let Ok(begun) = ScramExchange::begin(verifiers, first, false, ChannelBinding::None) else {
        return;
    };
    let nonce = begun
        .challenge()
        .split(',')
        .next()
        .unwrap_or_default()
        .to_owned();
    let proof = "A".repeat(43);
    let _ = begun.finish(format!("c=biws,{nonce},p={proof}=").as_bytes());
}

fn main() -> Result<(), marigram_access::AccessError> {
    let known = PasswordVerifiers::from_password("correct horse")?;
    let catalog = AccessCatalog::default();
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    let (mut wrong_scram, mut unknown_scram) = (Vec::new(), Vec::new());
    // In turn, so that whatever else the machine does meets both.
    for round in 0..ROUNDS {
        let name = format!("ghost {round}");
        wrong.push(timed(|| {
            assert!(!known.clone().verify("battery staple"));
        }));
        unknown.push(timed(|| {
            assert!(!catalog.verifiers_of(&name).verify("battery staple"));
        }));
    }
    // By themselves: the check of a password leaves the caches of the processor cold.
    for round in 0..ROUNDS {
        let name = format!("ghost {round}");
        wrong_scram.push(timed(|| scram(&known.clone())));
        unknown_scram.push(timed(|| scram(&catalog.verifiers_of(&name))));
    }
    tell("password sent, wrong password", wrong);
    tell("password sent, unknown user", unknown);
    tell("SCRAM, wrong password", wrong_scram);
    tell("SCRAM, unknown user", unknown_scram);
    Ok(())
}
