//! Bodies of the type `multipart/form-data` (RFC 7578): names with their values.

/// The parameter `boundary` of a content type; `None` if the type is another one.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let mut parts = content_type.split(';');
    if !parts
        .next()?
        .trim()
        .eq_ignore_ascii_case("multipart/form-data")
    {
        return None;
    }
    parts.find_map(|part| parameter(part, "boundary"))
}

/// The fields and files of a body, in order; `None` if the body is not whole.
pub(super) fn fields(body: &str, boundary: &str) -> Option<Vec<(String, String)>> {
    let mark = format!("--{boundary}");
    let mut rest = body.split_once(&mark)?.1;
    let mut fields = Vec::new();
    loop {
        if rest.starts_with("--") {
            return Some(fields);
        }
        let part = rest.strip_prefix("\r\n")?;
        let (part, after) = part.split_once(&format!("\r\n{mark}"))?;
        rest = after;
        let (head, value) = part.split_once("\r\n\r\n")?;
        let disposition = head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_wanted = name.trim().eq_ignore_ascii_case("content-disposition");
            is_wanted.then_some(value)
        });
        let name = disposition?
            .split(';')
            .find_map(|part| parameter(part, "name"))?;
        fields.push((name, value.to_owned()));
    }
}

/// The value of `name=value` or `name="value"`.
fn parameter(text: &str, name: &str) -> Option<String> {
    let (key, value) = text.trim().split_once('=')?;
    let value = value.trim().trim_matches('"');
    key.trim()
        .eq_ignore_ascii_case(name)
        .then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let kind = "multipart/form-data; charset=utf-8; boundary=\"x7\"";
        assert_eq!(boundary(kind).as_deref(), Some("x7"));
        assert_eq!(boundary("text/plain; boundary=x7"), None);
        assert_eq!(boundary("multipart/form-data"), None);
        let body = "--x7\r\nContent-Disposition: form-data; name=\"db\"\r\n\r\nd\r\n--x7\r\n\
                    content-disposition: form-data; name=\"q\"; filename=\"q.txt\"\r\n\
                    Content-Type: text/plain\r\n\r\nSHOW\r\n\r\nUSERS\r\n--x7--\r\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = vec![pair("db", "d"), pair("q", "SHOW\r\n\r\nUSERS")];
        assert_eq!(fields(body, "x7"), Some(expected));
        for cut in 0..body.len() - 4 {
            assert_eq!(fields(&body[..cut], "x7"), None, "{cut}");
        }
    }
}
