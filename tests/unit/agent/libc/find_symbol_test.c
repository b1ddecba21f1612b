/* SPDX-License-Identifier: MIT */
/* The agent's own dlsym returns the same addresses as the loader's. */
#include "check.h"

#include <dlfcn.h>

void *agent_dlsym(void *handle, const char *name);

static void finds_the_same_addresses_as_the_loader(void)
{
    static const char *const names[] = { "dl_iterate_phdr", "_dl_find_object", "__tls_get_addr",
                                         "fopencookie", "wordexp" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_EQ_U64((uintptr_t)agent_dlsym(RTLD_NEXT, names[i]),
                     (uintptr_t)dlsym(RTLD_NEXT, names[i]));
    }
    CHECK(agent_dlsym(RTLD_NEXT, "dl_iterate_phdr") != NULL);
}

static void returns_null_for_undefined_names(void)
{
    CHECK(agent_dlsym(RTLD_NEXT, "no_function_of_this_name") == NULL);
    CHECK(agent_dlsym(RTLD_NEXT, "") == NULL);
}

static void returns_null_for_data(void)
{
    CHECK(agent_dlsym(RTLD_NEXT, "environ") == NULL);
}

static const check_test tests[] = {
    CHECK_TEST(finds_the_same_addresses_as_the_loader),
    CHECK_TEST(returns_null_for_undefined_names),
    CHECK_TEST(returns_null_for_data),
};
CHECK_MAIN(tests)
