/* SPDX-License-Identifier: MIT */
/* The interfaces of unknwn.idl, oaidl.idl and objidl.idl that most components have. */
#include "runtimes/com_names.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STANDARD(number)                                                                           \
    {                                                                                              \
        number, 0, 0,                                                                              \
        {                                                                                          \
            0xC0, 0, 0, 0, 0, 0, 0, 0x46                                                           \
        }                                                                                          \
    }

const hfn_guid hfn_iid_unknown = STANDARD(0), hfn_iid_class_factory = STANDARD(1);

typedef struct known_interface {
    hfn_guid iid;
    const char *name;
    uint32_t count;
    const char *methods; /* those after IUnknown's, each followed by a space */
} known_interface;

static const known_interface interfaces[] = {
    { STANDARD(0), "IUnknown", 3, "" },
    { STANDARD(1), "IClassFactory", 5, "CreateInstance LockServer " },
    { STANDARD(3), "IMarshal", 9,
      "GetUnmarshalClass GetMarshalSizeMax MarshalInterface UnmarshalInterface "
      "ReleaseMarshalData DisconnectObject " },
    { STANDARD(0x0C), "IStream", 14,
      "Read Write Seek SetSize CopyTo Commit Revert LockRegion UnlockRegion Stat Clone " },
    { STANDARD(0x10B), "IPersistFile", 9,
      "GetClassID IsDirty Load Save SaveCompleted GetCurFile " },
    { STANDARD(0x10C), "IPersist", 4, "GetClassID " },
    { STANDARD(0x20400), "IDispatch", 7, "GetTypeInfoCount GetTypeInfo GetIDsOfNames Invoke " },
    { STANDARD(0x214F9), "IShellLinkW", 21,
      "GetPath GetIDList SetIDList GetDescription SetDescription GetWorkingDirectory "
      "SetWorkingDirectory GetArguments SetArguments GetHotkey SetHotkey GetShowCmd SetShowCmd "
      "GetIconLocation SetIconLocation SetRelativePath Resolve SetPath " },
};

bool hfn_guid_equals(const hfn_guid *a, const hfn_guid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void hfn_guid_write(char out[HFN_GUID_BYTES], const hfn_guid *guid)
{
    const uint8_t *d = guid->d;

    snprintf(out, HFN_GUID_BYTES, "{%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x}",
             (unsigned)guid->a, (unsigned)guid->b, (unsigned)guid->c, d[0], d[1], d[2], d[3], d[4],
             d[5], d[6], d[7]);
    for (char *at = out; *at; at++) { /* the agent's snprintf has no %X */
        *at = *at >= 'a' && *at <= 'f' ? (char)(*at - 'a' + 'A') : *at;
    }
}

static const known_interface *find_interface(const hfn_guid *iid)
{
    for (uint32_t i = 0; i < HFN_COUNT_OF(interfaces); i++) {
        if (hfn_guid_equals(&interfaces[i].iid, iid)) {
            return &interfaces[i];
        }
    }
    return NULL;
}

uint32_t hfn_com_count_methods(const hfn_guid *iid)
{
    const known_interface *known = find_interface(iid);

    return known ? known->count : 0;
}

/* The name of a method after IUnknown's, and its length. */
static const char *find_name(const known_interface *known, uint32_t number, int *length)
{
    const char *name = known ? known->methods : "", *end = strchr(name, ' ');

    for (uint32_t at = 3; end && at < number; at++) {
        name = end + 1;
        end = strchr(name, ' ');
    }
    *length = end ? (int)(end - name) : 0;
    return name;
}

void hfn_com_write_method(char *out, uint32_t out_bytes, const hfn_guid *iid, uint32_t number)
{
    static const char *const first[] = { "QueryInterface", "AddRef", "Release" };
    const known_interface *known = find_interface(iid);
    char text[HFN_GUID_BYTES];
    int length;
    const char *name = find_name(known, number, &length);

    hfn_guid_write(text, iid);
    if (number < HFN_COUNT_OF(first)) {
        snprintf(out, out_bytes, "%s::%s", known ? known->name : text, first[number]);
    } else if (length > 0) {
        snprintf(out, out_bytes, "%s::%.*s", known->name, length, name);
    } else {
        snprintf(out, out_bytes, "%s::method %u", known ? known->name : text, (unsigned)number);
    }
}
