"""Talks to Marigram with Apache IoTDB's Python client, unmodified: sessions, rows in every form, tablets aligned and
not, nulls, all types, queries as rows and as data frames, the newest points, deletion, SHOW."""

import datetime
import os

import numpy as np
from iotdb.Session import Session
from iotdb.SessionPool import PoolConfig, SessionPool
from iotdb.utils.BitMap import BitMap
from iotdb.utils.exception import StatementExecutionException
from iotdb.utils.IoTDBConstants import Compressor, TSDataType, TSEncoding
from iotdb.utils.NumpyTablet import NumpyTablet
from iotdb.utils.Tablet import Tablet

PORT = os.environ["MARIGRAM_IOTDB_PORT"]


def rows(session, sql):
    """The rows of a query, as lists: the time first if there is one."""
    with session.execute_query_statement(sql) as data:
        has_time = "Time" in data.get_column_names()
        found = []
        while data.has_next():
            record = data.next()
            values = [field.get_object_value(field.get_data_type()) for field in record.get_fields()]
            found.append(([record.get_timestamp()] if has_time else []) + values)
        return found


def same(found, expected):
    assert found == expected, f"{found} instead of {expected}"


def refused(code, call, *arguments):
    try:
        call(*arguments)
    except StatementExecutionException as error:
        assert str(code) in str(error), error
        return str(error)
    raise AssertionError(f"{arguments} was not refused")


def schema(session):
    session.set_storage_group("root.check")
    refused(501, session.set_storage_group, "root.check")
    session.create_time_series("root.check.d1.s1", TSDataType.INT32, TSEncoding.PLAIN, Compressor.SNAPPY)
    session.create_multi_time_series(
        ["root.check.d1.s2", "root.check.d1.s3"], [TSDataType.TEXT, TSDataType.DOUBLE],
        [TSEncoding.PLAIN] * 2, [Compressor.SNAPPY] * 2)
    session.create_aligned_time_series(
        "root.check.a1", ["x", "y"], [TSDataType.FLOAT, TSDataType.BOOLEAN],
        [TSEncoding.PLAIN] * 2, [Compressor.SNAPPY] * 2)
    assert session.check_time_series_exists("root.check.d1.s1")
    assert not session.check_time_series_exists("root.check.d1.nothing")
    shown = rows(session, "SHOW TIMESERIES root.check.d1.**")
    same(sorted((row[0], row[3]) for row in shown),
         [("root.check.d1.s1", "INT32"), ("root.check.d1.s2", "TEXT"), ("root.check.d1.s3", "DOUBLE")])
    assert ["root.check"] in [row[:1] for row in rows(session, "SHOW DATABASES")]


def records(session):
    device = "root.check.d1"
    names, kinds = ["s1", "s2", "s3"], [TSDataType.INT32, TSDataType.TEXT, TSDataType.DOUBLE]
    session.insert_record(device, 1, names, kinds, [1, "one", 1.5])
    session.insert_str_record(device, 2, names, ["2", "two", "2.5"])
    session.insert_records([device, device], [3, 4], [names, names[:1]], [kinds, kinds[:1]], [[3, "three", 3.5], [4]])
    session.insert_records_of_one_device(device, [5, 6], [names[:1], names[1:2]], [kinds[:1], kinds[1:2]], [[5], ["six"]])
    session.insert_aligned_record("root.check.a1", 1, ["x", "y"], [TSDataType.FLOAT, TSDataType.BOOLEAN], [0.5, True])
    same(rows(session, "SELECT s1, s2, s3 FROM root.check.d1"), [
        [1, 1, "one", 1.5], [2, 2, "two", 2.5], [3, 3, "three", 3.5], [4, 4, None, None], [5, 5, None, None],
        [6, None, "six", None]])
    same(rows(session, "SELECT x, y FROM root.check.a1"), [[1, 0.5, True]])
    told = refused(507, session.insert_record, device, 7, ["s1"], [TSDataType.TEXT], ["no number"])
    assert "Fail to insert measurements [s1]" in told, told
    # The types of IoTDB that become others.
    session.insert_record(device, 7, ["s3"], [TSDataType.INT32], [7])
    same(rows(session, "SELECT s3 FROM root.check.d1 WHERE time = 7"), [[7, 7.0]])
    # Another device may have a text where this one has a number.
    session.insert_record("root.check.d2", 1, ["s1"], [TSDataType.TEXT], ["text"])
    same(rows(session, "SELECT s1 FROM root.check.d2"), [[1, "text"]])
    same(rows(session, "SELECT s1 FROM root.check.d1 WHERE time = 1"), [[1, 1]])
    session.test_insert_record(device, 99, ["s1"], [TSDataType.INT32], [1])
    same(rows(session, "SELECT s1 FROM root.check.d1 WHERE time = 99"), [])
    refused(509, session.insert_record, "root.check.*", 1, ["s1"], [TSDataType.INT32], [1])


