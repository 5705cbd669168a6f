//! The owner of a log: the shard of a data directory for which the log was written. Logs name it in
//! their headers, so that a log from another directory or shard is recognised by itself.

/// A shard of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOwner {
    /// Lineage of the data directory; 0 for one that is older than lineages.
    pub lineage: u64,
    /// Number of the shard.
    pub shard: u32,
}

impl LogOwner {
    /// Bytes of an owner in a header.
    pub const BYTES: usize = 12;
    /// The shard's number in the header of a log without owner.
    const NO_SHARD: u32 = u32::MAX;

    /// The bytes in a header: lineage and shard. A log without owner has lineage 0 and the highest
    /// number.
    #[must_use]
    pub fn to_bytes(owner: Option<Self>) -> [u8; Self::BYTES] {
        let (lineage, shard) = owner.map_or((0, Self::NO_SHARD), |own| (own.lineage, own.shard));
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&lineage.to_le_bytes());
        bytes[8..].copy_from_slice(&shard.to_le_bytes());
        bytes
    }

    /// The owner that a header names; `None` if it names none.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let (lineage, shard) = bytes.split_first_chunk()?;
        let lineage = u64::from_le_bytes(*lineage);
        let shard = u32::from_le_bytes(*shard.first_chunk()?);
        (shard != Self::NO_SHARD).then_some(Self { lineage, shard })
    }

    /// Why a log of the owner `found` cannot be one of this owner; `None` if it can, or if nothing
    /// is known. Lineage 0 is that of any directory.
    #[must_use]
    pub fn refusal(self, found: Option<Self>) -> Option<String> {
        let found = found?;
        let lineages = [self.lineage, found.lineage];
        if !lineages.contains(&0) && self.lineage != found.lineage {
            return Some(format!(
                "it was written for shard {} of the data directory with lineage {:016x}, and the \
                 file MARIGRAM of this one names {:016x}: one of both files is that of another \
                 directory",
                found.shard, found.lineage, self.lineage
            ));
        }
        (found.shard != self.shard).then(|| {
            format!(
                "it was written for shard {} and stands in shard {}",
                found.shard, self.shard
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LogOwner;

    #[test]
    fn owners_differ_by_lineage_and_by_shard_where_they_are_known() {
        let owner = |lineage, shard| LogOwner { lineage, shard };
        for known in [owner(7, 0), owner(0, 3), owner(u64::MAX, 4095)] {
            let bytes = LogOwner::to_bytes(Some(known));
            assert_eq!(LogOwner::from_bytes(bytes), Some(known));
            assert_eq!(known.refusal(Some(known)), None);
        }
        assert_eq!(LogOwner::from_bytes(LogOwner::to_bytes(None)), None);
        let own = owner(7, 1);
        assert_eq!(own.refusal(None), None);
        assert_eq!(own.refusal(Some(owner(0, 1))), None);
        assert_eq!(owner(0, 1).refusal(Some(own)), None);
        let refused = |found| own.refusal(Some(found)).unwrap();
        assert!(refused(owner(8, 1)).contains("is that of another directory"));
        assert!(refused(owner(7, 2)).contains("stands in shard 1"));
        assert!(refused(owner(0, 2)).contains("stands in shard 1"));
    }
}
