/* SPDX-License-Identifier: MIT */
/* System calls in which threads wait while their process is stopped and entered again and again:
 * each returns what it would have returned otherwise.  With the argument `target`, this program is
 * only the waiting process, and attach_waits_test.py attaches to it. */
#include "remote_target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

enum { ROUNDS = 100, MAX_WAITS = 32 };

typedef struct shared {
    _Atomic uint32_t ready, release, done;
    int errors[MAX_WAITS]; /* -1: has not returned; 0: as expected */
} shared;

static shared *memory;

/* Descriptors that become ready when the waits are released, and other objects to wait for. */
static int pipes[MAX_WAITS][2], sockets[MAX_WAITS][2], listener, listener_with_limit;
static int semaphore, queue;
static _Atomic uint32_t futex_word, futex_word_with_limit;
static int terminal, terminal_master;
static aio_context_t aio;

/* Each returns 0 if the wait ended as it should. */
typedef int (*wait_fn)(int index);

static int result(bool good)
{
    return good ? 0 : errno ? errno : 1000;
}

static int sleep_once(void)
{
    struct timespec begin, end, left, time = { 1, 500000000 };
    double took;
    int error;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    error = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left);
    clock_gettime(CLOCK_MONOTONIC, &end);
    took = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return error ? error : took >= 1.5 ? 0 : 1001;
}

static int wait_nanosleep(int index)
{
    int error;

    (void)index;
    do {
        error = sleep_once();
    } while (error == 0 && !atomic_load(&memory->release));
    return error;
}

static int wait_poll(int index)
{
    struct pollfd fd = { pipes[index][0], POLLIN, 0 };

    return result(poll(&fd, 1, 600000) == 1);
}

static int wait_ppoll(int index)
{
    struct pollfd fd = { pipes[index][0], POLLIN, 0 };
    struct timespec limit = { 600, 0 };
    sigset_t none;

    sigemptyset(&none);
    return result(ppoll(&fd, 1, &limit, &none) == 1);
}

static int wait_select(int index)
{
    fd_set set;

    FD_ZERO(&set);
    FD_SET(pipes[index][0], &set);
    return result(select(pipes[index][0] + 1, &set, NULL, NULL, NULL) == 1);
}

static int wait_select_with_limit(int index)
{
    struct timeval limit = { 600, 0 };
    fd_set set;

    FD_ZERO(&set);
    FD_SET(pipes[index][0], &set);
    return result(select(pipes[index][0] + 1, &set, NULL, NULL, &limit) == 1);
}

static int wait_epoll(int index)
{
    struct epoll_event event = { .events = EPOLLIN };
    int fd = epoll_create1(0);

    epoll_ctl(fd, EPOLL_CTL_ADD, pipes[index][0], &event);
    return result(epoll_wait(fd, &event, 1, 600000) == 1);
}

static int wait_epoll_masked(int index)
{
    struct epoll_event event = { .events = EPOLLIN };
    int fd = epoll_create1(0);
    sigset_t none;

    sigemptyset(&none);
    epoll_ctl(fd, EPOLL_CTL_ADD, pipes[index][0], &event);
    return result(epoll_pwait(fd, &event, 1, -1, &none) == 1);
}

/* EAGAIN: the word was changed before the thread waited for it again after a stop, as a loaded
 * machine shows; every caller of futex expects that. */
static int wait_for_word(_Atomic uint32_t *word, const struct timespec *limit)
{
    return result(syscall(SYS_futex, word, FUTEX_WAIT, 0, limit, NULL, 0) == 0 ||
                  (errno == EAGAIN && atomic_load(word) != 0));
}

static int wait_futex(int index)
{
    (void)index;
    return wait_for_word(&futex_word, NULL);
}

static int wait_futex_with_limit(int index)
{
    struct timespec limit = { 600, 0 };

    (void)index;
    return wait_for_word(&futex_word_with_limit, &limit);
}

static int wait_read_pipe(int index)
{
    char byte;

    return result(read(pipes[index][0], &byte, 1) == 1);
}

static int wait_read_event(int index)
{
    uint64_t value = 0;

    (void)index;
    return result(read(pipes[index][0], &value, 1) == 1);
}

static int wait_read_terminal(int index)
{
    char line[8];

    (void)index;
    return result(read(terminal, line, sizeof line) == 2);
}

static int wait_recv(int index)
{
    char byte;

    return result(recv(sockets[index][0], &byte, 1, 0) == 1);
}

