//! What InfluxDB says of a line that it refuses.
//!
//! Clients and their tests compare these words, so a line that was refused here is read once more as
//! `models.ParsePoints` of InfluxDB 1.x reads it. Lines that InfluxDB takes have no such words.

/// Why InfluxDB 1.x refuses a line; `None` if it takes it. `line` has no line break at its end, and
/// its times count `unit_ns` nanoseconds.
#[must_use]
pub fn influx_fault(line: &str, unit_ns: i64) -> Option<String> {
    scan_point(line, unit_ns).err()
}

type Scan<T> = Result<T, String>;

fn fault<T>(reason: &str) -> Scan<T> {
    Err(reason.to_owned())
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | 0) = bytes.get(at) {
        at += 1;
    }
    at
}

fn scan_point(line: &str, unit_ns: i64) -> Scan<()> {
    let bytes = line.as_bytes();
    let at = scan_key(bytes, skip_space(bytes, 0))?;
    let at = scan_fields(bytes, at)?;
    let start = skip_space(bytes, at);
    let at = scan_time(bytes, start)?;
    let time = &line[start..at];
    if !time.is_empty() {
        let Ok(parsed) = time.parse::<i64>() else {
            let why = if time == "-" {
                "invalid syntax"
            } else {
                "value out of range"
            };
            return Err(format!("strconv.ParseInt: parsing \"{time}\": {why}"));
        };
        let (min, max) = (i64::MIN + 2, i64::MAX - 1);
        let ns = parsed.checked_mul(unit_ns);
        if !ns.is_some_and(|ns| (min..=max).contains(&ns)) {
            return Err(format!("time outside range {min} - {max}"));
        }
    }
    if bytes[at..].iter().any(|byte| *byte != b' ') {
        return fault("point is invalid");
    }
    Ok(())
}

/// What follows a measurement or a tag.
enum Next {
    Tag(usize),
    Fields(usize),
}

/// The end of measurement and tags.
fn scan_key(bytes: &[u8], start: usize) -> Scan<usize> {
    let mut next = scan_measurement(bytes, start)?;
    let mut tags: Vec<&[u8]> = Vec::new();
    loop {
        match next {
            Next::Fields(at) => {
                tags.sort_unstable();
                if tags.windows(2).any(|pair| pair[0] == pair[1]) {
                    return fault("duplicate tags");
                }
                return Ok(at);
            }
            Next::Tag(at) => {
                let value = scan_tag_key(bytes, at)?;
                tags.push(&bytes[at..value - 1]);
                next = scan_tag_value(bytes, value)?;
            }
        }
    }
}

fn is_escaped(bytes: &[u8], at: usize) -> bool {
    at > 0 && bytes[at - 1] == b'\\'
}

fn scan_measurement(bytes: &[u8], mut at: usize) -> Scan<Next> {
    if matches!(bytes.get(at), None | Some(b',')) {
        return fault("missing measurement");
    }
    loop {
        at += 1;
        match bytes.get(at) {
            None => return fault("missing fields"),
            Some(b',') if !is_escaped(bytes, at) => return Ok(Next::Tag(at + 1)),
            Some(b' ') if !is_escaped(bytes, at) => return Ok(Next::Fields(at)),
            Some(_) => {}
        }
    }
}

/// Where the value of a tag begins.
fn scan_tag_key(bytes: &[u8], mut at: usize) -> Scan<usize> {
    if matches!(bytes.get(at), None | Some(b' ' | b',' | b'=')) {
        return fault("missing tag key");
    }
    loop {
        at += 1;
        match bytes.get(at) {
            None => return fault("missing tag value"),
            Some(b' ' | b',') if !is_escaped(bytes, at) => return fault("missing tag value"),
            Some(b'=') if !is_escaped(bytes, at) => return Ok(at + 1),
            Some(_) => {}
        }
    }
}

fn scan_tag_value(bytes: &[u8], mut at: usize) -> Scan<Next> {
    if matches!(bytes.get(at), None | Some(b' ' | b',')) {
        return fault("missing tag value");
    }
    loop {
        at += 1;
        match bytes.get(at) {
            None => return fault("missing fields"),
            Some(b'=') if !is_escaped(bytes, at) => return fault("invalid tag format"),
            Some(b',') if !is_escaped(bytes, at) => return Ok(Next::Tag(at + 1)),
            Some(b' ') if !is_escaped(bytes, at) => return Ok(Next::Fields(at)),
            Some(_) => {}
        }
    }
}

/// The end of the fields.
fn scan_fields(bytes: &[u8], at: usize) -> Scan<usize> {
    let start = skip_space(bytes, at);
    let mut at = start;
    let mut is_quoted = false;
    let (mut equals, mut commas) = (0_usize, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if at + 1 < bytes.len() => {
                at += 2;
                continue;
            }
            b'"' if equals > commas => is_quoted = !is_quoted,
            b'=' if !is_quoted => {
                equals += 1;
                let before = at.checked_sub(1).map(|at| bytes[at]);
                if matches!(before, Some(b' ' | b',')) && !is_escaped(bytes, at - 1) {
                    return fault("missing field key");
                }
                match bytes.get(at + 1) {
                    None | Some(b',' | b' ') => return fault("missing field value"),
                    Some(b'0'..=b'9' | b'.' | b'-' | b'N' | b'n') => {
                        at = scan_number(bytes, at + 1)?;
                        continue;
                    }
                    Some(b'"') => {}
                    Some(_) => {
                        at = scan_boolean(bytes, at + 1)?;
                        continue;
                    }
                }
            }
            b',' if !is_quoted => commas += 1,
            b' ' if !is_quoted => break,
            _ => {}
        }
        at += 1;
    }
    if is_quoted {
        return fault("unbalanced quotes");
    }
    if at == start {
        return fault("missing fields");
    }
    if equals == 0 || commas != equals - 1 {
        return fault("invalid field format");
    }
    Ok(at)
}

