# SPDX-License-Identifier: MIT
"""A run of CPython: classes, generators, exceptions, strings, containers, the collector, json, re."""
import collections
import functools
import gc
import json
import re


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Shape:
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side ** 2

    def __lt__(self, other):
        return self.area < other.area


def squares(limit):
    for i in range(limit):
        try:
            yield i * i
        finally:
            pass


def fail(depth):
    if not depth:
        raise ValueError("bottom")
    try:
        fail(depth - 1)
    except ValueError as problem:
        raise RuntimeError(depth) from problem


print("fib", fib(90))
print("sum", sum(squares(3000)), max(map(Shape, [3, 9, 4])).side)
caught = 0
for _ in range(200):
    try:
        fail(5)
    except RuntimeError as problem:
        caught += problem.args[0]
print("caught", caught)
words = "the quick brown fox jumps over the lazy dog".split() * 50
print(collections.Counter(words).most_common(3))
print(re.sub(r"(\w)(\w*)", lambda m: m[2] + m[1], " ".join(words[:9])))
text = json.dumps({str(i): [i, i / 7, None, "é" * (i % 3)] for i in range(200)}, sort_keys=True)
print(len(text), json.loads(text)["77"])
print(f"{3.14159:8.3f}|{'left':<8}|{255:#x}", "%5d %s" % (42, [1, "two"]), 2 ** 200 % 1000007)
print(sorted({i * 7919 % 101 for i in range(500)})[:10], [*zip("abc", range(3))])
cycles = []
for i in range(500):
    cycles.append([cycles, {"self": i}])
del cycles
print("collected", gc.collect() > 0, bytes(range(10)).hex(), "ß".upper(), "ﬁ".casefold())
exec(compile("print('compiled', [x for x in range(20) if x % 3], {**{'a': 1}, 'b': 2})", "here", "exec"))
