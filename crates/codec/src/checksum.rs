//! The checksum of all stored data: CRC-32C.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli; iSCSI's, RFC 3720) of bytes in several parts.
pub fn crc32c<const PARTS: usize>(parts: [&[u8]; PARTS]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    digest.finalize() as u32
}

/// The first bytes of a file: their number and checksum. Appended bytes make it
/// [`grow`](Self::grow), so that a file's checksum is known without reading the file again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksummedPrefix {
    /// Number of bytes.
    pub bytes: u64,
    /// Their CRC-32C.
    pub checksum: u32,
}

impl ChecksummedPrefix {
    /// The prefix that consists of these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut extent = Self::default();
        extent.grow(bytes);
        extent
    }

    /// Adds the bytes that follow.
    pub fn grow(&mut self, bytes: &[u8]) {
        let state = u64::from(!self.checksum);
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, state);
        digest.update(bytes);
        self.bytes += bytes.len() as u64;
        self.checksum = digest.finalize() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::{ChecksummedPrefix, crc32c};
    use proptest::prelude::*;

    #[test]
    fn it_is_the_one_of_rfc_3720() {
        assert_eq!(crc32c([&[0; 32]]), 0x8A91_36AA);
        assert_eq!(crc32c([&[0xFF; 32]]), 0x62A8_AB43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c([&rising]), 0x46DD_794E);
        assert_eq!(crc32c([b"1234", b"", b"56789"]), 0xE306_9283);
        assert_eq!(crc32c([b""]), 0);
    }

    /// Bit by bit, lowest first.
    fn slowly(bytes: &[u8]) -> u32 {
        let bits = bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |at| u32::from(byte >> at & 1)));
        !bits.fold(u32::MAX, |sum, bit| {
            let low = (sum & 1) ^ bit;
            (sum >> 1) ^ (low * 0x82F6_3B78)
        })
    }

    proptest! {
        #[test]
        fn any_bytes_however_cut_have_their_own(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
            cut in any::<prop::sample::Index>(),
        ) {
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(crc32c([first, second]), slowly(&bytes));
            prop_assert_eq!(crc32c([&bytes]), slowly(&bytes));
            let mut grown = ChecksummedPrefix::new(first);
            grown.grow(second);
            prop_assert_eq!(grown, ChecksummedPrefix::new(&bytes));
            let whole = ChecksummedPrefix { bytes: bytes.len() as u64, checksum: slowly(&bytes) };
            prop_assert_eq!(grown, whole);
        }
    }
}
