/* SPDX-License-Identifier: MIT */
/* Processes that are refused, and calls that a stopped process makes for another one. */
#include "remote_target.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* ---- Targets. */

enum { THREADS = 4 };

typedef struct shared {
    _Atomic uint64_t beats[THREADS];
    _Atomic uint32_t failed; /* a register or a word on a stack was changed */
} shared;

typedef struct beat_thread {
    shared *memory;
    uint32_t index;
} beat_thread;

/* All callee-saved and many other registers hold values that the loop depends on. */
static uint64_t churn(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    for (int i = 0; i < 2000; i++) {
        a = a * 6364136223846793005u + b;
        b ^= c >> 7;
        c += d * 31;
        d = d << 13 | d >> 51;
        e ^= a + f;
        f = f * 5 + 1;
    }
    return a ^ b ^ c ^ d ^ e ^ f;
}

static void *beat(void *user)
{
    beat_thread *own = user;
    uint64_t expected = churn(1, 2, 3, 4, 5, 6);

    for (;;) {
        if (churn(1, 2, 3, 4, 5, 6) != expected) {
            atomic_store(&own->memory->failed, 1);
        }
        atomic_fetch_add(&own->memory->beats[own->index], 1);
        if (own->index % 2 == 1) {
            usleep(100);
        }
    }
    return NULL;
}

static void run_beats(void *user)
{
    static beat_thread threads[THREADS];
    pthread_t id;

    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i] = (beat_thread){ user, i };
        pthread_create(&id, NULL, beat, &threads[i]);
    }
    for (;;) {
        pause();
    }
}

/* /proc cannot be opened there. */
static void run_beats_in_empty_root(void *user)
{
    char folder[] = "/tmp/remote-test-XXXXXX";

    if (!mkdtemp(folder) || chdir(folder) != 0 || rmdir(folder) != 0 || chroot(".") != 0) {
        _exit(9);
    }
    run_beats(user);
}

static void run_pause(void *user)
{
    (void)user;
    for (;;) {
        pause();
    }
}

static void wait_for_beats(shared *memory)
{
    uint64_t before[THREADS];

    for (int i = 0; i < THREADS; i++) {
        before[i] = atomic_load(&memory->beats[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        for (int tries = 0; atomic_load(&memory->beats[i]) < before[i] + 2; tries++) {
            usleep(500);
            if (!CHECK(tries < 20000)) {
                return;
            }
        }
    }
}

static uint32_t count_lines(uint32_t pid)
{
    char path[64];
    uint32_t lines = 0;
    FILE *maps;
    int c;

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    maps = fopen(path, "r");
    while (maps && (c = fgetc(maps)) != EOF) {
        lines += c == '\n';
    }
    if (maps) {
        fclose(maps);
    }
    return lines;
}

static uint64_t get_blocked(uint32_t pid)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%u/status", pid);
    status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "SigBlk: %llx", &mask);
    }
    if (status) {
        fclose(status);
    }
    return mask;
}

/* ---- Refusals. */

static void wait_for_state(uint32_t pid, char state)
{
    char path[64], line[512];

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    for (int i = 0; i < 5000; i++) {
        FILE *stat = fopen(path, "r");
        bool reached = stat && fgets(line, sizeof line, stat) && strrchr(line, ')') &&
                       strrchr(line, ')')[2] == state;
        if (stat) {
            fclose(stat);
        }
        if (reached) {
            return;
        }
        usleep(1000);
    }
    CHECK(!"the state was reached");
}

typedef struct first_refusal {
    hfn_remote_verdict verdict;
    uint32_t conditions; /* that were reported */
    char why[384];
} first_refusal;

static void keep_first(void *user, const char *name, hfn_remote_verdict verdict, const char *text)
{
    first_refusal *first = user;

    CHECK(name[0] != 0 && text[0] != 0);
    first->conditions++;
    if (first->verdict == HFN_REMOTE_READY && verdict != HFN_REMOTE_READY) {
        first->verdict = verdict;
        snprintf(first->why, sizeof first->why, "%s", text);
    }
}

static hfn_remote_verdict check_process(uint32_t pid)
{
    first_refusal first = { 0 };

    hfn_os_remote_check(pid, keep_first, &first);
    CHECK(first.conditions > 0);
    return first.verdict;
}

static void check_refusal(uint32_t pid, hfn_remote_verdict verdict, const char *part)
{
    first_refusal first = { 0 };

    hfn_os_remote_check(pid, keep_first, &first);
    CHECK_EQ_U64(first.verdict, verdict);
    if (!CHECK(strstr(first.why, part) != NULL)) {
        printf("#   %s\n", first.why);
    }
}

