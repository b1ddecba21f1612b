/* SPDX-License-Identifier: MIT */
/* Reading PE images: both widths are read, invalid fields are reported with their
 * offset, and the words that the loader relocates or calls are found. */
#include "image/pe.h"

#include "base/counting_env.h"
#include "check.h"
#include "image/pe_builder.h"

static const uint8_t code[64] = { 0xc3, 0xcc };

static pe_builder *new_sample(int bits, uint16_t machine)
{
    pe_builder *b = pe_new(bits, machine);

    b->entry = pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    pe_add(b, ".data", (int)0xc0000040, "12345678", 8, 0x3000);
    pe_finish(b);
    return b;
}

static hotfn_image *open_sample(const pe_builder *b)
{
    hotfn_image *image = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (!CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->data, b->size, "sample", NULL, &err),
                      HOTFN_OK)) {
        printf("#   %s\n", err.text);
    }
    return image;
}

static void both_widths_are_read(void)
{
    for (int bits = 32; bits <= 64; bits += 32) {
        pe_builder *b = new_sample(bits, bits == 64 ? 0x8664 : 0x14c);
        hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
        hotfn_section section = HOTFN_SECTION_INIT;
        hotfn_image *image = open_sample(b);
        if (!image) {
            continue;
        }
        CHECK_EQ_I64(hotfn_image_get_info(image, &info), HOTFN_OK);
        CHECK_EQ_U64(info.format, HOTFN_FORMAT_PE);
        CHECK_EQ_U64(info.bits, bits);
        CHECK_EQ_U64(info.machine, bits == 64 ? HOTFN_MACHINE_X86_64 : HOTFN_MACHINE_X86);
        CHECK_EQ_U64(info.link_base, b->base);
        CHECK_EQ_U64(info.loaded_bytes, b->next_rva);
        CHECK_EQ_U64(info.entry_rva, 0x1000);
        CHECK_EQ_U64(info.flags, HOTFN_IMAGE_EXECUTABLE | HOTFN_IMAGE_FIXED | HOTFN_IMAGE_STRIPPED);
        CHECK_EQ_I64(hotfn_image_get_section(image, 1, &section), HOTFN_OK);
        CHECK_STR(section.name, ".data");
        CHECK_EQ_U64(section.flags, HOTFN_SECTION_WRITE | HOTFN_SECTION_LOADED);
        CHECK_EQ_U64(section.rva, 0x2000);
        CHECK_EQ_U64(section.byte_count, 0x3000);
        CHECK_EQ_U64(section.file_bytes, 512);
        CHECK_EQ_U64(hfn_image_span(image, 0x2000).size, 512);
        CHECK_EQ_U64(hfn_image_span(image, 0x2200).size, 0);
        CHECK_EQ_U64(hfn_image_span(image, 0).size, PE_HEAD_BYTES);
        CHECK(hfn_image_is_code(image, 0x1000) && !hfn_image_is_code(image, 0x2000));
        hotfn_image_close(image);
        free(b);
    }
}

static uint32_t machine_of(int bits, uint16_t machine)
{
    pe_builder *b = new_sample(bits, machine);
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image = open_sample(b);

    hotfn_image_get_info(image, &info);
    hotfn_image_close(image);
    free(b);
    return info.machine;
}

static void machines_are_recognised_by_number_and_width(void)
{
    CHECK_EQ_U64(machine_of(64, 0xaa64), HOTFN_MACHINE_ARM64);
    CHECK_EQ_U64(machine_of(32, 0x1c4), HOTFN_MACHINE_ARM);
    CHECK_EQ_U64(machine_of(32, 0x8664), HOTFN_MACHINE_OTHER);
    CHECK_EQ_U64(machine_of(64, 0x200), HOTFN_MACHINE_OTHER);
}

