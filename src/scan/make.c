/* SPDX-License-Identifier: MIT */
/* Makes a scan block: runs the pipeline from image to plan, then writes all results into one
 * block. */
#include "base/byte_order.h"
#include "base/memory.h"
#include "base/status.h"
#include "image/pe.h"
#include "os/files.h"
#include "os/modules.h"
#include "plan/plan.h"
#include "scan/scan.h"
#include "symbols/symbols.h"

#include <string.h>

typedef struct pipeline {
    const hotfn_env *env;
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
    hotfn_plan *plan;
    hotfn_plan_info plan_info;
    hotfn_image_info image_info;
} pipeline;

static void finish_pipeline(pipeline *p)
{
    hotfn_plan_destroy(p->plan);
    hotfn_verdicts_destroy(p->verdicts);
    hotfn_functions_destroy(p->functions);
    hotfn_symbols_destroy(p->symbols);
    hotfn_image_close(p->image);
}

/* Refuse an image of another system: stubs find a thread's row by the thread-local storage of this
 * system only. */
static hotfn_status refuse_foreign(const hotfn_image *image, const char *path, uint32_t flags,
                                   hotfn_error *err)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image_get_info(image, &info);
    if (flags & HOTFN_SCAN_FOREIGN || (info.format == HOTFN_FORMAT_PE) == hfn_os_loads_pe()) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, path, HOTFN_NO_OFFSET,
                            "%s image: it can be scanned, but not counted on this host",
                            info.format == HOTFN_FORMAT_PE ? "a Windows" : "an ELF");
}

static bool is_pdb(const char *path)
{
    static const char magic[] = "Microsoft C/C++ ";
    char head[sizeof magic - 1];
    uint64_t done = 0;
    hfn_os_file file;

    if (hfn_os_open_file(&file, path, HFN_OS_READ) != 0) {
        return false;
    }
    hfn_os_read_at(file, 0, head, sizeof head, &done);
    hfn_os_close_file(file);
    return done == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

hotfn_status hfn_scan_load_names(hotfn_symbols **out, const char *path, const hotfn_image *image,
                                 const hotfn_symbols_options *options, const hotfn_env *env,
                                 hotfn_error *err)
{
    return is_pdb(path) ? hotfn_symbols_load_pdb(out, path, image, options, env, err)
                        : hotfn_symbols_load_map(out, path, image, options, env, err);
}

static hotfn_status run_pipeline(pipeline *p, const char *path, const hotfn_scan_options *options,
                                 hotfn_error *err)
{
    hotfn_symbols_options so = HOTFN_SYMBOLS_OPTIONS_INIT;
    so.flags = options->flags & ~(HOTFN_SCAN_TIMING | HOTFN_SCAN_NO_TAIL_EXIT | HOTFN_SCAN_FOREIGN |
                                  HOTFN_SCAN_FOUND);
    so.symbol_dirs = options->symbol_dirs;
    so.symbol_dir_count = options->symbol_dir_count;
    hotfn_verdicts_options vo = HOTFN_VERDICTS_OPTIONS_INIT;
    vo.threads = options->threads;
    vo.flags = options->flags & HOTFN_SCAN_TIMING ? HOTFN_VERDICTS_TIMING : 0;
    vo.flags |= options->flags & HOTFN_SCAN_NO_TAIL_EXIT ? HOTFN_VERDICTS_NO_TAIL_EXIT : 0;
    hotfn_status s = hotfn_image_open(&p->image, path, p->env, err);
    if (s == HOTFN_OK) {
        s = refuse_foreign(p->image, path, options->flags, err);
    }
    if (s == HOTFN_OK) {
        s = options->map_path
                ? hfn_scan_load_names(&p->symbols, options->map_path, p->image, &so, p->env, err)
                : hotfn_symbols_load(&p->symbols, p->image, &so, p->env, err);
    }
    if (s == HOTFN_OK) {
        s = hotfn_functions_build(&p->functions, p->image, p->symbols, p->env, err);
    }
    if (s == HOTFN_OK && (options->flags & HOTFN_SCAN_FOUND || hfn_image_is_pe(p->image))) {
        s = hotfn_verdicts_find_functions(p->functions, p->image, options->threads, p->env, err);
    }
    if (s == HOTFN_OK) {
        s = hotfn_verdicts_create(&p->verdicts, p->image, p->functions, &vo, p->env, err);
    }
    if (s == HOTFN_OK) {
        s = hotfn_plan_build(&p->plan, p->image, p->functions, p->verdicts, p->env, err);
    }
    if (s == HOTFN_OK) {
        p->plan_info = (hotfn_plan_info)HOTFN_PLAN_INFO_INIT;
        p->image_info = (hotfn_image_info)HOTFN_IMAGE_INFO_INIT;
        hotfn_plan_get_info(p->plan, &p->plan_info);
        hotfn_image_get_info(p->image, &p->image_info);
    }
    return s;
}

static uint64_t names_bytes(const hotfn_functions *functions)
{
    uint64_t total = 2;
    uint32_t count = hotfn_functions_get_count(functions);
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        for (uint32_t k = 0; (name = hotfn_functions_get_name(functions, i, k)); k++) {
            total += strlen(name) + 1;
        }
        total++;
    }
    return total;
}

