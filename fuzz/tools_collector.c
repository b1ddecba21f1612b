/* SPDX-License-Identifier: MIT */
/* The bodies that hotfn-collector receives.  The first byte of the input chooses: the compact
 * form of a run, names, a gzip body with a record file or the compact form, packed rows, two states
 * of a run, the files of a build.  A run that is accepted has rows in order, inside of its modules,
 * and packs into rows that read back equal; the increment between two states is such a run. */
#include "../tools/collector/body.h"
#include "../tools/collector/decode.h"
#include "../tools/collector/pack.h"
#include "../tools/collector/wire_difference.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_modules(const wire_run *run, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < run->module_count; i++) {
        const wire_module *m = &run->modules[i];
        check(m->first_row == sum && !strchr(m->file, '/') && strlen(m->image) < sizeof m->image);
        sum += m->row_count;
    }
    check(sum == count);
}

/* Pack the rows of the first module, whose RVAs are taken as numbers. */
static void check_packing(const wire_run *run)
{
    byte_buffer out = { 0 };
    packed_row *rows = calloc(run->row_count + UINT32_C(1), sizeof *rows), again;
    uint32_t count = 0;
    bool timed = run->flags & WIRE_TIMED;

    for (uint32_t i = 0; rows && i < run->modules[0].row_count && run->rows[i].rva < UINT32_MAX;
         i++) {
        const wire_row *r = &run->rows[i];
        rows[count++] =
            (packed_row){ (uint32_t)r->rva, { r->calls, r->total_ns, r->self_ns }, r->max_ns };
    }
    pack_rows(&out, rows, count, timed);
    row_reader reader = begin_rows(out.data, out.used, timed);
    for (uint32_t i = 0; i < count; i++) {
        check(read_row(&reader, &again) && again.function == rows[i].function &&
              memcmp(again.values, rows[i].values, sizeof again.values) == 0 &&
              again.max_ns == rows[i].max_ns);
    }
    check(!read_row(&reader, &again) && !reader.cursor.failed);
    buffer_free(&out);
    free(rows);
}

static void check_run(const wire_run *run)
{
    check_modules(run, run->row_count);
    for (uint32_t i = 0; i < run->caller_count; i++) {
        check(run->callers[i].callee < run->row_count &&
              (run->callers[i].caller == WIRE_NO_ROW || run->callers[i].caller < run->row_count));
    }
    check_packing(run);
}

static void read_body(const uint8_t *data, size_t size)
{
    static const body_limits limits = { 1 << 20, 8 << 20, 100 };
    request_body body;
    decoded_body decoded = { 0 };
    submission *sub = calloc(1, sizeof *sub);
    refusal why = { 0 };
    uint8_t checksum[SHA256_BYTES];

    if (sub && body_begin(&body, "/tmp", true, &limits, &why)) {
        bool ok = true;
        for (size_t at = 0; ok && at < size; at += 4096) {
            ok = body_add(&body, data + at, size - at < 4096 ? size - at : 4096, &why);
        }
        if (ok && body_finish(&body, checksum, &why) &&
            decode_run_body(&decoded, body.fd, sub, &why)) {
            check_run(&sub->run);
            check_modules(&sub->names, sub->names.name_count);
        } else {
            check(why.status >= 400 && why.text[0]);
        }
        decode_free(&decoded, sub);
        body_free(&body);
    }
    free(sub);
}

static void read_packed(const uint8_t *data, size_t size, bool timed)
{
    row_reader reader = begin_rows(data, size, timed);
    packed_row row;
    uint64_t next = 0;

    while (read_row(&reader, &row)) {
        check(row.function >= next);
        next = row.function + UINT64_C(1);
    }
}

/* The first two bytes are the length of the first state. */
static void read_states(const uint8_t *data, size_t size)
{
    size_t first = size < 2 ? 0 : (size_t)data[0] << 8 | data[1];
    byte_buffer out = { 0 };
    wire_run sent = { 0 }, now = { 0 }, increment;

    if (size >= 2 && first <= size - 2 && !wire_decode_run(&sent, data + 2, first) &&
        !wire_decode_run(&now, data + 2 + first, size - 2 - first)) {
        check(wire_encode_difference(&out, &now, &sent));
        check(!wire_find_main(&now) || !wire_decode_run(&increment, out.data, out.used));
        if (wire_find_main(&now)) {
            check_run(&increment);
            wire_free(&increment);
        }
    }
    buffer_free(&out);
    wire_free(&sent);
    wire_free(&now);
}

static void read_build(const uint8_t *data, size_t size)
{
    decoded_body decoded = { 0 };
    submission *sub = calloc(1, sizeof *sub);
    refusal why = { 0 };
    int fd = memfd_create("build", MFD_CLOEXEC);

    if (sub && fd >= 0 && write(fd, data, size) == (ssize_t)size) {
        bool ok = decode_symbols_body(&decoded, fd, "game", sub, &why);
        check(ok || (why.status >= 400 && why.text[0]));
        if (ok) {
            check_modules(&sub->names, sub->names.name_count);
        }
        decode_free(&decoded, sub);
    }
    close(fd);
    free(sub);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wire_run run;

    if (size == 0) {
        return 0;
    }
    switch (data[0] & 7) {
    case 0:
        if (!wire_decode_run(&run, data + 1, size - 1)) {
            check_run(&run);
        }
        wire_free(&run);
        break;
    case 1:
        if (!wire_decode_names(&run, data + 1, size - 1)) {
            check_modules(&run, run.name_count);
        }
        wire_free(&run);
        break;
    case 2: read_body(data + 1, size - 1); break;
    case 4: read_states(data + 1, size - 1); break;
    case 5: read_build(data + 1, size - 1); break;
    default: read_packed(data + 1, size - 1, data[0] & 4); break;
    }
    return 0;
}