static void processes_that_cannot_be_entered_are_refused_with_the_reason(void)
{
    uint32_t pid = start_target(run_pause, NULL);
    int status;

    CHECK_EQ_U64(check_process(pid), HFN_REMOTE_READY);
    kill((pid_t)pid, SIGSTOP);
    wait_for_state(pid, 'T');
    check_refusal(pid, HFN_REMOTE_SUSPENDED, "kill -CONT");
    kill((pid_t)pid, SIGCONT);
    wait_for_state(pid, 'S');
    CHECK(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0);
    check_refusal(pid, HFN_REMOTE_TRACED, "os_remote_test");
    CHECK(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0);
    waitpid((pid_t)pid, &status, __WALL);
    CHECK(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0);
    CHECK_EQ_U64(check_process(pid), HFN_REMOTE_READY);
    kill((pid_t)pid, SIGKILL);
    wait_for_state(pid, 'Z');
    check_refusal(pid, HFN_REMOTE_ENDED, "has ended");
    end_target(pid, 0);
    check_refusal(pid, HFN_REMOTE_NOT_FOUND, "there is no process");
    check_refusal((uint32_t)getpid(), HFN_REMOTE_DENIED, "hotfn itself");
}

static void run_filtered(void *user)
{
    (void)user;
    prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */, 0, 0, 0);
    for (volatile int spin = 1; spin;) {
    }
}

static void a_process_that_filters_its_system_calls_is_refused(void)
{
    uint32_t pid = start_target(run_filtered, NULL);

    for (int i = 0; i < 5000 && check_process(pid) == HFN_REMOTE_READY; i++) {
        usleep(1000);
    }
    check_refusal(pid, HFN_REMOTE_FILTERED, "seccomp mode 1");
    end_target(pid, SIGKILL);
}

static void run_locked(void *user)
{
    static char page[8192];

    if (syscall(SYS_mlock, page, sizeof page) != 0) {
        _exit(1);
    }
    run_pause(user);
}

static void a_process_that_locks_memory_is_refused(void)
{
    uint32_t pid = start_target(run_locked, NULL);

    for (int i = 0; i < 5000 && check_process(pid) == HFN_REMOTE_READY; i++) {
        usleep(1000);
    }
    check_refusal(pid, HFN_REMOTE_LOCKED, "locks memory");
    end_target(pid, SIGKILL);
}

/* ---- Calls. */

typedef struct entry {
    uint64_t pages, file; /* addresses in the target; 0: none */
    hfn_os_error error;
} entry;

/* 64 KiB of free addresses. */
static uint64_t find_room(const hfn_remote *r)
{
    hfn_os_gap gaps[64];
    uint32_t count = hfn_os_remote_find_gaps(r, UINT64_C(1) << 32, UINT64_C(1) << 46, gaps, 64);

    for (uint32_t i = 0; i < count; i++) {
        if (gaps[i].end - gaps[i].begin >= 65536) {
            return gaps[i].begin;
        }
    }
    return 0;
}

/* Everything that an attach does: map pages and a file, fill them, let them be executable. */
static void enter(hfn_remote *r, int fd, entry *e)
{
    static const uint8_t code[] = { 0xc3 };

    e->error = hfn_os_remote_open(r);
    if (e->error == 0) {
        e->error = hfn_os_remote_stop(r, STOP_NS);
    }
    if (e->error == 0) {
        e->error = hfn_os_remote_begin_calls(r);
    }
    if (e->error == 0) {
        uint64_t at = find_room(r);
        e->error = hfn_os_remote_map(r, at, 8192);
        e->pages = e->error == 0 ? at : 0;
    }
    if (e->error == 0 && !hfn_os_remote_write(r, e->pages, code, sizeof code)) {
        e->error = EIO;
    }
    if (e->error == 0) {
        e->error = hfn_os_remote_make_executable(r, e->pages, 8192);
    }
    if (e->error == 0) {
        uint64_t at = find_room(r);
        e->error = hfn_os_remote_map_file(r, (hfn_os_file){ fd }, e->pages + 4096, at, 4096);
        e->file = e->error == 0 ? at : 0;
    }
}

