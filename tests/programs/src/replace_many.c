/* SPDX-License-Identifier: MIT */
/* Preloaded into a program: replaces REPLACE_COUNT functions of the module whose file is
 * REPLACE_MODULE, chosen at random by REPLACE_SEED, by forwarders that jump to the original.  The
 * hooks are removed at the end, and every byte of the module's code is compared with what it was
 * before.
 *
 * One line on REPLACE_LOG: "replaced N refused M changed-bytes C". */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_REPLACED 1000
#define TEXT(x) #x
#define STRING(x) TEXT(x)

/* forwarder n: jmp *originals[n], which changes no register and no flag */
__attribute__((visibility("hidden"))) void (*originals[MAX_REPLACED])(void);
extern const char forwarders[], forwarders_end[];
__asm__(".pushsection .text\n.balign 16\nforwarders:\n"
        ".set number, 0\n.rept " STRING(
            MAX_REPLACED) "\n"
                          "jmp *originals + number(%rip)\n.balign 16\n"
                          ".set number, number + 8\n.endr\nforwarders_end:\n.popsection\n");

typedef struct module {
    struct stat file;
    uint64_t base; /* address of RVA 0 */
    uint64_t text, text_bytes;
    uint8_t *before; /* a copy of the text */
} module;

static module chosen;
static hotfn_hooks *hooks;
static uint32_t replaced, refused;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static int find_module(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
    uint64_t lowest = UINT64_MAX;
    struct stat file;

    (void)bytes;
    (void)unused;
    if (stat(path, &file) != 0 || file.st_ino != chosen.file.st_ino ||
        file.st_dev != chosen.file.st_dev) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_vaddr < lowest) {
            lowest = p->p_vaddr;
        }
        if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
            chosen.text = info->dlpi_addr + p->p_vaddr;
            chosen.text_bytes = p->p_memsz;
        }
    }
    chosen.base = info->dlpi_addr + (lowest & ~UINT64_C(4095));
    return 1;
}

static void replace_at(uint64_t address)
{
    uintptr_t forwarder = (uintptr_t)forwarders + 16u * replaced, entry = (uintptr_t)address;
    void (*function)(void), (*by)(void);
    hotfn_error err = HOTFN_ERROR_INIT;

    memcpy(&function, &entry, sizeof function);
    memcpy(&by, &forwarder, sizeof by);
    if (hotfn_hooks_replace(&originals[replaced], hooks, function, by, NULL, &err) == HOTFN_OK) {
        replaced++;
        return;
    }
    refused++;
    if (getenv("REPLACE_VERBOSE")) {
        fprintf(stderr, "refused: %s\n", err.text);
    }
}

static void replace_random(const hotfn_scan *scan, uint32_t wanted)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    uint64_t state = strtoull(getenv("REPLACE_SEED"), NULL, 10);

    hotfn_scan_get_info(scan, &info);
    for (uint32_t tries = 0; replaced < wanted && tries < 4 * wanted; tries++) {
        hotfn_record_function function = HOTFN_RECORD_FUNCTION_INIT;

        hotfn_scan_get_function(scan, (uint32_t)(next_random(&state) % info.function_count),
                                &function);
        if (function.reason[0] == 0) { /* it can be hooked */
            replace_at(chosen.base + function.rva);
        }
    }
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("REPLACE_MODULE");
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_scan *scan = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (!path || stat(path, &chosen.file) != 0 || dl_iterate_phdr(find_module, NULL) == 0) {
        return; /* another process, such as a child */
    }
    chosen.before = malloc(chosen.text_bytes);
    memcpy(chosen.before, (const void *)(uintptr_t)chosen.text, chosen.text_bytes);
    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
    if (hotfn_scan_open(&scan, path, NULL, NULL, &err) != HOTFN_OK ||
        hotfn_hooks_create(&hooks, &options, NULL, NULL, &err) != HOTFN_OK) {
        fprintf(stderr, "replace_many: %s\n", err.text);
        _exit(99);
    }
    replace_random(scan, (uint32_t)atoi(getenv("REPLACE_COUNT")));
    hotfn_scan_close(scan);
    unsetenv("REPLACE_MODULE");
}

__attribute__((destructor)) static void end(void)
{
    FILE *log;
    uint64_t changed = 0;
    hotfn_status status;

    if (!hooks) {
        return;
    }
    status = hotfn_hooks_remove(hooks, NULL);
    for (uint64_t i = 0; i < chosen.text_bytes; i++) {
        changed += chosen.before[i] != ((const uint8_t *)(uintptr_t)chosen.text)[i];
    }
    log = fopen(getenv("REPLACE_LOG"), "w");
    fprintf(log, "replaced %u refused %u changed-bytes %llu status %d\n", replaced, refused,
            (unsigned long long)changed, (int)status);
    fclose(log);
}
