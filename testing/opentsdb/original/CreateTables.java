import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** Creates the tables of OpenTSDB that are not there. */
public class CreateTables {
  public static void main(String[] given) throws Exception {
    String[][] tables = {{"tsdb-uid", "id", "name"}, {"tsdb", "t"}, {"tsdb-tree", "t"}, {"tsdb-meta", "name"}};
    try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
        Admin admin = connection.getAdmin()) {
      for (String[] table : tables) {
        TableName name = TableName.valueOf(table[0]);
        if (admin.tableExists(name)) {
          continue;
        }
        TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(name);
        for (int family = 1; family < table.length; family++) {
          builder.setColumnFamily(ColumnFamilyDescriptorBuilder.of(table[family]));
        }
        admin.createTable(builder.build());
      }
    }
  }
}
