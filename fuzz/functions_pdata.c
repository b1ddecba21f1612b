/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes functions and handlers of PE images.  The input is the .rdata of an otherwise valid image.
 * The first byte selects the machine.  The second and third are the offset in .rdata at which
 * .pdata begins; it extends to the end.  Unwind information and the tables of handlers are read
 * from the same bytes.  The functions must be in order and must not overlap.
 */
#include "functions/handlers.h"
#include "image/pe_builder.h" /* of tests/unit */

#include <hotfn/lowlevel/functions.h>

enum { HEAD_BYTES = 3, TEXT_BYTES = 4096, MAX_INPUT = 64 * 1024, RDATA = 0x2000 };

static void check_functions(const hotfn_functions *functions)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        if (hotfn_functions_get(functions, i, &f) != HOTFN_OK || f.rva < end || !f.byte_count ||
            !f.name || hotfn_functions_find(functions, f.rva) != i) {
            abort();
        }
        end = f.rva + f.byte_count;
    }
}

static void visit(void *user, uint64_t rva)
{
    if (!hfn_image_is_code(user, rva)) {
        abort();
    }
}

static void visit_guard(void *user, uint64_t begin, uint64_t end)
{
    (void)end;
    if (begin < end && !hfn_image_is_code(user, begin) && begin < TEXT_BYTES) {
        abort();
    }
}

static pe_builder *build_image(const uint8_t *data, size_t size)
{
    static const uint16_t machines[] = { 0x8664, 0xaa64 };
    static const uint8_t text[TEXT_BYTES] = { 0xff, 0x25, 0xfa, 0x0f };
    pe_builder *b = pe_new(64, machines[data[0] & 1]);
    uint32_t pdata_at = data[1] | (uint32_t)data[2] << 8, rdata_bytes = (uint32_t)size - HEAD_BYTES;

    pe_add(b, ".text", PE_CODE, text, sizeof text, 0);
    pe_add(b, ".rdata", PE_DATA, data + HEAD_BYTES, rdata_bytes, 0);
    if (pdata_at < rdata_bytes) {
        pe_directory(b, 3, RDATA + pdata_at, rdata_bytes - pdata_at);
    }
    pe_finish(b);
    return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_image *image = NULL;
    hotfn_functions *functions = NULL;
    hfn_handler_visitor visitor = { visit, visit, visit_guard, NULL };

    if (size <= HEAD_BYTES || size > MAX_INPUT) {
        return 0;
    }
    pe_builder *b = build_image(data, size);
    if (hotfn_image_open_bytes(&image, b->data, b->size, "fuzz", NULL, NULL) != HOTFN_OK) {
        abort(); /* the image around the input is valid */
    }
    if (hotfn_functions_build(&functions, image, NULL, NULL, NULL) != HOTFN_OK) {
        abort(); /* damaged tables are warnings, not failures */
    }
    check_functions(functions);
    visitor.user = image;
    hfn_each_handler(image, &visitor);
    hotfn_functions_destroy(functions);
    hotfn_image_close(image);
    free(b);
    return 0;
}
