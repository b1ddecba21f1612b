/* SPDX-License-Identifier: MIT */
/* Function lists: both forms are read back unchanged, and broken lists are refused with the offset
 * of the fault.  `wire` has the bytes that protoc writes for one list. */
#include "base/counting_env.h"
#include "check.h"
#include "image/elf_builder.h"

#include <hotfn/lowlevel/lists.h>
#include <unistd.h>

/* The message {version: 1, module: "a", machine: 2, id_kind: 1, id: "\x01\x02", functions: [{index:
 * 3, rva: 4096, size: 300, name: "f"}, {rva: 1}]} and a field 20, which a later version may add. */
static const uint8_t wire[] = {
    0x08, 0x01, 0x12, 0x01, 'a',  0x18, 0x02, 0x20, 0x01, 0x2a, 0x02, 0x01,
    0x02, 0x32, 0x0b, 0x08, 0x03, 0x10, 0x80, 0x20, 0x18, 0xac, 0x02, 0x22,
    0x01, 'f',  0x32, 0x02, 0x10, 0x01, 0xa2, 0x01, 0x02, 'n',  'o',
};

static hotfn_list *read_bytes(const void *bytes, size_t size, hotfn_status want, hotfn_error *err)
{
    hotfn_list *list = NULL;
    hotfn_error own = HOTFN_ERROR_INIT;

    *err = own;
    CHECK_EQ_I64(hotfn_list_from_bytes(&list, bytes, size, "t.flf", NULL, err), want);
    CHECK((list != NULL) == (want == HOTFN_OK));
    return list;
}

static void check_entry(const hotfn_list *list, uint32_t i, uint64_t rva, uint64_t size,
                        const char *name, const char *module)
{
    hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;

    CHECK_EQ_I64(hotfn_list_get(list, i, &e), HOTFN_OK);
    CHECK_EQ_U64(e.rva, rva);
    CHECK_EQ_U64(e.byte_count, size);
    CHECK_STR(e.name, name);
    CHECK_STR(e.module, module);
}

static void a_list_written_by_protoc_is_read(void)
{
    hotfn_list_info info = HOTFN_LIST_INFO_INIT;
    hotfn_error err;
    hotfn_list *list = read_bytes(wire, sizeof wire, HOTFN_OK, &err);

    if (!list) {
        return;
    }
    CHECK_EQ_I64(hotfn_list_get_info(list, &info), HOTFN_OK);
    CHECK_EQ_U64(info.entry_count, 2);
    CHECK_EQ_U64(info.machine, HOTFN_MACHINE_X86_64);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_BUILD_ID);
    CHECK_EQ_U64(info.id_bytes, 2);
    CHECK_MEM(info.id, "\1\2\0", 3);
    check_entry(list, 0, 4096, 300, "f", "a");
    check_entry(list, 1, 1, 0, "", "a");
    hotfn_list_destroy(list);
}

static void text_may_have_comments_and_names(void)
{
    static const char text[] = "# a comment\r\n\n  game+0x11F0 # compare\ngame!space::f(int)\r\n"
                               "lib+c.so+0x10";
    hotfn_error err;
    hotfn_list *list = read_bytes(text, sizeof text - 1, HOTFN_OK, &err);

    if (!list) {
        return;
    }
    check_entry(list, 0, 0x11f0, 0, "", "game");
    check_entry(list, 1, HOTFN_LIST_NO_RVA, 0, "space::f(int)", "game");
    check_entry(list, 2, 0x10, 0, "", "lib+c.so");
    hotfn_list_destroy(list);
}

