/* SPDX-License-Identifier: MIT */
/* Images are opened, their symbols loaded and their functions built and selected; linker maps are
 * read alone and with their images; lists are created, saved and read. */
#include "each_failure.h"
#include "functions/sample.h"
#include "image/pe_sample.h"
#include "symbols/map_samples.h"

#include <hotfn/lowlevel/lists.h>

#include <unistd.h>

/* "Decompresses" data that are not compressed, so that .gnu_debugdata is read as well. */
static void *unpack(void *user, int32_t compression, const void *in, size_t in_bytes,
                    size_t max_bytes, hotfn_realloc_fn grow, void *grow_user, size_t *out_bytes)
{
    void *out = in_bytes <= max_bytes ? grow(grow_user, NULL, 0, in_bytes) : NULL;

    (void)user;
    (void)compression;
    if (out) {
        memcpy(out, in, in_bytes);
    }
    *out_bytes = in_bytes;
    return out;
}

static hotfn_status walk(const void *user, const hotfn_env *given, hotfn_error *err)
{
    const elf_builder *b = user;
    hotfn_env with_unpack = *given, *env = &with_unpack;
    const char *glob = "a::*";
    hotfn_selection wanted = HOTFN_SELECTION_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;
    uint8_t selected[16];
    hotfn_status status;

    with_unpack.decompress_fn = unpack;
    wanted.include = &glob;
    wanted.include_count = 1;
    status = hotfn_image_open_bytes(&image, b->file.data, b->file.size, "oom", env, err);
    CHECK((status == HOTFN_OK) == (image != NULL));
    if (status == HOTFN_OK) {
        status = hotfn_symbols_load(&symbols, image, NULL, env, err);
        CHECK((status == HOTFN_OK) == (symbols != NULL));
    }
    if (status == HOTFN_OK) {
        status = hotfn_functions_build(&functions, image, symbols, env, err);
        CHECK((status == HOTFN_OK) == (functions != NULL));
    }
    if (status == HOTFN_OK && CHECK(hotfn_functions_get_count(functions) <= sizeof selected)) {
        status = hotfn_functions_select(functions, &wanted, selected, NULL, err);
    }
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    return status;
}

static void check_every_failure(const elf_builder *b)
{
    fail_each_request(walk, b, 5);
}

static void symbols_and_frames_survive_every_failure(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "_ZN1a1fEi", GLOBAL, FUNC, TEXT, 8);
    symbol(&s, "alias", LOCAL, FUNC, TEXT, 8);
    fde(&s, TEXT, 8);
    fde(&s, TEXT + 32, 8);
    sample_build(&s);
    check_every_failure(s.b);
    sample_finish(&s);
}

static void debugdata_survives_every_failure(void)
{
    elf_builder *b;
    sample s;

    sample_begin(&s);
    symbol(&s, "f", GLOBAL, FUNC, TEXT, 8);
    sample_build(&s);
    b = elf_new_x86_64();
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, s.b->file.data, TEXT_BYTES);
    elf_add(b, ".gnu_debugdata", 1, 0, s.b->file.data, s.b->file.size);
    elf_finish(b);
    /* A failure within it may only mean fewer symbols, because it is one source of several. */
    check_every_failure(b);
    free(b);
    sample_finish(&s);
}

static void an_image_without_sections_survives_every_failure(void)
{
    elf_builder *b = elf_new_x86_64();

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    b->no_sections = true;
    elf_finish(b);
    check_every_failure(b);
    free(b);
}

typedef struct map_case {
    const char *text;
    const hotfn_image *image; /* NULL: the map alone */
} map_case;

/* A map with its lines, and the functions found from it and an image. */
static hotfn_status walk_map(const void *user, const hotfn_env *env, hotfn_error *err)
{
    const map_case *m = user;
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    hotfn_functions *functions = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_status status;

    options.flags = HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE;
    status = hotfn_symbols_map_from_bytes(&symbols, m->text, strlen(m->text), "oom.map", m->image,
                                          &options, env, err);
    CHECK((status == HOTFN_OK) == (symbols != NULL));
    if (status == HOTFN_OK) {
        hotfn_symbols_find_line(symbols, 0x1000, &line);
    }
    if (status == HOTFN_OK && m->image) {
        status = hotfn_functions_build(&functions, m->image, symbols, env, err);
    }
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    return status;
}

static void maps_survive_every_failure(void)
{
    for (size_t i = 0; i < sizeof map_samples / sizeof map_samples[0]; i++) {
        fail_each_request(walk_map, &(map_case){ map_samples[i].text, NULL }, 5);
    }
}

static void maps_with_their_images_survive_every_failure(void)
{
    pe_builder *pe = pe_new_sample();
    hotfn_image *windows = NULL;
    sample s;

    sample_begin(&s);
    symbol(&s, "f", GLOBAL, FUNC, TEXT, 8);
    fde(&s, TEXT, 8);
    sample_build(&s);
    CHECK_EQ_I64(hotfn_image_open_bytes(&windows, pe->data, pe->size, "oom", NULL, NULL), HOTFN_OK);
    for (size_t i = 0; i < sizeof map_samples / sizeof map_samples[0]; i++) {
        fail_each_request(walk_map, &(map_case){ map_samples[i].text, s.image }, 5);
        fail_each_request(walk_map, &(map_case){ map_samples[i].text, windows }, 5);
    }
    hotfn_image_close(windows);
    free(pe);
    sample_finish(&s);
}

static char list_path[] = "/tmp/hotfn-oom-list-XXXXXX";

/* Create a list, save it in the form that user selects, and read the file. */
static hotfn_status walk_list(const void *user, const hotfn_env *env, hotfn_error *err)
{
    const uint32_t *form = user;
    hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;
    hotfn_list *made = NULL, *read = NULL;
    hotfn_image *image = NULL;
    elf_builder *b = elf_new_x86_64();
    hotfn_status status;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    elf_finish(b);
    status = hotfn_image_open_bytes(&image, b->file.data, b->file.size, "oom", env, err);
    if (status == HOTFN_OK) {
        status = hotfn_list_create(&made, image, env, err);
    }
    e.name = "name";
    for (e.rva = 1; status == HOTFN_OK && e.rva < 100; e.rva++) {
        status = hotfn_list_add(made, &e, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_list_save(made, list_path, *form, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_list_open(&read, list_path, env, err);
    }
    CHECK(status != HOTFN_OK || read != NULL);
    hotfn_list_destroy(read);
    hotfn_list_destroy(made);
    hotfn_image_close(image);
    free(b);
    return status;
}

static void lists_survive_every_failure(void)
{
    int file = mkstemp(list_path);

    if (!CHECK(file >= 0)) {
        return;
    }
    close(file);
    fail_each_request(walk_list, &(uint32_t){ 0 }, 5);
    fail_each_request(walk_list, &(uint32_t){ HOTFN_LIST_TEXT }, 5);
    unlink(list_path);
}

static const check_test tests[] = {
    CHECK_TEST(symbols_and_frames_survive_every_failure),
    CHECK_TEST(debugdata_survives_every_failure),
    CHECK_TEST(an_image_without_sections_survives_every_failure),
    CHECK_TEST(maps_survive_every_failure),
    CHECK_TEST(maps_with_their_images_survive_every_failure),
    CHECK_TEST(lists_survive_every_failure),
};
CHECK_MAIN(tests)
