/* SPDX-License-Identifier: MIT */
/*
 * The rows of programs without glibc's thread descriptors (static programs, musl, Go).  The gs base
 * of a thread, which such programs do not use, is the address of a word less a displacement.  The
 * word holds the address of the thread's row.
 *
 *   gs base 0                           the displacement itself is the address of a word that is 0
 *   gs base = &words[n] - displacement  the thread counts in row n
 *
 * Existing threads get rows while they are stopped (core_state.c).  A child inherits its parent's
 * base, so each system call that may begin a thread or process is led through a stub that sets the
 * base of the child to 0 (arch/call_site.h); its first counted call then takes a row.  That these
 * programs do not use gs is checked: no thread has a base, and no module has an instruction that
 * uses gs.
 */
#include "launch/attach/call_sites.h"

#include "base/status.h"
#include "os/os.h"

#include <hotfn/lowlevel/image.h>

#include <string.h>

enum { SYSCALL_BYTES = 2, CLONE = 56, FORK = 57, CLONE3 = 435 };

/* ---- Which programs. */

static bool find_section(const hotfn_image *image, const char *name, hotfn_section *out)
{
    for (uint32_t i = 0; hotfn_image_get_section(image, i, out) == HOTFN_OK; i++) {
        if (strcmp(out->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The dynamic linker that the program names is musl's (System V gABI, ch. 5, "Program
 * Interpreter"). */
static bool uses_musl(const hotfn_image *image)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    const uint8_t *path = NULL;
    uint64_t count = 0;

    if (find_section(image, ".interp", &section)) {
        path = hotfn_image_get_bytes(image, section.rva, &count);
    }
    count = count < section.byte_count ? count : section.byte_count;
    return path && hfn_find_bytes(path, count, "/ld-musl-", 9) != NULL;
}

static bool search_kind(void *user, const hfn_remote_module *module)
{
    hfn_attachment *a = user;
    hotfn_section section = HOTFN_SECTION_INIT;
    hotfn_image *image;

    if (!module->is_main || !module->is_available ||
        hotfn_image_open(&image, module->path, &a->env, NULL) != HOTFN_OK) {
        return true;
    }
    a->remote.has_small_stacks = find_section(image, ".gopclntab", &section) ||
                                 find_section(image, ".data.rel.ro.gopclntab", &section);
    a->uses_gs = a->remote.has_small_stacks || uses_musl(image);
    hotfn_image_close(image);
    return false;
}

bool hfn_call_sites_are_needed(hfn_attachment *a)
{
    a->uses_gs = false;
    hfn_os_remote_each_module(a->remote.pid, search_kind, a);
    a->uses_gs = a->uses_gs || hfn_os_remote_is_static(a->remote.pid);
    return a->uses_gs;
}

/* ---- Searching the code. */

typedef struct site_search {
    hfn_attachment *attachment;
    const hfn_remote_module *module;
    uint64_t begin; /* of the code that is searched */
    void *room;
    hotfn_error *err;
    hotfn_status status;
} site_search;

static bool refuse_code(site_search *s, uint64_t address, const char *why)
{
    s->status = hfn_report_error(s->err, HOTFN_E_UNSUPPORTED, s->module->path,
                                 address - s->module->base, "%s", why);
    return false;
}

static bool add_site(void *user, const hfn_child_call *found)
{
    site_search *s = user;
    hfn_attachment *a = s->attachment;

    if (found->begin == found->end) {
        return refuse_code(s, s->begin + found->call,
                           "no jump can be placed at a system call that may begin a thread, so new "
                           "threads would have no counts of their own");
    }
    if (!hfn_grow_array(&a->env, (void **)&a->sites, &a->site_capacity, a->site_count + 1,
                        sizeof *a->sites)) {
        s->status = hfn_report_no_memory(s->err, NULL);
        return false;
    }
    a->sites[a->site_count++] =
        (hfn_attached_site){ .address = s->begin + found->begin,
                             .site = { found->call - found->begin, 0, found->end - found->begin } };
    return true;
}

static void search_bytes(site_search *s, const uint8_t *code, uint64_t bytes)
{
    uint64_t gs = hfn_find_gs_use(code, bytes);

    if (gs != UINT64_MAX) {
        refuse_code(s, s->begin + gs,
                    "its code uses the gs segment, by which hotfn would find counts");
    } else if (!hfn_find_call_sites(code, bytes, s->room, add_site, s) && s->status == HOTFN_OK) {
        refuse_code(s, s->begin, "its code has too many system calls");
    }
}

/* A part of an executable segment. */
static void search_range(site_search *s, uint64_t begin, uint64_t end)
{
    uint64_t bytes = end - begin;
    uint8_t *code = bytes <= UINT32_MAX ? hfn_os_map_pages(bytes) : NULL;

    s->begin = begin;
    if (!code) {
        s->status = hfn_report_no_memory(s->err, NULL);
    } else if (!hfn_os_remote_read(&s->attachment->remote, begin, code, (uint32_t)bytes)) {
        refuse_code(s, begin, "its code cannot be read");
    } else {
        search_bytes(s, code, bytes);
    }
    if (code) {
        hfn_os_unmap((uint64_t)(uintptr_t)code, bytes);
    }
}

/* Search the code sections, since an executable segment contains data, too; if the file has no
 * section headers, search the segments. */
static void search_sections(site_search *s, const hotfn_image *image)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    uint32_t searched = 0;

    for (uint32_t i = 0;
         image && s->status == HOTFN_OK && hotfn_image_get_section(image, i, &section) == HOTFN_OK;
         i++) {
        if ((section.flags & HOTFN_SECTION_EXECUTE) && (section.flags & HOTFN_SECTION_LOADED) &&
            section.byte_count > 0) {
            uint64_t begin = s->module->base + section.rva;
            search_range(s, begin, begin + section.byte_count);
            searched++;
        }
    }
    for (uint32_t i = 0; searched == 0 && s->status == HOTFN_OK && i < s->module->code_count; i++) {
        search_range(s, s->module->code[i].begin, s->module->code[i].end);
    }
}

static bool search_module(void *user, const hfn_remote_module *module)
{
    site_search *s = user;
    hotfn_image *image = NULL;

    s->module = module;
    if (module->is_available) {
        hotfn_image_open(&image, module->path, &s->attachment->env, NULL);
    }
    search_sections(s, image);
    hotfn_image_close(image);
    return s->status == HOTFN_OK;
}

hotfn_status hfn_call_sites_search(hfn_attachment *a, hotfn_error *err)
{
    site_search s = { .attachment = a, .err = err, .status = HOTFN_OK };

    s.room = hfn_os_map_pages(HFN_CALL_ROOM_BYTES);
    if (!s.room) {
        return hfn_report_no_memory(err, NULL);
    }
    a->site_count = 0;
    hfn_os_remote_each_module(a->remote.pid, search_module, &s);
    hfn_os_unmap((uint64_t)(uintptr_t)s.room, HFN_CALL_ROOM_BYTES);
    return s.status;
}

/* ---- The mirrors of modules with sites. */

static bool has_sites(const hfn_attachment *a, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < a->site_count; i++) {
        if (a->sites[i].address >= begin && a->sites[i].address < end) {
            return true;
        }
    }
    return false;
}

static bool mirror_module(void *user, const hfn_remote_module *module)
{
    hfn_attachment *a = user;

    return !has_sites(a, module->base, module->end) || hfn_mirror_need(a, module);
}

bool hfn_call_sites_add_mirrors(hfn_attachment *a)
{
    hfn_os_remote_each_module(a->remote.pid, mirror_module, a);
    for (size_t i = 0; i < a->site_count; i++) {
        if (!hfn_mirror_of(a, a->sites[i].address)) {
            return false;
        }
    }
    return true;
}

/* ---- Patching the mirrors. */

static void patch_site(hfn_attached_site *s, const hfn_mirror *m, uint64_t stub)
{
    uint64_t begin = s->address + m->distance;
    uint8_t *code = (uint8_t *)(uintptr_t)begin;

    hfn_make_call_stub(&s->code, &s->site, code, begin, stub, hfn_os_has_wrgsbase());
    memcpy((void *)(uintptr_t)stub, s->code.bytes, s->code.length);
    hfn_emit_call_patch(code, &s->site, begin, stub);
    s->stub = stub - m->distance;
}

static bool patch_mirror(hfn_attachment *a, const hfn_mirror *m)
{
    uint64_t count = 0, stub;

    for (size_t i = 0; i < a->site_count; i++) {
        count += hfn_mirror_of(a, a->sites[i].address) == m;
    }
    if (count == 0) {
        return true;
    }
    stub = a->space.map_near(a, m->base + m->distance, m->end + m->distance,
                             count * HFN_CALL_STUB_MAX, a->hooks->options.near_range_bytes);
    for (size_t i = 0; stub != 0 && i < a->site_count; i++) {
        if (hfn_mirror_of(a, a->sites[i].address) == m) {
            patch_site(&a->sites[i], m, stub);
            stub += HFN_CALL_STUB_MAX;
        }
    }
    return stub != 0;
}

bool hfn_call_sites_patch(hfn_attachment *a)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        if (!patch_mirror(a, &a->mirrors[i])) {
            return false;
        }
    }
    return true;
}

