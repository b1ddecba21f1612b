// SPDX-License-Identifier: MIT
// A stand-in for libobjc2 (-DLIBRARY): dispatchers with its entries and calling convention, and its
// calls for classes and methods; and a program with known sends, which counts its own methods.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <pthread.h>

extern "C" {
typedef void Imp(void);
struct Selector {
    const char *name, *types;
};
struct Method {
    Selector *selector;
    Imp *imp;
};
struct Class {
    Class *isa, *super;
    const char *name;
    bool is_meta, is_initialized;
    int count;
    Method methods[12];
};
struct Object {
    Class *isa;
};
struct Super {
    Object *receiver;
    Class *from;
};
Imp objc_msgSend, objc_msgSend_fpret, objc_msgSend_stret;
void objc_disposeClassPair(Class *c);
Imp *objc_msg_lookup(Object *receiver, Selector *selector);
Imp *objc_msg_lookup_super(Super *super, Selector *selector);

#ifdef LIBRARY
#define PUBLIC __attribute__((visibility("default"), noinline))

PUBLIC Class *object_getClass(Object *object)
{
    return object->isa;
}
PUBLIC Class *class_getSuperclass(Class *c)
{
    return c->super;
}
PUBLIC const char *class_getName(Class *c)
{
    return c->name;
}
PUBLIC signed char class_isMetaClass(Class *c)
{
    return c->is_meta;
}
PUBLIC Method *class_getInstanceMethod(Class *c, Selector *selector)
{
    for (; c; c = c->super) {
        for (int i = 0; i < c->count; i++) {
            if (c->methods[i].selector == selector) {
                return &c->methods[i];
            }
        }
    }
    return nullptr;
}
PUBLIC Imp *method_getImplementation(Method *method)
{
    return method->imp;
}
PUBLIC void objc_disposeClassPair(Class *c)
{
    static int disposed;
    disposed++;
    c->name = c->isa->name = nullptr;
}
PUBLIC const char *sel_getName(Selector *selector)
{
    return selector->name;
}

static long forward(Object *, Selector *)
{
    return 7;
}

static Selector initialize = { "initialize", nullptr };

PUBLIC Selector *standin_initialize()
{
    return &initialize;
}

PUBLIC Imp *objc_msg_lookup(Object *receiver, Selector *selector)
{
    Class *c = receiver->isa;
    Method *found = class_getInstanceMethod(c, selector);
    if (c->is_meta && !__atomic_exchange_n(&c->is_initialized, true, __ATOMIC_RELAXED) &&
        class_getInstanceMethod(c, &initialize)) {
        ((void (*)(Object *, Selector *))objc_msgSend)(receiver, &initialize);
    }
    return found ? found->imp : (Imp *)forward;
}
PUBLIC Imp *objc_msg_lookup_super(Super *super, Selector *selector)
{
    Method *found = class_getInstanceMethod(super->from, selector);
    return found ? found->imp : (Imp *)forward;
}

#if defined(__x86_64__)
__asm__(".macro send name, receiver, selector\n"
        ".globl \\name\n.type \\name, @function\n.p2align 4\n\\name: .cfi_startproc\n"
        "test \\receiver, \\receiver\nje 1f\n"
        "push %rax\npush %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n"
        "sub $128, %rsp\n.cfi_adjust_cfa_offset 184\n"
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\nmovups %xmm\\n, 16 * \\n(%rsp)\n.endr\n"
        "mov \\receiver, %rdi\nmov \\selector, %rsi\ncall objc_msg_lookup@PLT\nmov %rax, %r11\n"
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\nmovups 16 * \\n(%rsp), %xmm\\n\n.endr\n"
        "add $128, %rsp\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rax\n"
        ".cfi_adjust_cfa_offset -184\njmp *%r11\n"
        "1: xor %eax, %eax\npxor %xmm0, %xmm0\nret\n.cfi_endproc\n.size \\name, . - \\name\n.endm\n"
        "send objc_msgSend, %rdi, %rsi\nsend objc_msgSend_fpret, %rdi, %rsi\n"
        "send objc_msgSend_stret, %rsi, %rdx\n");
#else
__asm__(".macro send name\n"
        ".globl \\name\n.type \\name, %function\n.p2align 4\n\\name: .cfi_startproc\nhint 34\n"
        "cbz x0, 1f\nstp x29, x30, [sp, #-224]!\n.cfi_def_cfa_offset 224\n.cfi_offset 30, -216\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\n"
        "stp x6, x7, [sp, #64]\nstr x8, [sp, #80]\nstp q0, q1, [sp, #96]\nstp q2, q3, [sp, #128]\n"
        "stp q4, q5, [sp, #160]\nstp q6, q7, [sp, #192]\nbl objc_msg_lookup\nmov x16, x0\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\n"
        "ldp x6, x7, [sp, #64]\nldr x8, [sp, #80]\nldp q0, q1, [sp, #96]\nldp q2, q3, [sp, #128]\n"
        "ldp q4, q5, [sp, #160]\nldp q6, q7, [sp, #192]\nldp x29, x30, [sp], #224\n"
        ".cfi_def_cfa_offset 0\n.cfi_restore 30\nbr x16\n"
        "1: movi v0.2d, #0\nret\n.cfi_endproc\n.size \\name, . - \\name\n.endm\n"
        "send objc_msgSend\nsend objc_msgSend_fpret\nsend objc_msgSend_stret\n");
#endif
}
#else
Selector *standin_initialize();
}

