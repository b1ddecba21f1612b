/* SPDX-License-Identifier: MIT */
/* The forwarded exports of a Windows library, behind the symbols that `hotfn symbols` prints. */
#include "forwards.h"

#include <inttypes.h>

/* The next forwarded one from *index on; false at the end. */
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

static void print_json(FILE *out, const hotfn_exports *exports)
{
    const char *between = "";
    uint32_t index = 0;
    hotfn_exported e;

    fputs(",\"forwards\":[", out);
    while (next_forward(exports, &index, &e)) {
        fprintf(out, "%s\n{\"ordinal\":%" PRIu32, between, e.ordinal);
        if (e.name) {
            fputs(",\"name\":", out);
            listing_json_text(out, e.name);
        }
        fputs(",\"to\":", out);
        listing_json_text(out, e.forward);
        if (e.target_path) {
            fputs(",\"file\":", out);
            listing_json_text(out, e.target_path);
            fprintf(out, ",\"rva\":%" PRIu64, e.target_rva);
        }
        putc('}', out);
        between = ",";
    }
    putc(']', out);
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

bool forwards_print(FILE *out, const listing *l, const symbol_sources *sources, bool json,
                    hotfn_error *err)
{
    hotfn_symbols_options options = symbol_sources_options(sources, true);
    hotfn_exports *exports = NULL;

    if (!l->image || l->info.format != HOTFN_FORMAT_PE) {
        return true;
    }
    if (hotfn_exports_load(&exports, l->image, &options, &l->env, err) != HOTFN_OK) {
        return false;
    }
    if (json) {
        print_json(out, exports);
    } else {
        print_lines(out, exports);
    }
    hotfn_exports_destroy(exports);
    return true;
}
