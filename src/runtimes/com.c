/* SPDX-License-Identifier: MIT */
/*
 * Methods and lifetimes of COM objects.  The functions of combase.dll that create objects are
 * replaced.  They ask the original, count what was created or failed, and have the slots of the
 * object's table replaced (com_tables.h).  QueryInterface, Release and IClassFactory's
 * CreateInstance then lead here; all other slots lead to their methods.
 */
#include "runtimes/com.h"

#include "os/os.h"
#include "runtimes/com_list.h"
#include "runtimes/com_memory.h"
#include "runtimes/com_objects.h"
#include "runtimes/com_results.h"
#include "runtimes/com_tables.h"

#include <hotfn/lowlevel/counters.h>
#include <stdio.h>
#include <string.h>

typedef struct interface_query { /* MULTI_QI */
    const hfn_guid *iid;
    void *interface;
    int32_t result;
} interface_query;

typedef int32_t create_fn(const hfn_guid *class, void *outer, uint32_t context, const hfn_guid *iid,
                          void **out);
typedef int32_t create_ex_fn(const hfn_guid *class, void *outer, uint32_t context, void *server,
                             uint32_t count, interface_query *queries);
typedef int32_t get_class_fn(const hfn_guid *class, uint32_t context, void *server,
                             const hfn_guid *iid, void **out);
typedef int32_t get_class_object_fn(const hfn_guid *class, const hfn_guid *iid, void **out);
typedef int32_t query_fn(void *object, const hfn_guid *iid, void **out);
typedef int32_t create_instance_fn(void *factory, void *outer, const hfn_guid *iid, void **out);
typedef uint32_t release_fn(void *object);

#define NO_INTERFACE ((int32_t)0x80004002)

/* MAX_SERVERS: modules that export DllGetClassObject; each one's export is replaced by another of
 * the functions get_class_object_N. */
enum { MAX_SERVERS = 8, MAX_THREADS = 64 };

static struct {
    hfn_runtime_process process;
    hfn_methods methods;
    hotfn_code create, create_ex, get_class; /* the originals */
    hotfn_code servers[MAX_SERVERS];
    uint32_t server_count;
} com;

/* ---- Nested creations: CoCreateInstance may call CoCreateInstanceEx, or a class object. */

static uint32_t creating[MAX_THREADS]; /* atomic; ids of threads, 0: free */

/* True if the thread creates no object yet.  The caller then calls end_creation. */
static bool begin_creation(void)
{
    uint32_t id = hfn_os_thread_id();

    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        if (__atomic_load_n(&creating[i], __ATOMIC_RELAXED) == id) {
            return false;
        }
    }
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        uint32_t before = 0;

        if (__atomic_compare_exchange_n(&creating[i], &before, id, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            return true;
        }
    }
    return false;
}

static void end_creation(void)
{
    uint32_t id = hfn_os_thread_id();

    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        if (__atomic_load_n(&creating[i], __ATOMIC_RELAXED) == id) {
            __atomic_store_n(&creating[i], 0, __ATOMIC_RELAXED);
        }
    }
}

/* ---- Counting. */

/* Count a call of the function of this name. */
static void count_event(const hfn_guid *class, const char *text)
{
    char name[200];

    hfn_guid_write(name, class);
    snprintf(name + strlen(name), sizeof name - HFN_GUID_BYTES, "%s", text);
    hfn_com_count_event(&com.methods, name);
}

static void count_failure(const hfn_guid *class, int32_t result, const char *call)
{
    char text[100];

    snprintf(text, sizeof text, " failed: 0x%08x (%s)", (unsigned)result, call);
    count_event(class, text);
}

/* The methods of an interface are not counted: that of the class of a proxy, for example. */
static void count_left(const hfn_guid *class, const hfn_guid *iid)
{
    char text[100 + HFN_GUID_BYTES], interface[HFN_GUID_BYTES];

    hfn_guid_write(interface, iid);
    snprintf(text, sizeof text,
             "::%s is left alone: its functions are not in the module of its table", interface);
    count_event(class, text);
}

/* ---- Interfaces. */

static void watch_interface(void *interface, const hfn_guid *class, const hfn_guid *iid);

static int32_t refuse_query(void *object, const hfn_guid *iid, void **out)
{
    (void)object, (void)iid;
    *out = NULL;
    return NO_INTERFACE;
}

static int32_t refuse_creation(void *factory, void *outer, const hfn_guid *iid, void **out)
{
    (void)outer;
    return refuse_query(factory, iid, out);
}

static uint32_t keep_reference(void *object)
{
    (void)object;
    return 1;
}

/* The table of the object whose slot led here.  No original is known if the object was never seen,
 * its table was copied, and its methods are not selected. */
static const hfn_com_table *find_table(const void *object, const void *caller)
{
    static const hfn_com_table unknown = { .query = (hotfn_code)refuse_query,
                                           .release = (hotfn_code)keep_reference,
                                           .create = (hotfn_code)refuse_creation };
    const hfn_com_table *table =
        hfn_com_find_table(&com.methods, (uint64_t)(uintptr_t)object, caller);

    return table ? table : &unknown;
}