static uint8_t state_of(const hotfn_verdict *v)
{
    switch (v->verdict) {
    case HOTFN_VERDICT_HOOKABLE: return HOTFN_STATE_WAITING;
    case HOTFN_VERDICT_FRAGMENT: return HOTFN_STATE_FRAGMENT;
    default: return HOTFN_STATE_REFUSED;
    }
}

static uint32_t found_by(const hotfn_function *f)
{
    return f->flags & HOTFN_FUNCTION_FOUND_CALL      ? HOTFN_FOUND_BY_CALL
           : f->flags & HOTFN_FUNCTION_FOUND_POINTER ? HOTFN_FOUND_BY_POINTER
           : f->flags & HOTFN_FUNCTION_HAS_SYMBOL    ? HOTFN_FOUND_BY_SYMBOL
                                                     : HOTFN_FOUND_BY_UNWIND_DATA;
}

/* Copy all names of function i to names + *at; an empty name ends them. */
static void put_names(const pipeline *p, uint32_t i, uint8_t *names, uint64_t *at)
{
    const char *name;
    for (uint32_t k = 0; (name = hotfn_functions_get_name(p->functions, i, k)); k++) {
        size_t length = strlen(name) + 1;
        memcpy(names + *at, name, length);
        *at += length;
    }
    names[(*at)++] = 0;
}

static void put_functions(const pipeline *p, hfn_scan_header *h, uint8_t *block)
{
    uint64_t names_at = 0;
    for (uint32_t i = 0; i < h->function_count; i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        hotfn_verdict v = HOTFN_VERDICT_INIT;
        hotfn_functions_get(p->functions, i, &f);
        hotfn_verdicts_get(p->verdicts, i, &v);
        uint8_t *e = block + h->functions_offset + (uint64_t)i * HFN_SCAN_FUNCTION_BYTES;
        hfn_write_le64(e, f.rva);
        hfn_write_le64(e + 8, f.byte_count);
        hfn_write_le32(e + 16, (uint32_t)names_at);
        hfn_write_le32(e + 20, f.name_count);
        e[24] = state_of(&v);
        e[25] = (uint8_t)v.strategy;
        e[26] = (uint8_t)v.reason;
        e[27] = (uint8_t)(v.reason >> 8);
        hfn_write_le32(e + 28, e[24] == HOTFN_STATE_FRAGMENT ? v.owner : v.offset);
        hfn_write_le32(e + 32, v.flags | found_by(&f) << 8);
        h->hookable_count += e[24] == HOTFN_STATE_WAITING;
        h->refused_count += e[24] == HOTFN_STATE_REFUSED;
        h->fragment_count += e[24] == HOTFN_STATE_FRAGMENT;
        put_names(p, i, block + h->names_offset, &names_at);
    }
}

