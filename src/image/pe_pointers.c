/* SPDX-License-Identifier: MIT */
/*
 * Every address that the loader or the run-time library finds in a PE image: words with a base
 * relocation (PE Format, 'The .reloc Section'), exports, the entry point, TLS callbacks, the tables
 * of the load configuration (safe exception handlers, Control Flow Guard).  Addresses that
 * instructions compute are found by the decoder, and exception handlers by
 * functions/bounds_pdata.c.
 */
#include "image/inside.h"
#include "image/pe.h"
#include "image/pe_numbers.h"

enum { BLOCK_HEADER_BYTES = 8, TLS_CALLBACKS_MAX = 4096 };

/* Where the load configuration keeps things, by word width. */
typedef struct config_layout {
    uint32_t handlers_at, handler_count_at;
    uint32_t guard_check_at, guard_dispatch_at;
    uint32_t guard_table_at, guard_count_at, guard_flags_at;
} config_layout;

static const config_layout narrow = { 64, 68, 72, 76, 80, 84, 88 };
static const config_layout wide = { 96, 104, 112, 120, 128, 136, 144 };

static const config_layout *layout_of(const hotfn_image *image)
{
    return image->word_bytes == 8 ? &wide : &narrow;
}

/* The load configuration, limited to the size in its first field: older versions are shorter. */
static hfn_span load_config(const hotfn_image *image)
{
    uint64_t rva;
    hfn_span config = hfn_pe_directory(image, HFN_PE_LOAD_CONFIG, &rva);
    uint32_t bytes = 0;

    /* The size in the directory may be 64 whatever the true size is (PE Format). */
    if (config.size) {
        config = hfn_image_span(image, rva);
    }
    hfn_span_u32(config, 0, &bytes);
    return hfn_span_sub(config, 0, bytes < config.size ? bytes : config.size);
}

static uint32_t bytes_of_reloc(uint32_t type)
{
    switch (type) {
    case HFN_PE_RELOC_HIGH:
    case HFN_PE_RELOC_LOW:
    case HFN_PE_RELOC_HIGHADJ: return 2;
    case HFN_PE_RELOC_HIGHLOW: return 4;
    case HFN_PE_RELOC_ARM_MOV32:
    case HFN_PE_RELOC_THUMB_MOV32:
    case HFN_PE_RELOC_DIR64: return 8;
    default: return 0;
    }
}

/* One block: the relocations of one page. */
static void visit_block(hfn_span entries, uint32_t page, hfn_relocated_fn visit, void *user)
{
    uint16_t entry;

    for (uint64_t at = 0; hfn_span_u16(entries, at, &entry); at += 2) {
        uint32_t bytes = bytes_of_reloc(entry >> 12);
        if (bytes) {
            visit(user, (uint64_t)page + (entry & 0xfff), bytes);
        }
        if (entry >> 12 == HFN_PE_RELOC_HIGHADJ) {
            at += 2; /* the next entry is its low half */
        }
    }
}

void hfn_pe_each_relocated(const hotfn_image *image, hfn_relocated_fn visit, void *user)
{
    uint64_t rva;
    hfn_span table = hfn_pe_directory(image, HFN_PE_RELOCATIONS, &rva);
    uint32_t page, bytes;

    for (uint64_t at = 0; hfn_span_u32(table, at, &page) && hfn_span_u32(table, at + 4, &bytes) &&
                          bytes >= BLOCK_HEADER_BYTES && hfn_span_has(table, at, bytes);
         at += bytes) {
        visit_block(
            hfn_span_sub(table, at + BLOCK_HEADER_BYTES, (uint64_t)bytes - BLOCK_HEADER_BYTES),
            page, visit, user);
    }
}

typedef struct walk {
    const hotfn_image *image;
    hfn_pointer_fn visit;
    void *user;
} walk;

static void visit_relocated(void *user, uint64_t rva, uint32_t byte_count)
{
    const walk *w = user;
    uint64_t target;

    if (byte_count == w->image->word_bytes &&
        hfn_pe_word_rva(w->image, hfn_image_span(w->image, rva), 0, &target)) {
        w->visit(w->user, target);
    }
}

