/* SPDX-License-Identifier: MIT */
/* Flags and registers that are live at a function's entry. gcc's -fipa-ra keeps values in
 * caller-saved registers across calls of local functions, and hand-written code passes flags. */
#include <stdint.h>

#include "hazard.h"

enum { ROUNDS = 1000 };

int carry_in(void);
int sign_in(void);
long nothing_changed(void);
int ask_carry(int set);
int ask_sign(int a, int b);
long check_registers(void);

/* The carry flag is the argument. */
FUNCTION(carry_in, "setc %al\n"
                   "movzbl %al, %eax\n"
                   "ret");

FUNCTION(sign_in, "mov $0, %eax\n" /* mov does not change the flags: they stay live across it */
                  "jl 1f\n"
                  "inc %eax\n"
                  "1: ret");

FUNCTION(ask_carry, "clc\n"
                    "test %edi, %edi\n"
                    "je 1f\n"
                    "stc\n"
                    "1: call carry_in\n"
                    "ret");

FUNCTION(ask_sign, "cmp %esi, %edi\n"
                   "call sign_in\n"
                   "ret");

/* Preserves every register and every flag. */
FUNCTION(nothing_changed, "nop\nnop\nnop\nnop\nnop\nret");

/* Writes a value to each caller-saved register and to the part of the red zone that the callee
 * may use. */
FUNCTION(check_registers,
         "push %rbx\n"
         "mov $0x101, %rax\n mov $0x102, %rcx\n mov $0x103, %rdx\n mov $0x104, %rsi\n"
         "mov $0x105, %rdi\n mov $0x106, %r8\n mov $0x107, %r9\n mov $0x108, %r10\n"
         "mov $0x109, %r11\n"
         "movq %rax, %xmm0\n movq %rcx, %xmm15\n"
         "push $0xED7\n popfq\n" /* the direction flag and all arithmetic flags */
         "call nothing_changed\n"
         "pushfq\n pop %rbx\n cld\n"
         "and $0xCD5, %ebx\n"
         "add %rcx, %rax\n add %rdx, %rax\n add %rsi, %rax\n add %rdi, %rax\n add %r8, %rax\n"
         "add %r9, %rax\n add %r10, %rax\n add %r11, %rax\n add %rbx, %rax\n"
         "movq %xmm0, %rcx\n add %rcx, %rax\n movq %xmm15, %rcx\n add %rcx, %rax\n"
         "pop %rbx\n"
         "ret");

int main(void)
{
    long sum = 0;
    int wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += ask_carry(i % 3 == 0) + ask_sign(i % 7, 3);
        wrong += check_registers() != 0x101 + 0x102 + 0x103 + 0x104 + 0x105 + 0x106 + 0x107 +
                                          0x108 + 0x109 + 0xCD5 + 0x101 + 0x102;
    }
    printf("sum %ld wrong %d\n", sum, wrong);
    say_total_if_hooked("carry_in", ROUNDS);
    say_total_if_hooked("sign_in", ROUNDS);
    say_total_if_hooked("nothing_changed", ROUNDS);
    say_total_if_hooked("ask_carry", ROUNDS);
    say_total_if_hooked("ask_sign", ROUNDS);
    say_total_if_hooked("check_registers", ROUNDS);
    return 0;
}
