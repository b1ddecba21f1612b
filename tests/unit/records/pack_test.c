/* SPDX-License-Identifier: MIT */
/* Packed rows unpack to the same counts, also from files with holes; damaged bytes end a row
 * early. */
#include "records/pack.h"

#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 1000u

static hfn_packed make_packed(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_packed p;

    hfn_packed_init(&p, &env);
    return p;
}

static void check_row(const hfn_packed *p, uint64_t row, const uint64_t *wanted)
{
    static uint64_t found[SLOTS];

    memset(found, 0, sizeof found);
    hfn_unpack_add(hfn_packed_row(p, row), found, SLOTS);
    CHECK_MEM(found, wanted, sizeof found);
}

static void packed_rows_unpack_to_the_same_counts(void)
{
    static uint64_t rows[4][SLOTS];
    hfn_packed p = make_packed();

    rows[0][0] = 1;
    rows[0][SLOTS - 1] = UINT64_MAX;
    for (uint32_t i = 0; i < SLOTS; i++) {
        rows[2][i] = (uint64_t)i << (i % 60);
    }
    rows[3][500] = 127;
    rows[3][501] = 128;
    for (int row = 0; row < 4;
         row++) { /* row 1 is skipped as a whole; the others are appended in two parts */
        if (row == 1) {
            hfn_packed_skip_slots(&p, SLOTS);
        } else {
            CHECK(hfn_packed_append(&p, rows[row], 501));
            CHECK(hfn_packed_append(&p, rows[row] + 501, SLOTS - 501));
        }
        CHECK(hfn_packed_end_row(&p));
    }
    for (uint64_t row = 0; row < 4; row++) {
        check_row(&p, row, rows[row]);
    }
    CHECK_EQ_U64(hfn_packed_row(&p, 1).size, 0);
    CHECK_EQ_U64(hfn_packed_row(&p, 4).size, 0);
    CHECK_EQ_U64(hfn_unpack_add(hfn_packed_row(&p, 3), NULL, SLOTS), 255);
    hfn_packed_finish(&p);
}

static void sums_are_clamped_to_the_maximum(void)
{
    uint64_t counts[2] = { UINT64_MAX, 5 }, totals[2] = { 1, 1 };
    hfn_packed p = make_packed();

    CHECK(hfn_packed_append(&p, counts, 2) && hfn_packed_end_row(&p));
    CHECK_EQ_U64(hfn_unpack_add(hfn_packed_row(&p, 0), totals, 2), UINT64_MAX);
    CHECK_EQ_U64(totals[0], UINT64_MAX);
    CHECK_EQ_U64(totals[1], 6);
    hfn_packed_finish(&p);
}

static void damaged_bytes_end_a_row(void)
{
    static const uint8_t too_many_zeros[] = { 5, 1, 200, 7, 1 }; /* 968 zeros, the row has 10 */
    static const uint8_t no_count[] = { 0, 3, 1 }; /* a number of zero slots, but no count */
    static const uint8_t too_long_count[] = { 0,    0xff, 0xff, 0xff, 0xff, 0xff,
                                              0xff, 0xff, 0xff, 0xff, 2 };
    uint64_t totals[10] = { 0 };

    hfn_unpack_add((hfn_span){ too_many_zeros, sizeof too_many_zeros, false }, totals, 10);
    CHECK_EQ_U64(totals[5], 1);
    CHECK_EQ_U64(hfn_unpack_add((hfn_span){ no_count, sizeof no_count, false }, totals, 10), 3);
    hfn_unpack_add((hfn_span){ too_long_count, sizeof too_long_count, false }, totals, 10);
    hfn_unpack_add((hfn_span){ NULL, 0, false }, totals, 0);
    CHECK_EQ_U64(totals[0], 3);
}

