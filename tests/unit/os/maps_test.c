/* SPDX-License-Identifier: MIT */
/* The list of mappings, read as text and queried from the kernel one by one. */
#include "os/linux/maps.h"

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { SEEN_MAX = 4096 };

typedef struct seen {
    uint64_t from; /* mappings that end here or before are not noted */
    uint32_t count, most;
    hfn_map maps[SEEN_MAX];
} seen;

static seen by_text, by_query;

static bool note(void *user, const hfn_map *map)
{
    seen *s = user;

    if (map->end > s->from && s->count < SEEN_MAX) {
        s->maps[s->count++] = *map;
    }
    return s->count < s->most;
}

static void look_from(uint64_t from, uint32_t most)
{
    by_text = (seen){ .from = from, .most = most };
    by_query = (seen){ .from = from, .most = most };
    CHECK(hfn_linux_each_map(note, &by_text));
    CHECK(hfn_linux_each_map_from(from, note, &by_query));
}

static void both_methods_find_the_same_mappings(void)
{
    const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
                                PROT_READ | PROT_EXEC };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 9 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQ_I64(mprotect(pages + 2 * i * page, page, protections[i]), 0);
    }
    look_from((uint64_t)(uintptr_t)pages, 9);
    if (!CHECK_EQ_U64(by_query.count, by_text.count)) {
        return;
    }
    CHECK(by_query.count >= 4);
    for (uint32_t i = 0; i < by_query.count; i++) {
        CHECK_EQ_U64(by_query.maps[i].begin, by_text.maps[i].begin);
        CHECK_EQ_U64(by_query.maps[i].end, by_text.maps[i].end);
        CHECK_EQ_I64(by_query.maps[i].protection, by_text.maps[i].protection);
    }
    munmap(pages, 9 * page);
}

static void the_last_mapping_ends_the_visit(void)
{
    look_from(0, UINT32_MAX);
    CHECK(by_query.count > 4);
    CHECK(by_query.maps[by_query.count - 1].end == by_text.maps[by_text.count - 1].end ||
          by_text.maps[by_text.count - 1].begin > UINT64_MAX / 2); /* [vsyscall] is no mapping */
}

static const check_test tests[] = {
    CHECK_TEST(both_methods_find_the_same_mappings),
    CHECK_TEST(the_last_mapping_ends_the_visit),
};
CHECK_MAIN(tests)
