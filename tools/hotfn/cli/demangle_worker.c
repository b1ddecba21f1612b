/* SPDX-License-Identifier: MIT */
/*
 * A child that demangles what is not tame, one name a packet. It may run out of stack, memory or time:
 * then it dies, that name is shown as it is, and another child takes its place. After a few such
 * deaths no more is tried, so that a file full of bad names costs seconds at most.
 */
#include "demangle.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A name may take NAME_MS of the processor; on a machine so busy that the child never gets to run, 40
 * times that go by. */
enum { DEATHS_MAX = 8, NAME_MS = 250, WAITS_MAX = 40, CHANNEL = 3, LONGEST_ANSWER = 65536 };
#define MEMORY_MAX ((rlim_t)512 << 20)

static struct {
    pthread_mutex_t lock;
    pid_t child; /* 0: none */
    int channel;
    int deaths;
} worker = { PTHREAD_MUTEX_INITIALIZER, 0, -1, 0 };

static void limit(int what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(what, &now) == 0 && (now.rlim_max == RLIM_INFINITY || now.rlim_max > most)) {
        now.rlim_cur = now.rlim_max = most;
        setrlimit(what, &now);
    }
}

/* The child holds nothing of ours but its channel: no pipe stays open because of it. */
static void let_go(int channel)
{
    int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        signal(signal_number, SIG_DFL);
    }
    for (int fd = 0; fd < 3; fd++) {
        dup2(null, fd);
    }
    dup2(channel, CHANNEL);
    close_range(CHANNEL + 1, ~0u, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, MEMORY_MAX);
}

static void serve(int channel)
{
    static char name[DEMANGLE_LONGEST + 1], answer[LONGEST_ANSWER];
    ssize_t bytes;
    let_go(channel);
    while ((bytes = recv(CHANNEL, name, sizeof name - 1, 0)) > 0) {
        name[bytes] = 0;
        size_t length = demangle_now(name, answer, sizeof answer);
        answer[length] = 0; /* never empty: that would look like the end */
        if (send(CHANNEL, answer, length + 1, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    _exit(0);
}

static void start(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        worker.deaths = DEATHS_MAX;
        return;
    }
    worker.child = fork();
    if (worker.child == 0) {
        serve(ends[1]);
    }
    close(ends[1]);
    worker.channel = ends[0];
    if (worker.child < 0) {
        close(ends[0]);
        worker.child = 0;
        worker.deaths = DEATHS_MAX;
    }
}

static void end(void)
{
    kill(worker.child, SIGKILL);
    waitpid(worker.child, NULL, 0);
    close(worker.channel);
    worker.child = 0;
    worker.deaths++;
}

/* What the child has had of the processor, in milliseconds; 0 if nobody can tell. */
static int64_t used_ms(void)
{
    clockid_t clock;
    struct timespec used = { 0, 0 };
    if (clock_getcpuclockid(worker.child, &clock) == 0) {
        clock_gettime(clock, &used);
    }
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static bool wait_for_answer(void)
{
    struct pollfd wait = { worker.channel, POLLIN, 0 };
    int64_t begin_ms = used_ms();
    int ready = 0;
    for (int i = 0; i < WAITS_MAX && ready == 0 && used_ms() - begin_ms < NAME_MS; i++) {
        ready = poll(&wait, 1, NAME_MS);
        ready = ready < 0 && errno == EINTR ? 0 : ready; /* the child is not to blame */
    }
    return ready == 1;
}

static size_t ask(const char *mangled, char *out, size_t out_bytes)
{
    static char answer[LONGEST_ANSWER];
    ssize_t bytes = -1;
    if (send(worker.channel, mangled, strlen(mangled), MSG_NOSIGNAL) > 0 && wait_for_answer()) {
        bytes = recv(worker.channel, answer, sizeof answer, 0);
    }
    if (bytes <= 0) {
        end();
        return 0;
    }
    if ((size_t)bytes > out_bytes || bytes == 1) {
        return 0;
    }
    memcpy(out, answer, (size_t)bytes);
    return (size_t)bytes - 1;
}

size_t demangle_apart(const char *mangled, char *out, size_t out_bytes)
{
    size_t length = 0;
    pthread_mutex_lock(&worker.lock);
    if (worker.child == 0 && worker.deaths < DEATHS_MAX) {
        start();
    }
    if (worker.child != 0) {
        length = ask(mangled, out, out_bytes);
    }
    pthread_mutex_unlock(&worker.lock);
    return length;
}
