/* SPDX-License-Identifier: MIT */
/* The forwarded exports of a Windows library, which `hotfn symbols` prints after the symbols. */
#include "forwards.h"

#include <inttypes.h>

/* Find the next forwarded export from *index on; false at the end. */
static bool next_forward(const hotfn_exports *exports, uint32_t *index, hotfn_exported *out)
{
    for (; *index < hotfn_exports_get_count(exports); ++*index) {
        *out = (hotfn_exported)HOTFN_EXPORTED_INIT;
        if (hotfn_exports_get(exports, *index, out) == HOTFN_OK && out->forward) {
            ++*index;
            return true;
        }
    }
    return false;
}

static void write_forwards(hotfn_json_writer *out, const hotfn_exports *exports)
{
    uint32_t index = 0;
    hotfn_exported e;

    hotfn_json_begin_array(out, "forwards");
    while (next_forward(exports, &index, &e)) {
        hotfn_json *o = hotfn_json_create_object();
        json_add_number(o, "ordinal", e.ordinal);
        if (e.name) {
            json_add_text(o, "name", e.name);
        }
        json_add_text(o, "to", e.forward);
        if (e.target_path) {
            json_add_text(o, "file", e.target_path);
            json_add_number(o, "rva", e.target_rva);
        }
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
}

static void print_lines(FILE *out, const hotfn_exports *exports)
{
    uint32_t index = 0;
    hotfn_exported e;

    while (next_forward(exports, &index, &e)) {
        fprintf(out, "%12s %8s %-8s %-10s ", "-", "-", "forward", "exports");
        if (e.name) {
            fputs(e.name, out);
        } else {
            fprintf(out, "#%" PRIu32, e.ordinal);
        }
        fprintf(out, " -> %s", e.forward);
        if (e.target_path) {
            fprintf(out, " (%s+0x%" PRIx64 ")", e.target_path, e.target_rva);
        }
        putc('\n', out);
    }
}

/* *out is NULL if the file is not a Windows library. */
static bool load_exports(const listing *l, const symbol_sources *sources, hotfn_exports **out,
                         hotfn_error *err)
{
    hotfn_symbols_options options = symbol_sources_options(sources, true);

    *out = NULL;
    return !l->image || l->info.format != HOTFN_FORMAT_PE ||
           hotfn_exports_load(out, l->image, &options, &l->env, err) == HOTFN_OK;
}

bool forwards_print(FILE *out, const listing *l, const symbol_sources *sources, hotfn_error *err)
{
    hotfn_exports *exports;
    bool ok = load_exports(l, sources, &exports, err);

    if (exports) {
        print_lines(out, exports);
    }
    hotfn_exports_destroy(exports);
    return ok;
}

bool forwards_write(hotfn_json_writer *out, const listing *l, const symbol_sources *sources,
                    hotfn_error *err)
{
    hotfn_exports *exports;
    bool ok = load_exports(l, sources, &exports, err);

    if (exports) {
        write_forwards(out, exports);
    }
    hotfn_exports_destroy(exports);
    return ok;
}
