/* SPDX-License-Identifier: MIT */
/* Common parts of the commands that list the contents of a file. */
#include "listing.h"

#include "commands.h"
#include "log.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void log_to_stderr(void *user, int32_t level, const char *text)
{
    (void)user;
    if (log_is_shown(level, HOTFN_LOG_WARNING)) {
        fprintf(stderr, "hotfn: %s\n", text);
    }
}

static void init_listing(listing *l)
{
    memset(l, 0, sizeof *l);
    l->env = hotfn_tool_env();
    l->env.log_fn = log_to_stderr;
    l->info.size = (uint32_t)sizeof l->info;
}

static hotfn_status load_symbols(listing *l, const symbol_sources *sources, hotfn_error *err)
{
    bool is_pe = l->info.format == HOTFN_FORMAT_PE;
    hotfn_symbols_options options = symbol_sources_options(sources, is_pe);

    l->format = is_pe ? "pe" : "elf";
    if (sources->pdb && sources->map) {
        fprintf(stderr, "hotfn: %s is not read: --pdb takes precedence over --map\n", sources->map);
    }
    if (!sources->pdb && sources->map) {
        return hotfn_symbols_load_map(&l->symbols, sources->map, l->image, &options, &l->env, err);
    }
    if (sources->pdb) {
        return hotfn_symbols_load_pdb(&l->symbols, sources->pdb, l->image, &options, &l->env, err);
    }
    return hotfn_symbols_load(&l->symbols, l->image, &options, &l->env, err);
}

bool listing_open(listing *l, const char *path, const symbol_sources *sources, hotfn_error *err)
{
    init_listing(l);
    if (hotfn_image_open(&l->image, path, &l->env, err) == HOTFN_OK &&
        hotfn_image_get_info(l->image, &l->info) == HOTFN_OK &&
        load_symbols(l, sources, err) == HOTFN_OK) {
        return true;
    }
    listing_close(l);
    return false;
}

enum { KIND_IMAGE, KIND_PDB, KIND_MAP };

/* Classify a file by its first bytes.  A pipe cannot be read twice, so it counts as an image.  PDBs
 * of unsupported versions count as PDBs, so that their loader reports the reason.  Any other text
 * is a map. */
static int classify_file(const char *path)
{
    static const char *const magics[] = { "Microsoft C/C++ ", "Microsoft MSFZ", "BSJB" };
    char head[16] = "";
    struct stat facts;
    FILE *file = stat(path, &facts) == 0 && S_ISREG(facts.st_mode) ? fopen(path, "rb") : NULL;
    size_t size = file ? fread(head, 1, sizeof head, file) : 0;

    if (file) {
        fclose(file);
    }
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        if (size == sizeof head && memcmp(head, magics[i], strlen(magics[i])) == 0) {
            return KIND_PDB;
        }
    }
    if (size < 4 || memcmp(head, "\177ELF", 4) == 0 || memcmp(head, "MZ", 2) == 0) {
        return KIND_IMAGE;
    }
    for (size_t i = 0; i < size; i++) { /* UTF-16 is text too; its loader reports what to do */
        if ((unsigned char)head[i] < ' ' && !strchr("\t\r\n", head[i]) &&
            memcmp(head, "\xff\xfe", 2)) {
            return KIND_IMAGE;
        }
    }
    return KIND_MAP;
}

/* Fill in the facts about the image from its symbol file. */
static void copy_symbols_info(listing *l)
{
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;

    hotfn_symbols_get_info(l->symbols, &info);
    if (info.format) {
        l->format = info.format;
    }
    l->info.path = info.path;
    l->info.machine = info.machine;
    l->info.id_kind = info.id_kind;
    l->info.id_bytes = info.id_bytes;
    memcpy(l->info.id, info.id, sizeof l->info.id);
}

bool listing_open_symbols(listing *l, const char *path, const symbol_sources *sources,
                          hotfn_error *err)
{
    hotfn_symbols_options options = symbol_sources_options(sources, false);
    int kind = classify_file(path);
    hotfn_status status;

    if (kind == KIND_IMAGE) {
        return listing_open(l, path, sources, err);
    }
    init_listing(l);
    l->format = "pdb";
    status = kind == KIND_PDB
                 ? hotfn_symbols_load_pdb(&l->symbols, path, NULL, &options, &l->env, err)
                 : hotfn_symbols_load_map(&l->symbols, path, NULL, &options, &l->env, err);
    if (status != HOTFN_OK) {
        return false;
    }
    copy_symbols_info(l);
    return true;
}

void listing_close(listing *l)
{
    hotfn_symbols_destroy(l->symbols);
    hotfn_image_close(l->image);
    memset(l, 0, sizeof *l);
}

static const char *id_kind_name(uint32_t kind)
{
    static const char *const names[] = { "none", "build-id", "pdb", "pe", "code-hash" };

    return kind < sizeof names / sizeof names[0] ? names[kind] : "none";
}

void listing_write_head(hotfn_json_writer *out, const listing *l, const char *schema)
{
    char id[2 * sizeof l->info.id + 1] = "";

    json_write_text(out, "schema", schema);
    json_write_text(out, "version", hotfn_get_version());
    json_write_text(out, "image", l->info.path);
    json_write_text(out, "format", l->format);
    if (l->image || l->info.machine != HOTFN_MACHINE_OTHER) {
        json_write_text(out, "machine", hotfn_machine_get_name(l->info.machine));
    }
    if (l->info.id_bytes == 0) {
        return; /* a linker map has no id */
    }
    for (uint32_t i = 0; i < l->info.id_bytes && i < sizeof l->info.id; i++) {
        snprintf(id + 2 * (size_t)i, 3, "%02x", l->info.id[i]);
    }
    json_write_text(out, "image_id", id);
    json_write_text(out, "id_kind", id_kind_name(l->info.id_kind));
}

const char *listing_display(const listing *l, const char *name, char *text, size_t text_bytes)
{
    const char *version = name[0] == '?' ? NULL : strchr(name, '@'); /* '?': Microsoft's C++ */
    size_t plain = version && version > name ? (size_t)(version - name) : strlen(name), length;
    char copy[16385];

    if (!l->env.demangle_fn || plain >= sizeof copy || (name[0] != '_' && name[0] != '?')) {
        return name;
    }
    memcpy(copy, name, plain);
    copy[plain] = 0;
    length = l->env.demangle_fn(l->env.demangle_user, copy, text, text_bytes);
    if (length == 0 || length + strlen(name + plain) >= text_bytes) {
        return name;
    }
    memcpy(text + length, name + plain, strlen(name + plain) + 1);
    return text;
}

const char *listing_grouped(uint64_t value, char out[32])
{
    char *at = out + 31;

    *at = 0;
    for (int digits = 0; value || digits == 0; digits++, value /= 10) {
        if (digits && digits % 3 == 0) {
            *--at = ',';
        }
        *--at = (char)('0' + value % 10);
    }
    return at;
}
