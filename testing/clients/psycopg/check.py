"""What a Python program does with Marigram through psycopg 3."""

import datetime
import os

import psycopg

UTC_START = datetime.datetime(2024, 1, 1)

with psycopg.connect(
    host="127.0.0.1", port=os.environ["MARIGRAM_PORT"], user="me", dbname="main", autocommit=True
) as connection:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE py (time TIMESTAMP, dev STRING TAG, n BIGINT FIELD, x DOUBLE FIELD,"
            " ok BOOLEAN FIELD, note STRING FIELD)"
        )
        cursor.execute(
            "INSERT INTO py (time, dev, n, x, ok, note) VALUES (%s, %s, %s, %s, %s, %s)",
            (UTC_START, "a", 2**40, 1.5, True, "it's"),
        )
        cursor.executemany(
            "INSERT INTO py (time, dev, n) VALUES (%s, %s, %s)",
            [(UTC_START + datetime.timedelta(seconds=s), "b", s) for s in range(1, 11)],
        )
        with cursor.copy("COPY py (time, dev, n, x) FROM STDIN") as copy:
            for second in range(1000):
                copy.write_row((UTC_START + datetime.timedelta(hours=1, seconds=second), "c", second, 0.5))
        assert cursor.rowcount == 1000, cursor.rowcount
        with cursor.copy("COPY py (time, dev, n, x) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["timestamp", "text", "int8", "float8"])
            for second in range(1000):
                copy.write_row((UTC_START + datetime.timedelta(hours=2, seconds=second), "d", second, 0.25))
        cursor.execute("SELECT time, n, x, ok, note FROM py WHERE dev = %s", ("a",))
        assert cursor.fetchone() == (UTC_START, 2**40, 1.5, True, "it's")
        cursor.execute("SELECT count(*), sum(n), sum(x) FROM py WHERE dev IN ('c', 'd')")
        row = cursor.fetchone()
        assert (row[0], int(row[1]), row[2]) == (2000, 999000, 750.0), row
        with cursor.copy("COPY (SELECT n FROM py WHERE dev = 'b' ORDER BY n) TO STDOUT") as copy:
            assert [row[0] for row in copy.rows()] == [str(n) for n in range(1, 11)]
    # A float beside an integer stays one.
    with connection.cursor() as cursor:
        for sql, value, expected in (
            ("SELECT count(*) FROM py WHERE n = %s AND dev = 'b'", 4.5, 0),
            ("SELECT count(*) FROM py WHERE n < %s AND dev = 'b'", 4.5, 4),
            ("SELECT max(n * %s) FROM py WHERE dev = 'b'", 0.5, 5.0),
            ("SELECT 10 / %s", 4.0, 2.5),
        ):
            cursor.execute(sql, (value,))
            assert cursor.fetchone() == (expected,), sql
    with connection.cursor(binary=True) as cursor:
        cursor.execute("SELECT time, dev, n, x, ok FROM py WHERE dev = %s", ("a",))
        assert cursor.fetchone() == (UTC_START, "a", 2**40, 1.5, True)
    try:
        connection.execute("SELECT nope FROM py")
        raise AssertionError("an unknown column must be an error")
    except psycopg.errors.UndefinedColumn as error:
        assert "nope" in str(error)
    with connection.transaction():
        assert connection.execute("SELECT 1").fetchone() == (1,)
