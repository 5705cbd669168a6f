"""Random questions to /api/query, /api/query/last, /api/suggest and /api/search/lookup."""

import datetime
import json
import urllib.parse
import zoneinfo
from dataclasses import dataclass, replace

import data

AGGREGATORS = (
    "avg", "count", "dev", "diff", "first", "last", "max", "median", "mimmax", "mimmin", "min", "mult", "none",
    "p50", "p75", "p90", "p95", "p99", "p999", "pfsum", "squareSum", "sum", "zimsum",
    "ep50r3", "ep75r3", "ep90r3", "ep95r3", "ep99r3", "ep999r3",
    "ep50r7", "ep75r7", "ep90r7", "ep95r7", "ep99r7", "ep999r7",
)  # fmt: skip
COMMON = ("sum", "avg", "max", "min", "count", "none")
FILLS = ("", "-none", "-nan", "-null", "-zero")
INTERVALS = ("1s", "10s", "30s", "1m", "7m", "15m", "1h", "5h", "90m", "7s", "500ms", "1d")
# Those that divide the next larger unit: OpenTSDB counts others from the first point of a series.
CALENDAR = ("15mc", "1hc", "6hc", "1dc", "1wc", "1nc", "3nc", "1yc")
ZONES = ("", "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")


@dataclass(frozen=True)
class Sub:
    """One part of a query."""

    metric: str
    aggregator: str
    downsample: str = ""
    rate: bool = False
    options: tuple = ()
    # Type, key, text and whether it groups.
    filters: tuple = ()
    explicit: bool = False

    def as_m(self):
        parts = [self.aggregator]
        if self.downsample:
            parts.append(self.downsample)
        if self.rate:
            options = dict(self.options)
            if options:
                kind = "dropcounter" if options.get("dropResets") else "counter" if options.get("counter") else ""
                numbers = [options.get("counterMax", ""), options.get("resetValue", "")]
                given = [kind] + [str(number) for number in numbers]
                parts.append("rate{" + ",".join(given).rstrip(",") + "}")
            else:
                parts.append("rate")
        if self.explicit:
            parts.append("explicit_tags")
        grouping = ",".join(f"{key}={kind}({text})" for kind, key, text, groups in self.filters if groups)
        others = ",".join(f"{key}={kind}({text})" for kind, key, text, groups in self.filters if not groups)
        braces = f"{{{grouping}}}" if grouping or others else ""
        braces += f"{{{others}}}" if others else ""
        return ":".join(parts + [self.metric + braces])

    def as_json(self):
        out = {"metric": self.metric, "aggregator": self.aggregator}
        if self.downsample:
            out["downsample"] = self.downsample
        if self.rate:
            out["rate"] = True
        if self.options:
            out["rateOptions"] = dict(self.options)
        if self.filters:
            out["filters"] = [
                {"type": kind, "tagk": key, "filter": text, "groupBy": groups}
                for kind, key, text, groups in self.filters
            ]
        if self.explicit:
            out["explicitTags"] = True
        return out


@dataclass(frozen=True)
class Query:
    """A question to /api/query."""

    subs: tuple
    start: str
    end: str
    # The same times, ms.
    start_ms: int
    end_ms: int
    zone: str = ""
    has_ms: bool = False
    has_arrays: bool = False
    shows_tsuids: bool = False
    shows_query: bool = False
    shows_summary: bool = False
    is_post: bool = False

    def request(self):
        """Method, target and body."""
        target = "/api/query"
        if self.is_post:
            body = {"start": self.start, "end": self.end, "queries": [sub.as_json() for sub in self.subs]}
            if self.zone:
                body["timezone"] = self.zone
            for name, is_on in self.flags("msResolution", "showTSUIDs", "showQuery", "showSummary"):
                if is_on:
                    body[name] = True
            if self.has_arrays:
                target += "?arrays"
            return "POST", target, json.dumps(body).encode()
        given = [("start", self.start), ("end", self.end)]
        given += [("m", sub.as_m()) for sub in self.subs]
        text = urllib.parse.urlencode(given)
        for name, is_on in self.flags("ms", "show_tsuids", "show_query", "show_summary"):
            text += f"&{name}" if is_on else ""
        text += "&arrays" if self.has_arrays else ""
        return "GET", f"{target}?{text}", None

    def flags(self, *names):
        return zip(names, (self.has_ms, self.shows_tsuids, self.shows_query, self.shows_summary))

    def with_metrics(self, names):
        """The same question to other metrics."""
        return replace(self, subs=tuple(replace(sub, metric=names.get(sub.metric, sub.metric)) for sub in self.subs))


