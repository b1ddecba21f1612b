/* SPDX-License-Identifier: MIT */
/* Measures the cost of scanning and hooking a whole file, compared with the minimum work.
 *
 *     start FILE CACHE [COUNT]
 *
 * In one process, in this order: a linear minimal decode of all text by Zydis on one thread; a
 * cold scan; a warm scan from the folder CACHE; hooking all functions (or COUNT of them) of the
 * text, mapped as by a loader; a plain copy of the patched pages.  Prints `NAME VALUE` lines:
 * times in ns, memory in bytes. */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ull

static void require_ok(hotfn_status status, const hotfn_error *err, const char *what)
{
    if (status == HOTFN_OK) {
        return;
    }
    fprintf(stderr, "start: %s: %s\n", what,
            err->text[0] ? err->text : hotfn_status_get_name(status));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void print_value(const char *name, uint64_t value)
{
    printf("%s %" PRIu64 "\n", name, value);
    fflush(stdout);
}

/* ---- The minimum: one pass over the text. */

static uint64_t decode_linearly(const uint8_t *bytes, uint64_t byte_count)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    uint64_t at = 0, count = 0;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    while (at < byte_count) {
        bool good = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at,
                                                               byte_count - at, &instruction));
        at += good ? instruction.length : 1;
        count++;
    }
    return count;
}

/* Calls visit for each executable section that has bytes. */
typedef void (*section_fn)(const hotfn_image *image, const hotfn_section *section, void *user);

static void visit_text(const hotfn_image *image, section_fn visit, void *user)
{
    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section section = HOTFN_SECTION_INIT;
        hotfn_image_get_section(image, i, &section);
        if ((section.flags & HOTFN_SECTION_EXECUTE) && (section.flags & HOTFN_SECTION_LOADED)) {
            visit(image, &section, user);
        }
    }
}

typedef struct decode_sum {
    uint64_t bytes, instructions, ns;
} decode_sum;

static void decode_section(const hotfn_image *image, const hotfn_section *section, void *user)
{
    decode_sum *sum = user;
    uint64_t available = 0;
    const uint8_t *bytes = hotfn_image_get_bytes(image, section->rva, &available);
    uint64_t count = available < section->byte_count ? available : section->byte_count;
    uint8_t *copy = malloc(count + 1); /* loads the file's pages into the cache */

    memcpy(copy, bytes, count);
    uint64_t begin = now_ns();
    sum->instructions += decode_linearly(copy, count);
    sum->ns += now_ns() - begin;
    sum->bytes += count;
    free(copy);
}

static void measure_decode(const hotfn_image *image)
{
    decode_sum sum = { 0, 0, 0 };

    visit_text(image, decode_section, &sum);
    print_value("text_bytes", sum.bytes);
    print_value("instructions", sum.instructions);
    print_value("decode_ns", sum.ns);
}

/* ---- Scans. */

static hotfn_scan *measure_scan(const char *path, const char *cache, const char *name)
{
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan *scan;

    options.cache_folder = cache;
    uint64_t begin = now_ns();
    require_ok(hotfn_scan_open(&scan, path, &options, NULL, &err), &err, path);
    print_value(name, now_ns() - begin);
    return scan;
}

/* ---- Hooks, on text that is mapped but never run. */

typedef struct mapping {
    int fd;
    uint8_t *base; /* RVA 0 */
    uint64_t bytes;
} mapping;

static void map_section(const hotfn_image *image, const hotfn_section *section, void *user)
{
    mapping *m = user;
    uint64_t begin = section->rva & ~(PAGE - 1), slack = section->rva - begin;

    (void)image;
    if (mmap(m->base + begin, section->byte_count + slack, PROT_READ | PROT_EXEC,
             MAP_PRIVATE | MAP_FIXED, m->fd, (off_t)(section->file_offset - slack)) == MAP_FAILED) {
        exit(1);
    }
}

static void map_text(mapping *m, const hotfn_image *image, const char *path)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(image, &info);
    m->fd = open(path, O_RDONLY | O_CLOEXEC);
    m->base = mmap(NULL, info.loaded_bytes + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    m->bytes = info.loaded_bytes;
    if (m->base == MAP_FAILED || m->fd < 0) {
        exit(1);
    }
    visit_text(image, map_section, m);
}

