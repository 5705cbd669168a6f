//! Random texts for tests of lexers: quotes, comments, numbers and signs in any order.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// What the texts consist of.
const PIECES: [&str; 36] = [
    ";",
    "'",
    "''",
    "\"",
    "E'",
    "e'",
    "\\",
    "\\'",
    "$$",
    "$a$",
    "--",
    "\n",
    "/*",
    "*/",
    "-",
    "/",
    "*",
    "1",
    "1.5e3",
    ".",
    "(",
    ")",
    "a",
    "é",
    " ",
    "::",
    "N'",
    "X'",
    "U&'",
    "b'",
    "\t",
    "<>",
    "||",
    "'it''s'",
    "E'it\\'s'",
    "$$it's$$",
];

/// The same 200,000 texts in each run, out of these pieces and of `others`.
pub(crate) fn random_texts(others: &[&'static str]) -> impl Iterator<Item = String> {
    let pieces = [&PIECES[..], others].concat();
    let mut rng = StdRng::seed_from_u64(1);
    (0..200_000).map(move |_| {
        let length = rng.random_range(1..14);
        (0..length)
            .filter_map(|_| pieces.choose(&mut rng).copied())
            .collect()
    })
}
