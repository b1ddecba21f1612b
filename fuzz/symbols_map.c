/* SPDX-License-Identifier: MIT */
/*
 * Reads any bytes as a linker map, alone and with an image of its format.  The first lines of the
 * input select the reader.  With HOTFN_FUZZ_MAP=<kind> in the environment, the first lines of that
 * kind are put before the input, so that only its reader is fuzzed.  An input that such a run finds
 * must be stored with these lines at its start.
 */
#include "image/elf_builder.h" /* of tests/unit */
#include "image/pe_sample.h"
#include "symbols_promises.h"

#include <hotfn/lowlevel/functions.h>

static const struct {
    const char *name, *head;
} kinds[] = {
    { "msvc", " g\n\n Timestamp is 5ecf2155 (x)\n\n Preferred load address is 00400000\n\n"
              " 0001:00000000 00001000H .text                   CODE\n"
              " 0002:00000000 00000100H .rdata                  DATA\n\n"
              "  Address         Publics by Value              Rva+Base       Lib:Object\n\n"
              " 0001:00000000       _a                         00401000 f   a.obj\n" },
    { "lld_link",
      " g\n\n Preferred load address is 0000000140000000\n\n"
      " 0001:00000000 00001000H .text                   CODE\n\n"
      "  Address         Publics by Value              Rva+Base               Lib:Object\n\n" },
    { "gnu_ld", "Archive member included to satisfy reference by file (symbol)\n\n"
                "Linker script and memory map\n\n.text           0x0000000000001000     0x1000\n" },
    { "gold", "Discarded input sections\n\nMemory map\n\n"
              ".text           0x0000000000001000     0x1000\n" },
    { "lld_elf", "             VMA              LMA     Size Align Out     In      Symbol\n"
                 "            1000             1000     1000    16 .text\n" },
    { "lld_pe", "Address  Size     Align Out     In      Symbol\n"
                "00001000 00001000  4096 .text\n" },
    { "mold", "               VMA       Size Align Out     In      Symbol\n"
              "            0x1000       4096    16 .text\n" },
    { "ld64", "# Path: m\n# Arch: arm64\n# Object files:\n[  0] linker synthesized\n[  1] a.o\n"
              "# Sections:\n# Address\tSize    \tSegment\tSection\n"
              "0x100001000\t0x00001000\t__TEXT\t__text\n"
              "# Symbols:\n# Address\tSize    \tFile  Name\n" },
    { "ld64_lld",
      "# Path: m\n# Arch: x86_64\n# Object files:\n[  0] linker synthesized\n[  1] a.o\n"
      "# Sections:\n# Address\tSize    \tSegment\tSection\n"
      "0x100001000\t0x00001000\t__TEXT\t__text\n"
      "# Symbols:\n# Address\tFile  Name\n" },
};

static const char *chosen_head(void)
{
    const char *kind = getenv("HOTFN_FUZZ_MAP");

    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            return kinds[i].head;
        }
    }
    if (kind) {
        abort(); /* unknown kind in HOTFN_FUZZ_MAP */
    }
    return "";
}

/* The images use the builders' bytes, so neither is ever freed. */
static hotfn_image *elf, *pe;
static elf_builder *elf_made;
static pe_builder *pe_made;

static void make_images(void)
{
    elf_made = elf_new_x86_64();
    elf_add(elf_made, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 8);
    elf_finish(elf_made);
    pe_made = pe_new_sample();
    if (hotfn_image_open_bytes(&elf, elf_made->file.data, elf_made->file.size, "elf", NULL, NULL) !=
            HOTFN_OK ||
        hotfn_image_open_bytes(&pe, pe_made->data, pe_made->size, "pe", NULL, NULL) != HOTFN_OK) {
        abort();
    }
}

/* The symbols, or NULL. */
static hotfn_symbols *load(const uint8_t *data, size_t size, const hotfn_image *image,
                           uint32_t flags)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    options.flags = flags;
    if (hotfn_symbols_map_from_bytes(&symbols, data, size, "fuzz", image, &options, NULL, &err) !=
        HOTFN_OK) {
        if (err.status == HOTFN_E_FORMAT && err.offset == HOTFN_NO_OFFSET) {
            abort();
        }
        return NULL;
    }
    if (hotfn_symbols_get_info(symbols, &info) != HOTFN_OK || !info.format) {
        abort();
    }
    check_symbols(symbols);
    return symbols;
}

static void check_map(const uint8_t *data, size_t size)
{
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;
    hotfn_symbols *alone = load(data, size, NULL, HOTFN_SYMBOLS_DATA), *beside;
    hotfn_functions *functions = NULL;
    const hotfn_image *image;

    if (!elf) {
        make_images();
    }
    if (alone) {
        hotfn_symbols_get_info(alone, &info);
    }
    image =
        info.format && (strcmp(info.format, "msvc-map") == 0 || strcmp(info.format, "lldmap") == 0)
            ? pe
            : elf;
    beside = load(data, size, image, HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE);
    if (beside) {
        hotfn_functions_build(&functions, image, beside, NULL, NULL);
    }
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(beside);
    hotfn_symbols_destroy(alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *head = chosen_head();
    size_t head_bytes = strlen(head);
    uint8_t *whole = malloc(head_bytes + size + 1);

    if (!whole) {
        return 0;
    }
    memcpy(whole, head, head_bytes);
    if (size) {
        memcpy(whole + head_bytes, data, size);
    }
    check_map(whole, head_bytes + size);
    free(whole);
    return 0;
}
