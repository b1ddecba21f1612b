/* SPDX-License-Identifier: MIT */
/* Loads and unloads a plugin many times, and allocates memory in between so that the plugin is
 * mapped at a different address each time. The plugin is in the program's folder. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "totals.h"

enum { ROUNDS = 60, CALLS = 25, HOLD_BYTES = 1 << 20 };

COUNTED long use(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW);
    long (*work)(long);
    long sum = 0;
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&work = dlsym(plugin, "plugin_work");
    for (long i = 0; i < CALLS; i++)
        sum += work(i);
    dlclose(plugin);
    return sum;
}

int main(void)
{
    char path[4096];
    long sum = 0;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    if (length < 0)
        return 1;
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, "dlopen_plugin.so");
    for (int i = 0; i < ROUNDS; i++) {
        sum += use(path);
        if (i % 7 == 0 && mmap(NULL, HOLD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                              MAP_FAILED)
            return 1;
    }
    printf("sum %ld still loaded %d\n", sum, dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL);
    say_total("use", ROUNDS);
    say_total("dlopen_plugin.so:plugin_work", ROUNDS * CALLS);
    say_total("dlopen_plugin.so:plugin_helper", 2 * ROUNDS * CALLS);
    return 0;
}