KINDS = {
    "b": (TSDataType.BOOLEAN, [True, False, None]),
    "i": (TSDataType.INT32, [-(2**31), None, 2**31 - 1]),
    "l": (TSDataType.INT64, [None, -(2**63), 2**63 - 1]),
    "f": (TSDataType.FLOAT, [1.5, None, -2.25]),
    "d": (TSDataType.DOUBLE, [1e300, -0.1, None]),
    "t": (TSDataType.TEXT, ["ä€", None, ""]),
    "ts": (TSDataType.TIMESTAMP, [0, 1_700_000_000_000, None]),
    "da": (TSDataType.DATE, [datetime.date(2024, 2, 29), None, datetime.date(1970, 1, 1)]),
    "bl": (TSDataType.BLOB, [b"\x00\xff", b"x", None]),
    "st": (TSDataType.STRING, [None, "string", "s"]),
}


def tablets(session):
    names, kinds = list(KINDS), [kind for kind, _ in KINDS.values()]
    values = [list(row) for row in zip(*(column for _, column in KINDS.values()))]
    for device, insert in [("root.check.t1", session.insert_tablet), ("root.check.t2", session.insert_aligned_tablet)]:
        insert(Tablet(device, names, kinds, values, [10, 20, 30]))
        with session.execute_query_statement(f"SELECT {', '.join(names)} FROM {device}") as data:
            found, types = [], data.get_column_types()
            while data.has_next():
                record = data.next()
                found.append([field.get_object_value(field.get_data_type()) for field in record.get_fields()])
        assert len(types) == len(names) + 1, types
        for row, (expected, got) in enumerate(zip(values, found)):
            for name, want, have in zip(names, expected, got):
                if name == "ts" and want is not None:
                    have = int(have.timestamp() * 1000)
                assert want == have, f"{device}.{name}, row {row}: {have!r} instead of {want!r}"
    session.insert_tablets([Tablet("root.check.t3", ["i"], [TSDataType.INT32], [[n]], [n]) for n in range(5)])
    same(rows(session, "SELECT i FROM root.check.t3"), [[n, n] for n in range(5)])
    times = np.arange(1000, dtype=TSDataType.INT64.np_dtype())
    numbers = np.arange(1000, dtype=TSDataType.DOUBLE.np_dtype()) / 2
    bits = BitMap(1000)
    for row in range(0, 1000, 3):
        bits.mark(row)
    session.insert_tablet(NumpyTablet(
        "root.check.t4", ["d"], [TSDataType.DOUBLE], [numbers], times, [bits]))
    found = rows(session, "SELECT d FROM root.check.t4")
    same(found, [[n, n / 2] for n in range(1000) if n % 3])


