// SPDX-License-Identifier: MIT
// A COM server (-DSERVER: a DLL) and its client, with known calls.
//
//   client register PATH     make PATH the in-process server of the classes
//   client work              create, call, query, release, fail and leak; prints the results
//   client system            use components of the system
//   client many N            create and release N objects
#include <objbase.h>
#include <shlobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static const GUID class_sum = { 0x5d1b6f10, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID class_missing = { 0x5d1b6f11, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID class_refusing = { 0x5d1b6f12, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID iid_sum = { 0x5d1b6f20, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID iid_scale = { 0x5d1b6f21, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };

struct ISum : IUnknown {
    virtual HRESULT STDMETHODCALLTYPE Add(long value) = 0;
    virtual HRESULT STDMETHODCALLTYPE Get(long *value) = 0;
};

struct IScale : IUnknown {
    virtual double STDMETHODCALLTYPE Scale(double a, float b, long c, double d, long e,
                                           float f) = 0;
};

#ifdef SERVER
struct Sum final : ISum, IScale {
    LONG references = 1;
    long total = 0;

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void **out) override
    {
        *out = iid == IID_IUnknown || iid == iid_sum ? (void *)(ISum *)this
               : iid == iid_scale                    ? (void *)(IScale *)this
                                                     : nullptr;
        if (!*out) {
            return E_NOINTERFACE;
        }
        AddRef();
        return S_OK;
    }
    ULONG STDMETHODCALLTYPE AddRef() override
    {
        return (ULONG)InterlockedIncrement(&references);
    }
    ULONG STDMETHODCALLTYPE Release() override
    {
        LONG left = InterlockedDecrement(&references);
        if (left == 0) {
            delete this;
        }
        return (ULONG)left;
    }
    HRESULT STDMETHODCALLTYPE Add(long value) override
    {
        total += value;
        return S_OK;
    }
    HRESULT STDMETHODCALLTYPE Get(long *value) override
    {
        *value = total;
        return S_OK;
    }
    double STDMETHODCALLTYPE Scale(double a, float b, long c, double d, long e, float f) override
    {
        return total * a + b * c - d * e + f;
    }
};

struct Factory : IClassFactory {
    bool refuses;
    explicit Factory(bool refuses) : refuses(refuses)
    {
    }
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void **out) override
    {
        *out = iid == IID_IUnknown || iid == IID_IClassFactory ? this : nullptr;
        return *out ? S_OK : E_NOINTERFACE;
    }
    ULONG STDMETHODCALLTYPE AddRef() override
    {
        return 2;
    }
    ULONG STDMETHODCALLTYPE Release() override
    {
        return 1;
    }
    HRESULT STDMETHODCALLTYPE CreateInstance(IUnknown *outer, REFIID iid, void **out) override
    {
        *out = nullptr;
        if (refuses || outer) {
            return refuses ? E_OUTOFMEMORY : CLASS_E_NOAGGREGATION;
        }
        Sum *sum = new Sum;
        HRESULT result = sum->QueryInterface(iid, out);
        sum->Release();
        return result;
    }
    HRESULT STDMETHODCALLTYPE LockServer(BOOL) override
    {
        return S_OK;
    }
};

static Factory factory(false), refusing(true);

extern "C" __declspec(dllexport) HRESULT WINAPI
    DllGetClassObject(REFCLSID id, REFIID iid, void **out)
{
    *out = nullptr;
    if (id == class_sum || id == class_refusing) {
        return (id == class_sum ? factory : refusing).QueryInterface(iid, out);
    }
    return CLASS_E_CLASSNOTAVAILABLE;
}

extern "C" __declspec(dllexport) HRESULT WINAPI DllCanUnloadNow()
{
    return S_FALSE;
}
#else
static void set_server(const GUID &id, const char *path)
{
    char key[200];
    const BYTE *d = id.Data4;
    HKEY made;
    snprintf(
        key, sizeof key,
        "Software\\Classes\\CLSID\\{%08lX-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}\\InprocServer32",
        (unsigned long)id.Data1, id.Data2, id.Data3, d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7]);
    RegCreateKeyExA(HKEY_LOCAL_MACHINE, key, 0, nullptr, 0, KEY_WRITE, nullptr, &made, nullptr);
    RegSetValueExA(made, nullptr, 0, REG_SZ, (const BYTE *)path, (DWORD)strlen(path) + 1);
    RegSetValueExA(made, "ThreadingModel", 0, REG_SZ, (const BYTE *)"Both", 5);
    RegCloseKey(made);
}

static ISum *create()
{
    void *made = nullptr;
    HRESULT result = CoCreateInstance(class_sum, nullptr, CLSCTX_INPROC_SERVER, iid_sum, &made);
    if (FAILED(result)) {
        printf("no object: %lx\n", (unsigned long)result);
        exit(2);
    }
    return (ISum *)made;
}

static void call(ISum *sum)
{
    IScale *scale = nullptr;
    IUnknown *one = nullptr, *other = nullptr;
    void *none = nullptr;
    long total = 0;
    for (long i = 0; i < 100; i++) {
        sum->Add(i);
    }
    sum->Get(&total);
    sum->QueryInterface(iid_scale, (void **)&scale);
    printf("%ld %.3f\n", total, scale->Scale(1.5, 2.5f, 3, 4.25, 5, 6.5f));
    sum->QueryInterface(IID_IUnknown, (void **)&one);
    scale->QueryInterface(IID_IUnknown, (void **)&other);
    printf("identity %d\n", one == other);
    printf("no interface %d\n", FAILED(sum->QueryInterface(class_sum, &none)) && !none);
    one->Release();
    other->Release();
    scale->Release();
}