/* PE Format, 'The TLS Directory': AddressOfCallBacks is the fourth word, a list that 0 ends. */
void hfn_pe_each_tls_callback(const hotfn_image *image, hfn_pointer_fn visit, void *user)
{
    uint64_t rva, list, target;
    hfn_span tls = hfn_pe_directory(image, HFN_PE_TLS, &rva);

    if (!hfn_pe_word_rva(image, tls, 3 * (uint64_t)image->word_bytes, &list)) {
        return;
    }
    hfn_span words = hfn_image_span(image, list);
    for (uint64_t i = 0; i < TLS_CALLBACKS_MAX; i++) {
        if (!hfn_pe_word_rva(image, words, i * image->word_bytes, &target)) {
            return;
        }
        visit(user, target);
    }
}

void hfn_pe_each_guard_function(const hotfn_image *image, hfn_pointer_fn visit, void *user)
{
    const config_layout *layout = layout_of(image);
    const uint32_t slots[] = { layout->guard_check_at, layout->guard_dispatch_at };
    hfn_span config = load_config(image);
    uint64_t slot, target;

    for (size_t i = 0; i < HFN_COUNT_OF(slots); i++) {
        if (hfn_pe_word_rva(image, config, slots[i], &slot) &&
            hfn_pe_word_rva(image, hfn_image_span(image, slot), 0, &target)) {
            visit(user, target);
        }
    }
}

/* A table of RVAs, each with `extra` more bytes; never more of them than the file holds. */
static void visit_table(const walk *w, hfn_span config, uint32_t table_at, uint32_t count_at,
                        uint32_t extra)
{
    uint64_t table, count = 0;
    uint32_t target;

    if (!hfn_pe_word_rva(w->image, config, table_at, &table) ||
        !hfn_span_word(config, count_at, w->image->word_bytes, &count)) {
        return;
    }
    hfn_span entries = hfn_image_span(w->image, table);
    for (uint64_t i = 0; i < count && hfn_span_u32(entries, i * (4 + extra), &target); i++) {
        w->visit(w->user, target);
    }
}

/* PE Format, 'Export Address Table'; what lies in the directory itself is a forwarder's name. */
static void visit_exports(const walk *w)
{
    uint64_t ignored;
    hfn_span directory = hfn_pe_directory(w->image, HFN_PE_EXPORTS, &ignored);
    uint32_t count = 0, table = 0, target;

    if (!hfn_span_u32(directory, 20, &count) || !hfn_span_u32(directory, 28, &table)) {
        return;
    }
    hfn_span entries = hfn_image_span(w->image, table);
    for (uint64_t i = 0; i < count && hfn_span_u32(entries, 4 * i, &target); i++) {
        if (target && !hfn_pe_directory_has(w->image, HFN_PE_EXPORTS, target)) {
            w->visit(w->user, target);
        }
    }
}

void hfn_pe_each_pointer(const hotfn_image *image, hfn_pointer_fn visit, void *user)
{
    const config_layout *layout = layout_of(image);
    hfn_span config = load_config(image);
    walk w = { image, visit, user };
    uint32_t guard_flags = 0;

    if (image->info.entry_rva) {
        visit(user, image->info.entry_rva);
    }
    hfn_pe_each_relocated(image, visit_relocated, &w);
    visit_exports(&w);
    hfn_pe_each_tls_callback(image, visit, user);
    hfn_pe_each_guard_function(image, visit, user);
    if (image->info.raw_machine == HFN_PE_MACHINE_I386) {
        visit_table(&w, config, layout->handlers_at, layout->handler_count_at, 0);
    }
    /* IMAGE_GUARD_CF_FUNCTION_TABLE_SIZE_MASK: the high four bits. */
    if (hfn_span_u32(config, layout->guard_flags_at, &guard_flags)) {
        visit_table(&w, config, layout->guard_table_at, layout->guard_count_at, guard_flags >> 28);
    }
}
