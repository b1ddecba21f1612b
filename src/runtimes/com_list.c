/* SPDX-License-Identifier: MIT */
/* A line has an IID, a name without spaces, and names of methods.  "#" begins a comment; an empty
 * line has no meaning.  The file is read once, before the first interface is seen. */
#include "runtimes/com_list.h"

#include "arch/method_pool.h"
#include "os/os.h"
#include "os/registry.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILE_BYTES = 16 << 20, IID_BYTES = HFN_GUID_BYTES - 2 };

static const char *list;
static size_t list_bytes;

/* ---- Lines and words. */

typedef struct line {
    const char *at, *end;
} line;

/* The line at *at, without its comment; *at moves to the next one.  False: there is no further. */
static bool next_line(line *out, const char **at, const char *end)
{
    const char *stop, *comment;

    if (*at >= end) {
        return false;
    }
    stop = memchr(*at, '\n', (size_t)(end - *at));
    stop = stop ? stop : end;
    comment = memchr(*at, '#', (size_t)(stop - *at));
    *out = (line){ *at, comment ? comment : stop };
    *at = stop + 1;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; its length is 0 if there is none. */
static size_t next_word(const char **word, line *l)
{
    const char *begin;

    while (l->at < l->end && is_space(*l->at)) {
        l->at++;
    }
    begin = l->at;
    while (l->at < l->end && !is_space(*l->at)) {
        l->at++;
    }
    *word = begin;
    return (size_t)(l->at - begin);
}

static char to_upper(char c)
{
    return c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
}

/* Has the word the form {00000000-0000-0000-0000-000000000000}? */
static bool is_iid(const char *word, size_t length)
{
    static const char form[] = "{00000000-0000-0000-0000-000000000000}";
    bool is_good = length == IID_BYTES;

    for (size_t i = 0; i < IID_BYTES && is_good; i++) {
        char c = to_upper(word[i]);

        is_good = form[i] == '0' ? (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') : c == form[i];
    }
    return is_good;
}

/* ---- Interfaces. */

static bool has_iid(const char *word, size_t length, const hfn_guid *iid)
{
    char text[HFN_GUID_BYTES];
    bool is_equal = length == IID_BYTES;

    hfn_guid_write(text, iid);
    for (size_t i = 0; i < IID_BYTES && is_equal; i++) {
        is_equal = to_upper(word[i]) == text[i];
    }
    return is_equal;
}

static void read_interface(hfn_com_interface *out, line *l)
{
    uint32_t number = HFN_COM_UNKNOWN_METHODS;
    const char *word;
    size_t length = next_word(&word, l);

    snprintf(out->name, sizeof out->name, "%.*s", (int)(length < 120 ? length : 120), word);
    while ((length = next_word(&word, l)) > 0 && number < HFN_COM_MAX_METHODS) {
        hfn_com_method *m = &out->methods[number++];

        *m = (hfn_com_method){ .result = HFN_COM_UNKNOWN_RESULT };
        snprintf(m->name, sizeof m->name, "%.*s", (int)(length < 50 ? length : 50), word);
    }
    out->count = number > HFN_COM_UNKNOWN_METHODS ? number : 0;
}

bool hfn_com_find_in_list(hfn_com_interface *out, const hfn_guid *iid, const char *text,
                          size_t bytes)
{
    const char *at = text, *end = text + bytes, *word;
    line l;

    while (next_line(&l, &at, end)) {
        size_t length = next_word(&word, &l);

        if (has_iid(word, length, iid)) {
            read_interface(out, &l);
            return true;
        }
    }
    return false;
}

uint32_t hfn_com_check_list(const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes, *word;
    uint32_t number = 0;
    line l;

    while (next_line(&l, &at, end)) {
        size_t length = next_word(&word, &l);

        number++;
        if (length > 0 && (!is_iid(word, length) || next_word(&word, &l) == 0)) {
            return number;
        }
    }
    return 0;
}

/* ---- The file. */

static char *read_file(const char *path, size_t *bytes)
{
    hfn_os_file file = HFN_OS_NO_FILE;
    hfn_os_file_info info;
    uint64_t done = 0;
    char *text = NULL;

    if (hfn_os_open_file(&file, path, HFN_OS_READ) != 0) {
        return NULL;
    }
    if (hfn_os_get_file_info(file, &info) == 0 && info.kind == HFN_OS_REGULAR_FILE &&
        info.byte_count <= MAX_FILE_BYTES) {
        text = hfn_os_map_pages(info.byte_count + 1);
    }
    if (text && hfn_os_read_at(file, 0, text, info.byte_count, &done) != 0) {
        done = 0;
    }
    hfn_os_close_file(file);
    *bytes = (size_t)done;
    return text;
}

bool hfn_com_open_list(char *reason, size_t reason_bytes)
{
    char path[600];
    size_t bytes = 0;
    const char *text;
    uint32_t bad;

    if (!hfn_os_read_variable("HOTFN_COM_INTERFACES", path, sizeof path)) {
        return true;
    }
    text = read_file(path, &bytes);
    if (!text) {
        snprintf(reason, reason_bytes,
                 "%.200s, the list of COM interfaces in HOTFN_COM_INTERFACES, cannot be read: give "
                 "the path of a text file of at most 16 MiB",
                 path);
        return false;
    }
    bad = hfn_com_check_list(text, bytes);
    if (bad) {
        snprintf(reason, reason_bytes,
                 "%.200s, line %u: the list of COM interfaces is not used; write {IID} Name, and "
                 "the names of the methods behind those of IUnknown",
                 path, (unsigned)bad);
        return false;
    }
    list = text;
    list_bytes = bytes;
    return true;
}

bool hfn_com_find_listed(hfn_com_interface *out, const hfn_guid *iid)
{
    return list && hfn_com_find_in_list(out, iid, list, list_bytes);
}
