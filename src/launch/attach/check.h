/* SPDX-License-Identifier: MIT */
/* The conditions of an attach, which hotfn_launch_attach, hotfn_launch_release and
 * hotfn_launch_check_attach share. */
#ifndef HFN_LAUNCH_CHECK_H
#define HFN_LAUNCH_CHECK_H

#include <hotfn/launch.h>

#include <stdbool.h>

typedef struct hfn_attach_check {
    hotfn_attach_check_fn report; /* NULL: nothing is reported */
    void *user;
    bool is_attached;    /* hotfn is attached already, so FILTERED and LOCKED are not refusals */
    hotfn_error *err;    /* receives the first refusal */
    hotfn_status status; /* of the first refusal; HOTFN_OK: there was none */
    bool is_unreadable;  /* the process's memory cannot be read */
} hfn_attach_check;

/* Check what the system reports about the process; returns check->status. */
hotfn_status hfn_check_process(hfn_attach_check *check, uint32_t pid);

#endif
