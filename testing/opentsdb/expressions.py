"""Random requests to /api/query/exp, and whether two answers to one are the same.

What is asked is what OpenTSDB computes without faults of its own: all points lie within the times of the request,
expressions use others only where their times are the same, and a result is no constant of the expression.
"""

import json
from dataclasses import dataclass

import answers

AGGREGATORS = ("sum", "avg", "min", "max", "zimsum", "mimmin", "mimmax", "count", "dev", "none")
FILLS = (None, None, {"policy": "nan"}, {"policy": "zero"}, {"policy": "scalar", "value": 12.5}, {"value": -3})
JOINS = (
    None,
    {"operator": "union"},
    {"operator": "intersection"},
    {"operator": "intersection"},
    {"operator": "union", "useQueryTags": True, "includeAggTags": False},
    {"operator": "intersection", "useQueryTags": True, "includeAggTags": False},
    {"operator": "union", "includeAggTags": False},
)
# What OpenTSDB answers where it fails by its own fault, and the name of the difference.
THEIR_FAULTS = {
    "Expression returned a result of type": "results",
    "No more data": "nested expressions",
    "getFillPolicy() is null": "nested expressions",
    "because the return value of": "nested expressions",
    "didn't appear to have any variables": "results",
}


@dataclass(frozen=True)
class Asked:
    body: dict

    def request(self):
        return "POST", "/api/query/exp", json.dumps(self.body).encode()


def number(random):
    return random.choice(("2", "3", "10", "0.5", "1.25", "100", "0"))


def formula(random, variables, depth=0):
    """A number; it has a variable at least in its first leaf."""
    kind = random.random()
    if depth > 3 or kind < 0.25:
        return random.choice(variables)
    left = formula(random, variables, depth + 1)
    if kind < 0.75:
        right = formula(random, variables, depth + 1) if random.random() < 0.6 else number(random)
        if random.random() < 0.3 and right != number(random):
            left, right = (right, left) if right in variables else (left, right)
        text = f"{left} {random.choice('+-*/')} {right}"
        return f"({text})" if depth and random.random() < 0.6 else text
    if kind < 0.85:
        # Not ((a)): there, OpenTSDB sees no variables.
        return f"-{left}" if left.startswith("(") else f"-({left})"
    return f"({condition(random, variables, depth + 1)} ? {left} : {formula(random, variables, depth + 1)})"


def condition(random, variables, depth):
    left, right = formula(random, variables, depth + 1), formula(random, variables, depth + 1)
    if random.random() < 0.5:
        right = number(random)
    sign = random.choice(("<", "<=", ">", ">=", "==", "!=", "lt", "ge", "ne"))
    text = f"({left} {sign} {right})"
    if depth < 3 and random.random() < 0.3:
        text = f"({text} {random.choice(('&&', '||', 'and', 'or'))} {condition(random, variables, depth + 1)})"
    return f"!{text}" if random.random() < 0.1 else text


def filter_sets(random, names, keys):
    out = []
    for name in ("f1", "f2"):
        tags = []
        for key in random.sample(keys, random.randint(1, len(keys))):
            tags.append({"type": "wildcard", "tagk": key, "filter": "*", "groupBy": random.random() < 0.8})
        out.append({"id": name, "tags": tags, "explicitTags": False})
    return out


def question(random, names, metrics):
    """A request about two or three metrics."""
    known = [metric for metric in metrics if metric.kind != "calendar"]
    times = [time for metric in known for time in metric.times()]
    start, end = min(times) // 1000 - random.randrange(7200), max(times) // 1000 + 1 + random.randrange(7200)
    keys = [names.key("host"), names.key("cpu")]
    time = {"start": str(start), "end": str(end), "aggregator": random.choice(AGGREGATORS)}
    if random.random() < 0.4:
        time["downsampler"] = {
            "interval": random.choice(("10s", "1m", "7m", "1h")),
            "aggregator": random.choice(("avg", "sum", "max", "count")),
        }
    ids = ["a", "b", "c9"][: random.randint(1, 3)]
    asked = []
    for name in ids:
        metric = {"id": name, "metric": random.choice(known).twin, "fillPolicy": random.choice(FILLS)}
        if random.random() < 0.85:
            metric["filter"] = random.choice(("f1", "f1", "f2"))
        if random.random() < 0.2:
            metric["aggregator"] = random.choice(AGGREGATORS)
        asked.append(metric)
    expressions = [{"id": "e", "expr": formula(random, ids), "join": random.choice(JOINS)}]
    if random.random() < 0.3:
        expressions.append({"id": "x", "expr": formula(random, ids), "join": random.choice(JOINS)})
    if random.random() < 0.2:
        expressions.append({"id": "y", "expr": f"e * 2 - e / {number(random)}"})
    outputs = None
    if random.random() < 0.4:
        outputs = [{"id": one["id"]} for one in random.sample(asked + expressions, 1)]
        outputs[0]["alias"] = random.choice((None, "an alias"))
    body = {
        "time": time,
        "filters": filter_sets(random, names, keys),
        "metrics": asked,
        "expressions": expressions,
        "outputs": outputs,
    }
    return Asked(body)


