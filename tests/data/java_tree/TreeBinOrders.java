import java.util.*;

/**
 * Writes orders of real java.util.HashMap objects whose keys collide, as JSON lines:
 * java TreeBinOrders.java > java-tree-bins.jsonl (made with OpenJDK 17).
 */
public class TreeBinOrders {
    static String json(Object key) {
        return key instanceof String ? "\"" + key + "\"" : key.toString();
    }

    static <K> String order(Map<K, Integer> map) {
        StringJoiner joined = new StringJoiner(",", "[", "]");
        for (K key : map.keySet()) joined.add(json(key));
        return joined.toString();
    }

    /** Keys of one hash code each: 2^length strings of the blocks Aa and BB, and multiples of 64 in one of 64 buckets. */
    static List<Object> keys(Random random, boolean text) {
        Set<Object> keys = new LinkedHashSet<>();
        int count = 10 + random.nextInt(14);
        while (keys.size() < count) {
            if (!text) {
                keys.add(64 * random.nextInt(200) - (random.nextInt(4) == 0 ? 6400 : 0));
                continue;
            }
            StringBuilder name = new StringBuilder();
            for (int block = 0; block < 5; block++) name.append(random.nextBoolean() ? "Aa" : "BB");
            keys.add(name.toString());
        }
        return new ArrayList<>(keys);
    }

    public static void main(String[] args) {
        Random random = new Random(20261122);
        for (int number = 0; number < 24; number++) {
            boolean text = number % 2 == 1;
            List<Object> keys = keys(random, text);
            Map<Object, Integer> map = new HashMap<>(64);
            StringJoiner ops = new StringJoiner(",", "[", "]");
            StringJoiner orders = new StringJoiner(",", "[", "]");
            int steps = 2 * keys.size() + random.nextInt(20);
            for (int step = 0; step < steps; step++) {
                Object key = keys.get(step < keys.size() ? step : random.nextInt(keys.size()));
                String op;
                if (step < keys.size()) {
                    op = random.nextInt(3) == 0 ? "cia" : "put";
                } else if (!map.containsKey(key)) {
                    op = random.nextBoolean() ? "cia" : "put";
                } else {
                    op = random.nextInt(3) == 0 ? "iterator_remove" : "remove";
                }
                if (op.equals("put")) map.put(key, step);
                if (op.equals("cia")) map.computeIfAbsent(key, k -> 0);
                if (op.equals("remove")) map.remove(key);
                if (op.equals("iterator_remove")) {
                    for (Iterator<Object> at = map.keySet().iterator(); at.hasNext();) if (at.next().equals(key)) at.remove();
                }
                ops.add("[\"" + op + "\"," + json(key) + "]");
                if (step % 3 == 2) {
                    ops.add("[\"order\"]");
                    orders.add(order(map));
                }
            }
            System.out.println("{\"key\":\"" + (text ? "string" : "int") + "\",\"capacity\":64,\"ops\":" + ops + ",\"orders\":" + orders + "}");
        }
    }
}
