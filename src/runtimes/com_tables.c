/* SPDX-License-Identifier: MIT */
/* Records of tables are published by their address, and not changed afterwards, except that slots
 * are taken back that turn out to belong to another table. */
#include "runtimes/com_tables.h"

#include "arch/method_pool.h"
#include "os/os.h"
#include "runtimes/com_objects.h"
#include "runtimes/com_results.h"
#include "session/joined.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_TABLES = 4096, /* a power of two */
    MAX_PROBES = 64,
    MAX_SLOTS = HFN_COM_MAX_METHODS,
    QUERY = 0,
    RELEASE = 2,
    CREATE = 3,
    NUMBER_BYTES = 8,
};

typedef struct table_record {
    hfn_com_table table;
    hfn_guid iid;     /* of the interface with the most slots */
    bool is_declared; /* it is the type of an argument */
    uint64_t originals[MAX_SLOTS];
    uint64_t replaced[MAX_SLOTS];
} table_record;

typedef struct replacement {
    const hfn_methods *methods;
    const hfn_com_functions *functions;
    bool is_declared;
} replacement;

static table_record records[MAX_TABLES];
static _Atomic uint32_t lock_word;

static void lock_tables(void)
{
    while (atomic_exchange_explicit(&lock_word, 1, memory_order_acquire)) {
        hfn_os_wait_word(&lock_word, 1, 20000);
    }
}

static void unlock_tables(void)
{
    atomic_store_explicit(&lock_word, 0, memory_order_release);
}

static uint64_t read_word(uint64_t address)
{
    return *(const uint64_t *)(uintptr_t)address;
}

/* The record of the address, or a free one; NULL: there is no room. */
static table_record *find_record(uint64_t address)
{
    uint32_t at = (uint32_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 40);

    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        table_record *r = &records[(at + i) % MAX_TABLES];
        /* Pairs with the release store in publish_record. */
        uint64_t known = __atomic_load_n(&r->table.address, __ATOMIC_ACQUIRE);

        if (known == address || known == 0) {
            return r;
        }
    }
    return NULL;
}

/* NULL: the slots of the table were not replaced. */
static const table_record *find_replaced(uint64_t table)
{
    const table_record *r = find_record(table);

    return r && r->table.address && r->table.slot_count > 0 ? r : NULL;
}

/* By function of the pool that leads to hfn_com_functions: the record whose original it calls, plus
 * 1. */
static uint16_t owners[HFN_POOL_FUNCTIONS];

const hfn_com_table *hfn_com_find_table(const hfn_methods *methods, uint64_t pointer,
                                        const void *caller)
{
    const table_record *r = find_replaced(read_word(pointer));
    uint32_t function;
    hfn_com_pointer known;

    if (!r && hfn_com_find_pointer(&known, pointer)) {
        r = known.table ? find_replaced(known.table) : NULL;
    }
    if (!r) {
        function = hfn_methods_get_index(methods, (hotfn_code)(uintptr_t)caller);
        r = function != UINT32_MAX && owners[function] ? &records[owners[function] - 1] : NULL;
    }
    return r ? &r->table : NULL;
}

/* ---- Code of a module (PE format, COFF header and section table). */

typedef struct module_search {
    uint64_t address, base, end;
} module_search;

static bool visit_module(void *user, const hfn_os_module *m)
{
    module_search *search = user;

    if (search->address >= m->base && search->address < m->end) {
        search->base = m->base;
        search->end = m->end;
        return false;
    }
    return true;
}

static uint32_t read_u32(uint64_t address)
{
    uint32_t value;

    memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
    return value;
}

static bool is_code(uint64_t base, uint64_t address)
{
    enum { EXECUTE = 0x20000000, SECTION_BYTES = 40 };
    uint64_t header = base + read_u32(base + 0x3C);
    uint32_t count = read_u32(header + 6) & 0xFFFF;
    uint64_t section = header + 24 + (read_u32(header + 20) & 0xFFFF);

    for (; count > 0; count--, section += SECTION_BYTES) {
        uint64_t begin = base + read_u32(section + 12);

        if (address >= begin && address < begin + read_u32(section + 8)) {
            return (read_u32(section + 36) & EXECUTE) != 0;
        }
    }
    return false;
}

/* The interface of the table that is being replaced; the lock protects it. */
static hfn_com_interface interface;

/* The slots before the next table that is known. */
static uint32_t limit_slots(uint64_t table, uint32_t count)
{
    for (uint32_t i = 0; i < MAX_TABLES; i++) {
        uint64_t other = records[i].table.address;

        if (other > table && (other - table) / 8 < count) {
            count = (uint32_t)((other - table) / 8);
        }
    }
    return count;
}

