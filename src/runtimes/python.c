/* SPDX-License-Identifier: MIT */
/*
 * Functions of Python programs, in CPython 3.11.  The interpreter's function that creates
 * interpreters is replaced, so that each new one gets a function of hotfn as its evaluator of
 * frames (PEP 523).  That function looks up the method of the frame's code, which is stored in the
 * code object (_PyEval_RequestCodeExtraIndex), and passes the frame on to the evaluator through the
 * method's function of the pool, where it is counted.  The interpreter then makes a call of its C
 * evaluator for each call of a Python function, which it otherwise does not.
 *
 * The calls that are counted are those that sys.setprofile reports: generators count each time that
 * they are resumed or closed, but not when they are created.
 */
#include "runtimes/python.h"

#include <hotfn/lowlevel/counters.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAJOR_MINOR = 0x030B };

/* ---- What is used of CPython 3.11's objects (Include/cpython/code.h, Include/cpython/pystate.h,
 * Include/internal/pycore_frame.h). */

typedef struct python_object python_object;

typedef struct code_extra { /* Objects/codeobject.c: _PyCodeObjectExtra */
    ptrdiff_t count;
    void *values[1];
} code_extra;

typedef struct python_code {
    ptrdiff_t head[3];
    python_object *objects[3];
    int32_t flags;
    int16_t warmup[2];
    int32_t counts[4], first_line, local_counts[5];
    python_object *locals[2];
    python_object *filename, *name, *qualname;
    void *others[4];
    int32_t first_traceable;
    code_extra *extra;
} python_code;

typedef struct python_frame {
    void *objects[4];
    python_code *code;
    void *links[2], *instruction;
    int32_t stack_top;
    bool is_entry;
    char owner;
} python_frame;

typedef struct python_function {
    ptrdiff_t head[2];
    python_object *objects[13];
    void *call; /* vectorcall */
    uint32_t version;
} python_function;

typedef struct python_thread {
    void *links[2];
    void *interpreter;
} python_thread;

#define CODE_RESUMES 0x02A0 /* CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR */
#define OWNED_BY_THREAD 0

typedef python_object *evaluate_fn(python_thread *thread, python_frame *frame, int throws);

/* ---- The tracer of this process.  Python's lock protects it. */

typedef python_function *create_function_fn(const python_code *code, python_object *globals,
                                            python_object *qualname);

static struct {
    hfn_runtime_process process;
    hfn_methods methods;
    evaluate_fn *evaluate; /* _PyEval_EvalFrameDefault */
    void (*set_evaluator)(void *interpreter, evaluate_fn *evaluator);
    ptrdiff_t (*request_index)(void (*release)(void *));
    int (*set_extra)(const python_code *code, ptrdiff_t index, void *value);
    const char *(*get_text)(python_object *text);
    void (*clear_error)(void);
    python_object *(*intern_text)(const char *text);
    hotfn_code create_interpreter;    /* the original */
    void *interpreter;                /* the interpreter that is traced */
    ptrdiff_t index;                  /* of hotfn's word in its code objects; -1: not requested */
    hotfn_code create_function;       /* the original */
    python_object *subscription_name; /* "__getitem__", interned; NULL before the first call */
    uint32_t version_count;           /* functions of that name */
} python = { .index = -1 };

/* ---- Methods. */

static const char *get_text(python_object *text)
{
    const char *found = text ? python.get_text(text) : NULL;

    if (!found) {
        python.clear_error();
    }
    return found ? found : "?";
}

/* hotfn's word of a code object whose method is off: the orders that say so.  It is odd, which no
 * function's address is. */
static uintptr_t make_off_word(uint32_t orders)
{
    return (uintptr_t)orders << 1 | 1;
}

/* The word of the code object: its method, or the evaluator if it is not selected or there is no
 * room for one. */
static uintptr_t create_word(const python_code *code)
{
    uint32_t orders = hfn_methods_get_orders(&python.methods);
    char name[1024];
    hotfn_code method;

    snprintf(name, sizeof name, "%.500s (%.500s:%d)", get_text(code->qualname),
             get_text(code->filename), (int)code->first_line);
    if (hfn_methods_is_selected(&python.methods, name) &&
        hfn_methods_get_mode(&python.methods, orders, name) == HFN_METHOD_OFF) {
        return make_off_word(orders);
    }
    method = hfn_methods_get(&python.methods, name, (hotfn_code)python.evaluate);
    return (uintptr_t)(method ? method : (hotfn_code)python.evaluate);
}

/* NULL: the method must be looked up. */
static evaluate_fn *read_word(uintptr_t word)
{
    return !(word & 1)                                                      ? (evaluate_fn *)word
           : word == make_off_word(hfn_methods_get_orders(&python.methods)) ? python.evaluate
                                                                            : NULL;
}

static void claim_interpreter(void *interpreter)
{
    python.interpreter = interpreter;
    python.index = python.request_index(NULL);
    python.subscription_name = python.intern_text("__getitem__");
    if (python.index < 0) {
        python.process.warn("Python functions are not counted: other software uses all words that "
                            "a code object has for tools");
    }
}

static evaluate_fn *find_method(const python_thread *thread, const python_code *code)
{
    void *paused = hotfn_counters_pause();
    evaluate_fn *method = python.evaluate;

    if (!python.interpreter) {
        claim_interpreter(thread->interpreter);
    }
    if (thread->interpreter != python.interpreter) {
        python.process.warn("functions that run in a second Python interpreter of the process are "
                            "not counted");
    }
    if (python.index < 0 || thread->interpreter != python.interpreter) {
        python.set_evaluator(thread->interpreter, python.evaluate);
    } else {
        uintptr_t word = create_word(code);

        method = word & 1 ? python.evaluate : (evaluate_fn *)word;
        if (python.set_extra(code, python.index, (void *)word) != 0) {
            python.clear_error();
        }
    }
    hotfn_counters_resume(paused);
    return method;
}

