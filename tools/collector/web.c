/* SPDX-License-Identifier: MIT */
/* Find an embedded file. */
#include "web.h"

#include <string.h>

bool find_web_file(request *r)
{
    if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) {
        return false;
    }
    for (size_t i = 0; i < web_file_count; i++) {
        if (strcmp(web_files[i].path, r->path) == 0) {
            r->status = 200;
            r->type = web_files[i].type;
            r->static_reply = web_files[i].bytes;
            r->static_bytes = web_files[i].byte_count;
            return true;
        }
    }
    return false;
}
