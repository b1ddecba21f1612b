/* SPDX-License-Identifier: MIT */
/* Parts of hotfn-collector with cases that no request reaches: checksums, numbers, rows, rates,
 * kept folds. */
#include "check.h"

#include "../../tools/collector/fold_cache.h"
#include "../../tools/collector/pack.h"
#include "../../tools/collector/queue.h"
#include "../../tools/collector/rate.h"
#include "../../tools/collector/sha256.h"
#include "../../tools/collector/wire_difference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static bool has_hash(const char *text, size_t repeat, const char *wanted)
{
    sha256 s;
    uint8_t hash[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];

    sha256_begin(&s);
    for (size_t i = 0; i < repeat; i++) {
        sha256_add(&s, text, strlen(text));
    }
    sha256_finish(&s, hash);
    format_hex(hex, hash, sizeof hash);
    return strcmp(hex, wanted) == 0;
}

/* NIST, "Descriptions of SHA-256": one block, two blocks, a million letters. */
static void sha256_gives_the_published_values(void)
{
    CHECK(has_hash("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    CHECK(has_hash("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK(has_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
    CHECK(
        has_hash("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

static void hex_is_parsed_only_in_whole(void)
{
    uint8_t bytes[2];

    CHECK(parse_hex("0aF9", bytes, 2) && bytes[0] == 0x0a && bytes[1] == 0xf9);
    CHECK(!parse_hex("0aF", bytes, 2) && !parse_hex("0aF99", bytes, 2) &&
          !parse_hex("0aFx", bytes, 2));
    CHECK(equal_in_constant_time(bytes, bytes, 2) && !equal_in_constant_time(bytes, bytes + 1, 1));
}

static void numbers_above_64_bits_are_refused(void)
{
    static const uint64_t values[] = { 0, 127, 128, UINT32_MAX, UINT64_MAX };
    static const uint8_t too_large[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 2 };
    byte_buffer b = { 0 };

    for (size_t i = 0; i < 5; i++) {
        buffer_append_number(&b, values[i]);
    }
    byte_cursor c = { b.data, b.data + b.used, false };
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ_U64(cursor_read_number(&c), values[i]);
    }
    CHECK(!c.failed && c.at == c.end);
    cursor_read_number(&c);
    CHECK(c.failed);
    c = (byte_cursor){ too_large, too_large + sizeof too_large, false };
    cursor_read_number(&c);
    CHECK(c.failed);
    buffer_free(&b);
}

static void rows_read_back_as_packed(void)
{
    static const packed_row rows[] = { { 0, { 5, 50, 40 }, 9 },
                                       { 1, { UINT64_MAX, 1, 0 }, 1 },
                                       { UINT32_MAX - 1, { 7, 0, 0 }, 0 } };
    packed_row row;

    for (int timed = 0; timed < 2; timed++) {
        byte_buffer b = { 0 };
        pack_rows(&b, rows, 3, timed);
        row_reader r = begin_rows(b.data, b.used, timed);
        for (size_t i = 0; i < 3; i++) {
            CHECK(read_row(&r, &row));
            CHECK_EQ_U64(row.function, rows[i].function);
            CHECK_EQ_U64(row.values[0], rows[i].values[0]);
            CHECK_EQ_U64(row.values[2], timed ? rows[i].values[2] : 0);
        }
        CHECK(!read_row(&r, &row) && !r.cursor.failed);
        r = begin_rows(b.data, b.used - 1, timed);
        while (read_row(&r, &row)) {
        }
        CHECK(r.cursor.failed);
        buffer_free(&b);
    }
}

static void a_burst_passes_and_then_the_rate_holds(void)
{
    rate_table t;
    uint32_t passed = 0;

    rate_init(&t, 10);
    for (int i = 0; i < 100; i++) {
        passed += rate_count(&t, 1, SECOND) == 0;
    }
    CHECK_EQ_U64(passed, 40); /* four seconds of requests */
    CHECK_EQ_U64(rate_count(&t, 1, SECOND), 1);
    CHECK_EQ_U64(rate_count(&t, 2, SECOND), 0); /* another token */
    passed = 0;
    for (int64_t at = 1; at <= 100; at++) {
        passed += rate_count(&t, 1, SECOND + at * SECOND / 20) == 0;
    }
    CHECK_EQ_U64(passed, 50); /* five seconds later */
    rate_init(&t, 0);
    CHECK_EQ_U64(rate_count(&t, 1, SECOND), 0);
}

static void a_queue_is_bounded_and_keeps_its_order(void)
{
    work_queue q;
    int items[3];
    void *out[4];

    CHECK(queue_init(&q, 2));
    CHECK(queue_push(&q, &items[0]) && queue_push(&q, &items[1]) && !queue_push(&q, &items[2]));
    CHECK_EQ_U64(queue_take(&q, out, 1), 1);
    CHECK(out[0] == &items[0] && queue_push(&q, &items[2]));
    queue_close(&q);
    CHECK(!queue_push(&q, &items[0]));
    CHECK_EQ_U64(queue_take(&q, out, 4), 2);
    CHECK(out[0] == &items[1] && out[1] == &items[2]);
    CHECK_EQ_U64(queue_take(&q, out, 4), 0);
    queue_finish(&q);
}

/* ---- Increments. */

enum { FUNCTIONS = 40, STATES = 30 };

/* The counts of a run: functions 0 to FUNCTIONS-1 are at RVA 16 * i of two modules. */
typedef struct totals {
    uint64_t calls[FUNCTIONS], total_ns[FUNCTIONS], max_ns[FUNCTIONS],
        edges[FUNCTIONS + 1][FUNCTIONS];
} totals;

static const char *const images[] = { "1-0a0b0c", "1-ff00" };

/* A state with the functions that were called. */
static void make_state(wire_run *out, const totals *t)
{
    uint32_t row_of[FUNCTIONS];

    *out = (wire_run){ .flags = WIRE_TIMED, .start_ns = 5, .end_ns = 9, .module_count = 2 };
    out->modules = calloc(2, sizeof *out->modules);
    out->rows = calloc(FUNCTIONS, sizeof *out->rows);
    out->callers = calloc((FUNCTIONS + 1) * FUNCTIONS, sizeof *out->callers);
    for (uint32_t m = 0; m < 2; m++) {
        wire_module *module = &out->modules[m];
        module->flags = m == 0 ? WIRE_MAIN : 0;
        strcpy(module->image, images[m]);
        strcpy(module->file, m ? "lib" : "game");
        module->first_row = out->row_count;
        for (uint32_t i = m * FUNCTIONS / 2; i < (m + 1) * FUNCTIONS / 2; i++) {
            row_of[i] = out->row_count;
            if (t->calls[i]) {
                out->rows[out->row_count++] = (wire_row){ 16 * i, t->calls[i], t->total_ns[i],
                                                          t->total_ns[i] / 2, t->max_ns[i] };
            }
        }
        module->row_count = out->row_count - module->first_row;
    }
    for (uint32_t i = 0; i <= FUNCTIONS; i++) {
        for (uint32_t k = 0; k < FUNCTIONS; k++) {
            if (t->edges[i][k]) {
                out->callers[out->caller_count++] =
                    (wire_caller){ i == FUNCTIONS ? WIRE_NO_ROW : row_of[i], row_of[k],
                                   t->edges[i][k] };
            }
        }
    }
}

static void add_increment(totals *sum, const byte_buffer *bytes)
{
    wire_run run;
    uint32_t function_of[FUNCTIONS + 1];

    CHECK(wire_decode_run(&run, bytes->data, bytes->used) == NULL);
    CHECK(wire_find_main(&run) && strcmp(wire_find_main(&run)->image, images[0]) == 0);
    for (uint32_t i = 0; i < run.row_count; i++) {
        uint32_t function = (uint32_t)(run.rows[i].rva / 16);
        function_of[i] = function;
        sum->calls[function] += run.rows[i].calls;
        sum->total_ns[function] += run.rows[i].total_ns;
        sum->max_ns[function] = run.rows[i].max_ns;
    }
    for (uint32_t i = 0; i < run.caller_count; i++) {
        const wire_caller *c = &run.callers[i];
        sum->edges[c->caller == WIRE_NO_ROW ? FUNCTIONS : function_of[c->caller]]
                  [function_of[c->callee]] += c->calls;
    }
    wire_free(&run);
}

/* The counts of calls and callers grow, functions are called for the first time, and some times
 * become smaller. */
static void increments_add_up(void)
{
    static totals now, largest, sum;
    wire_run sent = { 0 };

    srand(7);
    for (uint32_t state = 0; state < STATES; state++) {
        byte_buffer bytes = { 0 };
        wire_run run;
        for (uint32_t n = 0; state != 5 && n < 20; n++) { /* in state 5 nothing is new */
            uint32_t i = (uint32_t)rand() % FUNCTIONS, from = (uint32_t)rand() % (FUNCTIONS + 1);
            from = from < FUNCTIONS && now.calls[from] == 0 ? FUNCTIONS : from;
            now.calls[i]++;
            now.edges[from][i]++;
            now.total_ns[i] += (uint64_t)(rand() % 1000);
            now.total_ns[i] -= n == 0 ? now.total_ns[i] / 3 : 0;
            now.max_ns[i] += (uint64_t)(rand() % 10);
        }
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            largest.total_ns[i] =
                now.total_ns[i] > largest.total_ns[i] ? now.total_ns[i] : largest.total_ns[i];
        }
        make_state(&run, &now);
        CHECK(wire_encode_difference(&bytes, &run, &sent));
        CHECK(state != 5 || bytes.used < 60);
        wire_free(&sent);
        sent = run;
        add_increment(&sum, &bytes);
        buffer_free(&bytes);
        CHECK(memcmp(sum.calls, now.calls, sizeof now.calls) == 0);
        CHECK(memcmp(sum.edges, now.edges, sizeof now.edges) == 0);
        CHECK(memcmp(sum.total_ns, largest.total_ns, sizeof now.total_ns) == 0);
    }
    wire_free(&sent);
}

/* ---- Kept folds. */

/* Keep a fold of so many functions, each with this sum of calls. */
static void keep_fold(fold_cache *c, const char *key, uint32_t functions, uint64_t calls,
                      const char *snapshot, int64_t now)
{
    folded f = { .function_count = functions };

    f.functions = calloc((size_t)functions + 1, sizeof *f.functions);
    CHECK(f.functions);
    for (uint32_t i = 0; f.functions && i < functions; i++) {
        f.functions[i].sums[METRIC_CALLS] = calls;
    }
    strcpy(f.snapshot, snapshot);
    fold_cache_keep(c, key, &f, now);
    fold_free(&f);
}

/* The calls of the last function of a kept fold, 0 if there is none. */
static uint64_t find_calls(fold_cache *c, const char *key, const char *snapshot, int64_t since)
{
    folded f = { 0 };
    uint64_t calls = 0;

    if (fold_cache_find(c, key, snapshot, since, &f)) {
        calls = f.functions[f.function_count - 1].sums[METRIC_CALLS];
    }
    fold_free(&f);
    return calls;
}

static void folds_are_found_by_key_and_snapshot(void)
{
    static fold_cache c = { .lock = PTHREAD_MUTEX_INITIALIZER };

    CHECK_EQ_U64(find_calls(&c, "a", "1", 0), 0);
    keep_fold(&c, "a", 3, 11, "1", 100);
    keep_fold(&c, "b", 5, 12, "1", 100);
    CHECK_EQ_U64(find_calls(&c, "a", "1", 100), 11);
    CHECK_EQ_U64(find_calls(&c, "b", "1", 100), 12);
    CHECK_EQ_U64(find_calls(&c, "a", "2", 100), 0);
    CHECK_EQ_U64(find_calls(&c, "a", "1", 101), 0); /* too old */
    keep_fold(&c, "a", 7, 13, "2", 200);
    CHECK_EQ_U64(find_calls(&c, "a", "1", 0), 0);
    CHECK_EQ_U64(find_calls(&c, "a", "2", 0), 13);
    fold_cache_clear(&c);
    CHECK_EQ_U64(c.bytes, 0);
}

/* Neither the number of folds nor their memory exceeds its bound; the one used last stays. */
static void kept_folds_are_bounded(void)
{
    static fold_cache c = { .lock = PTHREAD_MUTEX_INITIALIZER };
    enum { QUARTER = (int)(MAX_KEPT_BYTES / 4 / sizeof(folded_function)) };
    char key[16];

    for (int i = 0; i < 3 * MAX_KEPT_FOLDS; i++) {
        snprintf(key, sizeof key, "%d", i);
        keep_fold(&c, key, 1, 1 + (uint64_t)i, "1", 0);
        CHECK_EQ_U64(find_calls(&c, "0", "1", 0), 1);
        CHECK_EQ_U64(find_calls(&c, key, "1", 0), 1 + (uint64_t)i);
    }
    CHECK_EQ_U64(find_calls(&c, "1", "1", 0), 0);
    for (int i = 0; i < 6; i++) {
        snprintf(key, sizeof key, "%d", i);
        keep_fold(&c, key, QUARTER, 1 + (uint64_t)i, "2", 0);
        CHECK(c.bytes <= MAX_KEPT_BYTES);
        CHECK_EQ_U64(find_calls(&c, "0", "2", 0), 1);
    }
    CHECK_EQ_U64(find_calls(&c, "5", "2", 0), 6);
    CHECK_EQ_U64(find_calls(&c, "1", "2", 0), 0);
    keep_fold(&c, "large", 5 * QUARTER, 9, "2", 0);
    CHECK_EQ_U64(find_calls(&c, "large", "2", 0), 0);
    CHECK_EQ_U64(find_calls(&c, "5", "2", 0), 6);
    fold_cache_clear(&c);
    CHECK_EQ_U64(c.bytes, 0);
}

static const check_test tests[] = {
    CHECK_TEST(folds_are_found_by_key_and_snapshot),
    CHECK_TEST(kept_folds_are_bounded),
    CHECK_TEST(increments_add_up),
    CHECK_TEST(sha256_gives_the_published_values),
    CHECK_TEST(hex_is_parsed_only_in_whole),
    CHECK_TEST(numbers_above_64_bits_are_refused),
    CHECK_TEST(rows_read_back_as_packed),
    CHECK_TEST(a_burst_passes_and_then_the_rate_holds),
    CHECK_TEST(a_queue_is_bounded_and_keeps_its_order),
};
CHECK_MAIN(tests)
