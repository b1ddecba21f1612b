/* SPDX-License-Identifier: MIT */
/* What timed calls need in a process, and counted ones do not: see timing.h. */
#include "launch/attach/timing.h"

#include "base/status.h"
#include "counters/core/core.h"
#include "image/unwinders.h"
#include "launch/attach/replaced.h"
#include "os/core_unwind.h"

enum { MAX_REGIONS = HFN_TIMED_TABLE_BYTES / sizeof(hfn_core_region) };

/* ---- Exceptions. */

typedef struct module_search {
    const hfn_attachment *attachment;
    bool has_functions;
    hotfn_status status;
    hotfn_error *err;
} module_search;

static bool refuse_module(module_search *s, const char *path, const char *why)
{
    s->status = hfn_report_error(s->err, HOTFN_E_UNSUPPORTED, path, HOTFN_NO_OFFSET, "%s", why);
    return false;
}

static bool check_module(void *user, const hfn_remote_module *module)
{
    module_search *s = user;
    hotfn_image *image;
    bool has_own;

    if (!module->is_available ||
        hotfn_image_open(&image, module->path, &s->attachment->env, NULL) != HOTFN_OK) {
        return refuse_module(s, module->path,
                             "the file of this module cannot be read, so it is unknown how its "
                             "exceptions pass timed calls: count its calls");
    }
    has_own = hfn_image_has_own_unwinder(image) || hfn_image_remembers_tables(image);
    s->has_functions |= hfn_image_find_export(image, HFN_ITERATE_PHDR_NAME) != 0;
    hotfn_image_close(image);
    return !has_own || refuse_module(s, module->path,
                                     "this module has an unwinder of its own, so its exceptions "
                                     "cannot pass timed calls: count its calls, or time it with "
                                     "hotfn run");
}

hotfn_status hfn_timed_check_modules(hfn_attachment *a, hotfn_error *err)
{
    module_search s = { a, false, HOTFN_OK, err };

    if (a->uses_gs) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "process %u is linked statically, or uses musl, or is written in "
                                "Go, so what unwinds its stack does not know timed calls: count "
                                "its calls",
                                a->remote.pid);
    }
    hfn_os_remote_each_module(a->remote.pid, check_module, &s);
    if (s.status == HOTFN_OK && !s.has_functions) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "process %u is linked statically, so exceptions cannot pass timed "
                                "calls: count its calls",
                                a->remote.pid);
    }
    return s.status;
}

/* One C library: the core has one place for each original. */
hotfn_status hfn_timed_check_hooks(const hfn_attachment *a, hotfn_error *err)
{
    uint32_t counts[HFN_REPLACED_COUNT] = { 0 };
    bool ok = true;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t n = 0; n <= HFN_REPLACED_ITERATE_PHDR; n++) {
            const hfn_replacement *r = &a->mirrors[i].replaced[n];
            counts[n] += r->address != 0;
            ok = ok && (r->address == 0 || hfn_replaced_is_in_place(&a->mirrors[i], r));
        }
    }
    if (ok && counts[HFN_REPLACED_FIND_OBJECT] <= 1 && counts[HFN_REPLACED_ITERATE_PHDR] == 1 &&
        hotfn_hooks_get_region_count(a->hooks) < MAX_REGIONS) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                            "calls of process %u cannot be timed, since the functions by which "
                            "exceptions find their way cannot be replaced (calls that an earlier "
                            "attach timed have not returned, or another tool changed them): count "
                            "its calls",
                            a->remote.pid);
}

/* ---- The tables. */

static void sort_regions(hfn_core_region *regions, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        hfn_core_region moved = regions[i];
        uint32_t at = i;
        for (; at > 0 && regions[at - 1].begin > moved.begin; at--) {
            regions[at] = regions[at - 1];
        }
        regions[at] = moved;
    }
}

/* Into a->buffer. */
static uint32_t list_regions(const hfn_attachment *a, hfn_core_region *out)
{
    uint32_t count = 0;

    out[count++] = (hfn_core_region){ a->pages.core, a->pages.core + hfn_core.data_at,
                                      a->pages.core + hfn_core.unwind_at };
    for (uint32_t i = 0; i < hotfn_hooks_get_region_count(a->hooks); i++) {
        hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
        const hfn_mirror *m;

        hotfn_hooks_get_region(a->hooks, i, &region);
        m = hfn_mirror_of_local(a, region.begin);
        if (m && region.eh_frame_hdr) {
            out[count++] = (hfn_core_region){ region.begin - m->distance, region.end - m->distance,
                                              hfn_replaced_to_target(m, region.eh_frame_hdr) };
        }
    }
    sort_regions(out, count);
    return count;
}

bool hfn_timed_write_tables(const hfn_attachment *a)
{
    hfn_core_region *regions = (hfn_core_region *)(void *)a->buffer;
    hfn_core_unwind tables = { .regions = a->pages.regions };

    tables.region_count = list_regions(a, regions);
    for (size_t i = 0; i < a->mirror_count; i++) {
        const hfn_mirror *m = &a->mirrors[i];
        const hfn_replacement *find = &m->replaced[HFN_REPLACED_FIND_OBJECT];
        const hfn_replacement *iterate = &m->replaced[HFN_REPLACED_ITERATE_PHDR];

        if (find->address) {
            tables.find_object = hfn_replaced_to_target(m, (const void *)(uintptr_t)find->original);
        }
        if (iterate->address) {
            tables.iterate_phdr =
                hfn_replaced_to_target(m, (const void *)(uintptr_t)iterate->original);
        }
    }
    return hfn_os_remote_write(&a->remote, a->pages.regions, regions,
                               (uint32_t)(tables.region_count * sizeof *regions)) &&
           hfn_os_remote_write(&a->remote, a->pages.core + hfn_core.tables_at, &tables,
                               sizeof tables);
}
