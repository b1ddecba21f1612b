/* SPDX-License-Identifier: MIT */
/*
 * Reads DWARF with libdw.  The unit of an address is found in an index of the ranges of all units,
 * because not all compilers write .debug_aranges, and those have gaps.  A second index, built when
 * a unit is first used, has the calls that were inlined into its functions.  Separate debug files
 * are found by build-id on this system, or on the servers of $DEBUGINFOD_URLS.
 */
#include "dwarf_lines.h"

#include "debuginfod.h"
#include "libdw.h"

#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 256, /* nesting of entries in a unit; deeper entries are ignored */
    MAX_CHAIN = 128, /* calls inlined into each other; deeper calls are ignored  */
};

static const libdw_calls *dw; /* NULL: nothing was opened yet, or there is no libdw here */

/* The code [low, high): of a unit in the first index; inlined by the call at file:line in the
 * second. */
typedef struct range {
    Dwarf_Addr low, high;
    Dwarf_Die *unit;
    const char *file;
    int line;
} range;

typedef struct ranges {
    range *items; /* sorted by low after sort_ranges */
    size_t count, capacity;
} ranges;

/* The function that contains an address, then the calls inlined there, from outer to inner. */
typedef struct chain {
    Dwarf_Addr address;
    Dwarf_Die *unit; /* NULL: not filled yet */
    Dwarf_Die items[MAX_CHAIN];
    uint32_t count;
} chain;

struct dwarf_lines {
    Dwfl *dwfl;
    Dwfl_Module *module;
    char *folders;
    ranges units;
    chain chain;             /* of the last address   */
    struct inlined *inlined; /* of the units used yet */
    size_t inlined_count, inlined_capacity;
};

/* The outermost inlined calls of a unit. */
typedef struct inlined {
    Dwarf_Die *unit;
    ranges calls;
} inlined;

static bool append_range(ranges *list, const range *item)
{
    if (item->low >= item->high) {
        return true;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 256;
        range *larger = realloc(list->items, capacity * sizeof *larger);
        if (!larger) {
            return false;
        }
        list->items = larger;
        list->capacity = capacity;
    }
    list->items[list->count++] = *item;
    return true;
}

static int compare_ranges(const void *left, const void *right)
{
    const range *a = left, *b = right;

    return (a->low > b->low) - (a->low < b->low);
}

static void sort_ranges(ranges *list)
{
    if (list->count) {
        qsort(list->items, list->count, sizeof *list->items, compare_ranges);
    }
}

static const range *find_range(const ranges *list, Dwarf_Addr address)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].low <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && address < list->items[low - 1].high ? &list->items[low - 1] : NULL;
}

/* Append all ranges of die; the other members of the new items are those of item. */
static bool append_die_ranges(ranges *list, Dwarf_Die *die, range item)
{
    Dwarf_Addr base = 0;
    ptrdiff_t at = 0;

    while ((at = dw->dwarf_ranges(die, at, &base, &item.low, &item.high)) > 0) {
        if (!append_range(list, &item)) {
            return false;
        }
    }
    return true;
}

/* Read the file and line of the call by which die was inlined; NULL or 0 if die does not have
 * them. */
static range read_call_site(Dwarf_Die *die, Dwarf_Files *files)
{
    Dwarf_Word file = 0, line = 0;
    Dwarf_Attribute attribute;
    range call = { 0, 0, NULL, NULL, 0 };

    if (files &&
        dw->dwarf_formudata(dw->dwarf_attr(die, DW_AT_call_file, &attribute), &file) == 0) {
        call.file = dw->dwarf_filesrc(files, file, NULL, NULL);
    }
    if (dw->dwarf_formudata(dw->dwarf_attr(die, DW_AT_call_line, &attribute), &line) == 0) {
        call.line = (int)line;
    }
    return call;
}

static bool append_call(ranges *list, Dwarf_Die *die, Dwarf_Files *files)
{
    range call = read_call_site(die, files);

    return !call.file || call.line <= 0 || append_die_ranges(list, die, call);
}

