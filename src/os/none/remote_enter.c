/* SPDX-License-Identifier: MIT */
/* Other processes cannot be entered. */
#include "os/none/unavailable.h"
#include "os/remote.h"

bool hfn_os_can_enter_others(void)
{
    return false;
}

void hfn_os_remote_check(uint32_t pid, hfn_remote_check_fn report, void *user)
{
    (void)pid;
    report(user, "system", HFN_REMOTE_DENIED, "this system's processes cannot be entered");
}

bool hfn_os_remote_adjust(hfn_remote *remote, hfn_adjust_pc_fn adjust, void *user)
{
    (void)remote;
    (void)adjust;
    (void)user;
    return false;
}

hfn_os_error hfn_os_remote_begin_calls(hfn_remote *remote)
{
    (void)remote;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_remote_map(hfn_remote *remote, uint64_t address, uint64_t byte_count)
{
    (void)remote;
    (void)address;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_remote_map_file(hfn_remote *remote, hfn_os_file file, uint64_t scratch,
                                    uint64_t address, uint64_t byte_count)
{
    (void)remote;
    (void)file;
    (void)scratch;
    (void)address;
    (void)byte_count;
    return UNAVAILABLE;
}

void hfn_os_remote_each_sharer(const char *name, hfn_remote_sharer_fn visit, void *user)
{
    (void)name, (void)visit, (void)user;
}

hfn_os_error hfn_os_remote_make_readonly(hfn_remote *remote, uint64_t address, uint64_t byte_count)
{
    (void)remote;
    (void)address;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_remote_make_executable(hfn_remote *remote, uint64_t address,
                                           uint64_t byte_count)
{
    (void)remote;
    (void)address;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_remote_unmap(hfn_remote *remote, uint64_t address, uint64_t byte_count)
{
    (void)remote;
    (void)address;
    (void)byte_count;
    return UNAVAILABLE;
}

hfn_os_error hfn_os_remote_end_calls(hfn_remote *remote)
{
    (void)remote;
    return 0; /* no call was begun */
}

uint32_t hfn_os_remote_find_gaps(const hfn_remote *remote, uint64_t begin, uint64_t end,
                                 hfn_os_gap *out, uint32_t capacity)
{
    (void)remote;
    (void)begin;
    (void)end;
    (void)out;
    (void)capacity;
    return 0;
}

bool hfn_os_remote_each_file(uint32_t pid, hfn_remote_code_fn visit, void *user)
{
    (void)pid, (void)visit, (void)user;
    return false;
}

bool hfn_os_remote_find_shared(uint32_t pid, const char *name, hfn_remote_range *out)
{
    (void)pid;
    (void)name;
    (void)out;
    return false;
}

bool hfn_os_remote_get_identity(uint32_t pid, uint32_t *own_id, uint32_t *id_namespace)
{
    (void)pid;
    (void)own_id;
    (void)id_namespace;
    return false;
}

bool hfn_os_remote_get_gs_base(const hfn_remote *remote, uint32_t index, uint64_t *out)
{
    (void)remote, (void)index, (void)out;
    return false;
}

bool hfn_os_remote_set_gs_base(hfn_remote *remote, uint32_t index, uint64_t base)
{
    (void)remote, (void)index, (void)base;
    return false;
}

bool hfn_os_remote_get_restart(const hfn_remote *remote, uint32_t index, uint64_t *pc,
                               uint64_t *number)
{
    (void)remote, (void)index, (void)pc, (void)number;
    return false;
}

bool hfn_os_remote_set_pc(hfn_remote *remote, uint32_t index, uint64_t pc)
{
    (void)remote, (void)index, (void)pc;
    return false;
}

bool hfn_os_has_wrgsbase(void)
{
    return false;
}

bool hfn_os_remote_is_static(uint32_t pid)
{
    (void)pid;
    return false;
}

bool hfn_os_remote_get_thread_pointer(const hfn_remote *remote, uint32_t index, uint64_t *out)
{
    (void)remote;
    (void)index;
    (void)out;
    return false;
}

void hfn_os_remote_fail_at(uint32_t step)
{
    (void)step;
}

uint32_t hfn_os_remote_get_steps(void)
{
    return 0;
}
