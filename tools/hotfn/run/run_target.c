/* SPDX-License-Identifier: MIT */
/* Which file will run, and can the agent enter it?  A refusal names the file and what to do. */
#include "cli/commands.h"
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int refuse(int status, const char *file, const char *why)
{
    fprintf(stderr, "hotfn run: %s: %s\n", file, why);
    return status;
}

/* As execvp looks: 0, ENOENT or EACCES. */
static int find_in_path(const char *name, char *out)
{
    const char *path = getenv("PATH");
    int worst = ENOENT;
    struct stat file;
    if (strchr(name, '/')) {
        if (snprintf(out, PATH_MAX, "%s", name) >= PATH_MAX || stat(out, &file) != 0) {
            return ENOENT;
        }
        return S_ISREG(file.st_mode) && access(out, X_OK) == 0 ? 0 : EACCES;
    }
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)length, length ? at : ".", name);
        at += length + (at[length] == ':');
        if (n >= PATH_MAX || stat(out, &file) != 0 || !S_ISREG(file.st_mode)) {
            continue;
        }
        if (access(out, X_OK) == 0) {
            return 0;
        }
        worst = EACCES;
    }
    return worst;
}

/* If file is a script, its interpreter (behind `env`, the program that env finds) goes to image. */
static bool follow_script(const char *file, char *image)
{
    char line[512] = "";
    FILE *script = fopen(file, "re");
    size_t n = script ? fread(line, 1, sizeof line - 1, script) : 0;
    if (script) {
        fclose(script);
    }
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "#!", 2) != 0) {
        return snprintf(image, PATH_MAX, "%s", file) < PATH_MAX;
    }
    char *rest = NULL;
    char *word = strtok_r(line + 2, " \t", &rest);
    if (word && strlen(word) >= 4 && strcmp(word + strlen(word) - 4, "/env") == 0) {
        do {
            word = strtok_r(NULL, " \t", &rest);
        } while (word && (word[0] == '-' || strchr(word, '=')));
    }
    return word && find_in_path(word, image) == 0;
}

/* ld.so ignores LD_PRELOAD for a program that gains rights. */
static bool gains_rights(const char *path, const struct stat *file)
{
    char capability[64];
    bool set_user = (file->st_mode & S_ISUID) && file->st_uid != getuid();
    bool set_group = (file->st_mode & S_ISGID) && file->st_gid != getgid();
    bool capable =
        getuid() != 0 && getxattr(path, "security.capability", capability, sizeof capability) > 0;
    return set_user || set_group || capable || getuid() != geteuid();
}

static uint64_t text_bytes(const hotfn_image *image)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section section = HOTFN_SECTION_INIT;
        hotfn_image_get_section(image, i, &section);
        total += section.flags & HOTFN_SECTION_EXECUTE ? section.byte_count : 0;
    }
    return total;
}

/* Of this program itself: the agent beside it is of the same. */
enum { OWN_MACHINE = HOTFN_OWN_MACHINE };

bool run_can_run(uint32_t machine)
{
    return machine == OWN_MACHINE ||
           (machine == HOTFN_MACHINE_X86 && OWN_MACHINE == HOTFN_MACHINE_X86_64);
}

static const char *why_not(const hotfn_image_info *info)
{
    if (info->format != HOTFN_FORMAT_ELF || !run_can_run(info->machine)) {
        return OWN_MACHINE == HOTFN_MACHINE_ARM64
                   ? "not an ARM64 ELF program; this build counts those only"
                   : "not an x86-64 or i386 ELF program (x32 is neither); this build counts those "
                     "only";
    }
    if (!(info->flags & HOTFN_IMAGE_INTERPRETER)) {
        return "a static program has no dynamic loader that could bring the agent in; "
               "count a dynamically linked build of it";
    }
    const char *slash = strrchr(info->interpreter, '/');
    if (strncmp(slash ? slash + 1 : info->interpreter, "ld-linux", 8) != 0) {
        return "its dynamic loader is not glibc's (ld-linux); the agent needs glibc";
    }
    return NULL;
}

