/* SPDX-License-Identifier: MIT */
/* The checks of `hotfn doctor` that try what counting needs: change text, run new code, seal shared
 * memory, and at last hook this very program in a child.  Nothing outside of us is touched. */
#include "doctor.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Memory: code that is written and run. */

/* A private copy of a page of our own file, as text is mapped; NULL on failure. */
static void *map_text_copy(size_t bytes)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

    if (fd >= 0)
        close(fd);
    return page == MAP_FAILED ? NULL : page;
}

static bool write_by_protection(unsigned char *page, size_t bytes)
{
    if (mprotect(page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return false;
    page[0] ^= 0xff;
    return mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0;
}

static bool write_by_proc_mem(unsigned char *page)
{
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    unsigned char changed = page[0] ^ 0xff;
    bool good = fd >= 0 && pwrite(fd, &changed, 1, (off_t)(uintptr_t)page) == 1 &&
                *(volatile unsigned char *)page == changed;

    if (fd >= 0)
        close(fd);
    return good;
}

void doctor_try_text(doctor_finding *f)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *page = map_text_copy(bytes);

    if (!page) {
        doctor_say(f, "a file cannot be mapped executable (%s)", strerror(errno));
        doctor_worsen(f, DOCTOR_PROBLEM, "run from a file system that is not mounted noexec");
        return;
    }
    bool by_mem = write_by_proc_mem(page);
    bool by_protection = write_by_protection(page, bytes);
    munmap(page, bytes);
    doctor_say(f, "writable while it stays executable: by mprotect %s, by /proc/self/mem %s",
               by_protection ? "yes" : "no", by_mem ? "yes" : "no");
    if (!by_mem && !by_protection)
        doctor_worsen(f, DOCTOR_PROBLEM,
                      "W^X forbids both ways: allow execmod (SELinux), or one of them, "
                      "to the programs that shall be counted");
}

void doctor_try_new_code(doctor_finding *f)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool good = page != MAP_FAILED && mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0;

    doctor_say(f, "memory that was written %s be made executable", good ? "can" : "cannot");
    if (!good)
        doctor_worsen(f, DOCTOR_PROBLEM,
                      "allow execmem (SELinux) to the programs that shall be counted");
}

void doctor_try_shared_memory(doctor_finding *f)
{
    int fd = memfd_create("hotfn-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool sealed = fd >= 0 && ftruncate(fd, 4096) == 0 &&
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0 && ftruncate(fd, 0) != 0;

    doctor_say(f, "memfd %s, seals %s", fd >= 0 ? "yes" : strerror(errno), sealed ? "yes" : "no");
    if (!sealed)
        doctor_worsen(f, DOCTOR_WARNING,
                      "use `hotfn run --durable`: the record is then kept in its file");
    if (fd >= 0)
        close(fd);
}

void doctor_try_membarrier(doctor_finding *f)
{
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool good = known >= 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);

    doctor_say(f, "core serialising membarrier %s", good ? "yes" : "no");
    if (!good)
        doctor_worsen(f, DOCTOR_WARNING,
                      "hooks set while threads run are then synchronised by stopping them");
}

/* ---- The proof: hook this very program, in a child, and call a hooked function. */

static const char proof_function[] = "hotfn_version";

static uint64_t calls_in(const hotfn_record *record)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    for (uint32_t i = 0; hotfn_record_get_function(record, i, &f) == HOTFN_OK; i++)
        if (strcmp(f.name, proof_function) == 0)
            return f.calls;
    return 0;
}

static int prove(void)
{
    const char *names[] = { proof_function };
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session;
    hotfn_record *record;
    const char *(*volatile call)(void) = hotfn_version;

    selection.include = names;
    selection.include_count = 1;
    options.selection = &selection;
    options.flags = HOTFN_SESSION_SINGLE_THREADED;
    if (hotfn_session_create(&session, &options, NULL, &err) != HOTFN_OK ||
        hotfn_session_start(session, NULL, &err) != HOTFN_OK)
        return hotfn_tool_fail("doctor", &err);
    for (int i = 0; i < 100; i++)
        call();
    if (hotfn_session_stop(session, &err) != HOTFN_OK ||
        hotfn_session_snapshot(session, &record, &err) != HOTFN_OK)
        return hotfn_tool_fail("doctor", &err);
    return calls_in(record) == 100 ? TOOL_OK : TOOL_FAILED;
}

void doctor_try_proof(doctor_finding *f)
{
    int status = -1;

    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(prove());
    if (child < 0 || waitpid(child, &status, 0) != child) {
        doctor_say(f, "no child process could be started (%s)", strerror(errno));
        doctor_worsen(f, DOCTOR_PROBLEM, "raise `ulimit -u`");
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        doctor_say(f, "a function of this program was hooked and 100 calls of it counted");
        return;
    }
    doctor_say(f, "a function of this program could not be hooked and counted (status %#x)",
               (unsigned)status);
    doctor_worsen(f, DOCTOR_PROBLEM,
                  "see the problems above; if there is none, please report this");
}
