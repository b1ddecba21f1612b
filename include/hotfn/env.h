/* SPDX-License-Identifier: MIT */
/* Services that a program may provide to the library: memory, a log, a demangler, a decompressor,
 * source lines, debug files, and a display of progress.  Calls that create an object take an env;
 * NULL, or a member that is 0, means the default.  The callbacks of an env are called by the
 * threads that use the object. */
#ifndef HOTFN_ENV_H
#define HOTFN_ENV_H

#include <hotfn/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_LOG_ERROR 1   /* something that was asked for is not done               */
#define HOTFN_LOG_WARNING 2 /* the results are less complete than was asked for       */
#define HOTFN_LOG_INFO 3    /* which files were used, and what would give more names  */
#define HOTFN_LOG_DEBUG 4   /* which files were searched, and why they were not used  */

/* memory == NULL: allocate new_bytes; new_bytes == 0: free memory and return NULL; else resize.
 * Return NULL when there is no memory.  old_bytes is the size of the memory (0 for none). */
typedef void *(*hotfn_realloc_fn)(void *user, void *memory, size_t old_bytes, size_t new_bytes);

typedef void (*hotfn_log_fn)(void *user, int32_t level, const char *text);

/* Write the readable form of mangled into out (out_bytes, NUL included); return its length, or 0 if
 * mangled is not a name of a known kind or the readable form does not fit. */
typedef size_t (*hotfn_demangle_fn)(void *user, const char *mangled, char *out, size_t out_bytes);

/* Receive the next byte_count bytes of an output.  Return 0 to continue, any other value to stop
 * the output. */
typedef int32_t (*hotfn_write_fn)(void *user, const void *bytes, size_t byte_count);

#define HOTFN_COMPRESSION_XZ 1   /* .gnu_debugdata                  */
#define HOTFN_COMPRESSION_ZLIB 2 /* SHF_COMPRESSED, ELFCOMPRESS_ZLIB */
#define HOTFN_COMPRESSION_ZSTD 3 /* SHF_COMPRESSED, ELFCOMPRESS_ZSTD */

/* Decompress all of in[0..in_bytes).  On success set *out_bytes and return memory from
 * grow(grow_user, NULL, 0, n), which the library frees; return NULL on failure or beyond
 * max_bytes. */
typedef void *(*hotfn_decompress_fn)(void *user, int32_t compression, const void *in,
                                     size_t in_bytes, size_t max_bytes, hotfn_realloc_fn grow,
                                     void *grow_user, size_t *out_bytes);

/* Find the source line of the code at rva of the image at path: write the name of the source file
 * into file (file_bytes, NUL included) and the line into *line, and return 1; return 0 if it is not
 * known.  id is the image's id: lines of another build must not be returned.  If id_bytes is 0, the
 * id is unknown, and lines of any build may be returned. */
typedef int32_t (*hotfn_line_fn)(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                                 uint64_t rva, char *file, size_t file_bytes, uint32_t *line);

/* The same for calls that the compiler inlined at rva: depth 0 is the innermost function, 1 the
 * function that it was inlined into, and so on up to the function that has a symbol.  Write the
 * linker's name of the function into function ("" if it is not known), its file and line ("" and 0
 * if they are not known), and return 1; return 0 if there is no such depth. */
typedef int32_t (*hotfn_inlined_fn)(void *user, const char *path, const uint8_t *id,
                                    uint32_t id_bytes, uint64_t rva, uint32_t depth, char *function,
                                    size_t function_bytes, char *file, size_t file_bytes,
                                    uint32_t *line);

/* Find the separate debug file of the ELF image at path, whose build-id is id, outside of the usual
 * folders, for instance on a server: write its path into file (file_bytes, NUL included) and return
 * 1; return 0 if there is none. */
typedef int32_t (*hotfn_debug_file_fn)(void *user, const char *path, const uint8_t *id,
                                       uint32_t id_bytes, char *file, size_t file_bytes);

/* How far a long operation is.  The strings are views, valid during the callback. */
typedef struct hotfn_progress {
    uint32_t size;        /* sizeof(hotfn_progress)                    */
    uint32_t reserved;    /* 0                                         */
    const char *action;   /* shown before file: "reading symbols of"    */
    const char *file;     /* a path                                    */
    uint64_t done, total; /* functions, bytes, records or other units */
} hotfn_progress;

/* Called about 100 times during each operation that reads, scans, merges or exports a file, by the
 * thread that runs the operation.  The last call has done == total, even if the operation fails. */
typedef void (*hotfn_progress_fn)(void *user, const hotfn_progress *progress);

/* An object copies the env that it is created with; the callbacks must outlive the object. */
typedef struct hotfn_env {
    uint32_t size;               /* sizeof(hotfn_env)                    */
    uint32_t flags;              /* 0                                    */
    hotfn_realloc_fn realloc_fn; /* [malloc, realloc, free] */
    void *realloc_user;
    hotfn_log_fn log_fn; /* [no log]                        */
    void *log_user;
    hotfn_demangle_fn demangle_fn; /* [__cxa_demangle if the process has it, else none] */
    void *demangle_user;
    hotfn_decompress_fn decompress_fn; /* [none: compressed sections are not read]       */
    void *decompress_user;
    hotfn_line_fn line_fn; /* [none: lines are known only from PDB files]       */
    void *line_user;
    hotfn_inlined_fn inlined_fn; /* [none: inlined calls are not known]               */
    void *inlined_user;
    hotfn_progress_fn progress_fn; /* [progress is not reported] */
    void *progress_user;
    hotfn_debug_file_fn debug_file_fn; /* [only the usual folders are searched] */
    void *debug_file_user;
} hotfn_env;
#define HOTFN_ENV_INIT                                                                             \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_env), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0             \
    }

/*
 * Make env take its memory from the system instead of malloc, for code in a process whose malloc
 * must not be called.  The process has one such pool, which only grows.
 *
 * env   borrowed; its realloc_fn and realloc_user are set.
 *
 * Any thread may make this call, but only one thread at a time may allocate from the pool.  (The
 * agent holds the loader's lock meanwhile.)  Since 0.1.
 */
HOTFN_API void hotfn_env_own_memory(hotfn_env *env);

/*
 * Write the readable form of a linker's name into out.  A C++ name is demangled by the process's
 * C++ library; any other name, or any name in a process without a C++ library, is copied unchanged.
 *
 * mangled     borrowed.
 * out         out_bytes, NUL included; untouched if 0 is returned.
 *
 * Returns the length without the NUL, or 0 if it does not fit or an argument is NULL.  Any thread.
 * Since 0.1.
 */
HOTFN_API size_t hotfn_demangle(const char *mangled, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif

#endif