static int32_t query_interface(void *object, const hfn_guid *iid, void **out)
{
    const hfn_com_table *table = find_table(object, __builtin_return_address(0));
    int32_t result = ((query_fn *)table->query)(object, iid, out);
    hfn_com_pointer known;

    if (result >= 0 && out && *out) {
        bool is_known = hfn_com_find_pointer(&known, (uint64_t)(uintptr_t)object);

        if (is_known) {
            hfn_com_add_pointer((uint64_t)(uintptr_t)object, (uint64_t)(uintptr_t)*out);
        }
        watch_interface(*out, is_known ? &known.class : &table->class, iid);
    }
    return result;
}

static uint32_t release_interface(void *object)
{
    const hfn_com_table *table = find_table(object, __builtin_return_address(0));
    hfn_com_pointer known;
    bool is_known = hfn_com_find_pointer(&known, (uint64_t)(uintptr_t)object);
    hfn_com_measure measure;
    int64_t bytes = 0;
    bool is_measured;
    uint32_t count;

    hfn_com_begin_measure(&measure);
    count = ((release_fn *)table->release)(object);
    is_measured = hfn_com_end_measure(&measure, &bytes);
    if (count == 0 && is_known && hfn_com_end_object(&known)) {
        count_event(&known.class, " released");
        if (is_measured) {
            hfn_com_count_memory(&com.methods, &known.class, bytes, true);
        }
    }
    return count;
}

/* What a call created. */
typedef struct creation {
    hfn_com_measure measure;
    int64_t bytes;
    bool is_outermost, is_measured;
} creation;

static void add_object(const creation *c, void *interface, void *outer, const hfn_guid *class,
                       const hfn_guid *iid)
{
    if (outer) {
        count_event(class, " created, aggregated: its lifetime is not followed");
    } else if (hfn_com_add_object((uint64_t)(uintptr_t)interface, class)) {
        count_event(class, " created");
        if (c->is_measured) {
            hfn_com_count_memory(&com.methods, class, c->bytes, false);
        }
    }
    watch_interface(interface, class, iid);
}

static void begin_call(creation *out)
{
    out->is_outermost = begin_creation();
    out->bytes = 0;
    hfn_com_begin_measure(&out->measure);
}

static void end_call(creation *c)
{
    c->is_measured = hfn_com_end_measure(&c->measure, &c->bytes);
    if (c->is_outermost) {
        end_creation();
    }
}

static int32_t create_by_class_object(void *factory, void *outer, const hfn_guid *iid, void **out)
{
    const hfn_com_table *table = find_table(factory, __builtin_return_address(0));
    hfn_com_pointer known;
    const hfn_guid *class =
        hfn_com_find_pointer(&known, (uint64_t)(uintptr_t)factory) ? &known.class : &table->class;
    creation c;
    int32_t result;

    begin_call(&c);
    result = ((create_instance_fn *)table->create)(factory, outer, iid, out);
    end_call(&c);
    if (result >= 0 && out && *out) {
        add_object(&c, *out, outer, class, iid);
    } else if (result < 0 && c.is_outermost) {
        count_failure(class, result, "IClassFactory::CreateInstance");
    }
    return result;
}

static void replace_slots(void *interface, const hfn_guid *class, const hfn_guid *iid,
                          bool is_declared)
{
    static const hfn_com_functions functions = { (hotfn_code)query_interface,
                                                 (hotfn_code)release_interface,
                                                 (hotfn_code)create_by_class_object };
    void *paused = hotfn_counters_pause();
    bool is_left = com.methods.live &&
                   hfn_com_replace_slots(&com.methods, &functions, (uint64_t)(uintptr_t)interface,
                                         class, iid, is_declared);

    hotfn_counters_resume(paused);
    if (is_left) {
        count_left(class, iid);
    }
}

static void watch_interface(void *interface, const hfn_guid *class, const hfn_guid *iid)
{
    replace_slots(interface, class, iid, false);
}

/* An interface that a method has returned has the class of the method's object, as those that
 * QueryInterface returns, but may belong to another object, so its lifetime is not followed. */
static void watch_output(const void *object, const hfn_guid *class, void *interface,
                         const hfn_guid *iid)
{
    hfn_com_pointer known;
    bool is_known = hfn_com_find_pointer(&known, (uint64_t)(uintptr_t)object);

    replace_slots(interface, is_known ? &known.class : class, iid, true);
}

static void add_class_object(void *interface, const hfn_guid *class, const hfn_guid *iid)
{
    hfn_com_add_class_object((uint64_t)(uintptr_t)interface, class);
    watch_interface(interface, class, iid);
}

/* ---- The functions that are replaced. */

static int32_t create_instance(const hfn_guid *class, void *outer, uint32_t context,
                               const hfn_guid *iid, void **out)
{
    creation c;
    int32_t result;

    begin_call(&c);
    result = ((create_fn *)com.create)(class, outer, context, iid, out);
    end_call(&c);
    if (result >= 0 && out && *out) {
        add_object(&c, *out, outer, class, iid);
    } else if (result < 0 && c.is_outermost) {
        count_failure(class, result, "CoCreateInstance");
    }
    return result;
}

