/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as .eh_frame of an otherwise valid image. The first byte picks the image: bit 0 32-bit,
 * bit 1 big endian, bit 2 without section headers (then .eh_frame_hdr leads to the frames), bits
 * 3-4 the machine. The functions must be in order and must not overlap.
 */
#include "image/elf_builder.h" /* of tests/unit */

#include <hotfn/lowlevel/functions.h>

enum { HEADER_AT = 512, TEXT_BYTES = 4096, MAX_INPUT = 64 * 1024 };

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

/* .eh_frame_hdr in the first KiB: version 1, absolute udata4 pointer, no table. */
static void add_header(elf_builder *b, uint64_t eh_frame)
{
    size_t end = b->file.size;

    b->file.size = HEADER_AT;
    put(&b->file, 1, 1), put(&b->file, 3, 1), put(&b->file, 0xff, 1), put(&b->file, 0xff, 1);
    put(&b->file, eh_frame, 4);
    b->file.size = end;
    elf_segment(b, 0x6474e550, 4, HEADER_AT, 8);
}

static elf_builder *wrap(uint8_t kind, const uint8_t *data, size_t size)
{
    static const uint16_t machines[] = { 62, 183, 3, 21 };
    static const uint8_t text[TEXT_BYTES];
    elf_builder *b = elf_new(kind & 1 ? 32 : 64, kind & 2, machines[kind >> 3 & 3]);
    uint32_t section;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, text, sizeof text);
    section = elf_add(b, ".eh_frame", 1, ELF_ALLOC, data, size);
    if (kind & 4) {
        add_header(b, b->sections[section].address);
    }
    b->no_sections = kind & 4;
    elf_finish(b);
    return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_image *image = NULL;
    hotfn_functions *functions = NULL;
    elf_builder *b;

    if (size == 0 || size > MAX_INPUT) {
        return 0;
    }
    b = wrap(data[0], data + 1, size - 1);
    if (hotfn_image_open_bytes(&image, b->file.data, b->file.size, "fuzz", NULL, NULL) !=
        HOTFN_OK) {
        abort(); /* the image around the input is valid */
    }
    if (hotfn_functions_build(&functions, image, NULL, NULL, NULL) != HOTFN_OK) {
        abort(); /* damaged tables are warnings, not failures */
    }
    check_functions(functions);
    hotfn_functions_destroy(functions);
    hotfn_image_close(image);
    free(b);
    return 0;
}