struct Pair {
    double x, y;
};
struct Big {
    long a[6];
};

enum { MAKE, ADD, SCALE, PAIR, BIG, MANY, SUM, THROW, HALF, ADD_B, INITIALIZE, COUNT };
static const char *const names[COUNT] = { "+[A make]",    "-[A add:to:]",   "-[A scale:by:]",
                                          "-[A pair:]",   "-[A big:]",      "-[A many:]",
                                          "-[A sum:]",    "-[A throw]",     "-[A half:]",
                                          "-[B add:to:]", "+[A initialize]" };
static long counts[COUNT];
static Selector selectors[COUNT] = { { "make", "" },  { "add:to:", "" }, { "scale:by:", "" },
                                     { "pair:", "" }, { "big:", "" },    { "many:", "" },
                                     { "sum:", "" },  { "throw", "" },   { "half:", "" },
                                     { "none", "" },  { "none", "" } };

static void note(int method)
{
    __sync_fetch_and_add(&counts[method], 1);
}

static Class meta_a, meta_b, a, b;
static Object object_a = { &a }, object_b = { &b };

static Object *make(Object *c, Selector *)
{
    note(MAKE);
    return c == (Object *)&b ? &object_b : &object_a;
}
static long add(Object *, Selector *, long x, long y)
{
    note(ADD);
    return x + 3 * y;
}
static long add_b(Object *self, Selector *selector, long x, long y)
{
    Super super = { self, &a };
    note(ADD_B);
    return 1 + ((long (*)(Object *, Selector *, long, long))objc_msg_lookup_super(
                   &super, selector))(self, selector, x, y);
}
static double scale(Object *, Selector *, double x, float y)
{
    note(SCALE);
    return x * y;
}
static Pair pair(Object *, Selector *, Pair p)
{
    note(PAIR);
    return { p.x + p.y, p.x };
}
static Big big(Object *, Selector *, Big in)
{
    note(BIG);
    for (long &value : in.a) {
        value *= 3;
    }
    return in;
}
static long many(Object *, Selector *, long c, long d, long e, long f, long g, long h, long i)
{
    note(MANY);
    return c + 2 * d + 3 * e + 4 * f + 5 * g + 6 * h + 7 * i;
}
static double sum(Object *, Selector *, int count, ...)
{
    va_list arguments;
    double total = 0;
    note(SUM);
    va_start(arguments, count);
    while (count-- > 0) {
        total += va_arg(arguments, double);
    }
    va_end(arguments);
    return total;
}
static void throw_it(Object *, Selector *)
{
    note(THROW);
    throw 5;
}
static long double half(Object *, Selector *, long double x)
{
    note(HALF);
    return x / 2;
}
static void begin_class(Object *, Selector *)
{
    note(INITIALIZE);
}

