#!/usr/bin/env python3
"""The counterpart in the TsFile tests: the PyPI package `tsfile`.

oracle.py dump FILE     prints the rows of a table file as this package reads them
oracle.py golden DIR    writes the golden files, each with its rows as text beside it

A row is a line: its device, its time, then NAME=VALUE for each value that it has. Floats are
printed as their bits (every not-a-number as `nan`), texts and bytes as hexadecimal digits.
"""

import datetime
import math
import os
import struct
import sys

import tsfile
from tsfile import (
    ColumnCategory,
    ColumnSchema,
    Compressor,
    Field,
    RowRecord,
    TableSchema,
    Tablet,
    TimeseriesSchema,
    TsFileReader,
    TsFileTableWriter,
    TsFileWriter,
    TSDataType,
    TSEncoding,
)

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def text(value, kind):
    """A value as text in a line."""
    if kind == TSDataType.BOOLEAN:
        return "true" if value else "false"
    if kind in (TSDataType.INT32, TSDataType.INT64, TSDataType.TIMESTAMP):
        return str(int(value))
    if kind == TSDataType.DATE:
        if isinstance(value, datetime.date):
            value = value.year * 10000 + value.month * 100 + value.day
        return str(int(value))
    if kind == TSDataType.FLOAT:
        return "nan" if math.isnan(value) else struct.pack(">f", value).hex()
    if kind == TSDataType.DOUBLE:
        return "nan" if math.isnan(value) else struct.pack(">d", value).hex()
    if isinstance(value, str):
        value = value.encode()
    return "x" + bytes(value).hex()


def line(device, time, values):
    parts = [f"{name}={value}" for name, value in sorted(values.items())]
    return " ".join([",".join(device), str(time), *parts])


def ints(column):
    return column.cast("int64").to_pylist()


def cells_of(column, schema):
    """The values of an Arrow column; times as numbers, whatever their declared unit."""
    return ints(column) if schema.get_data_type() == TSDataType.TIMESTAMP else column.to_pylist()


def dump_table(path):
    lines = []
    with TsFileReader(path) as reader:
        for name, schema in reader.get_all_table_schemas().items():
            columns = schema.get_columns()
            columns = [c for c in columns if c.get_category() != ColumnCategory.TIME]
            names = [column.get_column_name() for column in columns]
            rows = reader.query_table(name, names, INT64_MIN, INT64_MAX, batch_size=4096)
            while (batch := rows.read_arrow_batch()) is not None:
                times = ints(batch.column(0))
                cells = [cells_of(batch.column(at + 1), c) for at, c in enumerate(columns)]
                for row, time in enumerate(times):
                    device, values = [name], {}
                    for column, cell in zip(columns, cells):
                        if column.get_category() == ColumnCategory.TAG:
                            device.append("null" if cell[row] is None else cell[row])
                        elif cell[row] is not None:
                            value = text(cell[row], column.get_data_type())
                            values[column.get_column_name()] = value
                    while device[-1] == "null":
                        device.pop()
                    lines.append(line(device, time, values))
            rows.close()
    return sorted(lines)


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in sorted(lines))


SAMPLES = {
    TSDataType.BOOLEAN: lambda i: i % 3 == 0,
    TSDataType.INT32: lambda i: (i * 7919) % 1000 - 500 if i % 5 else i // 7,
    TSDataType.INT64: lambda i: (i - 20) * 12345678901,
    TSDataType.FLOAT: lambda i: struct.unpack(">f", struct.pack(">f", i * 0.25 - 3.1))[0],
    TSDataType.DOUBLE: lambda i: i * 1.1 - 7.3,
    TSDataType.TEXT: lambda i: f"text ü {i % 4}",
    TSDataType.STRING: lambda i: f"string {i % 9}",
    TSDataType.BLOB: lambda i: bytes([i % 256, 0, 255]),
    TSDataType.DATE: lambda i: datetime.date(2024, 1 + i % 12, 1 + i % 28),
    TSDataType.TIMESTAMP: lambda i: 1_700_000_000_000 + i * 999,
}