/* What the slot has without hotfn. */
static uint64_t read_slot(const table_record *r, uint64_t table, uint32_t slot)
{
    return slot < r->table.slot_count ? r->originals[slot] : read_word(table + 8 * slot);
}

/* The code that the slot leads to: a proxy's may be a jump through an import of its module (Intel
 * SDM vol. 2, JMP: FF /4). */
static uint64_t follow_import(uint64_t code)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)code;

    bytes += bytes[0] == 0x48; /* REX.W */
    return bytes[0] == 0xFF && bytes[1] == 0x25
               ? read_word((uint64_t)(uintptr_t)(bytes + 6) +
                           (uint64_t)(int64_t)(int32_t)read_u32((uint64_t)(uintptr_t)bytes + 2))
               : code;
}

/* The number of slots; 0: the table is left alone. */
static uint32_t count_slots(const table_record *r, uint64_t table, const hfn_guid *iid)
{
    module_search search = { table, 0, 0 };
    uint32_t known, count = 0;

    hfn_os_each_module(visit_module, &search);
    /* The proxy of an object in another apartment has its functions in another module. */
    if (search.base == 0 || !is_code(search.base, read_slot(r, table, QUERY)) ||
        !is_code(search.base, follow_import(read_slot(r, table, QUERY)))) {
        return 0;
    }
    hfn_com_describe(&interface, iid, search.base, search.end);
    known = interface.count ? interface.count : MAX_SLOTS;
    while (count < known && table + 8 * (count + 1) <= search.end &&
           is_code(search.base, read_slot(r, table, count))) {
        count++;
    }
    return count > RELEASE ? limit_slots(table, count) : 0;
}

/* ---- Slots. */

static void write_slots(uint64_t table, const uint64_t *from, uint32_t first, uint32_t count)
{
    hfn_os_writable_text text;
    uint64_t begin = table + 8 * first, end = table + 8 * count;

    if (first < count &&
        hfn_os_open_text(&text, begin & ~UINT64_C(4095), (end + 4095) & ~UINT64_C(4095))) {
        for (uint32_t i = first; i < count; i++) {
            __atomic_store_n((uint64_t *)(uintptr_t)(table + 8 * i), from[i], __ATOMIC_RELAXED);
        }
        hfn_os_close_text(&text);
    }
}

/* The slots of another record may run into this table. */
static void take_back_slots(uint64_t table)
{
    for (uint32_t i = 0; i < MAX_TABLES; i++) {
        table_record *r = &records[i];
        uint64_t begin = r->table.address, first = (table - begin) / 8;

        if (begin && begin < table && first < r->table.slot_count) {
            write_slots(begin, r->originals, (uint32_t)first, r->table.slot_count);
            r->table.slot_count = (uint32_t)first;
        }
    }
}

static hotfn_code get_target(const hfn_com_functions *functions, const table_record *r,
                             uint32_t slot)
{
    return slot == QUERY                       ? functions->query
           : slot == RELEASE                   ? functions->release
           : slot == CREATE && r->table.create ? functions->create
                                               : (hotfn_code)(uintptr_t)r->originals[slot];
}

/* A method can be called from the pool's frame if it has few arguments, which are known from its
 * type or from the proof of its code. */
static bool can_frame(const table_record *r, uint32_t slot)
{
    uint32_t arguments = interface.methods[slot].arguments;

    return arguments > 0 ? arguments <= HFN_POOL_MAX_ARGUMENTS
                         : hfn_session_may_frame(r->originals[slot], HFN_POOL_MAX_ARGUMENTS);
}

/* The function of the pool for the slot; NULL: there is none.  A function that leads to
 * hfn_com_functions serves only tables with the same original. */
static hotfn_code choose_function(const table_record *r, const replacement *how, char *name,
                                  uint32_t slot)
{
    enum { MAX_NUMBER = 99 };
    hotfn_code target = get_target(how->functions, r, slot), function = NULL;
    char *end = name + strlen(name);
    uint16_t *owner;

    for (uint32_t number = 2; number <= MAX_NUMBER; number++) {
        function = hfn_methods_get_numbered(how->methods, name, target, can_frame(r, slot));
        if (!function || target == (hotfn_code)(uintptr_t)r->originals[slot]) {
            return function;
        }
        owner = &owners[hfn_methods_get_index(how->methods, function)];
        *owner = *owner ? *owner : (uint16_t)(r - records + 1);
        if (records[*owner - 1].originals[slot] == r->originals[slot]) {
            return function;
        }
        snprintf(end, NUMBER_BYTES, " (%u)", number);
    }
    return NULL;
}

