# SPDX-License-Identifier: MIT
"""Calls, containers, strings, exceptions and generators; the argument scales it."""
import json
import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def sieve(limit):
    composite = bytearray(limit + 1)
    for i in range(2, int(limit ** 0.5) + 1):
        if not composite[i]:
            composite[i * i::i] = b"\1" * len(range(i * i, limit + 1, i))
    return limit - 1 - sum(composite)


def words(count):
    seen = {}
    for i in range(count):
        word = f"w{i * 7919 % 4099}"
        seen[word] = seen.get(word, 0) + 1
    return len(json.dumps(seen, sort_keys=True))


def failures(count):
    caught = 0
    for i in range(count):
        try:
            [][i]
        except IndexError:
            caught += 1
    return caught


def generated(count):
    return sum(x * x for x in range(count) if x % 3)


for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
    print(fib(21), sieve(200_000), words(30_000), failures(20_000), generated(60_000))