def compare(asked, both):
    """The faults of our answer, and the names of the differences on purpose."""
    (their_status, _, theirs), (our_status, _, ours) = both
    theirs, ours = json.loads(theirs), json.loads(ours)
    if their_status != 200:
        told = theirs["error"]["message"]
        if our_status == 200:
            names = {name for part, name in THEIR_FAULTS.items() if part in told}
            return ([], names) if names else (["the status differs"], set())
        mine = ours["error"]["message"]
        same = told.split(":")[0] == mine.split(":")[0]
        return ([] if same and our_status == 400 else ["the errors differ"]), set()
    if our_status != 200:
        # OpenTSDB computes expressions that no output needs, and we do not; the other way round is a fault.
        return ["the status differs"], set()
    faults, purposes = [], set()
    if [one["id"] for one in theirs["outputs"]] != [one["id"] for one in ours["outputs"]]:
        return ["the outputs differ"], set()
    joins = {one["id"]: one.get("join") or {} for one in asked.body["expressions"]}
    for left, right in zip(theirs["outputs"], ours["outputs"], strict=True):
        if left.get("alias") != right.get("alias"):
            faults.append("the alias differs")
        faults += values(left, right)
        faults += summary(left, right, purposes)
        faults += meta(left, right, joins.get(left["id"]), purposes)
    for name in ("name", "outputs", "metrics", "expressions", "time"):
        if plain(theirs["query"][name]) != plain(ours["query"][name]):
            faults.append(f"{name} of the query differs: {ours['query'][name]}")
    return faults, purposes


def plain(value):
    """A part of the repeated query, without what OpenTSDB adds to a fill policy."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key != "fillPolicy"}
    return value


def values(left, right):
    if [row[0] for row in left["dps"]] != [row[0] for row in right["dps"]]:
        return [f"{left['id']}: the times differ"]
    for one, other in zip(left["dps"], right["dps"]):
        if len(one) != len(other):
            return [f"{left['id']}: {len(other) - 1} series and not {len(one) - 1}"]
        if not all(answers.same(a, b) for a, b in zip(one[1:], other[1:])):
            return [f"{left['id']} at {one[0]}: {other[1:]} and not {one[1:]}"]
    return []


def summary(left, right, purposes):
    theirs, ours = dict(left["dpsMeta"]), dict(right["dpsMeta"])
    if theirs["setCount"] < 2 and theirs != ours:
        purposes.add("times of one row")
        for side in (theirs, ours):
            side.pop("lastTimestamp"), side.pop("firstTimestamp")
    return [] if theirs == ours else [f"{left['id']}: dpsMeta is {ours} and not {theirs}"]


def meta(left, right, join, purposes):
    theirs, ours = left.get("meta"), right.get("meta")
    if theirs is None or ours is None:
        return [] if theirs == ours else ["the meta data are missing"]
    if len(theirs) != len(ours) or theirs[0] != ours[0]:
        return ["the meta data differ"]
    faults = []
    for place, (one, other) in enumerate(zip(theirs[1:], ours[1:])):
        if sorted(one["aggregatedTags"]) != sorted(other["aggregatedTags"]):
            faults.append(f"{left['id']}: aggregated {other['aggregatedTags']} and not {one['aggregatedTags']}")
        if one["commonTags"] != other["commonTags"]:
            if (join or {}).get("useQueryTags") or not one["commonTags"]:
                purposes.add("tags of a union")
            else:
                faults.append(f"{left['id']}: tags {other['commonTags']} and not {one['commonTags']}")
        if one["metrics"] != other["metrics"]:
            if place > 0:
                purposes.add("metrics of a union")
            else:
                faults.append(f"{left['id']}: metrics {other['metrics']} and not {one['metrics']}")
    return faults