def queries(session):
    with session.execute_query_statement("SELECT d FROM root.check.t4") as data:
        frame = data.todf()
    assert len(frame) == 666 and list(frame.columns) == ["Time", "root.check.t4.d"], frame
    assert float(frame["root.check.t4.d"].sum()) == sum(n / 2 for n in range(1000) if n % 3)
    data = session.execute_query_statement("SELECT d FROM root.check.t4")
    data.set_fetch_size(50)
    data.close_operation_handle()
    small = Session("127.0.0.1", PORT, "root", "root", fetch_size=64, zone_id="UTC")
    small.open(False)
    same(len(rows(small, "SELECT d FROM root.check.t4")), 666)
    with small.execute_query_statement("SELECT d FROM root.check.t4") as data:
        assert len(data.todf()) == 666
    small.close()
    same(rows(session, "SELECT count(d), max_value(d) FROM root.check.t4"), [[666, 499.0]])
    grouped = rows(session, "SELECT count(d) FROM root.check.t4 GROUP BY ([0, 1000), 500ms)")
    same(grouped, [[0, 333], [500, 333]])
    with session.execute_raw_data_query(["root.check.d1.s1", "root.check.d1.s2"], 1, 4) as data:
        names = data.get_column_names()
        assert names == ["Time", "root.check.d1.s1", "root.check.d1.s2"], names
        found = []
        while data.has_next():
            found.append(data.next().get_timestamp())
        same(found, [1, 2, 3])
    with session.execute_last_data_query(["root.check.d1.s1"], 0) as data:
        assert data.has_next()
        record = data.next()
        fields = [field.get_string_value() for field in record.get_fields()]
        same([record.get_timestamp()] + fields, [5, "root.check.d1.s1", "5", "INT32"])
    refused(700, session.execute_query_statement, "SELECT FROM WHERE")
    session.execute_non_query_statement(
        "INSERT INTO root.check.d9(timestamp, s1, s2) VALUES (1, 7, 'sql')")
    same(rows(session, "SELECT s2 FROM root.check.d9"), [[1, "sql"]])


def deletion(session):
    session.delete_data(["root.check.d1.s1"], 3)
    same(rows(session, "SELECT s1 FROM root.check.d1 WHERE time <= 5"), [[4, 4], [5, 5]])
    session.delete_data_in_range(["root.check.d1.s2"], 1, 2)
    same(rows(session, "SELECT s2 FROM root.check.d1"), [[3, "three"], [6, "six"]])
    session.execute_non_query_statement("DELETE FROM root.check.t4.d WHERE time < 998")
    same(rows(session, "SELECT d FROM root.check.t4"), [[998, 499.0]])
    session.delete_time_series(["root.check.d1.s3"])
    assert not session.check_time_series_exists("root.check.d1.s3")
    session.delete_storage_group("root.check")
    assert ["root.check"] not in [row[:1] for row in rows(session, "SHOW DATABASES")]


def sessions():
    compact = Session("127.0.0.1", PORT, "root", "root", zone_id="Asia/Shanghai")
    compact.open(True)
    assert compact.get_time_zone() == "Asia/Shanghai"
    compact.set_time_zone("+08:00")
    assert compact.get_time_zone() == "+08:00"
    assert ["root.check"] in [row[:1] for row in rows(compact, "SHOW DATABASES")]
    compact.close()
    pool = SessionPool(PoolConfig(host="127.0.0.1", port=PORT, user_name="root", password="root",
                                  time_zone="UTC"), 3, 3000)
    taken = [pool.get_session() for _ in range(3)]
    for number, session in enumerate(taken):
        session.insert_record(f"root.check.pool{number}", 1, ["s"], [TSDataType.INT32], [number])
        pool.put_back(session)
    pool.close()


def main():
    session = Session("127.0.0.1", PORT, "root", "root", zone_id="UTC")
    session.open(False)
    try:
        session.execute_non_query_statement("DROP DATABASE root.check")
    except StatementExecutionException:
        pass  # A fresh server has none.
    for part in [schema, records, tablets, queries]:
        part(session)
        print(part.__name__, "ok")
    sessions()
    deletion(session)
    session.close()
    print("all ok")


main()