static void an_image_of_two_machines_is_not_judged_as_one(void)
{
    pe_builder *b = pe_new(64, 0xaa64);
    uint8_t config[256] = { 255 }; /* its own length */
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    config[200] = 1;
    pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    pe_directory(b, 10, pe_add(b, ".rdata", PE_DATA, config, sizeof config, 0), sizeof config);
    pe_finish(b);
    hotfn_image *image = open_sample(b);
    hotfn_image_get_info(image, &info);
    CHECK_EQ_U64(info.machine, HOTFN_MACHINE_OTHER);
    hotfn_image_close(image);
    free(b);
}

static void refused(const pe_builder *b, uint64_t offset, const char *part)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->data, b->size, "bad", NULL, &err),
                 HOTFN_E_FORMAT);
    CHECK_EQ_U64(err.offset, offset);
    if (!CHECK(strstr(err.text, part) != NULL)) {
        printf("#   text: %s\n", err.text);
    }
    hotfn_image_close(image);
}

/* The sample with one number changed. */
static void check_lie_is_refused(size_t at, uint64_t value, int bytes, uint64_t offset,
                                 const char *part)
{
    pe_builder *b = new_sample(64, 0x8664);

    pe_put(b, at, value, bytes);
    refused(b, offset, part);
    free(b);
}

static void headers_that_lie_are_refused_with_their_offset(void)
{
    const uint64_t first = PE_OPTIONAL_AT + 112 + 128, second = first + 40;

    check_lie_is_refused(0x3c, 0x7fffffff, 4, 0x3c, "outside");
    check_lie_is_refused(64, 0x454e, 4, 64, "no PE signature");
    check_lie_is_refused(PE_FILE_AT + 18, 0, 2, PE_FILE_AT + 18, "not executable");
    check_lie_is_refused(PE_FILE_AT + 2, 0, 2, PE_FILE_AT + 2, "no sections");
    check_lie_is_refused(PE_FILE_AT + 2, 0xffff, 2, first, "section headers");
    check_lie_is_refused(PE_FILE_AT + 16, 0, 2, PE_OPTIONAL_AT, "optional header");
    check_lie_is_refused(PE_FILE_AT + 16, 40, 2, PE_OPTIONAL_AT, "cut short");
    check_lie_is_refused(PE_OPTIONAL_AT, 0x107, 2, PE_OPTIONAL_AT, "PE32");
    check_lie_is_refused(PE_OPTIONAL_AT + 24, UINT64_MAX - 4096, 8, PE_OPTIONAL_AT + 56,
                         "address space");
    check_lie_is_refused(PE_OPTIONAL_AT + 60, 0x7fffffff, 4, PE_OPTIONAL_AT + 60, "SizeOfHeaders");
    check_lie_is_refused(PE_OPTIONAL_AT + 56, 0x1800, 4, second + 8, "SizeOfImage");
    check_lie_is_refused(first + 8, 0x1001, 4, second + 12, "overlaps");
    check_lie_is_refused(second + 12, 0x1000, 4, second + 12, "overlaps");
    check_lie_is_refused(second + 12, 0xfffff000, 4, second + 8, "SizeOfImage");
    check_lie_is_refused(second + 8, 0x10000, 4, second + 8, "SizeOfImage");
    check_lie_is_refused(second + 16, 0x7fffffff, 4, PE_HEAD_BYTES + 512, "truncated");
    check_lie_is_refused(second + 20, 0xfffffe00, 4, 0xfffffe00, "truncated");
}

static void a_file_cut_anywhere_is_refused(void)
{
    pe_builder *b = new_sample(64, 0x8664);

    for (size_t size = 2; size < b->size; size++) {
        hotfn_error err = HOTFN_ERROR_INIT;
        hotfn_image *image = NULL;
        uint8_t *cut = malloc(size);
        memcpy(cut, b->data, size);
        if (!CHECK_EQ_I64(hotfn_image_open_bytes(&image, cut, size, "cut", NULL, &err),
                          HOTFN_E_FORMAT)) {
            printf("#   cut at %zu\n", size);
        }
        CHECK(err.text[0] && err.offset != HOTFN_NO_OFFSET);
        hotfn_image_close(image);
        free(cut);
    }
    free(b);
}

