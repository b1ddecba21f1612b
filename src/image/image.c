/* SPDX-License-Identifier: MIT */
/* The public calls for images: open, close, and getters that fill sized structs. */
#include "image/inside.h"

#include <hotfn/machine.h>
#include <string.h>

hotfn_status hfn_image_no_memory(const hotfn_image *image, hotfn_error *err)
{
    return hfn_report_no_memory(err, image->info.path);
}

static hotfn_image *new_image(const char *path, const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_image *image = hfn_allocate_zeroed(&filled, sizeof *image);

    if (!image) {
        return NULL;
    }
    image->env = filled;
    image->info.size = (uint32_t)sizeof image->info;
    hfn_arena_init(&image->arena, &image->env);
    image->info.path = hfn_arena_copy(&image->arena, path, strlen(path));
    if (!image->info.path) {
        hotfn_image_close(image);
        return NULL;
    }
    return image;
}

/* The bytes determine the format, never the file's name. */
static hotfn_status read_image(hotfn_image **out, hotfn_image *image, hotfn_error *err)
{
    hotfn_status status;

    bool is_pe = image->file.size >= 2 && memcmp(image->file.data, "MZ", 2) == 0;

    image->bytes = (hfn_span){ image->file.data, image->file.size, false };
    status = is_pe ? hfn_pe_read(image, err) : hfn_elf_read(image, err);
    if (status != HOTFN_OK) {
        hotfn_image_close(image);
    } else {
        *out = image;
    }
    return status;
}

hotfn_status hotfn_image_open(hotfn_image **out, const char *path, const hotfn_env *env,
                              hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hotfn_image *image = new_image(path, env);
    hotfn_status status;

    if (!image) {
        return hfn_report_no_memory(err, path);
    }
    status = hfn_file_open(&image->file, path, &image->env, err);
    if (status != HOTFN_OK) {
        hotfn_image_close(image);
        return status;
    }
    return read_image(out, image, err);
}

hotfn_status hotfn_image_open_bytes(hotfn_image **out, const void *bytes, uint64_t byte_count,
                                    const char *name, const hotfn_env *env, hotfn_error *err)
{
    if (!out || (!bytes && byte_count > 0)) {
        return hfn_report_null(err, __func__);
    }

    hotfn_image *image = new_image(name ? name : "(memory)", env);

    if (!image) {
        return hfn_report_no_memory(err, name);
    }
    image->file.data = bytes;
    image->file.size = byte_count;
    return read_image(out, image, err);
}

void hotfn_image_close(hotfn_image *image)
{
    hotfn_env env;

    if (!image) {
        return;
    }
    env = image->env;
    hfn_file_close(&image->file, &env);
    hfn_arena_finish(&image->arena);
    hfn_free_memory(&env, image, sizeof *image);
}

hotfn_status hotfn_image_get_info(const hotfn_image *image, hotfn_image_info *out)
{
    if (!image) {
        return HOTFN_E_OPTION;
    }
    return hfn_copy_result(out, &image->info, (uint32_t)sizeof image->info);
}

uint32_t hotfn_image_get_section_count(const hotfn_image *image)
{
    return image ? image->section_count : 0;
}

hotfn_status hotfn_image_get_section(const hotfn_image *image, uint32_t index, hotfn_section *out)
{
    if (!image) {
        return HOTFN_E_OPTION;
    }

    const hfn_elf_section *s = hfn_elf_section_at(image, index);
    hotfn_section filled = HOTFN_SECTION_INIT;

    if (!s) {
        return HOTFN_E_NOT_FOUND;
    }
    filled.name = s->name;
    filled.byte_count = s->size;
    filled.file_offset = s->offset;
    if ((s->flags & HFN_SHF_ALLOC) && hfn_image_rva(image, s->address, &filled.rva)) {
        filled.flags |= HOTFN_SECTION_LOADED;
    }
    filled.flags |= s->flags & HFN_SHF_EXECINSTR ? HOTFN_SECTION_EXECUTE : 0;
    filled.flags |= s->flags & HFN_SHF_WRITE ? HOTFN_SECTION_WRITE : 0;
    filled.flags |= s->type == HFN_SHT_NOBITS ? HOTFN_SECTION_NO_BYTES : 0;
    if (s->type != HFN_SHT_NOBITS && hfn_span_has(image->bytes, s->offset, s->file_bytes)) {
        filled.file_bytes = s->file_bytes;
    }
    return hfn_copy_result(out, &filled, (uint32_t)sizeof filled);
}

const uint8_t *hotfn_image_get_bytes(const hotfn_image *image, uint64_t rva, uint64_t *byte_count)
{
    if (!image || !byte_count) {
        return NULL;
    }

    hfn_span bytes = hfn_image_span(image, rva);

    *byte_count = bytes.size;
    return bytes.data;
}

hfn_span hfn_image_file(const hotfn_image *image)
{
    return image->bytes;
}

const hotfn_env *hfn_image_env(const hotfn_image *image)
{
    return &image->env;
}

const char *hfn_image_path(const hotfn_image *image)
{
    return image->info.path;
}

uint32_t hfn_elf_word_bytes(const hotfn_image *image)
{
    return image->word_bytes;
}

bool hfn_elf_segment_of_type(const hotfn_image *image, uint32_t type, uint64_t *rva,
                             uint64_t *byte_count)
{
    for (uint32_t i = 0; i < image->segment_count; i++) {
        const hfn_segment *s = &image->segments[i];
        if (s->type == type && hfn_image_rva(image, s->address, rva)) {
            *byte_count = s->memory_bytes;
            return true;
        }
    }
    return false;
}

const char *hotfn_machine_get_name(uint32_t machine)
{
    static const char *const names[] = { "other", "x86", "x86-64", "arm", "arm64" };

    return machine < HFN_COUNT_OF(names) ? names[machine] : names[HOTFN_MACHINE_OTHER];
}
