/* SPDX-License-Identifier: MIT */
/* Finds a function's unwind data by the sorted table, and checks its frame in each range of the
 * code. */
#include "functions/eh_frame_find.h"

#include "check.h"
#include "functions/eh_frame_builder.h"

enum { AT = 0x10000, TEXT = 0x4000, MAX_ROWS = 16 }; /* addresses of the section and the code */

typedef struct tables {
    elf_bytes bytes;
    uint64_t header;
    hfn_eh_table table;
} tables;

/* Builds tables of two functions: one with these instructions at TEXT, one without any. */
static bool make_tables(tables *t, const char *cie_code, size_t cie_bytes, const char *code,
                        size_t code_bytes)
{
    elf_bytes *b = &t->bytes;
    size_t cie, first, second, header;

    memset(t, 0, sizeof *t);
    b->wide = true;
    cie = put_cie(b, "zR", "\x1b", 1, cie_code, cie_bytes);
    first = put_fde(b, cie, AT, TEXT, 100, code, code_bytes);
    second = put_fde(b, cie, AT, TEXT + 0x200, 50, "", 0);
    header = b->size;
    put(b, 1, 1), put(b, 0x1b, 1), put(b, 0x03, 1), put(b, 0x3b, 1);
    put(b, (uint64_t)0 - (header + 4), 4), put(b, 2, 4);
    put(b, TEXT - (AT + header), 4), put(b, first - header, 4);
    put(b, TEXT + 0x200 - (AT + header), 4), put(b, second - header, 4);
    t->header = AT + header;
    const hfn_eh_bytes all = { { b->data, b->size, false }, AT, 0, 8 };
    return hfn_eh_table_open(&t->table, all, t->header);
}

typedef struct row {
    uint64_t begin, end;
    int64_t cfa;       /* offset from rsp; 0: not relative to rsp */
    int64_t return_at; /* offset from the CFA; 0: any rule but DW_CFA_offset */
} row;

typedef struct rows {
    row items[MAX_ROWS];
    size_t count;
} rows;

static void add_row(void *user, uint64_t begin, uint64_t end, const hfn_frame *f)
{
    rows *all = user;

    if (all->count < MAX_ROWS) {
        all->items[all->count++] =
            (row){ begin, end, f->cfa_register == 7 && !f->by_expression ? f->cfa_offset : 0,
                   f->return_at };
    }
}

static void check_rows(const char *code, size_t code_bytes, const row *wanted, size_t count)
{
    tables *t = malloc(sizeof *t);
    rows got = { .count = 0 };
    hfn_eh_function f;

    if (CHECK(make_tables(t, ENTRY_X86_64, 5, code, code_bytes)) &&
        CHECK(hfn_eh_table_find(&t->table, TEXT, &f)) && CHECK_EQ_U64(f.byte_count, 100) &&
        CHECK(hfn_eh_frame_rows(&f.cie, f.instructions, f.byte_count, add_row, &got)) &&
        CHECK_EQ_U64(got.count, count)) {
        for (size_t i = 0; i < count; i++) {
            CHECK_EQ_U64(got.items[i].begin, wanted[i].begin);
            CHECK_EQ_U64(got.items[i].end, wanted[i].end);
            CHECK_EQ_I64(got.items[i].cfa, wanted[i].cfa);
            CHECK_EQ_I64(got.items[i].return_at, wanted[i].return_at);
        }
    }
    free(t);
}

#define CHECK_ROWS(code, ...)                                                                      \
    check_rows(code, sizeof code - 1, (const row[]){ __VA_ARGS__ },                                \
               sizeof((const row[]){ __VA_ARGS__ }) / sizeof(row))

static void each_range_has_its_frame(void)
{
    CHECK_ROWS("", { 0, 100, 8, -8 });
    /* push rbx; sub rsp, 32; ...; restore both and return; the code behind has the frame as
     * before */
    CHECK_ROWS("\x41\x0e\x10\x83\x02"
               "\x44\x0e\x30"
               "\x02\x20\x0a\x0e\x08"
               "\x41\x0b",
               { 0, 1, 8, -8 }, { 1, 5, 16, -8 }, { 5, 37, 48, -8 }, { 37, 38, 8, -8 },
               { 38, 100, 48, -8 });
    /* push rbp; mov rbp, rsp */
    CHECK_ROWS("\x41\x0e\x10\x86\x02\x43\x0d\x06", { 0, 1, 8, -8 }, { 1, 4, 16, -8 },
               { 4, 100, 0, -8 });
    CHECK_ROWS("\x41\x0f\x02\x77\x10", { 0, 1, 8, -8 }, { 1, 100, 0, -8 }); /* an expression */
    CHECK_ROWS("\x03\x00\x01", { 0, 100, 8, -8 }); /* an advance beyond the end */
}

