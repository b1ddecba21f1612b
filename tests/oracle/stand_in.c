/* SPDX-License-Identifier: MIT */
/*
 * A library that replaces the agent in the reference runs, in which gdb counts calls (-DLAYOUT=n).
 * The dynamic linker's work depends on the number of libraries, their exports and their
 * thread-local variables, so this library has the same exports and thread-local variables as the
 * agent; the exported calls are forwarded.  hotfn_oracle_start is called when the agent's
 * constructor would run.  Each layout has a different number of mappings and holes, so that counts
 * that depend on /proc/self/maps or on free addresses differ between layouts and can be excluded.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096ul
#define MAPPINGS (20ul * LAYOUT)
#define HOLE_BYTES (LAYOUT * (9ul << 20))

__attribute__((used)) static __thread void *volatile row;
char *hotfn_oracle_argv0;

typedef int (*visit_fn)(struct dl_phdr_info *info, size_t size, void *data);

static int (*next_find_object)(void *pc, struct dl_find_object *result);
static int (*next_iterate)(visit_fn visit, void *data);

int _dl_find_object(void *pc, struct dl_find_object *result)
{
    return next_find_object(pc, result);
}

int dl_iterate_phdr(visit_fn visit, void *data)
{
    return next_iterate(visit, data);
}

__attribute__((noinline)) void hotfn_oracle_start(void)
{
    __asm__ volatile("");
}

/* Remove this library, the first of two, from LD_PRELOAD, and remove HOTFN_RUN, like the agent. */
static void restore_environment(char **names)
{
    char **kept = names;
    for (; *names; names++) {
        char *value = strncmp(*names, "LD_PRELOAD=", 11) == 0 ? *names + 11 : NULL;
        char *rest = value ? strchr(value, ':') : NULL;
        if (rest) {
            memmove(value, rest + 1, strlen(rest));
        }
        if (strncmp(*names, "HOTFN_RUN=", 10) != 0) {
            *kept++ = *names;
        }
    }
    *kept = NULL;
}

static void require_success(void *at, int failed)
{
    if (at == MAP_FAILED || failed) {
        abort();
    }
}

static void change_layout(void)
{
    char *pages = mmap(NULL, 2 * MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block = mmap(NULL, 2 * HOLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (unsigned long i = 0; i < MAPPINGS; i++) {
        require_success(pages, mprotect(pages + 2 * i * PAGE, PAGE, PROT_NONE));
    }
    require_success(block, munmap(block + HOLE_BYTES / 2, HOLE_BYTES));
}

__attribute__((constructor)) static void start(int argc, char **argv, char **names)
{
    (void)argc;
    hotfn_oracle_argv0 = argv[0];
    row = NULL;
    restore_environment(names);
    next_find_object = dlsym(RTLD_NEXT, "_dl_find_object");
    next_iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (LAYOUT > 0) {
        change_layout();
    }
    hotfn_oracle_start();
}
