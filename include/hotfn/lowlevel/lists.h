/* SPDX-License-Identifier: MIT */
/* Lists: the functions of an image that are to be hooked, stored in a file.  There are two forms:
 * .flf, the protobuf wire format of docs/hotfn.proto, which holds the id of the build; and editable
 * text with a line `module+0xRVA` or `module!name` for each function, where '#' begins a comment.
 * A list may be read by several threads at once, but changed by one thread only, while no other
 * thread reads it. */
#ifndef HOTFN_LISTS_H
#define HOTFN_LISTS_H

#include <hotfn/lowlevel/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_LIST_TEXT 1u /* editable text [.flf] */

#define HOTFN_LIST_NO_RVA UINT64_MAX /* the line of text has only a name */

typedef struct hotfn_list_entry {
    uint32_t size;       /* sizeof(hotfn_list_entry)                               */
    uint32_t index;      /* of the function among all of the image; 0 in text      */
    uint64_t rva;        /* or HOTFN_LIST_NO_RVA                                   */
    uint64_t byte_count; /* 0 if unknown                                           */
    const char *name;    /* view; "" if there is none                              */
    const char *module;  /* view; file name of the image; in text, of the line */
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

/* Create an empty list for image, which is borrowed: its name, machine and id are copied.  The
 * caller owns the list.  HOTFN_OK, HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_create(hotfn_list **out, const hotfn_image *image,
                                         const hotfn_env *env, hotfn_error *err);
/* Append a function; entry->module is not read.  HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION,
 * HOTFN_E_LIMIT.  One thread at a time.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_add(hotfn_list *list, const hotfn_list_entry *entry,
                                      hotfn_error *err);
/* Write the list to path, as .flf (flags 0) or as text (HOTFN_LIST_TEXT).  HOTFN_OK, HOTFN_E_IO,
 * HOTFN_E_OPTION, HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_save(const hotfn_list *list, const char *path, uint32_t flags,
                                       hotfn_error *err);

/* Read a list of either form; the caller owns it.  HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT (err has
 * the offset, and of text the line), HOTFN_E_UNSUPPORTED (a later version), HOTFN_E_NO_MEMORY,
 * HOTFN_E_LIMIT (more than 1 GiB from a pipe, or 2^32 functions).  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_open(hotfn_list **out, const char *path, const hotfn_env *env,
                                       hotfn_error *err);
/* Read a list from bytes, which are borrowed; name (NULL is fine) is used in errors.  The caller
 * owns the list.  HOTFN_OK, HOTFN_E_FORMAT, HOTFN_E_UNSUPPORTED, HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT.
 * Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_from_bytes(hotfn_list **out, const void *bytes,
                                             uint64_t byte_count, const char *name,
                                             const hotfn_env *env, hotfn_error *err);
/* Release the list and every view into it.  NULL is fine.  One thread, after all other calls.
 * Since 0.1. */
HOTFN_API void hotfn_list_destroy(hotfn_list *list);

/* The build and the file that the list belongs to, and its number of entries.  HOTFN_OK,
 * HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_list_get_info(const hotfn_list *list, hotfn_list_info *out);
/* The entry at index.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_list_get(const hotfn_list *list, uint32_t index,
                                      hotfn_list_entry *out);

#ifdef __cplusplus
}
#endif

#endif
