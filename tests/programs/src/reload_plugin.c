/* SPDX-License-Identifier: MIT */
/* A plugin in two builds (-DBUILD=1, 2) whose `spin` has the same first bytes at the same
 * address. Facts proven for the first build are false for the second, which jumps back into the
 * bytes that a patch overwrites. */
__asm__(".globl spin\n"
        ".type spin, %function\n"
        "spin:\n"
        "    xor %eax, %eax\n"
        "1:  add $1, %eax\n"
        "    cmp $10, %eax\n"
#if BUILD == 2
        "    jne 1b\n"
#else
        "    nop; nop\n"
#endif
        "    ret\n"
        ".size spin, . - spin\n");

int build(void) { return BUILD; }
#if BUILD == 2
int second(void) { return 222; }
#else
int first(void) { return 111; }
#endif
