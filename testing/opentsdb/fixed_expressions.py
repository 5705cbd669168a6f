"""Requests about expressions and annotations that are the same in every run, all of them wrong."""

import data

B = data.BEGIN


def expressions(table, names):
    """Requests to /api/query/exp that are wrong."""
    metric = names.metric("fix")
    good = {
        "time": {"start": str(B), "end": str(B + 100), "aggregator": "sum"},
        "filters": [{"id": "f", "tags": []}],
        "metrics": [{"id": "a", "metric": metric}],
        "expressions": [{"id": "e", "expr": "a + 1"}],
    }

    def ask(difference="expression that is wrong", **changed):
        table.post("query/exp", {**good, **changed}, difference)

    def change(part, difference="expression that is wrong", **changed):
        value = good[part]
        ask(difference, **{part: {**value, **changed} if isinstance(value, dict) else [{**value[0], **changed}]})

    for body in (b"", b"{", b"{}", b"null"):
        table.post("query/exp", body, "expression that is wrong")
    table.send("PUT", "query/exp", b"{}")
    for wrong in ({"start": None}, {"start": "x"}, {"aggregator": None}, {"aggregator": "foo"}, {"end": str(B - 5)}):
        change("time", **wrong)
    for interval, function in (("1m", None), ("1q", "avg"), ("1m", "none")):
        change("time", downsampler={"interval": interval, "aggregator": function})
    for wrong in ({"id": None}, {"id": "a b"}, {"id": "1"}, {"metric": ""}, {"filter": "zz"}, {"aggregator": "foo"}):
        change("metrics", **wrong)
    for wrong in ({"policy": "foo"}, {"policy": "zero", "value": 5}, {"policy": "nan", "value": 5}):
        change("metrics", fillPolicy=wrong)
    change("metrics", "", metric=names.metric("nothing"))
    change("metrics", "timeOffset", timeOffset="1h")
    ask(metrics=[])
    ask(metrics=good["metrics"] * 2)
    ask(filters=good["filters"] * 2)
    ask(filters=[{"tags": []}])
    for wrong in ({"id": None}, {"id": "a"}, {"expr": None}, {"join": {}}, {"join": {"operator": "cross"}}):
        change("expressions", **wrong)
    for wrong in ("", "1", "a +", "(a", "a)", "a b", "a ** 2", "a ? 1", "a + nope", "a < 1 < 2", "+a"):
        change("expressions", expr=wrong)
    for wrong in ("math:abs(a)", "a + 'x'", "size(a)"):
        change("expressions", "functions", expr=wrong)
    change("expressions", "", expr="e + a")
    ask("upper case", metrics=[{"id": "A", "metric": metric}], expressions=[{"id": "e", "expr": "A"}])


def annotations(table):
    """Requests about annotations that are wrong."""
    table.get("annotation")
    table.get("annotations")
    table.get("annotation?tsuid=000001")
    table.get("annotation?start_time=x", "expression that is wrong")
    table.get("annotation/bulk")
    for body in ({}, {"startTime": 0, "description": "d"}, {"startTime": -5, "description": "d"}):
        table.post("annotation", body)
    table.post("annotation", b"")
    table.post("annotation", b"{", "annotation without content")
    table.post("annotation", {"startTime": B, "tsuid": "0xyz", "description": "d"})
    table.post("annotation", {"startTime": B, "tsuid": "00", "description": "d"}, "short tsuid")
    table.post("annotation", {"startTime": 99_999_999_999_999, "description": "d"}, "time of an annotation")
    table.post("annotation/bulk", b"")
    table.post("annotation/bulk", {}, "annotation without content")
    table.post("annotation/bulk", [{"startTime": B, "notes": "n"}, {"description": "d"}])
    for method, path, body in (
        ("DELETE", "annotation", b"{}"),
        ("DELETE", "annotation/bulk", None),
        ("DELETE", "annotation/bulk", b"{}"),
        ("DELETE", f"annotation/bulk?start_time={B}", None),
        ("DELETE", "annotation/bulk", b'{"startTime":"x","global":true}'),
        ("DELETE", "annotation/bulk", b'{"startTime":2,"endTime":1,"global":true}'),
        ("DELETE", "annotation/bulk", b'{"startTime":2,"tsuids":["zz"]}'),
        ("PATCH", "annotation", b"{}"),
    ):
        table.send(method, path, body)
