/* SPDX-License-Identifier: MIT */
/* Names of methods.  The target learns them while it runs, so it writes them itself, into room that
 * the creator of the record has reserved.  Several processes and threads may do so at the same
 * time: the text is written first, and one exchange of the function's offset publishes it. */
#include "base/hash.h"
#include "base/status.h"
#include "live/live.h"

#include <string.h>

static uint64_t count_text_bytes(const char *const *texts, uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        bytes += strlen(texts[i]) + 2;
    }
    return bytes;
}

static char *write_texts(char *at, char kind, const char *const *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = strlen(texts[i]) + 1;

        *at = kind;
        memcpy(at + 1, texts[i], bytes);
        at += bytes + 1;
    }
    return at;
}

hotfn_status hfn_live_reserve_names(hfn_live *live, uint32_t module, uint64_t byte_count,
                                    const hfn_method_rules *rules, hotfn_error *err)
{
    uint64_t begin = live->string_bytes;
    uint32_t watch_count = rules->watch ? 1 : 0;
    uint64_t rule_bytes = count_text_bytes(rules->includes, rules->include_count) +
                          count_text_bytes(rules->excludes, rules->exclude_count) +
                          count_text_bytes(&rules->watch, watch_count) + 1;
    uint32_t first, count;
    hotfn_status status;
    uint8_t *entry;
    char *at;

    if (!hfn_live_find_module(live, module, &entry, &first, &count)) {
        return HOTFN_E_NOT_FOUND;
    }
    byte_count += rule_bytes + HFN_METHOD_ORDERS_BYTES;
    if (byte_count > hfn_live_section_bytes(live, HFN_SECTION_STRINGS) - begin) {
        return hfn_report_error(err, HOTFN_E_LIMIT, live->path, HOTFN_NO_OFFSET,
                                "the record has no room for names of methods");
    }
    status = hfn_live_allocate(live, HFN_SECTION_STRINGS, begin + byte_count,
                               &live->string_bytes_allocated, err);
    if (status != HOTFN_OK) {
        return status;
    }
    at = (char *)hfn_live_section(live, HFN_SECTION_STRINGS) + begin;
    at = write_texts(at, '+', rules->includes, rules->include_count);
    at = write_texts(at, '-', rules->excludes, rules->exclude_count);
    write_texts(at, '!', &rules->watch, watch_count);
    live->string_bytes += byte_count;
    hfn_shared_put64(live->base + HFN_AT_STRINGS, live->string_bytes);
    hfn_shared_put32(entry + HFN_MODULE_NAMES_BEGIN, (uint32_t)begin);
    hfn_shared_put32(entry + HFN_MODULE_NAMES_NEXT, (uint32_t)(begin + rule_bytes));
    hfn_shared_put32(entry + HFN_MODULE_NAMES_END,
                     (uint32_t)(begin + byte_count) - HFN_METHOD_ORDERS_BYTES);
    hfn_shared_put32(entry + HFN_MODULE_ORDERS_BEGIN,
                     (uint32_t)(begin + byte_count) - HFN_METHOD_ORDERS_BYTES);
    return HOTFN_OK;
}

const char *hfn_live_get_method_rules(const hfn_live *live, uint32_t module)
{
    uint32_t first, count;
    uint8_t *entry;

    return hfn_live_find_module(live, module, &entry, &first, &count)
               ? hfn_live_text(live, hfn_shared_get32(entry + HFN_MODULE_NAMES_BEGIN))
               : "";
}

uint32_t hfn_live_count_lost_methods(const hfn_live *live, uint32_t module)
{
    uint32_t first, count;
    uint8_t *entry;

    return hfn_live_find_module(live, module, &entry, &first, &count)
               ? hfn_shared_get32(entry + HFN_MODULE_METHODS_LOST)
               : 0;
}

static uint32_t *get_word(uint8_t *at)
{
    return (uint32_t *)(void *)at;
}

/* ---- Orders.  Texts are only appended, and the word is stored after them. */

static bool is_general(const hfn_method_rules *rules)
{
    return rules->include_count == 0 && rules->exclude_count == 0;
}

#define FLAGS (HFN_METHOD_ORDERS_OFF | HFN_METHOD_ORDERS_COUNT)

static uint32_t get_flags(uint32_t mode)
{
    return mode == HFN_METHOD_OFF     ? HFN_METHOD_ORDERS_OFF
           : mode == HFN_METHOD_COUNT ? HFN_METHOD_ORDERS_COUNT
                                      : 0;
}

static uint32_t get_end(uint32_t word)
{
    return word >> HFN_METHOD_ORDERS_SHIFT & HFN_METHOD_ORDERS_MASK;
}

