/* SPDX-License-Identifier: MIT */
/* The checks of `hotfn doctor` that try an operation of counting: change program text, make written
 * memory executable, seal shared memory, and finally count the calls of this same program. */
#include "cli/commands.h"
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Memory that is written and then executed. */

/* Map the first bytes of this program's file like text, private and executable; NULL on failure. */
static void *map_text_copy(size_t bytes)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

    if (fd >= 0) {
        close(fd);
    }
    return page == MAP_FAILED ? NULL : page;
}

static bool write_by_protection(unsigned char *page, size_t bytes)
{
    if (mprotect(page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return false;
    }
    page[0] ^= 0xff;
    return mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0;
}

static bool write_by_proc_mem(unsigned char *page)
{
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    unsigned char changed = page[0] ^ 0xff;
    bool good = fd >= 0 && pwrite(fd, &changed, 1, (off_t)(uintptr_t)page) == 1 &&
                *(volatile unsigned char *)page == changed;

    if (fd >= 0) {
        close(fd);
    }
    return good;
}

void doctor_try_text(doctor_finding *f)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *page = map_text_copy(bytes);

    if (!page) {
        doctor_add_text(f, "a file cannot be mapped executable (%s)", strerror(errno));
        doctor_raise_level(f, DOCTOR_PROBLEM, "run from a file system that is not mounted noexec");
        return;
    }
    bool by_mem = write_by_proc_mem(page);
    bool by_protection = write_by_protection(page, bytes);
    munmap(page, bytes);
    doctor_add_text(f, "writable while it stays executable: by mprotect %s, by /proc/self/mem %s",
                    by_protection ? "yes" : "no", by_mem ? "yes" : "no");
    if (!by_mem && !by_protection) {
        doctor_raise_level(
            f, DOCTOR_PROBLEM,
            "the system forbids both (W^X): allow one of them (in SELinux: execmod) for "
            "the programs to be counted");
    }
}

void doctor_try_new_code(doctor_finding *f)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool good = page != MAP_FAILED && mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0;

    doctor_add_text(f, "memory that was written %s be made executable", good ? "can" : "cannot");
    if (!good) {
        doctor_raise_level(f, DOCTOR_PROBLEM,
                           "allow execmem (SELinux) for the programs to be counted");
    }
}

void doctor_try_shared_memory(doctor_finding *f)
{
    int fd = memfd_create("hotfn-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool sealed = fd >= 0 && ftruncate(fd, 4096) == 0 &&
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0 && ftruncate(fd, 0) != 0;

    doctor_add_text(f, "memfd %s, seals %s", fd >= 0 ? "yes" : strerror(errno),
                    sealed ? "yes" : "no");
    if (!sealed) {
        doctor_raise_level(f, DOCTOR_WARNING,
                           "use `hotfn run --durable`, which keeps the live record in its file");
    }
    if (fd >= 0) {
        close(fd);
    }
}

void doctor_try_membarrier(doctor_finding *f)
{
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool good = known >= 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);

    doctor_add_text(f, "core serialising membarrier %s", good ? "yes" : "no");
    if (!good) {
        doctor_raise_level(f, DOCTOR_WARNING,
                           "no action needed: hotfn stops the other threads while it sets hooks");
    }
}

/* ---- 32-bit programs: some kernels are built without support for them, and some sandboxes refuse
 * them. */

/* The smallest ELF program for i386, whose code is _exit(0).  ELF header and one PT_LOAD program
 * header that maps the file at 0x08048000 (System V gABI, ch. 4 and 5), then
 * mov eax, 1; xor ebx, ebx; int 0x80. */
static const unsigned char
    exit_program_i386[] = {
        0x7f, 'E',  'L',  'F',  1,    1,    1,    0,    0,    0,    0,    0,    0,
        0,    0,    0, /* ident */
        2,    0,    3,    0,    1,    0,    0,    0,    0x54, 0x80, 0x04, 0x08, 52,
        0,    0,    0, /* header */
        0,    0,    0,    0,    0,    0,    0,    0,    52,   0,    32,   0,    1,
        0,    0,    0,    0,    0,    0,    0,    1,    0,    0,    0,    0,    0,
        0,    0,    0x00, 0x80, 0x04, 0x08, 0x00, 0x80, 0x04, 0x08, 0x5d, 0,    0,
        0,    0x5d, 0,    0,    0,    5,    0,    0,    0, /* segment */
        0,    0x10, 0,    0,    0xb8, 1,    0,    0,    0,    0x31, 0xdb, 0xcd, 0x80,
    };

static bool execute_program(const unsigned char *bytes, size_t byte_count)
{
    int fd = memfd_create("hotfn-doctor", MFD_CLOEXEC);
    char *const arguments[] = { "exit", NULL };
    int status = -1;
    pid_t child;

    if (fd < 0 || write(fd, bytes, byte_count) != (ssize_t)byte_count) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    child = fork();
    if (child == 0) {
        fexecve(fd, arguments, environ);
        _exit(127);
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child;
    close(fd);
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void doctor_try_exec32(doctor_finding *f)
{
    if (HOTFN_OWN_MACHINE != HOTFN_MACHINE_X86_64) {
        doctor_add_text(f, "this build only counts programs of its own word size");
        return;
    }
    bool executed = execute_program(exit_program_i386, sizeof exit_program_i386);
    doctor_add_text(f, "32-bit x86 programs are %s here", executed ? "executed" : "not executed");
    if (!executed) {
        doctor_add_text(f, ": only 64-bit programs can be counted");
    }
}

/* ---- The proof that counting works: `hotfn run` of `hotfn --version`, which calls
 * hotfn_get_version. */

static void run_this_program(const char *record)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    self[n > 0 ? n : 0] = 0;
    dup2(nothing, STDOUT_FILENO);
    execl(self, "hotfn", "run", "-q", "--no-cache", "-o", record, "--", self, "--version",
          (char *)NULL);
    _exit(127);
}

void doctor_try_proof(doctor_finding *f)
{
    char folder[] = "/tmp/hotfn-doctor-XXXXXX", record[64];
    int status = -1;

    if (!mkdtemp(folder)) {
        doctor_add_text(f, "%s: %s", folder, strerror(errno));
        doctor_raise_level(f, DOCTOR_WARNING, "make /tmp writable, so that counting can be tried");
        return;
    }
    snprintf(record, sizeof record, "%s/proof.hfr", folder);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        run_this_program(record);
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    uint64_t calls = ended ? doctor_count_proof_calls(record) : 0;
    unlink(record);
    rmdir(folder);
    if (calls > 0) {
        doctor_add_text(f, "`hotfn run` of hotfn itself counted calls");
        return;
    }
    if (ended) {
        doctor_add_text(f, "`hotfn run` of hotfn itself counted no calls");
    } else if (WIFSIGNALED(status)) {
        doctor_add_text(f, "`hotfn run` of hotfn itself was killed by signal %d", WTERMSIG(status));
    } else {
        doctor_add_text(f, "`hotfn run` of hotfn itself failed with status %d",
                        WEXITSTATUS(status));
    }
    doctor_raise_level(f, DOCTOR_PROBLEM,
                       "solve the problems above; if there are none, please report this as a bug");
}
