/* SPDX-License-Identifier: MIT */
/* Nested setjmp and longjmp across many frames, and a coroutine with its own stack (ucontext). */
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#include "totals.h"

enum { ROUNDS = 1000, DEPTH = 25, SWITCHES = 500 };

static jmp_buf outer, inner;
static ucontext_t main_context, other_context;
static long other_sum;
static char other_stack[256 * 1024];

COUNTED void sink(int depth)
{
    if (depth == 0)
        longjmp(inner, DEPTH);
    sink(depth - 1);
    KEEP();
}

COUNTED void jump_twice(void)
{
    if (setjmp(inner) == 0)
        sink(DEPTH);
    longjmp(outer, 2);
}

COUNTED int round_trip(void)
{
    int arrived = setjmp(outer);
    if (arrived == 0)
        jump_twice();
    return arrived;
}

COUNTED void produce(int value)
{
    other_sum += value;
    swapcontext(&other_context, &main_context);
}

COUNTED void other_main(void)
{
    for (int i = 0;; i++)
        produce(i);
}

int main(void)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += round_trip();
    if (getcontext(&other_context) != 0)
        abort();
    other_context.uc_stack.ss_sp = other_stack;
    other_context.uc_stack.ss_size = sizeof other_stack;
    makecontext(&other_context, other_main, 0);
    for (int i = 0; i < SWITCHES; i++)
        swapcontext(&main_context, &other_context);
    printf("sum %ld other %ld\n", sum, other_sum);
    say_total("round_trip", ROUNDS);
    say_total("jump_twice", ROUNDS);
    say_total("sink", ROUNDS * (DEPTH + 1));
    say_total("produce", SWITCHES);
    say_total("other_main", 1);
    return 0;
}
