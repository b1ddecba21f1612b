/* SPDX-License-Identifier: MIT */
/* Prints the symbol that contains an address, and the chain of calls inlined there, innermost
 * first, like addr2line -fi, but for all file formats whose lines the library reads. */
#include "symbols_at.h"

#include <inttypes.h>

enum { TEXT_BYTES = 16384 };

/* Find the last code symbol that begins at or before rva and contains it.  A symbol of unknown size
 * extends to the end of the image. */
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

/* Report on stderr that nothing is known about an address; returns false. */
static bool report_unknown(const listing *l, uint64_t rva)
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
        all_known &= known || depth > 0 || report_unknown(l, rvas[i]);
    }
    return all_known;
}

/* Add the inlined calls at rva; returns their number. */
static uint32_t add_frames(hotfn_json *object, const listing *l, uint64_t rva)
{
    char text[TEXT_BYTES];
    hotfn_json *frames = hotfn_json_create_array();
    hotfn_source_frame f;
    uint32_t depth = 0;

    for (; next_frame(l, rva, depth, &f); depth++) {
        hotfn_json *o = hotfn_json_create_object();
        if (f.function[0]) {
            json_add_text(o, "function", f.function);
            json_add_text(o, "display", listing_display(l, f.function, text, sizeof text));
        }
        if (f.file[0]) {
            json_add_text(o, "file", f.file);
        }
        if (f.line) {
            json_add_number(o, "line", f.line);
        }
        hotfn_json_add(frames, NULL, o);
    }
    hotfn_json_add(object, "frames", frames);
    return depth;
}

bool symbols_at_write(hotfn_json_writer *out, const listing *l, const uint64_t *rvas,
                      uint32_t count)
{
    bool all_known = true;

    hotfn_json_begin_array(out, "addresses");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_json *o = hotfn_json_create_object();
        bool known = find_symbol(l, rvas[i], &s);
        json_add_number(o, "rva", rvas[i]);
        if (known) {
            json_add_text(o, "symbol", s.name);
            json_add_number(o, "offset", rvas[i] - s.rva);
        }
        known |= add_frames(o, l, rvas[i]) > 0;
        hotfn_json_write(out, NULL, o);
        all_known &= known || report_unknown(l, rvas[i]);
    }
    hotfn_json_end(out);
    return all_known;
}