/// The end of a number.
fn scan_number(bytes: &[u8], start: usize) -> Scan<usize> {
    const REASON: &str = "invalid number";
    let mut at = start + usize::from(bytes[start] == b'-');
    if at == bytes.len() {
        return fault(REASON);
    }
    let (mut has_point, mut has_exponent, mut is_integer) = (false, false, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b',' | b' ' => break,
            b'i' if at > start && !is_integer => is_integer = true,
            b'.' if has_point => return fault(REASON),
            b'.' => has_point = true,
            b'e' | b'E' if at > start => has_exponent = true,
            b'+' | b'-' if matches!(bytes[at - 1], b'e' | b'E') => {}
            b'0'..=b'9' => {}
            _ => return fault(REASON),
        }
        at += 1;
    }
    let word = &bytes[start..at];
    let signs = usize::from(is_integer) + usize::from(has_point) + usize::from(word[0] == b'-');
    if word.len() == signs || is_integer && (has_point || has_exponent || !word.ends_with(b"i")) {
        return fault(REASON);
    }
    let text = String::from_utf8_lossy(word);
    if is_integer {
        let digits = &text[..text.len() - 1];
        if digits.parse::<i64>().is_err() {
            return Err(format!(
                "unable to parse integer {digits}: strconv.ParseInt: parsing \"{digits}\": value \
                 out of range"
            ));
        }
    } else if !text.parse::<f64>().is_ok_and(f64::is_finite) {
        return fault("invalid float");
    }
    Ok(at)
}

/// The end of a truth value.
fn scan_boolean(bytes: &[u8], start: usize) -> Scan<usize> {
    let length = bytes[start..]
        .iter()
        .position(|byte| matches!(byte, b',' | b' '));
    let end = length.map_or(bytes.len(), |length| start + length);
    match &bytes[start..end] {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" | b"f" | b"F" | b"false" | b"False"
        | b"FALSE" => Ok(end),
        _ => fault("invalid boolean"),
    }
}

/// The end of the time.
fn scan_time(bytes: &[u8], start: usize) -> Scan<usize> {
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' => break,
            b'-' if at == start => {}
            b'0'..=b'9' => {}
            _ => return fault("bad timestamp"),
        }
        at += 1;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::influx_fault;

    /// What InfluxDB 1.6.7 answered.
    #[test]
    fn faults_are_told_in_influxdbs_words() {
        for (line, expected) in [
            ("cpu", "missing fields"),
            ("cpu,host v=1", "missing tag value"),
            ("cpu,host= v=1", "missing tag value"),
            ("cpu,=a v=1", "missing tag key"),
            ("cpu,host=a,host=b v=1", "duplicate tags"),
            ("cpu v=", "missing field value"),
            ("cpu =1", "missing field key"),
            ("cpu v=abc", "invalid boolean"),
            ("cpu v=tru", "invalid boolean"),
            ("cpu v=1x", "invalid number"),
            ("cpu v=1.2i", "invalid number"),
            ("cpu v=1u", "invalid number"),
            ("cpu v=NaN", "invalid number"),
            ("cpu v=1e999", "invalid float"),
            (
                "cpu v=9223372036854775808i",
                "unable to parse integer 9223372036854775808: strconv.ParseInt: parsing \
                 \"9223372036854775808\": value out of range",
            ),
            ("cpu v=\"open", "unbalanced quotes"),
            ("cpu v=1 12x", "bad timestamp"),
            ("cpu v=1 1 1", "point is invalid"),
            (
                "cpu v=1 99999999999999999999",
                "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
            ),
            (
                "cpu v=1 -9223372036854775808",
                "time outside range -9223372036854775806 - 9223372036854775806",
            ),
            (",host=a v=1", "missing measurement"),
        ] {
            assert_eq!(influx_fault(line, 1).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_influxdb_takes_has_no_fault() {
        for line in [
            "cpu,host=a,zone=x v=1.5,i=7i,b=true,s=\"one two\" 1000000000",
            "c\\ pu,a\\,b=c\\ d v=-1e-3,w=t",
            " cpu v=1   12  ",
            "cpu v=1,v=2",
        ] {
            assert_eq!(influx_fault(line, 1), None, "{line}");
        }
        assert!(influx_fault("cpu v=1 9223372036854775807", 1_000_000_000).is_some());
    }

    #[test]
    fn no_text_panics() {
        for cut in 0..60 {
            let line = "c\\,pu,h\\=o=a\\ b,z=é v=-1.5e+3,i=-7i,b=F,s=\"o\\\"ne\" -10000";
            if let Some(line) = line.get(..cut) {
                let _ = influx_fault(line, 1);
                let _ = influx_fault(&line.replace('a', ""), 1);
            }
        }
        for line in [
            "", "\\", "=", "a =", "a  =1", "a -=-", "a b=-", "a b=n", "a b=.", "a b=1 -",
        ] {
            let _ = influx_fault(line, 1);
        }
    }
}