/* Remove what `enter` mapped. */
static hfn_os_error leave(hfn_remote *r, entry *e)
{
    hfn_os_error error = 0, end;

    if (e->file) {
        error = hfn_os_remote_unmap(r, e->file, 4096);
    }
    if (e->pages) {
        hfn_os_error second = hfn_os_remote_unmap(r, e->pages, 8192);
        error = error ? error : second;
    }
    end = hfn_os_remote_end_calls(r);
    return error ? error : end;
}

static int create_file(void)
{
    int fd = memfd_create("remote-test", MFD_CLOEXEC);

    CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
    return fd;
}

static void a_stopped_process_maps_pages_and_files_and_continues(void)
{
    shared *memory = share_bytes(sizeof *memory);
    uint32_t pid = start_target(run_beats, memory), lines;
    hfn_remote r = remote_of(pid);
    uint64_t word = 0, blocked;
    entry e = { 0 };
    int fd = create_file();

    wait_for_beats(memory);
    lines = count_lines(pid);
    blocked = get_blocked(pid);
    enter(&r, fd, &e);
    CHECK_EQ_I64(e.error, 0);
    word = 0x1234;
    CHECK(hfn_os_remote_write(&r, e.file, &word, sizeof word));
    CHECK(pread(fd, &word, sizeof word, 0) == sizeof word && word == 0x1234);
    CHECK_EQ_I64(hfn_os_remote_map(&r, e.pages, 4096), EEXIST);
    CHECK_EQ_I64(leave(&r, &e), 0);
    release_target(&r);
    CHECK_EQ_U64(count_lines(pid), lines);
    CHECK_EQ_U64(get_blocked(pid), blocked);
    wait_for_beats(memory);
    CHECK_EQ_U64(atomic_load(&memory->failed), 0);
    hfn_os_remote_finish(&r);
    end_target(pid, SIGKILL);
    close(fd);
    munmap(memory, sizeof *memory);
}

/* Round n lets step n fail, until a round needs fewer steps. */
static void fail_each_step(void (*run)(void *user))
{
    shared *memory = share_bytes(sizeof *memory);
    uint32_t pid = start_target(run, memory), lines, step = 0, failed = 0;
    entry e;
    int fd = create_file();
    uint64_t blocked;

    wait_for_beats(memory);
    lines = count_lines(pid);
    blocked = get_blocked(pid);
    do {
        hfn_remote r = remote_of(pid);
        e = (entry){ 0 };
        hfn_os_remote_fail_at(++step);
        enter(&r, fd, &e);
        failed += e.error != 0;
        if (leave(&r, &e) == EIO) { /* the failing step was one of these: repeat it */
            r.caller.tid = 0;
        }
        release_target(&r);
        wait_for_beats(memory);
        CHECK_EQ_U64(get_blocked(pid), blocked);
        CHECK_EQ_U64(atomic_load(&memory->failed), 0);
        hfn_os_remote_finish(&r);
        if (!CHECK(step < 2000) || !CHECK(kill((pid_t)pid, 0) == 0)) {
            break;
        }
    } while (hfn_os_remote_get_steps() >= step);
    hfn_os_remote_fail_at(0);
    CHECK(step > 30 && failed > 10);
    CHECK(count_lines(pid) <= lines + 2); /* the mapping whose removal failed */
    end_target(pid, SIGKILL);
    close(fd);
    munmap(memory, sizeof *memory);
}

static void the_target_goes_on_unharmed_whichever_step_fails(void)
{
    fail_each_step(run_beats);
    if (geteuid() == 0) { /* only root can change its root */
        fail_each_step(run_beats_in_empty_root);
    }
}

/* In round n step n fails; then, or at its end, the process that makes the calls ends with them. */
static void the_target_goes_on_unharmed_if_its_caller_is_killed(void)
{
    shared *memory = share_bytes(sizeof *memory);
    uint32_t pid = start_target(run_beats, memory), killed = 0;
    int fd = create_file(), status = 0;
    uint64_t blocked;

    wait_for_beats(memory);
    blocked = get_blocked(pid);
    for (uint32_t step = 1; step <= 60; step++) {
        pid_t caller = fork();
        if (caller == 0) {
            hfn_remote r = remote_of(pid);
            entry e = { 0 };
            r.is_child = false;
            hfn_os_remote_fail_at(step);
            enter(&r, fd, &e);
            if (e.error == 0) {
                _exit(0);
            }
            raise(SIGKILL);
        }
        CHECK(waitpid(caller, &status, 0) == caller);
        killed += WIFSIGNALED(status);
        wait_for_beats(memory);
        for (int i = 0; i < 5000 && get_blocked(pid) != blocked; i++) {
            usleep(1000); /* until the thread that made the calls has a processor */
        }
        CHECK_EQ_U64(get_blocked(pid), blocked);
        CHECK_EQ_U64(atomic_load(&memory->failed), 0);
    }
    CHECK(killed > 10 && killed < 60);
    end_target(pid, SIGKILL);
    close(fd);
    munmap(memory, sizeof *memory);
}

