/* SPDX-License-Identifier: MIT */
/* The public calls of function lists.  They manage the memory of a list and select one of the two
 * file formats, text and protocol buffers. */
#include "scan/list_file.h"

#include "base/status.h"
#include "image/file.h"
#include "image/image.h"
#include "os/files.h"

#include <string.h>

static hotfn_status report_no_memory(hotfn_error *err)
{
    return hfn_report_no_memory(err, "");
}

static hotfn_list *create_empty_list(const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_list *list = hfn_allocate_zeroed(&filled, sizeof *list);

    if (!list) {
        return NULL;
    }
    list->env = filled;
    hfn_arena_init(&list->texts, &list->env);
    list->info.size = (uint32_t)sizeof list->info;
    list->info.module = "";
    return list;
}

hotfn_status hotfn_list_create(hotfn_list **out, const hotfn_image *image, const hotfn_env *env,
                               hotfn_error *err)
{
    if (!out || !image) {
        return hfn_report_null(err, __func__);
    }

    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_list *list = create_empty_list(env);
    const char *slash;

    if (!list) {
        return report_no_memory(err);
    }
    hotfn_image_get_info(image, &info);
    slash = strrchr(info.path, '/');
    slash = slash ? slash + 1 : info.path;
    list->info.machine = info.machine;
    list->info.id_kind = info.id_kind;
    list->info.id_bytes = info.id_bytes;
    memcpy(list->info.id, info.id, sizeof info.id);
    list->info.module = hfn_arena_copy(&list->texts, slash, strlen(slash));
    if (!list->info.module) {
        hotfn_list_destroy(list);
        return report_no_memory(err);
    }
    *out = list;
    return HOTFN_OK;
}

hotfn_status hfn_list_append(hotfn_list *list, const hfn_list_item *item, hotfn_error *err)
{
    if (list->info.entry_count == UINT32_MAX - 1) {
        return hfn_report_error(err, HOTFN_E_LIMIT, "", HOTFN_NO_OFFSET,
                                "too many functions in a list");
    }
    if (!hfn_grow_array(&list->env, (void **)&list->items, &list->capacity,
                        (size_t)list->info.entry_count + 1, sizeof *list->items)) {
        return report_no_memory(err);
    }
    list->items[list->info.entry_count++] = *item;
    return HOTFN_OK;
}

hotfn_status hotfn_list_add(hotfn_list *list, const hotfn_list_entry *entry, hotfn_error *err)
{
    if (!list || !entry) {
        return hfn_report_null(err, __func__);
    }

    hotfn_list_entry e;
    hfn_list_item item;

    if (!hfn_copy_options(&e, (uint32_t)sizeof e, entry)) {
        return hfn_report_error(
            err, HOTFN_E_OPTION, "", HOTFN_NO_OFFSET,
            "hotfn_list_entry carries a setting that this version does not know");
    }
    item = (hfn_list_item){ e.rva, e.byte_count, "", list->info.module, e.index };
    if (e.name && e.name[0]) {
        item.name = hfn_arena_copy(&list->texts, e.name, strlen(e.name));
    }
    return item.name ? hfn_list_append(list, &item, err) : report_no_memory(err);
}

void hfn_list_put(hfn_list_bytes *out, const void *bytes, size_t count)
{
    if (out->failed ||
        !hfn_grow_array(out->env, (void **)&out->data, &out->capacity, out->size + count, 1)) {
        out->failed = true;
        return;
    }
    if (count) {
        memcpy(out->data + out->size, bytes, count);
    }
    out->size += count;
}

static hotfn_status write_file(const hfn_list_bytes *bytes, const char *path, hotfn_error *err)
{
    hfn_os_error error = hfn_os_save_file(path, bytes->data, bytes->size);

    return error == 0 ? HOTFN_OK
                      : hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                         "cannot be written: %s", hfn_os_get_error_text(error));
}

hotfn_status hotfn_list_save(const hotfn_list *list, const char *path, uint32_t flags,
                             hotfn_error *err)
{
    if (!list || !path) {
        return hfn_report_null(err, __func__);
    }

    hfn_list_bytes bytes = { .env = &list->env };
    hotfn_status status;

    if (flags & ~HOTFN_LIST_TEXT) {
        return hfn_report_error(err, HOTFN_E_OPTION, path, HOTFN_NO_OFFSET,
                                "unknown flag: pass 0 or HOTFN_LIST_TEXT");
    }
    if (flags & HOTFN_LIST_TEXT) {
        hfn_list_write_text(list, &bytes);
    } else {
        hfn_list_write_wire(list, &bytes);
    }
    status = bytes.failed ? report_no_memory(err) : write_file(&bytes, path, err);
    hfn_free_memory(&list->env, bytes.data, bytes.capacity);
    return status;
}

/* A list in wire format begins with its version: field 1, a varint.  No line of a text list begins
 * with that byte. */
static bool is_wire(hfn_span bytes)
{
    return bytes.size > 0 && bytes.data[0] == 0x08;
}

hotfn_status hotfn_list_from_bytes(hotfn_list **out, const void *bytes, uint64_t byte_count,
                                   const char *name, const hotfn_env *env, hotfn_error *err)
{
    if (!out || (!bytes && byte_count > 0)) {
        return hfn_report_null(err, __func__);
    }

    hfn_span span = { bytes, byte_count, false };
    hotfn_list *list = create_empty_list(env);
    hotfn_status status;

    if (!list) {
        return report_no_memory(err);
    }
    status = is_wire(span) ? hfn_list_read_wire(list, span, name, err)
                           : hfn_list_read_text(list, span, name, err);
    if (status != HOTFN_OK) {
        hotfn_list_destroy(list);
        return status;
    }
    *out = list;
    return HOTFN_OK;
}

hotfn_status hotfn_list_open(hotfn_list **out, const char *path, const hotfn_env *env,
                             hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hfn_file file;
    hotfn_status status = hfn_file_open(&file, path, &filled, err);

    if (status != HOTFN_OK) {
        return status;
    }
    status = hotfn_list_from_bytes(out, file.data, file.size, path, env, err);
    hfn_file_close(&file, &filled);
    return status;
}

void hotfn_list_destroy(hotfn_list *list)
{
    hotfn_env env;

    if (!list) {
        return;
    }
    env = list->env;
    hfn_arena_finish(&list->texts);
    hfn_free_memory(&env, list->items, list->capacity * sizeof *list->items);
    hfn_free_memory(&env, list, sizeof *list);
}

hotfn_status hotfn_list_get_info(const hotfn_list *list, hotfn_list_info *out)
{
    if (!list) {
        return HOTFN_E_OPTION;
    }
    return hfn_copy_result(out, &list->info, (uint32_t)sizeof list->info);
}

hotfn_status hotfn_list_get(const hotfn_list *list, uint32_t index, hotfn_list_entry *out)
{
    if (!list) {
        return HOTFN_E_OPTION;
    }

    hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;

    if (index >= list->info.entry_count) {
        return HOTFN_E_NOT_FOUND;
    }
    e.index = list->items[index].index;
    e.rva = list->items[index].rva;
    e.byte_count = list->items[index].byte_count;
    e.name = list->items[index].name;
    e.module = list->items[index].module;
    return hfn_copy_result(out, &e, (uint32_t)sizeof e);
}
