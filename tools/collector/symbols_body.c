/* SPDX-License-Identifier: MIT */
/* The upload of a build: an image, and the PDB or linker map that has its names.  The body is a
 * form (multipart/form-data, RFC 7578) with files named image, pdb and map, or one such file. */
#include "decode.h"
#include "wire_encode.h"

#include <stdlib.h>
#include <string.h>

typedef struct part {
    const char *bytes; /* view; NULL: it was not sent */
    size_t byte_count;
    char file[128]; /* its name, without folders */
} part;

typedef struct upload {
    part image, pdb, map;
} upload;

/* ---- The form. */

/* Copy the value of a quoted parameter of a header. */
static void copy_parameter(char *out, size_t out_bytes, const char *head, size_t head_bytes,
                           const char *key)
{
    const char *at = memmem(head, head_bytes, key, strlen(key));
    size_t used = 0;

    out[0] = 0;
    if (!at) {
        return;
    }
    for (at += strlen(key); at < head + head_bytes && *at != '"' && used + 1 < out_bytes; at++) {
        if (*at == '/' || *at == '\\') {
            used = 0; /* only the last component */
        } else {
            out[used++] = *at;
        }
    }
    out[used] = 0;
}

static part *find_part(upload *u, const char *name)
{
    return strcmp(name, "image") == 0 ? &u->image
           : strcmp(name, "pdb") == 0 ? &u->pdb
           : strcmp(name, "map") == 0 ? &u->map
                                      : NULL;
}

/* One part: its header, an empty line, its bytes. */
static void read_part(upload *u, const char *at, size_t byte_count)
{
    char name[32];
    const char *end = memmem(at, byte_count, "\r\n\r\n", 4);

    if (!end) {
        return;
    }
    size_t head_bytes = (size_t)(end - at);
    copy_parameter(name, sizeof name, at, head_bytes, " name=\"");
    part *p = find_part(u, name);
    if (p) {
        copy_parameter(p->file, sizeof p->file, at, head_bytes, " filename=\"");
        p->bytes = end + 4;
        p->byte_count = byte_count - head_bytes - 4;
        p->bytes = p->byte_count > 0 ? p->bytes : NULL; /* no file was chosen in the form */
    }
}

/* The first line of a form is its boundary. */
static bool read_form(upload *u, const char *bytes, size_t byte_count)
{
    char boundary[80] = "\r\n";
    const char *line = memmem(bytes, byte_count < 72 ? byte_count : 72, "\r\n", 2);
    const char *end = bytes + byte_count;

    if (!line) {
        return false;
    }
    size_t length = (size_t)(line - bytes);
    memcpy(boundary + 2, bytes, length);
    for (const char *at = line + 2; at < end;) {
        const char *next = memmem(at, (size_t)(end - at), boundary, length + 2);
        if (!next) {
            return false; /* cut off */
        }
        read_part(u, at, (size_t)(next - at));
        at = next + length + 2;
        if (end - at >= 2 && memcmp(at, "--", 2) == 0) {
            return true;
        }
        at += end - at >= 2 ? 2 : end - at;
    }
    return false;
}

/* A file that is sent alone is a PDB or an image. */
static bool read_upload(upload *u, const decoded_body *body, const char *file)
{
    const char *bytes = (const char *)body->mapped;
    static const char pdb[] = "Microsoft C/C++ ";

    if (body->mapped_bytes > 2 && memcmp(bytes, "--", 2) == 0) {
        return read_form(u, bytes, body->mapped_bytes);
    }
    bool is_pdb = body->mapped_bytes >= sizeof pdb && memcmp(bytes, pdb, sizeof pdb - 1) == 0;
    part *p = is_pdb ? &u->pdb : &u->image;
    p->bytes = bytes;
    p->byte_count = body->mapped_bytes;
    copy_bounded(p->file, sizeof p->file, file);
    return true;
}

/* ---- The names. */

static hotfn_status load_symbols(hotfn_symbols **out, const upload *u, const hotfn_image *image,
                                 hotfn_error *err)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;

    options.flags = HOTFN_SYMBOLS_NO_SEPARATE; /* not the debug files of this machine */
    if (u->pdb.bytes) {
        return hotfn_symbols_pdb_from_bytes(out, u->pdb.bytes, u->pdb.byte_count, "the PDB", image,
                                            &options, NULL, err);
    }
    if (u->map.bytes) {
        return hotfn_symbols_map_from_bytes(out, u->map.bytes, u->map.byte_count, "the map", image,
                                            &options, NULL, err);
    }
    return hotfn_symbols_load(out, image, &options, NULL, err);
}

/* Without an image, the functions are the symbols of the PDB, and its id is that of the image. */
static hotfn_status encode_symbols(byte_buffer *out, const upload *u, const hotfn_image *image,
                                   const hotfn_symbols *symbols, hotfn_error *err)
{
    if (image) {
        hotfn_functions *functions = NULL;
        hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
        hotfn_status status = hotfn_functions_build(&functions, image, symbols, NULL, err);
        if (status == HOTFN_OK) {
            hotfn_image_get_info(image, &info);
            wire_encode_functions(out, &info, u->image.file, functions, NULL);
        }
        hotfn_functions_destroy(functions);
        return status;
    }
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;
    hotfn_symbols_get_info(symbols, &info);
    char file[128];
    copy_bounded(file, sizeof file, u->pdb.file);
    char *dot = strrchr(file, '.');
    if (dot) {
        *dot = 0;
    }
    wire_encode_symbols(out, &info, file, symbols);
    return HOTFN_OK;
}

static bool refuse_build(const hotfn_error *err, refusal *why)
{
    return refuse_request(why, err->status == HOTFN_E_NO_MEMORY ? 503 : 422,
                          "the build cannot be read: %s",
                          err->text[0] ? err->text : hotfn_status_get_name(err->status));
}

static bool encode_upload(byte_buffer *out, const upload *u, refusal *why)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_status status = u->image.bytes
                              ? hotfn_image_open_bytes(&image, u->image.bytes, u->image.byte_count,
                                                       "the image", NULL, &err)
                              : HOTFN_OK;

    status = status ? status : load_symbols(&symbols, u, image, &err);
    status = status ? status : encode_symbols(out, u, image, symbols, &err);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    if (status != HOTFN_OK) {
        return refuse_build(&err, why);
    }
    return !out->failed ||
           refuse_request(why, 503, "the collector has not enough memory: send again later");
}

bool decode_symbols_body(decoded_body *body, int fd, const char *file, submission *out,
                         refusal *why)
{
    upload u = { 0 };

    if (!decode_map_body(body, fd, why)) {
        return false;
    }
    if (!read_upload(&u, body, file)) {
        return refuse_request(why, 400, "the form is damaged or cut off: send it again");
    }
    if (!u.image.bytes && !u.pdb.bytes) {
        return refuse_request(
            why, 422,
            "the form has neither a file \"image\" nor a file \"pdb\": a map alone "
            "does not identify its build, so send the image with it");
    }
    if (!encode_upload(&body->names, &u, why)) {
        return false;
    }
    const char *problem = wire_decode_names(&out->names, body->names.data, body->names.used);
    return problem == NULL || refuse_request(why, 422, "the build cannot be stored: %s", problem);
}