/* ---- Program counters. */

static uint64_t move_none(void *user, uint64_t pc)
{
    uint32_t *count = user;

    (*count)++;
    return pc;
}

static _Atomic uint32_t *handler_runs;

static void run_in_handler(int number)
{
    (void)number;
    atomic_store(handler_runs, 1);
    for (;;) {
        pause();
    }
}

static void run_handler(void *user)
{
    struct sigaction action = { .sa_handler = run_in_handler };

    handler_runs = user;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void do_nothing(int number)
{
    (void)number;
}

/* The alternate stack lies above the frame of the caller, on the same stack. */
static void raise_on_alternate_stack(void (*handler)(int), char *bytes, size_t count)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    stack_t stack = { .ss_sp = bytes, .ss_size = count };

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void run_alternate_handler(void *user)
{
    char bytes[32768];

    handler_runs = user;
    raise_on_alternate_stack(run_in_handler, bytes, sizeof bytes);
}

static void end_alternate_handler(void *user)
{
    char bytes[32768] = { 0 }; /* without the frames of handlers of earlier tests */

    handler_runs = user;
    raise_on_alternate_stack(do_nothing, bytes, sizeof bytes);
    run_in_handler(0); /* bytes has the frame, and no handler runs */
}

/* How many places the stopped target may continue at. */
static uint32_t count_places(void (*run)(void *user))
{
    _Atomic uint32_t *started = share_bytes(4096);
    uint32_t pid = start_target(run, (void *)started), visited = 0;
    hfn_remote r = remote_of(pid);

    while (!atomic_load(started)) {
        usleep(1000);
    }
    CHECK_EQ_I64(hfn_os_remote_open(&r), 0);
    CHECK_EQ_I64(hfn_os_remote_stop(&r, STOP_NS), 0);
    CHECK(hfn_os_remote_adjust(&r, move_none, &visited));
    release_target(&r);
    hfn_os_remote_finish(&r);
    end_target(pid, SIGKILL);
    munmap((void *)started, 4096);
    return visited;
}

/* The handler, and the code that it interrupted. */
static void the_frame_of_a_running_handler_is_found(void)
{
    CHECK(count_places(run_handler) >= 2);
    CHECK(count_places(run_alternate_handler) >= 2);
}

static void the_frame_of_a_handler_that_has_returned_is_not_found(void)
{
    CHECK_EQ_U64(count_places(end_alternate_handler), 1);
}

static void wait_for_signals(void *user)
{
    (void)user;
    for (;;) {
        pause();
    }
}

/* An attach that comes too late explains that the process has ended. */
static void a_process_that_ended_before_it_was_opened_was_replaced(void)
{
    uint32_t pid = start_target(wait_for_signals, NULL);
    hfn_remote r = remote_of(pid);

    CHECK_EQ_I64(hfn_os_remote_open(&r), 0);
    CHECK(!hfn_os_remote_was_replaced(&r));
    hfn_os_remote_close(&r);
    CHECK(!hfn_os_remote_was_replaced(&r));
    end_target(pid, SIGKILL);
    CHECK(hfn_os_remote_open(&r) != 0);
    CHECK(hfn_os_remote_was_replaced(&r));
}

static const check_test tests[] = {
    CHECK_TEST(processes_that_cannot_be_entered_are_refused_with_the_reason),
    CHECK_TEST(a_process_that_filters_its_system_calls_is_refused),
    CHECK_TEST(a_process_that_locks_memory_is_refused),
    CHECK_TEST(a_stopped_process_maps_pages_and_files_and_continues),
    CHECK_TEST(the_target_goes_on_unharmed_whichever_step_fails),
    CHECK_TEST(the_target_goes_on_unharmed_if_its_caller_is_killed),
    CHECK_TEST(a_process_that_ended_before_it_was_opened_was_replaced),
    CHECK_TEST(the_frame_of_a_running_handler_is_found),
    CHECK_TEST(the_frame_of_a_handler_that_has_returned_is_not_found),
};

int main(int argc, char **argv)
{
    if (!hfn_os_can_enter_others()) {
        puts("1..0 # SKIP processes cannot be entered on this CPU");
        return 0;
    }
    return check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
}
