/* SPDX-License-Identifier: MIT */
#include <stdio.h>

int main(void)
{
    puts(MIDDLE);
    return 0;
}
