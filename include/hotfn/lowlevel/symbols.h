/* SPDX-License-Identifier: MIT */
/* Symbols: names with addresses, from the image itself, a debug file, a PDB or a linker map.
 * Several threads may read symbols at once, except through calls that are documented to change
 * them. */
#ifndef HOTFN_SYMBOLS_H
#define HOTFN_SYMBOLS_H

#include <hotfn/lowlevel/image.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_symbols hotfn_symbols;

#define HOTFN_SYMBOL_FUNCTION 1
#define HOTFN_SYMBOL_DATA 2
#define HOTFN_SYMBOL_IFUNC 3    /* address of the resolver, not of the function */
#define HOTFN_SYMBOL_LABEL 4    /* no type: may be hand-written code            */
#define HOTFN_SYMBOL_THUNK 5    /* a jump to a function elsewhere              */
#define HOTFN_SYMBOL_FRAGMENT 6 /* a part of a function, apart from its entry  */

#define HOTFN_SOURCE_SYMTAB 1
#define HOTFN_SOURCE_DEBUG_FILE 2 /* found by build-id or .gnu_debuglink */
#define HOTFN_SOURCE_DEBUGDATA 3  /* .gnu_debugdata                      */
#define HOTFN_SOURCE_DYNSYM 4
#define HOTFN_SOURCE_MAP 5
#define HOTFN_SOURCE_PDB 6
#define HOTFN_SOURCE_EXPORTS 7
#define HOTFN_SOURCE_GO 8 /* the function table of a Go program, .gopclntab */

#define HOTFN_SYMBOL_GLOBAL 1u /* binding GLOBAL or WEAK              */
#define HOTFN_SYMBOL_WEAK 2u
#define HOTFN_SYMBOL_EXPORTED 4u     /* in .dynsym, defined, not hidden     */
#define HOTFN_SYMBOL_SIZE_GUESSED 8u /* its source has no size: the distance to the next symbol */

typedef struct hotfn_symbol {
    uint32_t size;   /* sizeof(hotfn_symbol)                 */
    uint32_t kind;   /* HOTFN_SYMBOL_* kind                  */
    uint32_t source; /* HOTFN_SOURCE_*                       */
    uint32_t flags;  /* HOTFN_SYMBOL_GLOBAL ...              */
    uint64_t rva;
    uint64_t byte_count; /* 0 if unknown                         */
    const char *name;    /* view; the linker's (mangled) name    */
    const char *module;  /* view; the object file or library that it came from; NULL if unknown */
} hotfn_symbol;
#define HOTFN_SYMBOL_INIT                                                                          \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_symbol), 0, 0, 0, 0, 0, 0, 0                                        \
    }

#define HOTFN_SYMBOLS_NO_SEPARATE 1u /* do not look for separate debug files */
#define HOTFN_SYMBOLS_DATA 2u        /* data symbols too [functions only]    */
#define HOTFN_SYMBOLS_FORCE 4u       /* accept a PDB or map of another build, with a warning */

typedef struct hotfn_symbols_options {
    uint32_t size;  /* sizeof(hotfn_symbols_options)                                     */
    uint32_t flags; /* HOTFN_SYMBOLS_* [none]                                            */
    const char *const *symbol_dirs; /* borrowed; more places for debug files [none]      */
    uint32_t symbol_dir_count;
    uint32_t reserved;
} hotfn_symbols_options;
#define HOTFN_SYMBOLS_OPTIONS_INIT                                                                 \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_symbols_options), 0, 0, 0, 0                                        \
    }