static uint32_t make_word(uint32_t flags, uint32_t begin, uint32_t end)
{
    return flags | end << HFN_METHOD_ORDERS_SHIFT | begin;
}

hotfn_status hfn_live_order_methods(hfn_live *live, uint32_t module, uint32_t mode,
                                    const hfn_method_rules *rules, hotfn_error *err)
{
    uint64_t bytes = count_text_bytes(rules->includes, rules->include_count) +
                     count_text_bytes(rules->excludes, rules->exclude_count) + 2;
    uint32_t first, count, word, end;
    uint8_t *entry;
    char *at;

    if (!hfn_live_find_module(live, module, &entry, &first, &count)) {
        return HOTFN_E_NOT_FOUND;
    }
    word = hfn_shared_get32(entry + HFN_MODULE_ORDERS);
    end = get_end(word);
    if (is_general(rules)) {
        hfn_shared_put32(entry + HFN_MODULE_ORDERS, make_word(get_flags(mode), end, end));
        return HOTFN_OK;
    }
    if (bytes > HFN_METHOD_ORDERS_BYTES - end) {
        return hfn_report_error(err, HOTFN_E_LIMIT, live->path, HOTFN_NO_OFFSET,
                                "this run has no room for further globs on methods: switch all "
                                "methods at once, without -f and -x");
    }
    at = (char *)hfn_live_section(live, HFN_SECTION_STRINGS) +
         hfn_shared_get32(entry + HFN_MODULE_ORDERS_BEGIN) + end;
    at[0] = (char)('0' + mode);
    at[1] = 0;
    at = write_texts(at + 2, '+', rules->includes, rules->include_count);
    write_texts(at, '-', rules->excludes, rules->exclude_count);
    /* Pairs with the acquire load in hfn_methods_get_orders. */
    __atomic_store_n(get_word(entry + HFN_MODULE_ORDERS),
                     make_word(word & FLAGS, word & HFN_METHOD_ORDERS_MASK, end + (uint32_t)bytes),
                     __ATOMIC_RELEASE);
    return HOTFN_OK;
}

void hfn_live_split_methods(hfn_live *live, uint32_t module)
{
    uint32_t first, count;
    uint8_t *entry;

    if (hfn_live_find_module(live, module, &entry, &first, &count)) {
        hfn_shared_put32(entry + HFN_MODULE_IS_SPLIT, 1);
    }
}

const uint32_t *hfn_live_get_method_orders(const hfn_live *live, uint32_t module)
{
    uint32_t first, count;
    uint8_t *entry;

    return hfn_live_find_module(live, module, &entry, &first, &count)
               ? get_word(entry + HFN_MODULE_ORDERS)
               : NULL;
}

const char *hfn_live_get_order_texts(const hfn_live *live, uint32_t module)
{
    uint32_t first, count;
    uint8_t *entry;

    return hfn_live_find_module(live, module, &entry, &first, &count)
               ? hfn_live_text(live, hfn_shared_get32(entry + HFN_MODULE_ORDERS_BEGIN))
               : "";
}

/* ---- The tracer's own hooks. */

void hfn_live_add_replaced(hfn_live *live, uint32_t pool, uint32_t module, uint32_t function)
{
    uint32_t first, count, known;
    uint8_t *entry;

    if (!hfn_live_find_module(live, pool, &entry, &first, &count)) {
        return;
    }
    known = hfn_shared_get32(entry + HFN_MODULE_OWN_HOOKS);
    if (known < HFN_MODULE_MAX_OWN_HOOKS) {
        uint8_t *at = entry + HFN_MODULE_OWN_HOOKS_AT + (size_t)known * 8;

        hfn_shared_put32(at, module);
        hfn_shared_put32(at + 4, function);
        /* Pairs with the acquire load in hfn_live_get_replaced. */
        __atomic_store_n(get_word(entry + HFN_MODULE_OWN_HOOKS), known + 1, __ATOMIC_RELEASE);
    }
}

uint32_t hfn_live_get_replaced(const hfn_live *live, uint32_t pool, uint32_t *modules,
                               uint32_t *functions)
{
    uint32_t first, count, known;
    uint8_t *entry;

    if (!hfn_live_find_module(live, pool, &entry, &first, &count)) {
        return 0;
    }
    known = __atomic_load_n(get_word(entry + HFN_MODULE_OWN_HOOKS), __ATOMIC_ACQUIRE);
    known = known < HFN_MODULE_MAX_OWN_HOOKS ? known : HFN_MODULE_MAX_OWN_HOOKS;
    for (uint32_t i = 0; i < known; i++) {
        const uint8_t *at = entry + HFN_MODULE_OWN_HOOKS_AT + (size_t)i * 8;

        modules[i] = hfn_shared_get32(at);
        functions[i] = hfn_shared_get32(at + 4);
    }
    return known;
}

