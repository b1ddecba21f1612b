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

extern const hfn_guid hfn_iid_unknown, hfn_iid_class_factory, hfn_iid_dispatch;

/* The GUIDs of the standard interfaces differ in their first word. */
#define HFN_STANDARD_GUID(number)                                                                  \
    {                                                                                              \
        number, 0, 0,                                                                              \
        {                                                                                          \
            0xC0, 0, 0, 0, 0, 0, 0, 0x46                                                           \
        }                                                                                          \
    }

typedef enum hfn_com_result {
    HFN_COM_UNKNOWN_RESULT,
    HFN_COM_HRESULT,
    HFN_COM_OTHER_RESULT,
} hfn_com_result;

enum {
    HFN_COM_METHOD_BYTES = 56,
    HFN_COM_MAX_METHODS = 128,
    HFN_COM_UNKNOWN_METHODS = 3,
    HFN_COM_MAX_OUTPUTS = 2
};

/* An interface that a method returns by an argument, which points to the place for it. */
typedef struct hfn_com_output {
    uint32_t argument; /* 0 is the object itself, and also: there is none */
    hfn_guid iid;
} hfn_com_output;

typedef struct hfn_com_method {
    char name[HFN_COM_METHOD_BYTES]; /* "": unknown */
    uint8_t arguments;               /* at most, with the object; 0: unknown */
    hfn_com_result result;
    hfn_com_output outputs[HFN_COM_MAX_OUTPUTS];
} hfn_com_method;

/* What is known of an interface. */
typedef struct hfn_com_interface {
    char name[128];
    uint32_t count; /* of methods; 0: unknown */
    hfn_com_method methods[HFN_COM_MAX_METHODS];
} hfn_com_interface;

/* The interface with the IID, of a table in the module [base, end): from the list of standard
 * interfaces, the user's list, the module's type library, or the registry. */
void hfn_com_describe(hfn_com_interface *out, const hfn_guid *iid, uint64_t base, uint64_t end);
/* Add name and methods of a standard interface, unless they are known; false: it is none. */
bool hfn_com_add_standard(hfn_com_interface *out, const hfn_guid *iid);
/* Write "Interface::method" of the method with this number. */
void hfn_com_write_method(char *out, uint32_t out_bytes, const hfn_com_interface *in,
                          uint32_t number);

#endif
