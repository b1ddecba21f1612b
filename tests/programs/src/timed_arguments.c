/* SPDX-License-Identifier: MIT */
/* Functions written by hand that change arguments on the stack, and a caller that reads the
 * arguments after the call. */
#include <stdio.h>

#ifdef __i386__
#define WORD "4"
#define A "%eax"
#define B "%ebx"
#define C "%ecx"
#define DI "%edi"
#define SP "%esp"
#define CALLER_ARGUMENTS "mov 12(%esp), %eax\nmov 16(%esp), %edi\n"
#else
#define WORD "8"
#define A "%rax"
#define B "%rbx"
#define C "%rcx"
#define DI "%rdi"
#define SP "%rsp"
#define CALLER_ARGUMENTS "mov %rdi, %rax\nmov %rsi, %rdi\n"
#endif
#define ARG(n) #n "*" WORD "(" SP ")"
#define FUNCTION(name, body)                                                                       \
    __asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n" body      \
            "\n.size " name ", . - " name "\n")
#define PUSH(n) "push " #n "*" WORD "-" WORD "(" DI ")\n"
#define POP(n) "pop " #n "*" WORD "-" WORD "(" DI ")\n"

/* Each returns its first argument plus 1. */
FUNCTION("adds", "mov " ARG(1) ", " A "\nadd $5, " A "\nmov " A ", " ARG(1) "\nsub $4, " A "\nret");
FUNCTION("reloads",
         "mov " ARG(1) ", " A "\nadd $7, " A "\nmov " A
                       ", " ARG(1) "\n"
                                   "mov " ARG(1) ", " C "\nmov " C ", " A "\nsub $6, " A "\nret");
FUNCTION("tails", "mov " ARG(1) ", " A "\nmov " A ", " ARG(2) "\nnop\njmp reloads");
FUNCTION("ninth", "mov " ARG(1) ", " A "\nmov " A ", " ARG(9) "\nadd $1, " A "\nret");
FUNCTION("pops", "mov " ARG(1) ", " A "\nmov " A ", " ARG(2) "\nmov " A ", " ARG(8) "\n"
                                                                                    "add $1, " A
                                                                                    "\nret $" WORD);

/* long call_with(function, long words[9]): the words are the arguments, and afterwards as the
 * function left them; a popped one is unchanged. */
FUNCTION("call_with", "push " B "\npush " DI "\n" CALLER_ARGUMENTS "mov " SP ", " B
                      "\n" PUSH(9) PUSH(8) PUSH(7) PUSH(6) PUSH(5) PUSH(4) PUSH(3) PUSH(2)
                          PUSH(1) "call *" A "\n"
                                  "lea -9*" WORD "(" B "), " C "\ncmp " SP ", " C
                                  "\nje 1f\npush (" DI ")\n1:\n" POP(1) POP(2) POP(3) POP(4) POP(5)
                                      POP(6) POP(7) POP(8) POP(9) "pop " DI "\npop " B "\nret");

long call_with(const char *function, long *words);
extern const char adds[], reloads[], tails[], ninth[], pops[];

int main(void)
{
    const char *const functions[] = { adds, reloads, tails, ninth, pops };

    for (long i = 0; i < 1000; i++) {
        for (int f = 0; f < 5; f++) {
            long words[9] = { i, 2, 3, 4, 5, 6, 7, 8, 9 }, sum = call_with(functions[f], words);
            for (int n = 0; n < 9; n++) {
                sum = sum * 31 + words[n];
            }
            printf("%d %ld\n", f, sum);
        }
    }
    return 0;
}
