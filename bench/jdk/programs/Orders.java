// SPDX-License-Identifier: MIT OR Apache-2.0
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Order processing: a company of warehouses, each served by one thread that works on its own warehouse alone, in the mix of transactions of
 * TPC-C that SPECjbb2000 took over. No data base, no disk: objects are made, kept for a while in trees, and dropped.
 *
 *     java Orders WAREHOUSES WARM MEASURED      an operation is a transaction
 */
public final class Orders {
  private static final int ITEMS = 20_000, DISTRICTS = 10, CUSTOMERS = 60, OPEN_ORDERS = 20, HISTORY = 4;

  private record Item(int number, String name, BigDecimal price) {}

  private record Line(Item item, int quantity, BigDecimal amount) {}

  private record Order(int number, int customer, List<Line> lines, long entered) {}

  private record Payment(BigDecimal amount, long when, String note) {}

  private static final class Customer {
    final String name;
    BigDecimal balance = BigDecimal.ZERO;
    final Payment[] history = new Payment[HISTORY];
    int payments;
    Order last;

    Customer(String name) {
      this.name = name;
    }
  }

  private static final class District {
    final Customer[] customers = new Customer[CUSTOMERS];
    final TreeMap<Integer, Order> open = new TreeMap<>();
    int next = 1;
  }

  private static final Item[] CATALOGUE = new Item[ITEMS];

  static {
    for (int i = 0; i < ITEMS; i++) {
      CATALOGUE[i] = new Item(i, "item " + i, BigDecimal.valueOf(100 + i * 37L % 9900, 2));
    }
  }

  /** One thread's: nothing in it is shared. */
  private static final class Warehouse {
    private final District[] districts = new District[DISTRICTS];
    private final Map<Integer, Integer> stock = new HashMap<>();
    private BigDecimal earned = BigDecimal.ZERO;
    private long seed, clock;

    Warehouse(int number) {
      seed = number + 1;
      for (int d = 0; d < DISTRICTS; d++) {
        districts[d] = new District();
        for (int c = 0; c < CUSTOMERS; c++) {
          districts[d].customers[c] = new Customer("customer " + number + "/" + d + "/" + c);
        }
      }
    }

    private int random(int bound) {
      seed = seed * 6364136223846793005L + 1442695040888963407L;
      return (int) ((seed >>> 33) % bound);
    }

    /** What a terminal would show: made, and thrown away. */
    private static int show(StringBuilder screen) {
      return screen.toString().hashCode();
    }

    private int newOrder(District district) {
      final int customer = random(CUSTOMERS), count = 5 + random(11);
      final List<Line> lines = new ArrayList<>(count);
      BigDecimal total = BigDecimal.ZERO;
      final StringBuilder screen = new StringBuilder("new order of ").append(district.customers[customer].name).append('\n');
      for (int i = 0; i < count; i++) {
        final Item item = CATALOGUE[random(ITEMS)];
        final int quantity = 1 + random(10);
        final BigDecimal amount = item.price.multiply(BigDecimal.valueOf(quantity));
        stock.merge(item.number % 2000, -quantity, (a, b) -> a + b < -100 ? 100 : a + b);
        lines.add(new Line(item, quantity, amount));
        total = total.add(amount);
        screen.append(item.name).append(' ').append(quantity).append(' ').append(amount).append('\n');
      }
      final Order order = new Order(district.next++, customer, lines, clock);
      district.open.put(order.number, order);
      district.customers[customer].last = order;
      if (district.open.size() > OPEN_ORDERS) {
        district.open.pollFirstEntry();
      }
      return show(screen.append(total));
    }

    private int payment(District district) {
      final Customer customer = district.customers[random(CUSTOMERS)];
      final BigDecimal amount = BigDecimal.valueOf(100 + random(500_000), 2);
      customer.balance = customer.balance.subtract(amount).remainder(BigDecimal.valueOf(1_000_000));
      customer.history[customer.payments++ % HISTORY] = new Payment(amount, clock, "paid by " + customer.name);
      earned = earned.add(amount).remainder(BigDecimal.valueOf(1_000_000_000));
      return show(new StringBuilder("payment of ").append(customer.name).append(": ").append(amount).append(", now ").append(customer.balance));
    }

    private int status(District district) {
      final Customer customer = district.customers[random(CUSTOMERS)];
      final StringBuilder screen = new StringBuilder("status of ").append(customer.name).append('\n');
      if (customer.last != null) {
        for (Line line : customer.last.lines) {
          screen.append(line.item.name).append(' ').append(line.amount).append('\n');
        }
      }
      return show(screen);
    }

    private int delivery() {
      final StringBuilder screen = new StringBuilder("delivered:");
      for (District district : districts) {
        final Map.Entry<Integer, Order> oldest = district.open.pollFirstEntry();
        if (oldest != null) {
          final Order order = oldest.getValue();
          final Customer customer = district.customers[order.customer];
          for (Line line : order.lines) {
            customer.balance = customer.balance.add(line.amount).setScale(2, RoundingMode.HALF_UP);
          }
          screen.append(' ').append(order.number);
        }
      }
      return show(screen);
    }

    private int level(District district) {
      final Map<Integer, Integer> low = new HashMap<>();
      for (Order order : district.open.tailMap(district.next - 20).values()) {
        for (Line line : order.lines) {
          final int left = stock.getOrDefault(line.item.number % 2000, 0);
          if (left < 15) {
            low.put(line.item.number, left);
          }
        }
      }
      return low.size();
    }

    int transaction() {
      clock++;
      final District district = districts[random(DISTRICTS)];
      final int kind = random(23); // 10 : 10 : 1 : 1 : 1
      return kind < 10 ? newOrder(district)
          : kind < 20  ? payment(district)
          : kind == 20 ? status(district)
          : kind == 21 ? delivery()
                       : level(district);
    }
  }

  private static volatile int shown; // so that no screen is optimised away

  public static void main(String[] words) throws InterruptedException {
    final int count = Integer.parseInt(words[0]), batch = 50;
    final Warehouse[] warehouses = new Warehouse[count];
    for (int i = 0; i < count; i++) {
      warehouses[i] = new Warehouse(i);
    }
    final Crew crew = new Crew(count, thread -> {
      int sum = 0;
      for (int i = 0; i < batch; i++) {
        sum += warehouses[thread].transaction();
      }
      shown = sum;
      return batch;
    });
    Window.print(crew.measure(Double.parseDouble(words[1]), Double.parseDouble(words[2])));
  }
}
