/* SPDX-License-Identifier: MIT */
/* The bytes of a scan: header, plan, functions, names.  Written by make.c and read by scan.c,
 * from memory or from a cache file, so the bytes are untrusted. */
#ifndef HFN_SCAN_BLOCK_H
#define HFN_SCAN_BLOCK_H

#include "base/span.h"

#include <hotfn/lowlevel/scan.h>

#define HFN_SCAN_MAGIC 0x314e4143534e4648ull /* "HFNSCAN1" */
#define HFN_SCAN_VERSION 13u
#define HFN_SCAN_HEADER_BYTES 152u
#define HFN_SCAN_FUNCTION_BYTES 40u

/* Bits of hfn_scan_header.missing: why a name may be missing. */
#define HFN_SCAN_LACKS_UNPACKED 1u   /* compressed symbols could not be decompressed this time */
#define HFN_SCAN_LACKS_DEBUG_FILE 2u /* no separate debug file or PDB was found                */

typedef struct hfn_scan_header {
    uint64_t magic;
    uint32_t version, machine, image_flags, function_count;
    uint32_t id_kind, id_bytes;
    uint8_t id[32];
    uint64_t plan_offset, plan_bytes, functions_offset, names_offset, names_bytes, total_bytes;
    uint64_t code_bytes, known_bytes; /* hotfn_functions_get_coverage */
    uint64_t stamp;                   /* hash of the library version, file size and time */
    uint32_t hookable_count, refused_count, fragment_count;
    uint32_t missing; /* HFN_SCAN_LACKS_* */
} hfn_scan_header;

typedef struct hfn_scan_function {
    uint64_t rva, byte_count;
    uint32_t name_offset, name_count;
    uint8_t state, strategy;
    uint16_t reason;
    uint32_t reason_offset, flags, reserved;
} hfn_scan_function;

/* Scans the file and returns its block (owned: hfn_free_memory with *bytes). */
hotfn_status hfn_scan_make(uint8_t **out, uint64_t *bytes, const char *path,
                           const hotfn_scan_options *options, uint64_t stamp, const hotfn_env *env,
                           hotfn_error *err);
/* Parses and validates an untrusted block; false if any part is invalid. */
bool hfn_scan_check(hfn_span block, hfn_scan_header *header);
bool hfn_scan_function_at(hfn_span block, const hfn_scan_header *header, uint32_t index,
                          hfn_scan_function *out);

#endif
