/* SPDX-License-Identifier: MIT */
/* A small live record for tests: two modules and five functions, three of them with slots, and rows
 * that a test counts calls in. */
#ifndef HFN_TESTS_RECORDS_SAMPLE_H
#define HFN_TESTS_RECORDS_SAMPLE_H

#include "check.h"
#include "records/finish.h"

#include <stdlib.h>
#include <unistd.h>

static inline hotfn_record_function sample_function(const char *name, uint64_t rva, uint32_t state)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    f.name = name;
    f.names = "";
    f.name_count = 1;
    f.rva = rva;
    f.byte_count = 16;
    f.state = state;
    f.strategy = state == HOTFN_STATE_HOOKED || state == HOTFN_STATE_WAITING ? "jump" : "";
    f.reason = state == HOTFN_STATE_REFUSED ? "too-short" : "";
    f.reason_text = state == HOTFN_STATE_REFUSED ? "ends before the patch does" : "";
    return f;
}

static inline void sample_add_modules(hfn_live *live)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[4];
    uint32_t index = 99;

    f[0] = sample_function("alpha", 0x1000, HOTFN_STATE_HOOKED);
    f[0].names = "alpha_alias\0alpha_other\0";
    f[0].name_count = 3;
    f[1] = sample_function("_ZN4beta3runEv", 0x1040, HOTFN_STATE_HOOKED);
    f[2] = sample_function("tiny", 0x1080, HOTFN_STATE_REFUSED);
    f[2].reason_offset = 3;
    f[3] = sample_function("alpha.cold", 0x1090, HOTFN_STATE_FRAGMENT);
    m.flags = HOTFN_MODULE_MAIN;
    m.machine = HOTFN_MACHINE_X86_64;
    m.id_kind = 1;
    m.id_bytes = 4;
    memcpy(m.id, "\xde\xad\xbe\xef", 4);
    m.function_count = 4;
    m.path = "/opt/game/game";
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    CHECK_EQ_U64(index, 0);
    f[0] = sample_function("gamma", 0x2000, HOTFN_STATE_WAITING);
    m.flags = 0;
    m.function_count = 1;
    m.path = "libgamma.so";
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    CHECK_EQ_U64(index, 1);
}

static inline hfn_live *sample_live(const char *durable_path)
{
    hfn_live_options o = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live *live = NULL;

    o.durable_path = durable_path;
    o.command = "./game --level 'one two'";
    o.directory = "/opt/game";
    o.slot_capacity = 64;
    o.thread_capacity = 8;
    o.function_capacity = 64;
    o.module_capacity = 4;
    o.string_bytes = 32768;
    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_OK)) {
        printf("# %s: %s\n", err.file, err.text);
        exit(1);
    }
    sample_add_modules(live);
    return live;
}

/* Count calls of the function in slot, as thread tid of process pid. */
static inline void sample_count(hfn_live *live, uint32_t row, uint32_t pid, uint32_t tid,
                                uint32_t slot, uint64_t calls)
{
    hfn_row_memory m;

    m = hfn_live_activate_rows(live);
    if (m.header->cells_used <= row) {
        m.header->cells_used = row + 1;
    }
    m.cells[row].tid = tid;
    m.cells[row].pid = pid;
    m.cells[row].thread_count = 1;
    memcpy(m.cells[row].name, "worker", 7);
    ((uint64_t *)(void *)(m.rows + (uint64_t)row * m.row_bytes))[slot] += calls;
}

static inline hotfn_record_function sample_get(const hotfn_record *record, uint32_t index)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    CHECK_EQ_I64(hotfn_record_get_function(record, index, &f), HOTFN_OK);
    return f;
}

static char sample_folder[64];

static inline void sample_clean_up(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", sample_folder);
    if (system(command) != 0) {
        printf("# %s was not removed\n", sample_folder);
    }
}

/* A path in a new folder of this test program; valid until the next call. */
static inline const char *sample_path(const char *name)
{
    static char path[128];

    if (!sample_folder[0]) {
        /* in memory if possible: thousands of files are written */
        snprintf(sample_folder, sizeof sample_folder, "%s/hotfn-records-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(sample_folder)) {
            exit(1);
        }
        atexit(sample_clean_up);
    }
    snprintf(path, sizeof path, "%s/%s", sample_folder, name);
    return path;
}

#endif
