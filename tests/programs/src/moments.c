/* SPDX-License-Identifier: MIT */
/* The target of attach_moments_test.py.  Until its standard input ends, it repeats what an attach
 * may meet, and checks each result; then it ends with status 0:
 *
 *   dlopen LIBRARY   threads load a library, call it and unload it
 *   data LIBRARY     on a byte of input, data takes the place of a library's code
 *   fork             threads fork children that call functions
 *   storm            threads start threads that end at once
 *   exec             replaces itself, from the main thread and from another one
 *   exit             ends at once, by exit() in a thread while other threads call functions
 *   leave            its main thread ends, and another one goes on
 *   wait             one thread waits
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, STARTED = 8, PAGE_BYTES = 4096 };

static atomic_int ends;
static char **words;

__attribute__((noinline)) long work(long x);
__attribute__((noinline)) long work(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "moments: %s\n", what);
        abort();
    }
}

static void call_work(int calls)
{
    long sum = 0;

    for (int i = 0; i < calls; i++) {
        sum += work(i);
    }
    check(sum == (long)calls * (calls - 1) / 2 * 3 + calls, "a wrong sum");
}

static void load_once(void)
{
    void *library = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    long (*answer)(long);

    check(library != NULL, "the library cannot be loaded");
    *(void **)&answer = dlsym(library, "answer");
    check(answer && answer(5) == 47, "a wrong answer of the library");
    check(dlclose(library) == 0, "the library cannot be unloaded");
}

static void fork_once(void)
{
    int status = -1;
    pid_t pid = fork();

    check(pid >= 0, "no fork");
    call_work(50);
    if (pid == 0) {
        _exit(7);
    }
    check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7,
          "a child ended otherwise");
}

static void *run_short(void *user)
{
    call_work(20);
    return user;
}

static void start_once(void)
{
    pthread_t threads[STARTED];
    void *result;

    for (int i = 0; i < STARTED; i++) {
        check(pthread_create(&threads[i], NULL, run_short, &words) == 0, "no thread");
    }
    for (int i = 0; i < STARTED; i++) {
        check(pthread_join(threads[i], &result) == 0 && result == &words, "a wrong result");
    }
}

static void call_once(void)
{
    call_work(1000);
}

static void *repeat(void *user)
{
    void (*once)(void) = *(void (**)(void))user;

    while (!ends) {
        once();
    }
    return NULL;
}

static void start_all(pthread_t *threads, void (*once)(void))
{
    static void (*repeated)(void);

    repeated = once;
    for (int i = 0; i < THREADS; i++) {
        check(pthread_create(&threads[i], NULL, repeat, &repeated) == 0, "no thread");
    }
}

static int input_has_ended(int wait_ms)
{
    struct pollfd in = { 0, POLLIN, 0 };

    return poll(&in, 1, wait_ms) == 1;
}

static void *replace(void *user)
{
    (void)user;
    execv("/proc/self/exe", words);
    check(0, "no exec");
    return NULL;
}

static void run_exec(int number)
{
    static char text[24];
    pthread_t threads[THREADS], other;

    start_all(threads, call_once);
    if (input_has_ended(number % 16 ? number % 8 : 200)) { /* some are long enough for an attach */
        _exit(0);
    }
    snprintf(text, sizeof text, "%d", number + 1);
    words[2] = text;
    if (number % 2) {
        pthread_create(&other, NULL, replace, NULL);
        pthread_join(other, NULL);
    }
    replace(NULL);
}

/* The data are the code that the library had at last, with hotfn's changes. */
static void run_data(void)
{
    static char before[PAGE_BYTES], after[PAGE_BYTES];
    void *library = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    char *page, byte;

    check(library != NULL, "the library cannot be loaded");
    page = (char *)((unsigned long)dlsym(library, "answer") & -(unsigned long)PAGE_BYTES);
    memcpy(before, page, PAGE_BYTES);
    puts("loaded");
    fflush(stdout);
    check(read(0, &byte, 1) == 1, "no input");
    memcpy(after, page, PAGE_BYTES);
    check(memcmp(before, after, PAGE_BYTES) != 0, "the library was not hooked");
    check(dlclose(library) == 0, "the library cannot be unloaded");
    check(mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page,
          "the library's place is not free");
    memcpy(page, after, PAGE_BYTES);
    puts("replaced");
    fflush(stdout);
    input_has_ended(-1);
    check(memcmp(page, after, PAGE_BYTES) == 0, "the data were changed");
}

static void *end_process(void *user)
{
    input_has_ended(-1);
    exit(user != NULL);
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS], other;

    words = arguments;
    if (count < 3 || strcmp(words[2], "0") == 0 || words[2][0] == '/') {
        puts("ready");
        fflush(stdout);
    }
    if (strcmp(words[1], "data") == 0) {
        run_data();
        return 0;
    }
    if (strcmp(words[1], "exec") == 0) {
        run_exec(atoi(words[2]));
    }
    if (strcmp(words[1], "exit") == 0 || strcmp(words[1], "leave") == 0) {
        start_all(threads, call_once);
        pthread_create(&other, NULL, end_process, NULL);
        if (words[1][0] == 'l') {
            pthread_exit(NULL);
        }
        pthread_join(other, NULL);
    }
    if (strcmp(words[1], "wait") != 0) {
        void (*once)(void) = words[1][0] == 'd'   ? load_once
                             : words[1][0] == 'f' ? fork_once
                                                  : start_once;
        start_all(threads, once);
    }
    input_has_ended(-1);
    ends = 1;
    for (int i = 0; i < THREADS && strcmp(words[1], "wait") != 0; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
