/* SPDX-License-Identifier: MIT */
/* Scans of this test program: fresh and cached scans are equal, and a broken cache file is
 * replaced. */
#include "scan/block.h"
#include "scan/cache.h"
#include "scan/file_stamp.h"
#include "scan/scan.h"

#include "base/memory.h"

#include "check.h"
#include "image/elf_builder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static char folder[] = "/tmp/hotfn-scan-test-XXXXXX";

static hotfn_scan *scan_self(const char *cache)
{
    hotfn_scan *scan = NULL;
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;

    options.cache_folder = cache;
    if (!CHECK(hotfn_scan_open(&scan, "/proc/self/exe", &options, NULL, &err) == HOTFN_OK)) {
        printf("# %s\n", err.text);
    }
    return scan;
}

static hotfn_scan_info get_info(const hotfn_scan *scan)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;

    CHECK(hotfn_scan_get_info(scan, &info) == HOTFN_OK);
    return info;
}

static void main_is_hookable(void)
{
    hotfn_scan *scan = scan_self(NULL);
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    int found = 0;

    for (uint32_t i = 0; hotfn_scan_get_function(scan, i, &f) == HOTFN_OK; i++) {
        if (strcmp(f.name, "main") == 0) {
            found = 1;
            CHECK_EQ_U64(f.state, HOTFN_STATE_WAITING);
            CHECK(f.strategy[0] != 0 && f.byte_count > 0);
        }
    }
    CHECK(found);
    CHECK(get_info(scan).hookable_count > 50);
    hotfn_scan_close(scan);
}

static void a_cached_scan_equals_a_fresh_one(void)
{
    hotfn_scan *fresh = scan_self(folder);
    hotfn_scan *cached = scan_self(folder);
    hotfn_scan_info a = get_info(fresh), b = get_info(cached);

    CHECK_EQ_U64(a.from_cache, 0);
    CHECK_EQ_U64(b.from_cache, 1);
    CHECK_EQ_U64(a.plan_bytes, b.plan_bytes);
    CHECK(memcmp(a.plan, b.plan, a.plan_bytes) == 0);
    CHECK_EQ_U64(a.function_count, b.function_count);
    hotfn_scan_close(fresh);
    hotfn_scan_close(cached);
}

/* The scan of a file whose stamp is not reliable yet is not cached. */
static void wait_until_stamp_is_reliable(const char *path)
{
    hfn_os_file_info file;

    while (CHECK_EQ_I64(hfn_os_get_path_info(path, &file), 0) &&
           !hfn_file_stamp_is_reliable(&file)) {
        usleep(1000);
    }
}

/* A decompressor that copies its input, or fails while *user is false as without liblzma. */
static void *unpack(void *user, int32_t compression, const void *in, size_t in_bytes,
                    size_t max_bytes, hotfn_realloc_fn grow, void *grow_user, size_t *out_bytes)
{
    void *out = *(bool *)user ? grow(grow_user, NULL, 0, in_bytes) : NULL;

    CHECK(compression == HOTFN_COMPRESSION_XZ && in_bytes <= max_bytes);
    if (out) {
        memcpy(out, in, in_bytes);
    }
    *out_bytes = in_bytes;
    return out;
}

static void a_scan_without_the_compressed_names_is_not_cached(void)
{
    static const struct {
        bool has_decompressor, succeeds, from_cache; /* the last is the expected result */
    } rows[] = {
        { true, false, false }, { true, false, false }, { true, true, false },
        { true, true, true },   { true, false, true },  { false, false, false },
        { false, false, true },
    };
    elf_builder *b = elf_new_x86_64();
    char path[64];

    snprintf(path, sizeof path, "%s/packed", folder);
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3\xc3\xc3", 4);
    elf_add(b, ".gnu_debugdata", 1, 0, "packed", 6);
    elf_finish(b);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(b->file.data, 1, b->file.size, file) == b->file.size && !fclose(file));
    wait_until_stamp_is_reliable(path);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool succeeds = rows[i].succeeds;
        hotfn_env env = HOTFN_ENV_INIT;
        hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
        hotfn_scan *scan = NULL;

        env.decompress_fn = rows[i].has_decompressor ? unpack : NULL;
        env.decompress_user = &succeeds;
        options.cache_folder = folder;
        if (CHECK_EQ_I64(hotfn_scan_open(&scan, path, &options, &env, NULL), HOTFN_OK)) {
            CHECK_EQ_U64(get_info(scan).from_cache, rows[i].from_cache);
        }
        hotfn_scan_close(scan);
    }
    free(b);
}

