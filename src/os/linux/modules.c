/* SPDX-License-Identifier: MIT */
/* The modules of this process by the loader's list (r_debug), which debuggers read too.
 * dl_iterate_phdr is not used: it takes the loader's lock, and the agent interposes it.  Memory
 * that is known only from the list is read by process_vm_readv, which fails where a load would
 * fault. */
#include "os/os.h"

#include "os/linux/raw.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_PROGRAM_HEADERS = 256, MAX_MODULES = 1 << 16, MAX_PAGES_BACK = 1 << 16 };

extern struct r_debug _r_debug __attribute__((weak));

/* sure: the memory is known to be mapped, so a load may replace a system call that a sandbox
 * forbids. */
static bool read_memory(uint64_t address, void *out, size_t byte_count, bool sure)
{
    struct iovec local = { out, byte_count };
    struct iovec remote = { (void *)(uintptr_t)address, byte_count };
    long got =
        hfn_raw_syscall6(SYS_process_vm_readv, (uint64_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0),
                         hfn_raw_pointer(&local), 1, hfn_raw_pointer(&remote), 1, 0);

    if ((got == -EPERM || got == -ENOSYS) && sure) {
        memcpy(out, (const void *)(uintptr_t)address, byte_count);
        return true;
    }
    return got == (long)byte_count;
}

/* ---- The loader's list. */

static const ElfW(Phdr) * main_headers(size_t *count)
{
    *count = getauxval(AT_PHNUM);
    return (const ElfW(Phdr) *)(uintptr_t)getauxval(AT_PHDR);
}

/* Returns the main program's bias: the address of its program headers minus their link address. */
static uint64_t main_bias(void)
{
    size_t count;
    const ElfW(Phdr) *headers = main_headers(&count);

    for (size_t i = 0; headers && i < count; i++) {
        if (headers[i].p_type == PT_PHDR) {
            return hfn_raw_pointer(headers) - headers[i].p_vaddr;
        }
    }
    return 0;
}

static const struct r_debug *find_debug(void)
{
    size_t count;
    const ElfW(Phdr) *headers = main_headers(&count);

    for (size_t i = 0; headers && i < count; i++) {
        const ElfW(Dyn) * entry;
        if (headers[i].p_type != PT_DYNAMIC) {
            continue;
        }
        entry = (const ElfW(Dyn) *)(uintptr_t)(main_bias() + headers[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0) {
                return (const struct r_debug *)(uintptr_t)entry->d_un.d_ptr;
            }
        }
    }
    return &_r_debug; /* weak: NULL in a static program */
}

uint64_t hfn_os_get_module_list_hook(void)
{
    const struct r_debug *debug = find_debug();
    return debug ? debug->r_brk : 0;
}

bool hfn_os_module_list_is_complete(void)
{
    const struct r_debug *debug = find_debug();
    return !debug || debug->r_state == RT_CONSISTENT;
}

/* ---- One module. */

/* The range of the PT_LOAD segments, and the link address of the dynamic section. */
typedef struct extent {
    uint64_t begin, end, dynamic;
} extent;

static bool measure_segments(const ElfW(Phdr) * headers, size_t count, extent *out)
{
    uint64_t page = hfn_os_page_bytes();
    extent found = { UINT64_MAX, 0, 0 };

    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_DYNAMIC) {
            found.dynamic = headers[i].p_vaddr;
        }
        if (headers[i].p_type != PT_LOAD) {
            continue;
        }
        if (headers[i].p_vaddr < found.begin) {
            found.begin = headers[i].p_vaddr;
        }
        if (headers[i].p_vaddr + headers[i].p_memsz > found.end) {
            found.end = headers[i].p_vaddr + headers[i].p_memsz;
        }
    }
    if (found.end == 0) {
        return false;
    }
    found.begin &= ~(page - 1);
    found.end = (found.end + page - 1) & ~(page - 1);
    *out = found;
    return true;
}

/* Read the program headers of the module whose ELF header is at address; false if there is no ELF
 * header. */
