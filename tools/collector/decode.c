/* SPDX-License-Identifier: MIT */
/* Decode the body of a request.  A record file is encoded in the compact form first, as hotfn push
 * does, so that both ways have one meaning. */
#include "decode.h"

#include "wire_encode.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

bool parse_uuid(const char *text, uint8_t out[16])
{
    char digits[33];
    size_t used = 0;

    for (size_t i = 0; text[i]; i++) {
        if (text[i] == '-' && (i == 8 || i == 13 || i == 18 || i == 23)) {
            continue;
        }
        if (used == 32) {
            return false;
        }
        digits[used++] = text[i];
    }
    digits[used] = 0;
    return used == 32 && parse_hex(digits, out, 16);
}

bool decode_map_body(decoded_body *body, int fd, refusal *why)
{
    struct stat status;

    if (fstat(fd, &status) != 0 || status.st_size == 0) {
        return refuse_request(why, 400, "the body is empty: send a record");
    }
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return refuse_request(why, 503, "the collector has not enough memory: send again later");
    }
    body->mapped = bytes;
    body->mapped_bytes = (size_t)status.st_size;
    return true;
}

static bool refuse_record(const hotfn_error *err, refusal *why)
{
    int status = err->status == HOTFN_E_NO_MEMORY ? 503 : err->status == HOTFN_E_IO ? 507 : 422;

    return refuse_request(why, status, "the record cannot be read: %s",
                          err->text[0] ? err->text : hotfn_status_get_name(err->status));
}

static bool refuse_bytes(const char *problem, const wire_run *run, refusal *why)
{
    return problem == NULL || refuse_request(why, run->too_many ? 413 : 400, "%s", problem);
}

bool decode_record_file(decoded_body *body, const char *path, submission *out, refusal *why)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;
    bool ok = hotfn_record_open(&record, path, NULL, &err) == HOTFN_OK &&
              wire_encode_run(&body->run, record, false, &err) == HOTFN_OK &&
              wire_encode_names(&body->names, record, false, &err) == HOTFN_OK;

    hotfn_record_close(record);
    if (!ok) {
        return refuse_record(&err, why);
    }
    /* That of the compact form, so that the same run is recognised however it was sent. */
    sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, body->run.data, body->run.used);
    sha256_finish(&hash, out->checksum);
    return refuse_bytes(wire_decode_run(&out->run, body->run.data, body->run.used), &out->run,
                        why) &&
           refuse_bytes(wire_decode_names(&out->names, body->names.data, body->names.used),
                        &out->names, why);
}

bool decode_run_body(decoded_body *body, int fd, submission *out, refusal *why)
{
    char path[64];

    if (!decode_map_body(body, fd, why)) {
        return false;
    }
    if (body->mapped_bytes >= 4 && memcmp(body->mapped, "HFC", 3) == 0) {
        return refuse_bytes(wire_decode_run(&out->run, body->mapped, body->mapped_bytes), &out->run,
                            why);
    }
    /* The file has no name; its descriptor leads to it. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return decode_record_file(body, path, out, why);
}

bool decode_names_body(decoded_body *body, int fd, submission *out, refusal *why)
{
    return decode_map_body(body, fd, why) &&
           refuse_bytes(wire_decode_names(&out->names, body->mapped, body->mapped_bytes),
                        &out->names, why);
}

void decode_free(decoded_body *body, submission *sub)
{
    wire_free(&sub->run);
    wire_free(&sub->names);
    buffer_free(&body->run);
    buffer_free(&body->names);
    if (body->mapped) {
        munmap(body->mapped, body->mapped_bytes);
        body->mapped = NULL;
    }
}
