/* SPDX-License-Identifier: MIT */
/* The files of the web page and the OpenAPI file, embedded when the program is built. */
#ifndef HOTFN_COLLECTOR_WEB_H
#define HOTFN_COLLECTOR_WEB_H

#include "request.h"

typedef struct web_file {
    const char *path, *type;
    const void *bytes;
    size_t byte_count;
} web_file;

extern const web_file web_files[];
extern const size_t web_file_count;
extern const web_file web_openapi;

/* Reply with the file that a GET asks for; false if there is none. */
bool find_web_file(request *r);

#endif