/* Append the outermost inlined calls below die, but not the calls inlined into them. */
static bool collect_calls(ranges *list, Dwarf_Die *die, Dwarf_Files *files, int depth)
{
    Dwarf_Die child;

    if (depth > MAX_DEPTH || dw->dwarf_child(die, &child) != 0) {
        return true;
    }
    do {
        bool good = dw->dwarf_tag(&child) == DW_TAG_inlined_subroutine
                        ? append_call(list, &child, files)
                        : collect_calls(list, &child, files, depth + 1);
        if (!good) {
            return false;
        }
    } while (dw->dwarf_siblingof(&child, &child) == 0);
    return true;
}

static inlined *find_unit(dwarf_lines *lines, Dwarf_Die *unit)
{
    for (size_t i = 0; i < lines->inlined_count; i++) {
        if (lines->inlined[i].unit == unit) {
            return &lines->inlined[i];
        }
    }
    return NULL;
}

static inlined *add_unit(dwarf_lines *lines, Dwarf_Die *unit)
{
    Dwarf_Files *files = NULL;
    inlined *made;

    if (lines->inlined_count == lines->inlined_capacity) {
        size_t capacity = lines->inlined_capacity ? 2 * lines->inlined_capacity : 64;
        inlined *larger = realloc(lines->inlined, capacity * sizeof *larger);
        if (!larger) {
            return NULL;
        }
        lines->inlined = larger;
        lines->inlined_capacity = capacity;
    }
    made = &lines->inlined[lines->inlined_count++];
    *made = (inlined){ unit, { NULL, 0, 0 } };
    dw->dwarf_getsrcfiles(unit, &files, NULL);
    collect_calls(&made->calls, unit, files, 0);
    sort_ranges(&made->calls);
    return made;
}

/* Find the call by which the code at address was inlined; NULL if it was not inlined. */
static const range *find_call(dwarf_lines *lines, Dwarf_Die *unit, Dwarf_Addr address)
{
    const inlined *known = find_unit(lines, unit);

    if (!known) {
        known = add_unit(lines, unit);
    }
    return known ? find_range(&known->calls, address) : NULL;
}

static void index_units(dwarf_lines *lines)
{
    Dwarf_Die *unit = NULL;
    Dwarf_Addr bias;

    while ((unit = dw->dwfl_module_nextcu(lines->module, unit, &bias)) != NULL) {
        if (!append_die_ranges(&lines->units, unit, (range){ 0, 0, unit, NULL, 0 })) {
            break;
        }
    }
    sort_ranges(&lines->units);
}

static int download_debug_file(Dwfl_Module *module, const char *path, char **found)
{
#if defined(HOTFN_HAVE_DEBUGINFOD)
    const unsigned char *id;
    GElf_Addr address;
    int bytes = dw->dwfl_module_build_id(module, &id, &address);
    char file[4096];

    if (bytes > 0 && debuginfod_is_wanted() &&
        debuginfod_find(path, id, (uint32_t)bytes, file, sizeof file)) {
        *found = strdup(file);
        return *found ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    }
#else
    (void)module, (void)path, (void)found;
#endif
    return -1;
}

/* Like dwfl_standard_find_debuginfo, which would ask servers without a time limit. */
static int find_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                           const char *file, const char *link, GElf_Word crc, char **found)
{
    int debug_file =
        dw->dwfl_build_id_find_debuginfo(module, user, name, base, file, link, crc, found);

    return debug_file >= 0 ? debug_file : download_debug_file(module, file, found);
}

dwarf_lines *dwarf_lines_open(const char *path, const char *folders)
{
    static char *debug_path;         /* static, because libdwfl keeps the addresses */
    static Dwfl_Callbacks callbacks; /* of both                                     */
    dwarf_lines *lines = calloc(1, sizeof *lines);
    Dwarf_Addr bias;

    if (!lines) {
        return NULL;
    }
    lines->folders = strdup(folders);
    debug_path = lines->folders;
    dw = libdw_load();
    if (dw && lines->folders) {
        callbacks = (Dwfl_Callbacks){ .find_elf = dw->dwfl_build_id_find_elf,
                                      .find_debuginfo = find_debug_file,
                                      .section_address = dw->dwfl_offline_section_address,
                                      .debuginfo_path = &debug_path };
        lines->dwfl = dw->dwfl_begin(&callbacks);
    }
    if (!lines->dwfl) {
        return lines;
    }
    lines->module = dw->dwfl_report_offline(lines->dwfl, path, path, -1);
    dw->dwfl_report_end(lines->dwfl, NULL, NULL);
    if (lines->module && dw->dwfl_module_getdwarf(lines->module, &bias)) {
        index_units(lines);
    }
    return lines;
}

