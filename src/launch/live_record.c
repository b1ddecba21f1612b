/* SPDX-License-Identifier: MIT */
/* The live record of a launch: its capacities, and the symbolic link at the record's path, through
 * which it can be read at any time. */
#include "arch/method_pool.h"
#include "base/status.h"
#include "launch/launch.h"
#include "os/process.h"

#include <hotfn/lowlevel/verdicts.h>
#include <stdio.h>
#include <string.h>

/* A 32-bit target lacks the address space for a record of many gigabytes, although the record is
 * sparse. */
enum {
    EITHER_SLOTS = 1 << 19, /* for a 64-bit program that may have 32-bit children */
    WIDE_SLOTS = 2 << 20,   /* for any other 64-bit program */
    MAX_SLOTS = 16 << 20,
    NARROW_SLOTS = 1 << 18,
    NARROW_TIMED_SLOTS = 1 << 16,
    NARROW_ROWS_BYTES = 256 << 20,
    NARROW_STRING_BYTES = 64 << 20,
    NARROW_HISTOGRAMS = 1 << 12,
    NARROW_NODES = 1 << 19,
    MIN_NARROW_THREADS = 16,
    MAX_NARROW_THREADS = 4096,
    TIMED_SLOT_BYTES = 84, /* and NARROW_LOG_BYTES for each thread */
    NARROW_LOG_BYTES = 192 << 10,
    CODE_BYTES_PER_FUNCTION = 16,
    SPARE_SLOTS = 8192,
    REASONS = 128,
};

static void set_narrow_limits(hfn_live_options *o, uint32_t timing)
{
    uint64_t row_bytes = (uint64_t)o->slot_capacity * sizeof(uint64_t), rows;

    if (timing) {
        row_bytes = (uint64_t)o->slot_capacity * TIMED_SLOT_BYTES + NARROW_LOG_BYTES;
    }
    rows = NARROW_ROWS_BYTES / row_bytes;
    o->thread_capacity = rows < MIN_NARROW_THREADS   ? MIN_NARROW_THREADS
                         : rows > MAX_NARROW_THREADS ? MAX_NARROW_THREADS
                                                     : (uint32_t)rows;
    o->string_bytes = NARROW_STRING_BYTES;
    o->node_capacity = NARROW_NODES;
    o->histogram_capacity = NARROW_HISTOGRAMS;
}

/* Returns the number of slots for the functions of the libraries. */
static uint32_t count_other_slots(const hotfn_launch *l, bool is_narrow)
{
    const hotfn_launch_options *o = &l->options;

    if (!o->module_count && !o->target_glob && !(o->flags & HOTFN_LAUNCH_FOLLOW)) {
        return 0;
    }
    if (is_narrow) {
        return l->timing ? NARROW_TIMED_SLOTS : NARROW_SLOTS;
    }
    return strstr(l->agent, "$PLATFORM") ? EITHER_SLOTS : WIDE_SLOTS;
}

/* Quote the command for a shell; the text is owned by the arena. */
static char *quote_command(hotfn_launch *l)
{
    const char *const *command = l->options.command;
    size_t bytes = 1;

    for (const char *const *word = command; *word; word++) {
        bytes += 4 * strlen(*word) + 3;
    }
    char *text = hfn_arena_alloc(&l->texts, bytes), *at = text;
    for (const char *const *word = command; text && *word; word++) {
        bool is_plain = **word && !(*word)[strcspn(*word, " \t\n'\"\\$`*?[]{}()<>|&;#~!")];
        at += sprintf(at, "%s%s", word == command ? "" : " ", is_plain ? "" : "'");
        for (const char *c = *word; *c; c++) {
            at += sprintf(at, *c == '\'' ? "'\\''" : "%c", *c);
        }
        at += sprintf(at, "%s", is_plain ? "" : "'");
    }
    return text;
}

static hotfn_status create_live(hotfn_launch *l, hotfn_error *err)
{
    char folder[HFN_OS_PATH_BYTES];
    hfn_live_options o = { 0 };
    bool is_narrow = l->target.machine == HOTFN_MACHINE_X86;
    uint64_t slots = l->target.text_bytes / CODE_BYTES_PER_FUNCTION + SPARE_SLOTS +
                     count_other_slots(l, is_narrow) +
                     (l->options.runtime ? HFN_POOL_FUNCTIONS : 0);

    o.slot_capacity = slots < MAX_SLOTS ? (uint32_t)slots : MAX_SLOTS;
    if (is_narrow) {
        set_narrow_limits(&o, l->timing);
    }
    if (l->options.max_threads) {
        o.thread_capacity = l->options.max_threads;
    }
    if (l->options.max_places) {
        o.node_capacity = l->options.max_places;
    }
    l->command = l->command ? l->command : quote_command(l);
    o.command = l->command;
    hfn_os_get_working_folder(folder, sizeof folder);
    o.directory = folder;
    o.durable_path = l->options.flags & HOTFN_LAUNCH_DURABLE ? l->options.record_path : NULL;
    o.timing = l->timing;
    o.sample_mean = l->options.sample_interval;
    o.slow_ns = l->options.slow_ns;
    o.budget_ppm = l->options.budget_ppm;
    o.with_ticks = l->options.clock == HOTFN_LAUNCH_CLOCK_TICK;
    if (!o.command) {
        return hfn_report_no_memory(err, NULL);
    }
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hfn_live_create(&l->live, &o, &l->env, &why);
    if (status != HOTFN_OK) { /* a launch returns HOTFN_E_DENIED only for the program itself */
        status = status == HOTFN_E_DENIED ? HOTFN_E_UNSUPPORTED : status;
        return hfn_report_error(err, status, why.file, why.offset, "%s", why.text);
    }
    for (uint32_t reason = 1; reason < REASONS; reason++) {
        hfn_live_set_reason(l->live, reason, hotfn_reason_get_name(reason),
                            hotfn_reason_get_text(reason));
    }
    return HOTFN_OK;
}

void hfn_launch_live_path(const hotfn_launch *l, char *path, size_t path_bytes)
{
    hfn_os_shared_path(hfn_live_get_fd(l->live), path, path_bytes);
}

static hotfn_status link_record(hotfn_launch *l, hotfn_error *err)
{
    const char *path = l->options.record_path;
    char live[64];
    hfn_os_file_info old;

    if (!path || l->options.flags & HOTFN_LAUNCH_DURABLE) {
        return HOTFN_OK;
    }
    if (hfn_os_get_link_info(path, &old) == 0 && old.kind != HFN_OS_REGULAR_FILE &&
        old.kind != HFN_OS_LINK) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "is neither a file nor a link, and is not replaced by a record");
    }
    hfn_launch_live_path(l, live, sizeof live);
    hfn_os_remove_file(path);
    hfn_os_error error = hfn_os_create_link(live, path);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "the record cannot be written there (%s)",
                                hfn_os_get_error_text(error));
    }
    l->is_linked = true;
    return HOTFN_OK;
}

void hfn_launch_unlink_record(hotfn_launch *l)
{
    if (l->is_linked) {
        hfn_os_remove_file(l->options.record_path);
        l->is_linked = false;
    }
}

hotfn_status hfn_launch_create_record(hotfn_launch *l, hotfn_error *err)
{
    hotfn_status status = create_live(l, err);

    if (status == HOTFN_OK) {
        status = hfn_plan_channel_create(&l->channel, &l->env, err);
    }
    return status == HOTFN_OK ? link_record(l, err) : status;
}
