/* SPDX-License-Identifier: MIT */
/*
 * The table is sorted once, by address, then by name, so that equal symbols of several sources
 * become neighbours; names are compared only if addresses are equal.  Afterwards the globals of
 * each address are moved to the front.
 */
#include "symbols/table.h"

#include "base/sort.h"

#include <string.h>

void hfn_symbol_table_init(hfn_symbol_table *table, const hotfn_env *env)
{
    memset(table, 0, sizeof *table);
    table->env = hfn_env_fill(env);
    hfn_arena_init(&table->names, &table->env);
}

void hfn_symbol_table_finish(hfn_symbol_table *table)
{
    hfn_free_memory(&table->env, table->items, table->capacity * sizeof *table->items);
    hfn_free_memory(&table->env, table->modules, table->module_capacity * sizeof *table->modules);
    hfn_arena_finish(&table->names);
}

uint32_t hfn_symbol_table_module(hfn_symbol_table *table, const char *name)
{
    if (table->module_count == UINT32_MAX - 1 ||
        !hfn_grow_array(&table->env, (void **)&table->modules, &table->module_capacity,
                        (size_t)table->module_count + 1, sizeof *table->modules)) {
        return 0;
    }
    table->modules[table->module_count++] = name;
    return table->module_count;
}

const char *hfn_symbol_table_module_name(const hfn_symbol_table *table, uint32_t module)
{
    return module && module <= table->module_count ? table->modules[module - 1] : NULL;
}

bool hfn_symbol_table_add(hfn_symbol_table *table, const hfn_symbol *symbol)
{
    if (table->count == UINT32_MAX - 1 ||
        !hfn_grow_array(&table->env, (void **)&table->items, &table->capacity,
                        (size_t)table->count + 1, sizeof *table->items)) {
        return false;
    }
    table->items[table->count++] = *symbol;
    table->sorted = false;
    if (symbol->kind == HOTFN_SYMBOL_FUNCTION || symbol->kind == HOTFN_SYMBOL_IFUNC) {
        table->function_count++;
    }
    return true;
}

static bool comes_before(const void *left, const void *right)
{
    const hfn_symbol *a = left, *b = right;
    int by_name;

    if (a->rva != b->rva) {
        return a->rva < b->rva;
    }
    by_name = a->name == b->name ? 0 : strcmp(a->name, b->name);
    return by_name ? by_name < 0 : a->source < b->source;
}

static void merge_symbol(hfn_symbol *kept, const hfn_symbol *again)
{
    bool has_size = kept->byte_count && !(kept->flags & HOTFN_SYMBOL_SIZE_GUESSED);

    kept->flags |= again->flags & (uint8_t)~HOTFN_SYMBOL_SIZE_GUESSED;
    if (!has_size && again->byte_count) {
        kept->byte_count = again->byte_count;
        kept->flags &= (uint8_t)~HOTFN_SYMBOL_SIZE_GUESSED;
        kept->flags |= again->flags & HOTFN_SYMBOL_SIZE_GUESSED;
    }
    if (kept->kind == HOTFN_SYMBOL_LABEL) {
        kept->kind = again->kind;
    }
    if (!kept->module) {
        kept->module = again->module;
    }
}

static void remove_duplicates(hfn_symbol_table *table)
{
    uint32_t kept = 0;

    for (uint32_t i = 1; i < table->count; i++) {
        hfn_symbol *last = &table->items[kept];
        const hfn_symbol *next = &table->items[i];
        if (last->rva == next->rva && strcmp(last->name, next->name) == 0) {
            merge_symbol(last, next);
        } else {
            table->items[++kept] = *next;
        }
    }
    table->count = table->count ? kept + 1 : 0;
}

/* Moves the globals of each address to the front and keeps the order by name; room holds the other
 * symbols meanwhile. */
static void move_globals_first(hfn_symbol *items, uint32_t count, hfn_symbol *room)
{
    for (uint32_t from = 0, to; from < count; from = to) {
        uint32_t globals = from, locals = 0;
        for (to = from; to < count && items[to].rva == items[from].rva; to++) {
            if (items[to].flags & HOTFN_SYMBOL_GLOBAL) {
                items[globals++] = items[to];
            } else {
                room[locals++] = items[to];
            }
        }
        memcpy(items + globals, room, locals * sizeof *room);
    }
}

bool hfn_symbol_table_sort(hfn_symbol_table *table)
{
    size_t room_bytes = table->capacity * sizeof *table->items;
    hfn_symbol *room, *sorted;

    if (table->count == 0 || table->sorted) {
        return true;
    }
    room =
        hfn_resize_memory(&table->env, NULL, 0, room_bytes); /* not zeroed: all of it is written */
    if (!room) {
        return false;
    }
    sorted = hfn_sort_items(table->items, room, table->count, sizeof *room, comes_before);
    if (sorted == room) {
        room = table->items;
        table->items = sorted;
    }
    remove_duplicates(table);
    move_globals_first(table->items, table->count, room);
    table->sorted = true;
    hfn_free_memory(&table->env, room, room_bytes);
    return true;
}
