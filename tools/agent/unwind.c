/* SPDX-License-Identifier: MIT */
/* Answers for unwinders.  libgcc (shared or static) asks _dl_find_object or dl_iterate_phdr of the
 * dynamic linker where a PC's unwind tables are; preloaded, we are asked first, answer for generated
 * code, and pass everything else on. */
#include "agent.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The next definitions behind us.  dlsym is safe here: these are called by unwinders and by users of
 * dl_iterate_phdr, never from our constructor. */
static void *next_definition(const char *name, void **kept) {
    void *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        __atomic_store_n(kept, found, __ATOMIC_RELEASE);
    }
    return found;
}

/* glibc >= 2.35, <dlfcn.h>: int _dl_find_object(void *pc, struct dl_find_object *result). */
EXPORT int _dl_find_object(void *pc, struct dl_find_object *result) {
    static void *next;
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    const hotfn_hooks *hooks = agent_hooks();
    if (hooks && hotfn_hooks_find_region(hooks, (uint64_t)(uintptr_t)pc, &region)) {
        memset(result, 0, sizeof *result);
        result->dlfo_map_start = (void *)(uintptr_t)region.begin;
        result->dlfo_map_end = (void *)(uintptr_t)region.end;
        result->dlfo_eh_frame = (void *)(uintptr_t)region.eh_frame_hdr;
        return 0;
    }
    int (*real)(void *, struct dl_find_object *) =
        (int (*)(void *, struct dl_find_object *))next_definition("_dl_find_object", &next);
    return real ? real(pc, result) : -1;
}

/* One made-up object a region: two program headers, code and its .eh_frame_hdr. */
static int visit_region(const hotfn_stub_region *region,
                        int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    ElfW(Phdr) headers[2];
    struct dl_phdr_info info;
    memset(headers, 0, sizeof headers);
    memset(&info, 0, sizeof info);
    headers[0].p_type = PT_LOAD;
    headers[0].p_flags = PF_R | PF_X;
    headers[0].p_vaddr = region->begin;
    headers[0].p_memsz = region->end - region->begin;
    headers[1].p_type = PT_GNU_EH_FRAME;
    headers[1].p_flags = PF_R;
    headers[1].p_vaddr = (ElfW(Addr))(uintptr_t)region->eh_frame_hdr;
    headers[1].p_memsz = 8;
    info.dlpi_name = "[hotfn stubs]";
    info.dlpi_phdr = headers;
    info.dlpi_phnum = 2;
    return visit(&info, sizeof info, data);
}

EXPORT int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    static void *next;
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *) =
        (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))next_definition(
            "dl_iterate_phdr", &next);
    int answer = real ? real(visit, data) : 0;
    const hotfn_hooks *hooks = agent_hooks();
    for (uint32_t i = 0; hooks && answer == 0 && i < hotfn_hooks_region_count(hooks); i++) {
        hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
        if (hotfn_hooks_get_region(hooks, i, &region) == HOTFN_OK) {
            answer = visit_region(&region, visit, data);
        }
    }
    return answer;
}
