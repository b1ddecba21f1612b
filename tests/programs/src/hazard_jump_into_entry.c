/* SPDX-License-Identifier: MIT */
/* Jumps into bytes 1 to 4 of an entry: from the function itself, from another function, and
 * through a table. */
#include "hazard.h"

enum { ROUNDS = 1000 };

int sum_down(int n);
int plus_three(int n);
int enter_late(int n);
int by_table(int which);

/* returns n + ... + 1: the loop's target is entry+2 */
FUNCTION(sum_down, "xor %eax, %eax\n"
                   "1: add %edi, %eax\n"
                   "dec %edi\n"
                   "jne 1b\n"
                   "ret");

/* n+3, or n+2 for callers that jump to entry+2 */
FUNCTION(plus_three, "inc %edi\n"
                     "1: lea 2(%rdi), %eax\n"
                     "ret");

FUNCTION(enter_late, "test %edi, %edi\n"
                     "jmp plus_three + 2");

/* Each case except the last loops through entry+1; the table has four offsets. */
FUNCTION(by_table, "push %rbx\n"
                   "cmp $3, %edi\n"
                   "ja 9f\n"
                   "lea 8f(%rip), %rdx\n"
                   "mov %edi, %eax\n"
                   "movslq (%rdx,%rax,4), %rax\n"
                   "add %rdx, %rax\n"
                   "lea 1(%rdi), %edi\n"
                   "jmp *%rax\n"
                   "7: mov $40, %eax\n"
                   "pop %rbx\n"
                   "ret\n"
                   "9: mov $-1, %eax\n"
                   "pop %rbx\n"
                   "ret\n"
                   ".section .rodata\n"
                   ".p2align 2\n"
                   "8: .long by_table + 1 - 8b, by_table + 1 - 8b, by_table + 1 - 8b, 7b - 8b\n"
                   ".text");

int main(void)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += sum_down(1 + i % 9) + plus_three(i) + enter_late(i) + by_table(i % 5);
    printf("sum %ld\n", sum);
    say_total_if_hooked("sum_down", ROUNDS);
    say_total_if_hooked("plus_three", ROUNDS);
    say_total_if_hooked("enter_late", ROUNDS);
    say_total_if_hooked("by_table", ROUNDS);
    return 0;
}