static int check_image(run_target *t)
{
    struct stat file;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image;
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    if (stat(t->image, &file) != 0) {
        return refuse(RUN_NOT_FOUND, t->image, strerror(errno));
    }
    if (gains_rights(t->image, &file)) {
        return refuse(RUN_FAILED, t->image,
                      "a setuid, setgid or privileged program: the loader lets no agent in; "
                      "count a copy without these rights");
    }
    if (hotfn_image_open(&image, t->image, NULL, &err) != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        return err.status == HOTFN_E_IO ? RUN_NOT_EXECUTABLE : RUN_FAILED;
    }
    hotfn_image_get_info(image, &info);
    const char *why = why_not(&info);
    t->device = (uint64_t)file.st_dev;
    t->inode = (uint64_t)file.st_ino;
    t->machine = info.machine;
    t->text_bytes = text_bytes(image);
    if (!why && !realpath(info.interpreter, t->interpreter)) {
        why = "its dynamic loader does not exist";
    }
    hotfn_image_close(image);
    return why ? refuse(RUN_FAILED, t->image, why) : 0;
}

static bool is_folder(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode);
}

int run_find_target(run_target *t, const run_options *o)
{
    const char *name = o->command[0];
    memset(t, 0, sizeof *t);
    switch (find_in_path(name, t->file)) {
    case 0: break;
    case EACCES:
        return refuse(RUN_NOT_EXECUTABLE, name,
                      is_folder(name) ? "is a folder: name a program in it"
                                      : "is not an executable file (chmod +x it?)");
    default: return refuse(RUN_NOT_FOUND, name, "no such program");
    }
    if (!follow_script(t->file, t->image)) {
        return refuse(RUN_NOT_EXECUTABLE, name, "its #! interpreter was not found");
    }
    return o->target_glob ? 0 : check_image(t);
}

static bool is_agent(char *path, size_t bytes, const char *folder, const char *place,
                     const char *name)
{
    int length = snprintf(path, bytes, "%s%s/%s", folder, place, name);
    return length > 0 && (size_t)length < bytes && access(path, R_OK) == 0;
}

const char *run_agent_name(uint32_t machine)
{
    return machine == HOTFN_MACHINE_X86 && OWN_MACHINE == HOTFN_MACHINE_X86_64
               ? "hotfn-agent-i386.so"
               : "hotfn-agent.so";
}

bool run_has_proc(const char *of)
{
    bool has = access("/proc/self/exe", F_OK) == 0;
    if (!has) {
        fprintf(
            stderr,
            "%s: /proc is not mounted here: this program finds its own parts through it, and the "
            "target the record; mount -t proc proc /proc\n",
            of);
    }
    return has;
}

/* In a kit beside us, in a build folder one up, in an installed tree that was moved as a whole, else where
 * it was to be installed. */
bool run_find_agent(char *path, size_t bytes, uint32_t machine)
{
    const char *name = run_agent_name(machine);
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = 0;
        if (is_agent(path, bytes, self, "", name) ||
            is_agent(path, bytes, self, "/../../src/agent", name) ||
            is_agent(path, bytes, self, HOTFN_AGENT_FROM_TOOL, name)) {
            return true;
        }
    }
    return is_agent(path, bytes, HOTFN_AGENT_FOLDER, "", name);
}

/* Beside the agents stand links to them under what the loaders of either word size put for $PLATFORM (ld.so(8),
 * 'Dynamic string tokens'; glibc says haswell and xeon_phi of some processors). */
void run_take_either_agent(char *path, size_t bytes)
{
    char folder[PATH_MAX], link[PATH_MAX];
    const char *platform = (const char *)(uintptr_t)getauxval(AT_PLATFORM);
    char *slash = strrchr(path, '/');
    if (!slash || !platform || strcmp(platform, "x86_64") != 0) {
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (is_agent(link, sizeof link, folder, "", "hotfn-agent-x86_64.so") &&
        is_agent(link, sizeof link, folder, "", "hotfn-agent-i686.so") &&
        strlen(folder) + sizeof "/hotfn-agent-$PLATFORM.so" <= bytes) {
        snprintf(path, bytes, "%s/hotfn-agent-$PLATFORM.so", folder);
    }
}
