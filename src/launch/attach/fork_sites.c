/* SPDX-License-Identifier: MIT */
/* A child of fork() inherits the pointer to its parent's row, which is in shared memory.  So the
 * system call of fork() is redirected to a stub that zeroes the thread's word in the child; the
 * child's first counted call then begins a new row.  Children of vfork and posix_spawn run while
 * their parent waits, and count in its row. */
#include "arch/stub.h"
#include "launch/attach/attachment.h"
#include "os/os.h"

#include <string.h>

static uint8_t *get_local_bytes(const hfn_mirror *m, uint64_t address)
{
    return (uint8_t *)(uintptr_t)(address + m->distance);
}

/* The next site at or after *address in code range `range`; false if there is none. */
static bool find_site(const hfn_mirror *m, uint32_t range, uint64_t *address)
{
    uint64_t end = m->code[range].end;

    for (; *address + HFN_FORK_SITE_BYTES <= end; ++*address) {
        if (hfn_is_fork_site(m->shown[range] + (*address - m->code[range].begin))) {
            return true;
        }
    }
    return false;
}

typedef bool (*site_fn)(hfn_attachment *a, hfn_mirror *m, uint64_t address);

static bool each_site(hfn_attachment *a, site_fn visit)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t c = 0; c < a->mirrors[i].code_count; c++) {
            uint64_t at = a->mirrors[i].code[c].begin;
            for (; find_site(&a->mirrors[i], c, &at); at += HFN_FORK_SITE_BYTES) {
                if (!visit(a, &a->mirrors[i], at)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* ---- Finding fork sites in modules that have no mirror yet. */

static bool has_site(hfn_attachment *a, const hfn_remote_module *module)
{
    uint8_t *bytes = a->buffer;

    for (uint32_t i = 0; i < module->code_count; i++) {
        uint64_t end = module->code[i].end;
        for (uint64_t at = module->code[i].begin; at < end;
             at += HFN_ATTACH_BUFFER_BYTES - HFN_FORK_SITE_BYTES) {
            uint64_t count =
                end - at < HFN_ATTACH_BUFFER_BYTES ? end - at : HFN_ATTACH_BUFFER_BYTES;
            if (!hfn_os_remote_read(&a->remote, at, bytes, (uint32_t)count)) {
                break;
            }
            for (uint64_t b = 0; b + HFN_FORK_SITE_BYTES <= count; b++) {
                if (hfn_is_fork_site(bytes + b)) {
                    return true;
                }
            }
        }
    }
    return false;
}

enum { START_TRIES = 25, START_NS = 20000000 };

static bool find_any_site(void *user, const hfn_remote_module *module)
{
    hfn_attachment *a = user;

    a->has_fork_site = has_site(a, module);
    return !a->has_fork_site;
}

bool hfn_fork_sites_wait(hfn_attachment *a)
{
    for (int i = 0; i < START_TRIES && !a->has_fork_site; i++) {
        if (i > 0) {
            hfn_os_sleep(START_NS);
        }
        hfn_os_remote_each_module(a->remote.pid, find_any_site, a);
    }
    return a->has_fork_site;
}

typedef struct module_search {
    hfn_attachment *attachment;
    bool is_found, failed;
} module_search;

static bool search_module(void *user, const hfn_remote_module *module)
{
    module_search *s = user;

    if (has_site(s->attachment, module)) {
        s->is_found = true;
        s->failed = !hfn_mirror_need(s->attachment, module);
    }
    return !s->failed;
}

bool hfn_fork_sites_find(hfn_attachment *a)
{
    module_search s = { a, false, false };

    return hfn_os_remote_each_module(a->remote.pid, search_module, &s) && s.is_found && !s.failed;
}

/* ---- Patching the mirror. */

static bool patch_site(hfn_attachment *a, hfn_mirror *m, uint64_t address)
{
    uint8_t *site = get_local_bytes(m, address);
    uint64_t stub;

    if (!hfn_is_fork_site(site)) {
        return true; /* a hook begins here, so the bytes were not fork's system call */
    }
    stub = a->space.map_near(a, m->base + m->distance, m->end + m->distance, HFN_FORK_STUB_BYTES,
                             a->hooks->options.near_range_bytes);
    if (stub == 0) {
        return false;
    }
    hfn_emit_fork_stub((uint8_t *)(uintptr_t)stub, stub, address + m->distance,
                       (int32_t)a->word_at);
    hfn_emit_fork_patch(site, address + m->distance, stub);
    return true;
}

bool hfn_fork_sites_patch(hfn_attachment *a)
{
    return each_site(a, patch_site);
}
