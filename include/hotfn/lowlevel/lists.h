/* SPDX-License-Identifier: MIT */
/* Lists: which functions of a file are to be hooked, in a file of their own.  Two forms: .flf, protobuf
 * wire format by docs/hotfn.proto, which knows the build that it is of; and text for hands, a line
 * `module+0xRVA` or `module!name` a function, '#' begins a comment. */
#ifndef HOTFN_LISTS_H
#define HOTFN_LISTS_H

#include <hotfn/lowlevel/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_LIST_TEXT 1u /* text for hands [.flf] */

#define HOTFN_LIST_NO_RVA UINT64_MAX /* a line of text that has a name only */

typedef struct hotfn_list_entry {
    uint32_t size;       /* sizeof(hotfn_list_entry)                               */
    uint32_t index;      /* of the function among all of the image; 0 in text      */
    uint64_t rva;        /* or HOTFN_LIST_NO_RVA                                   */
    uint64_t byte_count; /* 0 if unknown                                           */
    const char *name;    /* view; "" if there is none                              */
    const char *module;  /* view; file name of the image; of text, that of the line */
} hotfn_list_entry;
#define HOTFN_LIST_ENTRY_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_list_entry), 0, 0, 0, 0, 0                                          \
    }

typedef struct hotfn_list_info {
    uint32_t size;    /* sizeof(hotfn_list_info)              */
    uint32_t flags;   /* HOTFN_LIST_TEXT                      */
    uint32_t machine; /* HOTFN_MACHINE_*                      */
    uint32_t id_kind; /* HOTFN_ID_*; HOTFN_ID_NONE of text    */
    uint32_t id_bytes;
    uint32_t entry_count;
    uint8_t id[32];
    const char *module; /* view; file name of the image; ""     */
} hotfn_list_info;
#define HOTFN_LIST_INFO_INIT                                                                       \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_list_info), 0, 0, 0, 0, 0, { 0 }, 0                                 \
    }

/* An empty list of functions of image (borrowed: its name, machine and id are copied).
 * HOTFN_OK, HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_create(hotfn_list **out, const hotfn_image *image,
                                         const hotfn_env *env, hotfn_error *err);
/* Append a function (module of the entry is not read).  HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION,
 * HOTFN_E_LIMIT.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_add(hotfn_list *list, const hotfn_list_entry *entry,
                                      hotfn_error *err);
/* Write it: flags 0 for .flf, HOTFN_LIST_TEXT.  HOTFN_OK, HOTFN_E_IO, HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_save(const hotfn_list *list, const char *path, uint32_t flags,
                                       hotfn_error *err);

/* Read either form.  HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT (err has the offset, and the line of text),
 * HOTFN_E_UNSUPPORTED (a later version), HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (more than 1 GiB from a pipe, or 2^32
 * functions).  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_open(hotfn_list **out, const char *path, const hotfn_env *env,
                                       hotfn_error *err);
/* The same over bytes that are needed during the call only; name is for errors, and may be NULL.  The caller owns
 * the list.  HOTFN_OK, HOTFN_E_FORMAT, HOTFN_E_UNSUPPORTED, HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_from_bytes(hotfn_list **out, const void *bytes,
                                             uint64_t byte_count, const char *name,
                                             const hotfn_env *env, hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_list_destroy(hotfn_list *list);

/* Which build of which file it is of, and how many functions.  HOTFN_OK, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_get_info(const hotfn_list *list, hotfn_list_info *out);
/* HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_get(const hotfn_list *list, uint32_t index,
                                      hotfn_list_entry *out);

#ifdef __cplusplus
}
#endif

#endif
