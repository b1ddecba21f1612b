/* SPDX-License-Identifier: MIT */
/* A target with a known number of calls, for the tests of `hotfn run`:
 *
 *     target COUNT [exit N | kill SIG | hang | env | cat | forever | exec FILE ARGUMENTS] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) int counted_once(int x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

__attribute__((noinline)) int counted_twice(int x) {
    __asm__ volatile("" : "+r"(x));
    return counted_once(x) + counted_once(x);
}

__attribute__((noinline)) int never_called(int x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    const char *then = argc > 2 ? argv[2] : "exit";
    int number = argc > 3 ? atoi(argv[3]) : 0;
    int x = argc > 100 ? never_called(1) : 0;
    for (long i = 0; i < count; i++) {
        x += counted_twice(x) & 1;
    }
    if (strcmp(then, "kill") == 0) {
        raise(number);
    } else if (strcmp(then, "hang") == 0) {
        printf("ready\n");
        fflush(stdout);
        pause();
    } else if (strcmp(then, "forever") == 0) {
        printf("ready\n");
        fflush(stdout);
        for (;;) {
            x += counted_once(x) & 1;
            usleep(1000);
        }
    } else if (strcmp(then, "env") == 0) {
        for (char **e = environ; *e; e++) {
            puts(*e);
        }
    } else if (strcmp(then, "exec") == 0 && argc > 3) {
        execv(argv[3], argv + 3);
        number = 127;
    } else if (strcmp(then, "cat") == 0) {
        int c;
        while ((c = getchar()) != EOF) {
            putchar(c);
        }
    }
    return number + (x == 123456789);
}
