"""Requests that are the same in every run: above all wrong ones. Each has the name of a difference on purpose (in
differences.py), or none, and then the status and the message of both answers must be the same."""

import gzip
import json
import urllib.parse
from dataclasses import dataclass

import data
import fixed_expressions

B = data.BEGIN
RANGE = f"start={B}&end={B + 100}"


@dataclass(frozen=True)
class Fixed:
    difference: str
    method: str
    target: str
    body: bytes = None
    headers: tuple = ()
    # How equal answers look: `message` of an error, `query`, `same` JSON, `set`: a list in any order.
    look: str = "message"


def quoted(text):
    return urllib.parse.quote(text, safe="=&:,/?")


class Table:
    def __init__(self):
        self.requests = []

    def get(self, target, difference="", look="message"):
        self.requests.append(Fixed(difference, "GET", "/api/" + quoted(target), None, (), look))

    def post(self, path, body, difference="", look="message", headers=()):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.requests.append(Fixed(difference, "POST", f"/api/{path}", body, headers, look))

    def send(self, method, path, body):
        self.requests.append(Fixed("", method, f"/api/{path}", body))


def points(names):
    """The points that the requests are about."""
    host, cpu = names.key("host"), names.key("cpu")
    out = []
    for place, (a, b) in enumerate((("web01", "0"), ("web02", "0"), ("web02", "1"))):
        for step in range(6):
            tags = {host: names.value(a), cpu: names.value(b)}
            time, value = B + step * 10 + place * 3, step * 7 + place + 0.5
            out.append({"metric": names.metric("fix"), "timestamp": time, "value": value, "tags": tags})
    return out


def requests(names):
    table = Table()
    queries(table, names)
    query_bodies(table, names)
    puts(table, names)
    others(table, names)
    fixed_expressions.expressions(table, names)
    fixed_expressions.annotations(table)
    return table.requests


