/* SPDX-License-Identifier: MIT */
/* A function list in memory, and its two file formats. */
#ifndef HFN_SCAN_LIST_FILE_H
#define HFN_SCAN_LIST_FILE_H

#include "base/memory.h"
#include "base/span.h"

#include <hotfn/lowlevel/lists.h>

typedef struct hfn_list_item {
    uint64_t rva, byte_count;
    const char *name, *module; /* views */
    uint32_t index;
} hfn_list_item;

struct hotfn_list {
    hotfn_env env;
    hfn_arena texts;
    hotfn_list_info info; /* entry_count is the number of items */
    hfn_list_item *items;
    size_t capacity;
};

/* A growing buffer; failed is set once an allocation has failed. */
typedef struct hfn_list_bytes {
    const hotfn_env *env;
    uint8_t *data;
    size_t size, capacity;
    bool failed;
} hfn_list_bytes;

hotfn_status hfn_list_append(hotfn_list *list, const hfn_list_item *item, hotfn_error *err);

/* list_wire.c (binary), list_text.c: read and write the contents of a whole file. */
void hfn_list_write_wire(const hotfn_list *list, hfn_list_bytes *out);
hotfn_status hfn_list_read_wire(hotfn_list *list, hfn_span bytes, const char *name,
                                hotfn_error *err);
void hfn_list_write_text(const hotfn_list *list, hfn_list_bytes *out);
hotfn_status hfn_list_read_text(hotfn_list *list, hfn_span bytes, const char *name,
                                hotfn_error *err);

void hfn_list_put(hfn_list_bytes *out, const void *bytes, size_t count);

#endif
