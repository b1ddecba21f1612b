// SPDX-License-Identifier: MIT
// Delegates, exceptions, garbage collection, threads, fibers.
import core.memory, core.thread;
import std.algorithm, std.conv, std.range, std.stdio;

class Odd : Exception { this(long n) { super(n.to!string); } }

long half(long n)
{
    if (n & 1) throw new Odd(n);
    return n / 2;
}

long sumOfFiber(int count)
{
    long total, current;
    auto fiber = new Fiber({ foreach (n; 0 .. count) { current = n; Fiber.yield(); } });
    while (true) {
        fiber.call();
        if (fiber.state == Fiber.State.TERM) break;
        total += current;
    }
    return total;
}

void main()
{
    long[4] parts;
    Thread[] threads;
    foreach (i; 0 .. 4) (int w) {
        threads ~= new Thread({
            foreach (n; 1 .. 3000)
                try parts[w] += half(n * (w + 1)); catch (Odd) { parts[w]++; }
        }).start();
    }(i);
    threads.each!(t => t.join());
    string[] words;
    foreach (n; 0 .. 20_000) words ~= (n * 7919 % 1009).to!string;
    GC.collect();
    words.sort();
    writeln(parts[].sum, " ", words.uniq.count, " ", sumOfFiber(2000));
}