def queries(table, names):
    metric, host, cpu = names.metric("fix"), names.key("host"), names.key("cpu")
    web = names.value("web01")

    def m(text, difference="", look="query"):
        table.get(f"query?{RANGE}&m={text}", difference, look)

    m(f"sum:{metric}")
    m(f"none:{metric}")
    m(f"sum:{metric}{{{host}=*}}")
    m(f"sum:{metric}{{{host}={web}}}")
    m(f"sum:{metric}{{{host}={web}|{names.value('web02')},{cpu}=*}}")
    m(f"sum:{metric}{{{host}={names.word.upper()}-WEB*}}")
    m(f"sum:{metric}{{{host}=wildcard({names.word}*web0)}}", "wildcard within")
    m(f"sum:{metric}{{}}{{{host}={web}}}")
    m(f"sum:RATE:{metric}{{{host}={web}}}")
    m(f"sum:10s-avg:rate:explicit_tags:{metric}{{{host}=*}}")
    m(f"sum:explicit_tags:{metric}{{{host}=*,{cpu}=*}}")
    m(f"sum:explicit_tags:{metric}")
    m(f"sum:20s-avg-ZERO:{metric}")
    m(f"sum:3all-sum:{metric}{{{host}={web}}}")
    m(f"sum:rate{{dropcounter}}:{metric}{{{host}={web}}}")
    m(f"sum:rate{{counter,,5}}:{metric}{{{host}={web}}}")
    m("", look="message")
    m("sum", look="message")
    m("sum:", "empty metric of m")
    m(f":{metric}")
    m(f"sum:1m-avg:rate:explicit_tags:x:{metric}")
    m(f"SUM:{metric}")
    m(f"foo:{metric}")
    m(f"sum:{names.metric('nothing')}")
    m(f"sum:what:{metric}", "part of m that is not known")
    m(f"sum:all-sum:{metric}", "part of m that is not known")
    m(f"sum:{metric}{{}}{{}}{{}}", "third braces")
    m(f"sum:{metric}{{{host}={web}", "filter of a URL")
    for wrong in ("", "=", "=|", "=wildcard(a)", "=regexp([)", "=nothing(a)", "=literal_or()"):
        m(f"sum:{metric}{{{host}{wrong}}}", "filter of a URL")
    m(f"sum:{metric}{{}}{{{cpu}=not_key()}}", "not_key")
    m(f"sum:{metric}{{{host}=nobody{names.word}}}", "tag value that nothing has")
    m(f"sum:{metric}{{}}{{nokey{names.word}=*}}", "tag key that nothing has")
    m(f"sum:{metric}{{{host}={web},{host}={names.value('web02')}}}", "filters of one tag")
    m(f"sum:rate{{x}}:{metric}", "rate options that are not known")
    m(f"sum:rate{{counter,x}}:{metric}")
    m(f"sum:rate{{counter,1.5}}:{metric}{{{host}={web}}}", "numbers with fractions")
    m(f"sum:rate{{counter,1,x}}:{metric}")
    m(f"sum:rate{{counter,1,2,3}}:{metric}")
    for wrong in ("0m-avg", "1q-avg", "1m", "1m-what", "1m-AVG", "1m-none", "1m-avg-foo", "1m-avg-nan-x"):
        m(f"sum:{wrong}:{metric}")
    table.get(f"query?m=sum:{metric}")
    table.get(f"query?start=&m=sum:{metric}")
    table.get(f"query?start={B}")
    table.get(f"query?start={B}&end={B}&m=sum:{metric}")
    table.get(f"query?start={B}&end={B - 5}&m=sum:{metric}")
    for wrong in ("-5", "1q-ago", "0m-ago", "m-ago", "x", "ago", f"{B}.2555", "2013/01/01-7", "2013/1", "13:00"):
        table.get(f"query?start={wrong}&end={B + 100}&m=sum:{metric}")
    table.get(f"query?start={B}&end=x&m=sum:{metric}")
    table.get(f"query?start=2013/13/01&end=2014/01/02&m=sum:{metric}", "thirteenth month")
    table.get(f"query?start=2013/1/1&end=2013/1/2&m=sum:{metric}", "short date")
    table.get(f"query?start=12345678901234&m=sum:{metric}", "fourteen digits")
    table.get(f"query?start={B}&end=2013/01/02&tz=Nowhere&m=sum:{metric}", "zone that nobody knows")
    dates = ("2013/01/01", "2013/01/01-00:00", "2013/01/01 00:00:00", "20y-ago")
    for good in (f"{B}000", f"{B}000ms", f"{B}.250", *dates):
        table.get(f"query?start={good}&end={B + 30}&m=sum:{metric}", "", "query")
    berlin = "start=2013/01/01-01:00:20&end=2013/01/02&tz=Europe/Berlin"
    table.get(f"query?{berlin}&m=sum:{metric}", "zone of a URL", "query")
    table.get(f"query?start={B}&end=now&m=sum:{metric}", "", "query")
    table.get(f"query?{RANGE}&m=sum:{metric}&arrays=false", "flag that is false")
    table.get(f"query?{RANGE}&m=sum:{metric}&jsonp=call", "jsonp")
    table.get(f"query?{RANGE}&m=sum:{metric}&padding", "", "query")
    table.get(f"query?{RANGE}&tsuid=sum:000001000001000001", "tsuid")
    # A hundred seconds beside the points, within their hour.
    table.get(f"query?start={B + 900}&end={B + 1000}&m=sum:{metric}", "", "query")
    table.get(f"query?start={B + 900}&end={B + 1000}&m=sum:10s-sum-zero:{metric}", "", "query")
    table.get(f"query?start={B + 90000}&end={B + 91000}&m=sum:10s-sum-zero:{metric}", "", "query")
    for method in ("DELETE", "PUT"):
        target = "/api/" + quoted(f"query?{RANGE}&m=sum:{metric}")
        table.requests.append(Fixed("", method, target))


