"""Gives OpenTSDB and Marigram the same points, asks both the same questions, and compares the answers.

    compare.py OPENTSDB MARIGRAM      both addresses as host:port

MARIGRAM_OPENTSDB_QUESTIONS is the number of random questions (1000), MARIGRAM_OPENTSDB_SEED the first seed (1); each
100 questions are about data of their own. Differences that are on purpose are in differences.py. One that is not
listed fails, and so does a fixed request that is listed and does not differ.
"""

import collections
import gzip
import json
import os
import random
import sys
import time

import annotations
import answers
import data
import differences
import expressions
import fixed
import questions
from client import Server

ROUND = 100
# OpenTSDB sends points to its storage once a second.
FLUSH_SECONDS = 2
SHOWN_FAULTS = int(os.environ.get("MARIGRAM_OPENTSDB_SHOWN", "40"))


def word():
    """A word that no run before had."""
    digits, left, out = "0123456789abcdefghijklmnopqrstuvwxyz", int(time.time() * 1000), ""
    while left:
        out = digits[left % 36] + out
        left //= 36
    return "r" + out[-7:]


class Comparison:
    def __init__(self, theirs, ours):
        self.theirs, self.ours = theirs, ours
        self.servers = [theirs] if theirs.address == ours.address else [theirs, ours]
        self.counts = collections.Counter()
        self.purposes = collections.Counter()
        self.shown = 0

    def ask(self, request):
        return tuple(server.ask(*request) for server in (self.theirs, self.ours))

    def note(self, text, request, both, faults, purposes):
        """Counts a question, and shows what is wrong with its answer."""
        self.counts["questions"] += 1
        self.purposes.update(purposes)
        if not faults:
            self.counts["on purpose" if purposes else "equal"] += 1
            return
        self.counts["different"] += 1
        self.shown += 1
        if self.shown > SHOWN_FAULTS:
            return
        print(f"> {text}: {shown_request(request)}")
        for fault in faults[:4]:
            print(f"  {fault}")
        for name, answer in zip(("OpenTSDB", "Marigram"), both):
            print(f"< {name} {shown_answer(answer)}")

    # Points.

    def put(self, points, gzipped=False):
        body, headers = json.dumps(points).encode(), {}
        if gzipped:
            body, headers = gzip.compress(body), {"Content-Encoding": "gzip"}
        for server in self.servers:
            status, _, answer = server.ask("POST", "/api/put?sync&details", body, headers)
            if status != 200:
                sys.exit(f"{server.name} does not take the points: {status} {answer[:1000]}")

    def put_telnet(self, points):
        lines = []
        for point in points:
            tags = " ".join(f"{key}={value}" for key, value in point["tags"].items())
            lines.append(f"put {point['metric']} {point['timestamp']} {point['value']} {tags}".encode())
        text = b"\n".join(lines)
        for server in self.servers:
            (answer,) = server.telnet([text])
            if answer:
                sys.exit(f"{server.name} does not take the points: {answer[:1000]}")

    def assign(self, names):
        """Gives names their UIDs in order, and waits for them."""
        body = json.dumps({"tagk": names.all_keys(), "tagv": names.all_values()}).encode()
        self.theirs.ask("POST", "/api/uid/assign", body)

    # Questions.

    def query(self, query, metrics, text):
        request = query.request()
        both = self.ask(request)
        faults, purposes = [], set()
        (their_status, _, theirs), (our_status, _, ours) = both
        if their_status != our_status:
            if their_status == 400 and b"No such name for 'tag" in theirs and ours == b"[]":
                purposes.add("unknown names")
            else:
                faults.append("the status differs")
        elif their_status != 200:
            faults += message_faults(both)
        else:
            question = answers.Question(query, metrics)
            faults, purposes = answers.compare(question, theirs, ours)
            if faults and question.has_rounded():
                floats = question.with_floats()
                status, _, theirs = self.theirs.ask(*floats.request())
                names = {metric.twin: metric.name for metric in metrics}
                if status == 200:
                    theirs = renamed(theirs, names)
                    faults, purposes = answers.compare(question, theirs, ours)
                    purposes.add("integers")
        self.note(text, request, both, faults, purposes)

    def other(self, question, text):
        both = self.ask(question.request())
        faults, purposes = look_faults(question.look, both), set()
        if faults == [REPEATED]:
            faults, purposes = [], {"lookup"}
        self.note(text, question.request(), both, faults, purposes)

    def expression(self, asked, text):
        both = self.ask(asked.request())
        faults, purposes = expressions.compare(asked, both)
        self.note(text, asked.request(), both, faults, purposes)

    def fixed(self, names):
        unused = set(differences.REQUESTS)
        for entry in fixed.requests(names):
            request = (entry.method, entry.target, entry.body)
            both = tuple(server.ask(*request, dict(entry.headers)) for server in (self.theirs, self.ours))
            faults, purposes = look_faults(entry.look, both), set()
            if entry.difference and faults:
                unused.discard(entry.difference)
                purposes.add(entry.difference)
                faults = purpose_faults(differences.REQUESTS[entry.difference][0], both)
            self.note(entry.difference or "fixed", request, both, faults, purposes)
        return unused

    def telnet(self, names):
        unused = set(differences.TELNET)
        lines = fixed.telnet(names)
        theirs, ours = (server.telnet([line.encode() for _, line in lines]) for server in (self.theirs, self.ours))
        for (difference, line), left, right in zip(lines, theirs, ours, strict=True):
            self.counts["questions"] += 1
            if left == right:
                self.counts["equal"] += 1
            elif difference:
                unused.discard(difference)
                self.purposes[f"telnet: {difference}"] += 1
                self.counts["on purpose"] += 1
            else:
                self.counts["different"] += 1
                print(f"> {line}\n< OpenTSDB {left!r}\n< Marigram {right!r}")
        return unused


