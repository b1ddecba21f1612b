/* SPDX-License-Identifier: MIT */
/* Make the table of hot functions. */
#include "hot_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum sort_key {
    SORT_VALUE,
    SORT_CALLS,
    SORT_TOTAL,
    SORT_SELF,
    SORT_CLIENTS,
    SORT_NAME,
    SORT_MODULE,
    SORT_CHANGE,
    SORT_COUNT
};
static const char *const sort_names[SORT_COUNT] = { "value",   "calls", "total",  "self",
                                                    "clients", "name",  "module", "change" };

typedef struct sorting {
    const hot_table *table;
    enum sort_key key;
    bool ascending;
} sorting;

double get_base_value(const hot_table *t, uint32_t number)
{
    uint32_t before = t->has_base ? t->pairs[number] : UINT32_MAX;
    return before < t->base.function_count ? t->base.functions[before].value : 0;
}

/* What functions are sorted by; a value that does not fit is above all others. */
static double get_sort_value(const hot_table *t, enum sort_key key, uint32_t number)
{
    const folded_function *f = &t->now.functions[number];

    switch (key) {
    case SORT_CALLS:
    case SORT_TOTAL:
    case SORT_SELF: {
        int metric = (int)key - SORT_CALLS;
        return f->overflow & 1u << metric ? INFINITY : (double)f->sums[metric];
    }
    case SORT_CLIENTS: return f->clients;
    case SORT_CHANGE: return f->value - get_base_value(t, number);
    default: return isnan(f->value) ? INFINITY : f->value;
    }
}

static int compare_texts(const sorting *o, uint32_t a, uint32_t b)
{
    char x[256], y[256];
    const function_list *list = &o->table->list;

    return o->key == SORT_NAME ? strcmp(get_function_name(list, a, x, sizeof x),
                                        get_function_name(list, b, y, sizeof y))
                               : strcmp(get_function_file(list, a), get_function_file(list, b));
}

static int compare_functions(const void *left, const void *right, void *user)
{
    const sorting *o = user;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order;

    if (o->key == SORT_NAME || o->key == SORT_MODULE) {
        order = compare_texts(o, a, b);
    } else {
        double x = get_sort_value(o->table, o->key, a), y = get_sort_value(o->table, o->key, b);
        order = (x > y) - (x < y);
    }
    order = o->ascending ? order : -order;
    return order ? order : (a > b) - (a < b);
}

/* Ranks are those of the value, whatever the table is sorted by. */
static void rank_functions(hot_table *t)
{
    sorting by_value = { t, SORT_VALUE, false };

    for (uint32_t i = 0; i < t->now.function_count; i++) {
        if (t->now.functions[i].clients > 0) {
            t->order[t->called++] = i;
        }
    }
    qsort_r(t->order, t->called, sizeof *t->order, compare_functions, &by_value);
    for (uint32_t i = 0; i < t->called; i++) {
        t->ranks[t->order[i]] = i + 1;
    }
}

static bool sort_table(request *r, hot_table *t)
{
    static const char *const directions[] = { "down", "up" };
    const char *words = request_get(r, "q");
    int key, up;

    if (!request_get_word(r, "sort", sort_names, SORT_COUNT, SORT_VALUE, &key) ||
        !request_get_word(r, "direction", directions, 2, key == SORT_NAME || key == SORT_MODULE,
                          &up)) {
        return false;
    }
    rank_functions(t);
    for (uint32_t i = 0; i < t->called; i++) {
        if (!words || function_matches(&t->list, t->order[i], words)) {
            t->order[t->count++] = t->order[i];
        }
    }
    sorting o = { t, (enum sort_key)key, up == 1 };
    if (o.key != SORT_VALUE || o.ascending) {
        qsort_r(t->order, t->count, sizeof *t->order, compare_functions, &o);
    }
    return true;
}

static bool add_base(request *r, store *s, hot_table *t)
{
    const char *base = request_get(r, "base");

    if (!base || !*base) {
        return true;
    }
    t->base_sel = t->sel;
    t->pairs = calloc((size_t)t->now.function_count + 1, sizeof *t->pairs);
    if (!choose_build(r, s, "base", &t->base_sel) ||
        !fold_selection(r, s, &t->base_sel, &t->base) ||
        !load_functions(s, t->base_sel.filter.build, t->base.function_count, &t->base_list,
                        &r->refused)) {
        return false;
    }
    t->has_base = t->pairs && pair_functions(&t->base_list, &t->list, t->pairs);
    return t->has_base ||
           request_refuse(r, 503, "the collector has not enough memory: ask again later");
}

bool hot_table_make(request *r, store *s, hot_table *t)
{
    memset(t, 0, sizeof *t);
    if (!read_selection(r, s, &t->sel) || !fold_selection(r, s, &t->sel, &t->now) ||
        !load_functions(s, t->sel.filter.build, t->now.function_count, &t->list, &r->refused) ||
        !add_base(r, s, t)) {
        return false;
    }
    t->order = calloc((size_t)t->now.function_count + 1, sizeof *t->order);
    t->ranks = calloc((size_t)t->now.function_count + 1, sizeof *t->ranks);
    if (!t->order || !t->ranks) {
        return request_refuse(r, 503, "the collector has not enough memory: ask again later");
    }
    return sort_table(r, t);
}

void hot_table_free(hot_table *t)
{
    fold_free(&t->now);
    fold_free(&t->base);
    free_functions(&t->list);
    free_functions(&t->base_list);
    free(t->pairs);
    free(t->order);
    free(t->ranks);
}