static void a_section_without_size_takes_no_room(void)
{
    pe_builder *b = pe_new(64, 0x8664);

    pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    pe_add(b, ".rsrc", PE_DATA, NULL, 0, 0);
    b->next_rva += 4096;
    pe_directory(b, 2, 0x2000, 0);
    pe_finish(b);
    hotfn_image *image = open_sample(b);
    CHECK_EQ_U64(hotfn_image_get_section_count(image), 2);
    CHECK_EQ_U64(hfn_image_section_of(image, 0x2000), UINT32_MAX);
    hotfn_image_close(image);
    free(b);
}

static void long_section_names_stand_in_the_string_table(void)
{
    pe_builder *b = pe_new(64, 0x8664);
    hotfn_section section = HOTFN_SECTION_INIT;

    pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    pe_add(b, "/4", PE_DATA, "1234", 4, 0);
    pe_add(b, "/9999", PE_DATA, "1234", 4, 0);
    pe_finish(b);
    pe_put(b, PE_FILE_AT + 8, b->size, 4); /* PointerToSymbolTable, of no symbols */
    pe_put(b, b->size, 16, 4);
    memcpy(b->data + b->size + 4, ".debug_info", 12);
    b->size += 16;
    hotfn_image *image = open_sample(b);
    CHECK_EQ_I64(hotfn_image_get_section(image, 1, &section), HOTFN_OK);
    CHECK_STR(section.name, ".debug_info");
    CHECK_EQ_I64(hotfn_image_get_section(image, 2, &section), HOTFN_OK);
    CHECK_STR(section.name, "/9999");
    hotfn_image_close(image);
    free(b);
}

/* A debug directory with one CodeView entry behind one of another kind. */
static pe_builder *with_pdb(const char *path)
{
    pe_builder *b = pe_new(64, 0x8664);
    uint8_t data[256] = { 0 };
    static const uint8_t guid[16] = { 0x85, 3,    0xe1, 0x72, 0xb2, 0x5c, 0x90, 0x24,
                                      0x8b, 0x76, 0xb2, 0xe7, 0xc0, 0x62, 0x57, 0xb1 };

    pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    data[12] = 13;      /* POGO */
    data[28 + 12] = 2;  /* CODEVIEW */
    data[28 + 16] = 24; /* SizeOfData */
    memcpy(data + 64, "RSDS", 4);
    memcpy(data + 68, guid, 16);
    data[84] = 3; /* age */
    strcpy((char *)data + 88, path);
    data[28 + 16] = (uint8_t)(25 + strlen(path));
    uint32_t rva = pe_add(b, ".rdata", PE_DATA, data, sizeof data, 0);
    pe_put(b, b->last_offset + 28 + 20, rva + 64, 4);
    pe_put(b, b->last_offset + 28 + 24, b->last_offset + 64, 4);
    pe_directory(b, 6, rva, 56);
    pe_finish(b);
    return b;
}

static void the_image_id_is_guid_and_age_of_its_pdb(void)
{
    static const uint8_t id[20] = { 0x85, 3,    0xe1, 0x72, 0xb2, 0x5c, 0x90, 0x24, 0x8b,
                                    0x76, 0xb2, 0xe7, 0xc0, 0x62, 0x57, 0xb1, 3 };
    pe_builder *b = with_pdb("c:\\x\\game.pdb");
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hfn_pe_pdb pdb;
    hotfn_image *image = open_sample(b);

    hotfn_image_get_info(image, &info);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_PDB);
    CHECK_EQ_U64(info.id_bytes, 20);
    CHECK_MEM(info.id, id, 20);
    CHECK(hfn_pe_pdb_of(image, &pdb));
    CHECK_EQ_U64(pdb.age, 3);
    CHECK_STR(pdb.path, "c:\\x\\game.pdb");
    hotfn_image_close(image);
    free(b);
}

