import java.io.StringReader;
import java.sql.*;
import java.util.Properties;
import org.postgresql.PGConnection;

/** What a Java program does with Marigram through pgjdbc. */
public class Check {
  static void require(boolean ok, Object what) {
    if (!ok) throw new AssertionError("unexpected: " + what);
  }

  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", "me");
    String url = "jdbc:postgresql://127.0.0.1:" + System.getenv("MARIGRAM_PORT") + "/main";
    try (Connection connection = DriverManager.getConnection(url, properties)) {
      try (Statement statement = connection.createStatement()) {
        statement.execute(
            "CREATE TABLE jv (time TIMESTAMP, dev STRING TAG, n BIGINT FIELD, x DOUBLE FIELD)");
      }
      Timestamp start = Timestamp.valueOf("2024-01-01 00:00:00");
      try (PreparedStatement insert =
          connection.prepareStatement("INSERT INTO jv (time, dev, n, x) VALUES (?, ?, ?, ?)")) {
        for (int i = 0; i < 20; i++) {
          insert.setTimestamp(1, new Timestamp(start.getTime() + i * 1000L));
          insert.setString(2, "a");
          insert.setLong(3, i);
          insert.setDouble(4, i / 2.0);
          insert.addBatch();
        }
        require(insert.executeBatch().length == 20, "batch");
      }
      String text = "time,dev,n,x\n2024-01-02 00:00:00,b,1,2.5\n2024-01-02 00:00:01,b,2,3.5\n";
      long copied =
          connection
              .unwrap(PGConnection.class)
              .getCopyAPI()
              .copyIn(
                  "COPY jv (time, dev, n, x) FROM STDIN WITH (FORMAT csv, HEADER)",
                  new StringReader(text));
      require(copied == 2, copied);
      String sql = "SELECT time, n, x FROM jv WHERE dev = ? AND n >= ? ORDER BY n";
      try (PreparedStatement select = connection.prepareStatement(sql)) {
        // From the fifth execution on the driver uses a named statement and binary results.
        for (int round = 0; round < 8; round++) {
          select.setString(1, "a");
          select.setLong(2, 18);
          try (ResultSet rows = select.executeQuery()) {
            require(rows.next() && rows.getLong(2) == 18 && rows.getDouble(3) == 9.0, round);
            require(rows.getTimestamp(1).getTime() == start.getTime() + 18000L, rows.getString(1));
            require(rows.next() && rows.getLong(2) == 19, round);
            require(!rows.next(), round);
          }
        }
      }
      try (ResultSet tables = connection.getMetaData().getTables(null, null, "jv", null)) {
        require(tables.next(), "getTables");
      }
      try (ResultSet columns = connection.getMetaData().getColumns(null, null, "jv", null)) {
        int count = 0;
        while (columns.next()) count++;
        require(count == 4, "getColumns " + count);
      }
      try (Statement statement = connection.createStatement()) {
        statement.executeQuery("SELECT nope FROM jv");
        throw new AssertionError("an unknown column must be an error");
      } catch (SQLException error) {
        require("42703".equals(error.getSQLState()), error);
      }
    }
  }
}
