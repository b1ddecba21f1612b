/* SPDX-License-Identifier: MIT */
/* Calls app_step as often as its first argument says, and before that does what the second says:
 * again (exec itself), missing (exec of a missing file), threads (exec itself while threads load
 * modules), fork.  Prints whether its environment is free of hotfn.  Status 3. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long total;

__attribute__((noinline)) void app_step(long n)
{
    total += n;
}

static void *load_modules(void *unused)
{
    (void)unused;
    for (;;) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        void *other = dlopen("libz.so.1", RTLD_NOW);
        if (other) {
            dlclose(other);
        }
        if (library) {
            dlclose(library);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0;
    const char *what = argc > 2 ? argv[2] : "";
    char *again[] = { argv[0], (char[]){ "7" }, NULL }, *none[] = { NULL };

    if (strcmp(what, "fork") == 0 && fork() == 0) {
        app_step(1);
        _exit(0);
    }
    if (strcmp(what, "threads") == 0) {
        pthread_t thread;
        for (int i = 0; i < 3; i++) {
            pthread_create(&thread, NULL, load_modules, NULL);
        }
        usleep(50000);
    }
    for (long i = 0; i < count; i++) {
        app_step(i);
    }
    if (strcmp(what, "missing") == 0) {
        execve("/missing/file", again, none);
    } else if (strcmp(what, "again") == 0 || strcmp(what, "threads") == 0) {
        execv("/proc/self/exe", again);
    }
    puts(getenv("LD_PRELOAD") || getenv("HOTFN_RUN") ? "the environment has changed" : "clean");
    while (wait(NULL) > 0) {
    }
    return 3;
}
