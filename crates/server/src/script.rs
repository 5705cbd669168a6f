//! Locates the statements of a script, so that positions in errors count from its beginning.

/// Characters of `script` before `statement`, searched from byte `offset`; moves `offset` past it.
pub fn locate(script: &str, statement: &str, offset: &mut usize) -> usize {
    let Some(at) = script.get(*offset..).and_then(|rest| rest.find(statement)) else {
        return 0;
    };
    let begin = *offset + at;
    *offset = begin + statement.len();
    script[..begin].chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_located_in_their_script() {
        let script = "select 'é'; select 1;  select 1";
        let mut offset = 0;
        assert_eq!(locate(script, "select 'é'", &mut offset), 0);
        assert_eq!(locate(script, "select 1", &mut offset), 12);
        assert_eq!(locate(script, "select 1", &mut offset), 23);
        assert_eq!(locate(script, "select 2", &mut offset), 0);
    }
}
