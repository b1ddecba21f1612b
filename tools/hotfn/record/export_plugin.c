/* SPDX-License-Identifier: MIT */
/* `hotfn export -F ./x.so`: loads a shared object and registers the exporter that it defines.  The
 * object stays loaded, since the exporter is kept until the process ends. */
#include "export_plugin.h"

#include "cli/commands.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool export_plugin_is_path(const char *format)
{
    return strchr(format, '/') != NULL;
}

/* ISO C has no cast from an object pointer to a function pointer. */
static hotfn_exporter_plugin_fn find_entry(void *object)
{
    void *symbol = dlsym(object, HOTFN_EXPORTER_PLUGIN);
    hotfn_exporter_plugin_fn entry = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    return entry;
}

const char *export_plugin_load(const char *path)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        fprintf(stderr, "hotfn export: the plug-in cannot be loaded: %s\n", dlerror());
        return NULL;
    }
    hotfn_exporter_plugin_fn entry = find_entry(object);
    if (!entry) {
        fprintf(stderr, "hotfn export: %s: no exporter: it does not define %s\n", path,
                HOTFN_EXPORTER_PLUGIN);
        return NULL;
    }
    const hotfn_exporter *exporter = entry();
    if (!exporter) {
        fprintf(stderr, "hotfn export: %s: no exporter: %s returned NULL\n", path,
                HOTFN_EXPORTER_PLUGIN);
        return NULL;
    }
    if (hotfn_exporter_register(exporter, &err) != HOTFN_OK) {
        fprintf(stderr, "hotfn export: %s: %s\n", path, err.text);
        return NULL;
    }
    return exporter->name;
}