static int wait_recv_with_limit(int index)
{
    struct timeval limit = { 600, 0 };
    char byte;

    setsockopt(sockets[index][0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return result(read(sockets[index][0], &byte, 1) == 1);
}

static int wait_recvmmsg(int index)
{
    char byte;
    struct iovec part = { &byte, 1 };
    struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };

    return result(recvmmsg(sockets[index][0], &message, 1, 0, NULL) == 1);
}

static int wait_accept(int index)
{
    (void)index;
    return result(accept(listener, NULL, NULL) >= 0);
}

static int wait_accept_with_limit(int index)
{
    struct timeval limit = { 600, 0 };

    (void)index;
    setsockopt(listener_with_limit, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return result(accept(listener_with_limit, NULL, NULL) >= 0);
}

static pthread_t waiting_for_signal[2];

static int wait_sigtimedwait(int index)
{
    struct timespec limit = { 600, 0 };
    sigset_t set;

    (void)index;
    waiting_for_signal[0] = pthread_self();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return result(sigtimedwait(&set, NULL, &limit) == SIGUSR1);
}

static int wait_sigwaitinfo(int index)
{
    sigset_t set;

    (void)index;
    waiting_for_signal[1] = pthread_self();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return result(sigwaitinfo(&set, NULL) == SIGUSR2);
}

static int wait_child(int index)
{
    char byte;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(read(pipes[index][0], &byte, 1) == 1 ? 7 : 8);
    }
    return result(wait4(pid, &status, 0, NULL) == pid && WEXITSTATUS(status) == 7);
}

static int wait_semop(int index)
{
    struct sembuf down = { 0, -1, 0 };

    (void)index;
    return result(semop(semaphore, &down, 1) == 0);
}

static int wait_semtimedop(int index)
{
    struct sembuf down = { 0, -1, 0 };
    struct timespec limit = { 600, 0 };

    (void)index;
    return result(semtimedop(semaphore, &down, 1, &limit) == 0);
}

static int wait_msgrcv(int index)
{
    struct {
        long type;
        char text[8];
    } message;

    (void)index;
    return result(msgrcv(queue, &message, sizeof message.text, 0, 0) == 1);
}

static int wait_io_getevents(int index)
{
    struct io_event event;
    char byte;
    struct iocb block = { .aio_lio_opcode = IOCB_CMD_POLL,
                          .aio_fildes = (uint32_t)pipes[index][0],
                          .aio_buf = POLLIN };
    struct iocb *blocks[1] = { &block };

    (void)byte;
    if (syscall(SYS_io_setup, 1, &aio) != 0 || syscall(SYS_io_submit, aio, 1, blocks) != 1) {
        return result(false);
    }
    return result(syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) == 1);
}

static const struct {
    const char *name;
    wait_fn wait;
} waits[] = {
    { "clock_nanosleep", wait_nanosleep },
    { "poll", wait_poll },
    { "ppoll", wait_ppoll },
    { "select", wait_select },
    { "select with a timeout", wait_select_with_limit },
    { "epoll_wait", wait_epoll },
    { "epoll_pwait", wait_epoll_masked },
    { "futex", wait_futex },
    { "futex with a timeout", wait_futex_with_limit },
    { "read, pipe", wait_read_pipe },
    { "read, event", wait_read_event },
    { "read, terminal", wait_read_terminal },
    { "recv", wait_recv },
    { "read, socket with a timeout", wait_recv_with_limit },
    { "recvmmsg", wait_recvmmsg },
    { "accept", wait_accept },
    { "accept with a timeout", wait_accept_with_limit },
    { "sigtimedwait", wait_sigtimedwait },
    { "sigwaitinfo", wait_sigwaitinfo },
    { "wait4", wait_child },
    { "semop", wait_semop },
    { "semtimedop", wait_semtimedop },
    { "msgrcv", wait_msgrcv },
    { "io_getevents", wait_io_getevents },
};

enum { WAITS = sizeof waits / sizeof *waits };

static void *run_wait(void *user)
{
    int index = (int)(intptr_t)user;

    atomic_fetch_add(&memory->ready, 1);
    memory->errors[index] = waits[index].wait(index);
    atomic_fetch_add(&memory->done, 1);
    return NULL;
}

static int listen_locally(void)
{
    struct sockaddr_in any = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&any, sizeof any) != 0 || listen(fd, 4) != 0) {
        _exit(3);
    }
    return fd;
}

static void connect_to(int fd)
{
    struct sockaddr_in name;
    socklen_t bytes = sizeof name;
    int own = socket(AF_INET, SOCK_STREAM, 0);

    getsockname(fd, (struct sockaddr *)&name, &bytes);
    if (connect(own, (struct sockaddr *)&name, sizeof name) != 0) {
        _exit(4);
    }
}

