/* SPDX-License-Identifier: MIT */
/* The modules of this process, compared with those that dl_iterate_phdr reports. */
#include "os/os.h"

#include "check.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { MAX_MODULES = 64 };

typedef struct seen {
    hfn_os_module modules[MAX_MODULES];
    char paths[MAX_MODULES][512];
    int count, limit;
} seen;

static bool remember(void *user, const hfn_os_module *module)
{
    seen *s = user;

    s->modules[s->count] = *module;
    snprintf(s->paths[s->count], sizeof s->paths[0], "%s", module->path);
    return ++s->count < s->limit;
}

static seen look(int limit)
{
    seen s = { .count = 0, .limit = limit };

    hfn_os_each_module(remember, &s);
    return s;
}

static const hfn_os_module *find(const seen *s, uint64_t address)
{
    for (int i = 0; i < s->count; i++) {
        if (address >= s->modules[i].base && address < s->modules[i].end) {
            return &s->modules[i];
        }
    }
    return NULL;
}

static int compare_with_loader(struct dl_phdr_info *info, size_t size, void *user)
{
    const seen *s = user;
    const hfn_os_module *module;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uint64_t address = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || info->dlpi_phdr[i].p_memsz == 0 ||
            address == getauxval(AT_SYSINFO_EHDR)) {
            continue;
        }
        module = find(s, address);
        CHECK(module && module->load_bias == info->dlpi_addr &&
              address + info->dlpi_phdr[i].p_memsz <= module->end);
    }
    return 0;
}

static void modules_are_where_the_loader_has_them(void)
{
    seen s = look(MAX_MODULES);

    CHECK(s.count >= 3); /* the program, libc, ld.so */
    dl_iterate_phdr(compare_with_loader, &s);
}

static void the_first_module_is_the_program(void)
{
    seen s = look(MAX_MODULES);
    char path[512] = "";

    CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    CHECK(s.modules[0].is_main);
    CHECK_STR(s.paths[0], path);
    for (int i = 1; i < s.count; i++) {
        CHECK(!s.modules[i].is_main && s.paths[i][0] == '/');
    }
}

static void listing_stops_when_the_visitor_returns_false(void)
{
    CHECK_EQ_I64(look(1).count, 1);
    CHECK_EQ_I64(look(2).count, 2);
}

static void a_library_opened_later_is_seen(void)
{
    int before = look(MAX_MODULES).count;
    void *library = dlopen("libm.so.6", RTLD_NOW);

    CHECK(library != NULL);
    CHECK(look(MAX_MODULES).count >= before);
    CHECK(hfn_os_module_list_is_complete());
    dlclose(library);
}

static void the_loader_breakpoint_is_in_the_loader(void)
{
    seen s = look(MAX_MODULES);
    const hfn_os_module *loader = find(&s, getauxval(AT_BASE));

    CHECK(loader && find(&s, hfn_os_get_module_list_hook()) == loader);
}

static const check_test tests[] = {
    CHECK_TEST(modules_are_where_the_loader_has_them),
    CHECK_TEST(the_first_module_is_the_program),
    CHECK_TEST(listing_stops_when_the_visitor_returns_false),
    CHECK_TEST(a_library_opened_later_is_seen),
    CHECK_TEST(the_loader_breakpoint_is_in_the_loader),
};
CHECK_MAIN(tests)
