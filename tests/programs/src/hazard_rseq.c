/* SPDX-License-Identifier: MIT */
/* A restartable sequence (Linux, include/uapi/linux/rseq.h): when the kernel interrupts the
 * sequence it resumes the thread at the abort address. Code that a descriptor in __rseq_cs names
 * must therefore stay at its address. The program keeps a counter per processor without a lock
 * and loses no increment. */
#include <signal.h>
#include <sys/rseq.h>
#include <sys/time.h>

#include "hazard.h"

enum { ROUNDS = 2000, ABORTS_WANTED = 3, ROUNDS_MAX = 2000000, SPIN = 4000 };

long add_here(struct rseq *area, long *slot, unsigned cpu, long spin);
long give_up(long result);
long beside(long n);

/* The sequence is from the second instruction to the last store; the result shows whether the
 * kernel aborted it.  The 12 bytes of `lea` and `mov` would be long enough for a patch. */
FUNCTION(add_here, "lea sequence(%rip), %rax\n"
                   "mov %rax, 8(%rdi)\n" /* rseq_cs */
                   "add_here_start:\n"
                   "cmp %edx, 4(%rdi)\n" /* cpu_id */
                   "jne add_here_other\n"
                   "add_here_spin:\n"
                   "dec %rcx\n"
                   "jnz add_here_spin\n"
                   "incq (%rsi)\n"
                   "add_here_end:\n"
                   "movq $0, 8(%rdi)\n"
                   "mov $1, %eax\n"
                   "ret\n"
                   "add_here_other:\n"
                   "movq $0, 8(%rdi)\n"
                   "xor %eax, %eax\n"
                   "ret\n"
                   ".long 0x53053053"); /* RSEQ_SIG: must precede the abort address */

/* The abort handler is a function of its own. */
FUNCTION_CLOSE(give_up, "mov $2, %eax\n"
                        "nop\nnop\n"
                        "ret");

/* Directly behind give_up, and not covered by any descriptor. */
FUNCTION_CLOSE(beside, "lea 1(%rdi), %rax\n"
                       "nop\n"
                       "ret");

__asm__(".section __rseq_cs, \"aw\"\n.balign 32\n"
        "sequence: .long 0, 0\n" /* version, flags */
        ".quad add_here_start, add_here_end - add_here_start, give_up\n"
        ".text\n");

COUNTED void on_signal(int number)
{
    (void)number;
    KEEP();
}

static void start_timer(void)
{
    struct itimerval often = { { 0, 500 }, { 0, 500 } };
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
}

int main(void)
{
    static long slots[1024];
    long results[3] = { 0, 0, 0 }, sum = 0;
    long rounds = 0, steps = 0;
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

    if (__rseq_size == 0) {
        printf("no rseq on this system\n");
        return 77;
    }
    start_timer();
    while (rounds < ROUNDS || (results[2] < ABORTS_WANTED && rounds < ROUNDS_MAX)) {
        unsigned cpu = *(volatile unsigned *)&area->cpu_id_start;
        results[add_here(area, &slots[cpu % 1024], cpu, SPIN)]++;
        steps = beside(steps);
        rounds++;
    }
    for (int i = 0; i < 1024; i++)
        sum += slots[i];
    printf("lost %ld, aborted %s\n", results[1] - sum,
           results[2] >= ABORTS_WANTED ? "often enough" : "too seldom");
    say_refused("add_here", "rseq");
    say_refused("give_up", "rseq");
    say_total("beside", (unsigned long long)steps);
    return sum != results[1] || results[2] < ABORTS_WANTED;
}
