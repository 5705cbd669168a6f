"""Requests of InfluxDB's HTTP API 1.x, in the order in which they are sent to an empty server.

Each is (method, path, parameters, headers, body). What one request stores, the next ones read.
"""

JSON = {}
CSV = {"Accept": "application/csv"}
MSGPACK = {"Accept": "application/x-msgpack"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def query(q, method="POST", headers=JSON, body=b"", **parameters):
    return (method, "/query", {"q": q, **parameters}, headers, body)


def write(lines, headers=JSON, **parameters):
    body = lines if isinstance(lines, bytes) else lines.encode()
    return ("POST", "/write", parameters, headers, body)


def gzipped(lines):
    import gzip

    return gzip.compress(lines.encode(), mtime=0)


def multipart(fields, files=()):
    edge = "edge7d3f"
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    ] + [
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="q.txt"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n{value}\r\n"
        for name, value in files
    ]
    body = "".join(parts) + f"--{edge}--\r\n"
    headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    return ("POST", "/query", {"db": "d"}, headers, body.encode())


ROWS = """cpu,host=a,zone=x v=1.5,i=7i,b=true,s="one" 1000000000
cpu,host=a,zone=x v=2,i=8i,b=false,s="two <&> \\"q\\" é" 2000000000
cpu,host=b,zone=y v=3e22,i=-9i 3000000000
cpu,host=b,zone=y v=3e-7 4000000000
mem used=9007199254740993i,free=0.1 1500000123
"""

