// SPDX-License-Identifier: MIT
// Delegates, exceptions, garbage collection, threads, iterators.
using System;
using System.Collections.Generic;
using System.Threading;

class Work
{
    class Odd : Exception { }

    static long Half(long n)
    {
        if (n % 2 == 1) throw new Odd();
        return n / 2;
    }

    static IEnumerable<long> Fibonacci()
    {
        long a = 0, b = 1;
        while (true) { yield return a; (a, b) = (b, (a + b) % 1000003); }
    }

    static void Main()
    {
        long[] parts = new long[4];
        var threads = new List<Thread>();
        for (int i = 0; i < 4; i++) {
            int w = i;
            var thread = new Thread(() => {
                for (int n = 1; n < 1000; n++) {
                    try { parts[w] += Half(n * (w + 1)); } catch (Odd) { parts[w]++; }
                }
            });
            thread.Start();
            threads.Add(thread);
        }
        threads.ForEach(t => t.Join());
        var counts = new Dictionary<string, int>();
        for (int n = 0; n < 20000; n++) {
            string key = (n % 997).ToString();
            counts[key] = counts.TryGetValue(key, out int old) ? old + 1 : 1;
        }
        GC.Collect();
        long sum = 0, taken = 0;
        foreach (long part in parts) sum += part;
        foreach (long value in Fibonacci()) { sum += value; if (++taken == 1000) break; }
        Console.WriteLine("{0} {1}", sum, counts.Count);
    }
}