def query_bodies(table, names):
    metric, host = names.metric("fix"), names.key("host")
    part = {"aggregator": "sum", "metric": metric}

    def query(difference="", look="query", **changed):
        table.post("query", {"start": B, "end": B + 100, "queries": [part], **changed}, difference, look)

    def sub(difference="", look="query", **changed):
        query(difference, look, queries=[{**part, **changed}])

    query()
    query(msResolution=True)
    query(start=str(B), end=f"{B + 20}")
    query(unknown=1)
    query(showQuery=True)
    query(noAnnotations=True, globalAnnotations=True)
    query(queries=[part, {**part, "aggregator": "max"}][:1])
    query("delete of POST", delete=True)
    query("zone that nobody knows", timezone="Nowhere/At_all")
    for wrong in (None, "", "x"):
        query(start=wrong)
    query(end="x")
    query(end=B)
    query("JSON that is none", start={"a": 1})
    query("JSON that is none", queries={})
    query("JSON that is none", queries=[1])
    query(queries=[])
    query(queries=[{}])
    table.post("query", b"", "")
    table.post("query", b"{", "JSON that is none")
    table.post("query", b"[]", "JSON that is none")
    table.post("query", {}, "no parts at all")
    table.post("query", {"start": B}, "no parts at all")
    sub(rate="true")
    sub(rate=1)
    sub("JSON that is none", rate="yes")
    sub(explicitTags=True)
    sub(downsample="")
    sub(aggregator="")
    sub(aggregator="foo")
    sub(metric="")
    sub(metric=names.metric("nothing"))
    sub(downsample="1m-foo")
    sub(downsample="1m-avg-foo")
    sub(tags={host: "*"})
    sub(tags={host: f"wildcard({names.word}-*1)"})
    sub(rate=True, rateOptions={"counter": True, "counterMax": 100.5})
    sub("JSON that is none", rate=True, rateOptions={"counter": True, "counterMax": "x"})
    sub("tag value that nothing has", tags={host: 5})
    for wrong in ("nothing(a)", ""):
        sub("filter of JSON", tags={host: wrong})
    good = {"type": "wildcard", "tagk": host, "filter": "*", "groupBy": True}
    sub(filters=[good])
    for wrong in ({"type": "foo"}, {"tagk": ""}, {"filter": ""}, {"type": "regexp", "filter": "["}, {"filter": "a"}):
        sub("filter of JSON", filters=[{**good, **wrong}])
    for missing in ("type", "tagk", "filter"):
        sub("filter of JSON", filters=[{key: value for key, value in good.items() if key != missing}])
    sub("tsuid", tsuids=["000001000001000001"])


def puts(table, names):
    tags = {names.key("host"): names.value("web01")}
    good = {"metric": names.metric("put"), "timestamp": B, "value": 1, "tags": tags}

    def put(difference="", **changed):
        table.post("put?details", {**good, **changed}, difference, "put")

    for body in (b"", b"blah", b"1", b'"x"', b"null", b"[]", b"{}", b"[{}]", b"[null]"):
        for path in ("put", "put?details"):
            table.post(path, body, "", "put")
    for body in (b"{", b"[{]", b"[1]"):
        table.post("put", body, "JSON that is none")
    for wrong in (None, "", "a b", "a%b", "a:b"):
        put(metric=wrong)
    for wrong in (None, 0, -1):
        put(timestamp=wrong)
    put("time that is no number", timestamp="x")
    for time in (str(B), B + 0.5, B * 1000 + 5, 4294967296):
        put(timestamp=time)
    for time in (9_999_999_999_999, 13_569_984_001_234, 99_999_999_999_999):
        put("time after 2262", timestamp=time)
    for value in ("1.5", "1e3", ".5", "5.", "+5", "-7", 9_223_372_036_854_775_807, 1.5, -2):
        put(value=value)
    for wrong in (None, "", "x", "NaN", "Infinity", True, "12a", " 5", "1.5.5", "-", "0x10", "9223372036854775808"):
        put(value=wrong)
    put(value=9_223_372_036_854_775_808)
    put("infinite value", value="1e400")
    put("JSON that is none", value={})
    put("JSON that is none", value=[1])
    key = names.key("host")
    for wrong in (None, {}, {"": "x"}, {key: ""}, {key: None}, {f"{key} b": "c"}, {key: "c d"}, {key: "c%"}):
        put(tags=wrong)
    put(tags={key: names.value("web02"), names.key("cpu"): names.value("0")})
    put("JSON that is none", tags=[1])
    put("JSON that is none", tags={key: {}})
    put("nine tags", tags={f"{names.word}t{place}": names.value("0") for place in range(9)})
    put(unknown=1)
    bad = {**good, "value": "x"}
    for wish in ("", "?summary", "?details", "?summary&details", "?sync", "?sync&details", "?sync&summary"):
        table.post(f"put{wish}", [good, bad], "", "put")
        table.post(f"put{wish}", [good], "", "put")
    table.post("put?details=false", [good, bad], "flag that is false", "put")
    packed = gzip.compress(json.dumps([good, bad]).encode(), mtime=0)
    table.post("put?details", packed, "", "put", (("Content-Encoding", "gzip"),))
    table.post("put?details", packed, "", "put")
    table.get("put")