static int32_t create_instance_ex(const hfn_guid *class, void *outer, uint32_t context,
                                  void *server, uint32_t count, interface_query *queries)
{
    void *root = NULL;
    creation c;
    int32_t result;

    begin_call(&c);
    result = ((create_ex_fn *)com.create_ex)(class, outer, context, server, count, queries);
    end_call(&c);
    /* The interfaces belong to one object, and the first of those that it has is its root. */
    for (uint32_t i = 0; result >= 0 && i < count; i++) {
        if (queries[i].result < 0 || !queries[i].interface) {
            continue;
        }
        if (!root) {
            root = queries[i].interface;
            add_object(&c, root, outer, class, queries[i].iid);
        } else {
            hfn_com_add_pointer((uint64_t)(uintptr_t)root,
                                (uint64_t)(uintptr_t)queries[i].interface);
            watch_interface(queries[i].interface, class, queries[i].iid);
        }
    }
    if (result < 0 && c.is_outermost) {
        count_failure(class, result, "CoCreateInstanceEx");
    }
    return result;
}

static int32_t get_class(const hfn_guid *class, uint32_t context, void *server, const hfn_guid *iid,
                         void **out)
{
    int32_t result = ((get_class_fn *)com.get_class)(class, context, server, iid, out);

    if (result >= 0 && out && *out) {
        add_class_object(*out, class, iid);
    } else if (result < 0) {
        count_failure(class, result, "CoGetClassObject");
    }
    return result;
}

static int32_t get_from_server(uint32_t server, const hfn_guid *class, const hfn_guid *iid,
                               void **out)
{
    int32_t result = ((get_class_object_fn *)com.servers[server])(class, iid, out);

    if (result >= 0 && out && *out) {
        add_class_object(*out, class, iid);
    } else if (result < 0) {
        count_failure(class, result, "DllGetClassObject");
    }
    return result;
}

#define SERVER(n)                                                                                  \
    static int32_t get_class_object_##n(const hfn_guid *class, const hfn_guid *iid, void **out)    \
    {                                                                                              \
        return get_from_server(n, class, iid, out);                                                \
    }

SERVER(0)
SERVER(1)
SERVER(2)
SERVER(3)
SERVER(4)
SERVER(5)
SERVER(6)
SERVER(7)

/* ---- Start. */

static uint64_t find_entry(uint64_t base, const char *name)
{
    return (uint64_t)(uintptr_t)com.process.find_symbol(base, name);
}

static uint32_t find_server(uint64_t base, hfn_replaced out[HFN_MAX_REPLACED])
{
    static get_class_object_fn *const functions[MAX_SERVERS] = {
        get_class_object_0, get_class_object_1, get_class_object_2, get_class_object_3,
        get_class_object_4, get_class_object_5, get_class_object_6, get_class_object_7
    };
    uint64_t entry = find_entry(base, "DllGetClassObject");
    uint32_t server = com.server_count;

    if (!entry || server == MAX_SERVERS) {
        return 0;
    }
    com.server_count++;
    out[0] = (hfn_replaced){ entry, (hotfn_code)functions[server], &com.servers[server], false };
    return 1;
}

static uint32_t find_replaced(void *user, uint64_t base, hfn_replaced out[HFN_MAX_REPLACED])
{
    uint64_t create = find_entry(base, "CoCreateInstance");
    uint64_t create_ex = find_entry(base, "CoCreateInstanceEx");
    uint64_t get = find_entry(base, "CoGetClassObject");
    uint32_t heap = hfn_com_find_heap(com.process.find_symbol, base, out);

    (void)user;
    if (!hfn_com_open_objects()) {
        return 0;
    }
    if (heap > 0) {
        return heap;
    }
    if (com.create || !create || !create_ex || !get) {
        return find_server(base, out);
    }
    out[0] = (hfn_replaced){ create, (hotfn_code)create_instance, &com.create, false };
    out[1] = (hfn_replaced){ create_ex, (hotfn_code)create_instance_ex, &com.create_ex, false };
    out[2] = (hfn_replaced){ get, (hotfn_code)get_class, &com.get_class, false };
    return 3;
}

static void use_methods(void *user, hfn_live *live, uint32_t module, uint64_t base)
{
    hfn_methods methods = { .live = NULL };
    char reason[400];

    (void)user;
    hfn_methods_open(&methods, live, module, com.process.find_symbol, base);
    if (methods.live) {
        if (!hfn_com_open_list(reason, sizeof reason)) {
            com.process.warn(reason);
        }
        hfn_com_open_results(&methods, com.process.find_symbol, base, watch_output);
    }
    com.methods = methods;
}

static void report_failure(void *user, const char *why)
{
    char text[400];

    (void)user;
    snprintf(text, sizeof text, "methods of COM objects are not counted, or not all: %.300s", why);
    com.process.warn(text);
}

const hfn_runtime *hfn_com_get_runtime(const hfn_runtime_process *process)
{
    static const hfn_runtime runtime = { find_replaced, use_methods, report_failure, NULL };

    com.process = *process;
    return &runtime;
}
