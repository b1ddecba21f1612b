/* SPDX-License-Identifier: MIT */
/* The sources of symbols of an image, and their order. */
#include <hotfn/lowlevel/symbols.h>

#include "base/counting_env.h"
#include "check.h"
#include "image/elf_builder.h"

static uint32_t add_table(elf_builder *b, uint32_t type, const char *name, uint64_t value)
{
    elf_bytes *symbols = elf_buffer(b), *names = elf_buffer(b);
    uint32_t table;

    put_text(names, "");
    put_symbol(symbols, 0, 0, 0, 0, 0, 0);
    put_symbol(symbols, put_text(names, name), 1, 2, 1, value, 1);
    table = elf_add_buffer(b, type == 2 ? ".symtab" : ".dynsym", type, 0, symbols);
    b->sections[table].entry_size = 24;
    b->sections[table].link = table + 1;
    return elf_add_buffer(b, ".names", 3, 0, names);
}

static elf_builder *new_with_text(void)
{
    elf_builder *b = elf_new_x86_64();

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3\xc3\xc3", 4);
    return b;
}

/* The tests' stand-in for a decompressor: it copies the bytes; data that begins with '!' counts as
 * damaged. */
static void *decompress(void *user, int32_t compression, const void *in, size_t in_bytes,
                        size_t max_bytes, hotfn_realloc_fn grow, void *grow_user, size_t *out_bytes)
{
    void *out;

    (void)user;
    if (compression != HOTFN_COMPRESSION_XZ || in_bytes > max_bytes || *(const char *)in == '!') {
        return NULL;
    }
    out = grow(grow_user, NULL, 0, in_bytes);
    if (out) {
        memcpy(out, in, in_bytes);
    }
    *out_bytes = in_bytes;
    return out;
}

static uint32_t load(const elf_builder *b, counting *c, hotfn_symbol *first, uint32_t *source)
{
    hotfn_env env = counting_env(c);
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    uint32_t count = 0;

    env.decompress_fn = decompress;
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "l", &env, NULL),
                 HOTFN_OK);
    if (CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, &env, NULL), HOTFN_OK)) {
        count = hotfn_symbols_get_count(symbols);
        if (count && hotfn_symbols_get(symbols, 0, first) == HOTFN_OK) {
            *source = first->source;
        }
    }
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    CHECK_EQ_U64(c->live_bytes, 0);
    CHECK_EQ_I64(c->size_mismatches, 0);
    return count;
}

static void an_image_without_symbols_is_not_an_error(void)
{
    elf_builder *b = new_with_text();
    hotfn_symbol first = HOTFN_SYMBOL_INIT;
    uint32_t source = 0;
    counting c;

    elf_finish(b);
    CHECK_EQ_U64(load(b, &c, &first, &source), 0);
    CHECK_EQ_I64(c.warnings, 0);
    hotfn_symbols_destroy(NULL);
    free(b);
}

static void debugdata_is_read_if_there_is_no_better_source(void)
{
    elf_builder *mini = new_with_text(), *b = new_with_text();
    hotfn_symbol first = HOTFN_SYMBOL_INIT;
    uint32_t source = 0;
    counting c;

    add_table(mini, 2, "from_debugdata", 1024);
    elf_finish(mini);
    elf_add(b, ".gnu_debugdata", 1, 0, mini->file.data, mini->file.size);
    add_table(b, 11, "from_dynsym", 1025);
    elf_finish(b);
    CHECK_EQ_U64(load(b, &c, &first, &source), 2);
    CHECK_EQ_U64(source, HOTFN_SOURCE_DEBUGDATA);
    free(b);
    b = new_with_text();
    elf_add(b, ".gnu_debugdata", 1, 0, mini->file.data, mini->file.size);
    add_table(b, 2, "from_symtab", 1026);
    elf_finish(b);
    CHECK_EQ_U64(load(b, &c, &first, &source), 1);
    CHECK_EQ_U64(source, HOTFN_SOURCE_SYMTAB);
    free(b);
    free(mini);
}

