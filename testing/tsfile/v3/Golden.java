import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iotdb.tsfile.file.metadata.enums.CompressionType;
import org.apache.iotdb.tsfile.file.metadata.enums.TSDataType;
import org.apache.iotdb.tsfile.file.metadata.enums.TSEncoding;
import org.apache.iotdb.tsfile.utils.Binary;
import org.apache.iotdb.tsfile.utils.BitMap;
import org.apache.iotdb.tsfile.write.TsFileWriter;
import org.apache.iotdb.tsfile.write.record.Tablet;
import org.apache.iotdb.tsfile.write.schema.MeasurementSchema;

/** Writes the golden files of version 3, each with its rows as text beside it (see oracle.py). */
public class Golden {
  static final int ROWS = 12;
  static final long START = 1_700_000_000_000L;

  public static void main(String[] args) throws Exception {
    write(args[0], "v3-tree", false);
    write(args[0], "v3-aligned", true);
  }

  static void write(String folder, String name, boolean aligned) throws Exception {
    File file = new File(folder, name + ".tsfile");
    file.delete();
    List<String> lines = new ArrayList<>();
    try (TsFileWriter writer = new TsFileWriter(file)) {
      for (String device : new String[] {"root.sg.d1", "root.sg.a.b.d2"}) {
        List<MeasurementSchema> schemas = schemas(aligned);
        org.apache.iotdb.tsfile.read.common.Path path =
            new org.apache.iotdb.tsfile.read.common.Path(device);
        if (aligned) {
          writer.registerAlignedTimeseries(path, schemas);
        } else {
          writer.registerTimeseries(path, schemas);
        }
        for (int part = 0; part < 2; part++) {
          Tablet tablet = new Tablet(device, schemas, ROWS);
          tablet.initBitMaps();
          for (int row = 0; row < ROWS; row++) {
            int i = part * ROWS + row;
            long time = START + i * 1000L + i % 3;
            tablet.addTimestamp(row, time);
            Map<String, String> values = new TreeMap<>();
            for (int at = 0; at < schemas.size(); at++) {
              MeasurementSchema schema = schemas.get(at);
              String id = schema.getMeasurementId();
              if (aligned && (i + at) % 4 == 3) {
                if (tablet.bitMaps[at] == null) tablet.bitMaps[at] = new BitMap(ROWS);
                tablet.bitMaps[at].mark(row);
                continue;
              }
              Object value = value(schema, i);
              tablet.addValue(id, row, value);
              values.put(id, text(value));
            }
            StringBuilder line = new StringBuilder(device + " " + time);
            values.forEach((key, value) -> line.append(" ").append(key).append("=").append(value));
            lines.add(line.toString());
            tablet.rowSize++;
          }
          if (aligned) {
            writer.writeAligned(tablet);
          } else {
            writer.write(tablet);
          }
          writer.flushAllChunkGroups();
        }
      }
    }
    Collections.sort(lines);
    lines.add("");
    Files.write(Path.of(folder, name + ".txt"), String.join("\n", lines).getBytes(StandardCharsets.UTF_8));
  }

  static List<MeasurementSchema> schemas(boolean aligned) {
    List<MeasurementSchema> schemas = new ArrayList<>();
    CompressionType[] compressors = {
      CompressionType.UNCOMPRESSED, CompressionType.SNAPPY, CompressionType.GZIP, CompressionType.LZ4
    };
    TSDataType[] numbers = {
      TSDataType.INT32, TSDataType.INT64, TSDataType.FLOAT, TSDataType.DOUBLE
    };
    TSEncoding[] encodings = {
      TSEncoding.PLAIN, TSEncoding.RLE, TSEncoding.TS_2DIFF, TSEncoding.GORILLA
    };
    for (TSEncoding encoding : encodings) {
      for (TSDataType type : numbers) {
        add(schemas, type, encoding, compressors[schemas.size() % 4]);
      }
    }
    add(schemas, TSDataType.FLOAT, TSEncoding.GORILLA_V1, CompressionType.LZ4);
    add(schemas, TSDataType.DOUBLE, TSEncoding.GORILLA_V1, CompressionType.LZ4);
    add(schemas, TSDataType.INT32, TSEncoding.ZIGZAG, CompressionType.LZ4);
    add(schemas, TSDataType.INT64, TSEncoding.ZIGZAG, CompressionType.LZ4);
    add(schemas, TSDataType.BOOLEAN, TSEncoding.PLAIN, CompressionType.LZ4);
    add(schemas, TSDataType.BOOLEAN, TSEncoding.RLE, CompressionType.LZ4);
    add(schemas, TSDataType.TEXT, TSEncoding.PLAIN, CompressionType.LZ4);
    add(schemas, TSDataType.TEXT, TSEncoding.DICTIONARY, CompressionType.LZ4);
    return schemas;
  }

  static void add(
      List<MeasurementSchema> schemas, TSDataType type, TSEncoding encoding, CompressionType c) {
    String name = (encoding + "_" + type).toLowerCase();
    schemas.add(new MeasurementSchema(name, type, encoding, c));
  }

  static Object value(MeasurementSchema schema, int i) {
    // These encodings keep two decimals, and lose the others.
    boolean rounds =
        schema.getEncodingType() == TSEncoding.RLE || schema.getEncodingType() == TSEncoding.TS_2DIFF;
    switch (schema.getType()) {
      case INT32:
        return i % 5 == 0 ? i / 7 : (i * 7919) % 1000 - 500;
      case INT64:
        return (i - 20) * 12345678901L;
      case FLOAT:
        return rounds ? i * 0.25f - 3 : i * 0.3f - 3.1f;
      case DOUBLE:
        return rounds ? i * 0.25 - 3 : i * 1.1 - 7.3;
      case BOOLEAN:
        return i % 3 == 0;
      default:
        return new Binary(("text ü " + i % 4).getBytes(StandardCharsets.UTF_8));
    }
  }

  static String text(Object value) {
    if (value instanceof Float) {
      return String.format("%08x", Float.floatToRawIntBits((Float) value));
    } else if (value instanceof Double) {
      return String.format("%016x", Double.doubleToRawLongBits((Double) value));
    } else if (value instanceof Binary) {
      StringBuilder hex = new StringBuilder("x");
      for (byte b : ((Binary) value).getValues()) {
        hex.append(String.format("%02x", b));
      }
      return hex.toString();
    }
    return value.toString();
  }
}