static void put_header(const hfn_scan_header *h, uint8_t *block)
{
    hfn_write_le64(block, h->magic);
    hfn_write_le32(block + 8, h->version);
    hfn_write_le32(block + 12, h->machine);
    hfn_write_le32(block + 16, h->image_flags);
    hfn_write_le32(block + 20, h->function_count);
    hfn_write_le32(block + 24, h->id_kind);
    hfn_write_le32(block + 28, h->id_bytes);
    memcpy(block + 32, h->id, sizeof h->id);
    hfn_write_le64(block + 64, h->plan_offset);
    hfn_write_le64(block + 72, h->plan_bytes);
    hfn_write_le64(block + 80, h->functions_offset);
    hfn_write_le64(block + 88, h->names_offset);
    hfn_write_le64(block + 96, h->names_bytes);
    hfn_write_le64(block + 104, h->total_bytes);
    hfn_write_le64(block + 112, h->stamp);
    hfn_write_le32(block + 120, h->hookable_count);
    hfn_write_le32(block + 124, h->refused_count);
    hfn_write_le32(block + 128, h->fragment_count);
    hfn_write_le32(block + 132, h->missing);
    hfn_write_le64(block + 136, h->code_bytes);
    hfn_write_le64(block + 144, h->known_bytes);
}

static hotfn_status write_block(uint8_t **out, uint64_t *bytes, const pipeline *p, uint64_t stamp,
                                const char *path, hotfn_error *err)
{
    hfn_scan_header h = { .magic = HFN_SCAN_MAGIC, .version = HFN_SCAN_VERSION, .stamp = stamp };
    h.machine = p->image_info.machine;
    h.image_flags = p->image_info.flags;
    h.id_kind = p->image_info.id_kind;
    h.id_bytes = p->image_info.id_bytes;
    memcpy(h.id, p->image_info.id, sizeof h.id);
    h.function_count = hotfn_functions_get_count(p->functions);
    hotfn_functions_get_coverage(p->functions, &h.code_bytes, &h.known_bytes);
    h.missing = hfn_symbols_unpack_failed(p->symbols) ? HFN_SCAN_LACKS_UNPACKED : 0;
    h.missing |= hfn_symbols_lack_debug_file(p->symbols) ? HFN_SCAN_LACKS_DEBUG_FILE : 0;
    h.plan_offset = (HFN_SCAN_HEADER_BYTES + 63u) & ~63u;
    h.plan_bytes = p->plan_info.byte_count;
    h.functions_offset = (h.plan_offset + h.plan_bytes + 63u) & ~63ull;
    h.names_offset = h.functions_offset + (uint64_t)h.function_count * HFN_SCAN_FUNCTION_BYTES;
    h.names_bytes = names_bytes(p->functions);
    h.total_bytes = h.names_offset + h.names_bytes;
    if (h.names_bytes > UINT32_MAX) {
        return hfn_report_error(err, HOTFN_E_LIMIT, path, HOTFN_NO_OFFSET,
                                "more than 4 GiB of names");
    }
    uint8_t *block = hfn_allocate_zeroed(p->env, h.total_bytes);
    if (!block) {
        return hfn_report_no_memory(err, path);
    }
    memcpy(block + h.plan_offset, p->plan_info.bytes, h.plan_bytes);
    put_functions(p, &h, block);
    put_header(&h, block);
    *out = block;
    *bytes = h.total_bytes;
    return HOTFN_OK;
}

hotfn_status hfn_scan_make(uint8_t **out, uint64_t *bytes, const char *path,
                           const hotfn_scan_options *options, uint64_t stamp, const hotfn_env *env,
                           hotfn_error *err)
{
    pipeline p = { .env = env };
    hotfn_status s = run_pipeline(&p, path, options, err);
    if (s == HOTFN_OK) {
        s = write_block(out, bytes, &p, stamp, path, err);
    }
    finish_pipeline(&p);
    return s;
}
