/* SPDX-License-Identifier: MIT */
/*
 * Stops another process by ptrace.  PTRACE_SEIZE and PTRACE_INTERRUPT stop a thread without a
 * signal, and PTRACE_DETACH resumes it, with its pending signal if it had stopped for one.  The
 * kernel restarts interrupted system calls; those that it never restarts are made again
 * (remote_restart.c).  Memory is written through /proc/PID/mem, which makes private copies of code
 * pages, as for a debugger, and maintains the caches (Linux, arch/arm64/mm/flush.c:
 * copy_to_user_page).
 *
 * If the leader of the thread group is a child of the caller, the caller reaps it: its exit status
 * is not consumed here.
 */
#include "os/remote.h"

#include "base/compiler.h"
#include "base/memory.h"
#include "os/linux/remote_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_NS = 50000, REAP_NS = 2000000 };

/* ---- Steps that a test lets fail. */

static uint32_t steps_done, failing_step;

void hfn_os_remote_fail_at(uint32_t step)
{
    steps_done = 0;
    failing_step = step;
}

uint32_t hfn_os_remote_get_steps(void)
{
    return steps_done;
}

bool hfn_linux_step_fails(void)
{
    return ++steps_done == failing_step;
}

bool hfn_os_can_change_others(void)
{
    return HFN_CAN_CHANGE_OTHERS;
}

/* ---- Memory. */

hfn_os_error hfn_os_remote_open(hfn_remote *r)
{
    char path[HFN_PROC_PATH_BYTES];

    snprintf(path, sizeof path, "/proc/%u/mem", r->pid);
    if (hfn_linux_step_fails()) {
        return EIO;
    }
    return hfn_os_open_file(&r->memory, path, HFN_OS_READ | HFN_OS_WRITE);
}

void hfn_os_remote_close(hfn_remote *r)
{
    if (hfn_os_is_open(r->memory)) {
        hfn_os_close_file(r->memory);
    }
    r->memory = HFN_OS_NO_FILE;
}

/* The file reads as empty when no process has the memory any more; before, it is an error that no
 * page is mapped at 0 (Linux, fs/proc/base.c, mem_rw). */
bool hfn_os_remote_was_replaced(const hfn_remote *r)
{
    char path[HFN_PROC_PATH_BYTES], byte;
    hfn_os_file_info info;
    uint64_t done = 0;

    if (!hfn_os_is_open(r->memory)) { /* it could not be opened */
        snprintf(path, sizeof path, "/proc/%u", r->pid);
        return hfn_os_get_path_info(path, &info) != 0;
    }
    return hfn_os_read_at(r->memory, 0, &byte, 1, &done) == 0 && done == 0;
}

bool hfn_os_remote_read(const hfn_remote *r, uint64_t address, void *out, uint32_t byte_count)
{
    uint64_t done;

    return !hfn_linux_step_fails() &&
           hfn_os_read_at(r->memory, address, out, byte_count, &done) == 0 && done == byte_count;
}

bool hfn_os_remote_write(const hfn_remote *r, uint64_t address, const void *bytes,
                         uint32_t byte_count)
{
    return !hfn_linux_step_fails() && hfn_os_write_at(r->memory, address, bytes, byte_count) == 0;
}

/* ---- Stopping. */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Linux, Documentation/scheduler/sched-stats.rst: time run, time waited, time slices; 0 if
 * unknown. */
static uint64_t waited_ns(void)
{
    char text[96];
    unsigned long long waited = 0;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = 0;
    return sscanf(text, "%*u %llu", &waited) == 1 ? waited : 0;
}

uint64_t hfn_os_remote_get_stopped_ns(const hfn_remote *r)
{
    uint64_t stood = r->stopped_ns ? now_ns() - r->stopped_ns : 0, waited;

    if (stood == 0) {
        return 0;
    }
    waited = waited_ns() - r->waited_ns;
    return waited < stood ? stood - waited : 0;
}

static hfn_remote_thread *find_thread(hfn_remote *r, uint32_t tid)
{
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].tid == tid && r->threads[i].state != HFN_THREAD_GONE) {
            return &r->threads[i];
        }
    }
    return NULL;
}

/* Ensure room before a thread is seized: a seized thread without an entry would stay stopped. */
static bool has_room(hfn_remote *r)
{
    return hfn_grow_array(&r->env, (void **)&r->threads, &r->thread_capacity, r->thread_count + 1,
                          sizeof *r->threads);
}

