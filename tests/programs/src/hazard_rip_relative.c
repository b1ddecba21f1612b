/* SPDX-License-Identifier: MIT */
/* First instructions with RIP-relative operands: load, store, lea, compare. */
#include "hazard.h"

enum { ROUNDS = 1000 };

long load(void);
void store(long n);
long *address_of(void);
int compare(void);
void count_up(void);
double load_double(void);
long load_after_landing_pad(void);
long two_loads(void);

__asm__(".data\n.p2align 3\ncell: .quad 5\nother: .quad 11\nreal: .double 2.5\n.text\n");

FUNCTION(load, "mov cell(%rip), %rax\nret");
FUNCTION(store, "mov %rdi, cell(%rip)\nret");
FUNCTION(address_of, "lea cell(%rip), %rax\nret");
FUNCTION(compare, "cmpq $5, cell(%rip)\nsete %al\nmovzbl %al, %eax\nret");
FUNCTION(count_up, "incq cell(%rip)\nret");
FUNCTION(load_double, "movsd real(%rip), %xmm0\nret");
FUNCTION(load_after_landing_pad, "endbr64\nmov other(%rip), %rax\nret");
FUNCTION(two_loads, "movzbl cell(%rip), %eax\nmovzbl other(%rip), %ecx\nadd %rcx, %rax\nret");

int main(void)
{
    double reals = 0;
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += load() + compare() + load_after_landing_pad() + two_loads();
        store(i);
        count_up();
        sum += *address_of();
        reals += load_double();
    }
    printf("sum %ld reals %.1f\n", sum, reals);
    say_total("load", ROUNDS);
    say_total("store", ROUNDS);
    say_total("address_of", ROUNDS);
    say_total("compare", ROUNDS);
    say_total("count_up", ROUNDS);
    say_total("load_double", ROUNDS);
    say_total("load_after_landing_pad", ROUNDS);
    say_total("two_loads", ROUNDS);
    return 0;
}