/* ---- Names. */

/* The new text's offset, 0 if there is no room. */
static uint32_t append_name(hfn_live *live, uint8_t *entry, const char *name)
{
    uint32_t bytes = (uint32_t)strlen(name) + 2; /* an empty name ends the list of names */
    uint32_t end = hfn_shared_get32(entry + HFN_MODULE_NAMES_END);
    uint32_t *next = get_word(entry + HFN_MODULE_NAMES_NEXT);
    uint32_t at = __atomic_load_n(next, __ATOMIC_RELAXED);

    do {
        if (end > hfn_live_section_bytes(live, HFN_SECTION_STRINGS) || at > end ||
            end - at < bytes) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(next, &at, at + bytes, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    memcpy(hfn_live_section(live, HFN_SECTION_STRINGS) + at, name, bytes - 1);
    return at;
}

/* Which function without a name the search may take.  In a pool that is split, methods of both
 * kinds may be anywhere before the first free function of their kind, so a name is not there only
 * if free functions of both kinds were seen. */
typedef struct free_places {
    bool is_split, is_counted;
    uint32_t free[2]; /* the first free function for methods that are timed, counted */
} free_places;

static bool has_seen_all(free_places *f, uint32_t index)
{
    uint32_t kind = f->is_split ? hfn_live_is_counted_place(index) : f->is_counted;

    f->free[kind] = f->free[kind] == UINT32_MAX ? index : f->free[kind];
    return !f->is_split || (f->free[0] != UINT32_MAX && f->free[1] != UINT32_MAX);
}

static uint32_t *get_name_word(hfn_live *live, uint32_t function)
{
    return get_word(hfn_live_section(live, HFN_SECTION_FUNCTIONS) +
                    (uint64_t)function * HFN_FUNCTION_BYTES + HFN_FUNCTION_NAME);
}

/* The function with the name.  UINT32_MAX: none has it; f->free is then set. */
static uint32_t find_named(hfn_live *live, free_places *f, const char *name, uint32_t first,
                           uint32_t count, hfn_method_places places)
{
    uint32_t at = (uint32_t)hfn_hash_bytes(HFN_HASH_BEGIN, name, strlen(name));
    uint32_t step = places == HFN_METHODS_ALL ? 1 : 2;

    if (step == 2) {
        at = (at & ~1u) | (places == HFN_METHODS_ODD);
    }
    for (uint32_t tries = 0; tries < count / step; tries++, at += step) {
        uint32_t index = at & (count - 1);
        uint32_t known = __atomic_load_n(get_name_word(live, first + index), __ATOMIC_ACQUIRE);
        const char *text = hfn_live_text(live, known);

        if (strcmp(text, name) == 0) {
            return index;
        }
        if (text[0] == 0 && has_seen_all(f, index)) {
            break;
        }
    }
    return UINT32_MAX;
}

uint32_t hfn_live_get_method(hfn_live *live, uint32_t module, const char *name,
                             hfn_method_places places)
{
    bool is_counted = (places & HFN_METHODS_COUNTED) != 0;
    uint32_t first, count, text = 0, found, known;
    uint8_t *entry;

    if (!hfn_live_find_module(live, module, &entry, &first, &count)) {
        return UINT32_MAX;
    }
    for (;;) {
        free_places f = { hfn_shared_get32(entry + HFN_MODULE_IS_SPLIT) != 0,
                          is_counted,
                          { UINT32_MAX, UINT32_MAX } };

        found = find_named(live, &f, name, first, count,
                           (hfn_method_places)(places & ~HFN_METHODS_COUNTED));
        if (found != UINT32_MAX) {
            return found;
        }
        found = f.free[is_counted];
        if (found == UINT32_MAX || (text == 0 && (text = append_name(live, entry, name)) == 0)) {
            break;
        }
        known = __atomic_load_n(get_name_word(live, first + found), __ATOMIC_ACQUIRE);
        /* else another thread has taken the function */
        if (hfn_live_text(live, known)[0] == 0 &&
            __atomic_compare_exchange_n(get_name_word(live, first + found), &known, text, false,
                                        __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
            return found;
        }
    }
    __atomic_fetch_add(get_word(entry + HFN_MODULE_METHODS_LOST), 1, __ATOMIC_RELAXED);
    return UINT32_MAX;
}
