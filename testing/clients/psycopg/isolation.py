"""What concurrent transactions see of each other: known anomalies, and random histories.

The guide promises: READ COMMITTED shows a statement what was committed before it began; REPEATABLE READ and
SERIALIZABLE show a transaction one snapshot, and are serializable.
"""

import os
import random
import threading

import psycopg
from psycopg import IsolationLevel, errors

ADDRESS = {"host": "127.0.0.1", "port": os.environ["MARIGRAM_PORT"], "user": "me", "dbname": "main"}
ROUNDS = int(os.environ.get("MARIGRAM_ISOLATION_ROUNDS", "20"))
SNAPSHOT = (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)


def connect(level=None):
    connection = psycopg.connect(**ADDRESS)
    connection.isolation_level = level
    return connection


def value(connection, sql, parameters=None):
    return connection.execute(sql, parameters).fetchone()[0]


def fresh(connection):
    connection.execute("DELETE FROM registers")
    connection.execute("INSERT INTO registers VALUES (1, 10), (2, 20)")
    connection.commit()


def no_dirty_read(one, two):
    one.execute("UPDATE registers SET value = 101 WHERE id = 1")
    assert value(two, "SELECT value FROM registers WHERE id = 1") == 10
    one.rollback()
    assert value(two, "SELECT value FROM registers WHERE id = 1") == 10


def no_intermediate_read(one, two):
    one.execute("UPDATE registers SET value = 101 WHERE id = 1")
    assert value(two, "SELECT value FROM registers WHERE id = 1") == 10
    one.execute("UPDATE registers SET value = 11 WHERE id = 1")
    one.commit()
    two.rollback()
    assert value(two, "SELECT value FROM registers WHERE id = 1") == 11


def one_snapshot(one, two):
    """Neither rows that change nor rows that come are seen."""
    assert value(two, "SELECT sum(value) FROM registers") == 30
    one.execute("UPDATE registers SET value = 12 WHERE id = 1")
    one.execute("INSERT INTO registers VALUES (3, 30)")
    one.execute("DELETE FROM registers WHERE id = 2")
    one.commit()
    assert two.execute("SELECT id, value FROM registers ORDER BY id").fetchall() == [(1, 10), (2, 20)]
    assert value(two, "SELECT count(*) FROM registers WHERE value % 3 = 0") == 0
    two.rollback()
    assert two.execute("SELECT id, value FROM registers ORDER BY id").fetchall() == [(1, 12), (3, 30)]


def no_lost_update(one, two):
    read = "SELECT value FROM registers WHERE id = 1"
    assert value(one, read) == value(two, read) == 10
    one.execute("UPDATE registers SET value = 11 WHERE id = 1")
    one.commit()
    refused(two, "UPDATE registers SET value = 11 WHERE id = 1")


def no_write_skew(one, two):
    """Each reads both registers, and writes another one."""
    both = "SELECT sum(value) FROM registers"
    assert value(one, both) == value(two, both) == 30
    one.execute("UPDATE registers SET value = -5 WHERE id = 1")
    one.commit()
    refused(two, "UPDATE registers SET value = -15 WHERE id = 2")


def refused(connection, sql):
    try:
        connection.execute(sql)
        connection.commit()
    except errors.SerializationFailure:
        connection.rollback()
    else:
        raise AssertionError(f"{sql} must fail: its snapshot is no longer current")


def history(level, clients, transfers):
    """Clients move amounts between registers, each computed from what it has read. Their sum stays, and every
    committed transfer counts once."""
    committed = []

    def run(seed):
        choice = random.Random(seed)
        with connect(level) as connection:
            for number in range(transfers):
                source, target = choice.sample((1, 2), 2)
                try:
                    held = dict(connection.execute("SELECT id, value FROM registers").fetchall())
                    assert sum(held.values()) == 30, held
                    amount = choice.randint(1, 5)
                    for register, now in ((source, held[source] - amount), (target, held[target] + amount)):
                        connection.execute("UPDATE registers SET value = %s WHERE id = %s", (now, register))
                    note = "INSERT INTO moves VALUES (%s, %s, %s, %s)"
                    connection.execute(note, (seed * 1000 + number, source, target, amount))
                    connection.commit()
                    committed.append(seed * 1000 + number)
                except errors.SerializationFailure:
                    connection.rollback()

    failures = []

    def guarded(seed):
        try:
            run(seed)
        except Exception as error:  # a thread's failure must fail the program
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not failures, failures
    with connect() as connection:
        expected = {1: 10, 2: 20}
        moves = connection.execute("SELECT id, source, target, amount FROM moves").fetchall()
        for _, source, target, amount in moves:
            expected[source] -= amount
            expected[target] += amount
        found = dict(connection.execute("SELECT id, value FROM registers").fetchall())
        assert found == expected, (found, expected)
        assert sorted(committed) == sorted(number for number, *_ in moves)
        connection.execute("DELETE FROM moves")
    return len(committed)


with connect() as setup:
    setup.execute("CREATE TABLE registers (id INT PRIMARY KEY, value INT NOT NULL)")
    setup.execute("CREATE TABLE moves (id INT PRIMARY KEY, source INT, target INT, amount INT)")
    setup.commit()
    for level in (IsolationLevel.READ_COMMITTED, *SNAPSHOT):
        checks = [no_dirty_read, no_intermediate_read]
        if level in SNAPSHOT:
            checks += [one_snapshot, no_lost_update, no_write_skew]
        for check in checks:
            fresh(setup)
            with connect(level) as first, connect(level) as second:
                check(first, second)
    for level in SNAPSHOT:
        fresh(setup)
        done = history(level, 4, ROUNDS)
        assert done > 0
        print(f"{level.name}: {done} of {4 * ROUNDS} transfers committed")
    setup.execute("DROP TABLE registers")
    setup.execute("DROP TABLE moves")
