/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the analysis of functions with any bytes as the code of an otherwise valid image.  The
 * first byte is the number of functions.  Then each function has a byte for its size and a byte for
 * the gap after it.  Read-only data are the same bytes as the code, so that jump tables are found.
 */
#include "verdicts_promises.h"

#include <stddef.h>
#include <string.h>

#define IMAGE_MAX 0x4000u
#define TEXT_AT 0x400u
#define TEXT_MAX 0x2000u
#define FUNCTIONS_MAX 40u

/* An ELF file to which bytes are appended at `size` (Elf64, System V gABI ch. 4 and 5). */
typedef struct file {
    uint8_t bytes[IMAGE_MAX];
    uint32_t size;
} file;

static void put(file *f, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) {
        f->bytes[f->size++] = (uint8_t)(value >> (8 * i));
    }
}

static void put_section(file *f, uint32_t name, uint32_t type, uint64_t flags, uint64_t at,
                        uint64_t size, uint32_t link)
{
    put(f, name, 4), put(f, type, 4), put(f, flags, 8), put(f, flags ? at : 0, 8);
    put(f, at, 8), put(f, size, 8), put(f, link, 4), put(f, 1, 4), put(f, 1, 8);
    put(f, type == 2 ? 24 : 0, 8);
}

static void put_symbols(file *f, const uint8_t *shape, uint32_t count, uint32_t text_bytes)
{
    uint64_t at = TEXT_AT;

    memset(f->bytes + f->size, 0, 24), f->size += 24;
    for (uint32_t i = 0; i < count && at < TEXT_AT + text_bytes; i++) {
        put(f, 1, 4), put(f, 2, 1), put(f, 0, 1), put(f, 1, 2); /* "f", local function of .text */
        put(f, at, 8), put(f, shape[2 * i], 8);
        at += shape[2 * i] + shape[2 * i + 1];
    }
}

static void put_header(file *f, uint32_t sections_at, uint32_t end)
{
    f->size = 0;
    put(f, 0x464C457F, 4), put(f, 0x00010102, 4), put(f, 0, 8); /* ELF, 64 bit, little endian */
    put(f, 3, 2), put(f, 62, 2), put(f, 1, 4), put(f, 0, 8), put(f, 64, 8), put(f, sections_at, 8);
    put(f, 0, 4), put(f, 64, 2), put(f, 56, 2), put(f, 1, 2), put(f, 64, 2), put(f, 5, 2);
    put(f, 4, 2);
    put(f, 1, 4), put(f, 5, 4), put(f, 0, 8), put(f, 0, 8), put(f, 0, 8); /* PT_LOAD, R X */
    put(f, end, 8), put(f, end, 8), put(f, 0x1000, 8);
}

static void make_image(file *f, const uint8_t *shape, uint32_t count, const uint8_t *code,
                       uint32_t size)
{
    uint32_t names_at, symbols_at, sections_at, end;

    f->size = TEXT_AT;
    memcpy(f->bytes + f->size, code, size), f->size += size;
    names_at = f->size;
    memcpy(f->bytes + f->size, "\0f", 3), f->size += 3;
    symbols_at = f->size = (f->size + 7) & ~7u;
    put_symbols(f, shape, count, size);
    sections_at = f->size;
    put_section(f, 0, 0, 0, 0, 0, 0);
    put_section(f, 1, 1, 2 | 4, TEXT_AT, size, 0);
    put_section(f, 1, 1, 2, TEXT_AT, size, 0);
    put_section(f, 1, 2, 0, symbols_at, sections_at - symbols_at, 4);
    put_section(f, 1, 3, 0, names_at, 3, 0);
    end = f->size;
    put_header(f, sections_at, end);
    f->size = end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t count = size ? data[0] % FUNCTIONS_MAX : 0;
    hotfn_image *image = NULL;

    if (size < 2 + 2 * (size_t)count) {
        return 0;
    }
    const uint8_t *code = data + 1 + 2 * count;
    size_t code_bytes = size - 1 - 2 * (size_t)count;
    file *f = calloc(1, sizeof *f);
    must(f != NULL);
    make_image(f, data + 1, count, code, code_bytes < TEXT_MAX ? (uint32_t)code_bytes : TEXT_MAX);
    must(hotfn_image_open_bytes(&image, f->bytes, f->size, "fuzz", NULL, NULL) == HOTFN_OK);
    check_image(image);
    hotfn_image_close(image);
    free(f);
    return 0;
}
