# SPDX-License-Identifier: MIT
"""C programs generated from a seed, whose functions call each other a known number of times and print how long
each call took.  They wait for deadlines of the processor's counter, so that the printed times include all
disturbances by the machine.

    generated.py SEED                the program, on stdout
"""
import random
import sys

HEAD = """/* Made by generated.py from seed {seed}. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noipa))     /* gcc would find that a callee leaves r10 alone, and keep its stack there */
#endif
#define WAIT(n) do {{ uint64_t end_ = __builtin_ia32_rdtsc() + (n); while (__builtin_ia32_rdtsc() < end_) {{}} }} while (0)
typedef struct three {{ long a, b, c; }} three;
typedef struct tally {{ uint64_t calls, total, self, open; }} tally;
static __thread tally mine[{functions}];
static __thread uint64_t below;     /* ticks of the calls that the current function made */
static tally all[{functions}];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define BEGIN(f) uint64_t saved_ = below, begin_ = __builtin_ia32_rdtsc(); below = 0; mine[f].open++
#define END(f) do {{ uint64_t passed_ = __builtin_ia32_rdtsc() - begin_; mine[f].calls++; \\
    if (--mine[f].open == 0) mine[f].total += passed_; \\
    mine[f].self += passed_ - below; below = saved_ + passed_; }} while (0)
static void give(void)
{{
    pthread_mutex_lock(&lock);
    for (int f = 0; f < {functions}; f++)
        all[f].calls += mine[f].calls, all[f].total += mine[f].total, all[f].self += mine[f].self;
    pthread_mutex_unlock(&lock);
}}
"""
TAIL = """
static void *thread(void *x) { %s give(); return x; }
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, thread, NULL);
    %s
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    give();
    for (int f = 0; f < %d; f++)
        if (all[f].calls)
            printf("f%%d %%llu %%llu %%llu\\n", f, (unsigned long long)all[f].calls,
                   (unsigned long long)all[f].total, (unsigned long long)all[f].self);
    return 0;
}
"""
KINDS = {"void": "", "long": "return depth;", "double": "return (double)depth;", "three": "return (three){ depth, 1, 2 };"}
THREADS, CALLS_AT_MOST = 2, 3000


class Function:
    def __init__(self, r, index, functions):
        self.index = index
        self.kind = r.choice(list(KINDS))
        self.arguments = r.choice([0, 0, 1, 3, 5, 8, 10])     # some arguments are on the stack
        self.deep = r.choice([0, 0, 0, 1, 3])                 # number of recursive calls
        later = range(index + 1, functions)
        self.callees = [(r.choice(later), r.randint(1, 4)) for _ in range(r.randint(0, 3)) if later]
        self.waits = [r.randint(30_000, 120_000) for _ in range(len(self.callees) + 1)]

    def head(self):
        more = "".join(f", long a{i}" for i in range(self.arguments))
        return f"OWN {self.kind} f{self.index}(long depth{more})"

    def call(self, depth):
        return f"f{self.index}({', '.join([depth] + [str(i) for i in range(self.arguments)])});"

    def body(self, all_functions):
        lines = [f"BEGIN({self.index});"]
        for wait, (callee, times) in zip(self.waits, self.callees):
            to = all_functions[callee]
            lines += [f"WAIT({wait});", f"for (int i = 0; i < {times}; i++) {to.call(str(to.deep))}"]
        lines += [f"WAIT({self.waits[-1]});", f"if (depth > 0) {self.call('depth - 1')}", f"END({self.index});",
                  KINDS[self.kind]]
        return self.head() + "\n{\n    " + "\n    ".join(lines) + "\n}\n"


def calls_of(functions, first):
    """The number of calls of each function that one call of the first makes."""
    calls = [0] * len(functions)
    calls[first] = functions[first].deep + 1
    for f in functions[first:]:         # callees are defined after their callers
        for callee, times in f.callees:
            calls[callee] += calls[f.index] * times * (functions[callee].deep + 1)
    return calls


def program(seed, functions=14):
    """(the source, {name: calls})"""
    r = random.Random(seed)
    while True:
        made = [Function(r, i, functions) for i in range(functions)]
        begins = [0, r.randrange(functions)]              # calls in the main thread, in the others
        calls = [a + THREADS * b for a, b in zip(calls_of(made, 0), calls_of(made, begins[1]))]
        if functions * 10 < sum(calls) < CALLS_AT_MOST:
            break
    starts = [made[i].call(str(made[i].deep)) for i in begins]
    text = HEAD.format(seed=seed, functions=functions)
    text += "".join(f.head() + ";\n" for f in made) + "".join(f.body(made) for f in made)
    return text + TAIL % (starts[1], starts[0], functions), {f"f{i}": n for i, n in enumerate(calls) if n}


if __name__ == "__main__":
    print(program(int(sys.argv[1]))[0], end="")
