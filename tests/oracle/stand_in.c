/* SPDX-License-Identifier: MIT */
/*
 * Preloaded in the agent's place where gdb counts natively, built with -DLAYOUT=n.  What the dynamic
 * linker does depends on how many libraries there are, what they export and whether they have
 * thread-local variables: this one is like the agent in all that, and passes on what it is asked.
 * hotfn_oracle_start is called when the agent's constructor would be.  Each layout has more mappings
 * and holes between them: who reads /proc/self/maps or cares where memory is free shows itself.
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
char *hotfn_oracle_place;

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

/* LD_PRELOAD as the program would see it without us: we are the first of two.  HOTFN_RUN goes. */
static void leave_environment(char **names)
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

static void take(void *at, int failed)
{
    if (at == MAP_FAILED || failed) {
        abort();
    }
}

static void spoil_layout(void)
{
    char *pages = mmap(NULL, 2 * MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block = mmap(NULL, 2 * HOLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (unsigned long i = 0; i < MAPPINGS; i++) {
        take(pages, mprotect(pages + 2 * i * PAGE, PAGE, PROT_NONE));
    }
    take(block, munmap(block + HOLE_BYTES / 2, HOLE_BYTES));
}

__attribute__((constructor)) static void start(int argc, char **argv, char **names)
{
    (void)argc;
    hotfn_oracle_place = argv[0];
    row = NULL;
    leave_environment(names);
    next_find_object = dlsym(RTLD_NEXT, "_dl_find_object");
    next_iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (LAYOUT > 0) {
        spoil_layout();
    }
    hotfn_oracle_start();
}
