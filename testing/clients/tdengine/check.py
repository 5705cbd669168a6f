"""TDengine's Python clients against a running Marigram: taosrest (REST) and taosws (WebSocket)."""

import os
from datetime import datetime, timezone

import taosrest
import taosws

PORT = os.environ["MARIGRAM_TDENGINE_PORT"]
URL = f"http://127.0.0.1:{PORT}"
WS = f"taosws://root:taosdata@127.0.0.1:{PORT}"
BEGIN = 1538548685000


def check(found, expected, what):
    assert found == expected, f"{what}: {found!r} instead of {expected!r}"


def rest():
    connection = taosrest.connect(url=URL, user="root", password="taosdata", timeout=30)
    connection.execute("DROP DATABASE IF EXISTS power")
    connection.execute("CREATE DATABASE power")
    connection.execute(
        "CREATE STABLE power.meters (ts TIMESTAMP, current FLOAT, voltage INT, phase FLOAT) "
        "TAGS (groupid INT, location BINARY(24))"
    )
    stored = connection.execute(
        "INSERT INTO power.d1001 USING power.meters TAGS (2, 'San Francisco') "
        "VALUES (%d, 10.3, 219, 0.31) (%d, 12.6, 218, 0.33) "
        "power.d1002 USING power.meters TAGS (3, 'Palo Alto') VALUES (%d, 10.3, 218, 0.25)"
        % (BEGIN, BEGIN + 10000, BEGIN)
    )
    check(stored, 3, "rows of INSERT")
    result = connection.query("SELECT ts, current, voltage FROM power.d1001")
    check([field["name"] for field in result.fields], ["ts", "current", "voltage"], "names")
    check([field["type"] for field in result.fields], ["TIMESTAMP", "FLOAT", "INT"], "types")
    check(result.rows, 2, "rows")
    first = datetime.fromtimestamp(BEGIN / 1000, timezone.utc).astimezone().replace(tzinfo=None)
    check(result.data[0], [first, 10.3, 219], "first row")

    cursor = connection.cursor()
    cursor.execute("SELECT groupid, avg(voltage) FROM power.meters GROUP BY groupid ORDER BY groupid")
    check(cursor.fetchall(), [[2, 218.5], [3, 218.0]], "groups")
    cursor.execute(
        "SELECT _wstart, count(*), max(current) FROM power.meters "
        f"WHERE ts >= {BEGIN} AND ts < {BEGIN + 20000} INTERVAL(10s)"
    )
    check([row[1:] for row in cursor.fetchall()], [[2, 10.3], [1, 12.6]], "windows")
    try:
        connection.query("SELECT * FROM power.nothing")
    except taosrest.errors.ConnectError as error:
        check(error.errno, 0x2603, "number of the error")
    else:
        raise AssertionError("a table that is not there was read")
    named = taosrest.connect(url=URL, user="root", password="taosdata", database="power")
    check(named.query("SELECT count(*) FROM meters").data, [[3]], "database of the connection")


