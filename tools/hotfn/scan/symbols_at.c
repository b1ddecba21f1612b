/* SPDX-License-Identifier: MIT */
/* The symbol around an address, and the chain of calls that were inlined there, the innermost piece of
 * source first: as addr2line -fi prints it, for each kind of file that the library knows lines of. */
#include "symbols_at.h"

#include <inttypes.h>

enum { TEXT_BYTES = 16384 };

/* The last symbol of code that begins at rva or before it and reaches so far; size unknown reaches, but not
 * beyond the image. */
static bool find_symbol(const listing *l, uint64_t rva, hotfn_symbol *out)
{
    bool found = false;
    uint64_t there = 0;

    if (l->image && !hotfn_image_get_bytes(l->image, rva, &there)) {
        return false;
    }
    for (uint32_t i = 0; i < hotfn_symbols_get_count(l->symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(l->symbols, i, &s);
        if (s.rva > rva) {
            break;
        }
        if (s.kind == HOTFN_SYMBOL_DATA || (found && s.rva == out->rva) ||
            (s.byte_count && rva - s.rva >= s.byte_count)) {
            continue;
        }
        *out = s;
        found = true;
    }
    return found;
}

static bool next_frame(const listing *l, uint64_t rva, uint32_t depth, hotfn_source_frame *out)
{
    *out = (hotfn_source_frame)HOTFN_SOURCE_FRAME_INIT;
    return hotfn_symbols_find_frame(l->symbols, rva, depth, out) == HOTFN_OK;
}

/* On stderr; false. */
static bool say_unknown(const listing *l, uint64_t rva)
{
    uint64_t there = 0;

    if (l->image && !hotfn_image_get_bytes(l->image, rva, &there)) {
        fprintf(stderr,
                "hotfn symbols: %#" PRIx64
                " is outside of %s: --at takes distances from the lowest "
                "load address\n",
                rva, l->info.path);
    } else {
        fprintf(stderr, "hotfn symbols: %#" PRIx64 ": %s has no symbol and no line there\n", rva,
                l->info.path);
    }
    return false;
}

bool symbols_at_print(FILE *out, const listing *l, const uint64_t *rvas, uint32_t count)
{
    char text[TEXT_BYTES];
    bool all_known = true;

    for (uint32_t i = 0; i < count; i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_source_frame f;
        uint32_t depth = 0;
        bool known = find_symbol(l, rvas[i], &s);
        fprintf(out, "%#" PRIx64, rvas[i]);
        if (known) {
            fprintf(out, " %s+%#" PRIx64, listing_display(l, s.name, text, sizeof text),
                    rvas[i] - s.rva);
        }
        putc('\n', out);
        for (; next_frame(l, rvas[i], depth, &f); depth++) {
            fprintf(out, "    %s%s", listing_display(l, f.function, text, sizeof text),
                    f.function[0] ? " " : "");
            if (f.line) {
                fprintf(out, "%s:%" PRIu32 "\n", f.file, f.line);
            } else {
                fprintf(out, "%s\n", f.file[0] ? f.file : "?");
            }
        }
        all_known &= known || depth > 0 || say_unknown(l, rvas[i]);
    }
    return all_known;
}

/* How many there are. */
static uint32_t print_frames(FILE *out, const listing *l, uint64_t rva)
{
    char text[TEXT_BYTES];
    hotfn_source_frame f;
    uint32_t depth = 0;

    fputs(",\"frames\":[", out);
    for (; next_frame(l, rva, depth, &f); depth++) {
        const char *between = "";
        fputs(depth ? ",{" : "{", out);
        if (f.function[0]) {
            fputs("\"function\":", out);
            listing_json_text(out, f.function);
            fputs(",\"display\":", out);
            listing_json_text(out, listing_display(l, f.function, text, sizeof text));
            between = ",";
        }
        if (f.file[0]) {
            fprintf(out, "%s\"file\":", between);
            listing_json_text(out, f.file);
            between = ",";
        }
        if (f.line) {
            fprintf(out, "%s\"line\":%" PRIu32, between, f.line);
        }
        putc('}', out);
    }
    putc(']', out);
    return depth;
}

bool symbols_at_print_json(FILE *out, const listing *l, const uint64_t *rvas, uint32_t count)
{
    bool all_known = true;

    fputs(",\"addresses\":[", out);
    for (uint32_t i = 0; i < count; i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        fprintf(out, "%s\n{\"rva\":%" PRIu64, i ? "," : "", rvas[i]);
        bool known = find_symbol(l, rvas[i], &s);
        if (known) {
            fputs(",\"symbol\":", out);
            listing_json_text(out, s.name);
            fprintf(out, ",\"offset\":%" PRIu64, rvas[i] - s.rva);
        }
        known |= print_frames(out, l, rvas[i]) > 0;
        putc('}', out);
        all_known &= known || say_unknown(l, rvas[i]);
    }
    putc(']', out);
    return all_known;
}