/*
 * Load the symbols of image, in order: .symtab; separate debug file (build-id folder,
 * .gnu_debuglink checked by CRC); .gnu_debugdata (if env decompresses); .dynsym.  Of a PE image:
 * the PDB of this build (in the same folder; in symbol_dirs, as NAME or NAME/GUIDAGE/NAME), COFF
 * symbols, exports.  A broken source is skipped with a warning; an image without any source has no
 * symbols (count is 0).
 *
 * image is kept: it must outlive the symbols.  Sorted by rva, then GLOBAL first, then name.
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_FORMAT (the image's own tables
 * are inconsistent).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_symbols_load(hotfn_symbols **out, const hotfn_image *image,
                                          const hotfn_symbols_options *options,
                                          const hotfn_env *env, hotfn_error *err);

/*
 * Load the procedures, publics and thunks of a program database (PDB, MSF 7.0); with
 * HOTFN_SYMBOLS_DATA global and static variables too.  Addresses are those of the image, even if it
 * was reordered after linking (OMAP).
 *
 * path   a file; it is mapped, not copied, until the symbols are destroyed.
 * image  borrowed; NULL to accept any PDB.  Else the GUID and age of both must be equal.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_IO, HOTFN_E_FORMAT (broken: offset is set),
 * HOTFN_E_UNSUPPORTED (portable .NET, types only, MSF 2.0, MSFZ), HOTFN_E_MISMATCH (of another
 * build; HOTFN_SYMBOLS_FORCE overrides), HOTFN_E_LIMIT (more than 1 GiB from a pipe).  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_symbols_load_pdb(hotfn_symbols **out, const char *path,
                                              const hotfn_image *image,
                                              const hotfn_symbols_options *options,
                                              const hotfn_env *env, hotfn_error *err);
/* Load a PDB from bytes, which are kept until the symbols are destroyed; name is copied (NULL:
 * "(memory)").  Statuses as hotfn_symbols_load_pdb, without HOTFN_E_IO and HOTFN_E_LIMIT.  Any
 * thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_symbols_pdb_from_bytes(hotfn_symbols **out, const void *bytes,
                                                    uint64_t byte_count, const char *name,
                                                    const hotfn_image *image,
                                                    const hotfn_symbols_options *options,
                                                    const hotfn_env *env, hotfn_error *err);

/*
 * Load the functions and global variables of a linker map: of Microsoft's linker, lld (ELF, PE,
 * Mach-O), GNU ld, gold, mold or ld64, which are distinguished by their first lines.  Names are as
 * the linker wrote them.  Where the map has no size, it is the distance to the next symbol, at most
 * to the end of the contribution of its object file.
 *
 * path   a file; it is read during the call only.
 * image  borrowed; NULL to accept any map.  Else sections, entry point and time stamp of both must
 *        be equal; the image decides the kinds, and its exports are added to the symbols.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_IO, HOTFN_E_FORMAT (no map, UTF-16,
 * truncated within a line, a line of more than 1 MiB: err has offset and line), HOTFN_E_MISMATCH
 * (of another build; HOTFN_SYMBOLS_FORCE overrides), HOTFN_E_LIMIT (more than 1 GiB from a pipe).
 * Lines that contradict others are skipped with a warning.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_symbols_load_map(hotfn_symbols **out, const char *path,
                                              const hotfn_image *image,
                                              const hotfn_symbols_options *options,
                                              const hotfn_env *env, hotfn_error *err);
/* Load a linker map from bytes, which are borrowed; name is copied (NULL: "(memory)").  Statuses as
 * hotfn_symbols_load_map, without HOTFN_E_IO and HOTFN_E_LIMIT.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_symbols_map_from_bytes(hotfn_symbols **out, const void *bytes,
                                                    uint64_t byte_count, const char *name,
                                                    const hotfn_image *image,
                                                    const hotfn_symbols_options *options,
                                                    const hotfn_env *env, hotfn_error *err);

/* Release the symbols and every view into them.  NULL is fine.  One thread, after all other calls.
 * Since 0.1. */
HOTFN_API void hotfn_symbols_destroy(hotfn_symbols *symbols);
/* The number of symbols, and the symbol at index in order of rva; its texts are views.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_symbols_get_count(const hotfn_symbols *symbols);
HOTFN_API hotfn_status hotfn_symbols_get(const hotfn_symbols *symbols, uint32_t index,
                                         hotfn_symbol *out);

/* The source of the symbols, and the image that it was made for. */
typedef struct hotfn_symbols_info {
    uint32_t size;      /* sizeof(hotfn_symbols_info)                        */
    uint32_t source;    /* HOTFN_SOURCE_* of the best source; 0 if there was none */
    uint32_t machine;   /* HOTFN_MACHINE_*; HOTFN_MACHINE_OTHER if unknown         */
    uint32_t id_kind;   /* HOTFN_ID_*                                        */
    uint32_t id_bytes;  /* how many of id[] count                            */
    uint32_t flags;     /* HOTFN_SYMBOLS_FORCE: perhaps of another build, but accepted */
    uint8_t id[32];     /* as hotfn_image_info.id                            */
    const char *path;   /* view; the file, or the name given                 */
    const char *format; /* static; "gnu-ld-map" ...; NULL for an image's own symbols */
} hotfn_symbols_info;
#define HOTFN_SYMBOLS_INFO_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_symbols_info), 0, 0, 0, 0, 0, { 0 }, 0, 0                           \
    }