/* Choose `wanted` hookable functions, spread over the image; 0: all. */
static uint32_t *choose_slots(const hotfn_plan *plan, uint32_t wanted)
{
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    uint32_t slot = 0;

    hotfn_plan_get_info(plan, &info);
    uint32_t *slots = malloc((info.function_count + 1) * sizeof *slots);
    memset(slots, 0xff, (info.function_count + 1) * sizeof *slots);
    if (wanted == 0 || wanted > info.entry_count) {
        wanted = info.entry_count;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        hotfn_plan_entry entry = HOTFN_PLAN_ENTRY_INIT;
        uint32_t index = (uint32_t)((uint64_t)i * info.entry_count / wanted);
        hotfn_plan_get(plan, index, &entry);
        slots[entry.function_index] = slot++;
    }
    print_value("functions", info.function_count);
    print_value("asked", slot);
    return slots;
}

static void print_stats(const hotfn_commit_stats *stats)
{
    print_value("hooked", stats->hooked);
    print_value("refused", stats->refused);
    print_value("stub_bytes", stats->stub_bytes);
    print_value("unwind_bytes", stats->unwind_bytes);
    print_value("table_bytes", stats->table_bytes);
    print_value("copied_page_bytes", stats->copied_page_bytes);
}

static void measure_hooks(const hotfn_plan *plan, const mapping *m, const uint32_t *slots)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_counters *counters;
    hotfn_hooks *hooks;
    uint32_t module;

    options.flags = HOTFN_HOOKS_SINGLE_THREADED;
    require_ok(hotfn_counters_create(&counters, 1u << 18, 1, NULL, &err), &err, "counters");
    hotfn_counters_get_access(counters, &access);
    uint64_t begin = now_ns();
    require_ok(hotfn_hooks_create(&hooks, &options, &access, NULL, &err), &err, "hooks");
    require_ok(
        hotfn_hooks_add_module(hooks, plan, (uint64_t)(uintptr_t)m->base, slots, &module, &err),
        &err, "add");
    require_ok(hotfn_hooks_commit(hooks, &stats, &err), &err, "commit");
    print_value("hook_ns", now_ns() - begin);
    print_stats(&stats);
}

#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

/* The numbers of the private pages, which were written (Linux, admin-guide, pagemap). */
static uint64_t *written_pages(const mapping *m, uint64_t *count)
{
    uint64_t all = m->bytes / PAGE, first = (uint64_t)(uintptr_t)m->base / PAGE;
    uint64_t *list = calloc(all + 1, sizeof *list);
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    *count = 0;
    for (uint64_t page = 0; page < all; page++) {
        uint64_t entry = 0;
        if (pread(fd, &entry, sizeof entry, (off_t)((first + page) * sizeof entry)) !=
            sizeof entry) {
            exit(1);
        }
        if ((entry & PAGE_PRESENT) && !(entry & PAGE_OF_FILE)) {
            list[(*count)++] = page;
        }
    }
    close(fd);
    return list;
}

/* Measure copying the patched pages to fresh memory. */
static void measure_copy(const mapping *m)
{
    uint64_t pages, *list = written_pages(m, &pages);

    uint64_t begin = now_ns();
    uint8_t *copy =
        mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t i = 0; i < pages; i++) {
        memcpy(copy + i * PAGE, m->base + list[i] * PAGE, PAGE);
    }
    print_value("copy_ns", now_ns() - begin);
    print_value("patched_pages", pages);
}

int main(int argc, char **argv)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_plan *plan;
    mapping m;

    if (argc < 3) {
        return 2;
    }
    require_ok(hotfn_image_open(&image, argv[1], NULL, &err), &err, argv[1]);
    measure_decode(image);
    hotfn_scan_close(measure_scan(argv[1], NULL, "cold_ns"));
    hotfn_scan_close(measure_scan(argv[1], argv[2], "cold_and_kept_ns"));
    hotfn_scan *scan = measure_scan(argv[1], argv[2], "warm_ns");
    hotfn_scan_get_info(scan, &info);
    print_value("from_cache", info.from_cache);
    uint64_t begin = now_ns();
    require_ok(hotfn_plan_open(&plan, info.plan, info.plan_bytes, 0, NULL, &err), &err, "plan");
    print_value("plan_open_ns", now_ns() - begin);
    map_text(&m, image, argv[1]);
    uint32_t *slots = choose_slots(plan, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
    measure_hooks(plan, &m, slots);
    measure_copy(&m);
    return 0;
}
