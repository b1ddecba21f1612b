/* SPDX-License-Identifier: MIT */
/* .pdata and the data of handlers: which entries are functions, which are fragments, and how broken
 * entries are skipped. */
#include "functions/bounds_pdata.h"

#include "base/counting_env.h"
#include "check.h"
#include "functions/handlers.h"
#include "image/pe_sample.h"

#include <hotfn/lowlevel/functions.h>

static hotfn_image *open_image(const pe_builder *b, const hotfn_env *env)
{
    hotfn_image *image = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (!CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->data, b->size, "sample", env, &err),
                      HOTFN_OK)) {
        printf("#   %s\n", err.text);
    }
    return image;
}

/* The bounds of an image whose .rdata has these words; its .pdata begins at pdata_at in .rdata. */
static hfn_fde_list bounds_of(uint16_t machine, const uint32_t *words, uint32_t count,
                              uint32_t pdata_at, uint32_t pdata_bytes, counting *c)
{
    pe_builder *b = pe_new(64, machine);
    hotfn_env env = counting_env(c);
    static uint8_t text[0x400];
    hfn_fde_list list = { NULL, 0, 0 };

    pe_add(b, ".text", PE_CODE, text, sizeof text, 0);
    pe_add(b, ".rdata", PE_DATA, words, count * 4, 0);
    pe_directory(b, 3, PE_RDATA + pdata_at, pdata_bytes);
    pe_finish(b);
    hotfn_image *image = open_image(b, &env);
    CHECK(hfn_bounds_pdata(&list, image, &env));
    hotfn_image_close(image);
    free(b);
    return list;
}

static void fragments_are_distinguished_from_functions(void)
{
    pe_builder *b = pe_new_sample();
    hotfn_env env = HOTFN_ENV_INIT;
    hfn_fde_list list;
    hotfn_image *image = open_image(b, NULL);
    counting c;

    env = counting_env(&c);
    CHECK(hfn_bounds_pdata(&list, image, &env));
    CHECK_EQ_U64(list.count, 3);
    CHECK_EQ_U64(list.items[0].rva, PE_GUARDED);
    CHECK_EQ_U64(list.items[0].byte_count, 12);
    CHECK_EQ_U64(list.items[0].flags, HFN_FDE_LSDA);
    CHECK_EQ_I64(list.items[0].cfa_offset, 8);
    CHECK_EQ_U64(list.items[1].flags, 0);
    CHECK_EQ_U64(list.items[2].rva, PE_COLD);
    CHECK_EQ_U64(list.items[2].flags, HFN_FDE_INSIDE);
    CHECK_EQ_I64(c.warnings, 0);
    hfn_fde_list_finish(&list, &env);
    CHECK_EQ_U64(c.live_bytes, 0);
    hotfn_image_close(image);
    free(b);
}

/* .rdata: plain unwind information at 0, chained one at 16 (to the entry at 64), .pdata at 64. */
static void a_chained_entry_at_the_end_of_its_function_extends_it(void)
{
    static const uint32_t words[] = {
        1,
        0,
        0,
        0,
        0x21,
        PE_TEXT,
        PE_TEXT + 4,
        PE_RDATA,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        PE_TEXT,
        PE_TEXT + 4,
        PE_RDATA,
        PE_TEXT + 4,
        PE_TEXT + 16,
        PE_RDATA + 16,
        PE_TEXT + 16,
        PE_TEXT + 32,
        PE_RDATA + 16,
        PE_TEXT + 48,
        PE_TEXT + 64,
        PE_RDATA + 16,
    };
    counting c;
    hfn_fde_list list = bounds_of(0x8664, words, 28, 64, 48, &c);
    hotfn_env env = HOTFN_ENV_INIT;

    if (CHECK_EQ_U64(list.count, 2)) {
        CHECK_EQ_U64(list.items[0].byte_count, 32);
        CHECK_EQ_U64(list.items[0].flags, 0);
        CHECK_EQ_U64(list.items[1].flags, HFN_FDE_INSIDE);
    }
    env.realloc_fn = counting_realloc;
    env.realloc_user = &c;
    hfn_fde_list_finish(&list, &env);
}

static void finish(hfn_fde_list *list, counting *c)
{
    hotfn_env env = HOTFN_ENV_INIT;

    env.realloc_fn = counting_realloc;
    env.realloc_user = c;
    hfn_fde_list_finish(list, &env);
}

/* The entries: one chained to itself; unwind information outside the image; an unknown version; an
 * end before the beginning; an entry outside the code; a valid entry. */
