//! OpenTSDB's annotations and expressions over HTTP, right and wrong.

use crate::fake::{Fake, serve};
use crate::http::{Reply, ask};
use arrow::array::AsArray;
use marigram_server::RunningServers;
use std::sync::Arc;
use std::sync::atomic::Ordering;

async fn send(running: &RunningServers, request: &str, body: &str) -> Reply {
    let address = running.address("opentsdb").unwrap();
    ask(address, request, &[], body.as_bytes()).await
}

/// The message of an error and its status.
async fn fault(running: &RunningServers, request: &str, body: &str) -> (u16, String) {
    let reply = send(running, request, body).await;
    let message = reply.json()["error"]["message"].clone();
    (reply.status, message.as_str().unwrap_or("").to_owned())
}

/// The descriptions that were stored, each with its tag and second.
fn stored(fake: &Arc<Fake>) -> Vec<(String, i64, String)> {
    let lines = fake.lines.lock().unwrap();
    let mut found = Vec::new();
    for (database, batch) in lines.iter() {
        assert_eq!(
            (database.as_str(), batch.table.as_str()),
            ("main", "opentsdb_annotations")
        );
        let texts = batch
            .fields
            .iter()
            .find(|field| field.name == "description");
        let texts = texts.unwrap().values.as_string::<i32>();
        for (row, time) in batch.times.iter().enumerate() {
            let slot = usize::try_from(batch.slots[row]).unwrap();
            let tag = format!("{:?}", batch.tags[0].value(slot));
            found.push((tag, time / 1_000_000_000, texts.value(row).to_owned()));
        }
    }
    found
}

#[tokio::test]
async fn annotations_are_stored_as_rows() {
    let (running, fake) = serve(|_| {}).await;
    let body = r#"{"startTime":1356998400,"tsuid":"0a","description":"d","custom":{"a":1}}"#;
    let reply = send(&running, "PUT /api/annotation", body).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.text(),
        r#"{"custom":{"a":"1"},"description":"d","endTime":0,"notes":"","startTime":1356998400,"tsuid":"0A"}"#
    );
    let bulk = r#"[{"startTime":1000,"description":"x"},{"startTime":1001},{"startTime":1000,"description":"y"}]"#;
    let reply = send(&running, "PUT /api/annotation/bulk/", bulk).await;
    assert_eq!(
        (reply.status, reply.json().as_array().unwrap().len()),
        (200, 2)
    );
    let target = "GET /api/v1/annotation?start_time=2000&description=u&method_override=put";
    assert_eq!(send(&running, target, "").await.status, 200);
    // Of two notes at one place, the later one stays.
    let expected = [
        ("Some(String(\"0A\"))", 1_356_998_400, "d"),
        ("Some(String(\"global\"))", 1000, "y"),
        ("Some(String(\"global\"))", 2000, "u"),
    ];
    let expected = expected.map(|(tag, time, text)| (tag.to_owned(), time, text.to_owned()));
    assert_eq!(stored(&fake), expected);
    fake.read_only.store(true, Ordering::SeqCst);
    assert_eq!(
        send(&running, "PUT /api/annotation", body).await.status,
        503
    );
}

#[tokio::test]
async fn wrong_annotations_are_told_in_the_words_of_opentsdb() {
    let (running, fake) = serve(|_| {}).await;
    let missing = (400, "Missing start time".to_owned());
    for request in [
        "GET /api/annotation",
        "GET /api/annotations",
        "POST /api/annotation",
    ] {
        assert_eq!(fault(&running, request, "").await, missing, "{request}");
    }
    for (request, body, status, message) in [
        (
            "POST /api/annotation",
            "{}",
            400,
            "The start timestamp has not been set",
        ),
        (
            "POST /api/annotation",
            "{",
            400,
            "Unable to parse the given JSON",
        ),
        ("PATCH /api/annotation", "{}", 405, "Method not allowed"),
        ("GET /api/annotation/bulk", "", 405, "Method not allowed"),
        (
            "POST /api/annotation/bulk",
            "",
            400,
            "Missing message content",
        ),
        (
            "DELETE /api/annotation",
            "{}",
            400,
            "Unable to delete Annotation information",
        ),
        (
            "DELETE /api/annotation/bulk",
            "{}",
            400,
            "Missing the start time value",
        ),
        (
            "DELETE /api/annotation/bulk",
            "",
            400,
            "Missing parameter <code>start_time</code>",
        ),
        (
            "DELETE /api/annotation/bulk?start_time=1",
            "",
            400,
            "Missing the TSUIDs or global annotations flag",
        ),
    ] {
        let found = fault(&running, request, body).await;
        assert_eq!(found, (status, message.to_owned()), "{request} {body}");
    }
    let unchanged = send(
        &running,
        "PUT /api/annotation",
        r#"{"startTime":1356998400}"#,
    )
    .await;
    assert_eq!((unchanged.status, unchanged.text()), (304, ""));
    assert!(fake.lines.lock().unwrap().is_empty());
}

#[tokio::test]
async fn wrong_expressions_are_told_before_anything_runs() {
    let (running, fake) = serve(|_| {}).await;
    let deep = format!("{}a", "(".repeat(900));
    let time =
        r#""time":{"start":"1h-ago","aggregator":"sum"},"metrics":[{"id":"a","metric":"m"}]"#;
    let expression =
        |text: &str| format!("{{{time},\"expressions\":[{{\"id\":\"e\",\"expr\":\"{text}\"}}]}}");
    for (body, message) in [
        (String::new(), "Missing message content"),
        ("{".to_owned(), "Unable to parse the given JSON"),
        ("{}".to_owned(), "missing time"),
        (
            expression("a + b"),
            "Expression [a + b] was missing input b",
        ),
        (
            expression("1"),
            "The expression didn't appear to have any variables",
        ),
    ] {
        let found = fault(&running, "POST /api/query/exp", &body).await;
        assert_eq!(found, (400, message.to_owned()));
    }
    let (status, message) = fault(&running, "POST /api/query/exp", &expression(&deep)).await;
    assert!(
        status == 400 && message.contains("nests too deep"),
        "{message}"
    );
    assert_eq!(fault(&running, "PUT /api/query/exp", "{}").await.0, 405);
    assert_eq!(fault(&running, "GET /api/query/gexp", "").await.0, 501);
    assert_eq!(fake.statements.load(Ordering::SeqCst), 0);
}
