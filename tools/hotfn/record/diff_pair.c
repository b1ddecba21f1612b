/* SPDX-License-Identifier: MIT */
/* Pairs the functions of two lists in four passes: by image id and RVA; by name and file name of
 * the module; by name and key of the module, which has no version; and by name without the suffix
 * of a compiler's copy and key.  Functions with equal names are paired in the order of their
 * addresses. */
#include "diff.h"

#include <stdlib.h>
#include <string.h>

typedef enum pass { BY_FILE, BY_KEY, BY_KEY_WITHOUT_COPY } pass;

/* gcc and clang add a suffix to the name of a copy that they make for some callers or for another
 * unit.  A part of a function (.part, .cold) is not a copy. */
static int measure_name_without_copy(const char *name)
{
    static const char *const copies[] = { ".constprop.", ".isra.", ".lto_priv.", ".llvm." };
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        const char *at = strstr(name, copies[i]);
        if (at && at > name && (size_t)(at - name) < bytes) {
            bytes = (size_t)(at - name);
        }
    }
    return (int)bytes;
}

static int compare_addresses(const diff_function *a, const diff_function *b)
{
    return (a->rva > b->rva) - (a->rva < b->rva);
}

static int compare_ids(const void *left, const void *right)
{
    const diff_function *a = left, *b = right;
    const hotfn_record_module *m = &a->module->m, *n = &b->module->m;
    int order = memcmp(m->id, n->id, sizeof m->id);
    order = order ? order : (m->id_bytes > n->id_bytes) - (m->id_bytes < n->id_bytes);
    return order ? order : compare_addresses(a, b);
}

static int compare_modules(const diff_function *a, const diff_function *b, pass by)
{
    const diff_module *m = a->module, *n = b->module;
    uint32_t shorter = m->key_bytes < n->key_bytes ? m->key_bytes : n->key_bytes;
    if (by == BY_FILE) {
        return strcmp(m->m.file, n->m.file);
    }
    int order = memcmp(m->key, n->key, shorter);
    return order ? order : (m->key_bytes > n->key_bytes) - (m->key_bytes < n->key_bytes);
}

static int compare_keys(const diff_function *a, const diff_function *b, pass by)
{
    int order = compare_modules(a, b, by);
    int shorter = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    order = order ? order : memcmp(a->name, b->name, (size_t)shorter);
    return order ? order : a->name_bytes - b->name_bytes;
}

/* Matched functions come last. */
static int compare_names(const diff_function *a, const diff_function *b, pass by)
{
    int order = (int)a->is_matched - (int)b->is_matched;
    order = order ? order : compare_keys(a, b, by);
    return order ? order : compare_addresses(a, b);
}

static int compare_by_file(const void *left, const void *right)
{
    return compare_names(left, right, BY_FILE);
}

static int compare_by_key(const void *left, const void *right)
{
    return compare_names(left, right, BY_KEY);
}

typedef struct pairing {
    diff_function *a, *b;
    uint32_t a_count, b_count;
    diff_pair_fn found;
    void *user;
} pairing;

static void report_pair(const pairing *p, diff_function *a, diff_function *b)
{
    if (a) {
        a->is_matched = true;
    }
    if (b) {
        b->is_matched = true;
    }
    p->found(p->user, a, b);
}

static void pair_ids(const pairing *p)
{
    uint32_t i = 0, j = 0;
    qsort(p->a, p->a_count, sizeof *p->a, compare_ids);
    qsort(p->b, p->b_count, sizeof *p->b, compare_ids);
    while (i < p->a_count && j < p->b_count) {
        int order = compare_ids(&p->a[i], &p->b[j]);
        if (order == 0 && p->a[i].module->m.id_bytes > 0) {
            report_pair(p, &p->a[i++], &p->b[j++]);
        } else if (order <= 0) {
            i++;
        } else {
            j++;
        }
    }
}

/* Sort the unmatched functions by name and move them to the front.  Returns their number. */
static uint32_t sort_unmatched(diff_function *list, uint32_t count, pass by)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *name = list[i].name;
        list[i].name_bytes =
            by == BY_KEY_WITHOUT_COPY ? measure_name_without_copy(name) : (int)strlen(name);
    }
    qsort(list, count, sizeof *list, by == BY_FILE ? compare_by_file : compare_by_key);
    while (count > 0 && list[count - 1].is_matched) {
        count--;
    }
    return count;
}

/* Walk both sorted lists and pair equal names; the last pass also reports the functions without a
 * partner. */
static void pair_names(const pairing *p, pass by)
{
    bool is_last = by == BY_KEY_WITHOUT_COPY;
    uint32_t i = 0, j = 0, a_count = sort_unmatched(p->a, p->a_count, by),
             b_count = sort_unmatched(p->b, p->b_count, by);
    while (i < a_count || j < b_count) {
        int order = i == a_count ? 1 : j == b_count ? -1 : compare_keys(&p->a[i], &p->b[j], by);
        diff_function *left = order <= 0 ? &p->a[i++] : NULL;
        diff_function *right = order >= 0 ? &p->b[j++] : NULL;
        if (is_last || order == 0) {
            report_pair(p, left, right);
        }
    }
}

static void forget_matches(diff_function *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        list[i].is_matched = false;
    }
}

void diff_pair(diff_function *a, uint32_t a_count, diff_function *b, uint32_t b_count,
               diff_pair_fn found, void *user)
{
    const pairing p = { a, b, a_count, b_count, found, user };
    forget_matches(a, a_count);
    forget_matches(b, b_count);
    pair_ids(&p);
    pair_names(&p, BY_FILE);
    pair_names(&p, BY_KEY);
    pair_names(&p, BY_KEY_WITHOUT_COPY);
}
