// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * H2: an order processing after TPC-C (new orders, payments, deliveries, stock levels), a warehouse for each thread, in memory.
 *
 *     java -cp ... Orders WAREHOUSES TRANSACTIONS
 *
 * A thread's transactions follow from its number, and touch rows of its warehouse alone: the tables at the end do not depend on
 * how threads took turns. Their sums are printed.
 */
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

public final class Orders {
  private static final String URL = "jdbc:h2:mem:orders;DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=60000";
  private static final int ITEMS = 400;
  private static final int CUSTOMERS = 60;
  private static final int DISTRICTS = 4;

  private static final String[] TABLES = {
    "create table stock(w int, item int, quantity int, sold bigint, data varchar(60), primary key(w, item))",
    "create table district(w int, d int, next_order int, taken bigint, primary key(w, d))",
    "create table customer(w int, d int, c int, balance bigint, payments int, data varchar(300), primary key(w, d, c))",
    "create table orders(w int, d int, o int, c int, lines int, delivered boolean, primary key(w, d, o))",
    "create table line(w int, d int, o int, n int, item int, quantity int, amount bigint, primary key(w, d, o, n))",
  };
  private static final String[] SUMS = {
    "select count(*), sum(quantity), sum(sold) from stock",
    "select count(*), sum(next_order), sum(taken) from district",
    "select count(*), sum(balance), sum(payments), sum(length(data)) from customer",
    "select count(*), sum(cast(o as bigint) * c), sum(lines) from orders where delivered",
    "select count(*), sum(cast(item as bigint) * quantity), sum(amount) from line",
    "select w, count(*), sum(amount) from line group by w order by w",
    "select item, sum(quantity) q from line group by item order by q desc, item fetch first 10 rows only",
  };

  private final Connection connection;
  private final Random random;
  private final int warehouse;

  private Orders(Connection connection, int warehouse) throws SQLException {
    this.connection = connection;
    this.warehouse = warehouse;
    this.random = new Random(warehouse);
    connection.setAutoCommit(false);
  }

  private int update(String sql, Object... values) throws SQLException {
    try (PreparedStatement statement = prepare(sql, values)) {
      return statement.executeUpdate();
    }
  }

  private long query(String sql, Object... values) throws SQLException {
    try (PreparedStatement statement = prepare(sql, values); ResultSet rows = statement.executeQuery()) {
      return rows.next() ? rows.getLong(1) : -1;
    }
  }

  private PreparedStatement prepare(String sql, Object... values) throws SQLException {
    final PreparedStatement statement = connection.prepareStatement(sql);
    for (int i = 0; i < values.length; i++) {
      statement.setObject(i + 1, values[i]);
    }
    return statement;
  }

  private void fill() throws SQLException {
    for (int item = 0; item < ITEMS; item++) {
      update("insert into stock values(?, ?, 100, 0, ?)", warehouse, item, "item " + item + " at " + warehouse);
    }
    for (int d = 0; d < DISTRICTS; d++) {
      update("insert into district values(?, ?, 1, 0)", warehouse, d);
      for (int c = 0; c < CUSTOMERS; c++) {
        update("insert into customer values(?, ?, ?, 0, 0, '')", warehouse, d, c);
      }
    }
    connection.commit();
  }

  private void newOrder(int d) throws SQLException {
    final long o = query("select next_order from district where w = ? and d = ?", warehouse, d);
    update("update district set next_order = next_order + 1 where w = ? and d = ?", warehouse, d);
    final int lines = 5 + random.nextInt(11);
    update("insert into orders values(?, ?, ?, ?, ?, false)", warehouse, d, o, random.nextInt(CUSTOMERS), lines);
    for (int n = 0; n < lines; n++) {
      final int item = random.nextInt(ITEMS);
      final int quantity = 1 + random.nextInt(10);
      update("update stock set quantity = case when quantity > ? + 10 then quantity - ? else quantity - ? + 91 end,"
                 + " sold = sold + ? where w = ? and item = ?",
             quantity, quantity, quantity, quantity, warehouse, item);
      update("insert into line values(?, ?, ?, ?, ?, ?, ?)", warehouse, d, o, n, item, quantity, (item % 97 + 3L) * quantity);
    }
  }

  private void payment(int d) throws SQLException {
    final int amount = 1 + random.nextInt(5000);
    update("update district set taken = taken + ? where w = ? and d = ?", amount, warehouse, d);
    update("update customer set balance = balance - ?, payments = payments + 1, data = left(? || data, 300)"
               + " where w = ? and d = ? and c = ?",
           amount, amount + " at " + d + ";", warehouse, d, random.nextInt(CUSTOMERS));
  }

  private void delivery(int d) throws SQLException {
    final long o = query("select min(o) from orders where w = ? and d = ? and not delivered", warehouse, d);
    final long amount = query("select sum(amount) from line where w = ? and d = ? and o = ?", warehouse, d, o);
    update("update customer set balance = balance + ? where w = ? and d = ?"
               + " and c = (select c from orders where w = ? and d = ? and o = ?)",
           amount, warehouse, d, warehouse, d, o);
    update("update orders set delivered = true where w = ? and d = ? and o = ?", warehouse, d, o);
  }

  private void stockLevel(int d) throws SQLException {
    query("select count(distinct s.item) from line l join stock s on s.w = l.w and s.item = l.item"
              + " where l.w = ? and l.d = ? and l.o > (select next_order - 20 from district where w = ? and d = ?) and s.quantity < 40",
          warehouse, d, warehouse, d);
  }

  private void transactions(int count) throws SQLException {
    for (int i = 0; i < count; i++) {
      final int d = random.nextInt(DISTRICTS);
      switch (i % 10) {
        case 0, 2, 4, 6, 8 -> newOrder(d);
        case 1, 3, 5 -> payment(d);
        case 7 -> delivery(d);
        default -> stockLevel(d);
      }
      connection.commit();
    }
  }

  private static Void serve(int warehouse, int count) throws SQLException {
    try (Connection connection = DriverManager.getConnection(URL)) {
      final Orders orders = new Orders(connection, warehouse);
      orders.fill();
      orders.transactions(count);
      return null;
    }
  }

  private static void print(Statement statement, String sql) throws SQLException {
    try (ResultSet rows = statement.executeQuery(sql)) {
      System.out.println(sql);
      while (rows.next()) {
        for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) {
          System.out.print(" " + rows.getString(i));
        }
        System.out.println();
      }
    }
  }

  public static void main(String[] args) throws Exception {
    final int count = Integer.parseInt(args[1]);
    try (Connection connection = DriverManager.getConnection(URL); Statement statement = connection.createStatement()) {
      for (final String table : TABLES) {
        statement.execute(table);
      }
      final int warehouses = Integer.parseInt(args[0]);
      try (ExecutorService pool = Executors.newFixedThreadPool(warehouses)) {
        for (final Future<Void> future : pool.invokeAll(
                 IntStream.range(0, warehouses).mapToObj(w -> (Callable<Void>) () -> serve(w, count)).toList())) {
          future.get();
        }
      }
      for (final String sql : SUMS) {
        print(statement, sql);
      }
    }
  }
}