/* Rules for the return address: undefined (as in the first function of a thread), restore,
 * register, val_expression, offset_extended. */
static void a_return_address_with_another_rule_has_no_offset(void)
{
    CHECK_ROWS("\x41\x07\x10", { 0, 1, 8, -8 }, { 1, 100, 8, 0 });
    CHECK_ROWS("\x41\xd0", { 0, 1, 8, -8 }, { 1, 100, 8, 0 });
    CHECK_ROWS("\x41\x09\x10\x03", { 0, 1, 8, -8 }, { 1, 100, 8, 0 });
    CHECK_ROWS("\x41\x16\x10\x01\x30", { 0, 1, 8, -8 }, { 1, 100, 8, 0 });
    CHECK_ROWS("\x41\x05\x10\x03", { 0, 1, 8, -8 }, { 1, 100, 8, 0 });
    CHECK_ROWS("\x41\x07\x03", /* the rule is for another register */
               { 0, 1, 8, -8 }, { 1, 100, 8, -8 });
}

static void unknown_instructions_fail(void)
{
    static const char *const codes[] = { "\x41\x0b", "\x41\x3f", "\x01\0\0\0\0\0\0\0\0",
                                         "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a" };
    static const size_t sizes[] = { 2, 2, 9, 9 };
    tables *t = malloc(sizeof *t);
    hfn_eh_function f;
    rows got;

    for (size_t i = 0; i < 4; i++) {
        got.count = 0;
        CHECK(make_tables(t, ENTRY_X86_64, 5, codes[i], sizes[i]));
        CHECK(hfn_eh_table_find(&t->table, TEXT, &f));
        CHECK(!hfn_eh_frame_rows(&f.cie, f.instructions, f.byte_count, add_row, &got));
    }
    CHECK(make_tables(t, "\x3f", 1, "", 0)); /* in the CIE */
    CHECK(hfn_eh_table_find(&t->table, TEXT, &f));
    CHECK(!hfn_eh_frame_rows(&f.cie, f.instructions, f.byte_count, add_row, &got));
    free(t);
}

static void only_the_first_address_finds_a_function(void)
{
    tables *t = malloc(sizeof *t);
    hfn_eh_function f;

    CHECK(make_tables(t, ENTRY_X86_64, 5, "", 0));
    CHECK(hfn_eh_table_find(&t->table, TEXT + 0x200, &f));
    CHECK_EQ_U64(f.byte_count, 50);
    CHECK(!hfn_eh_table_find(&t->table, TEXT - 1, &f));
    CHECK(!hfn_eh_table_find(&t->table, TEXT + 1, &f));
    CHECK(!hfn_eh_table_find(&t->table, TEXT + 0x201, &f));
    free(t);
}

/* Changes each byte in turn: nothing outside may be read, and the ranges that are found must lie in
 * the function. */
static void damaged_bytes_are_never_read_out_of_bounds(void)
{
    tables *t = malloc(sizeof *t);
    rows got;

    CHECK(make_tables(t, ENTRY_X86_64, 5, "\x41\x0e\x10\x83\x02", 5));
    for (size_t i = 0; i < t->bytes.size; i++) {
        for (uint32_t change = 1; change < 256; change += 5) {
            uint8_t *copy = malloc(t->bytes.size); /* exact size for the sanitizer */
            hfn_eh_function f;
            memcpy(copy, t->bytes.data, t->bytes.size);
            copy[i] ^= (uint8_t)change;
            const hfn_eh_bytes all = { { copy, t->bytes.size, false }, AT, 0, 8 };
            got.count = 0;
            if (hfn_eh_table_open(&t->table, all, t->header) &&
                hfn_eh_table_find(&t->table, TEXT, &f)) {
                hfn_eh_frame_rows(&f.cie, f.instructions, f.byte_count, add_row, &got);
            }
            for (size_t k = 0; k < got.count; k++) {
                CHECK(got.items[k].begin < got.items[k].end && got.items[k].end <= f.byte_count);
            }
            free(copy);
        }
    }
    const hfn_eh_bytes short_ones = { { t->bytes.data, t->bytes.size - 1, false }, AT, 0, 8 };
    CHECK(!hfn_eh_table_open(&t->table, short_ones, t->header));
    CHECK(!hfn_eh_table_open(&t->table, short_ones, AT + t->bytes.size));
    free(t);
}

static const check_test tests[] = {
    CHECK_TEST(each_range_has_its_frame),
    CHECK_TEST(a_return_address_with_another_rule_has_no_offset),
    CHECK_TEST(unknown_instructions_fail),
    CHECK_TEST(only_the_first_address_finds_a_function),
    CHECK_TEST(damaged_bytes_are_never_read_out_of_bounds),
};
CHECK_MAIN(tests)
