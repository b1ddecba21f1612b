/* SPDX-License-Identifier: MIT */
/* Code that is not a plain sequence of functions: a function that falls through into the next,
 * two entries of one body, data between functions, a jump over a lock prefix, and two names for
 * one address. */
#include <stdint.h>

#include "hazard.h"

enum { ROUNDS = 1000 };

long falls_through(long n);
long fall_target(long n);
long skip_lock(long n, long locked);
long alias_one(long n);
long alias_two(long n);
long (*from_table(int which))(long);

FUNCTION(falls_through, "add $10, %rdi");
FUNCTION_CLOSE(fall_target, "lea 1(%rdi), %rax\nret");

/* As in glibc: without threads the jump skips the prefix and lands inside the instruction */
FUNCTION(skip_lock, "test %esi, %esi\n"
                    "je 1f\n"
                    "lock\n"
                    "1: addq %rdi, lock_cell(%rip)\n"
                    "mov lock_cell(%rip), %rax\n"
                    "ret\n"
                    ".data\n.p2align 3\nlock_cell: .quad 0\n.text");

__asm__(".globl alias_two\n.type alias_two, @function\n.set alias_two, alias_one\n");
FUNCTION(alias_one, "lea (%rdi,%rdi,2), %rax\nret");

/* Bytes between functions that are data: an address that from_table reads. */
__asm__(".p2align 3, 0xcc\nin_text: .long alias_one - in_text, fall_target - in_text\n"
        ".quad 0xe8e8e8e8e8e8e8e8\n");
FUNCTION(from_table, "lea in_text(%rip), %rdx\n"
                     "movslq %edi, %rdi\n"
                     "movslq (%rdx,%rdi,4), %rax\n"
                     "add %rdx, %rax\n"
                     "ret");

int main(void)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += falls_through(i) + fall_target(i) + skip_lock(i, i % 2);
        sum += alias_one(i) + alias_two(i) + from_table(i % 2)(i);
    }
    printf("sum %ld\n", sum);
    say_total_if_hooked("falls_through", ROUNDS);
    say_total_if_hooked("fall_target", 2 * ROUNDS + ROUNDS / 2);
    say_total_if_hooked("skip_lock", ROUNDS);
    say_total("alias_one", 2 * ROUNDS + ROUNDS / 2);
    say_total("from_table", ROUNDS);
    return 0;
}
