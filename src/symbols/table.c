/* SPDX-License-Identifier: MIT */
/*
 * Sorting 100,000 symbols is most of what loading them costs, so it is one merge sort over the
 * table (stable, n log n for every input, its memory from the env), comparing names only where
 * addresses are equal.
 */
#include "symbols/table.h"

#include <string.h>

void hfn_symbol_table_init(hfn_symbol_table *table, const hotfn_env *env)
{
    memset(table, 0, sizeof *table);
    table->env = hfn_env_fill(env);
    hfn_arena_init(&table->names, &table->env);
}

void hfn_symbol_table_finish(hfn_symbol_table *table)
{
    hfn_free(&table->env, table->items, table->capacity * sizeof *table->items);
    hfn_arena_finish(&table->names);
}

bool hfn_symbol_table_add(hfn_symbol_table *table, const hfn_symbol *symbol)
{
    if (table->count == UINT32_MAX - 1 ||
        !hfn_grow(&table->env, (void **)&table->items, &table->capacity, (size_t)table->count + 1,
                  sizeof *table->items))
        return false;
    table->items[table->count++] = *symbol;
    if (symbol->kind == HOTFN_SYMBOL_FUNCTION || symbol->kind == HOTFN_SYMBOL_IFUNC)
        table->function_count++;
    return true;
}

static bool comes_before(const hfn_symbol *a, const hfn_symbol *b)
{
    int by_name;

    if (a->rva != b->rva)
        return a->rva < b->rva;
    by_name = a->name == b->name ? 0 : strcmp(a->name, b->name);
    return by_name ? by_name < 0 : a->source < b->source;
}

/* [0, middle) and [middle, end) of from are sorted; out receives both, sorted. */
static void merge(hfn_symbol *out, const hfn_symbol *from, size_t middle, size_t end)
{
    size_t a = 0, b = middle;

    while (a < middle && b < end)
        *out++ = comes_before(&from[b], &from[a]) ? from[b++] : from[a++];
    memcpy(out, from + a, (middle - a) * sizeof *out);
    memcpy(out + (middle - a), from + b, (end - b) * sizeof *out);
}

/* One round over the table: pairs of sorted runs become runs of twice the length. */
static void merge_runs(hfn_symbol *out, const hfn_symbol *from, size_t count, size_t run)
{
    for (size_t at = 0; at < count; at += 2 * run) {
        size_t middle = at + run < count ? run : count - at;
        size_t end = at + 2 * run < count ? 2 * run : count - at;
        merge(out + at, from + at, middle, end);
    }
}

static void sort_short_run(hfn_symbol *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        hfn_symbol item = items[i];
        size_t at = i;
        for (; at > 0 && comes_before(&item, &items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Sorts items with other as room of the same size; the answer is whichever holds the result. */
static hfn_symbol *sort_with(hfn_symbol *items, hfn_symbol *other, size_t count)
{
    size_t run = 8;

    for (size_t at = 0; at < count; at += run)
        sort_short_run(items + at, count - at < run ? count - at : run);
    for (; run < count; run *= 2) {
        hfn_symbol *swap = items;
        merge_runs(other, items, count, run);
        items = other;
        other = swap;
    }
    return items;
}

static void unite(hfn_symbol *kept, const hfn_symbol *again)
{
    kept->flags |= again->flags;
    if (kept->byte_count == 0)
        kept->byte_count = again->byte_count;
    if (kept->kind == HOTFN_SYMBOL_LABEL)
        kept->kind = again->kind;
}

static void drop_doubles(hfn_symbol_table *table)
{
    uint32_t kept = 0;

    for (uint32_t i = 1; i < table->count; i++) {
        hfn_symbol *last = &table->items[kept];
        const hfn_symbol *next = &table->items[i];
        if (last->rva == next->rva && strcmp(last->name, next->name) == 0)
            unite(last, next);
        else
            table->items[++kept] = *next;
    }
    table->count = table->count ? kept + 1 : 0;
}

/* Within each address: GLOBAL first, the order by name kept; room holds the others meanwhile. */
static void globals_first(hfn_symbol *items, uint32_t count, hfn_symbol *room)
{
    for (uint32_t from = 0, to; from < count; from = to) {
        uint32_t globals = from, locals = 0;
        for (to = from; to < count && items[to].rva == items[from].rva; to++) {
            if (items[to].flags & HOTFN_SYMBOL_GLOBAL)
                items[globals++] = items[to];
            else
                room[locals++] = items[to];
        }
        memcpy(items + globals, room, locals * sizeof *room);
    }
}

bool hfn_symbol_table_sort(hfn_symbol_table *table)
{
    size_t room_bytes = table->capacity * sizeof *table->items;
    hfn_symbol *room, *sorted;

    if (table->count == 0)
        return true;
    room = hfn_resize(&table->env, NULL, 0, room_bytes); /* not zeroed: all of it is written */
    if (!room)
        return false;
    sorted = sort_with(table->items, room, table->count);
    if (sorted == room) {
        room = table->items;
        table->items = sorted;
    }
    drop_doubles(table);
    globals_first(table->items, table->count, room);
    hfn_free(&table->env, room, room_bytes);
    return true;
}
