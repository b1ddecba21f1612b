/* SPDX-License-Identifier: MIT */
/* One run as it is sent to the collector, either as a record file (.hfr) or in the compact format:
 *
 *   "HFC1"  flags  uuid[16]  start_ns  end_ns  state  hooked  unhooked  module_count
 *   each module:   flags  id_kind  id_bytes  id[]  file_bytes  file[]  row_count  rows
 *   each row:      rva (minus that of the row before)  calls  [total_ns  self_ns  max_ns]
 *   caller_count   each: caller (0: code that is not timed, else row + 1)  callee  calls
 *
 * The names of a build's functions are sent once, as "HFN1", module_count and modules as above,
 * where each row is: rva byte_count name_bytes name[].  Numbers are unsigned LEB128. */
#ifndef HOTFN_COLLECTOR_WIRE_H
#define HOTFN_COLLECTOR_WIRE_H

#include "buffer.h"

#define WIRE_TIMED 1u /* flags of a run */
#define WIRE_MAIN 1u  /* flags of a module */
#define WIRE_NO_ROW UINT32_MAX

enum { WIRE_MAX_MODULES = 4096, WIRE_MAX_ROWS = 4000000, WIRE_MAX_NAME = 16384 };

typedef struct wire_row {
    uint64_t rva, calls, total_ns, self_ns, max_ns;
} wire_row;

typedef struct wire_name {
    uint64_t rva, byte_count;
    const char *text; /* view, not terminated */
    uint32_t text_bytes;
} wire_name;

typedef struct wire_module {
    uint32_t flags, first_row, row_count;
    char image[80]; /* "kind-hex of the id"; "" if the module has none */
    char file[128]; /* last component of its path */
} wire_module;

typedef struct wire_caller {
    uint32_t caller, callee; /* rows; caller may be WIRE_NO_ROW */
    uint64_t calls;
} wire_caller;

typedef struct wire_run {
    uint32_t flags, state, hooked, unhooked;
    uint8_t uuid[16];
    uint64_t start_ns, end_ns;
    wire_module *modules;
    wire_row *rows;   /* of a run */
    wire_name *names; /* of a build, or NULL */
    wire_caller *callers;
    uint32_t module_count, row_count, name_count, caller_count;
    bool too_many; /* it was refused for the number of its modules or functions */
} wire_run;

/* Decode the compact format; names are views into bytes.  Returns NULL on success, otherwise one
 * sentence that describes the error.  wire_free must follow in both cases. */
const char *wire_decode_run(wire_run *out, const uint8_t *bytes, size_t byte_count);
const char *wire_decode_names(wire_run *out, const uint8_t *bytes, size_t byte_count);
void wire_free(wire_run *run);

/* The module of the program itself, or NULL. */
const wire_module *wire_find_main(const wire_run *run);
void wire_format_image(char out[80], uint32_t id_kind, const uint8_t *id, uint32_t id_bytes);

#endif