def others(table, names):
    metric, host, cpu = names.metric("fix"), names.key("host"), names.key("cpu")
    web = names.value("web01")
    table.get("aggregators", "", "set")
    table.get("config/filters", "", "filters")
    table.get("version", "version")
    table.get("v1/aggregators", "", "set")
    table.get("aggregators/", "", "set")
    table.get("v2/version")
    table.get("dropcaches", "", "same")
    table.get("serializers", "serializers")
    table.get("Version", "letter case of paths")
    for path in ("", "nothing", "logs"):
        table.get(path)
    for path in ("query/gexp", "tree", "uid/uidmeta", "rollup"):
        table.get(path, "not implemented")
    for query in ("", "?type=", "?type=foo", "?type=metrics&max=x"):
        table.get(f"suggest{query}")
    word = names.word
    for maximum in (1, 2, 0, -1):
        table.get(f"suggest?type=metrics&q={word}&max={maximum}", "", "same")
    table.get(f"suggest?type=tagk&q={word}h", "", "same")
    table.get(f"suggest?type=tagv&q={word}-web", "", "same")
    table.get(f"suggest?type=metrics&q=nothing{word}", "", "same")
    table.post("suggest", b"")
    table.post("suggest", b"[]", "JSON that is none")
    for body in ({}, {"type": "foo"}, {"type": "metrics", "max": "x"}):
        table.post("suggest", body)
    table.post("suggest", {"type": "metrics", "q": word, "max": "1"}, "", "same")
    table.get("query/last")
    table.get("query/last?timeseries=")
    one = f"{metric}{{{host}={web},{cpu}={names.value('0')}}}"
    table.get(f"query/last?timeseries={one}&back_scan=x")
    recent = f"{names.metric('recent')}{{{host}={web},{cpu}={names.value('0')}}}"
    table.get(f"query/last?timeseries={recent}&back_scan=6", "last without resolve")
    table.get(f"query/last?timeseries={one}", "last without back_scan")
    table.get(f"query/last?timeseries={metric}{{{host}={web}}}", "last of some tags")
    table.get(f"query/last?timeseries={metric}", "last of some tags")
    table.get(f"query/last?timeseries={metric}{{{host}=nobody{word}}}&back_scan=1", "tag value that nothing has")
    table.get(f"query/last?timeseries={metric}{{{host}={web}", "last of an open brace")
    table.get(f"query/last?timeseries={metric}{{{host}}}", "last of an open brace")
    table.get("query/last?tsuids=000001000001000001", "tsuid")
    table.post("query/last", b"")
    table.post("query/last", {})
    table.post("query/last", {"queries": []})
    table.post("query/last", {"queries": [{}]})
    table.post("query/last", {"queries": [{"metric": names.metric("nothing")}]})
    table.get("search/lookup")
    table.get("search/lookup?m=")
    table.get(f"search/lookup?m={names.metric('nothing')}&use_meta=false")
    table.get(f"search/lookup?m={metric}&use_meta=false&limit=x")
    table.get(f"search/lookup?m={metric}{{{host}={web}&use_meta=false")
    table.get(f"search/lookup?m={metric}&use_meta=false&limit=1", "lookup's limit")
    table.get(f"search/lookup?m={metric}{{{host}={web}|x}}&use_meta=false", "lookup of values")
    table.get(f"search/lookup?m={metric}{{{host}=nobody{word}}}&use_meta=false", "lookup of names that nothing has")
    table.get(f"search/lookup?m={metric}{{nokey{word}=*}}&use_meta=false", "lookup of names that nothing has")
    table.post("search/lookup", b"")
    table.post("search/lookup", {"metric": names.metric("nothing"), "useMeta": False})
    table.post("search/lookup", {"metric": metric, "useMeta": False}, "lookup of few rows", "lookup")
    table.get("uid/assign")
    table.get("uid/assign?foo=x")
    table.get(f"uid/assign?metric={metric}", "assign")


