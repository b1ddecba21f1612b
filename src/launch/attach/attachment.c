/* SPDX-License-Identifier: MIT */
/* Creates and frees the attachment: the state of a launcher that hooks a running process from
 * outside. */
#include "launch/attach/attachment.h"

#include "base/status.h"
#include "launch/attach/replaced.h"
#include "os/os.h"

const char *hfn_attachment_find_refusal(const hotfn_launch_options *o)
{
    return o->flags & HOTFN_LAUNCH_BY_HOOK ? "only Windows has message hooks" : NULL;
}

const char *const *hfn_attachment_find_libraries(void)
{
    return hfn_replaced_libraries;
}

/* The journal of an attach restores all jumps. */
uint32_t hfn_attachment_get_scan_flags(void)
{
    return 0;
}

hfn_attachment *hfn_attachment_create(const hotfn_env *env, hotfn_launch *launch, uint32_t pid)
{
    hfn_attachment *a = hfn_allocate_zeroed(env, sizeof *a);

    if (!a) {
        return NULL;
    }
    a->env = *env;
    a->launch = launch;
    a->is_timed = launch && launch->timing != 0;
    a->remote = (hfn_remote){ .env = *env, .pid = pid, .memory = HFN_OS_NO_FILE };
    a->journal.file = HFN_OS_NO_FILE;
    a->buffer = hfn_os_map_pages(HFN_ATTACH_BUFFER_BYTES);
    if (!a->buffer) {
        hfn_attachment_free(a);
        return NULL;
    }
    return a;
}

bool hfn_attachment_uncounts(const hfn_attachment *a)
{
    return a->remote.has_small_stacks;
}

void hfn_attachment_free(hfn_attachment *a)
{
    hotfn_env env;

    if (!a) {
        return;
    }
    env = a->env;
    hfn_journal_close(&a->journal);
    hfn_os_remote_finish(&a->remote);
    hfn_free_memory(&env, a->sites, a->site_capacity * sizeof *a->sites);
    if (a->buffer) {
        hfn_os_unmap((uint64_t)(uintptr_t)a->buffer, HFN_ATTACH_BUFFER_BYTES);
    }
    hfn_free_memory(&env, a, sizeof *a);
}

void hfn_attachment_describe(const hfn_attachment *a, hotfn_launch_info *info)
{
    info->is_joined = 1;
    info->hooked_count = a->stats.hooked;
    info->refused_count = a->stats.refused;
    info->hook_ns = a->stats.total_ns;
    info->attach_stop_ns = a->enter_ns;
    info->detach_stop_ns = a->leave_ns;
}
