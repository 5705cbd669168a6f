//! JSON lines: an object on each line.

use crate::ImportFixture;

#[test]
fn objects_are_rows_with_their_types() {
    let place = ImportFixture::new();
    let text = "{\"time\":\"2026-01-01T00:00:00Z\",\"device\":\"a\",\"v\":1,\"ok\":true,\"code\":\"0012\",\"at\":{\"lat\":1.5}}\n\
                \n{\"time\":\"2026-01-01T00:01:00Z\",\"device\":\"a\",\"v\":2.5,\"ok\":false,\"code\":\" x\\ny\",\"list\":[1,2]}\n\
                nonsense\n{\"time\":\"2026-01-01T00:01:00Z\",\"device\":\"b\",\"v\":null,\"ok\":null,\"code\":\"\"}\n";
    let file = place.file("m.jsonl", text);
    let said = place.import(&["--tags", "device", &file]);
    assert!(
        !said.ok && said.err.contains("line 4: it is no JSON object"),
        "{}",
        said.err
    );
    assert!(
        said.out
            .contains("4 rows read, 3 stored, 0 replaced, 1 refused"),
        "{}",
        said.out
    );
    assert_eq!(
        place.csv("SELECT device, v, ok, coalesce(code, 'none') AS code, \"at.lat\", list FROM m ORDER BY time, device"),
        "device,v,ok,code,at.lat,list\na,1.0,true,0012,1.5,\na,2.5,false,\" x\ny\",,\"[1,2]\"\nb,,,,,\n"
    );
    let kinds = place.columns("m");
    for kind in [
        "code STRING field",
        "v DOUBLE field",
        "ok BOOLEAN field",
        "device STRING tag",
    ] {
        assert!(kinds.contains(kind), "{kind}: {kinds}");
    }
}

#[test]
fn times_and_repeats_are_checked_as_in_csv() {
    let place = ImportFixture::new();
    let text =
        "{\"ts\":1767225600000,\"ch\":1,\"v\":1.5}\n{\"ts\":1767225600000,\"ch\":2,\"v\":2.5}\n";
    let file = place.file("m.ndjson", text);
    let said = place.import(&[&file]);
    assert!(!said.ok, "{}", said.out);
    for words in [
        "milliseconds since 1970 (1767225600000 is 2026-01-01T00:00:00Z)",
        "line 1, line 2",
        "--tags ch",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(place.import(&["--tags", "ch", &file]).ok);
    let file = place.file("n.json", "[{\"ts\":1767225600000,\"v\":1.5}]\n");
    let said = place.import(&[&file]);
    assert!(!said.ok && said.err.contains("jq -c '.[]'"), "{}", said.err);
}

#[test]
fn numbers_with_17_digits_keep_every_bit() {
    let place = ImportFixture::new();
    let numbers = [
        31.245_270_191_439_438,
        0.1,
        1.797_693_134_862_315_7e308,
        5e-324,
        123_456.789_012_345_67,
        -0.300_000_000_000_000_04,
    ];
    let mut lines = String::new();
    for (second, number) in numbers.iter().enumerate() {
        let line = format!("{{\"time\":\"2026-01-01T00:00:{second:02}Z\",\"f\":{number:?}}}\n");
        lines.push_str(&line);
    }
    // Pseudo-random bits: what is rounded wrongly is a few of a hundred numbers.
    let mut state = 1_u64;
    let mut all = numbers.to_vec();
    for minute in 0..50 {
        for second in 0..60 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let number = (state >> 11) as f64 / f64::from(1 << 20) / 1e6;
            all.push(number);
            let line = format!(
                "{{\"time\":\"2026-01-02T00:{minute:02}:{second:02}Z\",\"f\":{number:?}}}\n"
            );
            lines.push_str(&line);
        }
    }
    let file = place.file("j.jsonl", &lines);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    let answer = place.csv("SELECT f FROM j ORDER BY time");
    let stored: Vec<u64> = answer
        .lines()
        .skip(1)
        .map(|line| line.parse::<f64>().expect("a number").to_bits())
        .collect();
    let expected: Vec<u64> = all.iter().map(|number| number.to_bits()).collect();
    let wrong = stored
        .iter()
        .zip(&expected)
        .filter(|(one, other)| one != other);
    assert_eq!((stored.len(), wrong.count()), (expected.len(), 0));
}