static void broken_entries_are_skipped_with_a_warning(void)
{
    static const uint32_t words[] = {
        1,
        0,
        0,
        0,
        0x21,
        PE_TEXT,
        PE_TEXT + 4,
        PE_RDATA + 16,
        7,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        PE_TEXT,
        PE_TEXT + 4,
        PE_RDATA + 16,
        PE_TEXT + 8,
        PE_TEXT + 12,
        0x70000000,
        PE_TEXT + 16,
        PE_TEXT + 20,
        PE_RDATA + 32,
        PE_TEXT + 24,
        PE_TEXT + 20,
        PE_RDATA,
        0x70000000,
        0x70000010,
        PE_RDATA,
        PE_TEXT + 32,
        PE_TEXT + 40,
        PE_RDATA,
    };
    counting c;
    hfn_fde_list list = bounds_of(0x8664, words, 34, 64, 72, &c);

    if (CHECK_EQ_U64(list.count, 1)) {
        CHECK_EQ_U64(list.items[0].rva, PE_TEXT + 32);
    }
    CHECK(c.warnings > 0);
    CHECK(strstr(c.last_log, "broken") != NULL);
    finish(&list, &c);
}

/* Packed data: a function of 5 instructions (flag 1), a fragment of 3 (flag 2), a reserved kind
 * (flag 3). Then two .xdata records, each with one word of codes: 4 instructions, with codes that
 * begin with end_c; 6 instructions, with codes that begin with end, and a handler. */
static void arm64_entries_contain_their_length(void)
{
    static const uint32_t words[] = {
        4 | 1u << 27 | 1u << 21,
        0xe4e5,
        6 | 1u << 27 | 1u << 21 | 1u << 20,
        0xe4,
        PE_TEXT,
        0,
        0,
        0,
        PE_TEXT,
        5 << 2 | 1,
        PE_TEXT + 20,
        3 << 2 | 2,
        PE_TEXT + 32,
        4 << 2 | 3,
        PE_TEXT + 64,
        PE_RDATA,
        PE_TEXT + 80,
        PE_RDATA + 8,
    };
    counting c;
    hfn_fde_list list = bounds_of(0xaa64, words, 18, 32, 40, &c);

    if (CHECK_EQ_U64(list.count, 4)) {
        CHECK_EQ_U64(list.items[0].byte_count, 20);
        CHECK_EQ_U64(list.items[0].flags, 0);
        CHECK_EQ_U64(list.items[1].byte_count, 12);
        CHECK_EQ_U64(list.items[1].flags, HFN_FDE_INSIDE);
        CHECK_EQ_U64(list.items[2].byte_count, 16);
        CHECK_EQ_U64(list.items[2].flags, HFN_FDE_INSIDE);
        CHECK_EQ_U64(list.items[3].byte_count, 24);
        CHECK_EQ_U64(list.items[3].flags, HFN_FDE_LSDA);
    }
    CHECK_EQ_I64(c.warnings, 1);
    finish(&list, &c);
}

static void an_unsorted_table_is_sorted(void)
{
    static const uint32_t words[] = {
        1, 0, 0, 0, PE_TEXT + 32, PE_TEXT + 40, PE_RDATA, PE_TEXT, PE_TEXT + 8, PE_RDATA,
    };
    counting c;
    hfn_fde_list list = bounds_of(0x8664, words, 10, 16, 24, &c);

    if (CHECK_EQ_U64(list.count, 2)) {
        CHECK(list.items[0].rva < list.items[1].rva);
    }
    finish(&list, &c);
}

typedef struct seen {
    uint64_t called, jumped, guard_begin, guard_end;
} seen;

static void see_call(void *user, uint64_t rva)
{
    ((seen *)user)->called = rva;
}

static void see_jump(void *user, uint64_t rva)
{
    ((seen *)user)->jumped = rva;
}

static void see_guard(void *user, uint64_t begin, uint64_t end)
{
    ((seen *)user)->guard_begin = begin;
    ((seen *)user)->guard_end = end;
}

static void a_scope_table_is_read(void)
{
    pe_builder *b = pe_new_sample();
    hotfn_image *image = open_image(b, NULL);
    seen s = { 0, 0, 0, 0 };
    const hfn_handler_visitor visitor = { see_call, see_jump, see_guard, &s };

    hfn_each_handler(image, &visitor);
    CHECK_EQ_U64(s.called, PE_FILTER);
    CHECK_EQ_U64(s.jumped, PE_GUARDED + 7);
    CHECK_EQ_U64(s.guard_begin, PE_GUARDED + 4);
    CHECK_EQ_U64(s.guard_end, PE_GUARDED + 7);
    hotfn_image_close(image);
    free(b);
}

