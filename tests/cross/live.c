/* SPDX-License-Identifier: MIT */
/* Hooks and unhooks itself repeatedly while its threads run the functions that are patched: their
 * results must not change, and each call of the last round is counted. Some functions are hard to
 * patch: four bytes long, a branch to itself, a loop to its entry, an instruction that the decoder
 * does not know. Prints "name calls reason".
 *
 * The emulator has threads of its own, which the kernel lists but which do not respond to hotfn's
 * signals. The test therefore runs the emulator with -L $LIVE_ROOT, a folder whose /proc/self/task
 * lists only the program's threads. */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone))
enum { THREADS = 3, ROUNDS = 4, ATTEMPTS = 200, CALLS = 1000 };

__asm__(".text\n"
        ".macro function name\n .globl \\name\n .type \\name, %function\n \\name:\n .endm\n"
        ".macro done name\n .size \\name, . - \\name\n .endm\n"
        "function four_bytes\n ret\n done four_bytes\n"
        "function four_bytes_on\n b four_bytes\n done four_bytes_on\n"
        "function turns_forever\n b turns_forever\n done turns_forever\n"
        "function counts_down\n subs x0, x0, #1\n b.ne counts_down\n ret\n done counts_down\n"
        ".arch armv8-a+sve\n"
        "function scalable\n cntb x0\n ret\n done scalable\n"
        "function streaming\n .inst 0xc00800ff\n ret\n done streaming\n" /* zero {za} */
        ".arch armv8-a\n");
void four_bytes(void), four_bytes_on(void), turns_forever(void);
long counts_down(long), scalable(void);

OWN long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
OWN long mixes(long a, double b)
{
    return a * 3 + (long)(b * 2);
}
OWN long by_table(long n)
{
    switch (n & 7) {
    case 0: return n + 1;
    case 1: return n * 3;
    case 2: return n - 7;
    case 3: return n ^ 5;
    case 4: return n / 3;
    case 5: return n << 2;
    default: return n;
    }
}

static _Atomic int stop_now;
static _Atomic long wrong;

/* state: R is running, Z has ended (proc(5)) */
static void list_this_thread(char state)
{
    const char *root = getenv("LIVE_ROOT");
    char path[4096];
    int tid = (int)syscall(SYS_gettid);
    FILE *file;

    if (!root) {
        return;
    }
    snprintf(path, sizeof path, "%s/proc/self/task/%d", root, tid);
    mkdir(path, 0777);
    strcat(path, "/stat");
    file = fopen(path, "w");
    if (!file) {
        exit(2);
    }
    fprintf(file, "%d (live) %c 1 1 1\n", tid, state);
    fclose(file);
}

static _Atomic int ready;

static void *work(void *user)
{
    const long id = (long)user;

    list_this_thread('R');
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&stop_now)) {
        four_bytes();
        four_bytes_on();
        if (fib(9) != 34 || mixes(id, 2.5) != id * 3 + 5 || by_table(19) != (19 ^ 5) ||
            counts_down(5) != 0)
            atomic_fetch_add(&wrong, 1);
    }
    list_this_thread('Z');
    return NULL;
}

static void need(hotfn_status status, const hotfn_error *err)
{
    if (status == HOTFN_OK) {
        return;
    }
    printf("%s: %s\n", hotfn_status_get_name(status), err->text);
    exit(1);
}

/* A thread that is not scheduled in time is a reason to try again. */
static uint32_t hook(hotfn_session *session)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session_stats stats = HOTFN_SESSION_STATS_INIT;

    for (int i = 0; i < ATTEMPTS && stats.hooked == 0; i++) {
        need(hotfn_session_start(session, &err), &err);
        need(hotfn_session_get_stats(session, &stats), &err);
        if (stats.hooked == 0) {
            need(hotfn_session_stop(session, &err), &err);
        }
    }
    return stats.hooked;
}

static void print_functions(const hotfn_record *record, bool roughly)
{
    static const char *const names[] = { "four_bytes", "four_bytes_on", "turns_forever",
                                         "scalable",   "streaming",     "mixes",
                                         "by_table",   "counts_down" };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;

    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(record, i, &f);
        for (uint32_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            if (f.name && strcmp(f.name, names[k]) == 0) {
                printf("%s %llu %s\n", f.name,
                       (unsigned long long)(roughly ? f.calls > 0 : f.calls),
                       f.reason ? f.reason : "-");
            }
        }
    }
}

int main(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    pthread_t threads[THREADS];
    hotfn_session *session;
    hotfn_record *record;
    volatile long sum = 0;

    list_this_thread('R');
    need(hotfn_session_create(&session, NULL, NULL, &err), &err);
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    while (atomic_load(&ready) < THREADS) {
        usleep(1000);
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t hooked = hook(session);
        for (int i = 0; i < 20; i++) {
            wrong += fib(12) != 144;
        }
        need(hotfn_session_stop(session, &err), &err);
        printf("round %d hooked %d\n", round, hooked > 10);
    }
    atomic_store(&stop_now, 1);
    for (long i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    need(hotfn_session_snapshot(&record, session, &err), &err);
    print_functions(record, true);
    hotfn_record_close(record);
    hotfn_session_destroy(session);

    need(hotfn_session_create(&session, NULL, NULL, &err), &err);
    hook(session);
    for (long i = 0; i < CALLS; i++) {
        four_bytes();
        four_bytes_on();
        sum += mixes(i, 1) + by_table(i) + scalable();
    }
    need(hotfn_session_snapshot(&record, session, &err), &err);
    print_functions(record, false);
    hotfn_record_close(record);
    hotfn_session_destroy(session);
    printf("wrong %ld\n", (long)wrong);
    return 0;
}