def websocket():
    connection = taosws.connect(f"{WS}/power")
    result = connection.query("SELECT ts, current, voltage, location FROM meters ORDER BY ts, voltage")
    check([field.name() for field in result.fields], ["ts", "current", "voltage", "location"], "names")
    rows = list(result)
    check(len(rows), 3, "rows")
    check([(round(row[1], 4), row[2], row[3]) for row in rows][0], (10.3, 218, "Palo Alto"), "row")
    stored = connection.execute(
        f"INSERT INTO d1003 USING meters TAGS (4, 'Zürich') VALUES ({BEGIN}, 1.5, 220, NULL)"
    )
    check(stored, 1, "rows of INSERT")
    rows = list(connection.query("SELECT tbname, phase, location FROM meters WHERE groupid = 4"))
    check(rows, [("d1003", None, "Zürich")], "NULL and other letters")
    check(list(connection.query("SELECT * FROM meters WHERE voltage > 1000")), [], "no rows")
    try:
        connection.query("SELECT * FROM nothing")
    except Exception as error:  # taosws has an error of its own for each stage.
        assert "2603" in str(error), error
    else:
        raise AssertionError("a table that is not there was read")

    rows = ", ".join(f"({BEGIN + 1000 * number}, {number}, {number % 7}, 0)" for number in range(20000))
    check(connection.execute(f"INSERT INTO d1004 USING meters TAGS (5, 'x') VALUES {rows}"), 20000, "many rows")
    found = [row[0] for row in connection.query("SELECT voltage FROM d1004 ORDER BY ts")]
    check(found, [number % 7 for number in range(20000)], "many rows")

    cursor = connection.cursor()
    cursor.execute("SHOW DATABASES")
    assert "power" in [row[0] for row in cursor.fetchall()]
    connection.execute("CREATE DATABASE IF NOT EXISTS other")
    connection.execute("USE other")
    connection.execute("CREATE TABLE t (ts TIMESTAMP, v BIGINT UNSIGNED, b BOOL, s NCHAR(8))")
    connection.execute(f"INSERT INTO t VALUES ({BEGIN}, 18446744073709551615, true, '日本')")
    row = list(connection.query("SELECT v, b, s FROM t"))[0]
    check(tuple(row), (18446744073709551615, True, "日本"), "types")


def prepared():
    connection = taosws.connect(f"{WS}/power")
    statement = connection.statement()
    statement.prepare("INSERT INTO ? USING meters TAGS (?, ?) VALUES (?, ?, ?, ?)")
    statement.set_tbname("d2001")
    statement.set_tags([taosws.int_to_tag(7), taosws.varchar_to_tag("it's")])
    statement.bind_param(
        [
            taosws.millis_timestamps_to_column([BEGIN, BEGIN + 1000]),
            taosws.floats_to_column([0.5, None]),
            taosws.ints_to_column([220, 221]),
            taosws.floats_to_column([0.1, 0.2]),
        ]
    )
    statement.add_batch()
    check(statement.execute(), 2, "rows of a prepared statement")
    rows = list(connection.query("SELECT current, voltage, location FROM d2001 ORDER BY ts"))
    check(rows, [(0.5, 220, "it's"), (None, 221, "it's")], "rows of a prepared statement")


def second_prepared():
    connection = taosws.connect(f"{WS}/power")
    statement = connection.stmt2_statement()
    statement.prepare("INSERT INTO ? USING meters TAGS (?, ?) VALUES (?, ?, ?, ?)")
    columns = [
        taosws.millis_timestamps_to_column([BEGIN, BEGIN + 1000]),
        taosws.floats_to_column([0.5, None]),
        taosws.ints_to_column([220, 221]),
        taosws.floats_to_column([0.1, 0.2]),
    ]
    tables = [
        taosws.stmt2_bind_param_view(
            table_name=name,
            tags=[taosws.int_to_tag(8), taosws.varchar_to_tag(name)],
            columns=columns,
        )
        for name in ("d3001", "d3002")
    ]
    statement.bind(tables)
    check(statement.execute(), 4, "rows of two tables")
    statement.prepare("SELECT tbname, voltage FROM meters WHERE groupid = ? AND voltage > ? ORDER BY tbname")
    statement.bind(
        [
            taosws.stmt2_bind_param_view(
                table_name="",
                tags=None,
                columns=[taosws.ints_to_column([8]), taosws.ints_to_column([220])],
            )
        ]
    )
    statement.execute()
    rows = list(statement.result_set())
    check(rows, [("d3001", 221), ("d3002", 221)], "rows of a prepared query")


def lines():
    connection = taosws.connect(f"{WS}/power")
    connection.schemaless_insert(
        lines=["cpu,host=a idle=1.5,n=3i64 1000", "cpu,host=b idle=2.5 1000"],
        protocol=taosws.PySchemalessProtocol.Line,
        precision=taosws.PySchemalessPrecision.Millisecond,
        ttl=0,
        req_id=1,
    )
    rows = list(connection.query("SELECT host, idle FROM cpu ORDER BY host"))
    check(rows, [("a", 1.5), ("b", 2.5)], "lines")


rest()
websocket()
prepared()
second_prepared()
lines()
print("ok")
