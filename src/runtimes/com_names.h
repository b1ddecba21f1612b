/* SPDX-License-Identifier: MIT */
/* Names of COM interfaces and their methods. */
#ifndef HFN_RUNTIMES_COM_NAMES_H
#define HFN_RUNTIMES_COM_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* A CLSID or an IID. */
typedef struct hfn_guid {
    uint32_t a;
    uint16_t b, c;
    uint8_t d[8];
} hfn_guid;

enum { HFN_GUID_BYTES = 40 }; /* of its text and NUL */

bool hfn_guid_equals(const hfn_guid *a, const hfn_guid *b);
/* "{00000000-0000-0000-C000-000000000046}" */
void hfn_guid_write(char out[HFN_GUID_BYTES], const hfn_guid *guid);

extern const hfn_guid hfn_iid_unknown, hfn_iid_class_factory;

/* The number of methods of an interface; 0: unknown. */
uint32_t hfn_com_count_methods(const hfn_guid *iid);
/* Write "Interface::method" of the method with this number. */
void hfn_com_write_method(char *out, uint32_t out_bytes, const hfn_guid *iid, uint32_t number);

#endif