/* proc(5): the letter behind the name, which ends at the last bracket. */
static bool is_dead(uint32_t pid, uint32_t tid)
{
    char path[HFN_PROC_PATH_BYTES], stat[512];
    const char *state;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { /* other errors: the thread exists, but no file descriptor is free */
        return errno == ENOENT || errno == ESRCH;
    }
    got = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[got > 0 ? got : 0] = 0;
    state = strrchr(stat, ')');
    return !state || state[1] != ' ' || strchr("ZXx", state[2]);
}

/* If the thread has ended, consume its exit status, unless it is the caller's child.  waitid
 * reports stops even without WSTOPPED, so the status is first read without consuming it. */
static void reap_thread(const hfn_remote *r, hfn_remote_thread *thread)
{
    siginfo_t info = { 0 };
    id_t tid = (id_t)thread->tid;

    if (waitid(P_PID, tid, &info, WEXITED | WNOWAIT | WNOHANG | __WALL) != 0) {
        thread->state = errno == ECHILD ? HFN_THREAD_GONE : thread->state;
        return;
    }
    if (info.si_pid == 0 || info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) {
        return;
    }
    thread->state = HFN_THREAD_GONE;
    if (thread->tid != r->pid || !r->is_child) {
        waitid(P_PID, tid, &info, WEXITED | WNOHANG | __WALL);
    }
}

/* Has the thread stopped or ended by now? */
static void look_at(hfn_remote *r, hfn_remote_thread *thread)
{
    siginfo_t info = { 0 };

    reap_thread(r, thread);
    if (thread->state != HFN_THREAD_GONE &&
        waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | __WALL) == 0 &&
        info.si_pid != 0) {
        thread->delivery = info.si_status >> 8 == HFN_EVENT_STOP ? 0 : info.si_status & 0x7f;
        thread->state = HFN_THREAD_STOPPED;
        if (r->stopped_ns == 0) {
            r->stopped_ns = now_ns();
            r->waited_ns = waited_ns();
        }
    }
}

/* ---- Reaping meanwhile.  If a thread of the process calls exec, the kernel ends the others and
 * waits until the caller has reaped those that are seized; PTRACE_SEIZE of a further thread waits
 * for the end of exec (Linux, cred_guard_mutex).  So a second thread reaps meanwhile. */

static void reap_ended_threads(void *user)
{
    hfn_remote *r = user;

    while (atomic_load(&r->reaper.has_ended) == 0) {
        hfn_os_wait_word(&r->reaper.has_ended, 0, REAP_NS);
        hfn_os_lock_mutex(&r->reaper.lock);
        for (uint32_t i = 0; atomic_load(&r->reaper.has_ended) == 0 && i < r->thread_count; i++) {
            if (r->threads[i].state != HFN_THREAD_GONE) {
                reap_thread(r, &r->threads[i]);
            }
        }
        hfn_os_unlock_mutex(&r->reaper.lock);
    }
}

/* The caller then holds the lock, except in PTRACE_SEIZE. */
static bool start_reaper(hfn_remote *r)
{
    atomic_store(&r->reaper.has_ended, 0);
    hfn_os_init_mutex(&r->reaper.lock);
    hfn_os_lock_mutex(&r->reaper.lock);
    r->reaper.is_running =
        !hfn_linux_step_fails() && hfn_os_start_thread(&r->reaper.thread, reap_ended_threads, r);
    if (!r->reaper.is_running) {
        hfn_os_unlock_mutex(&r->reaper.lock);
        hfn_os_destroy_mutex(&r->reaper.lock);
    }
    return r->reaper.is_running;
}

static void end_reaper(hfn_remote *r)
{
    if (r->reaper.is_running) {
        atomic_store(&r->reaper.has_ended, 1);
        hfn_os_wake_waiters(&r->reaper.has_ended);
        hfn_os_unlock_mutex(&r->reaper.lock);
    }
}

static void join_reaper(hfn_remote *r)
{
    if (r->reaper.is_running) {
        hfn_os_join_thread(&r->reaper.thread);
        hfn_os_destroy_mutex(&r->reaper.lock);
        r->reaper.is_running = false;
    }
}

static hfn_os_error seize_and_reap(hfn_remote *r, uint32_t tid)
{
    hfn_os_error error;

    if (!r->reaper.is_running) {
        return ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 ? 0 : errno;
    }
    hfn_os_unlock_mutex(&r->reaper.lock);
    error = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 ? 0 : errno;
    hfn_os_lock_mutex(&r->reaper.lock);
    return error;
}

