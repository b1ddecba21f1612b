/* SPDX-License-Identifier: MIT */
/* Separate debug files: where they are searched for, and which are refused. */
#include "symbols/elf_separate.h"

#include "base/counting_env.h"
#include "check.h"
#include "image/elf_builder.h"

#include <sys/stat.h>
#include <unistd.h>

/* The folder of the running test. */
static char folder[64];

static void begin(void)
{
    strcpy(folder, "/tmp/hotfn-separate-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void end(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const elf_builder *b)
{
    char path[256], *slash;
    FILE *file;

    snprintf(path, sizeof path, "%s", in_folder(name));
    for (slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "wb");
    if (!CHECK(file != NULL)) {
        return;
    }
    CHECK(fwrite(b->file.data, 1, b->file.size, file) == b->file.size);
    fclose(file);
}

/* An ELF file with a build-id of 4 bytes ("" for none), and with .gnu_debuglink if link is not
 * NULL. */
static elf_builder *new_file(const char *build_id, const char *link, uint32_t crc)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *note = elf_buffer(b), *debuglink = elf_buffer(b);

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    put(note, 4, 4), put(note, strlen(build_id), 4), put(note, 3, 4);
    put_text(note, "GNU");
    put_data(note, build_id, strlen(build_id));
    if (*build_id) {
        elf_add_buffer(b, ".note.gnu.build-id", 7, ELF_ALLOC, note);
    } else {
        free(note);
    }
    if (link) {
        put_text(debuglink, link);
        put_align(debuglink, 4);
        put(debuglink, crc, 4);
        elf_add_buffer(b, ".gnu_debuglink", 1, 0, debuglink);
    } else {
        free(debuglink);
    }
    elf_finish(b);
    return b;
}

static uint32_t crc_of(const elf_builder *b)
{
    return hfn_separate_crc32((hfn_span){ b->file.data, b->file.size, false });
}

/* Returns whether a debug file for folder/prog was found, and counts the warnings. */
static bool found(const char *dir, int *warnings)
{
    hfn_symbol_dirs dirs = { &dir, dir ? 1 : 0 };
    hotfn_image *image = NULL, *separate;
    counting c;
    hotfn_env env = counting_env(&c);

    CHECK_EQ_I64(hotfn_image_open(&image, in_folder("prog"), NULL, NULL), HOTFN_OK);
    separate = hfn_separate_open(image, &dirs, &env);
    *warnings = c.warnings;
    hotfn_image_close(separate);
    hotfn_image_close(image);
    CHECK_EQ_U64(c.live_bytes, 0);
    return separate != NULL;
}

/* The check value of CRC-32/ISO-HDLC; the lengths cover both loops of the implementation. */
static void the_crc_equals_that_of_zlib(void)
{
    uint8_t zeros[100] = { 0 };

    CHECK_EQ_U64(hfn_separate_crc32((hfn_span){ (const uint8_t *)"123456789", 9, false }),
                 0xcbf43926);
    CHECK_EQ_U64(hfn_separate_crc32((hfn_span){ NULL, 0, false }), 0);
    CHECK_EQ_U64(hfn_separate_crc32((hfn_span){ zeros, 32, false }), 0x190a55ad);
}

static void a_debug_file_is_found_by_build_id(void)
{
    elf_builder *prog = new_file("\xab\xcd\xef\x01", NULL, 0);
    elf_builder *other = new_file("\xab\xcd\xef\x02", NULL, 0);
    int warnings;

    begin();
    write_file("prog", prog);
    CHECK(!found(in_folder("dbg"), &warnings) && warnings == 0);
    write_file("dbg/.build-id/ab/cdef01.debug", other);
    CHECK(!found(in_folder("dbg"), &warnings) && warnings == 1);
    write_file("dbg/.build-id/ab/cdef01.debug", prog);
    CHECK(found(in_folder("dbg"), &warnings) && warnings == 0);
    CHECK(!found(NULL, &warnings));
    end();
    free(prog);
    free(other);
}

static void a_debug_file_is_found_by_debuglink_beside_the_program(void)
{
    static const char *const places[] = { "prog.debug", ".debug/prog.debug", "dirs/prog.debug" };
    elf_builder *debug = new_file("", NULL, 0);
    elf_builder *prog = new_file("", "prog.debug", crc_of(debug));
    int warnings;

    for (size_t i = 0; i < 3; i++) {
        begin();
        write_file("prog", prog);
        write_file(places[i], debug);
        CHECK(found(in_folder("dirs"), &warnings) && warnings == 0);
        end();
    }
    free(prog);
    free(debug);
}

static void a_symbol_dir_may_mirror_the_path_of_the_program(void)
{
    elf_builder *debug = new_file("", NULL, 0);
    elf_builder *prog = new_file("", "prog.debug", crc_of(debug));
    char place[256];
    int warnings;

    begin();
    write_file("prog", prog);
    snprintf(place, sizeof place, "dirs%s/prog.debug", folder);
    write_file(place, debug);
    CHECK(found(in_folder("dirs"), &warnings) && warnings == 0);
    end();
    free(prog);
    free(debug);
}

static void a_debuglink_with_another_crc_or_build_id_is_refused(void)
{
    elf_builder *debug = new_file("\1\2\3\4", NULL, 0);
    elf_builder *wrong_crc = new_file("\1\2\3\4", "prog.debug", crc_of(debug) ^ 1);
    elf_builder *wrong_id = new_file("\1\2\3\5", "prog.debug", crc_of(debug));
    int warnings;

    begin();
    write_file("prog.debug", debug);
    write_file("prog", wrong_crc);
    CHECK(!found(NULL, &warnings) && warnings == 1);
    write_file("prog", wrong_id);
    CHECK(!found(NULL, &warnings) && warnings == 1);
    end();
    free(debug);
    free(wrong_crc);
    free(wrong_id);
}

static void a_debuglink_with_a_path_is_ignored(void)
{
    elf_builder *debug = new_file("", NULL, 0);
    elf_builder *prog = new_file("", "../prog.debug", crc_of(debug));
    char place[256];
    int warnings;

    begin();
    write_file("sub/prog", prog);
    snprintf(place, sizeof place, "%s", "prog.debug");
    write_file(place, debug);
    strcat(folder, "/sub");
    CHECK(!found(NULL, &warnings));
    folder[strlen(folder) - 4] = 0;
    end();
    free(prog);
    free(debug);
}

static void a_broken_debug_file_is_skipped_with_a_warning(void)
{
    elf_builder *prog = new_file("", "prog.debug", 0), *broken = elf_new_x86_64();
    int warnings;

    begin();
    memcpy(broken->file.data, "\177ELF", 4);
    write_file("prog.debug", broken);
    write_file("prog", prog);
    CHECK(!found(NULL, &warnings) && warnings == 1);
    end();
    free(prog);
    free(broken);
}

static const check_test tests[] = {
    CHECK_TEST(the_crc_equals_that_of_zlib),
    CHECK_TEST(a_debug_file_is_found_by_build_id),
    CHECK_TEST(a_debug_file_is_found_by_debuglink_beside_the_program),
    CHECK_TEST(a_symbol_dir_may_mirror_the_path_of_the_program),
    CHECK_TEST(a_debuglink_with_another_crc_or_build_id_is_refused),
    CHECK_TEST(a_debuglink_with_a_path_is_ignored),
    CHECK_TEST(a_broken_debug_file_is_skipped_with_a_warning),
};
CHECK_MAIN(tests)
