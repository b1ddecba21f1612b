/* SPDX-License-Identifier: MIT */
/* Measures the cost of a call with and without hooks, in one process with one placement of the
 * code.
 *
 *     calls FUNCTIONS THREADS CALLS ROUNDS MODE ...
 *
 * FUNCTIONS (1, 64 or 1000) are called in turn, CALLS times in total by each thread.  Each round
 * measures each MODE once: bare (no hooks), floor (hooks that only jump to a stub and back) or
 * hotfn (hooks that count).  Prints `MODE ns-per-call` lines.  Fails if mode hotfn does not count
 * every call. */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t run_1(uint64_t n);
uint64_t run_64(uint64_t n);
uint64_t run_1000(uint64_t n);

#define MAX_THREADS 8
#define BATCHES 5 /* the result is their median, because other programs run too */

/* -finstrument-functions calls this.  A thread-local counter is the cheapest useful work. */
#define NOT_INSTRUMENTED __attribute__((no_instrument_function))
static __thread uint64_t instrument_calls;

NOT_INSTRUMENTED void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function, (void)caller;
    instrument_calls++;
}

NOT_INSTRUMENTED void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function, (void)caller;
}

typedef struct bench {
    uint64_t (*run)(uint64_t n);
    uint64_t function_count;
    uint64_t rounds_of_batch; /* over all functions */
    unsigned threads;
    pthread_barrier_t barrier;
    double ns_per_call[MAX_THREADS];
} bench;

typedef struct worker {
    bench *b;
    unsigned number;
} worker;

/* The objects that hooks need, for this program's own file. */
typedef struct own_image {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
    hotfn_plan *plan;
    uint64_t base;
} own_image;

NOT_INSTRUMENTED static void require_ok(hotfn_status status, const hotfn_error *err,
                                        const char *what)
{
    if (status == HOTFN_OK) {
        return;
    }
    fprintf(stderr, "calls: %s: %s\n", what,
            err && err->text[0] ? err->text : hotfn_status_get_name(status));
    exit(1);
}

/* CPU time of this thread, independent of other programs. */
NOT_INSTRUMENTED static double read_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- Measuring. */

/* Pin this thread to the n-th allowed CPU, modulo the number of CPUs. */
NOT_INSTRUMENTED static void pin_thread(unsigned number)
{
    static cpu_set_t allowed;
    static bool known;
    cpu_set_t own;
    int skip = (int)number;

    if (!known) {
        sched_getaffinity(0, sizeof allowed, &allowed);
    }
    known = true;
    skip %= CPU_COUNT(&allowed);
    CPU_ZERO(&own);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
            CPU_SET(cpu, &own);
        }
    }
    sched_setaffinity(0, sizeof own, &own);
}

NOT_INSTRUMENTED static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

NOT_INSTRUMENTED static void *run_batches(void *user)
{
    const worker *w = user;
    bench *b = w->b;

    pin_thread(w->number);
    double took[BATCHES];
    b->run(b->rounds_of_batch); /* warm up */
    pthread_barrier_wait(&b->barrier);
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = read_cpu_ns();
        b->run(b->rounds_of_batch);
        took[batch] = (read_cpu_ns() - begin) / (double)(b->rounds_of_batch * b->function_count);
    }
    qsort(took, BATCHES, sizeof *took, compare_doubles);
    b->ns_per_call[w->number] = took[BATCHES / 2];
    return NULL;
}

/* Returns the nanoseconds per call, the mean over all threads. */
NOT_INSTRUMENTED static double measure_calls(bench *b)
{
    pthread_t threads[MAX_THREADS];
    worker workers[MAX_THREADS];
    double sum = 0;

    pthread_barrier_init(&b->barrier, NULL, b->threads);
    for (unsigned i = 0; i < b->threads; i++) {
        workers[i] = (worker){ b, i };
        if (pthread_create(&threads[i], NULL, run_batches, &workers[i]) != 0) {
            exit(1);
        }
    }
    for (unsigned i = 0; i < b->threads; i++) {
        pthread_join(threads[i], NULL);
        sum += b->ns_per_call[i];
    }
    pthread_barrier_destroy(&b->barrier);
    return sum / b->threads;
}

/* ---- Hooking the functions place_*. */