bool hfn_call_sites_write_journal(hfn_attachment *a)
{
    for (size_t i = 0; i < a->site_count; i++) {
        const hfn_attached_site *s = &a->sites[i];
        for (uint32_t n = 0; n < s->code.step_count; n++) {
            const hfn_call_step *step = &s->code.steps[n];
            hfn_journal_entry entry = { HFN_JOURNAL_ISLAND, 0, s->stub + step->stub_at,
                                        s->address + (uint64_t)step->original_at };
            if (!hfn_journal_add(&a->journal, &entry)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- The threads. */

uint64_t hfn_call_sites_move_pc(const hfn_attachment *a, uint64_t pc)
{
    for (size_t i = 0; i < a->site_count; i++) {
        const hfn_attached_site *s = &a->sites[i];
        uint64_t at = pc - s->address;

        /* The kernel restarts a call at the two bytes before the thread's address, so a thread
         * behind the call is moved even if its address is not patched. */
        if (at == 0 || (at >= s->site.end && at != s->site.call + SYSCALL_BYTES)) {
            continue;
        }
        for (uint32_t n = 0; n < s->code.step_count; n++) {
            if ((uint64_t)s->code.steps[n].original_at == at) {
                return s->stub + s->code.steps[n].stub_at;
            }
        }
    }
    return pc;
}

/* If the stop interrupted a call that may begin a child, restart it in the stub, which recognises
 * the child. */
static bool move_restart(hfn_attachment *a, uint32_t thread, uint64_t pc, uint64_t number)
{
    for (size_t i = 0; i < a->site_count; i++) {
        const hfn_attached_site *s = &a->sites[i];
        if (pc == s->address + s->site.call + SYSCALL_BYTES &&
            (number == CLONE || number == FORK || number == CLONE3)) {
            return hfn_os_remote_set_pc(&a->remote, thread, s->stub + s->code.forking_at);
        }
    }
    return true;
}

bool hfn_call_sites_move_restarts(hfn_attachment *a)
{
    uint64_t pc, number;

    for (uint32_t i = 0; i < a->remote.thread_count; i++) {
        if (hfn_os_remote_get_restart(&a->remote, i, &pc, &number) &&
            !move_restart(a, i, pc, number)) {
            return false;
        }
    }
    return true;
}

hotfn_status hfn_call_sites_check_threads(const hfn_attachment *a, hotfn_error *err)
{
    uint64_t base;

    for (uint32_t i = 0; i < a->remote.thread_count; i++) {
        if (hfn_os_remote_get_gs_base(&a->remote, i, &base) && base != 0) {
            return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                    "thread %u of process %u uses the gs segment, by which hotfn "
                                    "would find its counts",
                                    a->remote.threads[i].tid, a->remote.pid);
        }
    }
    return HOTFN_OK;
}
