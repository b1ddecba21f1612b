/* SPDX-License-Identifier: MIT */
/* loop and jrcxz as the first instruction, and branches back to the function's first byte. */
#include "hazard.h"

enum { ROUNDS = 1000, TURNS = 6 };

long spin_loop(long unused, long unused2, long unused3, long turns);
long zero_test(long unused, long unused2, long unused3, long count);
long zero_test_32(long unused, long unused2, long unused3, long count);
long back_to_entry(long turns);
long tail_recursion(long turns);

/* rcx (the fourth argument) counts down; loop jumps to its own entry */
FUNCTION(spin_loop, "loop spin_loop\n"
                    "mov %rcx, %rax\n"
                    "ret");

FUNCTION(zero_test, "jrcxz 1f\n"
                    "mov $2, %eax\n"
                    "ret\n"
                    "1: mov $1, %eax\n"
                    "ret");

FUNCTION(zero_test_32, "jecxz 1f\n"
                       "mov $20, %eax\n"
                       "ret\n"
                       "1: mov $10, %eax\n"
                       "ret");

FUNCTION(back_to_entry, "lea -1(%rdi), %rdi\n"
                        "test %rdi, %rdi\n"
                        "jne back_to_entry\n"
                        "mov $5, %eax\n"
                        "ret");

/* The code that compilers emit for a tail call of the function to itself. */
FUNCTION(tail_recursion, "test %rdi, %rdi\n"
                         "je 1f\n"
                         "dec %rdi\n"
                         "jmp tail_recursion\n"
                         "1: mov $7, %eax\n"
                         "ret");

int main(void)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += spin_loop(0, 0, 0, TURNS) + zero_test(0, 0, 0, i % 2) + zero_test_32(0, 0, 0, i % 3);
        sum += back_to_entry(TURNS) + tail_recursion(TURNS);
    }
    printf("sum %ld\n", sum);
    say_total_or("spin_loop", ROUNDS, ROUNDS * TURNS);
    say_total_if_hooked("zero_test", ROUNDS);
    say_total_if_hooked("zero_test_32", ROUNDS);
    say_total_or("back_to_entry", ROUNDS, ROUNDS * TURNS);
    say_total_or("tail_recursion", ROUNDS, ROUNDS * (TURNS + 1));
    return 0;
}