NOT_INSTRUMENTED static void open_own_image(own_image *own)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    require_ok(hotfn_image_open(&own->image, "/proc/self/exe", NULL, &err), &err, "image");
    require_ok(hotfn_symbols_load(&own->symbols, own->image, NULL, NULL, &err), &err, "symbols");
    require_ok(hotfn_functions_build(&own->functions, own->image, own->symbols, NULL, &err), &err,
               "functions");
    require_ok(hotfn_verdicts_create(&own->verdicts, own->image, own->functions, NULL, NULL, &err),
               &err, "verdicts");
    require_ok(hotfn_plan_build(&own->plan, own->image, own->functions, own->verdicts, NULL, &err),
               &err, "plan");
    Dl_info self;
    dladdr((const void *)(uintptr_t)run_1, &self);
    own->base = (uint64_t)(uintptr_t)self.dli_fbase;
}

/* Hook all place_* functions; their numbers are their slots. */
NOT_INSTRUMENTED static hotfn_hooks *hook_functions(const own_image *own, uint32_t kind,
                                                    hotfn_counters *counters)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    hotfn_hooks *hooks;
    uint32_t asked = 0, module;

    require_ok(hotfn_counters_get_access(counters, &access), NULL, "access");
    require_ok(hotfn_hooks_create(&hooks, NULL, &access, NULL, &err), &err, "hooks");
    for (uint32_t i = 0; i < hotfn_functions_get_count(own->functions); i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
        hotfn_functions_get(own->functions, i, &f);
        if (sscanf(f.name, "place_%" SCNu32, &action.slot) != 1) {
            continue;
        }
        action.kind = kind;
        require_ok(hotfn_hooks_add(hooks, own->plan, own->base, i, &action, &module, &err), &err,
                   f.name);
        asked++;
    }
    require_ok(hotfn_hooks_commit(hooks, &stats, &err), &err, "commit");
    if (stats.hooked != asked || stats.refused) {
        fprintf(stderr, "calls: %u of %u functions hooked\n", stats.hooked, asked);
        exit(1);
    }
    return hooks;
}

NOT_INSTRUMENTED static uint64_t sum_counters(const hotfn_counters *counters)
{
    static uint64_t totals[1000];
    uint64_t sum = 0;

    require_ok(hotfn_counters_sum(counters, 0, 1000, totals), NULL, "sum");
    for (int i = 0; i < 1000; i++) {
        sum += totals[i];
    }
    return sum;
}

NOT_INSTRUMENTED static double measure_hooked(bench *b, const own_image *own, uint32_t kind,
                                              hotfn_counters *counters)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_hooks *hooks = hook_functions(own, kind, counters);
    uint64_t before = sum_counters(counters);
    double ns = measure_calls(b);
    uint64_t counted = sum_counters(counters) - before;
    uint64_t made = (BATCHES + 1) * b->rounds_of_batch * b->function_count * b->threads;

    require_ok(hotfn_hooks_remove(hooks, &err), &err, "remove");
    hotfn_hooks_destroy(hooks);
    if (kind == HOTFN_ACTION_COUNT && counted != made) {
        fprintf(stderr, "calls: %" PRIu64 " calls made, %" PRIu64 " counted\n", made, counted);
        exit(1);
    }
    return ns;
}

NOT_INSTRUMENTED static double measure_mode(bench *b, const own_image *own, const char *mode,
                                            hotfn_counters *counters)
{
    if (strcmp(mode, "floor") == 0) {
        return measure_hooked(b, own, HOTFN_ACTION_FLOOR, counters);
    }
    if (strcmp(mode, "hotfn") == 0) {
        return measure_hooked(b, own, HOTFN_ACTION_COUNT, counters);
    }
    return measure_calls(b);
}

NOT_INSTRUMENTED int main(int argc, char **argv)
{
    own_image own = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_counters *counters = NULL;
    bench b = { .run = run_1 };

    if (argc < 6) {
        return 2;
    }
    b.function_count = strtoull(argv[1], NULL, 10);
    b.threads = (unsigned)strtoul(argv[2], NULL, 10);
    b.rounds_of_batch = strtoull(argv[3], NULL, 10) / BATCHES / b.function_count + 1;
    b.run = b.function_count == 1000 ? run_1000 : b.function_count == 64 ? run_64 : run_1;
    if (b.threads < 1 || b.threads > MAX_THREADS) {
        return 2;
    }
    pin_thread(0);  /* reads the allowed CPUs */
    if (argc > 6) { /* with `bare` alone, hotfn is not used: another tool measures the program */
        open_own_image(&own);
        require_ok(hotfn_counters_create(&counters, 1000, 64, NULL, &err), &err, "counters");
    }
    for (long round = strtol(argv[4], NULL, 10); round > 0; round--) {
        for (int mode = 5; mode < argc; mode++) {
            printf("%s %.4f\n", argv[mode], measure_mode(&b, &own, argv[mode], counters));
        }
    }
    return 0;
}
