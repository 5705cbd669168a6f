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
