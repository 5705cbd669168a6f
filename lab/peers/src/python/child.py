"""A database that is a Python package, behind a Unix socket: the laboratory's child process.

child.py BACKEND DATA SOCKET CORES MEMORY_BYTES   (0: as the package chooses)

A frame is two little-endian lengths (u32, u64), a header in JSON, and a body. Requests:

  {"op": "version"}                       -> {"version"}
  {"op": "run", "sql"}                    -> {}
  {"op": "value", "sql"}                  -> {"value"}: an integer
  {"op": "write", "table", "rows", "columns": [[name, type], ...], "buffers": [length, ...]}
      body: Arrow buffers (validity, [offsets,] values) column after column -> {}
  {"op": "ask", "sql"}                    -> {"rows"}; the answer is kept
  {"op": "fetch", "kinds": [...]}         -> {"rows", "buffers"}: the answer that was kept
      body: a column is one byte a row (1: not null), then its values (times and numbers 8 bytes
      each), or for text offsets (8 bytes each, one more than rows) and bytes

Whatever fails is answered with {"error"}. One thread a connection.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc

TYPES = {
    "bool": pa.bool_(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "text": pa.string(),
}


class DuckDb:
    """One connection of DuckDB; each client has a cursor."""

    time = pa.timestamp("ns")

    def __init__(self, data, cores, memory_bytes):
        import duckdb

        config = {}
        if cores:
            config["threads"] = cores
        if memory_bytes:
            config["memory_limit"] = f"{memory_bytes}B"
        self.connection = duckdb.connect(os.path.join(data, "lab.duckdb"), config=config)
        self.version = duckdb.__version__

    def client(self):
        client = object.__new__(DuckDb)
        client.connection = self.connection.cursor()
        client.version = self.version
        return client

    def run(self, sql):
        self.connection.execute(sql)

    def value(self, sql):
        return self.connection.execute(sql).fetchone()[0]

    def insert(self, table, batch):
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM batch")

    def ask(self, sql):
        return self.connection.sql(sql).to_arrow_table()


class ChDb:
    """The session of chdb, which all clients share."""

    time = pa.timestamp("ns", "UTC")

    def __init__(self, data, cores, memory_bytes):
        import chdb
        from chdb import session

        self.session = session.Session(data)
        self.version = chdb.engine_version
        # Python(batch) looks the batch up by its name, and takes another thread's when several
        # insert at once: without any error, rows are lost.
        self.one_insert = threading.Lock()
        self.run("CREATE DATABASE IF NOT EXISTS lab")
        self.run("USE lab")
        if cores:
            self.run(f"SET max_threads = {cores}")
        if memory_bytes:
            self.run(f"SET max_memory_usage = {memory_bytes}")

    def client(self):
        return self

    def run(self, sql):
        self.session.query(sql)

    def value(self, sql):
        return int(self.session.query(sql, "TabSeparated").data())

    def insert(self, table, batch):
        with self.one_insert:
            self.session.query(f"INSERT INTO {table} SELECT * FROM Python(batch)")

    def ask(self, sql):
        return self.session.query(sql, "ArrowTable")


def read(stream, length):
    data = bytearray(length)
    view = memoryview(data)
    while view:
        taken = stream.recv_into(view)
        if taken == 0:
            raise EOFError
        view = view[taken:]
    return data


def batch_of(request, body, time_type):
    lengths = iter(request["buffers"])
    body = pa.py_buffer(body)
    at = 0

    def buffer():
        nonlocal at
        length = next(lengths)
        taken = body.slice(at, length) if length else None
        at += (length + 63) // 64 * 64
        return taken

    arrays, names = [], []
    for name, kind in request["columns"]:
        buffers = [buffer() for _ in range(3 if kind == "text" else 2)]
        if kind == "text" and buffers[2] is None:
            buffers[2] = pa.py_buffer(b"")
        type_ = time_type if kind == "time" else TYPES[kind]
        arrays.append(pa.Array.from_buffers(type_, request["rows"], buffers))
        names.append(name)
    return pa.Table.from_arrays(arrays, names)


def one_array(column, type_):
    column = pc.cast(column, type_, safe=False)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type_)


def values(array, width):
    data = memoryview(array.buffers()[1] or b"")
    return data[array.offset * width : (array.offset + len(array)) * width]


def column_of(column, kind):
    """The buffers of a column of an answer."""
    present = values(one_array(pc.is_valid(column), pa.uint8()), 1)
    if kind == "text":
        texts = one_array(column, pa.large_string()).fill_null("")
        _, offsets, data = texts.buffers()
        offsets = memoryview(offsets or bytes(8))
        offsets = offsets[texts.offset * 8 : (texts.offset + len(texts) + 1) * 8]
        return [present, offsets, memoryview(data or b"")]
    if kind == "time":
        if pa.types.is_integer(column.type):  # ClickHouse's DateTime: seconds
            column = pc.cast(pc.cast(column, pa.int64()), pa.timestamp("s"))
        zone = getattr(column.type, "tz", None)
        column = pc.cast(column, pa.timestamp("ns", zone))
        return [present, values(one_array(column, pa.int64()).fill_null(0), 8)]
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.uint8())
    return [present, values(one_array(column, pa.float64()).fill_null(0.0), 8)]


class Client:
    """One connection of the laboratory's."""

    def __init__(self, database, stream):
        self.database = database
        self.stream = stream
        self.answer = None

    def serve(self):
        try:
            while True:
                header, body = struct.unpack("<IQ", read(self.stream, 12))
                request = json.loads(read(self.stream, header))
                body = read(self.stream, body)
                try:
                    reply, buffers = getattr(self, request["op"])(request, body)
                except Exception as error:
                    reply, buffers = {"error": str(error)}, []
                text = json.dumps(reply).encode()
                size = sum(len(buffer) for buffer in buffers)
                self.stream.sendall(struct.pack("<IQ", len(text), size) + text)
                for buffer in buffers:
                    self.stream.sendall(buffer)
        except (EOFError, ConnectionError):
            self.stream.close()

    def version(self, request, body):
        return {"version": self.database.version}, []

    def run(self, request, body):
        self.database.run(request["sql"])
        return {}, []

    def value(self, request, body):
        return {"value": self.database.value(request["sql"])}, []

    def write(self, request, body):
        self.database.insert(request["table"], batch_of(request, body, self.database.time))
        return {}, []

    def ask(self, request, body):
        self.answer = None
        self.answer = self.database.ask(request["sql"])
        return {"rows": self.answer.num_rows}, []

    def fetch(self, request, body):
        columns = zip(self.answer.columns, request["kinds"], strict=True)
        buffers = [buffer for column, kind in columns for buffer in column_of(column, kind)]
        reply = {"rows": self.answer.num_rows, "buffers": [len(buffer) for buffer in buffers]}
        return reply, buffers


def end_with_parent():
    """Ends this process when the laboratory was killed."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main():
    backend, data, path, cores, memory_bytes = sys.argv[1:]
    backends = {"duckdb": DuckDb, "chdb": ChDb}
    threading.Thread(target=end_with_parent, daemon=True).start()
    database = backends[backend](data, int(cores), int(memory_bytes))
    if os.path.exists(path):
        os.remove(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1024)
    while True:
        stream, _ = listener.accept()
        client = Client(database.client(), stream)
        threading.Thread(target=client.serve, daemon=True).start()


main()