def renamed(content, names):
    """An answer about twins as one about the metrics of integers."""
    parts = json.loads(content, object_pairs_hook=answers.pairs)
    for part in parts:
        if "metric" in part:
            part["metric"] = names.get(part["metric"], part["metric"])
    return json.dumps(parts)


def parsed(content):
    try:
        return json.loads(content)
    except ValueError:
        return None


def error(answer):
    body = parsed(answer[2])
    return body.get("error") if isinstance(body, dict) else None


def message_faults(both):
    """What differs in status and message, or in the whole answer if it is no error."""
    (left_status, left_headers, left), (right_status, right_headers, right) = both
    if left_status != right_status:
        return ["the status differs"]
    theirs, ours = error(both[0]), error(both[1])
    if theirs is None or ours is None:
        return [] if parsed(left) == parsed(right) else ["the answers differ"]
    faults = [f"the {name} differs" for name in ("code", "message") if theirs.get(name) != ours.get(name)]
    kinds = [headers.get("Content-Type", "") for headers in (left_headers, right_headers)]
    if kinds[0] != kinds[1]:
        faults.append(f"the type is {kinds[1]!r} and not {kinds[0]!r}")
    if bool(theirs.get("details")) and not ours.get("details") and "TSQuery(" not in theirs["details"]:
        if theirs["details"] != theirs["message"]:
            faults.append("the details are missing")
    return faults


def purpose_faults(what, both):
    statuses = [status for status, _, _ in both]
    if what == "status":
        return [] if statuses[0] == statuses[1] else ["the status differs"]
    if what == "refused":
        fine = statuses[0] >= 400 and 400 <= statuses[1] < 500 and error(both[1])
        return [] if fine else ["both should refuse it"]
    return ["it should not be 500"] if statuses[1] == 500 else []


def look_faults(look, both):
    """What differs in two answers that should look alike."""
    (left_status, _, left), (right_status, _, right) = both
    if left_status != right_status:
        return ["the status differs"]
    if left_status not in (200, 204) and look != "put":
        return message_faults(both)
    theirs, ours = parsed(left), parsed(right)
    if look == "set":
        return [] if sorted(theirs) == sorted(ours) else ["the names differ"]
    if look == "filters":
        fine = theirs.keys() <= ours.keys() and all({"examples", "description"} <= one.keys() for one in ours.values())
        return [] if fine else ["filters are missing"]
    if look == "query":
        return plain_faults(left, right)
    if look == "put" and "error" not in (theirs or {}):
        return put_faults(theirs, ours)
    if look == "lookup":
        return lookup_faults(theirs, ours)
    if look == "last":
        return [] if last_points(theirs) == last_points(ours) else ["the points differ"]
    return message_faults(both)


def plain_faults(left, right):
    try:
        theirs, ours = answers.groups(left)[0], answers.groups(right)[0]
    except (ValueError, KeyError, TypeError) as fault:
        return [f"no answer to a query: {fault}"]
    theirs, ours = ([group for group in groups if group.points] for groups in (theirs, ours))
    if [group.name for group in theirs] != [group.name for group in ours]:
        return ["the groups differ"]
    for one, other in zip(theirs, ours):
        if one.points.keys() != other.points.keys():
            return ["the times differ"]
        if not all(answers.same(value, other.points[at]) for at, value in one.points.items()):
            return ["the values differ"]
    return []


def put_faults(theirs, ours):
    if not theirs or not ours:
        return [] if theirs == ours else ["one has no body"]
    faults = [f"{name} differs" for name in ("success", "failed", "timeouts") if theirs.get(name) != ours.get(name)]
    if ("errors" in theirs) != ("errors" in ours):
        return faults + ["the errors are missing"]
    for one, other in zip(theirs.get("errors", []), ours.get("errors", []), strict=False):
        if one["error"] != other["error"]:
            faults.append(f"{other['error']!r} and not {one['error']!r}")
        if one["datapoint"] != other["datapoint"]:
            faults.append("the point is shown in another way")
    return faults


