/* SPDX-License-Identifier: MIT */
/* A call or jump within the first five bytes: direct, through memory, and a call that reads the
 * program counter. */
#include "hazard.h"

enum { ROUNDS = 1000 };

int target(int n);
int call_at_0(int n);
int call_at_1(int n);
int call_at_4(int n);
int jump_at_0(int n);
int short_jump_at_0(int n);
int memory_jump_at_0(int n);
int memory_call_at_1(int n);
long own_pc(void);

FUNCTION(target, "lea 2(%rdi), %eax\nadd $0, %edi\nret");

FUNCTION(call_at_0, "call target\n"
                    "inc %eax\n"
                    "ret");
FUNCTION(call_at_1, "push %rdi\n"
                    "call target\n"
                    "pop %rdi\n"
                    "add %edi, %eax\n"
                    "ret");
FUNCTION(call_at_4, "sub $8, %rsp\n"
                    "call target\n"
                    "add $8, %rsp\n"
                    "ret");
FUNCTION(jump_at_0, ".byte 0xe9\n"
                    ".long target - . - 4");
FUNCTION(short_jump_at_0, "jmp 1f\n"
                          "ud2\n"
                          "1: lea 9(%rdi), %eax\n"
                          "ret");
FUNCTION(memory_jump_at_0, "jmp *target_pointer(%rip)");
FUNCTION(memory_call_at_1, "push %rdi\n"
                           "call *target_pointer(%rip)\n"
                           "pop %rdi\n"
                           "ret");
/* call next; pop: 32-bit code reads the program counter this way */
FUNCTION(own_pc, "call 1f\n"
                 "1: pop %rax\n"
                 "lea 1b(%rip), %rcx\n"
                 "sub %rcx, %rax\n"
                 "ret");

__asm__(".section .data.rel.local, \"aw\"\n.p2align 3\ntarget_pointer: .quad target\n.text\n");

int main(void)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += call_at_0(i) + call_at_1(i) + call_at_4(i) + jump_at_0(i) + short_jump_at_0(i);
        sum += memory_jump_at_0(i) + memory_call_at_1(i) + own_pc();
    }
    printf("sum %ld\n", sum);
    say_total("target", 6 * ROUNDS);
    say_total_if_hooked("call_at_0", ROUNDS);
    say_total_if_hooked("call_at_1", ROUNDS);
    say_total_if_hooked("call_at_4", ROUNDS);
    say_total_if_hooked("jump_at_0", ROUNDS);
    say_total_if_hooked("short_jump_at_0", ROUNDS);
    say_total_if_hooked("memory_jump_at_0", ROUNDS);
    say_total_if_hooked("memory_call_at_1", ROUNDS);
    say_total_if_hooked("own_pc", ROUNDS);
    return 0;
}
