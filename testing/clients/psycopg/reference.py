"""Reference tables and transactions, as psycopg and its users use them."""

import os
import threading
import time
from datetime import date
from decimal import Decimal
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.types.json import Json, Jsonb

address = {"host": "127.0.0.1", "port": os.environ["MARIGRAM_PORT"], "user": "me", "dbname": "main"}


def value(connection, sql, parameters=None):
    return connection.execute(sql, parameters).fetchone()[0]


with psycopg.connect(**address, autocommit=True) as connection:
    connection.execute("CREATE TABLE depots (id SERIAL PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
    connection.execute(
        "CREATE TABLE vans (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, depot INT REFERENCES depots (id),"
        " load NUMERIC(6, 2), bought DATE, info JSONB, is_new BOOLEAN DEFAULT true, raw BYTEA)"
    )
    for name in ("north", "south"):
        found = value(connection, "INSERT INTO depots (name) VALUES (%s) RETURNING id", (name,))
        assert found in (1, 2), found
    row = (1, Decimal("12.50"), date(2024, 2, 29), '{"a": 1}', b"\x00\xff")
    for form in ("%s", "%t", "%b"):
        places = ", ".join([form] * 5)
        sql = f"INSERT INTO vans (depot, load, bought, info, raw) VALUES ({places}) RETURNING depot, load, bought, info, raw"
        returned = connection.execute(sql, row, prepare=True).fetchone()
        assert returned == (*row[:3], {"a": 1}, row[4]), (form, returned)
    assert connection.execute("SELECT is_new, count(*) FROM vans GROUP BY 1").fetchall() == [(True, 3)]

    for sql, what, constraint in [
        ("INSERT INTO depots (name) VALUES ('north')", errors.UniqueViolation, "depots_name_key"),
        ("INSERT INTO vans (depot) VALUES (77)", errors.ForeignKeyViolation, "vans_depot_fkey"),
        ("INSERT INTO depots (name) VALUES (NULL)", errors.NotNullViolation, "name"),
        ("INSERT INTO vans (id, depot) VALUES (5, 1)", errors.GeneratedAlways, "id"),
        ("DELETE FROM depots WHERE id = 1", errors.ForeignKeyViolation, "vans_depot_fkey"),
    ]:
        try:
            connection.execute(sql)
        except what as error:
            assert constraint in str(error), error
            names = (error.diag.constraint_name, error.diag.column_name)
            assert what is errors.GeneratedAlways or constraint in names, names
            assert what is errors.GeneratedAlways or error.diag.table_name in ("depots", "vans"), error
        else:
            raise AssertionError(f"{sql} must be refused")

    changed = connection.execute("UPDATE vans SET load = load + %s WHERE depot = %s", (Decimal("0.25"), 1))
    assert changed.rowcount == 3, changed.rowcount
    upsert = (
        "INSERT INTO depots (id, name) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET name = excluded.name || %s"
        " RETURNING name"
    )
    assert value(connection, upsert, (2, "s", "!")) == "s!"
    assert value(connection, upsert, (900, "new", "!")) == "new"
    tagged = connection.execute("UPDATE vans SET load = load WHERE depot = 1 RETURNING id")
    assert (tagged.statusmessage, len(tagged.fetchall())) == ("UPDATE 3", 3), tagged.statusmessage

    # UUIDs and documents, in text and in binary.
    connection.execute("CREATE TABLE parts (id UUID PRIMARY KEY, info JSONB, raw JSON)")
    own = UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")
    document = {"a": [1, None], "b": "x"}
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            cursor.execute("INSERT INTO parts VALUES (%s, %s, %s)", (own, Jsonb(document), Json(document)))
            cursor.execute("SELECT id, info, raw, info -> 'a', info ->> 'b' FROM parts WHERE id = %s", (own,))
            assert cursor.fetchone() == (own, document, document, [1, None], "x"), binary
            types = [column.type_code for column in cursor.description]
            assert types == [2950, 3802, 114, 3802, 25], types
            cursor.execute("UPDATE parts SET info = info || %s WHERE id = %s RETURNING info - 'a'", (Jsonb({"c": 1}), own))
            assert cursor.fetchone() == ({"b": "x", "c": 1},), binary
            cursor.execute("DELETE FROM parts WHERE id = %s RETURNING id", (str(own).upper(),))
            assert cursor.fetchone() == (own,), binary

    # Indexes, as SQLAlchemy reads them.
    index = "SELECT indkey, indoption FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE c.relname = 'depots' AND indisprimary"
    assert connection.execute(index).fetchone() == ("1", "0")
    assert connection.execute(index, prepare=True).fetchone() == ("1", "0")

    # COPY: all rows or none.
    connection.execute("CREATE TABLE copied (id INT PRIMARY KEY, name TEXT DEFAULT 'none', raw BYTEA, bought DATE)")
    with connection.cursor() as cursor:
        with cursor.copy("COPY copied FROM STDIN") as copy:
            copy.write_row((1, "a\tb", b"\x00\xff", date(2024, 2, 29)))
            copy.write_row((2, None, None, None))
        assert cursor.rowcount == 2, cursor.rowcount
        with cursor.copy("COPY copied (id) FROM STDIN (FORMAT csv)") as copy:
            copy.write("3\n4\n")
        try:
            with cursor.copy("COPY copied (id) FROM STDIN") as copy:
                copy.write("5\n1\n")
        except errors.UniqueViolation as error:
            assert error.diag.constraint_name == "copied_pkey", error
        else:
            raise AssertionError("1 is there already")
        rows = cursor.execute("SELECT * FROM copied ORDER BY id").fetchall()
        assert rows == [
            (1, "a\tb", b"\x00\xff", date(2024, 2, 29)),
            (2, None, None, None),
            (3, "none", None, None),
            (4, "none", None, None),
        ], rows
        with cursor.copy("COPY copied (id, name) TO STDOUT (FORMAT csv)") as copy:
            text = b"".join(copy).decode()
        assert sorted(text.splitlines()) == ["1,a\tb", "2,", "3,none", "4,none"], text
    connection.execute("DROP TABLE copied")

# Transactions.
with psycopg.connect(**address) as one, psycopg.connect(**address, autocommit=True) as other:
    count = "SELECT count(*) FROM depots"
    before = value(other, count)
    one.execute("INSERT INTO depots (name) VALUES ('x')")
    assert value(one, count) == before + 1
    assert value(other, count) == before
    one.rollback()
    assert value(one, count) == before
    one.rollback()

    with one.transaction():
        one.execute("INSERT INTO depots (name) VALUES ('kept')")
        try:
            with one.transaction():
                one.execute("INSERT INTO depots (name) VALUES ('lost')")
                one.execute("INSERT INTO depots (name) VALUES ('kept')")
        except errors.UniqueViolation:
            pass
    names = {name for (name,) in other.execute("SELECT name FROM depots")}
    assert "kept" in names and "lost" not in names, names

    # A block that failed does nothing more.
    one.execute("INSERT INTO depots (name) VALUES ('gone')")
    try:
        one.execute("SELECT nothing FROM depots")
    except errors.UndefinedColumn:
        pass
    try:
        one.execute("SELECT 1")
    except errors.InFailedSqlTransaction:
        one.rollback()
    else:
        raise AssertionError("the block has failed")
    assert value(other, "SELECT count(*) FROM depots WHERE name = 'gone'") == 0

    # Tables are part of a transaction.
    one.execute("CREATE TABLE later (id INT PRIMARY KEY)")
    one.execute("INSERT INTO later VALUES (1)")
    assert value(one, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'later'") == 1
    one.rollback()
    try:
        other.execute("SELECT * FROM later")
    except errors.UndefinedTable:
        pass
    else:
        raise AssertionError("the table was rolled back")

    # A second writer waits for the first one, and neither update is lost.
    one.execute("UPDATE depots SET name = name || '1' WHERE id = 1")
    done = []

    def second() -> None:
        other.execute("UPDATE depots SET name = name || '2' WHERE id = 1")
        done.append(time.monotonic())

    thread = threading.Thread(target=second)
    thread.start()
    time.sleep(0.3)
    assert not done
    one.commit()
    thread.join(20)
    assert done and value(other, "SELECT name FROM depots WHERE id = 1") == "north12"

# One snapshot for a serializable transaction.
with psycopg.connect(**address) as one, psycopg.connect(**address, autocommit=True) as other:
    one.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    before = value(one, "SELECT count(*) FROM depots")
    other.execute("INSERT INTO depots (name) VALUES ('meanwhile')")
    assert value(one, "SELECT count(*) FROM depots") == before
    try:
        one.execute("UPDATE depots SET name = 'never' WHERE id = 1")
    except errors.SerializationFailure:
        one.rollback()
    else:
        raise AssertionError("its snapshot is no longer current")
    assert value(one, "SELECT count(*) FROM depots") == before + 1

# Several statements in one query are one transaction.
with psycopg.connect(**address, autocommit=True) as connection:
    try:
        connection.execute("INSERT INTO depots (name) VALUES ('both'); INSERT INTO depots (name) VALUES ('both')")
    except errors.UniqueViolation:
        pass
    else:
        raise AssertionError("the second one has the same name")
    assert value(connection, "SELECT count(*) FROM depots WHERE name = 'both'") == 0
    for table in ("vans", "depots"):
        connection.execute(f"DROP TABLE {table}")