static void work()
{
    void *none = nullptr;
    IClassFactory *maker = nullptr;
    ISum *made = nullptr;
    MULTI_QI queries[2] = { { &iid_sum, nullptr, 0 }, { &iid_scale, nullptr, 0 } };
    for (int i = 0; i < 10; i++) {
        ISum *sum = create();
        call(sum);
        printf("left %lu\n",
               (unsigned long)(i < 7 ? sum->Release() : 9)); // three are never released
    }
    CoGetClassObject(class_sum, CLSCTX_INPROC_SERVER, nullptr, IID_IClassFactory, (void **)&maker);
    for (int i = 0; i < 5; i++) {
        maker->CreateInstance(nullptr, iid_sum, (void **)&made);
        made->Release();
    }
    printf("refused %lx\n", (unsigned long)maker->CreateInstance(maker, iid_sum, &none));
    CoCreateInstanceEx(class_sum, nullptr, CLSCTX_INPROC_SERVER, nullptr, 2, queries);
    queries[0].pItf->Release();
    printf("last %lu\n", (unsigned long)queries[1].pItf->Release());
    for (int i = 0; i < 4; i++) {
        printf("missing %lx\n", (unsigned long)CoCreateInstance(
                                    class_missing, nullptr, CLSCTX_INPROC_SERVER, iid_sum, &none));
    }
    printf("refusing %lx\n", (unsigned long)CoCreateInstance(class_refusing, nullptr,
                                                             CLSCTX_INPROC_SERVER, iid_sum, &none));
}

// Components of wine: a shell link and an XML document.
static void use_system()
{
    static const GUID link = { 0x21401, 0, 0, { 0xC0, 0, 0, 0, 0, 0, 0, 0x46 } };
    static const GUID iid_link = { 0x214F9, 0, 0, { 0xC0, 0, 0, 0, 0, 0, 0, 0x46 } };
    static const GUID document = {
        0xf5078f32, 0xc551, 0x11d3, { 0x89, 0xb9, 0, 0, 0xf8, 0x1f, 0xe2, 0x21 }
    };
    IShellLinkW *shell = nullptr;
    IPersistFile *file = nullptr;
    IDispatch *xml = nullptr;
    WCHAR text[MAX_PATH] = { 0 };
    printf("link %lx\n", (unsigned long)CoCreateInstance(link, nullptr, CLSCTX_INPROC_SERVER,
                                                         iid_link, (void **)&shell));
    for (int i = 0; shell && i < 20; i++) {
        swprintf(text, MAX_PATH, L"C:\\folder\\file%d.txt", i);
        shell->SetPath(text);
        shell->GetPath(text, MAX_PATH, nullptr, 0);
        printf("%ls\n", text);
    }
    if (shell && SUCCEEDED(shell->QueryInterface(IID_IPersistFile, (void **)&file))) {
        printf("dirty %lx\n", (unsigned long)file->IsDirty());
        file->Release();
        printf("link left %lu\n", (unsigned long)shell->Release());
    }
    printf("xml %lx\n", (unsigned long)CoCreateInstance(document, nullptr, CLSCTX_INPROC_SERVER,
                                                        IID_IDispatch, (void **)&xml));
    if (xml) {
        UINT count = 0;
        DISPID id = 0;
        LPOLESTR name = (LPOLESTR)L"loadXML";
        VARIANT argument, result;
        DISPPARAMS parameters = { &argument, nullptr, 1, 0 };
        VariantInit(&argument);
        VariantInit(&result);
        argument.vt = VT_BSTR;
        argument.bstrVal = SysAllocString(L"<a><b c='1'>text</b><b/></a>");
        xml->GetTypeInfoCount(&count);
        printf("types %u names %lx\n", count,
               (unsigned long)xml->GetIDsOfNames(IID_NULL, &name, 1, 0, &id));
        printf("load %lx %d\n",
               (unsigned long)xml->Invoke(id, IID_NULL, 0, DISPATCH_METHOD, &parameters, &result,
                                          nullptr, nullptr),
               result.boolVal);
        name = (LPOLESTR)L"xml";
        parameters.cArgs = 0;
        xml->GetIDsOfNames(IID_NULL, &name, 1, 0, &id);
        xml->Invoke(id, IID_NULL, 0, DISPATCH_PROPERTYGET, &parameters, &result, nullptr, nullptr);
        printf("%ls\nxml left %lu\n", result.vt == VT_BSTR ? result.bstrVal : L"no text",
               (unsigned long)xml->Release());
    }
}

int main(int argc, char **argv)
{
    CoInitializeEx(nullptr, COINIT_MULTITHREADED);
    if (argc > 2 && strcmp(argv[1], "register") == 0) {
        set_server(class_sum, argv[2]);
        set_server(class_refusing, argv[2]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "many") == 0) {
        for (long i = atol(argv[2]); i > 0; i--) {
            create()->Release();
        }
        printf("done\n");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "system") == 0) {
        use_system();
    } else {
        work();
    }
    return 0;
}
#endif