static void damaged_debugdata_gives_a_warning(void)
{
    static const char *const contents[] = { "!", "no ELF file" };
    hotfn_symbol first = HOTFN_SYMBOL_INIT;
    uint32_t source = 0;
    counting c;

    for (size_t i = 0; i < 2; i++) {
        elf_builder *b = new_with_text();
        elf_add(b, ".gnu_debugdata", 1, 0, contents[i], strlen(contents[i]));
        add_table(b, 11, "from_dynsym", 1025);
        elf_finish(b);
        CHECK_EQ_U64(load(b, &c, &first, &source), 1);
        CHECK_EQ_I64(c.warnings, 1);
        free(b);
    }
}

static void unknown_options_are_refused(void)
{
    elf_builder *b = new_with_text();
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;

    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "l", NULL, NULL),
                 HOTFN_OK);
    options.flags = 1u << 31;
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, &options, NULL, NULL), HOTFN_E_OPTION);
    options.flags = 0;
    options.reserved = 1;
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, &options, NULL, NULL), HOTFN_E_OPTION);
    CHECK(symbols == NULL);
    hotfn_image_close(image);
    free(b);
}

static void this_program_has_its_functions(void)
{
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    bool seen = false;

    CHECK_EQ_I64(hotfn_image_open(&image, "/proc/self/exe", NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < hotfn_symbols_get_count(symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(symbols, i, &s);
        seen |= strcmp(s.name, "this_program_has_its_functions") == 0;
    }
    CHECK(seen);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
}

/* Supplies two inlined frames at RVA 0x100 of the loaded image, none elsewhere. */
static int32_t supply_frame(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                            uint64_t rva, uint32_t depth, char *function, size_t function_bytes,
                            char *file, size_t file_bytes, uint32_t *line)
{
    (void)user;
    if (rva != 0x100 || depth > 1 || strcmp(path, "l") != 0 || id_bytes > 32 || !id) {
        return 0;
    }
    snprintf(function, function_bytes, depth ? "outer" : "inner");
    snprintf(file, file_bytes, depth ? "" : "a.c");
    *line = depth ? 0 : 7;
    return 1;
}

static void inlined_frames_come_from_the_caller(void)
{
    elf_builder *b = new_with_text();
    hotfn_source_frame frame = HOTFN_SOURCE_FRAME_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    counting c;
    hotfn_env env = counting_env(&c);

    elf_finish(b);
    env.inlined_fn = supply_frame;
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "l", &env, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, &env, NULL), HOTFN_OK);
    c.fail_at = c.requests + 1;
    c.fail_once = true;
    CHECK_EQ_I64(hotfn_symbols_find_frame(symbols, 0x100, 0, &frame), HOTFN_E_NO_MEMORY);
    CHECK_EQ_I64(hotfn_symbols_find_frame(symbols, 0x100, 0, &frame), HOTFN_OK);
    CHECK_STR(frame.function, "inner");
    CHECK_STR(frame.file, "a.c");
    CHECK_EQ_U64(frame.line, 7);
    CHECK_EQ_I64(hotfn_symbols_find_frame(symbols, 0x100, 1, &frame), HOTFN_OK);
    CHECK_STR(frame.function, "outer");
    CHECK_EQ_U64(frame.line, 0);
    CHECK_EQ_I64(hotfn_symbols_find_frame(symbols, 0x100, 2, &frame), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_symbols_find_frame(symbols, 0x101, 0, &frame), HOTFN_E_NOT_FOUND);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    CHECK_EQ_U64(c.live_bytes, 0);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(inlined_frames_come_from_the_caller),
    CHECK_TEST(an_image_without_symbols_is_not_an_error),
    CHECK_TEST(debugdata_is_read_if_there_is_no_better_source),
    CHECK_TEST(damaged_debugdata_gives_a_warning),
    CHECK_TEST(unknown_options_are_refused),
    CHECK_TEST(this_program_has_its_functions),
};
CHECK_MAIN(tests)