REQUESTS = [
    # /ping
    ("GET", "/ping", {}, JSON, b""),
    ("HEAD", "/ping", {}, JSON, b""),
    ("GET", "/ping", {"wait_for_leader": "1s"}, JSON, b""),
    # Before anything is there
    query("SHOW DATABASES", method="GET"),
    query("SHOW DATABASES", epoch="ns"),
    ("GET", "/query", {}, JSON, b""),
    ("GET", "/query", {"q": ""}, JSON, b""),
    ("GET", "/query", {"q": "  "}, JSON, b""),
    ("GET", "/query", {"q": " ; ;"}, JSON, b""),
    ("GET", "/query", {"q": "SELECT"}, JSON, b""),
    ("GET", "/query", {"q": "SELECT"}, CSV, b""),
    ("GET", "/query", {"q": "SELECT"}, MSGPACK, b""),
    ("GET", "/query", {"q": "SELECT", "pretty": "true"}, JSON, b""),
    ("GET", "/query", {"q": 'SELECT "<&>" FRO'}, JSON, b""),
    query("SELECT v FROM cpu"),
    query("SELECT v FROM cpu", db="nowhere"),
    query("SHOW MEASUREMENTS"),
    query("SHOW RETENTION POLICIES"),
    query("SHOW RETENTION POLICIES", db="nowhere"),
    query("SHOW RETENTION POLICIES ON nowhere"),
    write("cpu v=1 1"),
    write("cpu v=1 1", db=""),
    write("cpu v=1 1", db="nowhere"),
    # Databases
    query("CREATE DATABASE d"),
    query("CREATE DATABASE d"),
    query('CREATE DATABASE "odd name"'),
    query("CREATE DATABASE e WITH DURATION 3d REPLICATION 1 SHARD DURATION 2h NAME three"),
    query("CREATE DATABASE e WITH DURATION 4d"),
    query("CREATE DATABASE f WITH DURATION 1s"),
    query("CREATE DATABASE f WITH DURATION 2h SHARD DURATION 3h"),
    query("SHOW DATABASES"),
    query("SHOW DATABASES", headers=CSV),
    query("SHOW DATABASES", headers=MSGPACK),
    query("SHOW RETENTION POLICIES ON d"),
    query("SHOW RETENTION POLICIES ON e"),
    query("SHOW RETENTION POLICIES", db="d"),
    query("DROP DATABASE nowhere"),
    query('DROP DATABASE "odd name"'),
    # Retention policies
    query("CREATE RETENTION POLICY week ON d DURATION 1w REPLICATION 1"),
    query("CREATE RETENTION POLICY week ON d DURATION 1w REPLICATION 1"),
    query("CREATE RETENTION POLICY week ON d DURATION 2w REPLICATION 1"),
    query("CREATE RETENTION POLICY p ON nowhere DURATION 1w REPLICATION 1"),
    query("CREATE RETENTION POLICY p ON d DURATION 1m REPLICATION 1"),
    query("CREATE RETENTION POLICY p ON d DURATION 1d REPLICATION 0"),
    query("CREATE RETENTION POLICY p ON d DURATION 1d"),
    query("CREATE RETENTION POLICY year ON d DURATION 52w REPLICATION 2 SHARD DURATION 30m DEFAULT"),
    query("SHOW RETENTION POLICIES ON d"),
    query("ALTER RETENTION POLICY year ON d DURATION 2h SHARD DURATION 1h"),
    query("ALTER RETENTION POLICY year ON d SHARD DURATION 3h"),
    query("ALTER RETENTION POLICY nothing ON d DURATION 2h"),
    query("ALTER RETENTION POLICY year ON nowhere DURATION 2h"),
    query("ALTER RETENTION POLICY year ON d DURATION 1s"),
    query("ALTER RETENTION POLICY autogen ON d DEFAULT"),
    query("SHOW RETENTION POLICIES ON d"),
    query("DROP RETENTION POLICY year ON d"),
    query("DROP RETENTION POLICY year ON d"),
    query("DROP RETENTION POLICY year ON nowhere"),
    query("SHOW RETENTION POLICIES ON d"),
    # Writing
    write(ROWS, db="d"),
    write(gzipped("cpu,host=c v=4 5\n"), headers={"Content-Encoding": "gzip"}, db="d", precision="s"),
    write("cpu,host=c v=4 5", headers={"Content-Encoding": "gzip"}, db="d"),
    write("units v=1 1", db="d", precision="n"),
    write("units v=2 1", db="d", precision="u"),
    write("units v=3 1", db="d", precision="ms"),
    write("units v=4 1", db="d", precision="s"),
    write("units v=5 1", db="d", precision="m"),
    write("units v=6 1", db="d", precision="h"),
    write("", db="d"),
    write("\n\n# comment\n", db="d"),
    write("m v=1 1", db="d", consistency="all"),
    write("m v=1 1", db="d", consistency="most"),
    write("m v=1 1", db="d", rp="nothing"),
    write("late v=1 1", db="d", rp="week"),
    write("m v=1 1", db="d", u="somebody", p="secret"),
    write('cpu v="text" 6000000000', db="d"),
    write('cpu v=5 6000000000\ncpu v="text" 7000000000\ncpu v="text" 8000000000', db="d"),
    write("cpu i=1.5 7000000000", db="d"),
    write("cpu b=1i 7000000000", db="d"),
    write("cpu", db="d"),
    write("cpu,host v=1", db="d"),
    write("cpu,host= v=1", db="d"),
    write("cpu,=a v=1", db="d"),
    write("cpu,host=a,host=b v=1", db="d"),
    write("cpu v=", db="d"),
    write("cpu =1", db="d"),
    write("cpu v=abc", db="d"),
    write("cpu v=1x", db="d"),
    write("cpu v=1.2i", db="d"),
    write("cpu v=9223372036854775808i", db="d"),
    write("cpu v=1e999", db="d"),
    write("cpu v=NaN", db="d"),
    write("cpu v=tru", db="d"),
    write('cpu v="open', db="d"),
    write("cpu v=1 12x", db="d"),
    write("cpu v=1 1 1", db="d"),
    write("cpu v=1 99999999999999999999", db="d"),
    write("far v=1 -9223372036854775808", db="d"),
    write(",host=a v=1", db="d"),
    write("cpu time=1 1", db="d"),
    write("cpu,time=x v=1 1", db="d"),
    write("twice v=1,v=2 9000000000", db="d"),
    write("good v=1 1\nbad\nworse v=\ngood v=2 2", db="d"),
    write("unsigned,host=a v=1u", db="d"),
    ("PUT", "/write", {"db": "d"}, JSON, b"cpu v=1"),
    ("GET", "/write", {"db": "d"}, JSON, b""),
    # Forms of the request
    query("SELECT v FROM cpu", method="GET", db="d"),
    ("POST", "/query", {}, FORM, b"db=d&q=SELECT+i+FROM+cpu"),
    ("POST", "/query", {"q": "SELECT b FROM cpu"}, FORM, b"db=d&q=SELECT+i+FROM+cpu"),
    ("POST", "/query", {"db": "d"}, FORM, b"q=SELECT+i+FROM+cpu&epoch=s"),
    ("POST", "/query", {"db": "d"}, {"Content-Type": "application/vnd.influxql"}, b"SELECT i FROM cpu"),
    ("POST", "/query", {"db": "d"}, {"Content-Type": "text/plain"}, b"SELECT i FROM cpu"),
    multipart([("q", "SELECT i FROM cpu")]),
    multipart([], files=[("q", "SELECT i FROM cpu; SELECT b FROM cpu")]),
    multipart([("db", "d")]),
    # Forms of the answer
    query("SELECT * FROM cpu", db="d"),
    query("SELECT * FROM cpu", db="d", headers=CSV),
    query("SELECT * FROM cpu", db="d", headers={"Accept": "text/csv"}),
    query("SELECT * FROM cpu", db="d", headers=MSGPACK),
    query("SELECT * FROM cpu", db="d", headers={"Accept": "application/json"}),
    query("SELECT * FROM cpu", db="d", headers={"Accept": "text/html, */*"}),
    query("SELECT * FROM cpu", db="d", pretty="true"),
    query("SELECT * FROM mem", db="d", epoch="n"),
    query("SELECT * FROM mem", db="d", epoch="ns"),
    query("SELECT * FROM mem", db="d", epoch="u"),
    query("SELECT * FROM mem", db="d", epoch="µ"),
    query("SELECT * FROM mem", db="d", epoch="ms"),
    query("SELECT * FROM mem", db="d", epoch="s"),
    query("SELECT * FROM mem", db="d", epoch="m"),
    query("SELECT * FROM mem", db="d", epoch="h"),
    query("SELECT * FROM mem", db="d", epoch="x"),
    query("SELECT * FROM mem", db="d", epoch="s", headers=CSV),
    query("SELECT * FROM mem", db="d", epoch="s", headers=MSGPACK),
    query("SELECT v FROM cpu GROUP BY host, zone", db="d"),
    query("SELECT v FROM cpu GROUP BY host, zone", db="d", headers=CSV),
    query("SELECT v FROM cpu GROUP BY host, zone", db="d", headers=MSGPACK),
    query("SELECT v FROM cpu GROUP BY host, zone", db="d", pretty="true"),
    query("SELECT v FROM cpu; SELECT nothing FROM cpu; SELECT used FROM mem", db="d"),
    query("SELECT v FROM cpu; SELECT nothing FROM cpu; SELECT used FROM mem", db="d", headers=CSV),
    query("SELECT v FROM cpu; SELECT nothing FROM cpu; SELECT used FROM mem", db="d", headers=MSGPACK),
    query("SELECT v FROM cpu; SELECT v FROM cpu", db="d", pretty="true"),
    query("SELECT v FROM nothing", db="d"),
    query("SELECT v FROM nothing", db="d", headers=CSV),
    query("SELECT v FROM nothing", db="d", headers=MSGPACK),
    query("SELECT v FROM nothing", db="d", pretty="true"),
    query("SELECT foo(v) FROM cpu", db="d"),
    query("SELECT foo(v) FROM cpu", db="d", headers=CSV),
    query("SELECT foo(v) FROM cpu", db="d", headers=MSGPACK),
    query("SELECT v FROM cpu; SELECT foo(v) FROM cpu; SELECT v FROM cpu", db="d"),
    # Chunks
    query("SELECT v FROM cpu", db="d", chunked="true", chunk_size="2"),
    query("SELECT v FROM cpu", db="d", chunked="true", chunk_size="2", headers=CSV),
    query("SELECT v FROM cpu", db="d", chunked="true", chunk_size="2", headers=MSGPACK),
    query("SELECT v FROM cpu", db="d", chunked="true", chunk_size="2", pretty="true"),
    query("SELECT v FROM cpu GROUP BY host", db="d", chunked="true", chunk_size="1"),
    query("SELECT v FROM cpu GROUP BY host", db="d", chunked="true"),
    query("SELECT v FROM cpu; SELECT v FROM nothing; SELECT used FROM mem", db="d", chunked="true"),
    query("SELECT v FROM nothing; SELECT foo(v) FROM cpu", db="d", chunked="true"),
    query("SELECT v FROM cpu", db="d", chunked="true", chunk_size="x"),
    query("SELECT v FROM cpu", db="d", chunked="true", chunk_size="-1"),
    query("SHOW DATABASES", chunked="true", chunk_size="1"),
    # Parameters
    query("SELECT v FROM cpu WHERE host = $h", db="d", params='{"h":"a"}'),
    query("SELECT v FROM cpu WHERE v > $x", db="d", params='{"x":1.75}'),
    query("SELECT v FROM cpu WHERE host = $h", db="d", params="{"),
    query("SELECT v FROM cpu WHERE host = $h", db="d", params="[1]"),
    query("SELECT v FROM cpu WHERE host = $h", db="d", params='{"h":1e3}'),
    query("SELECT v FROM cpu WHERE host = $h", db="d"),
    # Retention policies in names
    query("SELECT * FROM week.late", db="d"),
    query("SELECT * FROM late", db="d"),
    query("SELECT * FROM late", db="d", rp="week"),
    query("SELECT * FROM d.autogen.mem", db=""),
    query("SELECT * FROM nothing.mem", db="d"),
    # By GET, what changes something
    query("CREATE DATABASE got", method="GET"),
    query("SELECT v INTO copied FROM cpu", method="GET", db="d"),
    # Users and the rest
    query("SHOW USERS"),
    query("SHOW GRANTS FOR nobody"),
    query("SHOW SUBSCRIPTIONS"),
    query("SHOW CONTINUOUS QUERIES"),
    query("SHOW SHARDS"),
    query("SHOW SHARD GROUPS"),
    query("SHOW QUERIES"),
    query("SHOW DIAGNOSTICS"),
    query("SHOW DIAGNOSTICS FOR 'build'"),
    query("SHOW STATS FOR 'runtime'"),
    query("SHOW STATS FOR 'nothing'"),
    query("KILL QUERY 99999"),
    query("KILL QUERY 1 ON \"elsewhere\""),
    query("DROP SHARD 99999"),
    ("POST", "/query", {"q": "SHOW DATABASES", "u": "somebody", "p": "secret"}, JSON, b""),
    ("POST", "/query", {"q": "SHOW DATABASES"}, {"Authorization": "Basic c29tZWJvZHk6c2VjcmV0"}, b""),
    ("POST", "/query", {"q": "SHOW DATABASES"}, {"Authorization": "Token somebody:secret"}, b""),
    ("POST", "/query", {"q": "SHOW DATABASES"}, {"Authorization": "Bearer nonsense"}, b""),
    ("PUT", "/query", {"q": "SHOW DATABASES"}, JSON, b""),
    query("DROP DATABASE d; DROP DATABASE e; SHOW DATABASES"),
]
