/* SPDX-License-Identifier: MIT */
/* Finds file:line of code for reports, in the DWARF of an ELF image or the PDB of a PE image.  The
 * last MAX_OPEN images stay open, because a report alternates between images. */
#include "source_lines.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(HOTFN_HAVE_LIBDW)
#include "dwarf_lines.h"
#include "libdw.h"
#endif

typedef struct opened {
    char *path;
    hotfn_image_info info;
    hotfn_image *image;
    hotfn_symbols *symbols; /* of a PE image  */
#if defined(HOTFN_HAVE_LIBDW)
    dwarf_lines *dwarf; /* of an ELF image */
#endif
} opened;

enum { MAX_OPEN = 32 };

static opened kept[MAX_OPEN]; /* not locked: the commands have one thread */
static uint32_t next_place;
static opened *last = kept;  /* the image of the last query */
static const char **folders; /* in addition to /usr/lib/debug; never freed */
static uint32_t folder_count;

bool hotfn_tool_add_source_dir(const char *folder)
{
    const char **larger = realloc(folders, (folder_count + 1) * sizeof *larger);

    if (!larger) {
        return false;
    }
    folders = larger;
    folders[folder_count++] = folder;
    return true;
}

/* Warn once if an image has source lines that cannot be read, since the report would look like that
 * of a program without source lines. */
static void warn_unread_lines(const char *why)
{
    static bool warned;

    for (uint32_t i = 0; !warned && i < hotfn_image_get_section_count(last->image); i++) {
        hotfn_section s = HOTFN_SECTION_INIT;
        hotfn_image_get_section(last->image, i, &s);
        warned = strcmp(s.name, ".debug_line") == 0;
        if (warned) {
            fprintf(stderr, "hotfn: %s has source lines, but %s\n", last->path, why);
        }
    }
}

#if defined(HOTFN_HAVE_LIBDW)
/* Returns the absolute paths of all folders with ':' between them; the caller frees them. */
static char *join_folders(void)
{
    static const char system[] = "/usr/lib/debug";
    char *path = calloc(1, sizeof system + (size_t)folder_count * (PATH_MAX + 1));

    for (uint32_t i = 0; path && i < folder_count; i++) {
        char *real = realpath(folders[i], NULL);
        if (real) {
            strcat(strcat(path, real), ":");
        }
        free(real);
    }
    return path ? strcat(path, system) : NULL;
}

static void open_dwarf(void)
{
    char *path = join_folders();

    if (path) {
        last->dwarf = dwarf_lines_open(last->path, path);
    }
    free(path);
    if (!libdw_load()) {
        warn_unread_lines("libdw.so.1, which reads them, cannot be loaded (Debian: libdw1)");
    }
}

static bool find_in_dwarf(uint64_t rva, char *file, size_t file_bytes, uint32_t *line)
{
    return last->dwarf &&
           dwarf_lines_find(last->dwarf, rva + last->info.link_base, file, file_bytes, line);
}

static bool find_frame_in_dwarf(uint64_t rva, uint32_t depth, char *function, size_t function_bytes,
                                char *file, size_t file_bytes, uint32_t *line)
{
    return last->dwarf && dwarf_lines_find_frame(last->dwarf, rva + last->info.link_base, depth,
                                                 function, function_bytes, file, file_bytes, line);
}

static void close_dwarf(void)
{
    dwarf_lines_close(last->dwarf);
}
#else
static void open_dwarf(void)
{
    warn_unread_lines("this hotfn was built without libdw, which reads them");
}

static bool find_in_dwarf(uint64_t rva, char *file, size_t file_bytes, uint32_t *line)
{
    (void)rva, (void)file, (void)file_bytes, (void)line;
    return false;
}

static bool find_frame_in_dwarf(uint64_t rva, uint32_t depth, char *function, size_t function_bytes,
                                char *file, size_t file_bytes, uint32_t *line)
{
    (void)rva, (void)depth, (void)function, (void)function_bytes;
    (void)file, (void)file_bytes, (void)line;
    return false;
}

static void close_dwarf(void)
{
}
#endif

static void close_last(void)
{
    close_dwarf();
    hotfn_symbols_destroy(last->symbols);
    hotfn_image_close(last->image);
    free(last->path);
    memset(last, 0, sizeof *last);
}

/* A file that cannot be read is kept as a file without lines. */
static void open_path(const char *path)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_env env = HOTFN_ENV_INIT; /* without line_fn, which would call this file again */

    last = &kept[next_place++ % MAX_OPEN];
    close_last();
    options.symbol_dirs = folders;
    options.symbol_dir_count = folder_count;
    last->path = strdup(path);
    last->info.size = (uint32_t)sizeof last->info;
    if (!last->path || hotfn_image_open(&last->image, path, &env, NULL) != HOTFN_OK) {
        return;
    }
    hotfn_image_get_info(last->image, &last->info);
    if (last->info.format == HOTFN_FORMAT_ELF) {
        open_dwarf();
    } else if (hotfn_symbols_load(&last->symbols, last->image, &options, &env, NULL) != HOTFN_OK) {
        last->symbols = NULL;
    }
}

static void find_opened(const char *path)
{
    for (uint32_t i = 0; i < MAX_OPEN; i++) {
        if (kept[i].path && strcmp(kept[i].path, path) == 0) {
            last = &kept[i];
            return;
        }
    }
    open_path(path);
}

/* Make `last` the image at path.  False if it cannot be read, or if id_bytes is not 0 and the file
 * is of another build. */
static bool select_file(const char *path, const uint8_t *id, uint32_t id_bytes)
{
    if (!last->path || strcmp(last->path, path) != 0) {
        find_opened(path);
    }
    return last->image && (id_bytes == 0 || (id_bytes == last->info.id_bytes &&
                                             memcmp(id, last->info.id, id_bytes) == 0));
}

static bool find_in_pdb(uint64_t rva, char *file, size_t file_bytes, uint32_t *line)
{
    hotfn_source_line found = HOTFN_SOURCE_LINE_INIT;

    if (!last->symbols || hotfn_symbols_find_line(last->symbols, rva, &found) != HOTFN_OK) {
        return false;
    }
    snprintf(file, file_bytes, "%s", found.file);
    *line = found.line;
    return true;
}

int32_t hotfn_tool_source_line(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                               uint64_t rva, char *file, size_t file_bytes, uint32_t *line)
{
    (void)user;
    return select_file(path, id, id_bytes) &&
           (find_in_dwarf(rva, file, file_bytes, line) || find_in_pdb(rva, file, file_bytes, line));
}

int32_t hotfn_tool_source_frame(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                                uint64_t rva, uint32_t depth, char *function, size_t function_bytes,
                                char *file, size_t file_bytes, uint32_t *line)
{
    (void)user;
    return select_file(path, id, id_bytes) &&
           find_frame_in_dwarf(rva, depth, function, function_bytes, file, file_bytes, line);
}
