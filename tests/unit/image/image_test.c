/* SPDX-License-Identifier: MIT */
/* Opening images from files and memory, and filling the public structs. */
#include "image/image.h"

#include "base/counting_env.h"
#include "check.h"
#include "image/elf_builder.h"

#include <unistd.h>

static void this_program_is_an_image(void)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;
    counting c;
    hotfn_env env = counting_env(&c);

    if (!CHECK_EQ_I64(hotfn_image_open(&image, "/proc/self/exe", &env, &err), HOTFN_OK)) {
        return;
    }
    CHECK_EQ_I64(hotfn_image_get_info(image, &info), HOTFN_OK);
    CHECK_EQ_U64(info.format, HOTFN_FORMAT_ELF);
    CHECK_STR(info.path, "/proc/self/exe");
    CHECK(info.flags & HOTFN_IMAGE_EXECUTABLE);
    hotfn_image_close(image);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static void a_pipe_is_read(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image = NULL;
    char path[64];
    int ends[2];

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    elf_finish(b);
    if (!CHECK(pipe(ends) == 0)) {
        return;
    }
    CHECK(write(ends[1], b->file.data, b->file.size) == (ssize_t)b->file.size);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CHECK_EQ_I64(hotfn_image_open(&image, path, NULL, NULL), HOTFN_OK);
    hotfn_image_close(image);
    close(ends[0]);
    free(b);
}

static void an_unreadable_path_is_reported(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_open(&image, "/nonexistent/file", NULL, &err), HOTFN_E_IO);
    CHECK_STR(err.file, "/nonexistent/file");
    CHECK(strstr(err.text, "No such file") != NULL);
    CHECK_EQ_I64(hotfn_image_open(&image, "/", NULL, &err), HOTFN_E_IO);
    CHECK(image == NULL);
    hotfn_image_close(NULL);
}

static void reads_past_the_last_byte_or_section_fail(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_section section = HOTFN_SECTION_INIT;
    hotfn_image *image = NULL;
    elf_builder_segment *load;
    uint64_t count = 0;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\x90", 2);
    load = elf_segment(b, 1, 5, 0, b->file.size);
    load->memory_bytes += 100; /* .bss */
    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, NULL, NULL, NULL),
                 HOTFN_OK);
    CHECK(hotfn_image_get_bytes(image, 1025, &count) == b->file.data + 1025);
    CHECK_EQ_U64(count, 1);
    CHECK(hotfn_image_get_bytes(image, 1026, &count) == NULL);
    CHECK_EQ_U64(count, 0);
    CHECK(hotfn_image_get_bytes(image, UINT64_MAX, &count) == NULL);
    CHECK_EQ_I64(hotfn_image_get_section(image, 99, &section), HOTFN_E_NOT_FOUND);
    section.size = 1000;
    CHECK_EQ_I64(hotfn_image_get_section(image, 1, &section), HOTFN_E_OPTION);
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(this_program_is_an_image),
    CHECK_TEST(a_pipe_is_read),
    CHECK_TEST(an_unreadable_path_is_reported),
    CHECK_TEST(reads_past_the_last_byte_or_section_fail),
};
CHECK_MAIN(tests)
