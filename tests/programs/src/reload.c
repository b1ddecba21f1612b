/* SPDX-License-Identifier: MIT */
/* Hot reload: `reload LIVE ONE TWO [HFR]` repeatedly loads builds of a plugin from one path,
 * LIVE, as engines do: the file is overwritten in place, replaced while it is loaded, and
 * deleted while it is loaded. The program prints the plugins' results. With -DSESSION it counts
 * their calls itself, writes HFR, and prints whether their code is restored. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SESSION
#include <hotfn.h>
#include <hotfn/lowlevel.h>
#endif

/* Keeps the inode if the file exists. */
static void copy_to(const char *live, const char *build)
{
    char bytes[1 << 16];
    int in = open(build, O_RDONLY), out = open(live, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    ssize_t n = read(in, bytes, sizeof bytes);

    if (n <= 0 || n == sizeof bytes || write(out, bytes, (size_t)n) != n)
        exit(3);
    close(in);
    close(out);
}

static void *load(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!plugin) {
        printf("%s\n", dlerror());
        exit(4);
    }
    return plugin;
}

static void *find(void *plugin, const char *name)
{
    void *found = dlsym(plugin, name);

    if (!found)
        exit(5);
    return found;
}

static int call(void *plugin, const char *name, int times)
{
    int (*function)(void), answer = -1;
    void *found = find(plugin, name);

    memcpy(&function, &found, sizeof function);
    for (int i = 0; i < times; i++)
        answer = function();
    return answer;
}

static void use(void *plugin, int times)
{
    printf("%d", call(plugin, "spin", times));
    printf(" %d\n", call(plugin, call(plugin, "build", 1) == 1 ? "first" : "second", times));
}

static void reload(const char *live, const char *one, const char *two, unsigned char **kept)
{
    void *old, *new;

    for (int i = 0; i < 3; i++) {
        copy_to(live, i % 2 ? two : one);
        old = load(live);
        use(old, 10);
        dlclose(old);
    }
    /* Replaced while it is loaded: the path now names another inode, and the session scans
     * modules while that is so. */
    old = load(live);
    unlink(live);
    copy_to(live, two);
    new = load(two);
    use(old, 100);
    use(new, 100);
    /* Deleted while it is loaded. */
    unlink(live);
    dlclose(new);
    use(old, 1000);
    *kept = find(old, "spin");
}

int main(int argc, char **argv)
{
    unsigned char *kept;

#ifdef SESSION
    const char *globs[] = { "live.so", "two.so" };
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session;

    options.modules = globs;
    options.module_count = 2;
    if (hotfn_session_create(&session, &options, NULL, &err) ||
        hotfn_session_start(session, &err))
        return 6;
#endif
    if (argc < 4)
        return 2;
    reload(argv[1], argv[2], argv[3], &kept);
#ifdef SESSION
    printf("hooked %d\n", kept[0] != 0x31); /* xor %eax,%eax */
    if (hotfn_session_stop(session, &err) || hotfn_session_save(session, argv[4], &err))
        return 7;
    printf("hooked %d\n", kept[0] != 0x31);
    hotfn_session_destroy(session);
#endif
    return 0;
}
