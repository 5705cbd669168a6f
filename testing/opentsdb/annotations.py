"""The same steps with annotations at both servers. The numbers of series differ, so each server is asked about its
own, and answers are compared with names in their places."""

import json

import data

B = data.BEGIN


def tsuids(server, names):
    """The numbers of the series of the fixed metric, by host and CPU."""
    target = f"/api/query?start={B}&end={B + 100}&show_tsuids&m=none:{names.metric('fix')}"
    status, _, content = server.ask("GET", target)
    if status != 200:
        raise SystemExit(f"{server.name} does not find its series: {content[:500]}")
    found = {}
    for group in json.loads(content):
        tags = group["tags"]
        found[tags[names.key("host")], tags[names.key("cpu")]] = group["tsuids"][0]
    return [found[key] for key in sorted(found)]


def steps(one, other, begin):
    """Requests: method, path and body. `one` and `other` are numbers of series."""
    note, bulk, query = "/api/annotation", "/api/annotation/bulk", "/api/query"
    yield "GET", f"{note}?start_time={begin}", None
    yield "POST", note, {"startTime": begin, "description": "d1"}
    yield "POST", note, {"startTime": begin, "description": "d1"}
    yield "POST", note, {"startTime": begin}
    yield "POST", note, {"startTime": begin, "notes": "n1", "endTime": begin + 7}
    yield "GET", note, {"startTime": begin}
    yield "PUT", note, {"startTime": str(begin), "notes": "n2", "custom": {"a": "b", "c": 1}}
    yield "POST", note, {"startTime": begin, "custom": {"d": "e"}}
    yield "GET", f"{note}?start_time={begin}", None
    yield "POST", note, {"startTime": begin + 10, "tsuid": one, "description": "of one", "custom": {"k": "v"}}
    yield "POST", note, {"startTime": begin * 1000 + 20500, "tsuid": one, "description": "milliseconds"}
    yield "GET", note, {"startTime": begin * 1000 + 20500, "tsuid": one}
    yield "GET", f"{note}?start_time={begin + 10}&tsuid={one}", None
    yield "GET", f"{note}?start_time={begin + 10}&tsuid={other}", None
    yield "POST", f"{note}?start_time={begin + 5}&tsuid={other}&description=url&notes=n&end_time={begin + 6}", None
    yield "GET", f"{note}?start_time={begin + 8}&description=get&method_override=post", None
    yield "POST", bulk, []
    yield "POST", bulk, [
        {"startTime": begin + 40, "description": "g1"},
        {"startTime": begin + 50, "tsuid": other, "description": "l1"},
        {"startTime": begin + 60},
    ]
    yield "PUT", bulk, [{"startTime": begin + 40, "notes": "g2"}, {"startTime": begin + 41, "description": "g3"}]
    yield "GET", f"/api/annotations?start_time={begin}&end_time={begin + 100}", None
    for more in ("", "&global_annotations=true", "&no_annotations=true", "&global_annotations&no_annotations"):
        yield "GET", f"{query}?start={begin}&end={begin + 100}&m=sum:METRIC{more}", None
        yield "GET", f"{query}?start={begin}&end={begin + 100}&m=none:METRIC{more}", None
    part = {"aggregator": "sum", "metric": "METRIC"}
    yield "POST", query, {"start": begin, "end": begin + 45, "globalAnnotations": True, "queries": [part]}
    yield "DELETE", f"{note}?start_time={begin + 99}", None
    yield "DELETE", note, {"startTime": begin + 10, "tsuid": one}
    yield "GET", f"{note}?start_time={begin + 10}&tsuid={one}", None
    yield "DELETE", bulk, {"startTime": begin + 50, "endTime": begin + 50, "tsuids": [other]}
    yield "DELETE", bulk, {"startTime": str(begin + 40), "endTime": str(begin + 41), "global": True}
    yield "DELETE", f"{bulk}?start_time={begin}&end_time={begin + 100}&global&tsuids={one},%20{other}", None
    yield "GET", f"{query}?start={begin}&end={begin + 100}&m=none:METRIC&global_annotations", None


def compare(comparison, names):
    """Takes the steps at both servers, and notes what differs."""
    both = [tsuids(server, names)[:2] for server in (comparison.theirs, comparison.ours)]
    for theirs, ours in zip(steps(*both[0], B), steps(*both[1], B), strict=True):
        found, shown = [], None
        sides = zip((comparison.theirs, comparison.ours), (theirs, ours), both, strict=True)
        for server, (method, path, body), series in sides:
            metric = names.metric("fix")
            path = path.replace("METRIC", metric)
            content = None if body is None else json.dumps(body).replace("METRIC", metric).encode()
            shown = (method, path, content)
            status, headers, answer = server.ask(*shown)
            text = answer.decode()
            for place, tsuid in enumerate(series):
                text = text.replace(tsuid, f"TSUID{place}")
            found.append((status, headers, text.encode()))
        comparison.note("annotations", shown, found, faults(found), set())


def faults(both):
    (left_status, _, left), (right_status, _, right) = both
    if left_status != right_status:
        return ["the status differs"]
    theirs, ours = (json.loads(text) if text else None for text in (left, right))
    if isinstance(theirs, dict) and "error" in theirs:
        return [] if theirs["error"]["message"] == ours["error"]["message"] else ["the messages differ"]
    return [] if ordered(theirs) == ordered(ours) else ["the answers differ"]


def ordered(value):
    """The answer without what differs on purpose: the order of annotations of one series, and lists without any."""
    if isinstance(value, list):
        out = [ordered(one) for one in value]
        return sorted(out, key=json.dumps) if out and isinstance(out[0], dict) else out
    if not isinstance(value, dict):
        return value
    empty = ("annotations", "globalAnnotations")
    return {key: ordered(one) for key, one in sorted(value.items()) if key not in empty or one}
