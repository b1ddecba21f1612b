/* SPDX-License-Identifier: MIT */
/* Functions: entries with sizes and all their names.  Fragments, linker stubs and resolvers are
 * recognised by evidence in the image.  Built functions do not change, so that several threads may
 * read them at once. */
#ifndef HOTFN_FUNCTIONS_H
#define HOTFN_FUNCTIONS_H

#include <hotfn/function.h>
#include <hotfn/lowlevel/symbols.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_functions hotfn_functions;

#define HOTFN_FUNCTION_PLAIN 1
#define HOTFN_FUNCTION_FRAGMENT 2 /* its unwind data or PDB prove that it starts inside a frame */
#define HOTFN_FUNCTION_PLT 3      /* linker stubs                                              */
#define HOTFN_FUNCTION_RESOLVER 4 /* the resolver of an ifunc                                  */
#define HOTFN_FUNCTION_GLUE 5     /* _start, _init, _fini, deregister_tm_clones ...: C run-time */

#define HOTFN_FUNCTION_HAS_SYMBOL                                                                  \
    1u /* named by a symbol (else found only in unwind data)         */
#define HOTFN_FUNCTION_HAS_FDE 2u
#define HOTFN_FUNCTION_EXPORTED 4u /* callable from other modules                                */
#define HOTFN_FUNCTION_GLOBAL 8u
#define HOTFN_FUNCTION_SIZE_GUESSED                                                                \
    16u /* size is the distance to the next entry or section end     */
#define HOTFN_FUNCTION_SIGNAL_FRAME                                                                \
    32u                             /* FDE augmentation 'S': a signal restorer                   */
#define HOTFN_FUNCTION_HAS_LSDA 64u /* FDE with language data (landing pads inside)               */
#define HOTFN_FUNCTION_UNTYPED 128u /* named only by symbols without type: hand-written           */
/* Without symbol and unwind data, found by hotfn_verdicts_find_functions: */
#define HOTFN_FUNCTION_FOUND_CALL 256u /* a direct call targets it                               */
#define HOTFN_FUNCTION_FOUND_POINTER                                                               \
    512u /* data contains a pointer to it                          */

typedef struct hotfn_function {
    uint32_t size;       /* sizeof(hotfn_function)                        */
    uint32_t kind;       /* HOTFN_FUNCTION_* kind                         */
    uint32_t flags;      /* HOTFN_FUNCTION_HAS_SYMBOL ...                 */
    uint32_t name_count; /* >= 1                                          */
    uint64_t rva;
    uint64_t byte_count;    /* >= 1                                          */
    const char *name;       /* view; the best name; "prog+0x1234" if nameless */
    int32_t fde_cfa_offset; /* CFA minus stack pointer at entry by the FDE; -1 unknown  */
    uint32_t section;       /* index of its section, UINT32_MAX if none      */
} hotfn_function;
#define HOTFN_FUNCTION_INIT                                                                        \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_function), 0, 0, 0, 0, 0, 0, 0, 0                                   \
    }

/*
 * Build the functions of image from its symbols and its .eh_frame: one entry per address, sorted by
 * rva, sizes never reaching into the next entry's section; aliases are names of one function.
 *
 * image and symbols are kept: they must outlive the functions.  symbols may be NULL.
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT, HOTFN_E_MISMATCH (symbols of a map whose functions
 * begin inside the image's functions).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_functions_build(hotfn_functions **out, const hotfn_image *image,
                                             const hotfn_symbols *symbols, const hotfn_env *env,
                                             hotfn_error *err);
/* Release the functions and every view into them.  NULL is fine.  One thread, after all other
 * calls.  Since 0.1. */
HOTFN_API void hotfn_functions_destroy(hotfn_functions *functions);
/* The number of functions, and the function at index in order of rva; its name is a view.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_functions_get_count(const hotfn_functions *functions);
HOTFN_API hotfn_status hotfn_functions_get(const hotfn_functions *functions, uint32_t index,
                                           hotfn_function *out);
/* A view of the function's name at name_index, the best name first; NULL past the end.  Any thread.
 * Since 0.1. */
HOTFN_API const char *hotfn_functions_get_name(const hotfn_functions *functions, uint32_t index,
                                               uint32_t name_index);
/* The index of the function that contains rva, UINT32_MAX if there is none.  Any thread.
 * Since 0.1. */
HOTFN_API uint32_t hotfn_functions_find(const hotfn_functions *functions, uint64_t rva);

/* The bytes of code of the image, without padding of less than 16 bytes, and those that belong to
 * its functions; the rest belongs to functions that have neither a symbol nor unwind data.  Both
 * are 0 if functions is NULL; code_bytes and known_bytes may be NULL.  Any thread.  Since 0.1. */
HOTFN_API void hotfn_functions_get_coverage(const hotfn_functions *functions, uint64_t *code_bytes,
                                            uint64_t *known_bytes);

/*
 * Set selected[i] to 1 or 0 for each function i; selected has hotfn_functions_get_count bytes.
 * unmatched, if not NULL, receives the first include glob that matches no name (a view), or NULL.
 * HOTFN_OK, HOTFN_E_OPTION (a broken glob, which err names), HOTFN_E_NO_MEMORY.  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_functions_select(const hotfn_functions *functions,
                                              const hotfn_selection *selection, uint8_t *selected,
                                              const char **unmatched, hotfn_error *err);
/* 1 if name (mangled) is that of a function that allocates or frees memory: malloc, free, operator
 * new and the like; else 0.  Any thread.  Since 0.1. */
HOTFN_API int32_t hotfn_is_allocator(const char *name);
/* 1 if text matches glob, 0 if not, -1 if the glob is broken.  Any thread.  Since 0.1. */
HOTFN_API int32_t hotfn_glob_match(const char *glob, const char *text);

#ifdef __cplusplus
}
#endif

#endif