static void fill_classes()
{
    meta_a = { nullptr,
               nullptr,
               "A",
               true,
               false,
               2,
               { { &selectors[MAKE], (Imp *)make },
                 { standin_initialize(), (Imp *)begin_class } } };
    meta_b = { nullptr, &meta_a, "B", true, true, 0, {} };
    a = { &meta_a,
          nullptr,
          "A",
          false,
          false,
          8,
          { { &selectors[ADD], (Imp *)add },
            { &selectors[SCALE], (Imp *)scale },
            { &selectors[PAIR], (Imp *)pair },
            { &selectors[BIG], (Imp *)big },
            { &selectors[MANY], (Imp *)many },
            { &selectors[SUM], (Imp *)sum },
            { &selectors[THROW], (Imp *)throw_it },
            { &selectors[HALF], (Imp *)half } } };
    b = { &meta_b, &a, "B", false, false, 1, { { &selectors[ADD], (Imp *)add_b } } };
}

#define SEND(type, dispatch, ...) ((type(*)(Object *, Selector *, ##__VA_ARGS__))dispatch)

static Big send_big(Object *object, Big in)
{
#if defined(__x86_64__)
    return SEND(Big, objc_msgSend_stret, Big)(object, &selectors[BIG], in);
#else
    return SEND(Big, objc_msgSend, Big)(object, &selectors[BIG], in);
#endif
}

static double send_all(Object *object, long i)
{
    double total = SEND(long, objc_msgSend, long, long)(object, &selectors[ADD], i, 2);
    total += SEND(double, objc_msgSend, double, float)(object, &selectors[SCALE], 1.5, 2.25f);
    Pair p = SEND(Pair, objc_msgSend, Pair)(object, &selectors[PAIR], { 2.5, (double)i });
    total += p.x + 2 * p.y + send_big(object, { { 1, 2, 3, 4, 5, i } }).a[5];
    total += SEND(long, objc_msgSend, long, long, long, long, long, long,
                  long)(object, &selectors[MANY], 1, 2, 3, 4, 5, 6, i);
    total += ((double (*)(Object *, Selector *, int, ...))objc_msgSend)(object, &selectors[SUM], 4,
                                                                        1.0, 2.0, 3.5, (double)i);
    total +=
        (double)SEND(long double, objc_msgSend_fpret, long double)(object, &selectors[HALF], 9);
    total += SEND(long, objc_msgSend)(object, &selectors[COUNT - 1]); // forwarded
    total += SEND(double, objc_msgSend, double, float)(nullptr, &selectors[SCALE], 8, 8);
    try {
        SEND(void, objc_msgSend)(object, &selectors[THROW]);
    } catch (int thrown) {
        total += thrown;
    }
    return total;
}

static void *work(void *)
{
    static __thread double total;
    for (long i = 0; i < 500; i++) {
        Object *made =
            SEND(Object *, objc_msgSend)((Object *)(i % 5 == 0 ? &b : &a), &selectors[MAKE]);
        total += send_all(made, i);
    }
    return &total;
}

// Sends the messages again for each line.
static int work_for_lines()
{
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        work(nullptr);
        puts("done");
        fflush(stdout);
    }
    return 0;
}

// Two classes, one after the other at the same address.
static int dispose_classes()
{
    static Class meta = { nullptr, nullptr, nullptr, true, true, 0, {} };
    Object object = { &a };
    long total = 0;
    for (const char *name : { "First", "Second" }) {
        meta.name = a.name = name;
        a.isa = &meta;
        for (long i = 0; i < 10; i++) {
            total += SEND(long, objc_msgSend, long, long)(&object, &selectors[ADD], i, 2);
        }
        objc_disposeClassPair(&a);
    }
    printf("total %ld\n", total);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    fill_classes();
    if (argc > 1 && strcmp(argv[1], "dispose") == 0) {
        return dispose_classes();
    }
    if (argc > 1) {
        return work_for_lines();
    }
    for (pthread_t &thread : threads) {
        pthread_create(&thread, nullptr, work, nullptr);
    }
    for (pthread_t thread : threads) {
        pthread_join(thread, nullptr);
    }
    printf("sum %.3f\n", *(double *)work(nullptr));
    for (int i = 0; i < COUNT; i++) {
        printf("%s\t%ld\n", names[i], counts[i]);
    }
    return 0;
}
#endif
