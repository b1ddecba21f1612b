/* SPDX-License-Identifier: MIT */
/* Attaching to a process, a child that runs this program's own code: counts, threads, fork(), the
 * code afterwards, and every remote step failing in turn. */
#include "check.h"
#include "os/remote.h"

#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 3, CALLS = 20000, FORKS = 10, CHILD_CALLS = 500 };

typedef struct shared {
    _Atomic uint64_t beats;
    _Atomic uint32_t phase; /* 0 waits, 1 works, 2 has worked, 3 ends */
    _Atomic uint32_t bad_children;
} shared;

static shared *memory;
static char cache_folder[] = "/tmp/attach-test-XXXXXX"; /* scans are made once */

#if defined(__clang__)
#define COUNTED __attribute__((noinline))
#else
#define COUNTED __attribute__((noinline, noclone))
#endif

COUNTED uint64_t counted_work(uint64_t x);
COUNTED uint64_t counted_work(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

COUNTED uint64_t counted_child(uint64_t x);
COUNTED uint64_t counted_child(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x ^ 5;
}

/* ---- The target. */

static void *work(void *user)
{
    uint64_t sum = 0;

    (void)user;
    for (int i = 0; i < CALLS; i++) {
        sum += counted_work(sum);
    }
    return (void *)(uintptr_t)sum;
}

static void fork_once(void)
{
    pid_t pid = fork();
    int status = 0;

    for (uint64_t i = 0; i < CHILD_CALLS; i++) {
        counted_child(i);
    }
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, &status, 0);
    atomic_fetch_add(&memory->bad_children, status != 0);
}

/* Threads of one round reuse the stacks and descriptors of the last one. */
static void work_in_threads(void)
{
    pthread_t threads[THREADS];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++) {
            pthread_create(&threads[i], NULL, work, NULL);
        }
        for (int i = 0; i < FORKS; i++) {
            fork_once();
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
    }
}

static void *beat(void *user)
{
    (void)user;
    for (;;) {
        atomic_fetch_add(&memory->beats, counted_work(1) - 3);
        usleep(50);
    }
    return NULL;
}

static void run_target(bool beats)
{
    pthread_t thread;

    if (beats) {
        pthread_create(&thread, NULL, beat, NULL);
    }
    for (;;) {
        if (atomic_load(&memory->phase) == 1) {
            work_in_threads();
            atomic_store(&memory->phase, 2);
        }
        usleep(1000);
    }
}

static uint32_t start_target(bool beats)
{
    pid_t pid;

    memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_target(beats);
    }
    usleep(20000);
    return (uint32_t)pid;
}

static void end_target(uint32_t pid)
{
    int status;

    CHECK(waitpid((pid_t)pid, &status, WNOHANG) == 0); /* it runs */
    kill((pid_t)pid, SIGKILL);
    waitpid((pid_t)pid, &status, 0);
    munmap(memory, sizeof *memory);
}

static void wait_for_phase(uint32_t phase)
{
    for (int i = 0; i < 60000 && atomic_load(&memory->phase) != phase; i++) {
        usleep(1000);
    }
    CHECK_EQ_U64(atomic_load(&memory->phase), phase);
}

static void wait_for_beats(void)
{
    uint64_t before = atomic_load(&memory->beats);

    for (int i = 0; i < 20000 && atomic_load(&memory->beats) < before + 3; i++) {
        usleep(500);
    }
    CHECK(atomic_load(&memory->beats) >= before + 3);
}

/* ---- What /proc reports about it. */

static uint32_t count_maps(uint32_t pid)
{
    char path[64], line[4400];
    uint32_t count = 0;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        count++;
    }
    if (maps) {
        fclose(maps);
    }
    return count;
}

typedef struct comparison {
    int memory;
    uint64_t differing;
} comparison;

/* The child is a copy of this process: its code lies at the same addresses. */
static bool compare_module(void *user, const hfn_remote_module *module)
{
    static uint8_t bytes[4096];
    comparison *c = user;

    for (uint32_t i = 0; i < module->code_count; i++) {
        for (uint64_t at = module->code[i].begin; at < module->code[i].end; at += sizeof bytes) {
            if (pread(c->memory, bytes, sizeof bytes, (off_t)at) == (ssize_t)sizeof bytes) {
                c->differing += memcmp(bytes, (const void *)(uintptr_t)at, sizeof bytes) != 0;
            }
        }
    }
    return true;
}

