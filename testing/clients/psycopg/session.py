"""What a Python program keeps in a session: statements, cursors and arrays, through psycopg 3."""

import datetime
import os
from decimal import Decimal

import psycopg

with psycopg.connect(
    host="127.0.0.1", port=os.environ["MARIGRAM_PORT"], user="me", dbname="main", autocommit=True
) as connection:

    def fails(sql: str, sqlstate: str) -> None:
        try:
            connection.execute(sql)
        except psycopg.Error as error:
            assert error.sqlstate == sqlstate, (sql, error.sqlstate)
        else:
            raise AssertionError(f"{sql} must be an error")

    def one(sql: str, *parameters) -> object:
        return connection.execute(sql, parameters or None).fetchone()[0]

    connection.execute("CREATE TABLE numbers (time TIMESTAMP, dev STRING TAG, n BIGINT FIELD)")
    connection.execute(
        "INSERT INTO numbers SELECT to_timestamp_nanos(i), 'd' || (i % 3), i FROM generate_series(1, 5000) AS g(i)"
    )

    # Statements that SQL prepares.
    connection.execute("PREPARE above (bigint) AS SELECT count(*) FROM numbers WHERE n > $1")
    assert one("EXECUTE above(4990)") == 10
    assert one("EXECUTE above('4000' )") == 1000
    fails("PREPARE above AS SELECT 1", "42P05")
    fails("EXECUTE above", "42601")
    fails("EXECUTE above('x')", "22P02")
    connection.execute("DEALLOCATE above")
    fails("EXECUTE above(1)", "26000")
    connection.execute("PREPARE one AS SELECT 1")
    connection.execute("DISCARD ALL")
    fails("EXECUTE one", "26000")

    # Values whose types Python knows better than the statement.
    for binary in ("%s", "%b", "%t"):
        sql = f"SELECT count(*) FROM numbers WHERE time >= to_timestamp_nanos(3000000000) - {binary}"
        assert one(sql, datetime.timedelta(seconds=3)) == 5000, binary
        assert one(sql, datetime.timedelta(seconds=1)) == 0, binary
        assert one(f"SELECT count(*) FROM numbers WHERE n > {binary}", Decimal("4990.5")) == 10, binary
        sql = f"SELECT count(*) FROM generate_series('2024-01-01'::timestamp, '2024-01-02', {binary})"
        assert one(sql, datetime.timedelta(hours=6)) == 5, binary
    sql = "SELECT count(*) FROM numbers WHERE time >= to_timestamp_nanos(0) - %t"
    assert one(sql, -datetime.timedelta(days=1, microseconds=1)) == 0

    # Parameters without a column beside them have the types that the driver declares.
    noon = datetime.datetime(2026, 1, 2, 12)
    day = datetime.timedelta(days=1)
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    for form in ("s", "b", "t"):
        for sql, parameters, expected in [
            ("SELECT % < %", (9, 10), True),
            ("SELECT % BETWEEN % AND %", (9, 1, 10), True),
            ("SELECT % IN (%, %)", (9, 10, 9), True),
            ("SELECT % + %", (1, 2), 3),
            ("SELECT mod(%, %)", (7, 3), 1),
            ("SELECT % AND %", (True, False), False),
            ("SELECT % - %", (noon, noon - day), day),
            ("SELECT % - interval '1 day'", (noon,), noon - day),
            ("SELECT % + %", (noon, day), noon + day),
            ("SELECT %", (datetime.time(1, 2, 3),), datetime.time(1, 2, 3)),
            ("SELECT %", (noon.replace(tzinfo=berlin),), noon.replace(tzinfo=berlin)),
            ("SELECT sum(x) FROM (SELECT % AS x UNION ALL SELECT %) AS s", (10, 9), 19),
            ("SELECT x FROM (VALUES (%), (%)) AS v(x) ORDER BY x", (10, 9), 9),
            ("SELECT (% + %) * 2", (Decimal("1.25"), Decimal("1")), Decimal("4.5")),
            ("SELECT % < %", (Decimal("1e-11"), Decimal("2e-11")), True),
            ("SELECT count(*) FROM numbers WHERE n * 2 > %", (Decimal("9981.5"),), 10),
        ]:
            # A driver's `%%` is an operator, and there is none here.
            found = connection.execute(sql.replace("%", "%" + form), parameters).fetchone()[0]
            assert found == expected, (form, sql, found)
    # One parameter beside a column and beside an interval is one time, in any zone.
    connection.execute("SET TIME ZONE 'Asia/Tokyo'")
    first = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    sql = "SELECT count(*) FROM numbers WHERE time >= %(t)s AND time < %(t)s + interval '1 day'"
    found = connection.execute(sql, {"t": first}).fetchone()[0]
    assert found == 5000, found
    connection.execute("SET TIME ZONE 'UTC'")

    # Cursors, of SQL and of the driver.
    fails("DECLARE c CURSOR FOR SELECT 1", "25P01")
    with connection.transaction():
        connection.execute("DECLARE c CURSOR FOR SELECT n FROM numbers ORDER BY n")
        assert connection.execute("FETCH 2 FROM c").fetchall() == [(1,), (2,)]
        assert connection.execute("MOVE 2 FROM c").statusmessage == "MOVE 2"
        assert connection.execute("FETCH c").fetchall() == [(5,)]
        # What is written meanwhile is not in it.
        connection.execute("INSERT INTO numbers VALUES (to_timestamp_nanos(9999), 'd9', 9999)")
        assert len(connection.execute("FETCH ALL FROM c").fetchall()) == 4995
        assert connection.execute("FETCH c").fetchall() == []
        connection.execute("CLOSE c")
    with connection.transaction():
        connection.execute("DECLARE held CURSOR WITH HOLD FOR SELECT 1 AS a UNION ALL SELECT 2")
        connection.execute("DECLARE gone CURSOR FOR SELECT 1")
    assert len(connection.execute("FETCH ALL FROM held").fetchall()) == 2
    fails("FETCH gone", "34000")
    connection.execute("CLOSE ALL")
    fails("FETCH held", "34000")
    for binary in (False, True):
        with connection.transaction(), connection.cursor("driver", binary=binary) as cursor:
            cursor.itersize = 1000
            cursor.execute("SELECT n, dev FROM numbers WHERE n <= %s ORDER BY n", (2500,))
            assert cursor.fetchmany(2) == [(1, "d1"), (2, "d2")]
            assert [row[0] for row in cursor] == list(range(3, 2501))
            assert cursor.fetchall() == []

    # Arrays.
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            for sql, expected in (
                ("SELECT ARRAY['a', NULL, 'b c', '', 'null', 'q\"\\']", ["a", None, "b c", "", "null", 'q"\\']),
                ("SELECT ARRAY[1, 2, NULL]", [1, 2, None]),
                ("SELECT ARRAY[1.5::float8, -2.5]", [1.5, -2.5]),
                ("SELECT ARRAY[true, NULL]", [True, None]),
            ):
                assert cursor.execute(sql).fetchone()[0] == expected, (sql, binary)
    count = "SELECT count(*) FROM numbers WHERE n <= 5000 AND "
    assert one(count + "n = ANY(%s)", [1, 2, 2**40]) == 2
    assert one(count + "dev = ANY(%s)", ["d1", "d2", "nothing"]) == 3334
    assert one(count + "n = ANY(%s)", []) == 0
    assert one("SELECT 'b' = ANY(%s)", ["a", "b"]) is True
    fails("SELECT ARRAY[[1, 2], [3, 4]]", "0A000")

    # Columns have PostgreSQL's names.
    cursor = connection.execute("SELECT count(*), max(n), n::text, 1, 2 AS x, 3 AS x FROM numbers GROUP BY n LIMIT 1")
    names = [column.name for column in cursor.description]
    assert names == ["count", "max", "n", "?column?", "x", "x"], names

