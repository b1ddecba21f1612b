/* SPDX-License-Identifier: MIT */
/* The hotfn_env of all commands: a demangler, a reader of source lines, and progress on a
 * terminal, and, where these libraries were present at build time and can be loaded, an xz
 * decompressor (liblzma) and debug files from servers (libdebuginfod). */
#include "commands.h"
#include "log.h"
#include "progress.h"
#include "scan/debuginfod.h"
#include "scan/source_lines.h"

#if defined(HOTFN_HAVE_LZMA)
#include <dlfcn.h>
#include <lzma.h>
#include <pthread.h>
#include <string.h>

/* liblzma is loaded on first use, like libdw: few programs have .gnu_debugdata, and loading it
 * would slow down every command, most in a virtual machine, where its CPUID instructions trap. */
static struct {
    __typeof__(lzma_stream_decoder) *stream_decoder;
    __typeof__(lzma_code) *code;
    __typeof__(lzma_end) *end;
} lzma; /* end is NULL if the library cannot be loaded */

/* ISO C has no cast from an address of data to one of a function. */
static bool load_symbol(void *library, const char *name, void *pointer)
{
    void *found = dlsym(library, name);

    memcpy(pointer, &found, sizeof found);
    return found != NULL;
}

static void load_lzma(void)
{
    void *library = dlopen("liblzma.so.5", RTLD_NOW);

    if (!library || !load_symbol(library, "lzma_stream_decoder", &lzma.stream_decoder) ||
        !load_symbol(library, "lzma_code", &lzma.code) ||
        !load_symbol(library, "lzma_end", &lzma.end)) {
        lzma.end = NULL;
    }
}

/* .gnu_debugdata: one xz stream of unknown size; the buffer doubles up to max_bytes. */
static void *unpack_xz(const void *in, size_t in_bytes, size_t max_bytes, hotfn_realloc_fn grow,
                       void *grow_user, size_t *out_bytes)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t capacity = in_bytes < max_bytes / 8 ? in_bytes * 8 + 4096 : max_bytes;
    uint8_t *out = grow(grow_user, NULL, 0, capacity);
    lzma_ret answer = out ? lzma.stream_decoder(&stream, 256u << 20, 0) : LZMA_MEM_ERROR;
    stream.next_in = in;
    stream.avail_in = in_bytes;
    while (answer == LZMA_OK) {
        stream.next_out = out + stream.total_out;
        stream.avail_out = capacity - (size_t)stream.total_out;
        answer = lzma.code(&stream, LZMA_FINISH);
        if (answer == LZMA_OK && stream.avail_out == 0) {
            size_t more = capacity < max_bytes / 2 ? capacity * 2 : max_bytes;
            uint8_t *larger = more > capacity ? grow(grow_user, out, capacity, more) : NULL;
            if (!larger) {
                break;
            }
            out = larger;
            capacity = more;
        } else if (answer == LZMA_OK && stream.avail_in == 0) {
            break;
        }
    }
    *out_bytes = (size_t)stream.total_out;
    lzma.end(&stream);
    if (answer != LZMA_STREAM_END && out) {
        grow(grow_user, out, capacity, 0);
        return NULL;
    }
    /* Shrink the block to *out_bytes: libhotfn passes that size when it frees the block. */
    return out ? grow(grow_user, out, capacity, *out_bytes ? *out_bytes : 1) : NULL;
}

static void *decompress_section(void *user, int32_t compression, const void *in, size_t in_bytes,
                                size_t max_bytes, hotfn_realloc_fn grow, void *grow_user,
                                size_t *out_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)user;
    return compression == HOTFN_COMPRESSION_XZ && pthread_once(&once, load_lzma) == 0 && lzma.end
               ? unpack_xz(in, in_bytes, max_bytes, grow, grow_user, out_bytes)
               : NULL;
}
#endif

hotfn_env hotfn_tool_env(void)
{
    hotfn_env env = HOTFN_ENV_INIT;
    env.demangle_fn = hotfn_tool_demangle;
    log_set_env(&env);
#if defined(HOTFN_HAVE_LZMA)
    env.decompress_fn = decompress_section;
#endif
    env.line_fn = hotfn_tool_source_line;
    env.inlined_fn = hotfn_tool_source_frame;
    progress_set_env(&env);
#if defined(HOTFN_HAVE_DEBUGINFOD)
    debuginfod_set_env(&env);
#endif
    return env;
}
