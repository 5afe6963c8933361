import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * A binding of YCSB for Cassandra: each operation is one CQL statement of the table ycsb.usertable.
 *
 * The property "host" is the address of a node. Scans are not implemented.
 */
public class CassandraBinding extends DB {
  private static CqlSession session;
  private static PreparedStatement select;
  private static PreparedStatement insert;
  private static PreparedStatement delete;

  @Override
  public void init() {
    synchronized (CassandraBinding.class) {
      if (session == null) {
        DriverConfigLoader config = DriverConfigLoader.programmaticBuilder()
            .withString(DefaultDriverOption.LOAD_BALANCING_POLICY_CLASS, "DcInferringLoadBalancingPolicy")
            .build();
        InetSocketAddress node = new InetSocketAddress(getProperties().getProperty("host"), 9042);
        session = CqlSession.builder().addContactPoint(node).withConfigLoader(config).build();
        select = session.prepare("SELECT field0 FROM ycsb.usertable WHERE id = ?");
        insert = session.prepare("INSERT INTO ycsb.usertable (id, field0) VALUES (?, ?)");
        delete = session.prepare("DELETE FROM ycsb.usertable WHERE id = ?");
      }
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    Row row = session.execute(select.bind(key)).one();
    if (row == null) {
      return Status.NOT_FOUND;
    }
    result.put("field0", new StringByteIterator(row.getString(0)));
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    session.execute(insert.bind(key, values.values().iterator().next().toString()));
    return Status.OK;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return update(table, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    session.execute(delete.bind(key));
    return Status.OK;
  }

  @Override
  public Status scan(String table, String key, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }
}
