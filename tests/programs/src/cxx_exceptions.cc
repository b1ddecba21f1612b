/* SPDX-License-Identifier: MIT */
/* Exceptions through hooked functions: throw, rethrow, nested exceptions, from a destructor's
 * clean-up, by exception_ptr, through a noexcept(false) virtual call, and across many frames,
 * with stack arguments. */
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "totals.h"

enum { ROUNDS = 200, DEPTH = 30 };

static long cleanups;

struct guard {
    long weight;
    explicit guard(long w) : weight(w) {}
    ~guard();
};

COUNTED guard::~guard() { cleanups += weight; }

extern "C" {

COUNTED void throw_number(int value)
{
    KEEP();
    throw value;
}

COUNTED void throw_text(const char *text)
{
    KEEP();
    throw std::runtime_error(text);
}

COUNTED void dive(int depth)
{
    guard local(1);
    if (depth == 0)
        throw_number(DEPTH);
    dive(depth - 1);
    KEEP();
}

/* The last two arguments are on the stack. */
COUNTED void carry(int b, int c, int d, int e, int f, int g, int value, int depth)
{
    if (depth == 0)
        throw_number(value);
    carry(c, d, e, f, g, b, value, depth - 1);
    KEEP();
}

COUNTED void begin_to_carry(int value)
{
    carry(1, 2, 3, 4, 5, 6, value, DEPTH);
    KEEP();
}

COUNTED void pass_on(int round)
{
    try {
        guard local(1000);
        throw_text(round % 2 ? "odd" : "even");
    } catch (const std::logic_error &) {
        cleanups += 1000000;
    } catch (...) {
        throw; /* rethrow the same object */
    }
}

COUNTED int nest(int round)
{
    try {
        pass_on(round);
    } catch (const std::runtime_error &outer) {
        try {
            throw_number(round);
        } catch (int inner) {
            return inner + (int)std::string(outer.what()).size();
        }
    }
    return -1;
}

COUNTED std::exception_ptr keep_one(int value)
{
    try {
        throw_number(value);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

COUNTED int reopen(const std::exception_ptr &kept)
{
    try {
        std::rethrow_exception(kept);
    } catch (int value) {
        return value;
    }
}

} /* extern "C" */

struct shape {
    virtual ~shape() {}
    virtual int area(int scale) const = 0;
};

struct square : shape {
    int area(int scale) const override
    {
        if (scale < 0)
            throw std::invalid_argument("negative scale");
        return scale * scale;
    }
};

extern "C" COUNTED int measure(const shape &which, int scale)
{
    try {
        return which.area(scale);
    } catch (const std::invalid_argument &refused) {
        return -(int)std::string(refused.what()).size();
    }
}

int main()
{
    long sum = 0;
    square one;
    for (int round = 0; round < ROUNDS; round++) {
        try {
            dive(DEPTH);
        } catch (int depth) {
            sum += depth;
        }
        try {
            begin_to_carry(round);
        } catch (int value) {
            sum += value;
        }
        sum += nest(round);
        sum += reopen(keep_one(round));
        sum += measure(one, round % 3 - 1);
    }
    std::vector<std::string> words;
    try {
        words.at(3);
    } catch (const std::out_of_range &) {
        sum += 7;
    }
    printf("sum %ld cleanups %ld\n", sum, cleanups);
    say_total("dive", (DEPTH + 1) * ROUNDS);
    say_total("carry", (DEPTH + 1) * ROUNDS);
    say_total("throw_number", 4 * ROUNDS);
    say_total("throw_text", ROUNDS);
    say_total("pass_on", ROUNDS);
    say_total("nest", ROUNDS);
    say_total("keep_one", ROUNDS);
    say_total("reopen", ROUNDS);
    say_total("measure", ROUNDS);
    return 0;
}
