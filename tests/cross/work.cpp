// SPDX-License-Identifier: MIT
// A program with exceptions, threads, recursion, jump tables, tail calls, variadic and
// floating-point arguments.  It is counted by hooks and by the compiler's own instrumentation of
// the same source.  No function is inlined, so both count each call.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#define OWN __attribute__((noinline, noclone))
#define KEPT __asm__ volatile("") // keeps calls of empty functions

namespace work
{

struct cleaner {
    int &count;
    OWN explicit cleaner(int &c) : count(c)
    {
        KEPT;
    }
    OWN ~cleaner()
    {
        count++;
    }
};

OWN long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

OWN int thrower(int n, int &cleaned)
{
    cleaner guard(cleaned);
    if (n % 3 == 0) {
        throw std::runtime_error("three");
    }
    if (n % 7 == 0) {
        throw n;
    }
    return n;
}

OWN int catcher(int n, int &cleaned)
{
    try {
        return thrower(n, cleaned);
    } catch (const std::runtime_error &) {
        return -1;
    } catch (int seven) {
        return seven;
    }
}

OWN double mix(double a, float b, long c, double d)
{
    return a * b + static_cast<double>(c) - d;
}

OWN long sum_of(int count, ...)
{
    va_list list;
    long sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) {
        sum += va_arg(list, long);
    }
    va_end(list);
    return sum;
}

OWN int choose(int n, int x)
{
    switch (n) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x - 7;
    case 3: return x ^ 5;
    case 4: return x / 3;
    case 5: return x << 2;
    case 6: return x % 11;
    case 7: return ~x;
    case 8: return x & 0xff;
    case 9: return x | 1;
    default: return x;
    }
}

OWN int empty()
{
    KEPT;
    return 0;
}
OWN void nothing()
{
    KEPT;
}
OWN int down(int n)
{
    return n == 0 ? empty() : down(n - 1);
}

struct shape {
    OWN shape()
    {
        KEPT;
    }
    OWN virtual int area() const
    {
        return 1;
    }
    OWN virtual ~shape()
    {
        KEPT;
    }
};
struct square : shape {
    int side;
    OWN explicit square(int s) : side(s)
    {
        KEPT;
    }
    OWN ~square() override
    {
        KEPT;
    }
    OWN int area() const override
    {
        return side * side;
    }
};

OWN void in_thread(int id, long *out)
{
    int cleaned = 0;
    for (int i = 0; i < 300; i++) {
        *out += catcher(i + id, cleaned) + choose(i % 12, i);
        nothing();
    }
    square s(id);
    const shape *volatile any = &s;
    *out += any->area() + fib(10) + cleaned;
}

} // namespace work

int main()
{
    std::vector<std::thread> threads;
    long results[4] = {}, total = 0;
    int cleaned = 0;

    for (int i = 0; i < 4; i++) {
        threads.emplace_back(work::in_thread, i, &results[i]);
    }
    for (std::thread &t : threads) {
        t.join();
    }
    for (long r : results) {
        total += r;
    }
    for (int i = 0; i < 100; i++) {
        total += work::catcher(i, cleaned) + work::down(i);
    }
    total += static_cast<long>(work::mix(1.5, 2.5f, 3, 4.5)) +
             work::sum_of(10, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
    std::printf("%ld %d\n", total, cleaned);
    return 0;
}
