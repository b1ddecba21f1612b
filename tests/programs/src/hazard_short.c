/* SPDX-License-Identifier: MIT */
/* Functions of 1 to 4 bytes: some are followed by padding, some directly by the next function. */
#include "hazard.h"

enum { ROUNDS = 1000 };

void one_byte(void);
void two_bytes(void);
int three_bytes(int n);
int four_bytes(int n);
void close_one(void);
void close_two(void);
int close_three(int n);
int close_four(int n);
int close_last(int n);

FUNCTION(one_byte, "ret");
FUNCTION(two_bytes, "repz ret");
FUNCTION(three_bytes, "mov %edi, %eax\nret");
FUNCTION(four_bytes, "lea 1(%rdi), %eax\nret");
FUNCTION(close_one, "ret");
FUNCTION_CLOSE(close_two, "repz ret");
FUNCTION_CLOSE(close_three, "mov %edi, %eax\nret");
FUNCTION_CLOSE(close_four, "lea 1(%rdi), %eax\nret");
FUNCTION_CLOSE(close_last, "lea 1000(%rdi), %eax\nret");

int main(void)
{
    static const char *const all[] = {"one_byte",  "two_bytes",   "three_bytes", "four_bytes",
                                      "close_one", "close_two",   "close_three", "close_four",
                                      "close_last"};
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        one_byte();
        two_bytes();
        sum += three_bytes(i) + four_bytes(i);
        close_one();
        close_two();
        sum += close_three(i) + close_four(i) + close_last(i);
    }
    printf("sum %ld\n", sum);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        say_total_if_hooked(all[i], ROUNDS);
    return 0;
}
