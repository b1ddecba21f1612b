/* SPDX-License-Identifier: MIT */
/* Symbols: names with addresses, from wherever a released build left them. */
#ifndef HOTFN_SYMBOLS_H
#define HOTFN_SYMBOLS_H

#include <hotfn/image.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_symbols hotfn_symbols;

#define HOTFN_SYMBOL_FUNCTION 1
#define HOTFN_SYMBOL_DATA 2
#define HOTFN_SYMBOL_IFUNC 3  /* address of the resolver, not of the function */
#define HOTFN_SYMBOL_LABEL 4  /* no type: may be code written by hand         */
#define HOTFN_SYMBOL_THUNK 5

#define HOTFN_SOURCE_SYMTAB 1
#define HOTFN_SOURCE_DEBUG_FILE 2  /* found by build-id or .gnu_debuglink */
#define HOTFN_SOURCE_DEBUGDATA 3   /* .gnu_debugdata                      */
#define HOTFN_SOURCE_DYNSYM 4
#define HOTFN_SOURCE_MAP 5
#define HOTFN_SOURCE_PDB 6
#define HOTFN_SOURCE_EXPORTS 7

#define HOTFN_SYMBOL_GLOBAL 1u   /* binding GLOBAL or WEAK              */
#define HOTFN_SYMBOL_WEAK 2u
#define HOTFN_SYMBOL_EXPORTED 4u /* in .dynsym, defined, not hidden     */

typedef struct hotfn_symbol {
    uint32_t size;       /* sizeof(hotfn_symbol)                 */
    uint32_t kind;       /* HOTFN_SYMBOL_* kind                  */
    uint32_t source;     /* HOTFN_SOURCE_*                       */
    uint32_t flags;      /* HOTFN_SYMBOL_GLOBAL ...              */
    uint64_t rva;
    uint64_t byte_count; /* 0 if unknown                         */
    const char *name;    /* view; the linker's (mangled) name    */
} hotfn_symbol;
#define HOTFN_SYMBOL_INIT { (uint32_t)sizeof(hotfn_symbol), 0, 0, 0, 0, 0, 0 }

#define HOTFN_SYMBOLS_NO_SEPARATE 1u /* do not look for separate debug files */
#define HOTFN_SYMBOLS_DATA 2u        /* data symbols too [functions only]    */

typedef struct hotfn_symbols_options {
    uint32_t size;  /* sizeof(hotfn_symbols_options)                                     */
    uint32_t flags; /* HOTFN_SYMBOLS_* [none]                                            */
    const char *const *symbol_dirs; /* borrowed; more places for debug files [none]      */
    uint32_t symbol_dir_count;
    uint32_t reserved;
} hotfn_symbols_options;
#define HOTFN_SYMBOLS_OPTIONS_INIT { (uint32_t)sizeof(hotfn_symbols_options), 0, 0, 0, 0 }

/*
 * Load the symbols of image, in order: .symtab; separate debug file (build-id folder, .gnu_debuglink
 * checked by CRC); .gnu_debugdata (if env decompresses); .dynsym.  A source that is broken is passed
 * over with a warning to the log; none at all is not an error (count is 0).
 *
 * image is kept: it must outlive the symbols.  Sorted by rva, then GLOBAL first, then name.
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_FORMAT (own tables lie).  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_symbols_load(hotfn_symbols **out, const hotfn_image *image,
                                          const hotfn_symbols_options *options, const hotfn_env *env,
                                          hotfn_error *err);
HOTFN_API void hotfn_symbols_destroy(hotfn_symbols *symbols);
HOTFN_API uint32_t hotfn_symbols_count(const hotfn_symbols *symbols);
HOTFN_API hotfn_status hotfn_symbols_get(const hotfn_symbols *symbols, uint32_t index, hotfn_symbol *out);

#ifdef __cplusplus
}
#endif

#endif