def golden_table(folder):
    """Every type, missing values, missing tags, several chunks per device."""
    kinds = list(SAMPLES)
    fields = [f"f_{kind.name.lower()}" for kind in kinds]
    columns = [
        ColumnSchema("site", TSDataType.STRING, ColumnCategory.TAG),
        ColumnSchema("unit", TSDataType.STRING, ColumnCategory.TAG),
    ]
    columns += [ColumnSchema(name, kind) for name, kind in zip(fields, kinds)]
    path = os.path.join(folder, "v4-table.tsfile")
    if os.path.exists(path):
        os.remove(path)
    lines = []
    writer = TsFileTableWriter(path, TableSchema("all_types", columns))
    names = ["site", "unit", *fields]
    for part in range(2):
        tablet = Tablet(names, [TSDataType.STRING] * 2 + kinds, 90)
        row = 0
        for site, unit in [(None, "u0"), ("north", None), ("north", "u1")]:
            for i in range(part * 30, part * 30 + 30):
                tablet.add_timestamp(row, 1_700_000_000_000 + i * 1000)
                for name, tag in (("site", site), ("unit", unit)):
                    if tag is not None:
                        tablet.add_value_by_name(name, row, tag)
                values = {}
                for at, (name, kind) in enumerate(zip(fields, kinds)):
                    if (i + at) % 4 != 3:
                        value = SAMPLES[kind](i)
                        tablet.add_value_by_name(name, row, value)
                        values[name] = text(value, kind)
                device = ["all_types", site or "null", unit or "null"]
                while device[-1] == "null":
                    device.pop()
                lines.append(line(device, 1_700_000_000_000 + i * 1000, values))
                row += 1
        writer.write_table(tablet)
        writer.writer.flush()
    writer.close()
    assert dump_table(path) == sorted(lines), "the package does not read what it wrote"
    write_lines(path.replace(".tsfile", ".txt"), lines)


ENCODINGS = {
    TSEncoding.PLAIN: list(SAMPLES),
    TSEncoding.TS_2DIFF: [
        TSDataType.INT32,
        TSDataType.INT64,
        TSDataType.FLOAT,
        TSDataType.DOUBLE,
        TSDataType.TIMESTAMP,
        TSDataType.DATE,
    ],
    TSEncoding.GORILLA: [
        TSDataType.INT32,
        TSDataType.INT64,
        TSDataType.FLOAT,
        TSDataType.DOUBLE,
        TSDataType.TIMESTAMP,
        TSDataType.DATE,
    ],
    TSEncoding.RLE: [TSDataType.INT32, TSDataType.INT64, TSDataType.TIMESTAMP, TSDataType.DATE],
    TSEncoding.ZIGZAG: [TSDataType.INT32, TSDataType.INT64],
    TSEncoding.DICTIONARY: [TSDataType.TEXT, TSDataType.STRING],
}
COMPRESSORS = [
    Compressor.UNCOMPRESSED,
    Compressor.SNAPPY,
    Compressor.GZIP,
    Compressor.LZ4,
    Compressor.ZSTD,
]


def golden_tree(folder):
    """Every encoding that can be read and every compressor, as unaligned series."""
    path = os.path.join(folder, "v4-tree.tsfile")
    if os.path.exists(path):
        os.remove(path)
    series = []
    writer = TsFileWriter(path)
    for encoding, kinds in ENCODINGS.items():
        for at, kind in enumerate(kinds):
            compressor = COMPRESSORS[(at + encoding.value) % len(COMPRESSORS)]
            name = f"{encoding.name}_{kind.name}".lower()
            device = f"root.plant.{compressor.name.lower()}"
            writer.register_timeseries(device, TimeseriesSchema(name, kind, encoding, compressor))
            series.append((device, name, kind, encoding))
    lines = []
    for i in range(40):
        time = 1_700_000_000_000 + i * 1000 + i % 3
        for device in sorted({device for device, *_ in series}):
            fields, values = [], {}
            for owner, name, kind, encoding in series:
                if owner != device:
                    continue
                value = SAMPLES[kind](i)
                if encoding == TSEncoding.TS_2DIFF and kind in (TSDataType.FLOAT, TSDataType.DOUBLE):
                    # This encoding keeps few decimals; these values need none.
                    value = float(i * 3 - 40)
                fields.append(Field(name, value, kind))
                values[name] = text(value, kind)
            writer.write_row_record(RowRecord(device, time, fields))
            lines.append(line([device], time, values))
    writer.close()
    write_lines(path.replace(".tsfile", ".txt"), lines)


def main():
    if sys.argv[1] == "dump":
        print("\n".join(dump_table(sys.argv[2])))
    elif sys.argv[1] == "golden":
        golden_table(sys.argv[2])
        golden_tree(sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
