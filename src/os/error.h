/* SPDX-License-Identifier: MIT */
/* Errors of the operating system: numbers to store and compare, and texts to show. */
#ifndef HFN_OS_ERROR_H
#define HFN_OS_ERROR_H

#include <stdbool.h>
#include <stdint.h>

/* 0 is success; other values are the system's own numbers, which only src/os interprets. */
typedef int32_t hfn_os_error;

/* A static text, "No such file or directory"; never NULL. */
const char *hfn_os_get_error_text(hfn_os_error error);

/* The kinds of errors that callers distinguish. */
bool hfn_os_is_missing(hfn_os_error error); /* no such file             */
bool hfn_os_is_denied(hfn_os_error error);  /* no right to do it        */
bool hfn_os_is_busy(hfn_os_error error);    /* in use                   */
bool hfn_os_is_gone(hfn_os_error error);    /* no such process          */
bool hfn_os_is_timeout(hfn_os_error error); /* not done within the time */
bool hfn_os_is_out_of_memory(hfn_os_error error);
/* An error for which hfn_os_is_out_of_memory returns true. */
hfn_os_error hfn_os_get_out_of_memory(void);

#endif