static void open_terminal(void)
{
    terminal_master = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal_master < 0 || grantpt(terminal_master) != 0 || unlockpt(terminal_master) != 0) {
        _exit(6);
    }
    terminal = open(ptsname(terminal_master), O_RDWR | O_NOCTTY);
}

static void create_objects(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < WAITS; i++) {
        if (pipe(pipes[i]) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets[i]) != 0) {
            _exit(2);
        }
    }
    open_terminal();
    listener = listen_locally();
    listener_with_limit = listen_locally();
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
}

static void wake_all(void)
{
    struct sembuf up = { 0, 2, 0 };
    struct {
        long type;
        char text[1];
    } message = { 1, { 'x' } };

    for (int i = 0; i < WAITS; i++) {
        if (write(pipes[i][1], "x", 1) != 1 || send(sockets[i][1], "x", 1, 0) != 1) {
            _exit(5);
        }
    }
    if (write(terminal_master, "x\n", 2) != 2) {
        _exit(7);
    }
    connect_to(listener);
    connect_to(listener_with_limit);
    atomic_store(&futex_word, 1);
    atomic_store(&futex_word_with_limit, 1);
    syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
    syscall(SYS_futex, &futex_word_with_limit, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_kill(waiting_for_signal[0], SIGUSR1);
    pthread_kill(waiting_for_signal[1], SIGUSR2);
    semop(semaphore, &up, 1);
    msgsnd(queue, &message, 1, 0);
}

static void start_waits(void)
{
    pthread_t id;

    create_objects();
    for (int i = 0; i < WAITS; i++) {
        memory->errors[i] = -1;
        pthread_create(&id, NULL, run_wait, (void *)(intptr_t)i);
    }
}

static void finish_waits(void)
{
    wake_all();
    for (int i = 0; i < 10000 && atomic_load(&memory->done) < WAITS; i++) {
        usleep(2000);
    }
    semctl(semaphore, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
}

static void run_waits(void *user)
{
    (void)user;
    start_waits();
    while (!atomic_load(&memory->release)) {
        usleep(2000);
    }
    finish_waits();
}

/* Waits until its standard input ends.  Returns the exit status. */
static int run_alone(void)
{
    static shared own;
    int status = 0;

    memory = &own;
    start_waits();
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    atomic_store(&memory->release, 1);
    finish_waits();
    for (int i = 0; i < WAITS; i++) {
        if (memory->errors[i] != 0) {
            printf("%s: %d\n", waits[i].name, memory->errors[i]);
            status = 1;
        }
    }
    return status;
}

static void enter_once(uint32_t pid)
{
    hfn_remote r = remote_of(pid);
    uint64_t pages;
    hfn_os_gap gap;

    CHECK_EQ_I64(hfn_os_remote_open(&r), 0);
    CHECK_EQ_I64(hfn_os_remote_stop(&r, STOP_NS), 0);
    CHECK_EQ_I64(hfn_os_remote_begin_calls(&r), 0);
    CHECK_EQ_U64(hfn_os_remote_find_gaps(&r, UINT64_C(1) << 32, UINT64_C(1) << 46, &gap, 1), 1);
    pages = gap.begin;
    CHECK_EQ_I64(hfn_os_remote_map(&r, pages, 4096), 0);
    CHECK_EQ_I64(hfn_os_remote_unmap(&r, pages, 4096), 0);
    CHECK_EQ_I64(hfn_os_remote_end_calls(&r), 0);
    release_target(&r);
    hfn_os_remote_finish(&r);
}

static void waits_return_as_without_stops(void)
{
    uint32_t pid;
    int status;

    memory = share_bytes(sizeof *memory);
    pid = start_target(run_waits, NULL);
    while (atomic_load(&memory->ready) < WAITS) {
        usleep(1000);
    }
    usleep(100000); /* until the threads wait; an early stop tests less, but fails nothing */
    for (int i = 0; i < ROUNDS; i++) {
        enter_once(pid);
    }
    atomic_store(&memory->release, 1);
    status = end_target(pid, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < WAITS; i++) {
        if (!CHECK_EQ_I64(memory->errors[i], 0)) {
            printf("#   %s\n", waits[i].name);
        }
    }
    munmap(memory, sizeof *memory);
}

static const check_test tests[] = {
    CHECK_TEST(waits_return_as_without_stops),
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "target") == 0) {
        return run_alone();
    }
    if (!hfn_os_can_enter_others()) {
        puts("1..0 # SKIP processes cannot be entered on this CPU");
        return 0;
    }
    return check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
}
