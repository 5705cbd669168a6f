//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), as PostgreSQL's clients speak it: the
//! name in the messages is ignored, because the startup message has it.

use crate::password::PasswordVerifiers;
use crate::scram_verifier::{Key, ScramVerifier, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::Rng;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::{Choice, ConstantTimeEq};

const NONCE_BYTES: usize = 18;
/// Longest message of a client, bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// What the connection offers to bind a login to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding<'a> {
    /// The connection is not encrypted.
    None,
    /// The connection is encrypted: the hash of the server's certificate, `tls-server-end-point` of
    /// RFC 5929.
    ServerEndPoint(&'a [u8]),
}

/// Why a login fails. The client learns no more than "wrong name or password".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScramRefusal {
    /// The message is not one of SCRAM's, or not the one whose turn it is.
    #[error("the message is not SCRAM-SHA-256's: {0}")]
    Malformed(&'static str),
    /// The client binds to another channel, or was told that there is none.
    #[error("the login is bound to another connection: somebody may be in between")]
    Binding,
    /// The proof is wrong, or there is no such user.
    #[error("the password is wrong")]
    Password,
}

/// A login in progress: the client's first message makes it, its second one ends it.
pub struct ScramExchange {
    verifier: ScramVerifier,
    /// The client's first message without its header.
    first_bare: String,
    server_first: String,
    nonce: String,
    /// What the client must send under `c=`.
    binding: Vec<u8>,
}

impl fmt::Debug for ScramExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramExchange")
    }
}

fn text(message: &[u8]) -> Result<&str, ScramRefusal> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(ScramRefusal::Malformed("it is too long"));
    }
    std::str::from_utf8(message).map_err(|_| ScramRefusal::Malformed("it is not UTF-8"))
}

impl ScramExchange {
    /// Reads the client's first message. `is_plus` tells whether the client chose
    /// `SCRAM-SHA-256-PLUS`.
    ///
    /// # Errors
    /// `Malformed`, and `Binding` if the client was told that the server cannot bind to the channel
    /// although it can.
    pub fn begin(
        verifiers: &PasswordVerifiers,
        message: &[u8],
        is_plus: bool,
        channel: ChannelBinding<'_>,
    ) -> Result<Self, ScramRefusal> {
        let mut nonce = [0; NONCE_BYTES];
        rand::rng().fill_bytes(&mut nonce);
        let nonce = STANDARD.encode(nonce);
        Self::begin_with(verifiers.scram(), message, is_plus, channel, &nonce)
    }

    fn begin_with(
        verifier: &ScramVerifier,
        message: &[u8],
        is_plus: bool,
        channel: ChannelBinding<'_>,
        nonce: &str,
    ) -> Result<Self, ScramRefusal> {
        let message = text(message)?;
        let mut parts = message.splitn(3, ',');
        let (Some(flag), Some(identity), Some(bare)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(ScramRefusal::Malformed("its header is incomplete"));
        };
        if !identity.is_empty() {
            let message = "it names an identity to act as, which the server does not have";
            return Err(ScramRefusal::Malformed(message));
        }
        let mut binding = format!("{flag},,").into_bytes();
        match (flag, channel) {
            ("p=tls-server-end-point", ChannelBinding::ServerEndPoint(hash)) if is_plus => {
                binding.extend_from_slice(hash);
            }
            ("n", _) | ("y", ChannelBinding::None) if !is_plus => {}
            // The client could bind, and was told that the server cannot.
            ("y", ChannelBinding::ServerEndPoint(_)) if !is_plus => {
                return Err(ScramRefusal::Binding);
            }
            _ => return Err(ScramRefusal::Malformed("its channel binding does not fit")),
        }
        let mut attributes = bare.split(',');
        let has_name = attributes.next().is_some_and(|name| name.starts_with("n="));
        let client_nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let Some(client_nonce) = client_nonce.filter(|nonce| has_name && !nonce.is_empty()) else {
            return Err(ScramRefusal::Malformed("it has no name and nonce"));
        };
        let nonce = format!("{client_nonce}{nonce}");
        let salt = STANDARD.encode(&verifier.salt);
        Ok(Self {
            server_first: format!("r={nonce},s={salt},i={}", verifier.iterations),
            verifier: verifier.clone(),
            first_bare: bare.to_owned(),
            nonce,
            binding,
        })
    }

    /// The server's answer to the first message.
    #[must_use]
    pub fn challenge(&self) -> &str {
        &self.server_first
    }

    /// Reads the client's second message, and gives the server's last one.
    ///
    /// # Errors
    /// `Malformed`, `Binding`, and `Password` if the client does not know the password.
    pub fn finish(self, message: &[u8]) -> Result<String, ScramRefusal> {
        let message = text(message)?;
        let malformed = ScramRefusal::Malformed;
        let (without_proof, proof) = message
            .rsplit_once(",p=")
            .ok_or(malformed("it has no proof"))?;
        let mut attributes = without_proof.split(',');
        let binding = attributes.next().and_then(|text| text.strip_prefix("c="));
        let nonce = attributes.next().and_then(|text| text.strip_prefix("r="));
        let (Some(binding), Some(nonce)) = (binding, nonce) else {
            return Err(malformed("it has no channel binding and nonce"));
        };
        if STANDARD.decode(binding).ok().as_deref() != Some(self.binding.as_slice()) {
            return Err(ScramRefusal::Binding);
        }
        if nonce != self.nonce {
            return Err(malformed("its nonce is not that of this login"));
        }
        let proof: Key = STANDARD
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or(malformed("its proof is none"))?;
        let exchanged = format!("{},{},{without_proof}", self.first_bare, self.server_first);
        let signature = hmac(&self.verifier.stored_key, exchanged.as_bytes());
        let mut client_key = proof;
        for (byte, sign) in client_key.iter_mut().zip(signature) {
            *byte ^= sign;
        }
        let is_right: Choice = Sha256::digest(client_key).ct_eq(&self.verifier.stored_key[..]);
        if !bool::from(is_right) {
            return Err(ScramRefusal::Password);
        }
        let proof = hmac(&self.verifier.server_key, exchanged.as_bytes());
        Ok(format!("v={}", STANDARD.encode(proof)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange that RFC 7677 prints in section 3.
    #[test]
    fn the_exchange_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        let verifier = ScramVerifier::with_salt("pencil", salt, 4096);
        let begin = || {
            ScramExchange::begin_with(
                &verifier,
                b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                false,
                ChannelBinding::None,
                "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            )
            .expect("it is SCRAM")
        };
        assert_eq!(
            begin().challenge(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let second = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                      p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(
            begin()
                .finish(second.as_bytes())
                .expect("the proof is right"),
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
        for (wrong, refusal) in [
            (second.replace("p=dH", "p=aH"), ScramRefusal::Password),
            (second.replace("c=biws", "c=eSws"), ScramRefusal::Binding),
            (
                second.replace("r=rO", "r=sO"),
                ScramRefusal::Malformed("its nonce is not that of this login"),
            ),
        ] {
            assert_eq!(begin().finish(wrong.as_bytes()), Err(refusal), "{wrong}");
        }
    }
}
