package com.shop.orders;
import java.util.*;
/** An order. */
@Entity @Table(name = "orders")
public class Order<T extends Comparable<T>> extends Base implements Serializable {
    private static final long serialVersionUID = 1L;
    static { System.loadLibrary("x"); }
    { counter++; }
    @Id private Long id;
    private final Map<String, List<Line>> lines = new HashMap<>();
    public Order() { this(null); }
    public Order(Long id) { this.id = id; }
    @Override
    public int hashCode() { return 1; }
    /** Adds. @param l the line */
    public synchronized <R> R add(Line l) throws IOException {
        Runnable r = new Runnable() { @Override public void run() { System.out.println("x"); } };
        return null;
    }
    abstract static class Builder { abstract Order build(); static Builder of() { return null; } }
    enum Status { NEW("n") { @Override String label() { return "N"; } }, PAID("p"); 
        private final String code; Status(String c) { code = c; } String label() { return code; } }
    interface Visitor<R> { R visit(Order o); default void done() { } }
    record Line(String sku, int qty) { Line { if (qty < 0) throw new IllegalArgumentException(); } int total() { return qty; } }
    @interface Audited { String value() default ""; }
}
sealed interface Shape permits Circle {}
final class Circle implements Shape { double area() { return 1; } }
