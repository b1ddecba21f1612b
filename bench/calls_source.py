# SPDX-License-Identifier: MIT
"""Writes a C program with one placement of code: 1000 small functions in random order with random gaps, and callers.

The placement affects the CPU's branch predictor and caches: the cost of identical stubs differs by a factor of two
between placements, so figures are averaged over many.
"""
import random

FUNCTIONS = 1000
HEAD = """\
/* Made by bench/calls_source.py, seed {seed}. */
#include <stdint.h>
#define KEPT __attribute__((noinline, noclone, used))
#define use(value) __asm__ volatile("" : : "r"(value))
{before}
"""
# variant: (text before the functions, text at the beginning of each)
VARIANTS = {
    "bare": ("", ""),
    "instrument": ("", ""),
    "shared": (f"static volatile uint64_t shared_counts[{FUNCTIONS}];", "shared_counts[{i}]++; "),
}


def function(i, first):
    """A few instructions; calls do not depend on each other's results, so that the call itself is measured."""
    return (f"KEPT static uint64_t place_{i}(uint64_t x) {{ {first.format(i=i)}"
            f"return ((x << {1 + i % 13}) ^ (x >> {1 + i % 7})) + {i}; }}\n")


def gap(rng):
    """Unused bytes, 1 to 16 times 16."""
    return f'__asm__(".skip {16 * rng.randrange(1, 17)}, 0xcc");\n'


def driver(count, chosen):
    """run_COUNT(n): n rounds over `count` functions in turn, by direct calls."""
    calls = "".join(f"        use(place_{i}(n));\n" for i in chosen)
    return (f"KEPT uint64_t run_{count}(uint64_t n)\n{{\n    while (n--) {{\n{calls}    }}\n"
            "    return n;\n}\n")


def write(path, seed, variant):
    rng = random.Random(seed)
    before, first = VARIANTS[variant]
    order = rng.sample(range(FUNCTIONS), FUNCTIONS)
    parts = [HEAD.format(seed=seed, before=before)]
    for i in order:
        parts += [gap(rng), function(i, first)]
    for count in (1, 64, 1000):
        parts += [gap(rng), driver(count, rng.sample(range(FUNCTIONS), count))]
    text = "".join(parts)
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path
