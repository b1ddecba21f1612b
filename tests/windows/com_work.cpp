// SPDX-License-Identifier: MIT
// A COM server (-DSERVER: a DLL) and its client, with known calls.
//
//   client register PATH LIBRARY
//                            make PATH the in-process server of the classes, and a type library
//   client work              create, call, query, release, fail and leak; prints the results
//   client make               get objects of another class from methods
//   client harsh             exceptions, copied tables, a proxy, an object that ends in a call
//   client system            use components of the system
//   client many N            create and release N objects
#include <msxml.h>
#include <new>
#include <objbase.h>
#include <shlobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wbemidl.h>
#include <windows.h>

#include <psapi.h>

static const GUID class_sum = { 0x5d1b6f10, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID class_missing = { 0x5d1b6f11, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID class_refusing = { 0x5d1b6f12, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID class_paged = { 0x5d1b6f13, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID class_single = { 0x5d1b6f14, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID iid_sum = { 0x5d1b6f20, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID iid_scale = { 0x5d1b6f21, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };

static const GUID iid_maker = { 0x5d1b6f22, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const GUID iid_part = { 0x5d1b6f23, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };

struct IPart : IUnknown {
    virtual HRESULT STDMETHODCALLTYPE Count(long *value) = 0;
};

struct IMaker : IUnknown {
    virtual HRESULT STDMETHODCALLTYPE Make(long value, IPart **part) = 0;
};

struct ISum : IUnknown {
    virtual HRESULT STDMETHODCALLTYPE Add(long value) = 0;
    virtual HRESULT STDMETHODCALLTYPE Get(long *value) = 0;
};

struct IScale : IUnknown {
    virtual double STDMETHODCALLTYPE Scale(double a, float b, long c, double d, long e,
                                           float f) = 0;
};

#ifdef SERVER
struct Part final : IPart {
    LONG references = 1;
    long value;

    explicit Part(long value) : value(value)
    {
    }
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void **out) override
    {
        *out = nullptr;
        return E_NOINTERFACE;
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
    HRESULT STDMETHODCALLTYPE Count(long *out) override
    {
        *out = value;
        return S_OK;
    }
};

struct Sum final : ISum, IScale, IMaker {
    LONG references = 1;
    long total = 0;
    bool is_paged = false; // alone on its page, which is unmapped with it
    IUnknown *marshaler = nullptr;

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void **out) override
    {
        *out = iid == IID_IUnknown || iid == iid_sum ? (void *)(ISum *)this
               : iid == iid_scale                    ? (void *)(IScale *)this
               : iid == iid_maker                    ? (void *)(IMaker *)this
                                                     : nullptr;
        if (iid == IID_IMarshal && is_paged) {
            return marshaler->QueryInterface(iid, out);
        }
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
        if (left == 0 && is_paged) {
            marshaler->Release();
            VirtualFree(this, 0, MEM_RELEASE);
        } else if (left == 0) {
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
        if (!value) {
            return E_POINTER;
        }
        *value = total;
        return S_OK;
    }
    double STDMETHODCALLTYPE Scale(double a, float b, long c, double d, long e, float f) override
    {
        return total * a + b * c - d * e + f;
    }
    HRESULT STDMETHODCALLTYPE Make(long value, IPart **part) override
    {
        if (!part) {
            return E_POINTER;
        }
        if (value == -7) {
            throw(int) value;
        }
        *part = value == -1 ? nullptr : new Part(value);
        if (value == -8) {
            IUnknown *volatile self = (ISum *)this;
            self->Release();
            self->Release();
            return S_OK;
        }
        return value == -1 ? S_FALSE : S_OK;
    }
};

struct Factory : IClassFactory {
    bool refuses, is_paged;
    explicit Factory(bool refuses, bool is_paged = false) : refuses(refuses), is_paged(is_paged)
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
        Sum *sum = is_paged ? new (VirtualAlloc(nullptr, sizeof(Sum), MEM_COMMIT | MEM_RESERVE,
                                                PAGE_READWRITE)) Sum
                            : new Sum;
        if (is_paged) {
            sum->is_paged = true;
            CoCreateFreeThreadedMarshaler((ISum *)sum, &sum->marshaler);
        }
        HRESULT result = sum->QueryInterface(iid, out);
        sum->Release();
        return result;
    }
    HRESULT STDMETHODCALLTYPE LockServer(BOOL) override
    {
        return S_OK;
    }
};

static Factory factory(false), refusing(true), paged(false, true);

extern "C" __declspec(dllexport) HRESULT WINAPI
    DllGetClassObject(REFCLSID id, REFIID iid, void **out)
{
    *out = nullptr;
    if (id == class_sum || id == class_refusing || id == class_paged || id == class_single) {
        Factory *chosen = id == class_refusing ? &refusing : id == class_paged ? &paged : &factory;
        return chosen->QueryInterface(iid, out);
    }
    return CLASS_E_CLASSNOTAVAILABLE;
}

extern "C" __declspec(dllexport) HRESULT WINAPI DllCanUnloadNow()
{
    return S_FALSE;
}
#else
static void write_text(char *out, const GUID &id)
{
    const BYTE *d = id.Data4;
    sprintf(out, "{%08lX-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}", (unsigned long)id.Data1,
            id.Data2, id.Data3, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
}

// Set a value of a class's key; key: "CLSID\\%s\\...", where %s is the id.
static void set_value(const char *format, const GUID &id, const char *name, const char *text)
{
    char key[300], guid[40];
    write_text(guid, id);
    int length = snprintf(key, sizeof key, "Software\\Classes\\");
    snprintf(key + length, sizeof key - length, format, guid);
    RegSetKeyValueA(HKEY_LOCAL_MACHINE, key, name, REG_SZ, text, (DWORD)strlen(text) + 1);
}

static void set_server(const GUID &id, const char *path, const char *model = "Both")
{
    set_value("CLSID\\%s\\InprocServer32", id, nullptr, path);
    set_value("CLSID\\%s\\InprocServer32", id, "ThreadingModel", model);
}

static const GUID id_library = { 0x5d1b6f30, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };

static void check(HRESULT result, const char *step)
{
    if (FAILED(result)) {
        printf("%s: %lx\n", step, (unsigned long)result);
        exit(3);
    }
}

static ICreateTypeInfo *add_interface(ICreateTypeLib2 *library, const WCHAR *name, const GUID &iid)
{
    ICreateTypeInfo *info = nullptr;
    ITypeLib *standard = nullptr;
    ITypeInfo *unknown = nullptr;
    HREFTYPE base = 0;
    check(library->CreateTypeInfo((LPOLESTR)name, TKIND_INTERFACE, &info), "create type");
    check(info->SetGuid(iid), "set id of type");
    check(LoadTypeLib(L"stdole2.tlb", &standard), "load stdole2.tlb");
    check(standard->GetTypeInfoOfGuid(IID_IUnknown, &unknown), "find IUnknown");
    check(info->AddRefTypeInfo(unknown, &base), "refer to IUnknown");
    check(info->AddImplType(0, base), "add base");
    return info;
}

static void add_method(ICreateTypeInfo *info, const WCHAR *name, VARTYPE result,
                       ELEMDESC *arguments, int count)
{
    FUNCDESC function;
    LPOLESTR names[] = { (LPOLESTR)name };
    memset(&function, 0, sizeof function);
    function.funckind = FUNC_PUREVIRTUAL;
    function.invkind = INVOKE_FUNC;
    function.callconv = CC_STDCALL;
    function.cParams = (short)count;
    function.lprgelemdescParam = arguments;
    function.elemdescFunc.tdesc.vt = result;
    function.memid = 0x60010000;
    check(info->AddFuncDesc(0, &function), "add method");
    check(info->SetFuncAndParamNames(0, names, 1), "name method");
    check(info->LayOut(), "lay out");
}

// A type library that describes IScale: double Scale(double, float, long, double, long, float),
// IPart: HRESULT Count([out] long *), and IMaker: HRESULT Make(long, [out] IPart **).
static void make_library(const WCHAR *path)
{
    static const VARTYPE types[] = { VT_R8, VT_R4, VT_I4, VT_R8, VT_I4, VT_R4 };
    ICreateTypeLib2 *library = nullptr;
    ICreateTypeInfo *part = nullptr, *maker = nullptr;
    ITypeInfo *known = nullptr;
    HREFTYPE reference = 0;
    ELEMDESC arguments[6];
    TYPEDESC number, interface_type, pointer;
    check(CreateTypeLib2(SYS_WIN64, path, &library), "create library");
    check(library->SetGuid(id_library), "set id");
    check(library->SetName((LPOLESTR)L"Sums"), "name library");
    memset(arguments, 0, sizeof arguments);
    for (int i = 0; i < 6; i++) {
        arguments[i].tdesc.vt = types[i];
    }
    add_method(add_interface(library, L"IScale", iid_scale), L"Scale", VT_R8, arguments, 6);

    memset(arguments, 0, sizeof arguments);
    number.vt = VT_I4;
    arguments[0].tdesc.vt = VT_PTR;
    arguments[0].tdesc.lptdesc = &number;
    arguments[0].paramdesc.wParamFlags = PARAMFLAG_FOUT;
    part = add_interface(library, L"IPart", iid_part);
    add_method(part, L"Count", VT_HRESULT, arguments, 1);

    maker = add_interface(library, L"IMaker", iid_maker);
    check(part->QueryInterface(IID_ITypeInfo, (void **)&known), "find IPart");
    check(maker->AddRefTypeInfo(known, &reference), "refer to IPart");
    memset(arguments, 0, sizeof arguments);
    arguments[0].tdesc.vt = VT_I4;
    interface_type.vt = VT_USERDEFINED;
    interface_type.hreftype = reference;
    pointer.vt = VT_PTR;
    pointer.lptdesc = &interface_type;
    arguments[1].tdesc.vt = VT_PTR;
    arguments[1].tdesc.lptdesc = &pointer;
    arguments[1].paramdesc.wParamFlags = PARAMFLAG_FOUT;
    add_method(maker, L"Make", VT_HRESULT, arguments, 2);
    check(library->SaveAllChanges(), "save");
}

static void register_interface(const GUID &iid, const char *library)
{
    set_value("Interface\\%s", iid, nullptr, "IRegisteredName");
    set_value("Interface\\%s\\TypeLib", iid, nullptr, library);
    set_value("Interface\\%s\\TypeLib", iid, "Version", "1.0");
}

static void register_library(const char *path)
{
    WCHAR wide[MAX_PATH];
    char guid[40];
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, MAX_PATH);
    make_library(wide);
    write_text(guid, id_library);
    register_interface(iid_scale, guid);
    register_interface(iid_part, guid);
    register_interface(iid_maker, guid);
    set_value("TypeLib\\%s\\1.0\\0\\win64", id_library, nullptr, path);
}

static void register_all(const char *server, const char *library)
{
    set_server(class_sum, server);
    set_server(class_refusing, server);
    set_server(class_paged, server);
    set_server(class_single, server, "Apartment");
    register_library(library);
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
    printf("no place %lx\n", (unsigned long)sum->Get(nullptr));
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

// Objects that a method returns, and no QueryInterface.
static void make_parts()
{
    ISum *sum = create();
    IMaker *maker = nullptr;
    IPart *part = nullptr;
    long value = 0, total = 0;
    check(sum->QueryInterface(iid_maker, (void **)&maker), "find maker");
    for (long i = 0; i < 10; i++) {
        check(maker->Make(i, &part), "make part");
        for (int k = 0; k < 3; k++) {
            part->Count(&value);
            total += value;
        }
        part->Release();
    }
    printf("parts %ld\n", total);
    printf("none %lx %d\n", (unsigned long)maker->Make(-1, &part), part == nullptr);
    printf("no place %lx\n", (unsigned long)maker->Make(0, nullptr));
    maker->Release();
    printf("left %lu\n", (unsigned long)sum->Release());
}

static IUnknown *create_as(const GUID &id, const GUID &iid)
{
    void *made = nullptr;
    check(CoCreateInstance(id, nullptr, CLSCTX_INPROC_SERVER, iid, &made), "create");
    return (IUnknown *)made;
}

// Other software may give an object a copy of its table, and wrap some functions of it.
static HRESULT(STDMETHODCALLTYPE *query_before)(IUnknown *, REFIID, void **);
static ULONG(STDMETHODCALLTYPE *add_before)(IUnknown *),
    (STDMETHODCALLTYPE * release_before)(IUnknown *);
static int wrapped;

static HRESULT STDMETHODCALLTYPE query_wrapped(IUnknown *object, REFIID iid, void **out)
{
    wrapped++;
    return query_before(object, iid, out);
}

static ULONG STDMETHODCALLTYPE add_wrapped(IUnknown *object)
{
    wrapped++;
    return add_before(object);
}

static ULONG STDMETHODCALLTYPE release_wrapped(IUnknown *object)
{
    wrapped++;
    return release_before(object);
}

static void copy_table(int wraps)
{
    ISum *sum = create();
    void *copy[5], *scale = nullptr;
    memcpy(copy, *(void **)sum, sizeof copy);
    memcpy(&query_before, copy, sizeof query_before);
    memcpy(&add_before, copy + 1, sizeof add_before);
    memcpy(&release_before, copy + 2, sizeof release_before);
    if (wraps) {
        copy[0] = (void *)query_wrapped;
        copy[1] = (void *)add_wrapped;
        copy[2] = (void *)release_wrapped;
    }
    *(void **)sum = copy;
    sum->AddRef();
    sum->Add(3);
    check(sum->QueryInterface(iid_scale, &scale), "find scale");
    ((IScale *)scale)->Release();
    sum->Release();
    printf("copy left %lu, wrapped %d\n", (unsigned long)sum->Release(), wrapped);
}

static void use_harshly()
{
    ISum *sum = create();
    IMaker *maker = nullptr, *paged = nullptr;
    IMarshal *marshal = nullptr;
    IPart *part = nullptr;
    long value = 0;
    check(sum->QueryInterface(iid_maker, (void **)&maker), "find maker");
    for (int i = 0; i < 10; i++) {
        try {
            maker->Make(-7, &part);
        } catch (int thrown) {
            value += thrown;
        }
    }
    printf("thrown %ld\n", value);
    maker->Release();
    sum->Release();
    copy_table(0);
    copy_table(1);

    sum = (ISum *)create_as(class_paged, iid_sum);
    check(sum->QueryInterface(IID_IMarshal, (void **)&marshal), "find marshaler");
    printf("marshaler left %lu\n", (unsigned long)marshal->Release());
    check(sum->QueryInterface(iid_maker, (void **)&paged), "find maker of paged");
    check(paged->Make(-8, &part), "make part");
    part->Count(&value);
    printf("part %ld left %lu\n", value, (unsigned long)part->Release());

    IUnknown *proxy = create_as(class_single, IID_IUnknown);
    void *other = nullptr;
    printf("proxy %lx left ", (unsigned long)proxy->QueryInterface(iid_scale, &other));
    printf("%lu\n", (unsigned long)proxy->Release());
    IClassFactory *factory = nullptr;
    check(CoGetClassObject(class_single, CLSCTX_INPROC_SERVER, nullptr, IID_IClassFactory,
                           (void **)&factory),
          "find class object");
    printf("lock %lx left ", (unsigned long)factory->LockServer(TRUE));
    printf("%lu\n", (unsigned long)factory->Release());
}

// Nodes that the document's methods return.
static void use_nodes(IXMLDOMDocument *document)
{
    IXMLDOMElement *root = nullptr, *made = nullptr;
    IXMLDOMNode *child = nullptr;
    VARIANT_BOOL loaded = 0;
    BSTR name = nullptr;
    check(document->loadXML(SysAllocString(L"<root/>"), &loaded), "load tree");
    check(document->get_documentElement(&root), "find root");
    check(document->createElement(SysAllocString(L"made"), &made), "make element");
    check(root->appendChild(made, &child), "append element");
    for (int i = 0; i < 5; i++) {
        check(root->get_tagName(&name), "get name");
    }
    check(child->get_nodeName(&name), "get name of node");
    printf("child %ls\n", name);
    child->Release();
    made->Release();
    root->Release();
}

// The same document by its own interface, which the type library of msxml describes.
static void use_document(IDispatch *xml)
{
    IXMLDOMDocument *document = nullptr;
    VARIANT_BOOL loaded = 0;
    BSTR text = nullptr;
    check(xml->QueryInterface(IID_IXMLDOMDocument, (void **)&document), "find document");
    check(document->loadXML(SysAllocString(L"<c/>"), &loaded), "load document");
    printf("loaded %d\n", loaded);
    check(document->loadXML(SysAllocString(L"<c>"), &loaded), "load malformed document");
    printf("loaded %d\n", loaded);
    check(document->get_xml(&text), "get text");
    printf("text of %u units\n", SysStringLen(text));
    use_nodes(document);
    document->Release();
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
        use_document(xml);
        printf("%ls\nxml left %lu\n", result.vt == VT_BSTR ? result.bstrVal : L"no text",
               (unsigned long)xml->Release());
    }
}

// WMI: the names of this machine's operating systems.
static void use_wmi()
{
    IWbemLocator *locator = nullptr;
    IWbemServices *services = nullptr;
    IEnumWbemClassObject *found = nullptr;
    IWbemClassObject *object = nullptr;
    ULONG count = 0;
    BSTR path = SysAllocString(L"ROOT\\CIMV2"), language = SysAllocString(L"WQL"),
         query = SysAllocString(L"SELECT Caption FROM Win32_OperatingSystem"),
         missing = SysAllocString(L"ROOT\\NOTHING");
    check(CoCreateInstance(CLSID_WbemLocator, nullptr, CLSCTX_INPROC_SERVER, IID_IWbemLocator,
                           (void **)&locator),
          "create locator");
    for (int i = 0; i < 3; i++) {
        printf("no such place %lx\n",
               (unsigned long)locator->ConnectServer(missing, nullptr, nullptr, nullptr, 0, nullptr,
                                                     nullptr, &services));
    }
    check(locator->ConnectServer(path, nullptr, nullptr, nullptr, 0, nullptr, nullptr, &services),
          "connect");
    check(services->ExecQuery(language, query, WBEM_FLAG_FORWARD_ONLY, nullptr, &found), "query");
    while (found->Next(WBEM_INFINITE, 1, &object, &count) == S_OK && count == 1) {
        VARIANT value;
        VariantInit(&value);
        check(object->Get(L"Caption", 0, &value, nullptr, nullptr), "get");
        printf("%ls\n", value.vt == VT_BSTR ? value.bstrVal : L"no text");
        object->Release();
    }
    found->Release();
    services->Release();
    printf("locator left %lu\n", (unsigned long)locator->Release());
}

static long long get_resident_bytes()
{
    PROCESS_MEMORY_COUNTERS counters = {};
    GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
    return (long long)counters.WorkingSetSize;
}

// Create and release objects; the process must not grow after the first ones.
static void make_many(long count)
{
    long long before = 0;
    for (long i = 0; i < count; i++) {
        create()->Release();
        if (i == count / 10) {
            before = get_resident_bytes();
        }
    }
    long long grown = get_resident_bytes() - before;
    printf("done, %s\n", before == 0 ? "not measured" : grown < 2000000 ? "not grown" : "grown");
}

int main(int argc, char **argv)
{
    CoInitializeEx(nullptr, COINIT_MULTITHREADED);
    if (argc > 3 && strcmp(argv[1], "register") == 0) {
        register_all(argv[2], argv[3]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "many") == 0) {
        make_many(atol(argv[2]));
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "make") == 0) {
        make_parts();
    } else if (argc > 1 && strcmp(argv[1], "harsh") == 0) {
        use_harshly();
    } else if (argc > 1 && strcmp(argv[1], "system") == 0) {
        use_system();
        use_wmi();
    } else {
        work();
    }
    return 0;
}
#endif
