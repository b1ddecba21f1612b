/* SPDX-License-Identifier: MIT */
/* A file is scanned, with a cache or with a map; the scan is saved and loaded again, and the
 * functions of a list are found in it.  If the cache gets no memory, it is skipped, and the scan
 * must still succeed. */
#include "each_failure.h"
#include "functions/sample.h"

#include <hotfn/lowlevel/scan.h>

#include <sys/stat.h>
#include <unistd.h>

static const char image_path[] = "oom_image", scan_path[] = "oom_kit.scan";
static const char map_path[] = "oom_image.map";

static void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    CHECK(file && fwrite(bytes, 1, size, file) == size);
    if (file) {
        fclose(file);
    }
}

static hotfn_status find_listed(const hotfn_scan *scan, const hotfn_env *env, hotfn_error *err)
{
    static const char text[] = "oom_image!f\n";
    hotfn_list *list = NULL;
    uint64_t rvas[8];
    uint32_t count = 0;
    hotfn_status status = hotfn_list_from_bytes(&list, text, sizeof text - 1, "oom.txt", env, err);

    if (status == HOTFN_OK) {
        status = hotfn_scan_find_listed(scan, list, rvas, 8, &count, env, err);
    }
    CHECK(status != HOTFN_OK || count == 1);
    hotfn_list_destroy(list);
    return status;
}

/* user: the path of the map, or NULL to scan with a cache. */
static hotfn_status scan_save_and_load(const void *user, const hotfn_env *env, hotfn_error *err)
{
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_scan *scan = NULL, *loaded = NULL;
    hotfn_status status;

    options.threads = 1;
    options.map_path = user;
    options.cache_folder = user ? NULL : ".";
    status = hotfn_scan_open(&scan, image_path, &options, env, err);
    CHECK((status == HOTFN_OK) == (scan != NULL));
    if (status == HOTFN_OK) {
        status = hotfn_scan_save(scan, scan_path, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_scan_load(&loaded, image_path, scan_path, env, err);
    }
    if (status == HOTFN_OK) {
        status = find_listed(loaded, env, err);
    }
    hotfn_scan_close(loaded);
    hotfn_scan_close(scan);
    return status;
}

static void scans_survive_every_failure(void)
{
    char folder[] = "/tmp/hotfn-oom-XXXXXX";
    static const char map[] =
        "             VMA              LMA     Size Align Out     In      Symbol\n"
        "             400              400      100    16 .text\n"
        "             400              400        8     1                 f\n";
    sample s;

    sample_begin(&s);
    symbol(&s, "f", GLOBAL, FUNC, TEXT, 8);
    fde(&s, TEXT, 8);
    sample_build(&s);
    if (!CHECK(mkdtemp(folder) && chdir(folder) == 0)) {
        return;
    }
    put_file(image_path, s.b->file.data, s.b->file.size);
    put_file(map_path, map, sizeof map - 1);
    fail_each_request(scan_save_and_load, NULL, 5);
    fail_each_request(scan_save_and_load, map_path, 5);
    sample_finish(&s);
    CHECK(system("rm -f ./*.scan* ./oom_*") == 0 && rmdir(folder) == 0);
}

static const check_test tests[] = {
    CHECK_TEST(scans_survive_every_failure),
};
CHECK_MAIN(tests)
