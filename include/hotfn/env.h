/* SPDX-License-Identifier: MIT */
/* What the library borrows from its caller: memory, a log, a demangler, a decompressor.  Every
 * create call takes one; NULL, or a member left 0, means the default. */
#ifndef HOTFN_ENV_H
#define HOTFN_ENV_H

#include <hotfn/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_LOG_ERROR 1
#define HOTFN_LOG_WARNING 2
#define HOTFN_LOG_INFO 3
#define HOTFN_LOG_DEBUG 4

/* memory == NULL: allocate new_bytes; new_bytes == 0: free memory and return NULL; else resize.
 * Returns NULL when there is no memory.  old_bytes is what was asked for before (0 at first). */
typedef void *(*hotfn_realloc_fn)(void *user, void *memory, size_t old_bytes, size_t new_bytes);

typedef void (*hotfn_log_fn)(void *user, int32_t level, const char *text);

/* Write the readable form of mangled into out (out_bytes, NUL included); return its length, or 0 if
 * mangled is not a name of a known kind or does not fit. */
typedef size_t (*hotfn_demangle_fn)(void *user, const char *mangled, char *out, size_t out_bytes);

/* Take byte_count more bytes of an output; return 0, or anything else to stop it. */
typedef int32_t (*hotfn_write_fn)(void *user, const void *bytes, size_t byte_count);

#define HOTFN_COMPRESSION_XZ 1   /* .gnu_debugdata                  */
#define HOTFN_COMPRESSION_ZLIB 2 /* SHF_COMPRESSED, ELFCOMPRESS_ZLIB */
#define HOTFN_COMPRESSION_ZSTD 3 /* SHF_COMPRESSED, ELFCOMPRESS_ZSTD */

/* Decompress in[0..in_bytes) whole.  On success *out_bytes is set and the answer is memory from
 * grow(grow_user, NULL, 0, n) (the library frees it); NULL on failure or beyond max_bytes. */
typedef void *(*hotfn_decompress_fn)(void *user, int32_t compression, const void *in,
                                     size_t in_bytes, size_t max_bytes, hotfn_realloc_fn grow,
                                     void *grow_user, size_t *out_bytes);

/* Where the source of the code at rva of the image at path is: write the file's name into file
 * (file_bytes, NUL included) and its line into *line and return 1; 0 if it is not known.  id is that of
 * the image that is meant (id_bytes 0: any): a file of another build must not answer. */
typedef int32_t (*hotfn_line_fn)(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                                 uint64_t rva, char *file, size_t file_bytes, uint32_t *line);

/* The same with what was inlined there: depth 0 is the innermost piece of source, 1 the place that it
 * was inlined into, and so on up to the function itself.  Write the name of the piece's function into
 * function (as the linker would know it; "" if it is not known), its file and line ("" and 0 if not
 * known), and return 1; 0 if there is no such depth. */
typedef int32_t (*hotfn_frame_fn)(void *user, const char *path, const uint8_t *id,
                                  uint32_t id_bytes, uint64_t rva, uint32_t depth, char *function,
                                  size_t function_bytes, char *file, size_t file_bytes,
                                  uint32_t *line);

/* Kept by the object that is created with it (copied; the callbacks must outlive the object). */
typedef struct hotfn_env {
    uint32_t size;               /* sizeof(hotfn_env)                    */
    uint32_t flags;              /* 0                                    */
    hotfn_realloc_fn realloc_fn; /* [malloc, realloc, free] */
    void *realloc_user;
    hotfn_log_fn log_fn; /* [silence]                       */
    void *log_user;
    hotfn_demangle_fn demangle_fn; /* [__cxa_demangle if the process has it, else none] */
    void *demangle_user;
    hotfn_decompress_fn decompress_fn; /* [none: compressed sections are left out]      */
    void *decompress_user;
    hotfn_line_fn line_fn; /* [none: only a PDB's own lines are known]                */
    void *line_user;
    hotfn_frame_fn frame_fn; /* [none: nothing is known of inlined calls]             */
    void *frame_user;
} hotfn_env;
#define HOTFN_ENV_INIT                                                                             \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_env), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                         \
    }

/* Let env take its memory from the system and not from malloc: for code that runs in a process whose
 * malloc is somebody else's.  It is one pool for the process, used by one thread at a time (the agent:
 * the one that holds the loader's lock), and only grows.  Since 0.1. */
HOTFN_API void hotfn_env_own_memory(hotfn_env *env);

#ifdef __cplusplus
}
#endif

#endif