static uint64_t count_differing_pages(uint32_t pid)
{
    comparison c = { 0 };
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    c.memory = open(path, O_RDONLY);
    CHECK(hfn_os_remote_each_module(pid, compare_module, &c));
    close(c.memory);
    return c.differing;
}

/* ---- Attaching. */

static hotfn_status attach_in_mode(hotfn_launch **launch, uint32_t pid, const char *record,
                                   bool all, uint32_t mode, hotfn_error *err)
{
    static const char *const every[] = { "*" };
    hotfn_launch_options options = HOTFN_LAUNCH_OPTIONS_INIT;

    options.record_path = record;
    options.cache_folder = cache_folder;
    options.modules = all ? every : NULL;
    options.module_count = all;
    options.mode = mode;
    return hotfn_launch_attach(launch, pid, &options, NULL, err);
}

static hotfn_status attach(hotfn_launch **launch, uint32_t pid, const char *record, bool all,
                           hotfn_error *err)
{
    return attach_in_mode(launch, pid, record, all, HOTFN_LAUNCH_COUNT, err);
}

static uint64_t get_calls(const hotfn_record *record, const char *name)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    uint64_t calls = 0;

    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(record, i, &f);
        calls += f.name && strcmp(f.name, name) == 0 ? f.calls : 0;
    }
    return calls;
}

static void check_totals(bool all, uint32_t mode)
{
    uint32_t pid = start_target(false), maps = count_maps(pid);
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;
    hotfn_launch *launch = NULL;
    char path[64];

    snprintf(path, sizeof path, "/tmp/attach-test-%d.hfr", (int)getpid());
    if (!CHECK_EQ_U64(attach_in_mode(&launch, pid, path, all, mode, &err), HOTFN_OK)) {
        printf("#   %s\n", err.text);
        end_target(pid);
        return;
    }
    CHECK(count_differing_pages(pid) > 0);
    atomic_store(&memory->phase, 1);
    wait_for_phase(2);
    CHECK_EQ_U64(hotfn_launch_detach(launch, &err), HOTFN_OK);
    CHECK_EQ_U64(count_differing_pages(pid), 0);
    atomic_store(&memory->phase, 1); /* these calls are not counted */
    wait_for_phase(2);
    CHECK(count_maps(pid) <= maps + 2 * THREADS + 4); /* stacks and heaps of the threads */
    CHECK_EQ_U64(hotfn_launch_finish(launch, &err), HOTFN_OK);
    CHECK_EQ_U64(hotfn_record_open(&record, path, NULL, &err), HOTFN_OK);
    CHECK_EQ_U64(get_calls(record, "counted_work"), (uint64_t)THREADS * ROUNDS * CALLS);
    CHECK_EQ_U64(get_calls(record, "counted_child"), 2u * ROUNDS * FORKS * CHILD_CALLS);
    CHECK_EQ_U64(atomic_load(&memory->bad_children), 0);
    hotfn_record_close(record);
    hotfn_launch_destroy(launch);
    unlink(path);
    end_target(pid);
}

static void calls_between_attach_and_detach_are_counted_exactly(void)
{
    check_totals(false, HOTFN_LAUNCH_COUNT);
}

static void calls_are_counted_exactly_with_all_modules_hooked(void)
{
    check_totals(true, HOTFN_LAUNCH_COUNT);
}

static void timed_calls_are_counted_exactly(void)
{
    check_totals(false, HOTFN_LAUNCH_TIME);
}

static uint32_t count_own_files(void)
{
    uint32_t count = 0;
    DIR *files = opendir("/proc/self/fd");

    while (readdir(files)) {
        count++;
    }
    closedir(files);
    return count;
}