/* Seize a thread; 0 also if the thread has ended. */
static hfn_os_error seize_thread(hfn_remote *r, uint32_t tid)
{
    hfn_remote_thread *thread;
    hfn_os_error error;

    if (!has_room(r)) {
        return ENOMEM;
    }
    if (r->thread_count == 1 && !r->reaper.is_running && !start_reaper(r)) {
        return EAGAIN;
    }
    if (hfn_linux_step_fails()) {
        return EPERM;
    }
    error = seize_and_reap(r, tid);
    if (error != 0) {
        return error == ESRCH || is_dead(r->pid, tid) ? 0 : error;
    }
    thread = &r->threads[r->thread_count++];
    *thread = (hfn_remote_thread){ tid, HFN_THREAD_HELD, 0 };
    if (hfn_linux_step_fails()) {
        return EIO; /* the thread is seized and does not stop: resume must release it */
    }
    ptrace(PTRACE_INTERRUPT, tid, NULL,
           NULL); /* fails if the thread ends: then it must be reaped */
    return 0;
}

/* Seize all threads that are not seized yet; *added receives their number. */
static hfn_os_error hold_all(hfn_remote *r, uint32_t *added)
{
    char path[HFN_PROC_PATH_BYTES];
    struct dirent *entry;
    hfn_os_error error = 0;
    DIR *tasks;

    *added = 0;
    snprintf(path, sizeof path, "/proc/%u/task", r->pid);
    tasks = hfn_linux_step_fails() ? NULL : opendir(path);
    if (!tasks) {
        return errno ? errno : EIO;
    }
    while (error == 0 && (entry = readdir(tasks)) != NULL) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10), before = r->thread_count;
        if (tid == 0 || find_thread(r, tid)) {
            continue;
        }
        error = seize_thread(r, tid);
        *added += r->thread_count - before;
    }
    closedir(tasks);
    return error;
}

static bool wait_for_all(hfn_remote *r, uint64_t until_ns)
{
    static const struct timespec poll = { 0, POLL_NS };

    for (;;) {
        bool all = true;
        for (uint32_t i = 0; i < r->thread_count; i++) {
            if (r->threads[i].state == HFN_THREAD_HELD) {
                look_at(r, &r->threads[i]);
            }
            all = all && r->threads[i].state != HFN_THREAD_HELD;
        }
        if (all || now_ns() > until_ns) {
            return all;
        }
        nanosleep(&poll, NULL);
    }
}

hfn_os_error hfn_os_remote_stop(hfn_remote *r, uint64_t timeout_ns)
{
    uint64_t until_ns = now_ns() + timeout_ns;
    uint32_t added;
    hfn_os_error error;

    do {
        error = hold_all(r, &added);
        if (error == 0 && !wait_for_all(r, until_ns)) {
            error = ETIMEDOUT;
        }
    } while (error == 0 && added > 0);
    end_reaper(r);
    return error;
}

bool hfn_os_remote_has_ended(const hfn_remote *r, uint32_t index)
{
    return r->threads[index].state != HFN_THREAD_STOPPED;
}

bool hfn_os_remote_resume(hfn_remote *r)
{
    bool all = true;

    for (uint32_t i = 0; i < r->thread_count; i++) {
        hfn_remote_thread *thread = &r->threads[i];
        if (thread->state == HFN_THREAD_HELD) {
            ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL); /* the first one may have failed */
            look_at(r, thread);
        }
        if (thread->state == HFN_THREAD_STOPPED) {
            if (thread->delivery == 0) {
                hfn_linux_repeat_call(r, thread->tid);
            }
            thread->state = HFN_THREAD_GONE;
            if (ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(uintptr_t)thread->delivery) !=
                0) {
                thread->state = HFN_THREAD_HELD; /* it was killed, and must be reaped */
                look_at(r, thread);
            }
        }
        all = all && thread->state == HFN_THREAD_GONE;
    }
    if (all) {
        r->thread_count = 0;
    }
    r->stopped_ns = 0;
    join_reaper(r);
    return all;
}

void hfn_os_remote_finish(hfn_remote *r)
{
    hfn_os_remote_close(r);
    hfn_free_memory(&r->env, r->threads, r->thread_capacity * sizeof *r->threads);
    r->threads = NULL;
    r->thread_count = 0;
    r->thread_capacity = 0;
}
