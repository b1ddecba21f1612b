/* SPDX-License-Identifier: MIT */
/* Descendants of a process, the programs that they run, and their processor time. */
#include "os/descendants.h"

#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct sighting {
    uint32_t wanted[2];
    uint32_t seen;
} sighting;

static void note_descendant(void *user, uint32_t pid)
{
    sighting *s = user;
    s->seen += pid == s->wanted[0] || pid == s->wanted[1];
}

/* Start a child that starts another one; both wait.  The pipe has the id of the inner one. */
static pid_t start_family(uint32_t *grandchild)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t inner = fork();
        if (inner != 0) {
            CHECK(write(ends[1], &inner, sizeof inner) == sizeof inner);
        }
        pause();
        _exit(0);
    }
    CHECK(read(ends[0], grandchild, sizeof *grandchild) == sizeof *grandchild);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void children_of_children_are_found(void)
{
    sighting s = { { 0, 0 }, 0 };
    pid_t child = start_family(&s.wanted[1]);
    hfn_os_process_facts own, other;
    char path[4096], self[4096];

    s.wanted[0] = (uint32_t)child;
    hfn_os_each_descendant((uint32_t)getpid(), note_descendant, &s);
    CHECK_EQ_U64(s.seen, 2);
    CHECK(hfn_os_get_process_facts((uint32_t)getpid(), &own));
    CHECK(hfn_os_get_process_facts(s.wanted[0], &other));
    CHECK(own.program == other.program); /* a fork runs the same program */
    CHECK(hfn_os_get_process_program(s.wanted[1], path, sizeof path));
    CHECK(hfn_os_get_process_program((uint32_t)getpid(), self, sizeof self));
    CHECK_STR(path, self);
    kill((pid_t)s.wanted[1], SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(!hfn_os_get_process_facts(s.wanted[0], &other));
    CHECK(!hfn_os_get_process_program(s.wanted[0], path, sizeof path));
}

static void spin(long rounds)
{
    for (volatile long i = 0; i < rounds; i++) {
    }
}

static void ended_process_has_its_own_time_and_that_of_its_children(void)
{
    uint64_t own_ns, children_ns;
    siginfo_t info;
    pid_t child = fork();

    if (child == 0) {
        pid_t inner = fork();
        spin(inner == 0 ? 200000000 : 20000000);
        if (inner != 0) {
            waitpid(inner, NULL, 0);
        }
        _exit(0);
    }
    CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    CHECK(hfn_os_get_ended_cpu_ns((uint32_t)child, &own_ns, &children_ns));
    CHECK(own_ns > 0 && children_ns > own_ns);
    waitpid(child, NULL, 0);
    CHECK(!hfn_os_get_ended_cpu_ns((uint32_t)child, &own_ns, &children_ns));
}

static const check_test tests[] = {
    CHECK_TEST(children_of_children_are_found),
    CHECK_TEST(ended_process_has_its_own_time_and_that_of_its_children),
};

CHECK_MAIN(tests)
