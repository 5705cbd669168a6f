"""Sends the requests of table.py to InfluxDB and to Marigram, and compares what they answer: status,
type, error header and body.

    compare.py INFLUXDB MARIGRAM      both addresses as host:port
    compare.py --show ADDRESS         prints one server's answers

Differences that are on purpose are in DIFFERENCES, with the reason. One that is not listed fails, and so
does one that is listed and is none.
"""

import http.client
import re
import sys
import urllib.parse

from table import REQUESTS

COMPARED = ("content-type", "x-influxdb-error")

# The beginning of a request as `name` prints it, and why the answers differ.
DIFFERENCES = [
    ("GET /ping", "our 204 has no content type"),
    ("HEAD /ping", "our 204 has no content type"),
    ("POST /write?db=nowhere", "a write creates its database, unless the server is told not to"),
    ("SHOW DATABASES", "databases are listed by name, and main among them once it holds something"),
    ("DROP DATABASE d; DROP DATABASE e; SHOW DATABASES", "as SHOW DATABASES"),
    ("GET CREATE DATABASE", "GET only reads"),
    ("GET SELECT v INTO", "GET only reads"),
    ("PUT", "methods that are not taken are answered as JSON"),
    ("GET /write", "methods that are not taken are answered as JSON"),
    ("gzip", "our words"),
    ("fields twice", "a line that names a field twice is refused"),
    ("earliest time", "every time that 64 bits hold is stored"),
    ("unsigned", "1u is stored, as in InfluxDB 1.8"),
    ("time as a name", "our words"),
    ("SHOW CONTINUOUS QUERIES", "as SHOW DATABASES"),
    ("SHOW SHARDS", "there are no shard groups"),
    ("SHOW SHARD GROUPS", "there are no shard groups"),
    ("SHOW QUERIES", "numbers and times of its own"),
    ("SHOW DIAGNOSTICS", "figures of its own"),
    ("SHOW STATS FOR 'runtime'", "figures of its own"),
    ("vnd.influxql", "a body of this type is a statement, as in InfluxDB 2"),
    ("params 1e3", "a float with an exponent is taken"),
    ("multipart without q", "our words"),
]


def ask(address, request):
    method, path, parameters, headers, body = request
    connection = http.client.HTTPConnection(address, timeout=60)
    target = path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
    connection.request(method, target, body=body, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    shown = {name: answer.headers[name] for name in COMPARED if answer.headers[name]}
    if answer.status == 204:
        shown = {}
    return answer.status, shown, content


def name(request):
    method, path, parameters, headers, body = request
    query = parameters.get("q", "")
    given = urllib.parse.urlencode(parameters, quote_via=lambda text, *_: text)
    target = f"{path}?{given}" if given else path
    rest = f" {headers}" if headers else ""
    text = f" {body!r}" if body else ""
    return f"{method} {target}{rest}{text}", query


def reason(request):
    method, path, parameters, headers, body = request
    title, query = name(request)
    marks = {
        "gzip": path == "/write" and headers.get("Content-Encoding") == "gzip",
        "fields twice": b"v=1,v=2" in body,
        "earliest time": b"-9223372036854775808" in body,
        "unsigned": b"v=1u" in body,
        "time as a name": b"time=" in body,
        "vnd.influxql": "vnd.influxql" in headers.get("Content-Type", ""),
        "params 1e3": "1e3" in parameters.get("params", ""),
    }
    for start, why in DIFFERENCES:
        if start in marks:
            found = marks[start]
        elif start.startswith("GET ") and path == "/query":
            found = method == "GET" and query.startswith(start[4:])
        else:
            found = query.startswith(start) or title.startswith(start)
        if found:
            return why
    return None


def show(answer):
    status, headers, content = answer
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.hex()
    return f"{status} {headers}\n{text}".rstrip("\n")


def tags_sorted(content):
    """MessagePack of InfluxDB has tags in any order."""
    return re.sub(rb"(\xa4host.{1,2}?)(\xa4zone.{1,2}?)|(\xa4zone.{1,2}?)(\xa4host.{1,2}?)", b"", content)


def main():
    if sys.argv[1] == "--show":
        for request in REQUESTS:
            print(f"> {name(request)[0]}\n{show(ask(sys.argv[2], request))}\n")
        return 0
    failed = used = 0
    for request in REQUESTS:
        theirs, ours = (ask(address, request) for address in sys.argv[1:3])
        why = reason(request)
        is_packed = theirs[1].get("content-type") == "application/x-msgpack"
        both = [(status, headers, tags_sorted(body) if is_packed else body)
                for status, headers, body in (theirs, ours)]
        if both[0] == both[1]:
            continue
        if why:
            used += 1
            continue
        failed += 1
        print(f"> {name(request)[0]}\n< InfluxDB\n{show(theirs)}\n< Marigram\n{show(ours)}\n")
    print(f"{len(REQUESTS)} requests: {failed} differ, {used} differ on purpose")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