def telnet(names):
    """Lines, each with the name of a difference on purpose, or none."""
    tag = f"{names.key('host')}={names.value('web01')}"
    put = f"put {names.metric('telnet')}"
    nine = " ".join(f"{names.word}t{place}={names.value('0')}" for place in range(9))
    key, value = tag.split("=")
    return [
        ("", "put"),
        ("", "put m"),
        ("", "put m 1"),
        ("", "put m 1 2"),
        ("", "put m 1 2 a"),
        ("", "put m 1 2 a="),
        ("", "put m 1 2 =b"),
        ("", f"{put} 0 2 {tag}"),
        ("", f"{put} -1 2 {tag}"),
        ("", f"{put} x 2 {tag}"),
        ("", f"{put} {B}x 2 {tag}"),
        ("", f"{put} {B}.250 2 {tag}"),
        ("", f"{put} {B}500 2 {tag}"),
        ("time after 2262", f"{put} {B}2500 2 {tag}"),
        ("", f"{put} {B + 1} x {tag}"),
        ("", f"{put} {B + 1} 4x {tag}"),
        ("", f"{put} {B + 1} NaN {tag}"),
        ("", f"{put} {B + 1} Infinity {tag}"),
        ("", f"{put} {B + 1} 9223372036854775808 {tag}"),
        ("", f"{put} {B + 1} 4.x {tag}"),
        ("", f"{put} {B + 1} 1.5.5 {tag}"),
        ("", f"{put} {B + 1} 1e {tag}"),
        ("", f"{put} {B + 1} 1e5 {tag}"),
        ("", f"{put} {B + 2} -1.5e-3 {tag}"),
        ("", f"{put} {B + 3} +7 {tag}"),
        ("", f"{put} {B + 4} 1 {tag} {key}=x"),
        ("", f"{put} {B + 4} 1 {tag} {tag}"),
        ("", f"{put} {B + 5} 1 {tag}=c"),
        ("", f"put t%m {B} 1 {tag}"),
        ("", f"{put} {B} 1 a%=b"),
        ("", f"{put} {B} 1 {key}=b%"),
        ("nine tags", f"{put} {B} 1 {nine}"),
        ("put  ", f"put  {names.metric('telnet')} {B} 1 {tag}"),
        ("put\t", f"put\t{names.metric('telnet')} {B} 1 {tag}"),
        ("version", "version"),
        ("help", "help"),
        ("stats", "stats"),
        ("", "dropcaches"),
        ("", "foo"),
        ("", "foo bar"),
        ("", f"PUT m 1 1 {tag}"),
        ("auth", "auth ann word"),
        ("rollup", "rollup x"),
        ("histogram", "histogram x"),
        ("", "exit"),
    ]