/* The call that creates a generator runs none of its code.  Later ones pass its own frame. */
static bool is_creation(const python_frame *frame)
{
    return (frame->code->flags & CODE_RESUMES) && frame->owner == OWNED_BY_THREAD;
}

static python_object *evaluate_frame(python_thread *thread, python_frame *frame, int throws)
{
    const python_code *code = frame->code;
    const code_extra *extra = code->extra;
    evaluate_fn *method = NULL;

    if (is_creation(frame)) {
        return python.evaluate(thread, frame, throws);
    }
    if (extra && (size_t)python.index < (size_t)extra->count) {
        method = read_word((uintptr_t)extra->values[python.index]);
    }
    if (!method) {
        method = find_method(thread, code);
    }
    return method(thread, frame, throws);
}

/* ---- New functions.  CPython 3.11 has one instruction that enters a Python function without the
 * evaluator that was set: the subscription that was specialised for a __getitem__
 * (BINARY_SUBSCR_GETITEM).  It holds the function's version in 16 bits, and is not used for one
 * with a larger version (Python/specialize.c: _Py_Specialize_BinarySubscr).  So functions of that
 * name get large versions, which CPython itself would reach after 3.9 billion functions. */

#define FIRST_VERSION UINT32_C(0xE8000000)

static python_function *create_function(const python_code *code, python_object *globals,
                                        python_object *qualname)
{
    create_function_fn *create = (create_function_fn *)python.create_function;
    python_function *function = create(code, globals, qualname);

    if (function && code->name == python.subscription_name) {
        function->version = FIRST_VERSION + python.version_count++;
    }
    return function;
}

/* ---- Start. */

static void *create_interpreter(void)
{
    void *interpreter = ((void *(*)(void))python.create_interpreter)();
    void *paused = hotfn_counters_pause();

    if (interpreter == python.interpreter) { /* Python was finished, and starts again */
        python.interpreter = NULL;
        python.index = -1;
        python.subscription_name = NULL;
    }
    if (interpreter && python.methods.live) {
        python.set_evaluator(interpreter, evaluate_frame);
    }
    hotfn_counters_resume(paused);
    return interpreter;
}

static hotfn_code find_function(uint64_t base, const char *name)
{
    return (hotfn_code)(uintptr_t)python.process.find_symbol(base, name);
}

static bool find_functions(uint64_t base)
{
    python.evaluate = (evaluate_fn *)find_function(base, "_PyEval_EvalFrameDefault");
    python.set_evaluator = (void (*)(void *, evaluate_fn *))find_function(
        base, "_PyInterpreterState_SetEvalFrameFunc");
    python.request_index =
        (ptrdiff_t(*)(void (*)(void *)))find_function(base, "_PyEval_RequestCodeExtraIndex");
    python.set_extra =
        (int (*)(const python_code *, ptrdiff_t, void *))find_function(base, "_PyCode_SetExtra");
    python.get_text = (const char *(*)(python_object *))find_function(base, "PyUnicode_AsUTF8");
    python.clear_error = find_function(base, "PyErr_Clear");
    python.intern_text =
        (python_object * (*)(const char *)) find_function(base, "PyUnicode_InternFromString");
    return python.intern_text && python.evaluate && python.set_evaluator && python.request_index &&
           python.set_extra && python.get_text && python.clear_error;
}

/* Is this CPython of a version whose objects are as described above? */
static bool check_version(uint64_t base)
{
    const unsigned long *version = python.process.find_symbol(base, "Py_Version");
    char text[160];

    if (version && *version >> 16 == MAJOR_MINOR) {
        return true;
    }
    if (version) {
        snprintf(
            text, sizeof text,
            "Python functions are not counted: this is CPython %lu.%lu, and only 3.11 is known",
            *version >> 24, *version >> 16 & 0xFF);
    } else {
        snprintf(text, sizeof text,
                 "Python functions are not counted: this CPython is older than 3.11");
    }
    python.process.warn(text);
    return false;
}

static uint32_t find_replaced(void *user, uint64_t base, hfn_replaced out[HFN_MAX_REPLACED])
{
    hotfn_code create = find_function(base, "PyInterpreterState_New");
    hotfn_code create_one = find_function(base, "PyFunction_NewWithQualName");

    (void)user;
    if (!create || !create_one || python.create_interpreter || !check_version(base) ||
        !find_functions(base)) {
        return 0;
    }
    out[0] = (hfn_replaced){ (uint64_t)(uintptr_t)create, (hotfn_code)create_interpreter,
                             &python.create_interpreter, false };
    out[1] = (hfn_replaced){ (uint64_t)(uintptr_t)create_one, (hotfn_code)create_function,
                             &python.create_function, false };
    return 2;
}

static void use_methods(void *user, hfn_live *live, uint32_t module, uint64_t base)
{
    (void)user;
    hfn_methods_open(&python.methods, live, module, python.process.find_symbol, base);
}

static void report_failure(void *user, const char *why)
{
    char text[400];

    (void)user;
    snprintf(text, sizeof text, "Python functions are not counted, or not all: %.300s", why);
    python.process.warn(text);
}

const hfn_runtime *hfn_python_get_runtime(const hfn_runtime_process *process)
{
    static const hfn_runtime runtime = { find_replaced, use_methods, report_failure, NULL };

    python.process = *process;
    return &runtime;
}