def lookup_faults(theirs, ours):
    def found(answer):
        return sorted(
            (one["metric"], tuple(sorted(one["tags"].items())), answers.is_hex(one["tsuid"]))
            for one in answer["results"]
        )

    for name in ("type", "metric", "limit", "startIndex"):
        if theirs[name] != ours[name]:
            return [f"{name} differs"]
    left, right = found(theirs), found(ours)
    if left == right:
        return [] if theirs["totalResults"] == ours["totalResults"] else ["totalResults differs"]
    return [REPEATED] if not left or sorted(set(left)) == right else ["the series differ"]


# What OpenTSDB's lookups of its data table do.
REPEATED = "series are repeated, or missing"


def last_points(answer):
    shown = [
        (
            one["metric"],
            sorted(one["tags"].items()),
            one["timestamp"],
            float(one["value"]),
            answers.is_hex(one["tsuid"]),
        )
        for one in answer
    ]
    return sorted(shown)


def shown_request(request):
    method, target, body = request
    return f"{method} {target}" + (f" {body[:2000]!r}" if body else "")


def shown_answer(answer):
    status, _, content = answer
    body = parsed(content)
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body["error"].pop("trace", None)
        content = json.dumps(body).encode()
    return f"{status} {content[:600].decode(errors='replace')}"


def recent_metric(names):
    """A metric with points of the last hours, for /api/query/last."""
    metric = data.Metric(names.metric("recent"), "floats")
    now = int(time.time())
    for place, host in enumerate(("web01", "web02", "db_1")):
        tags = {names.key("host"): names.value(host), names.key("cpu"): names.value(str(place))}
        at = [(now - place - step * 600) * 1000 for step in reversed(range(14))]
        metric.series.append(data.Series(tags, [(ms, ms % 977 / 4) for ms in at]))
    return metric


def round_of(comparison, names, recent, seed, count):
    """A round: data of its own, and questions about it."""
    generator = random.Random(seed)
    metrics = data.metrics(generator, names, seed)
    for place, metric in enumerate(metrics):
        points = data.points(generator, metric)
        if place % 3 == 2:
            comparison.put_telnet(points)
        else:
            comparison.put(points, gzipped=place % 3 == 1)
    time.sleep(FLUSH_SECONDS)
    # A point that is written again replaces the one before.
    again = metrics[0].series[0]
    time_ms, _ = again.points[0]
    again.points[0] = (time_ms, 7)
    comparison.put([
        {"metric": name, "timestamp": time_ms // 1000, "value": value, "tags": again.tags}
        for name, value in ((metrics[0].name, 7), (metrics[0].twin, 7.0))
    ])  # fmt: skip
    for number in range(count):
        text = f"seed {seed}, question {number}"
        kind = generator.random()
        if kind < 0.15:
            comparison.expression(expressions.question(generator, names, metrics), text)
        elif kind < 0.85:
            comparison.query(questions.query(generator, names, metrics), metrics, text)
        elif kind < 0.90:
            comparison.other(questions.suggest(generator, names), text)
        elif kind < 0.95:
            comparison.other(questions.lookup(generator, names, metrics), text)
        else:
            comparison.other(questions.last(generator, recent), text)


def main():
    theirs, ours = (Server(name, address) for name, address in zip(("OpenTSDB", "Marigram"), sys.argv[1:3]))
    count = int(os.environ.get("MARIGRAM_OPENTSDB_QUESTIONS", "1000"))
    seed = int(os.environ.get("MARIGRAM_OPENTSDB_SEED", "1"))
    comparison = Comparison(theirs, ours)
    names = data.Names(word())
    comparison.assign(names)
    comparison.put(fixed.points(names))
    recent = recent_metric(names)
    comparison.put(data.points(random.Random(seed), recent))
    time.sleep(FLUSH_SECONDS)
    annotations.compare(comparison, names)
    unused = comparison.fixed(names) | {f"telnet: {name}" for name in comparison.telnet(names)}
    while count > 0:
        round_of(comparison, names, recent, seed, min(count, ROUND))
        seed, count = seed + 1, count - ROUND
    counts = comparison.counts
    if counts["different"] > SHOWN_FAULTS:
        print(f"{counts['different'] - SHOWN_FAULTS} more differ")
    if len(comparison.servers) > 1:
        for name in sorted(unused):
            print(f"the difference {name!r} is listed and is none")
            counts["different"] += 1
    for name, times in sorted(comparison.purposes.items()):
        print(f"on purpose, {times} times: {name}")
    print(
        f"{counts['questions']} questions: {counts['equal']} equal, {counts['on purpose']} differ on purpose, "
        f"{counts['different']} differ"
    )
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