static void a_saved_list_is_read_back_unchanged(void)
{
    static const uint32_t forms[] = { 0, HOTFN_LIST_TEXT };
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image = NULL;
    hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;
    hotfn_list *list = NULL;
    char path[] = "/tmp/hotfn-list-XXXXXX";
    int fd = mkstemp(path);

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "/x/game", NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_list_create(&list, image, NULL, NULL), HOTFN_OK);
    for (uint64_t i = 0; i < 300; i++) {
        e.index = (uint32_t)i;
        e.rva = i * i * i * 1000;
        e.byte_count = i;
        e.name = i % 3 ? "a_name" : "";
        CHECK_EQ_I64(hotfn_list_add(list, &e, NULL), HOTFN_OK);
    }
    for (size_t form = 0; form < 2; form++) {
        hotfn_list *again = NULL;
        CHECK_EQ_I64(hotfn_list_save(list, path, forms[form], NULL), HOTFN_OK);
        CHECK_EQ_I64(hotfn_list_open(&again, path, NULL, NULL), HOTFN_OK);
        for (uint32_t i = 0; again && i < 300; i += 7) {
            check_entry(again, i, (uint64_t)i * i * i * 1000, forms[form] ? 0 : i,
                        i % 3 && !forms[form] ? "a_name" : "", "game");
        }
        hotfn_list_destroy(again);
    }
    CHECK_EQ_I64(hotfn_list_save(list, "/dev/null/x.flf", 0, NULL), HOTFN_E_IO);
    CHECK_EQ_I64(hotfn_list_save(list, path, 2, NULL), HOTFN_E_OPTION);
    hotfn_list_destroy(list);
    hotfn_image_close(image);
    free(b);
    close(fd);
    unlink(path);
}

static void broken_lists_are_refused_with_the_offset(void)
{
    static const char no_hex[] = "game+0x10\ngame+0xyz\n";
    hotfn_error err;
    uint8_t bytes[sizeof wire];

    for (size_t cut = 1; cut < sizeof wire;
         cut++) { /* a list that ends between two fields is valid */
        hotfn_list *list = NULL;
        hotfn_status status = hotfn_list_from_bytes(&list, wire, cut, "t", NULL, NULL);
        CHECK(status == HOTFN_OK || status == HOTFN_E_FORMAT);
        hotfn_list_destroy(list);
    }
    read_bytes(wire, 20, HOTFN_E_FORMAT, &err);
    CHECK(err.offset != HOTFN_NO_OFFSET);
    memcpy(bytes, wire, sizeof wire);
    bytes[1] = 2;
    read_bytes(bytes, sizeof bytes, HOTFN_E_UNSUPPORTED, &err);
    bytes[1] = 1, bytes[25] = 0;
    read_bytes(bytes, sizeof bytes, HOTFN_E_FORMAT, &err);
    CHECK_EQ_U64(err.offset, 25);
    read_bytes(no_hex, sizeof no_hex - 1, HOTFN_E_FORMAT, &err);
    CHECK_EQ_U64(err.offset, 10);
    CHECK(strstr(err.text, "line 2") != NULL);
    read_bytes("game\n", 5, HOTFN_E_FORMAT, &err);
    read_bytes("!f\n", 3, HOTFN_E_FORMAT, &err);
    read_bytes("game+0x10000000000000010\n", 25, HOTFN_E_FORMAT,
               &err); /* an RVA has at most 16 digits */
}

static void failed_allocations_are_reported_without_leaks(void)
{
    size_t requests = SIZE_MAX;

    for (size_t n = 1; requests >= n - 1; n++) {
        counting c;
        hotfn_env env = counting_env(&c);
        hotfn_list *list = NULL;
        c.fail_at = n;
        hotfn_status status = hotfn_list_from_bytes(&list, wire, sizeof wire, "t", &env, NULL);
        CHECK(status == HOTFN_OK || status == HOTFN_E_NO_MEMORY);
        hotfn_list_destroy(list);
        if (!CHECK_EQ_U64(c.live_bytes, 0) || !CHECK_EQ_I64(c.size_mismatches, 0)) {
            return;
        }
        requests = c.requests;
    }
}

static const check_test tests[] = {
    CHECK_TEST(a_list_written_by_protoc_is_read),
    CHECK_TEST(text_may_have_comments_and_names),
    CHECK_TEST(a_saved_list_is_read_back_unchanged),
    CHECK_TEST(broken_lists_are_refused_with_the_offset),
    CHECK_TEST(failed_allocations_are_reported_without_leaks),
};

CHECK_MAIN(tests)