static void a_process_can_be_attached_to_repeatedly(void)
{
    uint32_t pid = start_target(true), maps, own_maps = 0, own_files = 0;
    hotfn_error err = HOTFN_ERROR_INIT;

    wait_for_beats();
    maps = count_maps(pid);
    for (int i = 0; i < 20; i++) {
        hotfn_launch *launch = NULL;
        if (i == 4) { /* what stays for all attaches is there */
            own_maps = count_maps((uint32_t)getpid());
            own_files = count_own_files();
        }
        if (!CHECK_EQ_U64(attach(&launch, pid, NULL, i % 2, &err), HOTFN_OK)) {
            printf("#   %s\n", err.text);
            break;
        }
        wait_for_beats();
        hotfn_launch_destroy(launch); /* detaches */
        wait_for_beats();
    }
    CHECK_EQ_U64(count_own_files(), own_files);
    CHECK(count_maps((uint32_t)getpid()) <= own_maps + 4); /* the heap may take some */
    CHECK_EQ_U64(count_maps(pid), maps);
    CHECK_EQ_U64(count_differing_pages(pid), 0);
    end_target(pid);
}

/* ---- Failures. */

/* Hundreds of attaches: the builds of two compilers try some steps each, and soak tries all. */
#ifdef __clang__
enum { EVERY = 23 };
#else
enum { EVERY = 24 };
#endif

static uint32_t get_every(void)
{
    return getenv("HOTFN_ALL_STEPS") ? 1 : EVERY;
}

static void the_target_is_unharmed_whichever_step_of_an_attach_fails(void)
{
    uint32_t pid = start_target(true), every = get_every(), step = 0, failed = 0, maps;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch = NULL;

    wait_for_beats();
    maps = count_maps(pid);
    for (bool was_reached = true; was_reached && step < 20000;) {
        hfn_os_remote_fail_at(step += every);
        hotfn_status status = attach_in_mode(&launch, pid, NULL, false, HOTFN_LAUNCH_TIME, &err);
        was_reached = hfn_os_remote_get_steps() >= step;
        hfn_os_remote_fail_at(0);
        if (status == HOTFN_OK) { /* no step failed, or the attach repeated the step */
            hotfn_launch_destroy(launch);
        } else {
            failed++;
        }
        CHECK_EQ_U64(count_differing_pages(pid), 0);
        wait_for_beats();
    }
    /* an attach repeats some failed steps; if few steps are tried, perhaps all of these */
    CHECK(every > 1 || failed > 20);
    wait_for_beats();
    CHECK_EQ_U64(count_differing_pages(pid), 0);
    CHECK_EQ_U64(count_maps(pid), maps);
    end_target(pid);
}

static void the_code_is_restored_whichever_step_of_a_detach_fails(void)
{
    uint32_t pid = start_target(true), every = get_every(), step = 0, steps, maps;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch = NULL;

    wait_for_beats();
    maps = count_maps(pid);
    do {
        if (!CHECK_EQ_U64(attach_in_mode(&launch, pid, NULL, false, HOTFN_LAUNCH_TIME, &err),
                          HOTFN_OK)) {
            break;
        }
        hfn_os_remote_fail_at(step += every);
        CHECK_EQ_U64(hotfn_launch_detach(launch, &err), HOTFN_OK);
        steps = hfn_os_remote_get_steps();
        hfn_os_remote_fail_at(0);
        hotfn_launch_destroy(launch);
        CHECK_EQ_U64(count_differing_pages(pid), 0);
        wait_for_beats();
    } while (steps >= step && step < 5000);
    CHECK(step > 30);
    CHECK_EQ_U64(count_maps(pid), maps);
    end_target(pid);
}

static void switch_all(hotfn_launch *launch, uint32_t mode)
{
    hotfn_switch_order order = HOTFN_SWITCH_ORDER_INIT;

    order.mode = mode;
    hotfn_launch_switch(launch, &order, NULL, NULL);
}