def one_filter(random, names, keys):
    key = random.choice(keys)
    word = key.removeprefix(names.word)
    known = [names.value(value) for value in data.VALUES[word]]
    some = random.sample(known, random.randint(1, len(known)))
    kind = random.choice(
        ("literal_or", "literal_or", "iliteral_or", "not_literal_or", "not_iliteral_or", "wildcard", "wildcard",
         "iwildcard", "regexp")
    )  # fmt: skip
    if kind.endswith("literal_or"):
        text = "|".join(some)
        if "iliteral" in kind:
            text = random.choice((text, text.upper(), text.swapcase()))
    elif kind.endswith("wildcard"):
        value = some[0]
        cut = random.randint(len(names.word), len(value))
        forms = ("*", f"{value[:cut]}*", f"*{value[cut:]}", f"*{value[-1:]}*", f"*{value[2:4]}*{value[-2:]}")
        text = random.choice(forms)
        if kind == "iwildcard":
            text = random.choice((text, text.upper()))
    else:
        value = some[0]
        text = random.choice((".*", value[-3:], f"^{names.word}-web", "[wd].[b_]", "(0|1)$", "eu/|db_", "WEB", "0[12]"))
    return kind, key, text


def filters(random, names, metric):
    keys = [names.key(key) for key in data.KEYS]
    # A tag that no series has is an error in OpenTSDB if no series of any metric ever had it.
    used = sorted({key for series in metric.series for key in series.tags})
    out = []
    for _ in range(random.choice((0, 0, 1, 1, 1, 2))):
        chosen = one_filter(random, names, used if random.random() < 0.9 else keys)
        if any(chosen[1] == key for _, key, _, _ in out):
            continue
        out.append((*chosen, random.random() < 0.6))
    return tuple(out)


def rate_options(random):
    options = {}
    if random.random() < 0.6:
        options["counter"] = True
        if random.random() < 0.5:
            options["counterMax"] = random.choice((255, 1000, 65535))
        if random.random() < 0.5:
            options["resetValue"] = random.choice((1, 5, 100))
        if random.random() < 0.3:
            options["dropResets"] = True
    return tuple(options.items())


def sub(random, names, metric, is_post):
    aggregator = random.choice(AGGREGATORS if random.random() < 0.6 else COMMON)
    downsample = ""
    needs_seconds = metric.has_ms and random.random() < 0.95
    if random.random() < 0.55:
        function = random.choice(AGGREGATORS if random.random() < 0.6 else COMMON)
        function = "avg" if function == "none" else function
        interval = random.choice(INTERVALS)
        if metric.kind == "calendar":
            interval = random.choice(CALENDAR + ("1d", "7d", "30d", "36h"))
        elif random.random() < 0.1:
            interval = "0all"
        if needs_seconds and interval == "500ms":
            interval = "1s"
        downsample = f"{interval}-{function}{random.choice(FILLS)}"
    is_rate = random.random() < 0.2 and (metric.kind != "calendar" or not downsample)
    options = rate_options(random) if is_rate and metric.kind == "counter" else ()
    if options and not is_post and dict(options).get("dropResets") and len(options) == 1:
        options = ()
    explicit = random.random() < 0.1
    return Sub(metric.name, aggregator, downsample, is_rate, options, filters(random, names, metric), explicit)


def date(ms):
    return datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc).strftime("%Y/%m/%d-%H:%M:%S")


