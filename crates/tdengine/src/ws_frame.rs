//! The binary messages of the WebSocket protocol: the ids of the request, the number of an action, and
//! what the action is about.

use crate::bound_value::length_at;

/// Bytes of the ids and the action.
const HEAD_BYTES: usize = 24;

/// The version of messages.
const VERSION: u16 = 1;

/// The action of a request for a block, which its answer repeats.
const FETCH_RAW_BLOCK: u64 = 7;

/// A binary request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryRequest<'a> {
    /// The id of the request.
    pub req_id: u64,
    /// The id of a result or of a prepared statement.
    pub id: u64,
    /// The number of the action.
    pub action: u64,
    /// What it asks for.
    pub body: BinaryBody<'a>,
}

/// What a binary request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryBody<'a> {
    /// Set the tags of a prepared statement to the row of a block.
    SetTags(&'a [u8]),
    /// Bind the rows of a block to a prepared statement.
    Bind(&'a [u8]),
    /// Run a statement.
    Query(&'a str),
    /// Send the next rows of a result.
    FetchRawBlock,
    /// Bind values to a prepared statement of the second kind.
    Stmt2Bind {
        /// The only column to bind; all if negative.
        column: i32,
        /// The values.
        values: &'a [u8],
    },
    /// Check a statement.
    ValidateSql(&'a str),
    /// Something else.
    Unknown,
    /// Something that is malformed: what is wrong.
    Malformed(&'static str),
}

impl<'a> BinaryRequest<'a> {
    /// Reads a message; `None` if it has not even a head.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut numbers = head.as_chunks().0.iter().copied().map(u64::from_le_bytes);
        let (req_id, id, action) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some(Self {
            req_id,
            id,
            action,
            body: body(action, rest),
        })
    }

    /// The name of the action, as answers have it.
    #[must_use]
    pub fn action_name(&self) -> &'static str {
        match self.action {
            1 => "set_tags",
            2 => "bind",
            3 => "write_raw",
            4 => "write_raw_block",
            5 => "write_raw_block_with_fields",
            6 => "binary_query",
            7 => "fetch_raw_block",
            9 => "stmt2_bind",
            10 => "validate_sql",
            _ => "unknown",
        }
    }
}

fn body(action: u64, rest: &[u8]) -> BinaryBody<'_> {
    match action {
        1 => BinaryBody::SetTags(rest),
        2 => BinaryBody::Bind(rest),
        6 => text(rest).map_or_else(BinaryBody::Malformed, BinaryBody::Query),
        FETCH_RAW_BLOCK => {
            checked_version(rest).map_or_else(BinaryBody::Malformed, |_| BinaryBody::FetchRawBlock)
        }
        9 => {
            let Ok(rest) = checked_version(rest) else {
                return BinaryBody::Malformed("unknown stmt2 bind version");
            };
            match rest.split_first_chunk() {
                Some((column, values)) => BinaryBody::Stmt2Bind {
                    column: i32::from_le_bytes(*column),
                    values,
                },
                None => BinaryBody::Malformed("message length is too short"),
            }
        }
        10 => text(rest).map_or_else(BinaryBody::Malformed, BinaryBody::ValidateSql),
        _ => BinaryBody::Unknown,
    }
}

/// What follows the version.
fn checked_version(bytes: &[u8]) -> Result<&[u8], &'static str> {
    match bytes.split_first_chunk() {
        None => Err("message length is too short"),
        Some((version, rest)) if u16::from_le_bytes(*version) == VERSION => Ok(rest),
        Some(_) => Err("unknown version of a binary message"),
    }
}

/// The statement behind the version and its length.
fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    let rest = checked_version(bytes)?;
    let length = length_at(rest, 0).ok_or("message length is too short")?;
    let text = rest.get(4..).and_then(|text| text.get(..length));
    let text = text.ok_or("uncompleted message, the SQL is shorter than its length")?;
    std::str::from_utf8(text).map_err(|_| "the SQL is not UTF-8")
}

/// The head of the answer to a request for rows: the block follows, if there is one.
#[must_use]
pub fn raw_block_head(
    (req_id, result_id): (u64, u64),
    timing_ns: u64,
    (code, message): (u16, &str),
    block_bytes: Option<u32>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(55 + message.len());
    out.extend_from_slice(&u64::MAX.to_le_bytes());
    out.extend_from_slice(&FETCH_RAW_BLOCK.to_le_bytes());
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&timing_ns.to_le_bytes());
    out.extend_from_slice(&req_id.to_le_bytes());
    out.extend_from_slice(&u32::from(code).to_le_bytes());
    let length = u32::try_from(message.len()).unwrap_or(0);
    out.extend_from_slice(&length.to_le_bytes());
    if length > 0 {
        out.extend_from_slice(message.as_bytes());
    }
    out.extend_from_slice(&result_id.to_le_bytes());
    out.push(u8::from(block_bytes.is_none()));
    if let Some(bytes) = block_bytes {
        out.extend_from_slice(&bytes.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(action: u64, rest: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [17, 3, action] {
            out.extend_from_slice(&u64::to_le_bytes(number));
        }
        out.extend_from_slice(rest);
        out
    }

    fn body_of(action: u64, rest: &[u8]) -> String {
        let message = message(action, rest);
        let request = BinaryRequest::parse(&message).unwrap();
        assert_eq!((request.req_id, request.id), (17, 3));
        format!("{:?}", request.body)
    }

    #[test]
    fn requests_are_told_apart() {
        let query = b"\x01\0\x08\0\0\0select 1";
        assert_eq!(body_of(6, query), "Query(\"select 1\")");
        assert_eq!(body_of(10, query), "ValidateSql(\"select 1\")");
        assert_eq!(body_of(7, &[1, 0]), "FetchRawBlock");
        assert_eq!(body_of(1, &[5]), "SetTags([5])");
        assert_eq!(body_of(2, &[]), "Bind([])");
        let bind = body_of(9, &[1, 0, 255, 255, 255, 255, 8]);
        assert_eq!(bind, "Stmt2Bind { column: -1, values: [8] }");
        assert_eq!(body_of(4, &[]), "Unknown");
        for (action, wrong) in [
            (6, &b"\x02\0\x01\0\0\0x"[..]),
            (6, b"\x01\0\x02\0\0\0x"),
            (6, b"\x01\0\xff\xff\xff\xffx"),
            (6, b"\x01\0\x01\0\0\0\xff"),
            (6, b"\x01"),
            (7, &[2, 0]),
            (7, &[]),
            (9, &[1, 0, 0]),
        ] {
            let body = body_of(action, wrong);
            assert!(body.starts_with("Malformed"), "{action} {wrong:?} {body}");
        }
        assert_eq!(BinaryRequest::parse(&[0; 23]), None);
    }

    #[test]
    fn answers_have_their_bytes() {
        let head = raw_block_head((1, 2), 3, (0, ""), Some(9));
        assert_eq!(head.len(), 55);
        assert_eq!(&head[42..], &[2, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        let end = raw_block_head((1, 2), 3, (0, ""), None);
        assert_eq!((end.len(), end.last()), (51, Some(&1)));
        let error = raw_block_head((1, 2), 3, (0x2603, "ab"), None);
        assert_eq!(&error[34..44], &[3, 0x26, 0, 0, 2, 0, 0, 0, b'a', b'b']);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), action in 0_u64..12) {
            let _ = BinaryRequest::parse(&bytes);
            let _ = BinaryRequest::parse(&message(action, &bytes)).map(|it| it.action_name());
        }
    }
}
