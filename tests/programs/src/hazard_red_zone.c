/* SPDX-License-Identifier: MIT */
/* The red zone: a leaf function that keeps its values below rsp while signals arrive, and a part
 * of a function, with a symbol of its own, that is jumped to while values lie below rsp. */
#include <signal.h>
#include <string.h>

#include "hazard.h"

enum { ROUNDS = 1000 };

long leaf(long a, long b);
long whole(long a);
long whole_part(long a);

FUNCTION(leaf, "mov %rdi, -8(%rsp)\n"
               "mov %rsi, -128(%rsp)\n"
               "xor %eax, %eax\n"
               "xor %edi, %edi\n"
               "add -8(%rsp), %rax\n"
               "add -128(%rsp), %rax\n"
               "ret");

FUNCTION(whole, "mov %rdi, -8(%rsp)\n"
                "mov %rdi, -16(%rsp)\n"
                "mov %rdi, -24(%rsp)\n"
                "mov %rdi, -64(%rsp)\n"
                "mov %rdi, -120(%rsp)\n"
                "mov %rdi, -128(%rsp)\n"
                "xor %eax, %eax\n"
                "test $1, %dil\n"
                "jne whole_part\n"
                "ret");

FUNCTION(whole_part, "add -8(%rsp), %rax\n"
                     "add -16(%rsp), %rax\n"
                     "add -24(%rsp), %rax\n"
                     "add -64(%rsp), %rax\n"
                     "add -120(%rsp), %rax\n"
                     "add -128(%rsp), %rax\n"
                     "ret");

static volatile sig_atomic_t seen;

COUNTED void on_signal(int number)
{
    seen += leaf(number, -number) == 0;
}

int main(void)
{
    struct sigaction action;
    long sum = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        sum += leaf(i, 2 * i) + whole(i);
        if (i % 10 == 0)
            raise(SIGUSR1);
    }
    printf("sum %ld seen %d\n", sum, (int)seen);
    say_total("leaf", ROUNDS + ROUNDS / 10);
    say_total("whole", ROUNDS);
    say_total("on_signal", ROUNDS / 10);
    say_total_if_hooked("whole_part", ROUNDS / 2);
    return 0;
}