static void live_rows_are_read_around_holes(void)
{
    enum { ROW_BYTES = 1 << 20, ROWS = 3 };
    static uint64_t totals[ROW_BYTES / 8];
    hfn_packed p = make_packed();
    int fd = memfd_create("rows", MFD_CLOEXEC);
    uint64_t one = 1;

    CHECK_EQ_I64(ftruncate(fd, 4096 + ROWS * ROW_BYTES), 0);
    CHECK(pwrite(fd, &one, 8, 4096) == 8);
    CHECK(pwrite(fd, &one, 8, 4096 + ROW_BYTES - 8) == 8);
    CHECK(pwrite(fd, &one, 8, 4096 + 2 * ROW_BYTES + 500000) == 8);
    CHECK_EQ_I64(hfn_packed_read(&p, (hfn_os_file){ fd }, 4096, ROW_BYTES, ROWS, ROW_BYTES / 8,
                                 "rows", NULL),
                 HOTFN_OK);
    CHECK_EQ_U64(p.row_count, ROWS);
    for (uint64_t row = 0; row < ROWS; row++) {
        hfn_unpack_add(hfn_packed_row(&p, row), totals, ROW_BYTES / 8);
    }
    CHECK_EQ_U64(totals[0], 1);
    CHECK_EQ_U64(totals[ROW_BYTES / 8 - 1], 1);
    CHECK_EQ_U64(totals[500000 / 8], 1);
    CHECK_EQ_U64(hfn_packed_row(&p, 1).size, 0);
    hfn_packed_finish(&p);
    close(fd);
}

static void a_truncated_file_is_an_error(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_packed p = make_packed();
    int fd = memfd_create("rows", MFD_CLOEXEC);
    uint64_t one = 1;

    CHECK(pwrite(fd, &one, 8, 0) == 8);
    CHECK_EQ_I64(hfn_packed_read(&p, (hfn_os_file){ fd }, 0, 4096, 1, 512, "rows", &err),
                 HOTFN_E_IO);
    CHECK_STR(err.file, "rows");
    hfn_packed_finish(&p);
    close(fd);
}

static void difference_is_row_by_row(void)
{
    uint64_t before[3] = { 5, 0, 9 }, after[3] = { 8, 1, 9 }, shrunk[3] = { 1, 0, 0 }, sums[3];
    hfn_packed from = make_packed(), to = make_packed(), out = make_packed();

    memset(sums, 0, sizeof sums);
    CHECK(hfn_packed_append(&from, before, 3) && hfn_packed_end_row(&from));
    CHECK(hfn_packed_append(&to, after, 3) && hfn_packed_end_row(&to));
    CHECK(hfn_packed_append(&to, after, 3) && hfn_packed_end_row(&to));
    CHECK(hfn_packed_subtract(&out, &to, &from, 3));
    hfn_unpack_add(hfn_packed_row(&out, 0), sums, 3);
    CHECK(sums[0] == 3 && sums[1] == 1 && sums[2] == 0);
    memset(sums, 0, sizeof sums);
    hfn_unpack_add(hfn_packed_row(&out, 1), sums, 3);
    CHECK_MEM(sums, after, sizeof sums);
    hfn_packed_finish(&to);
    hfn_packed_finish(&out);
    to = make_packed();
    out = make_packed();
    CHECK(hfn_packed_append(&to, shrunk, 3) && hfn_packed_end_row(&to));
    CHECK(hfn_packed_subtract(&out, &to, &from, 3));
    CHECK_EQ_U64(hfn_unpack_add(hfn_packed_row(&out, 0), NULL, 3), 0); /* clamped at 0 */
    hfn_packed_finish(&from);
    hfn_packed_finish(&to);
    hfn_packed_finish(&out);
}

static const check_test tests[] = {
    CHECK_TEST(packed_rows_unpack_to_the_same_counts),
    CHECK_TEST(sums_are_clamped_to_the_maximum),
    CHECK_TEST(damaged_bytes_end_a_row),
    CHECK_TEST(live_rows_are_read_around_holes),
    CHECK_TEST(a_truncated_file_is_an_error),
    CHECK_TEST(difference_is_row_by_row),
};
CHECK_MAIN(tests)
