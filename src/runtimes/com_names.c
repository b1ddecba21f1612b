/* SPDX-License-Identifier: MIT */
/* Interfaces that most components have (unknwn.idl, oaidl.idl, objidl.idl), and others without a
 * type library. */
#include "runtimes/com_names.h"

#include "arch/method_pool.h"
#include "base/status.h"
#include "runtimes/com_list.h"
#include "runtimes/com_registry.h"
#include "runtimes/com_typelib.h"

#include <stdio.h>
#include <string.h>

#define STANDARD(number) HFN_STANDARD_GUID(number)

const hfn_guid hfn_iid_unknown = STANDARD(0), hfn_iid_class_factory = STANDARD(1),
               hfn_iid_dispatch = STANDARD(0x20400);

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
    { { 0xDC12A687, 0x737F, 0x11CF, { 0x88, 0x4D, 0, 0xAA, 0, 0x4B, 0x2E, 0x24 } },
      "IWbemLocator",
      4,
      "ConnectServer " },
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

/* Of the standard interfaces, each method has at most ten arguments, and returns an HRESULT. */
static void add_method(hfn_com_method *out, const char *name, size_t length)
{
    *out = (hfn_com_method){ .arguments = HFN_POOL_MAX_ARGUMENTS, .result = HFN_COM_HRESULT };
    snprintf(out->name, sizeof out->name, "%.*s", (int)length, name);
}

bool hfn_com_add_standard(hfn_com_interface *out, const hfn_guid *iid)
{
    const known_interface *known = find_interface(iid);
    uint32_t number = HFN_COM_UNKNOWN_METHODS;

    if (!known) {
        return false;
    }
    if (!out->name[0]) {
        snprintf(out->name, sizeof out->name, "%s", known->name);
    }
    for (const char *name = known->methods, *end; (end = strchr(name, ' ')); name = end + 1) {
        add_method(&out->methods[number++], name, (size_t)(end - name));
    }
    out->count = known->count;
    return true;
}

void hfn_com_describe(hfn_com_interface *out, const hfn_guid *iid, uint64_t base, uint64_t end)
{
    hfn_span module = { (const uint8_t *)(uintptr_t)base, end - base, false };

    memset(out, 0, sizeof *out);
    if (!hfn_com_add_standard(out, iid) && !hfn_com_find_listed(out, iid) &&
        !hfn_typelib_find(out, hfn_typelib_in_module(module, true, 0), iid)) {
        hfn_com_find_registered(out, iid);
    }
    if (!out->name[0]) {
        hfn_guid_write(out->name, iid);
    }
    out->methods[0] = (hfn_com_method){ "QueryInterface", 3, HFN_COM_HRESULT, { { 0 } } };
    out->methods[1] = (hfn_com_method){ "AddRef", 1, HFN_COM_OTHER_RESULT, { { 0 } } };
    out->methods[2] = (hfn_com_method){ "Release", 1, HFN_COM_OTHER_RESULT, { { 0 } } };
}

void hfn_com_write_method(char *out, uint32_t out_bytes, const hfn_com_interface *in,
                          uint32_t number)
{
    const hfn_com_method *m = &in->methods[number];

    if (m->name[0]) {
        snprintf(out, out_bytes, "%s::%s", in->name, m->name);
    } else {
        snprintf(out, out_bytes, "%s::method %u", in->name, (unsigned)number);
    }
}
