/* SPDX-License-Identifier: MIT */
/* The memory that this process may use. */
#include "os/os.h"

#include "check.h"

#include <stdio.h>
#include <sys/sysinfo.h>

/* The group may be anywhere, so the test reads the file of the process's own group only. */
static void limit_is_at_most_that_of_the_own_group(void)
{
    char line[4200], path[4300];
    unsigned long long limit = 0;
    FILE *file = fopen("/proc/self/cgroup", "r");

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
            FILE *max = fopen(path, "r");
            if (max && fscanf(max, "%llu", &limit) == 1) {
                CHECK(hfn_os_get_memory_limit() <= limit);
            }
            if (max) {
                fclose(max);
            }
        }
    }
    if (file) {
        fclose(file);
    }
}

static void limit_is_at_most_the_memory_of_the_machine(void)
{
    struct sysinfo info;

    CHECK_EQ_I64(sysinfo(&info), 0);
    CHECK(hfn_os_get_memory_limit() > 0);
    CHECK(hfn_os_get_memory_limit() <= (uint64_t)info.totalram * info.mem_unit);
}

static const check_test tests[] = {
    CHECK_TEST(limit_is_at_most_the_memory_of_the_machine),
    CHECK_TEST(limit_is_at_most_that_of_the_own_group),
};
CHECK_MAIN(tests)