static void without_pdb_the_id_is_time_and_size_else_a_hash(void)
{
    static const uint8_t id[8] = { 1, 0, 0xed, 0x5e, 0, 0x50, 0, 0 };
    pe_builder *b = new_sample(64, 0x8664);
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image = open_sample(b);

    hotfn_image_get_info(image, &info);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_PE);
    CHECK_EQ_U64(info.id_bytes, 8);
    CHECK_MEM(info.id, id, 8);
    hotfn_image_close(image);
    for (uint32_t i = 0; i < 2; i++) { /* both values mean that the linker wrote no time */
        pe_put(b, PE_FILE_AT + 4, i ? UINT32_MAX : 0, 4);
        image = open_sample(b);
        hotfn_image_get_info(image, &info);
        CHECK_EQ_U64(info.id_kind, HOTFN_ID_CODE_HASH);
        hotfn_image_close(image);
    }
    free(b);
}

/* The RVAs that the functions under test visited. */
typedef struct seen {
    uint64_t rvas[32];
    uint32_t bytes[32];
    uint32_t count;
} seen;

static void see_pointer(void *user, uint64_t rva)
{
    seen *s = user;

    if (s->count < 32) {
        s->rvas[s->count++] = rva;
    }
}

static void see_relocated(void *user, uint64_t rva, uint32_t byte_count)
{
    seen *s = user;

    s->bytes[s->count] = byte_count;
    see_pointer(user, rva);
}

static bool saw(const seen *s, uint64_t rva)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->rvas[i] == rva) {
            return true;
        }
    }
    return false;
}

static void relocated_words_are_found_and_followed(void)
{
    pe_builder *b = pe_new(64, 0x8664);
    uint8_t data[16] = { 0 }, relocs[24] = { 0 };
    seen fields = { .count = 0 }, pointers = { .count = 0 };

    pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    uint32_t rva = pe_add(b, ".data", PE_DATA, data, sizeof data, 0);
    pe_put(b, b->last_offset + 8, b->base + 0x1010, 8);
    pe_directory(b, 5, pe_add(b, ".reloc", PE_DATA, relocs, sizeof relocs, 0), sizeof relocs);
    pe_put(b, b->last_offset, rva, 4);
    pe_put(b, b->last_offset + 4, 12, 4);
    pe_put(b, b->last_offset + 8, 0xa008, 2);  /* DIR64 at 8 */
    pe_put(b, b->last_offset + 10, 0x0000, 2); /* padding    */
    pe_put(b, b->last_offset + 12, 0x1000, 4); /* a block that lies about its size */
    pe_put(b, b->last_offset + 16, 0xffffffff, 4);
    pe_finish(b);
    hotfn_image *image = open_sample(b);
    hfn_pe_each_relocated(image, see_relocated, &fields);
    CHECK_EQ_U64(fields.count, 1);
    CHECK_EQ_U64(fields.rvas[0], rva + 8);
    CHECK_EQ_U64(fields.bytes[0], 8);
    hfn_image_each_pointer(image, see_pointer, &pointers);
    CHECK(saw(&pointers, 0x1010));
    hotfn_image_close(image);
    free(b);
}

static void tls_callbacks_and_guard_functions_are_pointers(void)
{
    pe_builder *b = pe_new(64, 0x8664);
    uint8_t data[512] = { 0 };
    seen callbacks = { .count = 0 }, pointers = { .count = 0 };

    pe_add(b, ".text", PE_CODE, code, sizeof code, 0);
    uint32_t rva = pe_add(b, ".rdata", PE_DATA, data, sizeof data, 0);
    uint32_t at = b->last_offset;
    pe_directory(b, 9, rva, 40);
    pe_put(b, at + 24, b->base + rva + 64, 8); /* AddressOfCallBacks */
    pe_put(b, at + 64, b->base + 0x1004, 8);
    pe_directory(b, 10, rva + 128, 64);
    pe_put(b, at + 128, 148, 4);                      /* its length      */
    pe_put(b, at + 128 + 112, b->base + rva + 80, 8); /* check function  */
    pe_put(b, at + 80, b->base + 0x1008, 8);
    pe_put(b, at + 128 + 128, b->base + rva + 96, 8); /* function table  */
    pe_put(b, at + 128 + 136, 2, 8);
    pe_put(b, at + 128 + 144, 0x10000000, 4); /* one more byte an entry */
    pe_put(b, at + 96, 0x100c, 4);
    pe_put(b, at + 101, 0x1010, 4);
    pe_finish(b);
    hotfn_image *image = open_sample(b);
    hfn_pe_each_tls_callback(image, see_pointer, &callbacks);
    CHECK_EQ_U64(callbacks.count, 1);
    CHECK_EQ_U64(callbacks.rvas[0], 0x1004);
    hfn_image_each_pointer(image, see_pointer, &pointers);
    CHECK(saw(&pointers, 0x1004) && saw(&pointers, 0x1008) && saw(&pointers, 0x100c) &&
          saw(&pointers, 0x1010));
    hotfn_image_close(image);
    free(b);
}