void dwarf_lines_close(dwarf_lines *lines)
{
    if (!lines) {
        return;
    }
    if (lines->dwfl) {
        dw->dwfl_end(lines->dwfl);
    }
    free(lines->units.items);
    for (size_t i = 0; i < lines->inlined_count; i++) {
        free(lines->inlined[i].calls.items);
    }
    free(lines->inlined);
    free(lines->folders);
    free(lines);
}

bool dwarf_lines_find(dwarf_lines *lines, uint64_t address, char *file, size_t file_bytes,
                      uint32_t *line)
{
    const range *in = find_range(&lines->units, address);
    const range *call = in ? find_call(lines, in->unit, address) : NULL;
    Dwarf_Line *found = in && !call ? dw->dwarf_getsrc_die(in->unit, address) : NULL;
    const char *name = call ? call->file : NULL;
    int number = call ? call->line : 0;

    if (found) {
        name = dw->dwarf_linesrc(found, NULL, NULL);
        dw->dwarf_lineno(found, &number);
    }
    if (!name || number <= 0) {
        return false;
    }
    snprintf(file, file_bytes, "%s", name);
    *line = (uint32_t)number;
    return true;
}

/* Entries that may hold functions without having code themselves. */
static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_module;
}

/* Append the functions and inlined calls below die that contain the address, from outer to inner.
 * True if an entry with this address was found. */
static bool find_chain(chain *c, Dwarf_Die *die, Dwarf_Addr address, int depth)
{
    Dwarf_Die child;

    if (depth > MAX_DEPTH || dw->dwarf_child(die, &child) != 0) {
        return false;
    }
    do {
        int tag = dw->dwarf_tag(&child);
        bool is_call = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
        if (is_scope(tag) ? find_chain(c, &child, address, depth + 1)
                          : (is_call || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
                             tag == DW_TAG_catch_block) &&
                                dw->dwarf_haspc(&child, address) == 1) {
            if (is_call && c->count < MAX_CHAIN) {
                c->items[c->count++] = child;
            }
            if (!is_scope(tag)) {
                find_chain(c, &child, address, depth + 1);
            }
            return true;
        }
    } while (dw->dwarf_siblingof(&child, &child) == 0);
    return false;
}

static void copy_text(char *out, size_t out_bytes, const char *text)
{
    snprintf(out, out_bytes, "%s", text ? text : "");
}

/* The linkage name, if the entry or its abstract origin has one; otherwise the source name. */
static const char *get_linkage_name(Dwarf_Die *die)
{
    static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };
    Dwarf_Attribute attribute;
    const char *name = NULL;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !name; i++) {
        name = dw->dwarf_formstring(dw->dwarf_attr_integrate(die, names[i], &attribute));
    }
    return name;
}

static uint32_t clamp_line(int line)
{
    return line > 0 ? (uint32_t)line : 0;
}

bool dwarf_lines_find_frame(dwarf_lines *lines, uint64_t address, uint32_t depth, char *function,
                            size_t function_bytes, char *file, size_t file_bytes, uint32_t *line)
{
    const range *in = find_range(&lines->units, address);
    chain *c = &lines->chain;
    Dwarf_Files *files = NULL;
    Dwarf_Line *found;
    int number = 0;

    if (!in) {
        return false;
    }
    if (c->unit != in->unit || c->address != address) {
        c->unit = in->unit;
        c->address = address;
        c->count = 0;
        find_chain(c, in->unit, address, 0);
    }
    if (depth > 0 && depth >= c->count) {
        return false;
    }
    copy_text(function, function_bytes,
              c->count ? get_linkage_name(&c->items[c->count - 1 - depth]) : NULL);
    if (depth == 0) {
        found = dw->dwarf_getsrc_die(in->unit, address);
        copy_text(file, file_bytes, found ? dw->dwarf_linesrc(found, NULL, NULL) : NULL);
        if (found) {
            dw->dwarf_lineno(found, &number);
        }
    } else { /* the call by which the function at depth - 1 was inlined */
        dw->dwarf_getsrcfiles(in->unit, &files, NULL);
        range call = read_call_site(&c->items[c->count - depth], files);
        copy_text(file, file_bytes, call.file);
        number = call.line;
    }
    *line = clamp_line(number);
    return true;
}
