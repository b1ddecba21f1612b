// SPDX-License-Identifier: MIT
// Recursion that is compiled while it runs, exceptions, threads, a null pointer, a full stack.
import java.util.*;

public class Runs {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static void dive(int depth) { if (depth == 0) throw new RuntimeException("x"); dive(depth - 1); }
    static int endless(int n) { return endless(n + 1) + 1; }

    public static void main(String[] words) throws Exception {
        int caught = 0, faults = 0;
        for (int i = 0; i < 2000; i++)
            try { dive(20); } catch (RuntimeException e) { caught++; }
        Thread[] threads = new Thread[4];
        for (int i = 0; i < 4; i++) {
            threads[i] = new Thread(() -> {
                List<String> list = new ArrayList<>();
                for (int k = 0; k < 20000; k++) { list.add("a" + k); if (k % 500 == 0) list.clear(); }
            });
            threads[i].start();
        }
        for (Thread t : threads) t.join();
        System.gc();
        try { int[] none = null; faults = none[0]; } catch (NullPointerException e) { faults = 7; }
        try { endless(0); } catch (StackOverflowError e) { faults++; }
        System.out.println(fib(30) + " " + caught + " " + faults);
    }
}