# Settings: SET LOCAL lasts as long as its transaction, and RESET gives back what the connection began with.
with psycopg.connect(
    host="127.0.0.1",
    port=os.environ["MARIGRAM_PORT"],
    user="me",
    dbname="main",
    autocommit=True,
    options="-c timezone=Europe/Paris",
) as connection:

    def zone() -> str:
        return connection.execute("SHOW timezone").fetchone()[0]

    with connection.transaction():
        connection.execute("SET LOCAL timezone = 'Asia/Tokyo'")
        assert zone() == "Asia/Tokyo"
    assert zone() == "Europe/Paris", zone()
    connection.execute("SET LOCAL timezone = 'Asia/Tokyo'")
    assert zone() == "Europe/Paris", zone()
    connection.execute("SET timezone = 'Asia/Tokyo'")
    connection.execute("RESET timezone")
    assert zone() == "Europe/Paris", zone()
    connection.execute("SET TIME ZONE 'Asia/Tokyo'")
    connection.execute("SET timezone TO DEFAULT")
    assert zone() == "Europe/Paris", zone()
    # DISCARD ALL, as connection poolers send it, gives back what the connection began with.
    connection.execute("SET timezone = 'Asia/Tokyo'")
    connection.execute("SET default_transaction_read_only = on")
    connection.execute("DISCARD ALL")
    assert zone() == "Europe/Paris", zone()
    assert connection.execute("SHOW default_transaction_read_only").fetchone()[0] == "off"
    connection.execute("CREATE TABLE kept (time TIMESTAMP, v DOUBLE)")

# Read-only transactions change nothing.
with psycopg.connect(
    host="127.0.0.1", port=os.environ["MARIGRAM_PORT"], user="me", dbname="main"
) as connection:
    connection.read_only = True
    for sql in ["INSERT INTO kept VALUES ('2026-01-01', 1)", "DROP TABLE kept"]:
        try:
            connection.execute(sql)
        except psycopg.errors.ReadOnlySqlTransaction:
            connection.rollback()
        else:
            raise AssertionError(f"{sql} must be refused")
    connection.read_only = False
    connection.execute("INSERT INTO kept VALUES ('2026-01-01', 1)")
    assert connection.execute("SELECT count(*) FROM kept").fetchone()[0] == 1