def zone_midnight(random, zone, begin_ms):
    """The first of a month at midnight in a zone, as a date and ms."""
    begin = datetime.datetime.fromtimestamp(begin_ms // 1000, zoneinfo.ZoneInfo(zone or "UTC"))
    month = begin.month - 1 + random.randint(0, 9)
    day = datetime.datetime(begin.year + month // 12, month % 12 + 1, 1, tzinfo=zoneinfo.ZoneInfo(zone or "UTC"))
    return day.strftime("%Y/%m/%d-%H:%M:%S"), int(day.timestamp()) * 1000


def query(random, names, metrics):
    """A question to /api/query about one or two metrics."""
    metric = random.choice(metrics)
    is_post = random.random() < 0.5
    subs = [sub(random, names, metric, is_post)]
    if random.random() < 0.15:
        others = [other for other in metrics if (other.kind == "calendar") == (metric.kind == "calendar")]
        others.remove(metric)
        if others:
            subs.append(sub(random, names, random.choice(others), is_post))
    all_times = metric.times()
    low, high = min(all_times), max(all_times)
    # OpenTSDB takes a zone from JSON only.
    zone = random.choice(ZONES) if is_post and (metric.kind == "calendar" or random.random() < 0.1) else ""
    if metric.kind == "calendar":
        start, start_ms = zone_midnight(random, zone, low)
        end, end_ms = zone_midnight(random, zone, start_ms + 40 * 24 * 3_600_000)
        end_ms -= 1000
        end = str(end_ms // 1000)
    else:
        start_ms = random.randint(low - 3_600_000, low + (high - low) // 2)
        end_ms = random.randint(start_ms + 1000, high + 3_600_000)
        if random.random() < 0.5:
            start_ms, end_ms = sorted((random.choice(all_times), random.choice(all_times)))
        has_ms = random.random() < 0.3
        if not has_ms:
            start_ms, end_ms = start_ms // 1000 * 1000, end_ms // 1000 * 1000
        if end_ms == start_ms:
            end_ms += random.choice((1, 3600)) * 1000
        forms = [str] if has_ms else [lambda ms: str(ms // 1000), str]
        if not has_ms and zone in ("", "UTC"):
            forms.append(date)
        start, end = random.choice(forms)(start_ms), random.choice(forms)(end_ms)
    needs_ms = any(
        known.has_ms and part.metric == known.name and (not part.downsample or part.downsample.startswith("500ms"))
        for part in subs
        for known in metrics
    )
    return Query(
        tuple(subs), start, end, start_ms, end_ms, zone,
        has_ms=random.random() < (0.9 if needs_ms else 0.2),
        has_arrays=random.random() < 0.2,
        shows_tsuids=random.random() < 0.1,
        shows_query=random.random() < 0.05,
        shows_summary=random.random() < 0.05,
        is_post=is_post,
    )  # fmt: skip


@dataclass(frozen=True)
class Ask:
    """A question to another path; `look` names how its answers are compared."""

    look: str
    method: str
    target: str
    body: bytes = None

    def request(self):
        return self.method, self.target, self.body


def suggest(random, names):
    kind = random.choice(("metrics", "tagk", "tagv"))
    values = [f"-{value}" for known in data.VALUES.values() for value in known]
    words = {"metrics": ["."], "tagk": data.KEYS, "tagv": ["-", *values]}
    prefix = names.word + random.choice(words[kind])[: random.randint(1, 4)]
    maximum = random.choice((None, 1, 3, 100))
    if random.random() < 0.5:
        given = {"type": kind, "q": prefix}
        if maximum:
            given["max"] = maximum
        return Ask("same", "GET", "/api/suggest?" + urllib.parse.urlencode(given))
    body = {"type": kind, "q": prefix}
    if maximum:
        body["max"] = maximum
    return Ask("same", "POST", "/api/suggest", json.dumps(body).encode())


def lookup(random, names, metrics):
    metric = random.choice(metrics)
    series = random.choice(metric.series)
    pairs = random.sample(sorted(series.tags.items()), random.randint(0, len(series.tags)))
    pairs = [(key, random.choice((value, "*"))) for key, value in pairs]
    tags = [{"key": key, "value": value} for key, value in pairs]
    body = {"metric": metric.name, "tags": tags, "useMeta": False, "limit": 1000}
    return Ask("lookup", "POST", "/api/search/lookup", json.dumps(body).encode())


def last(random, recent):
    """A question to /api/query/last about series of `recent`, whose points are of the last hours."""
    asked = [(recent.name, random.choice(recent.series).tags) for _ in range(random.randint(1, 3))]
    if random.random() < 0.5:
        braces = [",".join(f"{key}={value}" for key, value in tags.items()) for _, tags in asked]
        given = [("timeseries", f"{metric}{{{tags}}}") for (metric, _), tags in zip(asked, braces)]
        given += [("back_scan", "6"), ("resolve", "true")]
        return Ask("last", "GET", "/api/query/last?" + urllib.parse.urlencode(given))
    body = {
        "queries": [{"metric": metric, "tags": tags} for metric, tags in asked],
        "backScan": 6,
        "resolveNames": True,
    }
    return Ask("last", "POST", "/api/query/last", json.dumps(body).encode())
