/* SPDX-License-Identifier: MIT */
/* The env of the tools: a demangler, a reader of source lines, and decompressors where their
 * libraries were there to build with. */
#include "source_lines.h"
#include "verbs.h"

#if defined(HOTFN_HAVE_LZMA)
#include <lzma.h>

/* .gnu_debugdata: one xz stream of unknown size; the buffer doubles up to max_bytes. */
static void *unxz(const void *in, size_t in_bytes, size_t max_bytes, hotfn_realloc_fn grow,
                  void *grow_user, size_t *out_bytes)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t capacity = in_bytes < max_bytes / 8 ? in_bytes * 8 + 4096 : max_bytes;
    uint8_t *out = grow(grow_user, NULL, 0, capacity);
    lzma_ret answer = out ? lzma_stream_decoder(&stream, 256u << 20, 0) : LZMA_MEM_ERROR;
    stream.next_in = in;
    stream.avail_in = in_bytes;
    while (answer == LZMA_OK) {
        stream.next_out = out + stream.total_out;
        stream.avail_out = capacity - (size_t)stream.total_out;
        answer = lzma_code(&stream, LZMA_FINISH);
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
    lzma_end(&stream);
    if (answer != LZMA_STREAM_END && out) {
        grow(grow_user, out, capacity, 0);
        return NULL;
    }
    /* The library frees *out_bytes of what it gets. */
    return out ? grow(grow_user, out, capacity, *out_bytes ? *out_bytes : 1) : NULL;
}
#endif

static void *decompress(void *user, int32_t compression, const void *in, size_t in_bytes,
                        size_t max_bytes, hotfn_realloc_fn grow, void *grow_user, size_t *out_bytes)
{
    (void)user;
#if defined(HOTFN_HAVE_LZMA)
    if (compression == HOTFN_COMPRESSION_XZ) {
        return unxz(in, in_bytes, max_bytes, grow, grow_user, out_bytes);
    }
#endif
    (void)compression, (void)in, (void)in_bytes, (void)max_bytes;
    (void)grow, (void)grow_user, (void)out_bytes;
    return NULL;
}

hotfn_env hotfn_tool_env(void)
{
    hotfn_env env = HOTFN_ENV_INIT;
    env.demangle_fn = hotfn_tool_demangle;
    env.decompress_fn = decompress;
    env.line_fn = hotfn_tool_source_line;
    env.frame_fn = hotfn_tool_source_frame;
    return env;
}