/* Visits the image of a_scope_table_is_read with other data for the handler. */
static seen visit_data(const uint8_t *data, size_t size, uint32_t first_word)
{
    pe_builder *b = pe_new_sample();
    size_t rdata = PE_HEAD_BYTES + 512;
    seen s = { 0, 0, 0, 0 };
    const hfn_handler_visitor visitor = { see_call, see_jump, see_guard, &s };

    pe_put(b, rdata + (PE_UNWIND - PE_RDATA) + 12, first_word, 4);
    memcpy(b->data + rdata + 0x200, data, size);
    hotfn_image *image = open_image(b, NULL);
    hfn_each_handler(image, &visitor);
    hotfn_image_close(image);
    free(b);
    return s;
}

#define WORD(value) (uint8_t)(value), (uint8_t)((value) >> 8), (uint8_t)((value) >> 16), 0

/* A FuncInfo with one try block and one catch block, compiled without /EHs: state 0 holds from
 * PE_GUARDED + 4 on. */
static void a_func_info_is_read(void)
{
    static const uint8_t data[] = {
        WORD(0x930522),
        WORD(0),
        WORD(0),
        WORD(1),
        WORD(PE_RDATA + 0x230),
        WORD(2),
        WORD(PE_RDATA + 0x250),
        WORD(0),
        WORD(0),
        WORD(0),
        WORD(0),
        WORD(0), /* 0 up to offset 0x230 */
        WORD(0),
        WORD(0),
        WORD(1),
        WORD(1),
        WORD(PE_RDATA + 0x260),
        WORD(0),
        WORD(0),
        WORD(0),
        WORD(PE_GUARDED),
        0xff,
        0xff,
        0xff,
        0xff,
        WORD(PE_GUARDED + 4),
        WORD(0), /* 0 up to offset 0x260 */
        WORD(0),
        WORD(0),
        WORD(0),
        WORD(PE_COLD),
        WORD(0),
    };
    uint8_t copy[sizeof data];

    memcpy(copy, data, sizeof data);
    copy[3] = 0x19;
    seen s = visit_data(copy, sizeof copy, PE_RDATA + 0x200);
    CHECK_EQ_U64(s.called, PE_COLD);
    CHECK_EQ_U64(s.guard_begin, PE_GUARDED + 4);
    CHECK_EQ_U64(s.guard_end, PE_GUARDED + 12);
}

/* A compressed FuncInfo with the flags TryBlockMap and EHs: one try block of states 0, 0, 1, with
 * one catch block.  Execution continues 7 bytes after the beginning of the function. */
static void a_compressed_func_info_is_read(void)
{
    static const uint8_t data[] = {
        0x10 | 0x20, WORD(PE_RDATA + 0x208),
        0,           0,
        0,           1 << 1,
        0,           0,
        1 << 1,      WORD(PE_RDATA + 0x214),
        0,           0,
        0,           0,
        1 << 1,      1 | 4 | 1 << 4,
        5 << 1,      0x21,
        0x03,        WORD(PE_COLD),
        7 << 1,
    };
    uint8_t copy[sizeof data];
    seen s = visit_data(data, sizeof data, PE_RDATA + 0x200);

    CHECK_EQ_U64(s.called, PE_COLD);
    CHECK_EQ_U64(s.jumped, PE_GUARDED + 7);
    CHECK_EQ_U64(s.guard_end, 0);
    memcpy(copy, data, sizeof data);
    copy[0] = 0x10; /* without EHs a fault may be caught anywhere in the body */
    s = visit_data(copy, sizeof copy, PE_RDATA + 0x200);
    CHECK_EQ_U64(s.guard_begin, PE_GUARDED + 4);
    CHECK_EQ_U64(s.guard_end, PE_GUARDED + 12);
    copy[0x14 + 5] = 0xff; /* an invalid address of the catch block: the whole data is ignored */
    copy[0x14 + 6] = 0xff;
    s = visit_data(copy, sizeof copy, PE_RDATA + 0x200);
    CHECK_EQ_U64(s.called, PE_FILTER);
    CHECK_EQ_U64(s.jumped, 0);
}

/* The data of a handler that checks the stack is a number, not an RVA. */
static void the_data_of_a_stack_check_guards_no_code(void)
{
    const seen s = visit_data((const uint8_t *)"", 0, 0x30);

    CHECK_EQ_U64(s.called, PE_FILTER);
    CHECK_EQ_U64(s.guard_end, 0);
}

static const check_test tests[] = {
    CHECK_TEST(fragments_are_distinguished_from_functions),
    CHECK_TEST(a_chained_entry_at_the_end_of_its_function_extends_it),
    CHECK_TEST(broken_entries_are_skipped_with_a_warning),
    CHECK_TEST(arm64_entries_contain_their_length),
    CHECK_TEST(an_unsorted_table_is_sorted),
    CHECK_TEST(a_scope_table_is_read),
    CHECK_TEST(a_func_info_is_read),
    CHECK_TEST(a_compressed_func_info_is_read),
    CHECK_TEST(the_data_of_a_stack_check_guards_no_code),
};
CHECK_MAIN(tests)