static uint32_t count_files(const char *where)
{
    uint32_t count = 0;
    DIR *dir = opendir(where);

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static void the_scan_of_a_new_version_replaces_the_old_one(void)
{
    char where[64], path[64], command[400];
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_scan *scan = NULL;

    snprintf(where, sizeof where, "%s/versions", folder);
    snprintf(path, sizeof path, "%s-copy", folder);
    options.cache_folder = where;
    for (uint32_t i = 0; i < 6; i++) {
        if (i % 2 == 0) { /* another inode and another size */
            snprintf(command, sizeof command,
                     "cp /proc/%d/exe %s.new && head -c %u /dev/zero >> %s.new && mv %s.new %s",
                     (int)getpid(), path, i, path, path, path);
            CHECK(system(command) == 0);
            wait_until_stamp_is_reliable(path);
        }
        CHECK(hotfn_scan_open(&scan, path, &options, NULL, NULL) == HOTFN_OK);
        CHECK_EQ_U64(get_info(scan).from_cache, i % 2);
        CHECK_EQ_U64(count_files(where), 1);
        hotfn_scan_close(scan);
    }
    snprintf(command, sizeof command, "rm -r %s %s", where, path);
    CHECK(system(command) == 0);
}

/* Overwrite two bytes of each file in the cache folder. */
static void damage_cache(long at)
{
    char name[512];
    struct dirent *entry;
    DIR *dir = opendir(folder);

    while (dir && (entry = readdir(dir))) {
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        int fd = open(name, O_WRONLY);
        if (fd >= 0) {
            CHECK(pwrite(fd, "\xff\xff", 2, at) == 2);
            close(fd);
        }
    }
    closedir(dir);
}

static void a_broken_cache_file_is_replaced(void)
{
    static const long places[] = { 0, 8, 20, 64, 72, 80, 88, 104 };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        hotfn_scan_close(scan_self(folder));
        damage_cache(places[i]);
        hotfn_scan *scan = scan_self(folder);
        CHECK_EQ_U64(get_info(scan).from_cache, 0);
        hotfn_scan_close(scan);
    }
}

static void a_cache_file_of_another_user_is_ignored(void)
{
    char command[600];
    hotfn_scan *scan;

    hotfn_scan_close(scan_self(folder));
    snprintf(command, sizeof command, "chown 65534 '%s'/* 2>/dev/null", folder);
    if (system(command) != 0) {
        printf("# skipped: the owner of a file cannot be changed here\n");
        return;
    }
    scan = scan_self(folder);
    CHECK_EQ_U64(get_info(scan).from_cache, 0);
    hotfn_scan_close(scan);
}

static void a_truncated_block_is_refused_at_every_length(void)
{
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_env env = hfn_env_fill(NULL);
    hfn_scan_header header;
    uint8_t *block = NULL;
    uint64_t bytes = 0;

    CHECK(hfn_scan_make(&block, &bytes, "/proc/self/exe", &options, 1, &env, NULL) == HOTFN_OK);
    CHECK(hfn_scan_check((hfn_span){ block, bytes, false }, &header));
    for (uint64_t n = 0; n < bytes; n += n < 4096 ? 1 : 997) {
        CHECK(!hfn_scan_check((hfn_span){ block, n, false }, &header));
    }
    hfn_free_memory(&env, block, bytes);
}

static void a_file_that_is_not_a_program_is_refused_with_its_name(void)
{
    hotfn_scan *scan = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK(hotfn_scan_open(&scan, "/etc/passwd", NULL, NULL, &err) == HOTFN_E_FORMAT);
    CHECK_STR(err.file, "/etc/passwd");
    CHECK(hotfn_scan_open(&scan, "/no/such/file", NULL, NULL, &err) == HOTFN_E_IO);
    CHECK(scan == NULL);
}

static const check_test tests[] = {
    CHECK_TEST(main_is_hookable),
    CHECK_TEST(a_cached_scan_equals_a_fresh_one),
    CHECK_TEST(a_scan_without_the_compressed_names_is_not_cached),
    CHECK_TEST(the_scan_of_a_new_version_replaces_the_old_one),
    CHECK_TEST(a_broken_cache_file_is_replaced),
    CHECK_TEST(a_cache_file_of_another_user_is_ignored),
    CHECK_TEST(a_truncated_block_is_refused_at_every_length),
    CHECK_TEST(a_file_that_is_not_a_program_is_refused_with_its_name),
};

static void remove_folder(void)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) {
        printf("# %s was not removed\n", folder);
    }
}

__attribute__((constructor)) static void make_folder(void)
{
    if (mkdtemp(folder)) {
        atexit(remove_folder);
    }
}

CHECK_MAIN(tests)