static bool read_headers(uint64_t address, bool sure, ElfW(Phdr) * headers, size_t *count)
{
    ElfW(Ehdr) header;

    if (!read_memory(address, &header, sizeof header, sure) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof headers[0] ||
        header.e_phnum > MAX_PROGRAM_HEADERS ||
        !read_memory(address + header.e_phoff, headers, header.e_phnum * sizeof headers[0], sure)) {
        return false;
    }
    *count = header.e_phnum;
    return true;
}

static bool measure_at(uint64_t address, bool sure, extent *out)
{
    ElfW(Phdr) headers[MAX_PROGRAM_HEADERS];
    size_t count;

    return read_headers(address, sure, headers, &count) && measure_segments(headers, count, out);
}

bool hfn_os_find_unwind(uint64_t base, hfn_os_unwind *out)
{
    ElfW(Phdr) headers[MAX_PROGRAM_HEADERS];
    size_t count;
    extent size;

    *out = (hfn_os_unwind){ .header = 0 };
    if (!read_headers(base, false, headers, &count) || !measure_segments(headers, count, &size)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_GNU_EH_FRAME) {
            out->header = base - size.begin + headers[i].p_vaddr;
        }
    }
    for (size_t i = 0; i < count && out->header != 0; i++) {
        uint64_t begin = base - size.begin + headers[i].p_vaddr;
        if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_R) || out->header < begin ||
            out->header - begin >= headers[i].p_filesz) {
            continue;
        }
        out->begin = begin;
        out->end = begin + headers[i].p_filesz;
        return true;
    }
    return false;
}

/* A library's ELF header is at its bias, unless its link address is not 0; then search backwards
 * from its dynamic section. */
static bool measure_library(const struct link_map *map, extent *out)
{
    uint64_t page = hfn_os_page_bytes(), dynamic = hfn_raw_pointer(map->l_ld);
    uint64_t at = dynamic & ~(page - 1);

    if (measure_at(map->l_addr, map->l_addr != 0, out) && map->l_addr + out->dynamic == dynamic) {
        return true;
    }
    for (int i = 0; i < MAX_PAGES_BACK && at >= page; i++, at -= page) {
        if (measure_at(at, false, out) && map->l_addr + out->dynamic == dynamic) {
            return true;
        }
    }
    return false;
}

static bool visit_module(const char *path, uint64_t bias, const extent *size, bool is_main,
                         hfn_os_module_fn visit, void *user)
{
    hfn_os_module module = { path, bias, bias + size->begin, bias + size->end, is_main };

    return visit(user, &module);
}

static bool visit_main(const char *name, hfn_os_module_fn visit, void *user)
{
    char path[4096];
    size_t count;
    const ElfW(Phdr) *headers = main_headers(&count);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    extent size;

    path[length > 0 ? length : 0] = 0;
    if (!headers || !measure_segments(headers, count, &size)) {
        return true;
    }
    return visit_module(name && *name ? name : path, main_bias(), &size, true, visit, user);
}

void hfn_os_each_module(hfn_os_module_fn visit, void *user)
{
    const struct r_debug *debug = find_debug();
    const struct link_map *map = debug ? debug->r_map : NULL;
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);

    if (!visit_main(map ? map->l_name : NULL, visit, user) || !map) {
        return;
    }
    map = map->l_next;
    for (int i = 0; map && i < MAX_MODULES; i++, map = map->l_next) {
        extent size;
        if (!measure_library(map, &size) || map->l_addr + size.begin == vdso) {
            continue; /* the vDSO has no file */
        }
        if (!visit_module(map->l_name, map->l_addr, &size, false, visit, user)) {
            return;
        }
    }
}

/* A hook on the function of hfn_os_get_module_list_hook serves instead. */
bool hfn_os_watch_modules(void (*changed)(void *user), void *user)
{
    (void)changed;
    (void)user;
    return false;
}

void hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base)
{
    (void)functions;
    (void)count;
    (void)base;
}

bool hfn_os_loads_pe(void)
{
    return false;
}
