/* SPDX-License-Identifier: MIT */
/*
 * A child process that demangles the risky names, one name in each packet.  If it runs out of
 * stack, memory or time, it dies, the name is shown as it is, and another child replaces it.  After
 * MAX_DEATHS deaths no further child starts, so that a file full of bad names costs seconds at
 * most.
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

/* A name may use NAME_MS of processor time.  On a machine too busy to run the child, waiting ends
 * after MAX_WAITS times NAME_MS. */
enum { MAX_DEATHS = 8, NAME_MS = 250, MAX_WAITS = 40, CHANNEL = 3, MAX_ANSWER = 65536 };
#define MAX_MEMORY ((rlim_t)512 << 20)

static struct {
    pthread_mutex_t lock;
    pid_t child; /* 0: none */
    int channel;
    int deaths;
} worker = { PTHREAD_MUTEX_INITIALIZER, 0, -1, 0 };

static void lower_limit(int resource, rlim_t max)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && (now.rlim_max == RLIM_INFINITY || now.rlim_max > max)) {
        now.rlim_cur = now.rlim_max = max;
        setrlimit(resource, &now);
    }
}

/* Close every inherited descriptor but the channel, so that the child keeps no pipe open. */
static void isolate_child(int channel)
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
    lower_limit(RLIMIT_CORE, 0);
    lower_limit(RLIMIT_AS, MAX_MEMORY);
}

static void serve_names(int channel)
{
    static char name[DEMANGLE_LONGEST + 1], answer[MAX_ANSWER];
    ssize_t bytes;
    isolate_child(channel);
    while ((bytes = recv(CHANNEL, name, sizeof name - 1, 0)) > 0) {
        name[bytes] = 0;
        size_t length = demangle_in_process(name, answer, sizeof answer);
        answer[length] = 0; /* never empty: an empty packet looks like end of file */
        if (send(CHANNEL, answer, length + 1, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    _exit(0);
}

static void start_child(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        worker.deaths = MAX_DEATHS;
        return;
    }
    worker.child = fork();
    if (worker.child == 0) {
        serve_names(ends[1]);
    }
    close(ends[1]);
    worker.channel = ends[0];
    if (worker.child < 0) {
        close(ends[0]);
        worker.child = 0;
        worker.deaths = MAX_DEATHS;
    }
}

static void kill_child(void)
{
    kill(worker.child, SIGKILL);
    waitpid(worker.child, NULL, 0);
    close(worker.channel);
    worker.child = 0;
    worker.deaths++;
}

/* The processor time of the child in milliseconds; 0 if it cannot be read. */
static int64_t get_used_ms(void)
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
    int64_t begin_ms = get_used_ms();
    int ready = 0;
    for (int i = 0; i < MAX_WAITS && ready == 0 && get_used_ms() - begin_ms < NAME_MS; i++) {
        ready = poll(&wait, 1, NAME_MS);
        ready = ready < 0 && errno == EINTR ? 0 : ready; /* interrupted by a signal */
    }
    return ready == 1;
}

static size_t request_name(const char *mangled, char *out, size_t out_bytes)
{
    static char answer[MAX_ANSWER];
    ssize_t bytes = -1;
    if (send(worker.channel, mangled, strlen(mangled), MSG_NOSIGNAL) > 0 && wait_for_answer()) {
        bytes = recv(worker.channel, answer, sizeof answer, 0);
    }
    if (bytes <= 0) {
        kill_child();
        return 0;
    }
    if ((size_t)bytes > out_bytes || bytes == 1) {
        return 0;
    }
    memcpy(out, answer, (size_t)bytes);
    return (size_t)bytes - 1;
}

size_t demangle_in_worker(const char *mangled, char *out, size_t out_bytes)
{
    size_t length = 0;
    pthread_mutex_lock(&worker.lock);
    if (worker.child == 0 && worker.deaths < MAX_DEATHS) {
        start_child();
    }
    if (worker.child != 0) {
        length = request_name(mangled, out, out_bytes);
    }
    pthread_mutex_unlock(&worker.lock);
    return length;
}
