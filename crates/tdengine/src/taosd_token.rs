//! The token that a login answers: the name and the password under DES with a key that everyone knows.
//!
//! It protects nothing; clients expect it, and send it back as `Authorization: Taosd …`. It is as
//! secret as a password in Basic authentication: only TLS hides it. DES is broken; nothing else may use it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use des::Des;
use des::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

/// The key that TDengine's adapter publishes in its source.
const KEY: [u8; 8] = [0x40, 0xB6, 0x7A, 0x30, 0x56, 0x73, 0xFD, 0x44];

/// Bytes of a block.
const BLOCK_BYTES: usize = 8;

/// Bytes of the name.
const USER_BYTES: usize = 24;

/// Longest password, bytes.
const PASSWORD_BYTES_MAX: usize = 256;

/// A name and a password, as a token carries them.
#[derive(Clone, PartialEq, Eq)]
pub struct TaosdToken {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for TaosdToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "TaosdToken {{ user: {:?}, .. }}", self.user)
    }
}

impl TaosdToken {
    /// The token of a name and a password; `None` if one of them is too long.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        let (user, password) = (self.user.as_bytes(), self.password.as_bytes());
        if user.len() > USER_BYTES || password.len() > PASSWORD_BYTES_MAX {
            return None;
        }
        let mut bytes = [user, &[0; USER_BYTES][user.len()..], password].concat();
        let length = bytes.len().max(2 * USER_BYTES);
        bytes.resize(length.next_multiple_of(BLOCK_BYTES), 0);
        let cipher = Des::new(&KEY.into());
        for block in blocks(&mut bytes) {
            cipher.encrypt_block(block);
        }
        Some(STANDARD.encode(bytes))
    }

    /// The name and the password of a token; `None` if it is none.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        if text.len() > 4 * (USER_BYTES + PASSWORD_BYTES_MAX + 8) / 3 + 4 {
            return None;
        }
        let mut bytes = STANDARD.decode(text).ok()?;
        if bytes.len() < 2 * USER_BYTES || !bytes.len().is_multiple_of(BLOCK_BYTES) {
            return None;
        }
        let cipher = Des::new(&KEY.into());
        for block in blocks(&mut bytes) {
            cipher.decrypt_block(block);
        }
        let (user, password) = bytes.split_at_checked(USER_BYTES)?;
        let until_zero = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0);
            let bytes = bytes.get(..end.unwrap_or(bytes.len()))?;
            String::from_utf8(bytes.to_vec()).ok()
        };
        Some(Self {
            user: until_zero(user)?,
            password: until_zero(password)?,
        })
    }
}

/// The whole blocks of some bytes.
fn blocks(bytes: &mut [u8]) -> impl Iterator<Item = &mut Block<Des>> {
    let blocks = bytes.chunks_exact_mut(BLOCK_BYTES);
    blocks.filter_map(|block| block.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(user: &str, password: &str) -> TaosdToken {
        TaosdToken {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }

    #[test]
    fn tokens_are_those_of_tdengine() {
        // The first one stands in TDengine's documentation of the REST API.
        let root = "/KfeAzX/f9na8qdtNZmtONryp201ma04bEl8LcvLUd7a8qdtNZmtONryp201ma04";
        assert_eq!(token("root", "taosdata").to_text().as_deref(), Some(root));
        assert_eq!(TaosdToken::from_text(root), Some(token("root", "taosdata")));
        assert_eq!(token(&"x".repeat(25), "p").to_text(), None);
        for wrong in ["", "AAAA", "not base64", &"A".repeat(100_000)] {
            assert_eq!(TaosdToken::from_text(wrong), None);
        }
        assert!(!format!("{:?}", token("root", "secret")).contains("secret"));
    }

    proptest! {
        #[test]
        fn a_token_is_read_back(user in "[a-z]{1,24}", password in "[!-~]{1,60}") {
            let token = token(&user, &password);
            let text = token.to_text().unwrap();
            prop_assert_eq!(TaosdToken::from_text(&text), Some(token));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,120}") {
            let _ = TaosdToken::from_text(&text);
        }
    }
}
