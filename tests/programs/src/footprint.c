/* SPDX-License-Identifier: MIT */
/* For kinds_test.py: prints how much memory of this process a core file would contain, how much
 * mlockall() locks, and whether allocations succeed under the limits. The memory of the hooks
 * must appear in none of these. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_KB = 64 * 1024 };
volatile int kept;

__attribute__((noinline)) int counted(int x)
{
    return x * 3 + 1;
}

__attribute__((noinline)) void work(void)
{
    for (int i = 0; i < 500; i++)
        kept = counted(kept & 7);
}

/* Memory that core files omit has the flag dd (proc(5), VmFlags). */
static long dumped_kb(void)
{
    char line[4096];
    long kb = 0, all = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "Size: %ld kB", &kb);
        if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd"))
            all += kb;
    }
    if (file)
        fclose(file);
    return all;
}

static long locked_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmLck: %ld kB", &kb);
    if (file)
        fclose(file);
    return kb;
}

int main(int argc, char **argv)
{
    work();
    if (argc > 1) {
        size_t wanted = (size_t)atol(argv[1]) << 20;
        char *memory = malloc(wanted);
        if (memory)
            memory[wanted - 1] = 1;
        puts(memory ? "there is memory" : "there is none");
        return 0;
    }
    puts(dumped_kb() < MOST_KB ? "a small core" : "a large core");
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        puts("may not lock");
    puts(locked_kb() < MOST_KB ? "locks little" : "locks much");
    char *later = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    work();
    unsigned char in = 0;
    mincore(later, 4096, &in);
    puts(in & 1 ? "brought in" : "not there");
    return 0;
}