/* From slot `first` on. */
static void fill_slots(table_record *r, const replacement *how, const hfn_guid *class,
                       uint32_t first)
{
    char name[256 + NUMBER_BYTES], *end;

    hfn_guid_write(name, class);
    end = name + strlen(name);
    memcpy(end, "::", 2);
    for (uint32_t i = first; i < r->table.slot_count; i++) {
        hotfn_code function;

        hfn_com_write_method(end + 2, 256 - HFN_GUID_BYTES - 2, &interface, i);
        function = choose_function(r, how, name, i);
        if (function) {
            hfn_com_set_result(how->methods, function, &interface.methods[i], class);
        }
        r->replaced[i] =
            (uint64_t)(uintptr_t)(function ? function : get_target(how->functions, r, i));
    }
}

static void make_record(table_record *r, uint64_t table, const replacement *how,
                        const hfn_guid *class, const hfn_guid *iid)
{
    uint64_t *originals = r->originals;

    r->table.slot_count = count_slots(r, table, iid);
    r->table.class = *class;
    r->iid = *iid;
    r->is_declared = how->is_declared;
    for (uint32_t i = 0; i < r->table.slot_count; i++) {
        originals[i] = read_word(table + 8 * i);
    }
    if (r->table.slot_count == 0) { /* known, and left alone */
        __atomic_store_n(&r->table.address, table, __ATOMIC_RELEASE);
        return;
    }
    r->table.query = (hotfn_code)(uintptr_t)originals[QUERY];
    r->table.release = (hotfn_code)(uintptr_t)originals[RELEASE];
    if (hfn_guid_equals(iid, &hfn_iid_class_factory)) {
        r->table.create = (hotfn_code)(uintptr_t)originals[CREATE];
    }
    fill_slots(r, how, class, 0);
    __atomic_store_n(&r->table.address, table, __ATOMIC_RELEASE);
    write_slots(table, r->replaced, 0, r->table.slot_count);
}

/* Interfaces of which others are extensions: a table that was seen as one of these may have more
 * slots. */
static bool is_base(const hfn_guid *iid)
{
    static const hfn_guid persist = HFN_STANDARD_GUID(0x10C);

    return hfn_guid_equals(iid, &hfn_iid_unknown) || hfn_guid_equals(iid, &hfn_iid_dispatch) ||
           hfn_guid_equals(iid, &persist);
}

static bool may_extend(const table_record *r, const replacement *how, const hfn_guid *iid)
{
    return r->table.slot_count > 0 && !is_base(iid) &&
           (is_base(&r->iid) || (r->is_declared && !how->is_declared));
}

static void extend_record(table_record *r, const replacement *how, const hfn_guid *class,
                          const hfn_guid *iid)
{
    uint64_t table = r->table.address;
    uint32_t before = r->table.slot_count, count = count_slots(r, table, iid);

    r->iid = *iid;
    r->is_declared = how->is_declared;
    if (count > before) {
        for (uint32_t i = before; i < count; i++) {
            r->originals[i] = read_word(table + 8 * i);
        }
        r->table.slot_count = count;
        fill_slots(r, how, class, before);
        write_slots(table, r->replaced, before, count);
    }
}

bool hfn_com_replace_slots(const hfn_methods *methods, const hfn_com_functions *functions,
                           uint64_t pointer, const hfn_guid *class, const hfn_guid *iid,
                           bool is_declared)
{
    const replacement how = { methods, functions, is_declared };
    uint64_t table = read_word(pointer);
    table_record *r = find_record(table);
    bool is_left = false;

    if (find_replaced(table)) {
        hfn_com_set_table(pointer, table);
    }
    if (!r ||
        (r->table.address && (r->table.slot_count == 0 || read_word(table) == r->replaced[QUERY]) &&
         !may_extend(r, &how, iid))) {
        return false;
    }
    lock_tables();
    r = find_record(table);
    if (r && r->table.address == 0) {
        take_back_slots(table);
        make_record(r, table, &how, class, iid);
        is_left = r->table.slot_count == 0;
    } else if (r && r->table.slot_count > 0 && read_word(table) == r->originals[QUERY]) {
        write_slots(table, r->replaced, 0, r->table.slot_count); /* its module was loaded again */
    } else if (r && may_extend(r, &how, iid)) {
        extend_record(r, &how, class, iid);
    }
    unlock_tables();
    if (find_replaced(table)) {
        hfn_com_set_table(pointer, table);
    }
    return is_left;
}