static void check_kind(uint32_t entry_flags, bool has_missing_code, uint32_t clr_flags)
{
    static const uint8_t return_code[64] = { 0xc3 };
    pe_builder *b = pe_new(64, 0x8664);
    uint32_t rva = pe_add(b, "first", entry_flags, return_code, sizeof return_code, 0);

    b->entry = rva;
    pe_add(b, "second", 0xe0000080, return_code, has_missing_code ? 0 : sizeof return_code, 4096);
    if (clr_flags) {
        uint8_t header[72] = { 72 };
        header[16] = (uint8_t)clr_flags;
        pe_directory(b, 14, pe_add(b, "clr", PE_DATA, header, sizeof header, 0), sizeof header);
    }
    pe_finish(b);
    hotfn_image *image = open_sample(b);
    CHECK_EQ_U64(hfn_pe_is_packed(image), entry_flags == 0xe0000040 && has_missing_code);
    CHECK_EQ_U64(hfn_pe_is_managed(image), clr_flags & 1);
    hotfn_image_close(image);
    free(b);
}

static void packed_and_managed_images_are_recognised(void)
{
    check_kind(PE_CODE, false, 0);
    check_kind(PE_CODE, true, 0); /* as for incremental linking */
    check_kind(0xe0000040, false, 0);
    check_kind(0xe0000040, true, 0);
    check_kind(PE_CODE, false, 1);
    check_kind(PE_CODE, false, 2); /* with native code */
}

static void every_failed_allocation_is_reported(void)
{
    pe_builder *b = with_pdb("a.pdb");
    bool done = false;

    for (size_t n = 1; n < 100 && !done; n++) {
        counting counter;
        hotfn_env env = counting_env(&counter);
        counter.fail_at = n;
        hotfn_image *image = NULL;
        hotfn_status status =
            hotfn_image_open_bytes(&image, b->data, b->size, "sample", &env, NULL);
        done = status == HOTFN_OK;
        CHECK(done || status == HOTFN_E_NO_MEMORY);
        hotfn_image_close(image);
        CHECK_EQ_U64(counter.live_bytes, 0);
        CHECK_EQ_I64(counter.size_mismatches, 0);
    }
    CHECK(done);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(both_widths_are_read),
    CHECK_TEST(machines_are_recognised_by_number_and_width),
    CHECK_TEST(an_image_of_two_machines_is_not_judged_as_one),
    CHECK_TEST(headers_that_lie_are_refused_with_their_offset),
    CHECK_TEST(a_file_cut_anywhere_is_refused),
    CHECK_TEST(a_section_without_size_takes_no_room),
    CHECK_TEST(long_section_names_stand_in_the_string_table),
    CHECK_TEST(the_image_id_is_guid_and_age_of_its_pdb),
    CHECK_TEST(without_pdb_the_id_is_time_and_size_else_a_hash),
    CHECK_TEST(relocated_words_are_found_and_followed),
    CHECK_TEST(tls_callbacks_and_guard_functions_are_pointers),
    CHECK_TEST(packed_and_managed_images_are_recognised),
    CHECK_TEST(every_failed_allocation_is_reported),
};
CHECK_MAIN(tests)