/* HOTFN_OK or HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_symbols_get_info(const hotfn_symbols *symbols,
                                              hotfn_symbols_info *out);

/* The source line of a piece of code. */
typedef struct hotfn_source_line {
    uint32_t size;       /* sizeof(hotfn_source_line)                     */
    uint32_t line;       /* counted from 1                                */
    uint64_t rva;        /* where the code of this line begins            */
    uint64_t byte_count; /* of that code                                  */
    const char *file;    /* view until the next call; as given to the compiler */
} hotfn_source_line;
#define HOTFN_SOURCE_LINE_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_source_line), 0, 0, 0, 0                                            \
    }
/*
 * Find the source line of the code at rva: in a PDB, which is read at the first call; in a map that
 * has lines (Microsoft's /MAPINFO:LINES); or by env's line_fn, if the symbols are an image's own.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (no line is known), HOTFN_E_OPTION, HOTFN_E_NO_MEMORY.  It changes
 * symbols: one thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_symbols_find_line(hotfn_symbols *symbols, uint64_t rva,
                                               hotfn_source_line *out);

/* The source of inlined code. */
typedef struct hotfn_source_frame {
    uint32_t size;        /* sizeof(hotfn_source_frame)                            */
    uint32_t line;        /* counted from 1; 0 if unknown                          */
    const char *function; /* view until the next call; "" if unknown               */
    const char *file;     /* the same                                              */
} hotfn_source_frame;
#define HOTFN_SOURCE_FRAME_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_source_frame), 0, 0, 0                                              \
    }
/*
 * Find the calls that were inlined at rva.  Depth 0 is the innermost inlined source, each further
 * depth is the place into which the previous depth was inlined, and the last one is in the function
 * itself.  env's inlined_fn is called if the symbols are an image's own.  Without it there is only
 * depth 0: the line of hotfn_symbols_find_line, without the name of a function.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (no such depth), HOTFN_E_OPTION, HOTFN_E_NO_MEMORY.  It changes
 * symbols: one thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_symbols_find_frame(hotfn_symbols *symbols, uint64_t rva,
                                                uint32_t depth, hotfn_source_frame *out);

/* The exports of a PE image.  Opaque: made and released by the calls below. */
typedef struct hotfn_exports hotfn_exports;

typedef struct hotfn_exported {
    uint32_t size;           /* sizeof(hotfn_exported)                                      */
    uint32_t ordinal;        /* the number by which it can be imported                      */
    uint64_t rva;            /* in this image; 0 if it is forwarded                         */
    const char *name;        /* view; NULL if it has only a number                          */
    const char *forward;     /* view; "LIBRARY.Name" or "LIBRARY.#12", or NULL              */
    const char *target_path; /* view; the file where the chain of forwarders ends, or NULL  */
    uint64_t target_rva;     /* in that file                                                */
} hotfn_exported;
#define HOTFN_EXPORTED_INIT                                                                        \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_exported), 0, 0, 0, 0, 0, 0                                         \
    }

/*
 * Load the exports of image, in order of their numbers.  image is kept.  Forwarders are followed
 * through the libraries in the image's folder and in the options' symbol_dirs; a forwarder to a
 * library that is not found there keeps only its name.  An image that is not a PE image has no
 * exports.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_FORMAT (its tables are inconsistent).  Any
 * thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_exports_load(hotfn_exports **out, const hotfn_image *image,
                                          const hotfn_symbols_options *options,
                                          const hotfn_env *env, hotfn_error *err);
/* Release the exports and every view into them.  NULL is fine.  One thread, after all other calls.
 * Since 0.1. */
HOTFN_API void hotfn_exports_destroy(hotfn_exports *exports);
/* The number of exports, and the export at index in order of the numbers; its texts are views.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_exports_get_count(const hotfn_exports *exports);
HOTFN_API hotfn_status hotfn_exports_get(const hotfn_exports *exports, uint32_t index,
                                         hotfn_exported *out);

#ifdef __cplusplus
}
#endif

#endif
