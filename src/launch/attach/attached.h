/* SPDX-License-Identifier: MIT */
/*
 * An attachment as a kind of launch.  attach.c is the same on all systems; it calls
 *
 *   attachment.h and its files   Linux: everything is done from outside
 *   inside.h and its files       Windows: the agent enters the process
 */
#ifndef HFN_LAUNCH_ATTACHED_H
#define HFN_LAUNCH_ATTACHED_H

#include "launch/launch.h"
#include "os/remote.h"

typedef struct hfn_attachment hfn_attachment;

/* The reason why these options of an attach cannot be kept on this system; NULL: they can. */
const char *hfn_attachment_find_refusal(const hotfn_launch_options *options);
/* Globs on the files of the modules that are hooked even if no function of them is selected; NULL:
 * none. */
const char *const *hfn_attachment_find_libraries(void);
/* Flags of scans (HOTFN_SCAN_*) for timed calls, in addition to HOTFN_SCAN_TIMING. */
uint32_t hfn_attachment_get_scan_flags(void);
/* NULL: no memory. */
hfn_attachment *hfn_attachment_create(const hotfn_env *env, hotfn_launch *launch, uint32_t pid);
/* Free it; NULL is fine.  The target keeps what was not removed. */
void hfn_attachment_free(hfn_attachment *a);
hotfn_status hfn_attachment_enter(hfn_attachment *a, hotfn_error *err);
hotfn_status hfn_attachment_leave(hfn_attachment *a, hotfn_error *err);
/* The process has ended: remove the hooks of those that it has forked. */
void hfn_attachment_release_forked(hfn_attachment *a);
/* Has another process detached the target (hotfn detach)? */
/* Do functions whose stacks grow take back a count (Go)? */
bool hfn_attachment_uncounts(const hfn_attachment *attachment);
bool hfn_attachment_was_removed(const hfn_attachment *a);
/* Fill in what hotfn_launch_get_info reports of a launch that is attached. */
void hfn_attachment_describe(const hfn_attachment *a, hotfn_launch_info *info);

/* attach.c: hotfn_launch_wait of a launch that is attached. */
hotfn_status hfn_attachment_wait(hotfn_launch *launch, uint64_t timeout_ns, hotfn_error *err);
/* A module of a process as a request for its plan; false if it has no file. */
bool hfn_attachment_describe_module(const hfn_remote_module *module, hfn_plan_request *out);

#endif
