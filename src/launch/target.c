/* SPDX-License-Identifier: MIT */
/* Finds the file that a start of the command would run, and checks whether the agent can enter it.
 * A refusal names the file, the reason and what to do. */
#include "base/status.h"
#include "launch/launch.h"
#include "os/os.h"

#include <hotfn/lowlevel/image.h>
#include <stdio.h>
#include <string.h>

static hotfn_status refuse_file(hotfn_error *err, hotfn_status status, const char *file,
                                const char *text)
{
    return hfn_report_error(err, status, file, HOTFN_NO_OFFSET, "%s", text);
}

/* Set image to file, or to the interpreter if file is a script.  For "#!/usr/bin/env NAME" the
 * interpreter is the program NAME. */
static bool find_image(const char *file, char image[HFN_OS_PATH_BYTES])
{
    char line[512] = "", *next_word = NULL;
    uint64_t count = 0;
    hfn_os_file script;

    if (hfn_os_open_file(&script, file, HFN_OS_READ) == 0) {
        hfn_os_read_next(script, line, sizeof line - 1, &count);
        hfn_os_close_file(script);
    }
    line[count] = 0;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "#!", 2) != 0) {
        return snprintf(image, HFN_OS_PATH_BYTES, "%s", file) < (int)HFN_OS_PATH_BYTES;
    }
    char *word = strtok_r(line + 2, " \t", &next_word);
    if (word && strlen(word) >= 4 && strcmp(word + strlen(word) - 4, "/env") == 0) {
        do {
            word = strtok_r(NULL, " \t", &next_word);
        } while (word && (word[0] == '-' || strchr(word, '=')));
    }
    return word && hfn_os_find_program(word, image) == 0;
}

static uint64_t sum_text_bytes(const hotfn_image *image)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section section = HOTFN_SECTION_INIT;
        hotfn_image_get_section(image, i, &section);
        total += section.flags & HOTFN_SECTION_EXECUTE ? section.byte_count : 0;
    }
    return total;
}

static hotfn_status open_image(hotfn_image **image, const char *path, const hotfn_env *env,
                               hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hotfn_image_open(image, path, env, &why);

    /* the file may be executed, so a failed open means that it may not be read */
    return status == HOTFN_OK
               ? HOTFN_OK
               : hfn_report_error(err, status == HOTFN_E_IO ? HOTFN_E_DENIED : status, why.file,
                                  why.offset, "%s", why.text);
}

hotfn_status hfn_target_check_image(hfn_target *t, const hotfn_env *env, hotfn_error *err)
{
    hotfn_image *image;
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hfn_os_file_info file;
    hfn_os_error error = hfn_os_get_path_info(t->image, &file);
    if (error != 0) {
        return refuse_file(err, HOTFN_E_NOT_FOUND, t->image, hfn_os_get_error_text(error));
    }
    t->device = file.device;
    t->inode = file.inode;
    if (hfn_os_gains_rights(t->image)) {
        return refuse_file(err, HOTFN_E_UNSUPPORTED, t->image,
                           "the loader loads no agent into a setuid, setgid or privileged program: "
                           "count a copy without these rights, or attach as root while it runs");
    }
    hotfn_status status = open_image(&image, t->image, env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hotfn_image_get_info(image, &info);
    const char *refusal = hfn_target_find_refusal(t, image);
    t->machine = info.machine;
    t->text_bytes = sum_text_bytes(image);
    hotfn_image_close(image);
    return refusal ? refuse_file(err, HOTFN_E_UNSUPPORTED, t->image, refusal) : HOTFN_OK;
}

void hfn_target_set_image(hfn_target *t, const char *image, const hotfn_env *env)
{
    hfn_target next = *t;

    snprintf(next.image, sizeof next.image, "%s", image);
    if (hfn_target_check_image(&next, env, NULL) == HOTFN_OK) {
        *t = next;
    }
}

hotfn_status hfn_target_find(hfn_target *t, const hotfn_launch_options *o, const hotfn_env *env,
                             hotfn_error *err)
{
    const char *name = o->command[0];

    hfn_os_error error = hfn_os_find_program(name, t->file);
    if (hfn_os_is_denied(error)) {
        return refuse_file(err, HOTFN_E_DENIED, name,
                           hfn_os_is_folder(name) ? "is a folder: name a program in it"
                                                  : "is not an executable file (chmod +x it?)");
    }
    if (error != 0) {
        return refuse_file(err, HOTFN_E_NOT_FOUND, name, "no such program");
    }
    if (!find_image(t->file, t->image)) {
        return refuse_file(err, HOTFN_E_DENIED, name, "its #! interpreter was not found");
    }
    return o->target_glob ? HOTFN_OK : hfn_target_check_image(t, env, err);
}