/* The bytes afterwards are those of one mode or the other; a second order completes the first. */
static void code_and_states_agree_whichever_step_of_a_switch_fails(void)
{
    static const uint32_t modes[] = { HOTFN_SWITCH_OFF, HOTFN_SWITCH_TIME, HOTFN_SWITCH_COUNT,
                                      HOTFN_SWITCH_OFF, HOTFN_SWITCH_COUNT };
    enum { MODES = sizeof modes / sizeof *modes };
    uint32_t pid = start_target(true), every = get_every(), step = 0, steps = 0, maps;
    uint64_t off;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch = NULL;

    wait_for_beats();
    maps = count_maps(pid);
    CHECK_EQ_U64(attach_in_mode(&launch, pid, NULL, false, HOTFN_LAUNCH_TIME, &err), HOTFN_OK);
    switch_all(launch, HOTFN_SWITCH_OFF);
    off = count_differing_pages(pid);
    switch_all(launch, HOTFN_SWITCH_TIME);
    do {
        bool is_last = true;
        step += every;
        for (int i = 0; i < MODES; i++) {
            hfn_os_remote_fail_at(step);
            switch_all(launch, modes[i]);
            steps = hfn_os_remote_get_steps();
            hfn_os_remote_fail_at(0);
            is_last = is_last && steps < step;
            wait_for_beats();
            switch_all(launch, modes[i]);
            CHECK(modes[i] == HOTFN_SWITCH_OFF ? count_differing_pages(pid) == off
                                               : count_differing_pages(pid) > off);
        }
        switch_all(launch, HOTFN_SWITCH_TIME);
        steps = is_last ? 0 : step;
    } while (steps != 0 && step < 5000);
    CHECK(step > 10);
    CHECK_EQ_U64(hotfn_launch_detach(launch, &err), HOTFN_OK);
    hotfn_launch_destroy(launch);
    CHECK_EQ_U64(count_differing_pages(pid), 0);
    CHECK_EQ_U64(count_maps(pid), maps);
    end_target(pid);
}

static void a_second_hotfn_and_bad_options_are_refused(void)
{
    uint32_t pid = start_target(true);
    hotfn_launch_options options = HOTFN_LAUNCH_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch = NULL, *second = NULL;

    options.send_to = "udp:9";
    CHECK_EQ_U64(hotfn_launch_attach(&launch, pid, &options, NULL, &err), HOTFN_E_OPTION);
    CHECK(strstr(err.text, "serves neither events"));
    CHECK_EQ_U64(hotfn_launch_attach(&launch, 0x7fffffff, NULL, NULL, &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_U64(hotfn_launch_detach(NULL, &err), HOTFN_E_OPTION);
    CHECK_EQ_U64(attach(&launch, pid, NULL, false, &err), HOTFN_OK);
    CHECK_EQ_U64(attach(&second, pid, NULL, false, &err), HOTFN_E_STATE);
    CHECK(strstr(err.text, "another hotfn") != NULL);
    CHECK_EQ_U64(hotfn_launch_detach(launch, &err), HOTFN_OK);
    CHECK_EQ_U64(hotfn_launch_detach(launch, &err), HOTFN_E_STATE);
    hotfn_launch_destroy(launch);
    end_target(pid);
}

static const check_test tests[] = {
    CHECK_TEST(calls_between_attach_and_detach_are_counted_exactly),
    CHECK_TEST(calls_are_counted_exactly_with_all_modules_hooked),
    CHECK_TEST(timed_calls_are_counted_exactly),
    CHECK_TEST(a_process_can_be_attached_to_repeatedly),
    CHECK_TEST(the_target_is_unharmed_whichever_step_of_an_attach_fails),
    CHECK_TEST(the_code_is_restored_whichever_step_of_a_detach_fails),
    CHECK_TEST(code_and_states_agree_whichever_step_of_a_switch_fails),
    CHECK_TEST(a_second_hotfn_and_bad_options_are_refused),
};

/* With a sanitizer the target has terabytes of shadow memory, and the test does not end in time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1
#elif defined(__has_feature)
#define HAS_SHADOW (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HAS_SHADOW 0
#endif

int main(int argc, char **argv)
{
    if (HAS_SHADOW) {
        printf("skipped: the target has the shadow memory of a sanitizer\n");
        return 77;
    }
    if (!hfn_os_can_enter_others()) {
        puts("1..0 # SKIP processes cannot be entered on this CPU");
        return 0;
    }
    if (!mkdtemp(cache_folder)) {
        return 1;
    }
    int status = check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", cache_folder);
    return system(command) == 0 ? status : 1;
}
