//! Finds the smallest encoding of cold values by trying every plausible one.
//!
//! The result is pure, like the choice for hot values. Candidates are tried from the fastest to
//! read to the slowest; a slower one must be smaller by a hundredth.

use crate::compress::{compress, sampled};
use crate::kinds::{Compressor, Encoding, EncodingGoal, ValueType};
use crate::values::PageValues;

/// A candidate that was tried.
pub(crate) struct EncodedCandidate {
    pub(crate) encoding: Encoding,
    pub(crate) compressor: Compressor,
    /// Encoded bytes before compression.
    pub(crate) body_bytes: usize,
    /// Encoded and compressed bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Encodings to try, from fast to slow.
const ORDER: [Encoding; 11] = [
    Encoding::Plain,
    Encoding::Runs,
    Encoding::For,
    Encoding::Alp,
    Encoding::Grid,
    Encoding::Delta,
    Encoding::AlpDelta,
    Encoding::Entries,
    Encoding::AlpRd,
    Encoding::Fsst,
    Encoding::Pco,
];

/// The smallest representation of `values`, with the requested compressor or the one that suits.
/// `put` appends values in an encoding, and returns whether the encoding can hold them.
pub(crate) fn smallest(
    values: PageValues<'_>,
    compressor: Option<Compressor>,
    put: impl Fn(Encoding, &mut Vec<u8>) -> bool,
) -> EncodedCandidate {
    let mut bodies = Vec::new();
    for encoding in ORDER
        .into_iter()
        .filter(|encoding| may_be(*encoding, values))
    {
        let mut body = Vec::new();
        if put(encoding, &mut body) {
            bodies.push((encoding, body));
        }
    }
    let mut best: Option<EncodedCandidate> = None;
    for (encoding, body) in &bodies {
        keep(
            &mut best,
            *encoding,
            Compressor::Uncompressed,
            body,
            body.clone(),
        );
    }
    for (encoding, body) in &bodies {
        let tried: &[Compressor] = match &compressor {
            None => &[Compressor::Zstd, Compressor::Gzip],
            Some(asked) => std::slice::from_ref(asked),
        };
        if tried == [Compressor::Uncompressed] {
            break;
        }
        // Stronger levels hardly ever save more than a fifth over the sampled fast ones, and
        // nothing if those save nothing.
        let sampled = sampled(body).best();
        let known = best.as_ref().map_or(usize::MAX, |best| best.bytes.len());
        if sampled > known / 4 * 5 || sampled + body.len() / 64 > body.len() {
            continue;
        }
        for compressor in tried {
            let mut bytes = Vec::new();
            if compress(*compressor, EncodingGoal::Small, body, &mut bytes).is_err() {
                break;
            }
            // If the Zstandard result is far larger than the best, Gzip cannot win.
            let is_far = best
                .as_ref()
                .is_some_and(|best| bytes.len() > best.bytes.len() * 9 / 8);
            keep(&mut best, *encoding, *compressor, body, bytes);
            if is_far {
                break;
            }
        }
    }
    best.expect("PLAIN holds every value of every type")
}

fn keep(
    best: &mut Option<EncodedCandidate>,
    encoding: Encoding,
    compressor: Compressor,
    body: &[u8],
    bytes: Vec<u8>,
) {
    let size = bytes.len();
    if best
        .as_ref()
        .is_none_or(|best| size + size / 100 < best.bytes.len())
    {
        *best = Some(EncodedCandidate {
            encoding,
            compressor,
            body_bytes: body.len(),
            bytes,
        });
    }
}

/// Whether an encoding is worth trying.
fn may_be(encoding: Encoding, values: PageValues<'_>) -> bool {
    let kind = values.value_type();
    match encoding {
        Encoding::Plain => true,
        _ if values.is_empty() => false,
        Encoding::Entries => kind != ValueType::Bool,
        _ => encoding.suits(kind),
    }
}
