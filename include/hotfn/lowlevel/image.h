/* SPDX-License-Identifier: MIT */
/* Image: the bytes of an executable or library file, its sections, segments, machine and id.  An
 * open image does not change, so that several threads may read it at once. */
#ifndef HOTFN_IMAGE_H
#define HOTFN_IMAGE_H

#include <hotfn/env.h>
#include <hotfn/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque: made and released by the calls below, never copied. */
typedef struct hotfn_image hotfn_image;

#define HOTFN_FORMAT_ELF 1
#define HOTFN_FORMAT_PE 2

#define HOTFN_ID_NONE 0
#define HOTFN_ID_BUILD_ID 1  /* ELF NT_GNU_BUILD_ID                                          */
#define HOTFN_ID_PDB 2       /* GUID as it lies in the file (16 bytes), age (4, little-endian) */
#define HOTFN_ID_PE 3        /* TimeDateStamp, SizeOfImage (4 bytes each, little-endian)      */
#define HOTFN_ID_CODE_HASH 4 /* 64-bit FNV-1a over the executable sections: no other id      */

#define HOTFN_IMAGE_EXECUTABLE 1u  /* may be started (has an entry point)          */
#define HOTFN_IMAGE_FIXED 2u       /* must be at its link address (not PIE)        */
#define HOTFN_IMAGE_DYNAMIC 4u     /* has a dynamic section                        */
#define HOTFN_IMAGE_INTERPRETER 8u /* names a program interpreter (ld.so)          */
#define HOTFN_IMAGE_BIG_ENDIAN 16u
#define HOTFN_IMAGE_STRIPPED 32u /* no .symtab of its own                        */
#define HOTFN_IMAGE_TEXTREL 64u  /* the loader rewrites code: refuse to patch    */

typedef struct hotfn_image_info {
    uint32_t size;         /* sizeof(hotfn_image_info)                                   */
    uint32_t format;       /* HOTFN_FORMAT_*                                             */
    uint32_t machine;      /* HOTFN_MACHINE_*                                            */
    uint32_t raw_machine;  /* e_machine or IMAGE_FILE_MACHINE_*                          */
    uint32_t bits;         /* 32 or 64                                                   */
    uint32_t flags;        /* HOTFN_IMAGE_*                                              */
    uint64_t link_base;    /* lowest load address, page aligned down: RVA 0              */
    uint64_t loaded_bytes; /* from RVA 0 to the end of the last segment                  */
    uint64_t entry_rva;    /* 0 if none                                                  */
    uint32_t id_kind;      /* HOTFN_ID_*                                                 */
    uint32_t id_bytes;     /* how many of id[] count, at most 32                         */
    uint8_t id[32];
    const char *path;        /* view; as given to open, or the name given                */
    const char *interpreter; /* view; NULL if none                                       */
} hotfn_image_info;
#define HOTFN_IMAGE_INFO_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_image_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0              \
    }

#define HOTFN_SECTION_EXECUTE 1u
#define HOTFN_SECTION_WRITE 2u
#define HOTFN_SECTION_LOADED 4u   /* present in memory            */
#define HOTFN_SECTION_NO_BYTES 8u /* .bss: nothing in the file  */

typedef struct hotfn_section {
    uint32_t size;       /* sizeof(hotfn_section) */
    uint32_t flags;      /* HOTFN_SECTION_*       */
    const char *name;    /* view                */
    uint64_t rva;        /* 0 if not LOADED     */
    uint64_t byte_count; /* in memory        */
    uint64_t file_offset;
    uint64_t file_bytes;
} hotfn_section;
#define HOTFN_SECTION_INIT                                                                         \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_section), 0, 0, 0, 0, 0, 0                                          \
    }

/*
 * Open the image in the file at path (mapped read-only, or read where a map is not possible).
 *
 * out  receives an image that the caller owns; untouched on failure.
 * env  borrowed and copied; NULL means defaults.
 * err  borrowed; NULL if only the status matters.
 *
 * HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT (not an image, truncated, or with inconsistent headers: err
 * has the offset), HOTFN_E_UNSUPPORTED, HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (more than 1 GiB from a
 * pipe).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_image_open(hotfn_image **out, const char *path, const hotfn_env *env,
                                        hotfn_error *err);

/* Open the image in bytes, which are kept until the image is closed.  name is copied (NULL:
 * "(memory)").  HOTFN_OK, HOTFN_E_FORMAT, HOTFN_E_UNSUPPORTED, HOTFN_E_NO_MEMORY.  Any thread.
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_image_open_bytes(hotfn_image **out, const void *bytes,
                                              uint64_t byte_count, const char *name,
                                              const hotfn_env *env, hotfn_error *err);

/* Release the image and every view into it.  NULL is fine.  One thread, after all other calls.
 * Since 0.1. */
HOTFN_API void hotfn_image_close(hotfn_image *image);

/* Fill *out (its size set by the caller).  HOTFN_OK or HOTFN_E_OPTION.  Any thread.
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_image_get_info(const hotfn_image *image, hotfn_image_info *out);

/* The number of sections, and the section at index in the file's table.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_image_get_section_count(const hotfn_image *image);
HOTFN_API hotfn_status hotfn_image_get_section(const hotfn_image *image, uint32_t index,
                                               hotfn_section *out);

/* The static name of a HOTFN_MACHINE_*: "x86-64", "arm64", ...; "other" for an unknown number.  Any
 * thread.  Since 0.1. */
HOTFN_API const char *hotfn_machine_get_name(uint32_t machine);

/* A view of the file's bytes from rva to the end of its segment; *byte_count receives their number.
 * NULL if the file has no byte for rva.  Any thread.  Since 0.1. */
HOTFN_API const uint8_t *hotfn_image_get_bytes(const hotfn_image *image, uint64_t rva,
                                               uint64_t *byte_count);

#ifdef __cplusplus
}
#endif

#endif
